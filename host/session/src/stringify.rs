//! How long JavaScript would write a value: `JSON.stringify(JSON.parse(text)).length`, without doing either (S9.5).

use std::collections::HashMap;

use crate::json::{Json, Kind, hex4, plain_utf16_len};

/// One open array or object of the walk.
struct Frame<'a> {
    parts: Parts<'a>,
    /// What the parts gave so far, without separators.
    len: u64,
    count: u64,
    /// An object's members by name: of several the last counts, once. Only filled for objects.
    named: HashMap<Vec<u8>, u64>,
    key: Option<Vec<u8>>,
}

enum Parts<'a> {
    Items(crate::json::Items<'a>),
    Members(crate::json::Members<'a>),
}

/// The length in UTF-16 units.
pub(crate) fn stringify_len(value: Json<'_>) -> u64 {
    if let Some(len) = scalar_len(value) {
        return len;
    }
    let text = value.raw();
    // A span that JavaScript would write as it stands: no white space, escapes, numbers or duplicates to look at.
    flat_len(text).unwrap_or_else(|| walk_len(value))
}

/// Most arguments are one flat object of plain strings; these need no walk.
fn flat_len(text: &[u8]) -> Option<u64> {
    (text == b"{}" || text == b"[]").then_some(2)
}

fn walk_len(value: Json<'_>) -> u64 {
    let mut open = vec![frame(value)];
    loop {
        let Some(top) = open.last_mut() else { return 0 };
        let next = match &mut top.parts {
            Parts::Items(items) => items.next(),
            Parts::Members(members) => members.next().map(|(key, value)| {
                top.key = Some(key.text().into_owned().into_bytes());
                value
            }),
        };
        match next {
            Some(part) => match scalar_len(part) {
                Some(len) => top.add(len),
                None => open.push(frame(part)),
            },
            None => {
                let len = open.pop().map_or(0, |frame| frame.close());
                match open.last_mut() {
                    Some(outer) => outer.add(len),
                    None => return len,
                }
            }
        }
    }
}

fn frame(value: Json<'_>) -> Frame<'_> {
    let parts = match value.kind() {
        Kind::Array => Parts::Items(value.items()),
        _ => Parts::Members(value.members()),
    };
    Frame {
        parts,
        len: 0,
        count: 0,
        named: HashMap::new(),
        key: None,
    }
}

impl Frame<'_> {
    fn add(&mut self, len: u64) {
        match self.key.take() {
            None => {
                self.len += len;
                self.count += 1;
            }
            Some(key) => {
                let name_len = string_len_of_text(&key) + 1;
                self.named.insert(key, name_len + len);
            }
        }
    }

    /// Brackets, parts and the commas between them.
    fn close(self) -> u64 {
        let count = self.count + self.named.len() as u64;
        2 + self.len + self.named.values().sum::<u64>() + count.saturating_sub(1)
    }
}

fn string_len_of_text(text: &[u8]) -> u64 {
    2 + plain_utf16_len(text) + text.iter().map(|b| extra_of(*b)).sum::<u64>()
}

/// Units that JavaScript adds when it writes this character in a string.
fn extra_of(byte: u8) -> u64 {
    match byte {
        b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 1,
        0..0x20 => 5,
        _ => 0,
    }
}

fn scalar_len(value: Json<'_>) -> Option<u64> {
    let raw = value.raw();
    match value.kind() {
        Kind::Null | Kind::Bool => Some(raw.len() as u64),
        Kind::Number => Some(number_len(value)),
        Kind::String => Some(2 + string_len(&raw[1..raw.len() - 1])),
        Kind::Array | Kind::Object => None,
    }
}

fn number_len(value: Json<'_>) -> u64 {
    match value.as_f64() {
        Some(0.0) => 1,
        Some(n) if n.is_finite() => ryu_js::Buffer::new().format_finite(n).len() as u64,
        _ => 4,
    }
}

/// The written length of a string, given what stands between its quotes in the text.
fn string_len(raw: &[u8]) -> u64 {
    let mut len = 0;
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        len += plain_utf16_len(&rest[..at]);
        let (units, used) = escape_len(&rest[at..]);
        len += units;
        rest = &rest[at + used..];
    }
    len + plain_utf16_len(rest)
}

/// What JavaScript writes for the escape that `raw` begins with, and how long it is here.
fn escape_len(raw: &[u8]) -> (u64, usize) {
    match raw[1] {
        b'/' => (1, 2),
        b'u' => unit_len(raw),
        _ => (2, 2),
    }
}

fn unit_len(raw: &[u8]) -> (u64, usize) {
    let unit = hex4(&raw[2..6]);
    let low_follows =
        || raw.len() >= 12 && &raw[6..8] == b"\\u" && (0xDC00..0xE000).contains(&hex4(&raw[8..12]));
    match unit {
        0xD800..0xDC00 if low_follows() => (2, 12),
        0xD800..0xE000 => (6, 6),
        0..0x80 => (1 + extra_of(unit as u8), 6),
        _ => (1, 6),
    }
}
