//! One line, held against serde_json where that can read it.

use pi_session::finding::Finding;
use pi_session::json::{Json, Kind, quoted};
use pi_session::strict::RawJson;
use pi_session::{Tree, draft::Draft, time};
use serde_json::Value;

const HEADER: &[u8] = br#"{"type":"session","version":3,"id":"s","cwd":"/"}"#;

/// Nothing panics, and both readers agree.
pub fn check(input: &[u8]) {
    let parsed = Json::parse(input);
    // Ignoring a value, serde_json checks the grammar alone: no depth, no surrogates, no range of numbers.
    let ignored = serde_json::from_slice::<serde::de::IgnoredAny>(input);
    assert_eq!(parsed.is_ok(), ignored.is_ok(), "{parsed:?} {ignored:?}");
    if let Ok(json) = parsed {
        value(json);
        if let Ok(other) = serde_json::from_slice::<Value>(input) {
            assert_eq!(json.stringify_len(), written(&other), "{other}");
            same(json, &other);
        }
    }
    if let Ok(text) = std::str::from_utf8(input) {
        given(text);
    }
    entry(input);
}

/// What holds of any value.
fn value(json: Json<'_>) {
    let text = json.to_text();
    assert!(Json::parse(text.as_bytes()).is_ok_and(|again| again.kind() == json.kind()));
    let (whole, some) = (json.as_str(), json.beginning(7));
    assert_eq!(whole.as_ref().map(|text| text.chars().take(7).collect()), some);
    let names = ["type", "id", "message"];
    assert_eq!(json.get_all(names), names.map(|name| json.get(name)));
}

/// The same value, by two readers.
fn same(json: Json<'_>, other: &Value) {
    match other {
        Value::Null => assert!(json.is_null()),
        Value::Bool(b) => assert_eq!(json.as_bool(), Some(*b)),
        Value::Number(n) => assert_eq!(json.as_f64(), n.as_f64()),
        Value::String(text) => {
            assert_eq!(json.as_str().as_deref(), Some(text.as_str()));
            assert_eq!(json.utf16_len(), text.encode_utf16().count() as u64);
            assert_eq!(serde_json::from_str::<String>(&quoted(text)).ok().as_ref(), Some(text));
        }
        Value::Array(items) => {
            assert_eq!(json.items().count(), items.len());
            json.items().zip(items).for_each(|(item, other)| same(item, other));
        }
        Value::Object(members) => {
            assert_eq!(json.kind(), Kind::Object);
            assert!(json.members().all(|(key, _)| members.contains_key(&*key.text())));
            for (name, other) in members {
                same(json.get(name).expect("the other reader found it"), other);
            }
        }
    }
}

/// UTF-16 units that JavaScript would write.
fn written(value: &Value) -> u64 {
    match value {
        Value::Number(n) => n.as_f64().map_or(0, |n| ryu_js::Buffer::new().format(n).len() as u64),
        Value::String(text) => string_len(text),
        Value::Array(items) => between(items.len()) + items.iter().map(written).sum::<u64>(),
        Value::Object(members) => {
            let inner = members.iter().map(|(name, value)| string_len(name) + 1 + written(value));
            between(members.len()) + inner.sum::<u64>()
        }
        plain => plain.to_string().len() as u64,
    }
}

/// Two brackets and the commas.
fn between(parts: usize) -> u64 {
    2 + parts.saturating_sub(1) as u64
}

fn string_len(text: &str) -> u64 {
    quoted(text).encode_utf16().count() as u64
}

/// Texts that a plugin or a user may give.
fn given(text: &str) {
    if let Ok(raw) = RawJson::parse(text) {
        assert_eq!(RawJson::parse(raw.as_str()).as_ref(), Ok(&raw));
        let read = |text| serde_json::from_str::<Value>(text).ok();
        assert_eq!(read(raw.as_str()), read(text));
    }
    if let Ok(draft) = Draft::from_json(text) {
        assert_eq!(Draft::from_json(&draft.to_json()), Ok(draft));
    }
    if let Some(ms) = time::parse_iso(text) {
        assert_eq!(time::parse_iso(&time::iso(ms)), Some(ms), "{text}");
    }
}

/// The line as an entry, and as a first line.
fn entry(input: &[u8]) {
    Tree::new().push(0, input);
    let mut tree = Tree::new();
    tree.push(0, HEADER);
    tree.push(HEADER.len() as u64 + 1, input);
    assert!(tree.entries().len() <= 1 && tree.problems().len() <= Finding::ALL.len());
    tree.push_last(9, input);
}
