//! Finding one's way in JSON as it stands, without reading it into anything: what is not touched stays byte for byte. The
//! text is JSON, since the host has read it; of anything else nothing is found.
use std::ops::Range;

/// A value in JSON. Where it ends is found out once, since it may be long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// The value that a whole text is.
    pub(crate) fn whole(text: &'a [u8]) -> Self {
        Self { text, at: space(text, 0), end: text.len() }
    }

    /// The value that stands at a place, or behind space there.
    fn at(text: &'a [u8], at: usize) -> Self {
        let at = space(text, at);
        Self { text, at, end: value_end(text, at) }
    }

    fn first(&self) -> u8 {
        byte(self.text, self.at)
    }

    /// The inside of the string that stands here; none if no string does.
    pub(crate) fn string(&self) -> Option<Range<usize>> {
        (self.first() == b'"' && self.end > self.at + 1).then(|| self.at + 1..self.end - 1)
    }

    /// The value that stands here.
    pub(crate) fn range(&self) -> Range<usize> {
        self.at..self.end
    }

    /// The values of the list that stands here.
    pub(crate) fn items(self) -> impl Iterator<Item = Cursor<'a>> {
        let mut next = (self.first() == b'[').then(|| Cursor::at(self.text, self.at + 1));
        std::iter::from_fn(move || {
            let item = next.filter(|item| item.end > item.at)?;
            next = item.behind();
            Some(item)
        })
    }

    /// The members of the object that stands here: the inside of the name, and the value.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a [u8], Cursor<'a>)> {
        let mut next = (self.first() == b'{').then(|| Cursor::at(self.text, self.at + 1));
        std::iter::from_fn(move || {
            let name = next.filter(|name| name.first() == b'"')?;
            let inside = name.string()?;
            let colon = space(name.text, name.end);
            let value = Cursor::at(name.text, colon + usize::from(byte(name.text, colon) == b':'));
            next = value.behind();
            Some((&name.text[inside], value))
        })
    }

    /// The member of this name; of several the last counts.
    pub(crate) fn member(self, name: &str) -> Option<Cursor<'a>> {
        self.members().filter(|(found, _)| *found == name.as_bytes()).last().map(|(_, value)| value)
    }

    /// What stands behind this value and a comma.
    fn behind(&self) -> Option<Cursor<'a>> {
        let comma = space(self.text, self.end);
        (byte(self.text, comma) == b',').then(|| Cursor::at(self.text, comma + 1))
    }
}

fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

fn space(text: &[u8], at: usize) -> usize {
    let mut at = at;
    while matches!(byte(text, at), b' ' | b'\t' | b'\n' | b'\r') {
        at += 1;
    }
    at
}

/// Behind the value that stands at `from`.
fn value_end(text: &[u8], from: usize) -> usize {
    let (mut depth, mut at) = (0_usize, from);
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
        // Behind a string, a list or an object that began here.
        if depth == 0 && matches!(text[from], b'"' | b'{' | b'[') {
            return at;
        }
    }
    at
}

/// The place of the quote that ends the string whose first quote stands at `at`.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        at = plain_end(text, at);
        match text.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return at,
            Some(_) => at += 1,
            None => return text.len().saturating_sub(1),
        }
    }
}

/// Over what is neither quote nor backslash, eight bytes at a time: fuel is counted by instructions.
pub(crate) fn plain_end(text: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = from;
    while let Some(bytes) = text.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()) {
        let word = u64::from_le_bytes(bytes);
        let found = has_zero(word ^ (ONES * b'"' as u64)) | has_zero(word ^ (ONES * b'\\' as u64));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_finds_ones_way() {
        let text = br#" { "a" : [1, "x\"]", {"b":[[]]}, null ] , "c":{"d":"e"},"c":"last"}"#;
        let top = Cursor::whole(text);
        let items: Vec<_> = top
            .member("a")
            .expect("a")
            .items()
            .map(|item| String::from_utf8_lossy(&text[item.range()]).into_owned())
            .collect();
        assert_eq!(items, ["1", r#""x\"]""#, r#"{"b":[[]]}"#, "null "]);
        assert_eq!(&text[top.member("c").and_then(|c| c.string()).expect("c")], b"last");
        assert!(top.member("z").is_none() && top.items().next().is_none());
    }

    #[test]
    fn what_is_no_json_ends() {
        for text in ["", "{", "[", "{\"a\"", "{\"a\":", "[1,", "\"abc", "{\"a\":\"b\\"] {
            let cursor = Cursor::whole(text.as_bytes());
            let _ = (cursor.members().count(), cursor.items().count(), cursor.string(), cursor.range());
        }
    }
}
