//! Reading `[plugin.config]` key by key: an error names the key, what it may be, and what was found instead.
use serde::de::DeserializeOwned;

use crate::Json;

/// Bytes of what was found that an error shows.
const SHOWN: usize = 60;

/// The value of a key; `wanted` is what the error says that it must be, such as "true or false".
///
/// # Errors
/// If the type does not fit.
pub fn typed<T: DeserializeOwned>(key: &str, value: &Json, wanted: &str) -> Result<T, String> {
    value.to().map_err(|_| wrong(key, value, wanted))
}

/// What is said of a value that is not what it must be.
#[must_use]
pub fn wrong(key: &str, value: &Json, wanted: &str) -> String {
    let text = value.as_str();
    format!("`{key}` must be {wanted}, not {}", &text[..text.floor_char_boundary(SHOWN)])
}

/// A time such as "10m", in milliseconds; none if it is something else. The units are ms, s, m, h and d.
#[must_use]
pub fn millis(value: &Json) -> Option<u64> {
    with_unit(&value.to::<String>().ok()?, |unit| match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    })
}

/// A number of bytes, or a size such as "12KiB"; none if it is something else. The units are B, kB, KiB and MiB.
#[must_use]
pub fn bytes(value: &Json) -> Option<u64> {
    let sized = |text: String| {
        with_unit(&text, |unit| match unit {
            "" | "B" => Some(1),
            "kB" | "KB" => Some(1_000),
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            _ => None,
        })
    };
    value.to().ok().or_else(|| value.to().ok().and_then(sized))
}

/// Digits and a unit.
fn with_unit(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    number.parse::<u64>().ok()?.checked_mul(factor(unit.trim())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::from_text(text.into())
    }

    #[test]
    fn times_and_sizes_have_units() {
        let times = [("\"5m\"", Some(300_000)), ("\" 2 s \"", Some(2_000)), ("\"5\"", None), ("5", None)];
        times.into_iter().for_each(|(text, wanted)| assert_eq!(millis(&json(text)), wanted, "{text}"));
        let sizes = [("\"12KiB\"", Some(12_288)), ("7", Some(7)), ("\"7\"", Some(7)), ("\"7 GB\"", None), ("-1", None)];
        sizes.into_iter().for_each(|(text, wanted)| assert_eq!(bytes(&json(text)), wanted, "{text}"));
        assert_eq!(millis(&json("\"99999999999999999999d\"")), None);
        assert_eq!(millis(&json("\"9999999999999999d\"")), None, "more than there is room for");
    }

    #[test]
    fn an_error_says_what_was_found_and_is_short() {
        let long = format!("\"{}\"", "ä".repeat(100));
        let error = typed::<bool>("on", &json(&long), "true or false").expect_err("a text");
        assert!(error.starts_with("`on` must be true or false, not \"ää") && error.len() < 100, "{error}");
    }
}
