//! JSON that comes from a plugin or a user, held to more than the grammar before it may reach a file.
//!
//! What is *read* from sessions is taken as it comes (S2.5); what we *write* must mean the same to every
//! reader. So here text is valid Unicode, numbers fit a double, keys are unique and the nesting is bounded.

use std::collections::{BTreeMap, HashSet};

use crate::json::{Json, Kind, quoted};

/// How deep arrays and objects may be nested in JSON that is given to us.
pub const MAX_DEPTH: u32 = 256;

/// Why a text is not JSON that may be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JsonFault {
    /// It does not parse.
    #[error("this is not JSON ({0}): give one complete JSON value")]
    NotJson(String),
    /// Arrays and objects are nested too deep.
    #[error("it is nested deeper than {MAX_DEPTH} levels: flatten it, or store it as text")]
    TooDeep,
    /// Half of a surrogate pair stands alone.
    #[error("it holds a lone surrogate escape (such as \\ud800), which is not Unicode: replace it by \\ufffd")]
    LoneSurrogate,
    /// A number is too large for a double: Pi would read it as infinity and write it as null.
    #[error("the number {0} is too large for Pi, which reads numbers as doubles: give it as text")]
    NumberTooLarge(String),
    /// Two members of one object have the same key.
    #[error("the key {0:?} stands twice in one object: keep one of them")]
    DuplicateKey(String),
}

/// A JSON value as text: checked, on one line, without white space between its parts.
///
/// Strings, numbers and the order of keys stay as they were given.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Checks `text` and takes it over.
    pub fn parse(text: &str) -> Result<RawJson, JsonFault> {
        let json = Json::parse(text.as_bytes()).map_err(|e| JsonFault::NotJson(e.to_string()))?;
        let compact = compact(text)?;
        unique_keys(json)?;
        Ok(RawJson(compact.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value, to look into.
    pub fn json(&self) -> Json<'_> {
        Json::parse(self.0.as_bytes()).expect("checked when it was made, and never changed since")
    }

    /// A JSON string that says `text`.
    pub fn string(text: &str) -> RawJson {
        RawJson(quoted(text).into())
    }

    /// Text that is known to be checked and compact, since it was put together from such.
    pub(crate) fn assembled(text: String) -> RawJson {
        debug_assert_eq!(RawJson::parse(&text).map(|raw| raw.0), Ok(text.as_str().into()));
        RawJson(text.into())
    }
}

/// The text of a JSON value without its white space; fails on what is JSON but not to be written.
fn compact(text: &str) -> Result<String, JsonFault> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut depth) = (text, 0);
    while let Some(first) = rest.bytes().next() {
        let len = match first {
            b'"' => checked_string(rest)?,
            b'-' | b'0'..=b'9' => checked_number(rest)?,
            _ => 1,
        };
        depth = depth_after(first, depth)?;
        if !first.is_ascii_whitespace() {
            out.push_str(&rest[..len]);
        }
        rest = &rest[len..];
    }
    Ok(out)
}

/// The depth after a byte outside of strings.
fn depth_after(byte: u8, depth: u32) -> Result<u32, JsonFault> {
    match byte {
        b'[' | b'{' if depth == MAX_DEPTH => Err(JsonFault::TooDeep),
        b'[' | b'{' => Ok(depth + 1),
        b']' | b'}' => Ok(depth - 1),
        _ => Ok(depth),
    }
}

/// Length of the string token that `text` begins with; its escapes must pair up.
fn checked_string(text: &str) -> Result<usize, JsonFault> {
    let bytes = text.as_bytes();
    let (mut at, mut high) = (1, false);
    loop {
        let unit = escaped_unit(&bytes[at..]);
        let low = matches!(unit, Some(0xdc00..=0xdfff));
        if high != low {
            return Err(JsonFault::LoneSurrogate);
        }
        high = matches!(unit, Some(0xd800..=0xdbff));
        at += match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\\' if unit.is_some() => 6,
            b'\\' => 2,
            _ => 1,
        };
    }
}

/// The UTF-16 unit of a `\uXXXX` escape at the start of `bytes`.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Length of the number token that `text` begins with; it must be finite as a double.
fn checked_number(text: &str) -> Result<usize, JsonFault> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
    let token = &text[..end.unwrap_or(text.len())];
    match token.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(token.len()),
        _ => Err(JsonFault::NumberTooLarge(token.chars().take(40).collect())),
    }
}

