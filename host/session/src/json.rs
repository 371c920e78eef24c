//! JSON as it stands in the file: checked, never copied, never normalised (S2.5).
//!
//! Real sessions hold numbers beyond any float, lone surrogate escapes, invalid UTF-8 and objects nested 100,000 deep, all
//! of which Pi reads. So values here are spans of the text; what is needed of one is decoded when it is asked for.
//! Nothing in this module recurses, and a text is walked once.

use std::borrow::Cow;

/// Where a text stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {what} at byte {at}")]
pub struct JsonError {
    /// Offset in bytes from the start of the text.
    pub at: usize,
    /// What was met there.
    pub what: &'static str,
}

/// The six kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, of any size and precision.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A JSON value that was checked, as the bytes that stand in the text. Strings in it may hold invalid UTF-8, which reads
/// as U+FFFD (S2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a [u8]);

impl<'a> Json<'a> {
    /// Checks that the whole of `text` is one JSON value, with white space around it allowed.
    ///
    /// # Errors
    /// [`JsonError`] says where `JSON.parse` would stop.
    pub fn parse(text: &'a [u8]) -> Result<Json<'a>, JsonError> {
        let mut scan = Scan::new(text);
        let value = scan.value()?;
        scan.end()?;
        Ok(value)
    }

    /// A span that [`Scan`] has already checked.
    pub(crate) fn checked(span: &'a [u8]) -> Json<'a> {
        Json(span)
    }

    /// The bytes, as they stand.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// The text, invalid UTF-8 read as U+FFFD: valid JSON text of the same value.
    #[must_use]
    pub fn to_text(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// Which kind of value it is.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.0.first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether JavaScript takes it for true: not `null`, `false`, `0` or `""`.
    #[must_use]
    pub fn is_truthy(self) -> bool {
        match self.kind() {
            Kind::Null => false,
            Kind::Bool => self.0 == b"true",
            Kind::String => self.0 != b"\"\"",
            Kind::Number => self.as_f64() != Some(0.0),
            Kind::Array | Kind::Object => true,
        }
    }

    /// The boolean, if it is one.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.0 == b"true")
    }

    /// The number as JavaScript has it (1e400 is infinite), if it is one.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        if self.kind() != Kind::Number {
            return None;
        }
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }

    /// The string decoded, if it is one; lone surrogates and invalid UTF-8 become U+FFFD.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| decode(&self.0[1..self.0.len() - 1]))
    }

    /// The length of a string in UTF-16 units; 0 for anything else.
    #[must_use]
    pub fn utf16_len(self) -> u64 {
        match self.kind() {
            Kind::String => utf16_len(&self.0[1..self.0.len() - 1]),
            _ => 0,
        }
    }

    /// The value of a member; of several with one name the last (S2.5). `None` where there is none, or no object.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Json<'a>> {
        self.members()
            .filter(|(key, _)| key.is(name))
            .map(|(_, value)| value)
            .last()
    }

    /// The members of an object in the order they stand, duplicates included; nothing for any other kind.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members {
            scan: inside(self, Kind::Object),
        }
    }

    /// The items of an array; nothing for any other kind.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        Items {
            scan: inside(self, Kind::Array),
        }
    }

    /// The length in UTF-16 units of `JSON.stringify(JSON.parse(text))`.
    #[must_use]
    pub fn stringify_len(self) -> u64 {
        crate::stringify::stringify_len(self)
    }
}

fn inside(value: Json<'_>, kind: Kind) -> Scan<'_> {
    let span = if value.kind() == kind {
        &value.0[1..value.0.len() - 1]
    } else {
        &[]
    };
    Scan::new(span)
}

/// The name of a member, as it stands between its quotes.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Key<'a> {
    /// Whether this is the name.
    #[must_use]
    pub fn is(self, name: &str) -> bool {
        if self.escaped {
            self.text() == name
        } else {
            self.raw == name.as_bytes()
        }
    }

    /// The name decoded.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        decode(self.raw)
    }

    /// The bytes between the quotes.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// The plain bytes for a `match`, if there is no escape in them.
    pub(crate) fn plain(self) -> &'a [u8] {
        if self.escaped { b"\\" } else { self.raw }
    }
}

/// Iterator over the members of an object.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    scan: Scan<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Key<'a>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.scan.separator();
        let key = self.scan.key().ok()?;
        Some((key, self.scan.value().ok()?))
    }
}

/// Iterator over the items of an array.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    scan: Scan<'a>,
}

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.scan.separator();
        self.scan.value().ok()
    }
}

