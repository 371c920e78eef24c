//! Making JSON objects out of spans that stand in the file, without decoding them.

use crate::json::{Json, Key};

/// A member of an object that is being made.
pub(crate) struct Member<'a> {
    name: &'a str,
    value: Option<std::borrow::Cow<'a, str>>,
}

impl<'a> Member<'a> {
    /// A value given as JSON text.
    pub(crate) fn text(name: &'a str, value: &'a str) -> Member<'a> {
        Member { name, value: Some(value.into()) }
    }

    /// A value that stands in the file; without one there is no member.
    pub(crate) fn json(name: &'a str, value: Option<Json<'a>>) -> Member<'a> {
        Member { name, value: value.map(Json::to_text) }
    }

    /// A value that stands in the file, else this JSON text.
    pub(crate) fn json_or(name: &'a str, value: Option<Json<'a>>, other: &'a str) -> Member<'a> {
        Member { name, value: Some(value.map_or(other.into(), Json::to_text)) }
    }
}

/// An object with these members. Names are plain words that need no escape.
pub(crate) fn object(members: &[Member<'_>]) -> String {
    let mut out = String::from("{");
    for member in members {
        if let Some(value) = &member.value {
            push_member(&mut out, member.name, value);
        }
    }
    out.push('}');
    out
}

fn push_member(out: &mut String, name: &str, value: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
    out.push_str(value);
}

/// The same object with `name` set to `value`: at its place if it has one (duplicates all), else at the end. What is no
/// object stays as it is.
pub(crate) fn set(object: &str, name: &str, value: &str) -> String {
    let Ok(json) = Json::parse(object.as_bytes()) else {
        return object.to_owned();
    };
    if !object.starts_with('{') {
        return object.to_owned();
    }
    let mut out = String::with_capacity(object.len() + value.len());
    out.push('{');
    let mut there = false;
    for (key, old) in json.members() {
        there |= key.is(name);
        push_member(&mut out, &raw_name(key), if key.is(name) { value } else { old_text(old) });
    }
    if !there {
        push_member(&mut out, name, value);
    }
    out.push('}');
    out
}

fn raw_name(key: Key<'_>) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(key.raw())
}

/// The text was a `str`, so every span of it between JSON tokens is valid.
fn old_text(value: Json<'_>) -> &str {
    std::str::from_utf8(value.raw()).unwrap_or("null")
}
