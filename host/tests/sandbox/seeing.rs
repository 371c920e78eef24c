//! What a plugin sees of a session.
use pi_session::draft::Draft;
use serde_json::{Value, json};

use super::common::{ALL, branch, drafts, entry, header, load, logged, on_entry, pending, run, seen, session};
use pi_graft::sandbox::Handler;

#[test]
fn the_branch_from_the_leaf_to_the_root_with_what_each_is() {
    let seen = seen(&session(&["u1", "a2", "c3", "u4"]));
    assert_eq!(seen["branch"], json!(["u4 message/user", "c3 custom/note", "a2 message/assistant", "u1 message/user"]));
    assert_eq!(seen["trigger"], "u4 message/user");
    assert_eq!(seen["projection"], 3);
}

#[test]
fn a_receipt_is_hidden_and_what_follows_it_names_its_maker() {
    let seen = seen(&session(&["u1", "Rr", "c2", "u3"]));
    assert_eq!(seen["branch"], json!(["u3 message/user", "c2 custom/note by maker", "u1 message/user"]));
    assert!(logged(&session(&["u1", "Rr", "c2", "u3"]), &[], json!({"report": "log"}))[0].contains("c2 custom"));
}

#[test]
fn a_later_plugin_sees_what_an_earlier_one_proposed_on_the_same_entry() {
    let file = session(&["u1", "a2", "u3"]);
    let script = json!({"entry": [{"custom": {"type": "todo", "data": 1}, "unless": "todo", "must": true}]});
    let first = load("first", &["append:custom"], &script);
    let proposed = drafts(first.run(on_entry(&file)));
    assert_eq!(proposed.len(), 1);

    let with_pending = pending(&file, "first", &proposed);
    let seen = seen(&with_pending);
    assert_eq!(seen["leaf"], "? custom/todo pending by first");
    assert_eq!(seen["trigger"], "u3 message/user");
    assert!(drafts(first.run(on_entry(&with_pending))).is_empty(), "nobody proposes it twice");
}

#[test]
fn what_an_edit_took_out_is_not_seen_but_with_the_grant() {
    let file = session(&["u1", "t2", "r2", "a3"]);
    let edit = Draft::context_edit("r2", Some(r#"{"content":[{"type":"text","text":"redacted"}]}"#)).expect("an edit");
    let edited = pending(&file, "redactor", &[edit]);

    assert!(logged(&file, &[], json!({"read": "r2"}))[0].contains("secret r2"));
    let text = &logged(&edited, &[], json!({"read": "r2"}))[0];
    let read: Value = serde_json::from_str(text).expect("still an entry");
    assert_eq!(read["message"]["content"], json!([{"type":"text","text":"redacted"}]));
    assert_eq!(read["message"]["toolCallId"], "call-2");
    assert!(!text.contains("secret"), "the details are gone too: {text}");

    assert!(logged(&edited, &[], json!({"raw": "r2"}))[0].contains("grant: \"session:raw\" is not granted"));
    assert!(logged(&edited, &["session:raw"], json!({"raw": "r2"}))[0].contains("secret r2"));
    assert!(logged(&file, &[], json!({"raw": "r2"}))[0].contains("secret r2"), "nothing to protect without an edit");
    assert_eq!(seen(&edited)["branch"][2], "r2 message/toolResult replaced");
}

#[test]
fn what_an_edit_took_out_stays_out_behind_a_compaction() {
    let mut text = header() + "\n";
    let compaction = json!({"type":"compaction","summary":"s","firstKeptEntryId":"a3","tokensBefore":1});
    let lines =
        [("u1", entry("u1")), ("e2", entry("e2")), ("a3", entry("a3")), ("k4", compaction), ("u5", entry("u5"))];
    let mut parent = Value::Null;
    for (id, mut line) in lines {
        line["id"] = json!(id);
        line["parentId"] = parent;
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        text += &format!("{line}\n");
        parent = json!(id);
    }
    let file = branch(text);
    assert_eq!(seen(&file)["branch"][4], "u1 message/user hidden");
    let text = &logged(&file, &[], json!({"read": "u1"}))[0];
    assert!(text.contains("edited") && !text.contains("question"), "{text}");
}

#[test]
fn a_long_text_comes_in_pieces_that_end_where_characters_do() {
    let mut long = entry("u1");
    let words = "aä😀".repeat(60_000);
    long["message"]["content"] = json!(words);
    long["id"] = json!("u1");
    let file = branch(format!("{}\n{long}\n", header()));
    let script = json!({"entry": [{"read": "u1"}]});
    let report = load("reader", &[], &script).run(on_entry(&file));
    assert!(report.outcome.is_ok(), "{:?}", report.outcome);
    assert!(report.logs[0].text.contains("aä😀aä😀"));
    assert!(!report.logs[0].text.contains('\u{fffd}'), "no character is cut");
}

#[test]
fn on_settled_is_told_why_and_gets_the_notes() {
    let script =
        json!({"settled": [{"custom": {"type": "x", "data": "$reason $notes"}, "must": true}, {"later": "no"}]});
    let notes = vec!["one".to_owned(), "two".to_owned()];
    let handler = Handler::OnSettled { reason: "settled".into(), notes, instructions: None };
    let report = load("settler", &ALL, &script).run(run(&session(&["u1", "a2"]), handler));
    assert!(report.logs[0].text.contains("only on-entry"), "{:?}", report.logs);
    let [Draft::Custom { data: Some(data), .. }] = &drafts(report)[..] else { panic!("one custom entry") };
    assert_eq!(data.as_str(), "\"settled one,two\"");
}