/// Fails if an object anywhere in `json` has a key twice. The depth is bounded by then.
fn unique_keys(json: Json<'_>) -> Result<(), JsonFault> {
    match json.kind() {
        Kind::Array => json.items().try_for_each(unique_keys),
        Kind::Object => unique_keys_of(json),
        _ => Ok(()),
    }
}

/// The same for one object and what is in it.
fn unique_keys_of(object: Json<'_>) -> Result<(), JsonFault> {
    let mut seen = HashSet::new();
    for (key, value) in object.members() {
        if let Some(twice) = seen.replace(key.text()) {
            return Err(JsonFault::DuplicateKey(twice.into_owned()));
        }
        unique_keys(value)?;
    }
    Ok(())
}

/// One spelling for all JSON texts that JavaScript holds to be the same value, keys in one order.
///
/// What went through Pi was parsed and written again; this is how it is recognised (product 4.5).
/// `None` for what is nested deeper than anything of ours.
pub fn canonical(json: Json<'_>) -> Option<String> {
    let mut out = String::new();
    spell(json, 0, &mut out)?;
    Some(out)
}

/// Appends the canonical spelling of `json`, which stands at `depth`.
fn spell(json: Json<'_>, depth: u32, out: &mut String) -> Option<()> {
    match json.kind() {
        Kind::Null => out.push_str("null"),
        Kind::Bool => out.push_str(if json.as_bool()? { "true" } else { "false" }),
        Kind::Number => out.push_str(ryu_js::Buffer::new().format(json.as_f64()?)),
        Kind::String => out.push_str(&quoted(&json.as_str()?)),
        _ if depth > MAX_DEPTH => return None,
        Kind::Array => spell_array(json, depth, out)?,
        Kind::Object => spell_object(json, depth, out)?,
    }
    Some(())
}

/// The items in their order.
fn spell_array(json: Json<'_>, depth: u32, out: &mut String) -> Option<()> {
    out.push('[');
    for item in json.items() {
        spell(item, depth + 1, out)?;
        out.push(',');
    }
    out.push(']');
    Some(())
}

/// The members by key; of two with one key the last counts (S2.5).
fn spell_object(json: Json<'_>, depth: u32, out: &mut String) -> Option<()> {
    let members: BTreeMap<_, _> = json.members().map(|(key, value)| (key.text(), value)).collect();
    out.push('{');
    for (key, value) in members {
        out.push_str(&quoted(&key));
        out.push(':');
        spell(value, depth + 1, out)?;
        out.push(',');
    }
    out.push('}');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> JsonFault {
        RawJson::parse(text).expect_err("this must be refused")
    }

    #[test]
    fn white_space_between_the_parts_goes_and_all_else_stays() {
        let raw = RawJson::parse(" { \"b\" : [ 1.50 , \"a\\u0041  x\" ] ,\n \"a\":null }\n").unwrap();
        assert_eq!(raw.as_str(), r#"{"b":[1.50,"a\u0041  x"],"a":null}"#);
    }

    #[test]
    fn what_is_json_but_means_different_things_to_different_readers_is_refused() {
        assert_eq!(fault(r#""\ud800""#), JsonFault::LoneSurrogate);
        assert_eq!(fault(r#""\udc00\ud800""#), JsonFault::LoneSurrogate);
        assert_eq!(fault(r#"["\ud83dx"]"#), JsonFault::LoneSurrogate);
        assert_eq!(fault("[1e400]"), JsonFault::NumberTooLarge("1e400".into()));
        assert_eq!(fault(r#"[{"a":1,"\u0061":2}]"#), JsonFault::DuplicateKey("a".into()));
        assert!(matches!(fault("{'a':1}"), JsonFault::NotJson(_)));
        assert!(RawJson::parse(r#""\ud83d\ude00 \\ud800""#).is_ok());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(RawJson::parse(&nested(256)).is_ok());
        assert_eq!(fault(&nested(257)), JsonFault::TooDeep);
        assert_eq!(fault(&nested(100_000)), JsonFault::TooDeep);
    }

    #[test]
    fn one_value_has_one_canonical_spelling() {
        let same = |a: &str, b: &str| {
            canonical(Json::parse(a.as_bytes()).unwrap()) == canonical(Json::parse(b.as_bytes()).unwrap())
        };
        assert!(same(r#"{"a":1.0,"b":"\u0041"}"#, r#" {"b":"A","a":1}"#));
        assert!(same("[12345678901234567890]", "[12345678901234567000]"));
        assert!(!same("[1,2]", "[2,1]"));
        assert!(!same("[]", "{}"));
        assert!(!same("[[1],2]", "[[1,2]]"));
    }
}
