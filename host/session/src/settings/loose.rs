//! JSON as Pi's `models.json` may have it: with `//` comments and commas before a closing bracket.
//!
//! Both become white space of the same length, so that what is wrong with the rest is found where it stands.

/// The text as plain JSON.
pub(super) fn plain(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    blank(&mut text, comment_end);
    blank(&mut text, comma_end);
    text
}

/// Puts spaces for every piece outside of strings that begins where `end` says, up to the end it gives.
fn blank(text: &mut [u8], end: impl Fn(&[u8], usize) -> Option<usize>) {
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'"' {
            match string_end(text, at) {
                Some(after) => at = after,
                // A string without an end: this is no JSON, whatever follows.
                None => return,
            }
        } else if let Some(end) = end(text, at) {
            text[at..end].fill(b' ');
            at = end;
        } else {
            at += 1;
        }
    }
}

fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn comment_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    rest.starts_with(b"//").then(|| memchr::memchr(b'\n', rest).map_or(text.len(), |len| at + len))
}

fn comma_end(text: &[u8], at: usize) -> Option<usize> {
    let after = || text[at + 1..].iter().find(|b| !b.is_ascii_whitespace());
    (text[at] == b',' && matches!(after(), Some(b'}' | b']'))).then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(loose: &str, strict: &str) {
        assert_eq!(String::from_utf8(plain(loose.as_bytes())).expect("text"), strict);
    }

    #[test]
    fn comments_and_last_commas_are_blanks() {
        is("{\"a\": 1, // one\n}", "{\"a\": 1        \n}");
        is("[1,2,,\n]", "[1,2, \n]");
        is("{\"a\":[],}", "{\"a\":[] }");
    }

    #[test]
    fn strings_stay_as_they_are() {
        is(r#"["http://x,]", "\"//", ",}" ]"#, r#"["http://x,]", "\"//", ",}" ]"#);
        is(r#"["a", "//"#, r#"["a", "//"#);
    }

    #[test]
    fn many_quotes_and_commas_take_no_longer_than_their_length() {
        plain(&b"\"\\".repeat(1 << 20));
        plain(&[b"[".as_slice(), &b"//".repeat(1 << 20)].concat());
    }
}