/// A walk over a text, a token at a time.
#[derive(Clone, Debug)]
pub(crate) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Scan<'a> {
        Scan { text, at: 0 }
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError { at: self.at, what })
    }

    pub(crate) fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// The next byte that is not white space, not consumed.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.get(self.at).copied()
    }

    /// Steps over a comma between two parts of an array or object that was checked before.
    fn separator(&mut self) {
        if self.peek() == Some(b',') {
            self.at += 1;
        }
    }

    /// Nothing but white space is left.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("something behind the value"),
        }
    }

    /// A member's name and its colon.
    fn key(&mut self) -> Result<Key<'a>, JsonError> {
        if self.peek() != Some(b'"') {
            return self.fail("expected a name");
        }
        let start = self.at + 1;
        let escaped = self.string()?;
        let key = Key {
            raw: &self.text[start..self.at - 1],
            escaped,
        };
        match self.peek() {
            Some(b':') => self.at += 1,
            _ => return self.fail("expected a colon"),
        }
        Ok(key)
    }

    /// Walks an object: `member` is called with each name and must consume the value with one of the methods here.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(Key<'a>, &mut Scan<'a>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.space();
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            member(key, self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break self.at += 1,
                _ => return self.fail("expected a comma or }"),
            }
        }
        Ok(())
    }

    /// Walks an array: `item` is called at each item and must consume it.
    pub(crate) fn array(
        &mut self,
        mut item: impl FnMut(&mut Scan<'a>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.space();
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break self.at += 1,
                _ => return self.fail("expected a comma or ]"),
            }
        }
        Ok(())
    }

    /// Any one value, checked and stepped over. Objects and arrays are kept on a stack of their own, so that no depth is
    /// too deep.
    pub(crate) fn value(&mut self) -> Result<Json<'a>, JsonError> {
        self.space();
        let start = self.at;
        match self.text.get(start) {
            Some(b'"') => drop(self.string()?),
            Some(b'{' | b'[') => self.nested()?,
            _ => self.atom()?,
        }
        Ok(Json(&self.text[start..self.at]))
    }

    fn nested(&mut self) -> Result<(), JsonError> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            // At a value.
            match self.peek() {
                Some(b @ (b'{' | b'[')) => {
                    self.at += 1;
                    open.push(b);
                    if self.peek() != Some(b + 2) {
                        if b == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    open.pop();
                }
                Some(b'"') => drop(self.string()?),
                _ => self.atom()?,
            }
            if self.behind_value(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Behind a value: closes what closes, and stops before the next value. True when all is closed.
    fn behind_value(&mut self, open: &mut Vec<u8>) -> Result<bool, JsonError> {
        loop {
            let Some(&inner) = open.last() else {
                return Ok(true);
            };
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if inner == b'{' {
                        self.key()?;
                    }
                    return Ok(false);
                }
                Some(b) if b == inner + 2 => {
                    self.at += 1;
                    open.pop();
                }
                _ => return self.fail("expected a comma or a closing bracket"),
            }
        }
    }

    fn atom(&mut self) -> Result<(), JsonError> {
        let rest = &self.text[self.at..];
        for word in [b"true".as_slice(), b"false", b"null"] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(());
            }
        }
        self.number()
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.fail("expected a value"),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == start {
            self.fail("expected a digit")
        } else {
            Ok(())
        }
    }

    /// Steps over a string, opening quote to closing quote; true if there is an escape in it.
    fn string(&mut self) -> Result<bool, JsonError> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at += plain_run(&self.text[self.at..]);
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return self.fail("raw control character in a string"),
                None => return self.fail("string without an end"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') if self.text.get(self.at + 2..self.at + 6).is_some_and(all_hex) => {
                self.at += 6
            }
            _ => return self.fail("bad escape"),
        }
        Ok(())
    }
}

fn all_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

/// How many bytes from the start on are ordinary string bytes: not `"`, not `\`, not below 0x20. Eight at a time.
fn plain_run(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero_in = |w: u64| w.wrapping_sub(ONES) & !w & HIGH;
    let mut at = 0;
    for eight in text.as_chunks::<8>().0 {
        let w = u64::from_le_bytes(*eight);
        let control = w.wrapping_sub(ONES * 0x20) & !w & HIGH;
        let found = zero_in(w ^ (ONES * u64::from(b'"')))
            | zero_in(w ^ (ONES * u64::from(b'\\')))
            | control;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    text[at..]
        .iter()
        .position(|b| matches!(b, b'"' | b'\\' | 0..0x20))
        .map_or(text.len(), |n| at + n)
}

/// Decodes what stands between two quotes.
fn decode(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        return String::from_utf8_lossy(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.push_str(&String::from_utf8_lossy(&rest[..at]));
        let (c, used) = unescape(&rest[at..]);
        out.push(c);
        rest = &rest[at + used..];
    }
    out.push_str(&String::from_utf8_lossy(rest));
    Cow::Owned(out)
}

/// The character of the escape that `raw` begins with, and its length in bytes; two escapes that are a surrogate pair
/// count as one, a lone surrogate is U+FFFD.
fn unescape(raw: &[u8]) -> (char, usize) {
    match raw[1] {
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'n' => ('\n', 2),
        b'r' => ('\r', 2),
        b't' => ('\t', 2),
        b'u' => unescape_unit(raw),
        other => (char::from(other), 2),
    }
}

fn unescape_unit(raw: &[u8]) -> (char, usize) {
    let unit = hex4(&raw[2..6]);
    if (0xD800..0xDC00).contains(&unit) && raw.len() >= 12 && &raw[6..8] == b"\\u" {
        let low = hex4(&raw[8..12]);
        if (0xDC00..0xE000).contains(&low) {
            let c = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            return (char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
        }
    }
    (
        char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
        6,
    )
}

/// The value of four hex digits that were checked.
pub(crate) fn hex4(digits: &[u8]) -> u32 {
    digits
        .iter()
        .fold(0, |n, d| n << 4 | char::from(*d).to_digit(16).unwrap_or(0))
}

/// The UTF-16 length of what stands between two quotes.
pub(crate) fn utf16_len(raw: &[u8]) -> u64 {
    let mut len = 0;
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        len += plain_utf16_len(&rest[..at]) + 1;
        rest = &rest[at + if rest[at + 1] == b'u' { 6 } else { 2 }..];
    }
    len + plain_utf16_len(rest)
}

/// The UTF-16 length of text without escapes: a unit for every character, two beyond the basic plane.
pub(crate) fn plain_utf16_len(raw: &[u8]) -> u64 {
    if raw.is_ascii() {
        return raw.len() as u64;
    }
    match std::str::from_utf8(raw) {
        Ok(_) => raw
            .iter()
            .map(|b| u64::from((*b & 0xC0) != 0x80) + u64::from(*b >= 0xF0))
            .sum(),
        Err(_) => String::from_utf8_lossy(raw).encode_utf16().count() as u64,
    }
}

/// `text` as a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}
