//! `run --once`: what is new, and an end.

use crate::stage::{Stage, scripted};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;

#[test]
fn what_has_to_wait_is_said_and_kept() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    let text = stage.once(&[]);
    assert!(text.contains("1 batches proposed, 0 grafted") && text.contains("waiting:"), "{text}");
    let output = stage.run(&["run", "--once", "--fail-pending", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(json["batches"]["grafted"], 0);
    assert_eq!(json["waiting"][0]["path"], path.to_str().expect("a path"));
    pi.result("c1", "ok");
    pi.assistant("done");
    let text = stage.once(&["--closed"]);
    assert!(text.contains("1 grafted"), "{text}");
    assert_eq!(Session::read(&path).customs("note").len(), 1);
}

#[test]
fn a_named_file_is_new_from_its_first_line() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let path = stage.path("elsewhere.jsonl");
    let old = include_str!("../cases/real/01_plain_chat.jsonl").replace("2026-", "2025-");
    std::fs::write(&path, old).expect("an old session");
    let name = path.to_str().expect("a path");
    let text = stage.once(&["--closed", name]);
    let notes = Session::read(&path).customs("note").len();
    assert!(notes > 0, "{text}");
    stage.once(&["--closed", name]);
    assert_eq!(Session::read(&path).customs("note").len(), notes);
}

#[test]
fn a_settled_run_is_made_and_its_graft_lands() {
    let script = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"later":"please"}],
        "settled":[{"custom":{"type":"settled","data":{"reason":"$reason","notes":"$notes"}}}]}"#;
    let stage = Stage::new(200, &scripted("later", &["append:custom"], script));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    let leaf = pi.assistant("hi");
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    let graft = file.customs("settled");
    assert_eq!(graft.len(), 1);
    assert_eq!(crate::talk::member(&graft[0], &["data", "notes"]), "please");
    let receipt = &file.customs("pi-graft.run")[0];
    assert_eq!(crate::talk::member(receipt, &["data", "handler"]), "on-settled");
    assert_eq!(crate::talk::member(receipt, &["data", "trigger"]), leaf);
}
