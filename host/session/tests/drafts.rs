//! What a draft must be by itself, before any session is looked at (S12.1, S12.3, S12.4, S12.9).

mod common;

use common::scene::refused;
use pi_session::draft::Draft;

#[test]
fn the_four_types_are_read_and_written_alike() {
    for json in [
        r#"{"type":"custom","customType":"x"}"#,
        r#"{"type":"custom","customType":"x","data":null}"#,
        r#"{"type":"custom","customType":"x","data":{"b":[1.50,"\u0041"],"a":true}}"#,
        r#"{"type":"custom_message","customType":"x","content":"text","display":false}"#,
        r#"{"type":"custom_message","customType":"x","content":[{"type":"text","text":"t"}],"display":true,"details":7}"#,
        r#"{"type":"compaction","summary":"s","firstKeptEntryId":"u1"}"#,
        r#"{"type":"compaction","summary":"s","firstKeptEntryId":null,"details":{"readFiles":[]}}"#,
        r#"{"type":"context_edit","targetId":"u1","replacement":null}"#,
        r#"{"type":"context_edit","targetId":"u1","replacement":{"content":"other"}}"#,
    ] {
        let draft = Draft::from_json(json).expect("a good draft");
        assert_eq!(draft.to_json(), json);
    }
}

/// S12.9: each of these in a file breaks the session for good.
#[test]
fn what_breaks_a_session_for_good_is_refused() {
    let message = |content: &str| {
        Draft::from_json(&format!(r#"{{"type":"custom_message","customType":"x","display":true,"content":{content}}}"#))
    };
    refused(message("7"), "S12.3", "`content` is a number");
    refused(message("null"), "S12.3", "`content` is null");
    refused(message("[null]"), "S12.3", "block 0 is null");
    refused(message(r#"[{"type":"text"}]"#), "S12.3", "no `text`");
    refused(message(r#"[{"type":"text","text":null}]"#), "S12.3", "`text` that is null");

    refused(Draft::from_json(r#"{"type":"custom","data":1}"#), "S12.4", "no `customType`");

    let compaction = |fields: &str| Draft::from_json(&format!(r#"{{"type":"compaction"{fields}}}"#));
    refused(compaction(r#","firstKeptEntryId":null"#), "S12.5", "no `summary`");
    refused(compaction(r#","firstKeptEntryId":null,"summary":" ""#), "S12.5", "`summary` is empty");
    refused(compaction(r#","firstKeptEntryId":null,"summary":7"#), "S12.3", "`summary` that is a number");
    let tokens = r#","firstKeptEntryId":null,"summary":"s","tokensBefore":"many""#;
    refused(compaction(tokens), "S12.5", "leave it out");

    refused(Draft::from_json(r#"{"type":"label","targetId":"u1"}"#), "S12.1", "one of custom");
    refused(Draft::from_json("[]"), "S12.1", "`type`");

    let edit = |fields: &str| Draft::from_json(&format!(r#"{{"type":"context_edit","targetId":"u1"{fields}}}"#));
    refused(edit(""), "S12.3", "no `replacement`");
    refused(edit(r#","replacement":{}"#), "S12.3", "no `content`");
    refused(edit(r#","replacement":{"content":7}"#), "S12.3", "`replacement.content` is a number");
    refused(edit(r#","replacement":{"content":null}"#), "S12.3", "`replacement.content` is null");
    refused(edit(r#","replacement":"text""#), "S12.3", "`replacement` is a string");
}

#[test]
fn fields_are_all_there_and_of_their_type() {
    let wrong = |json: &str, word: &str| refused(Draft::from_json(json), "S12.3", word);
    wrong(r#"{"type":"custom_message","customType":"x","content":"t"}"#, "no `display`");
    wrong(r#"{"type":"custom_message","customType":"x","content":"t","display":1}"#, "`display` that is a number");
    wrong(r#"{"type":"custom_message","customType":"x","display":true}"#, "no `content`");
    wrong(r#"{"type":"compaction","summary":"s"}"#, "null to keep none");
    wrong(r#"{"type":"compaction","summary":"s","firstKeptEntryId":1}"#, "`firstKeptEntryId` that is a number");
    wrong(r#"{"type":"compaction","summary":"s","firstKeptEntryId":null,"usage":{"input":1}}"#, "`usage`");
    wrong(r#"{"type":"context_edit","replacement":null}"#, "no `targetId`");
    wrong(r#"{"type":"custom","customType":1}"#, "`customType` that is a number");
}

#[test]
fn a_field_that_nobody_reads_is_a_mistake_worth_hearing_of() {
    let misspelt = r#"{"type":"custom_message","customType":"x","content":"t","display":true,"detials":{}}"#;
    refused(Draft::from_json(misspelt), "S12.3", "\"detials\"");
    let more = r#"{"type":"context_edit","targetId":"u1","replacement":{"content":"t","role":"user"}}"#;
    refused(Draft::from_json(more), "S12.3", "\"role\"");
    let counted = r#"{"type":"compaction","summary":"s","firstKeptEntryId":null,"tokensBefore":5}"#;
    let counted = Draft::from_json(counted).expect("the host counts, whatever is said");
    assert!(!counted.to_json().contains("tokensBefore"));
}

#[test]
fn custom_types_are_named_and_not_the_hosts_own() {
    for (name, word) in [("", "empty"), ("pi.x", "\"pi.\""), ("pi-graft.run", "\"pi-graft.\"")] {
        refused(Draft::custom(name, None), "S12.4", word);
        refused(Draft::custom_message(name, "\"t\"", true, None), "S12.4", word);
    }
    assert!(Draft::custom("pi-graft", None).is_ok(), "only the prefixes are reserved");
    assert!(Draft::custom("pirate", None).is_ok());
}

#[test]
fn json_from_a_plugin_is_strict() {
    let wrong = |data: &str, word: &str| refused(Draft::custom("x", Some(data)), "S12.3", word);
    wrong("", "not JSON");
    wrong("{\"a\":1", "not JSON");
    wrong("1 2", "not JSON");
    wrong("\"\u{1}\"", "not JSON");
    wrong(r#""\udead""#, "surrogate");
    wrong("[1e400]", "too large");
    wrong(r#"{"a":1,"a":2}"#, "twice");
    wrong(&("[".repeat(300) + &"]".repeat(300)), "256 levels");
    let pretty = Draft::custom("x", Some("{\n  \"a\": [1,\r\n 2]\n}")).expect("white space is no harm");
    assert_eq!(pretty.to_json(), r#"{"type":"custom","customType":"x","data":{"a":[1,2]}}"#);
}

#[test]
fn a_list_tells_of_every_bad_draft_in_it() {
    let list = r#"[{"type":"custom","customType":"x"},{"type":"custom"},{"type":"nap"}]"#;
    let refusals = Draft::list_from_json(list).expect_err("two of them are bad");
    let told: Vec<_> = refusals.iter().map(|refusal| (refusal.index, refusal.rule.as_str())).collect();
    assert_eq!(told, [(Some(1), "S12.4"), (Some(2), "S12.1")]);
    assert!(Draft::list_from_json("{}").expect_err("no list")[0].message.contains("an object"));
    assert_eq!(Draft::list_from_json("[]"), Ok(Vec::new()));
}
