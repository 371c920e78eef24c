//! JSON that is kept as text, and the mending of JSON text that Rust's strings cannot hold.
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// A JSON value as text. Numbers of any size and objects of any depth pass through it unharmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    /// The JSON of a value.
    ///
    /// # Errors
    /// If the value cannot be JSON, such as a map whose keys are no strings.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::to_string(value).map(Self)
    }

    /// The JSON of a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string())
    }

    /// JSON text as it is. That it is JSON is checked by the host.
    #[must_use]
    pub fn from_text(json: String) -> Self {
        Self(json)
    }

    /// Reads it into a type.
    ///
    /// # Errors
    /// If the type does not fit.
    pub fn to<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Json {
    fn default() -> Self {
        Self("null".into())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(raw.get().into()))
    }
}

/// Reads JSON text, in which `\ud800` without its second half may stand: JavaScript writes such strings, and Rust has
/// none. They become U+FFFD.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| match mend_surrogates(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The text with every lone surrogate escape turned into U+FFFD; none if there is none.
fn mend_surrogates(text: &str) -> Option<String> {
    let mut mended: Option<Vec<u8>> = None;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match (surrogate(bytes, at), surrogate(bytes, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at += 12,
            (Some(_), _) => {
                mended.get_or_insert_with(|| bytes.to_vec())[at + 2..at + 6].copy_from_slice(b"fffd");
                at += 6;
            }
            (None, _) => at += 2,
        }
    }
    mended.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The surrogate whose escape (`\ud83d`) stands at this place.
fn surrogate(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let unit = u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        let read: String = read(r#""a \ud83d\ude00 b \ud83d c \\ud83d \ude00""#).expect("mended");
        assert_eq!(read, "a 😀 b \u{fffd} c \\ud83d \u{fffd}");
    }

    #[test]
    fn numbers_beyond_a_double_pass_through() {
        let json: Json = read("{\"n\":1e400}").expect("kept as text");
        assert_eq!(json.as_str(), "{\"n\":1e400}");
    }
}
