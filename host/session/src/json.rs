//! JSON as it stands in the file: checked, never copied, never normalised (S2.5).
//!
//! Real sessions hold numbers beyond any float, lone surrogate escapes, invalid UTF-8 and objects nested 100,000 deep, all
//! of which Pi reads. So values here are spans of the text; what is needed of one is decoded when it is asked for.
//! Nothing in this module recurses, and a text is walked once.

use std::borrow::Cow;

use crate::scan::Scan;

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

    /// Checks a whole text as [`Json::parse`] does, and gives these members of the object that it is: one pass for all.
    pub(crate) fn pick<const N: usize>(text: &'a [u8], names: [&str; N]) -> Result<[Option<Json<'a>>; N], JsonError> {
        let mut scan = Scan::new(text);
        let mut picked = [None; N];
        if scan.peek() != Some(b'{') {
            return Err(JsonError { at: 0, what: "not an object" });
        }
        scan.object(|key, scan| {
            let value = scan.value()?;
            if let Some(at) = names.iter().position(|name| key.is(name)) {
                picked[at] = Some(value);
            }
            Ok(())
        })?;
        scan.end()?;
        Ok(picked)
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
        std::str::from_utf8(self.0).map_or_else(|_| String::from_utf8_lossy(self.0), Cow::Borrowed)
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
        small_number(self.0).or_else(|| std::str::from_utf8(self.0).ok()?.parse().ok())
    }

    /// The string decoded, if it is one; lone surrogates and invalid UTF-8 become U+FFFD.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| decode(&self.0[1..self.0.len() - 1]))
    }

    /// The string as bytes for a `match` with words that are known: decoded where there are escapes, else as it stands.
    pub(crate) fn word(self) -> Option<Cow<'a, [u8]>> {
        let inner = || Key::new(&self.0[1..self.0.len() - 1], self.0.contains(&b'\\'));
        (self.kind() == Kind::String).then(|| inner().name())
    }

    /// Whether it stands there as this text, which is not empty, between quotes and without an escape.
    pub(crate) fn is_written(self, text: &str) -> bool {
        let inner = self.0.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        !text.is_empty() && inner == Some(text.as_bytes()) && !text.contains('\\')
    }

    /// The length of a string in UTF-16 units; 0 for anything else.
    #[must_use]
    pub fn utf16_len(self) -> u64 {
        if self.kind() != Kind::String {
            return 0;
        }
        let mut scan = Scan::new(self.0);
        scan.value().map_or(0, |_| scan.units())
    }

    /// The value of a member; of several with one name the last (S2.5). `None` where there is none, or no object.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Json<'a>> {
        self.members().filter(|(key, _)| key.is(name)).map(|(_, value)| value).last()
    }

    /// The values of several members, found in one pass; each as [`Json::get`] gives it.
    #[must_use]
    pub fn get_all<const N: usize>(self, names: [&str; N]) -> [Option<Json<'a>>; N] {
        let mut found = [None; N];
        for (key, value) in self.members() {
            if let Some(at) = names.iter().position(|name| key.is(name)) {
                found[at] = Some(value);
            }
        }
        found
    }

    /// The first `most` characters of a string, decoded as [`Json::as_str`] does; what stands behind them costs nothing.
    #[must_use]
    pub fn beginning(self, most: usize) -> Option<String> {
        (self.kind() == Kind::String).then(|| decode_some(&self.0[1..self.0.len() - 1], most))
    }

    /// The members of an object in the order they stand, duplicates included; nothing for any other kind.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members { scan: inside(self, Kind::Object) }
    }

    /// The items of an array; nothing for any other kind.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        Items { scan: inside(self, Kind::Array) }
    }

    /// The length in UTF-16 units of `JSON.stringify(JSON.parse(text))`.
    #[must_use]
    pub fn stringify_len(self) -> u64 {
        Scan::new(self.0).value_and_written().map_or(0, |(_, written)| written)
    }
}

/// A whole number of so few digits that a float holds it, as nearly all are.
fn small_number(digits: &[u8]) -> Option<f64> {
    let add = |sum: u64, digit: &u8| digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0'));
    if digits.len() > 15 { None } else { digits.iter().try_fold(0, add).map(|number| number as f64) }
}

fn inside(value: Json<'_>, kind: Kind) -> Scan<'_> {
    let span = if value.kind() == kind { &value.0[1..value.0.len() - 1] } else { &[] };
    Scan::new(span)
}

/// The name of a member, as it stands between its quotes.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Key<'a> {
    pub(crate) fn new(raw: &'a [u8], escaped: bool) -> Key<'a> {
        Key { raw, escaped }
    }

    pub(crate) fn is_escaped(self) -> bool {
        self.escaped
    }

    /// Whether this is the name.
    #[must_use]
    pub fn is(self, name: &str) -> bool {
        if self.escaped { self.text() == name } else { self.raw == name.as_bytes() }
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

    /// The name in UTF-16, lone surrogates and all.
    pub(crate) fn units(self) -> Vec<u16> {
        let mut units = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            units.extend(String::from_utf8_lossy(&rest[..at]).encode_utf16());
            let (unit, used) = match rest[at + 1] {
                b'u' => (hex4(&rest[at + 2..at + 6]) as u16, 6),
                _ => (unescape(&rest[at..]).0 as u16, 2),
            };
            units.push(unit);
            rest = &rest[at + used..];
        }
        units.extend(String::from_utf8_lossy(rest).encode_utf16());
        units
    }

    /// The name decoded, as bytes for a `match`.
    pub(crate) fn name(self) -> Cow<'a, [u8]> {
        match self.escaped {
            false => Cow::Borrowed(self.raw),
            true => Cow::Owned(self.text().into_owned().into_bytes()),
        }
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

/// Decodes what stands between two quotes.
fn decode(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        // Nearly all is valid, and this check is the faster one.
        return std::str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
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

/// Decodes the first `most` characters of what stands between two quotes.
fn decode_some(raw: &[u8], most: usize) -> String {
    let (mut out, mut rest, mut left) = (String::new(), raw, most);
    while left > 0 && !rest.is_empty() {
        if rest[0] == b'\\' {
            let (c, used) = unescape(rest);
            out.push(c);
            (rest, left) = (&rest[used..], left - 1);
            continue;
        }
        // No character is longer than four bytes, so the one that this may cut in two is not wanted any more.
        let near = &rest[..rest.len().min(left.saturating_mul(4))];
        let run = &near[..memchr::memchr(b'\\', near).unwrap_or(near.len())];
        for c in String::from_utf8_lossy(run).chars().take(left) {
            out.push(c);
            left -= 1;
        }
        rest = &rest[run.len()..];
    }
    out
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
    (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// The value of four hex digits that were checked.
pub(crate) fn hex4(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |n, d| n << 4 | char::from(*d).to_digit(16).unwrap_or(0))
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
