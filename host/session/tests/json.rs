//! The scanner against a second, plain reader of JSON: they take the same texts, and see the same in them.

mod common;

use common::generate::value::{Rng, bytes_of};
use common::js::Js;
use pi_session::json::{Json, Kind};

/// What the scanner sees, as the other reader's value; text that Rust cannot hold reads as U+FFFD.
fn seen(json: Json<'_>) -> Js {
    match json.kind() {
        Kind::Null => Js::Null,
        Kind::Bool => Js::Bool(json.as_bool().expect("a boolean")),
        Kind::Number => Js::Number(json.as_f64().expect("a number")),
        Kind::String => Js::text(&json.as_str().expect("a string")),
        Kind::Array => Js::List(json.items().map(seen).collect()),
        Kind::Object => Js::Object(json.members().map(|(key, value)| (units(&key.text()), seen(value))).collect()),
    }
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn lossy(value: &Js) -> Js {
    match value {
        Js::Text(text) => Js::text(&String::from_utf16_lossy(text)),
        Js::List(items) => Js::List(items.iter().map(lossy).collect()),
        Js::Object(members) => Js::Object(
            members.iter().map(|(key, value)| (units(&String::from_utf16_lossy(key)), lossy(value))).collect(),
        ),
        other => other.clone(),
    }
}

#[test]
fn values_at_random_are_seen_alike() {
    let mut rng = Rng::new(11);
    for round in 0..20_000 {
        rng.odd = (round % 3) * 30;
        let text = rng.value(4);
        let text = bytes_of(&text, &mut rng);
        let json = Json::parse(&text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
        let other = Js::parse(&text);
        assert_eq!(seen(json).canonical(), lossy(&other).canonical());
        if let Js::Text(units) = other {
            assert_eq!(json.utf16_len(), units.len() as u64);
        }
    }
}

#[test]
fn texts_that_are_spoiled_are_refused_alike() {
    let mut rng = Rng::new(12);
    let bits: &[&[u8]] = &[
        b"\"", b"\\", b"\\u12", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b".", b"e", b"+", b"\n", b"\x01",
        b"\xff", b"t", b" ",
    ];
    let mut taken = 0;
    for _ in 0..50_000 {
        let mut text = rng.value(3).into_bytes();
        let at = rng.below(text.len() as u32 + 1) as usize;
        let end = (at + rng.below(3) as usize).min(text.len());
        text.splice(at..end, rng.pick(bits).iter().copied());
        let ours = Json::parse(&text);
        assert_eq!(ours.is_ok(), Js::try_parse(&text).is_some(), "{}", String::from_utf8_lossy(&text));
        taken += u32::from(ours.is_ok());
    }
    assert!(taken > 5000, "some must stay JSON");
}

#[test]
fn lengths_are_those_that_javascript_would_write() {
    for (text, length) in [
        (r#"{ "a" : 1.0 , "b" : [ 1e3 ] }"#, r#"{"a":1,"b":[1000]}"#.len()),
        (r#"{"a":1,"\u0061":"22"}"#, r#"{"a":"22"}"#.len()),
        (r#"[{"a":[1,2,3],"a":null},{"a":{},"b":1}]"#, r#"[{"a":null},{"a":{},"b":1}]"#.len()),
        (
            r#"[1e400,-0,123456789012345680000,1e21,0.000001,1e-7]"#,
            "[null,0,123456789012345680000,1e+21,0.000001,1e-7]".len(),
        ),
        (r#""\u0041\/\n\u000b\ud83d\ude00\ud83d""#, r#""A/\n\u000bxx\ud83d""#.len()),
        ("\"é日😀\u{7f}\"", 7),
        ("{}", 2),
        ("[ ]", 2),
    ] {
        assert_eq!(Json::parse(text.as_bytes()).expect("it is JSON").stringify_len(), length as u64, "{text}");
    }
}

#[test]
fn of_several_members_with_one_name_the_last_counts() {
    let json = Json::parse(br#"{"a":1,"b":2,"\u0061":3}"#).expect("it is JSON");
    assert_eq!(json.get("a").and_then(Json::as_f64), Some(3.0));
    assert_eq!(json.get("c"), None);
}

#[test]
fn the_beginning_of_a_string_is_what_the_whole_begins_with() {
    let texts: [&[u8]; 7] = [
        br#""""#,
        br#""plain""#,
        br#""a\n\"b\u00e9\ud83d\ude00\ud800c""#,
        "\"é日本😀😀😀x\"".as_bytes(),
        b"\"a\xffb\xe6\x97 c\xf0\x9f\"",
        b"\"\xf0\x9f\\n\xf0\x9f\x98\x80\"",
        br#""\\\\""#,
    ];
    for text in texts {
        let json = Json::parse(text).expect("JSON");
        let whole = json.as_str().expect("a string");
        for most in 0..=whole.chars().count() + 1 {
            let begins: String = whole.chars().take(most).collect();
            assert_eq!(json.beginning(most), Some(begins), "{whole:?} {most}");
        }
    }
    assert_eq!(Json::parse(b"1").expect("JSON").beginning(9), None);
}

#[test]
fn several_members_are_found_in_one_pass_as_one_by_one() {
    let json = Json::parse(br#"{"a":1,"b":{"a":2},"a":3,"\u0063":4}"#).expect("JSON");
    let names = ["a", "b", "c", "d"];
    assert_eq!(json.get_all(names), names.map(|name| json.get(name)));
    assert_eq!(Json::parse(b"[1]").expect("JSON").get_all(["a"]), [None]);
}
