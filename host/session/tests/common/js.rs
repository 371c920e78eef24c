//! JSON as JavaScript has it: a reader and a canonical writer of their own, so that what is compared never went through
//! the code under test. Strings are UTF-16, numbers are doubles, of two equal keys the last counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A value after `JSON.parse`.
#[derive(Clone, PartialEq, Debug)]
pub enum Js {
    Null,
    Bool(bool),
    Number(f64),
    Text(Vec<u16>),
    List(Vec<Js>),
    Object(BTreeMap<Vec<u16>, Js>),
}

impl Js {
    /// Parses text that is known to be JSON; invalid UTF-8 reads as U+FFFD.
    pub fn parse(text: &[u8]) -> Js {
        Js::try_parse(text)
            .unwrap_or_else(|| panic!("not JSON: {}", String::from_utf8_lossy(&text[..text.len().min(200)])))
    }

    /// Parses what may not be JSON.
    pub fn try_parse(text: &[u8]) -> Option<Js> {
        let units: Vec<u16> = String::from_utf8_lossy(text).encode_utf16().collect();
        let mut reader = Reader { units: &units, at: 0 };
        let value = reader.value()?;
        reader.space();
        (reader.at == units.len()).then_some(value)
    }

    pub fn text(text: &str) -> Js {
        Js::Text(text.encode_utf16().collect())
    }

    /// Text or null.
    pub fn maybe(text: Option<&str>) -> Js {
        text.map_or(Js::Null, Js::text)
    }

    pub fn number(number: impl TryInto<i64>) -> Js {
        Js::Number(number.try_into().ok().expect("numbers of a session fit") as f64)
    }

    pub fn object(members: Vec<(&str, Js)>) -> Js {
        Js::Object(members.into_iter().map(|(key, value)| (key.encode_utf16().collect(), value)).collect())
    }

    pub fn texts<'t>(items: impl IntoIterator<Item = &'t str>) -> Js {
        Js::List(items.into_iter().map(Js::text).collect())
    }

    /// The member of that name, if this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Js> {
        let Js::Object(members) = self else { return None };
        members.get(&name.encode_utf16().collect::<Vec<_>>())
    }

    /// The items of a list; nothing for any other kind.
    pub fn items(&self) -> &[Js] {
        if let Js::List(items) = self { items } else { &[] }
    }

    pub fn as_text(&self) -> Option<String> {
        if let Js::Text(units) = self { Some(String::from_utf16_lossy(units)) } else { None }
    }

    /// The one text of this value: keys sorted, infinite numbers null, as the oracle writes it.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Js::Null => out.push_str("null"),
            Js::Bool(yes) => write!(out, "{yes}").expect("a String takes all"),
            Js::Number(n) if n.is_finite() => write!(out, "{}", n + 0.0).expect("a String takes all"),
            Js::Number(_) => out.push_str("null"),
            Js::Text(units) => write_text(units, out),
            Js::List(items) => write_list(items, out),
            Js::Object(members) => write_object(members, out),
        }
    }
}

fn write_list(items: &[Js], out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        item.write(out);
    }
    out.push(']');
}

fn write_object(members: &BTreeMap<Vec<u16>, Js>, out: &mut String) {
    out.push('{');
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(key, out);
        out.push(':');
        value.write(out);
    }
    out.push('}');
}

fn write_text(units: &[u16], out: &mut String) {
    out.push('"');
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(c @ ('"' | '\\')) => out.extend(['\\', c]),
            Ok(c) if c >= ' ' => out.push(c),
            Ok(c) => write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes all"),
            Err(lone) => write!(out, "\\u{:04x}", lone.unpaired_surrogate()).expect("a String takes all"),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    units: &'a [u16],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.units.get(self.at).and_then(|unit| char::from_u32(u32::from(*unit)))
    }

    fn space(&mut self) {
        while let Some(' ' | '\t' | '\n' | '\r') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, expected: char) -> Option<()> {
        (self.peek() == Some(expected)).then(|| self.at += 1)
    }

    fn value(&mut self) -> Option<Js> {
        self.space();
        match self.peek()? {
            '{' => self.object(),
            '[' => self.list(),
            '"' => self.text().map(Js::Text),
            't' => self.word("true", Js::Bool(true)),
            'f' => self.word("false", Js::Bool(false)),
            'n' => self.word("null", Js::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Js) -> Option<Js> {
        word.chars().try_for_each(|c| self.take(c)).map(|()| value)
    }

    fn number(&mut self) -> Option<Js> {
        let start = self.at;
        while let Some('0'..='9' | '+' | '-' | '.' | 'e' | 'E') = self.peek() {
            self.at += 1;
        }
        let text = String::from_utf16_lossy(&self.units[start..self.at]);
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let bad = !digits.starts_with(|c: char| c.is_ascii_digit())
            || (digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit()))
            || digits.ends_with('.')
            || digits.contains(".e")
            || digits.contains(".E");
        (!bad).then(|| text.parse().ok().map(Js::Number)).flatten()
    }

    fn list(&mut self) -> Option<Js> {
        self.take('[')?;
        let mut items = Vec::new();
        self.space();
        if self.take(']').is_some() {
            return Some(Js::List(items));
        }
        loop {
            items.push(self.value()?);
            self.space();
            if self.take(']').is_some() {
                return Some(Js::List(items));
            }
            self.take(',')?;
        }
    }

    fn object(&mut self) -> Option<Js> {
        self.take('{')?;
        let mut members = BTreeMap::new();
        self.space();
        if self.take('}').is_some() {
            return Some(Js::Object(members));
        }
        loop {
            self.space();
            let key = self.text()?;
            self.space();
            self.take(':')?;
            members.insert(key, self.value()?);
            self.space();
            if self.take('}').is_some() {
                return Some(Js::Object(members));
            }
            self.take(',')?;
        }
    }

    fn text(&mut self) -> Option<Vec<u16>> {
        self.take('"')?;
        let mut out = Vec::new();
        loop {
            let unit = *self.units.get(self.at)?;
            self.at += 1;
            match unit {
                0x22 => return Some(out),
                0x5c => out.push(self.escape()?),
                0..0x20 => return None,
                _ => out.push(unit),
            }
        }
    }

    fn escape(&mut self) -> Option<u16> {
        let kind = self.peek()?;
        self.at += 1;
        Some(match kind {
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'u' => {
                let digits = String::from_utf16(self.units.get(self.at..self.at + 4)?).ok()?;
                self.at += 4;
                digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(&digits, 16).ok())??
            }
            '"' | '\\' | '/' => kind as u16,
            _ => return None,
        })
    }
}
