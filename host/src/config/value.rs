//! The kinds of value: each reads a TOML value, or says what was expected and what stands there.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toml::de::DeValue;

use super::read::{Sheet, kind};
use super::units::{duration_text, parse_duration, parse_size, size_text};

type Read<T> = Result<(T, Value), String>;

pub(super) fn duration(value: &DeValue<'_>) -> Read<Duration> {
    let DeValue::String(text) = value else {
        let hint = number_text(value).map_or_else(String::new, |n| format!("; if you mean seconds, write \"{n}s\""));
        return Err(format!("expected a duration such as \"10s\", found {}{hint}", kind(value)));
    };
    let duration = parse_duration(text)?;
    Ok((duration, duration_text(duration).into()))
}

/// A duration that is more than nothing.
pub(super) fn some_duration(value: &DeValue<'_>) -> Read<Duration> {
    let read = duration(value)?;
    if read.0.is_zero() { Err("must be more than nothing".to_owned()) } else { Ok(read) }
}

/// A size that is more than nothing.
pub(super) fn size(value: &DeValue<'_>) -> Read<u64> {
    let DeValue::String(text) = value else {
        let hint = number_text(value).map_or_else(String::new, |n| format!("; if you mean bytes, write \"{n}B\""));
        return Err(format!("expected a size such as \"64MiB\", found {}{hint}", kind(value)));
    };
    match parse_size(text)? {
        0 => Err("must be more than nothing".to_owned()),
        bytes => Ok((bytes, size_text(bytes).into())),
    }
}

fn number_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(n) if n.radix() == 10 => Some(n.as_str().to_owned()),
        _ => None,
    }
}

/// A whole number from `least` on.
pub(super) fn count(value: &DeValue<'_>, least: u64) -> Read<u64> {
    let DeValue::Integer(number) = value else {
        return Err(format!("expected a whole number, found {}", kind(value)));
    };
    match u64::from_str_radix(number.as_str(), number.radix()) {
        Ok(count) if count >= least => Ok((count, count.into())),
        _ => Err(format!("{number} is out of range: give at least {least}")),
    }
}

/// Dollars; none below nothing.
pub(super) fn price(value: &DeValue<'_>) -> Read<f64> {
    let text = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(format!("expected a number of dollars, found {}", kind(other))),
    };
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.map(|price| (price, price.into())).ok_or_else(|| format!("{text} is out of range: give at least 0"))
}

/// One of a few words.
pub(super) fn choice(value: &DeValue<'_>, words: &[&'static str]) -> Read<&'static str> {
    let of = || words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or ");
    let DeValue::String(text) = value else { return Err(format!("expected {}, found {}", of(), kind(value))) };
    match words.iter().find(|word| **word == text.as_ref()) {
        Some(word) => Ok((word, (*word).into())),
        None => Err(format!("{:?} is not known here; expected {}", text.as_ref(), of())),
    }
}

pub(super) fn flag(value: &DeValue<'_>) -> Read<bool> {
    match value {
        DeValue::Boolean(flag) => Ok((*flag, (*flag).into())),
        _ => Err(format!("expected true or false, found {}", kind(value))),
    }
}

/// Text that is not empty.
pub(super) fn text(value: &DeValue<'_>) -> Read<String> {
    match value {
        DeValue::String(text) if text.is_empty() => Err("is empty".to_owned()),
        DeValue::String(text) => Ok((text.clone().into_owned(), text.as_ref().into())),
        _ => Err(format!("expected text in quotes, found {}", kind(value))),
    }
}

pub(super) fn texts(value: &DeValue<'_>) -> Read<Vec<String>> {
    let DeValue::Array(items) = value else {
        return Err(format!("expected a list of texts such as [\"a\", \"b\"], found {}", kind(value)));
    };
    let texts: Result<Vec<String>, String> = items.iter().map(|item| text(item.get_ref()).map(|t| t.0)).collect();
    texts.map(|texts| (texts.clone(), json!(texts)))
}

/// A path; shown as it is used, `~` and all replaced.
pub(super) fn path(sheet: &Sheet<'_>, value: &DeValue<'_>) -> Read<PathBuf> {
    let path = sheet.path_at(&text(value)?.0)?;
    let shown = path.display().to_string().into();
    Ok((path, shown))
}

pub(super) fn paths(sheet: &Sheet<'_>, value: &DeValue<'_>) -> Read<Vec<PathBuf>> {
    let paths: Result<Vec<PathBuf>, String> = texts(value)?.0.iter().map(|text| sheet.path_at(text)).collect();
    let paths = paths?;
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Ok((paths, json!(shown)))
}

/// Any value, as JSON. JSON has no dates, no infinity and no not-a-number.
pub(super) fn any_json(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Boolean(flag) => Ok((*flag).into()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::from)
            .map_err(|_| format!("{number} is out of range")),
        DeValue::Float(number) => {
            let finite = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            finite.map(Value::Number).ok_or_else(|| format!("{number} is no number in JSON, which plugins are given"))
        }
        DeValue::Datetime(date) => Ok(date.to_string().into()),
        DeValue::Array(items) => items.iter().map(|item| any_json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let member = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
                Ok((key.get_ref().to_string(), any_json(value.get_ref())?))
            };
            table.iter().map(member).collect::<Result<serde_json::Map<_, _>, String>>().map(Value::Object)
        }
    }
}
