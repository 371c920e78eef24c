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

/// The same object without `name`. What is no object stays as it is.
pub(crate) fn without(object: &str, name: &str) -> String {
    match Json::parse(object.as_bytes()) {
        Ok(json) if object.starts_with('{') => {
            let left = edit(object.as_bytes(), json, &[Change::Remove(name)]);
            String::from_utf8_lossy(&left).into_owned()
        }
        _ => object.to_owned(),
    }
}

/// What is to become of a member of an object.
pub(crate) enum Change<'c> {
    /// It gets this value: where it stands (of duplicates the last, which counts), else at the end.
    Set(&'c str, Vec<u8>),
    /// It goes, all duplicates of it.
    Remove(&'c str),
}

/// The line of an object with these changes; every other byte of it stays, white space too. `object` is what stands in
/// `line`.
pub(crate) fn edit(line: &[u8], object: Json<'_>, changes: &[Change<'_>]) -> Vec<u8> {
    let members: Vec<_> = object.members().collect();
    let mut out = Vec::with_capacity(line.len() + 64);
    let mut copied = start_in(line, object.raw()) + 1;
    out.extend_from_slice(&line[..copied]);
    let mut any = false;
    for (at, (key, value)) in members.iter().enumerate() {
        let (name, start) = (start_in(line, key.raw()) - 1, start_in(line, value.raw()));
        match change_of(*key, &members[at + 1..], changes) {
            Some(Change::Remove(_)) => {
                copied = start + value.raw().len();
                continue;
            }
            // The comma before the first that stays goes with what stood before it.
            _ if !any => out.extend_from_slice(&line[if at == 0 { copied } else { name }..start]),
            _ => out.extend_from_slice(&line[copied..start]),
        }
        any = true;
        copied = start + value.raw().len();
        match change_of(*key, &members[at + 1..], changes) {
            Some(Change::Set(_, new)) => out.extend_from_slice(new),
            _ => out.extend_from_slice(value.raw()),
        }
    }
    add_new(&mut out, &members, changes, any);
    out.extend_from_slice(&line[copied..]);
    out
}

/// The change that meets a member which `behind` follows.
fn change_of<'c, 'n>(
    key: Key<'_>,
    behind: &[(Key<'_>, Json<'_>)],
    changes: &'c [Change<'n>],
) -> Option<&'c Change<'n>> {
    changes.iter().find(|change| match change {
        Change::Set(name, _) => key.is(name) && !behind.iter().any(|(key, _)| key.is(name)),
        Change::Remove(name) => key.is(name),
    })
}

fn add_new(out: &mut Vec<u8>, members: &[(Key<'_>, Json<'_>)], changes: &[Change<'_>], mut any: bool) {
    for change in changes {
        let Change::Set(name, value) = change else { continue };
        if members.iter().any(|(key, _)| key.is(name)) {
            continue;
        }
        out.extend_from_slice(if any { b",\"" } else { b"\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value);
        any = true;
    }
}

/// Where a part of a text begins in it.
pub(crate) fn start_in(text: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

fn raw_name(key: Key<'_>) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(key.raw())
}

/// The text was a `str`, so every span of it between JSON tokens is valid.
fn old_text(value: Json<'_>) -> &str {
    std::str::from_utf8(value.raw()).unwrap_or("null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(line: &str, changes: &[Change<'_>]) -> String {
        let object = Json::parse(line.as_bytes()).expect("JSON");
        String::from_utf8(edit(line.as_bytes(), object, changes)).expect("text")
    }

    fn set<'c>(name: &'c str, value: &str) -> Change<'c> {
        Change::Set(name, value.as_bytes().to_vec())
    }

    #[test]
    fn what_is_not_changed_stays_byte_for_byte() {
        let line = " { \"a\" : 1e400 ,\t\"b\":[ 2 ] } \r";
        assert_eq!(edited(line, &[]), line);
        assert_eq!(edited(line, &[set("b", "3")]), " { \"a\" : 1e400 ,\t\"b\":3 } \r");
        assert_eq!(edited(line, &[set("c", "3")]), " { \"a\" : 1e400 ,\t\"b\":[ 2 ],\"c\":3 } \r");
        assert_eq!(edited("{}", &[set("c", "3"), set("d", "4")]), r#"{"c":3,"d":4}"#);
    }

    #[test]
    fn a_member_goes_with_its_comma() {
        let line = r#"{"a":1,"b":2,"a":3}"#;
        assert_eq!(edited(line, &[Change::Remove("a")]), r#"{"b":2}"#);
        assert_eq!(edited(line, &[Change::Remove("b")]), r#"{"a":1,"a":3}"#);
        assert_eq!(edited(line, &[Change::Remove("a"), Change::Remove("b"), set("c", "4")]), r#"{"c":4}"#);
        assert_eq!(edited(line, &[set("a", "4")]), r#"{"a":1,"b":2,"a":4}"#);
        assert_eq!(edited(r#"{"\u0061":1}"#, &[set("a", "4")]), r#"{"\u0061":4}"#);
    }
}
