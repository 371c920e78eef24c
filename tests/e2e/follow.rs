//! A daemon follows a session, and what a plugin proposes lands where Pi goes on.

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk, member};

/// Notes each user message in a `custom` entry.
const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

#[test]
fn a_graft_lands_on_the_leaf_once_the_turn_is_over() {
    let stage = Stage::new(100, &scripted("noter", &["append:custom"], NOTE));
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let asked = pi.user("hello");
    let answer = pi.assistant("hi");
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    let file = Session::read(&path);
    file.assert_sound();
    let receipt = &file.customs("pi-graft.run")[0];
    assert_eq!(member(receipt, &["parentId"]), answer);
    assert_eq!(member(receipt, &["data", "trigger"]), asked);
    assert_eq!(member(receipt, &["data", "plugin"]), "noter");
    assert_eq!(member(&file.customs("note")[0], &["data", "of"]), asked);
    assert_eq!(member(&file.customs("note")[0], &["parentId"]), member(receipt, &["id"]));
    daemon.end();
}

#[test]
fn a_restart_goes_on_where_it_stopped() {
    let stage = Stage::new(50, &scripted("noter", &["append:custom"], NOTE));
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    pi.user("one");
    pi.assistant("1");
    until("the first graft", || Session::read(&path).customs("note").len() == 1);
    daemon.end();
    let mut pi = Talk::reopen(&path);
    pi.user("two");
    pi.assistant("2");
    let daemon = stage.daemon(&[]);
    until("the second graft", || Session::read(&path).customs("note").len() == 2);
    Session::read(&path).assert_sound();
    let log = daemon.end();
    assert_eq!(log.matches("proposed session").count(), 1, "{log}");
}

#[test]
fn half_lines_are_waited_for() {
    let stage = Stage::new(50, &scripted("noter", &["append:custom"], NOTE));
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let (_, line) = pi.line("message", r#""message":{"role":"user","content":"in two halves","timestamp":1}"#);
    crate::stage::append(&path, &line[..30]);
    let (_, answer) = pi.line(
        "message",
        r#""message":{"role":"assistant","content":[],"api":"x","provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0}},"stopReason":"stop","timestamp":1}"#,
    );
    crate::stage::append(&path, &line[30..]);
    crate::stage::append(&path, &answer);
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    Session::read(&path).assert_sound();
    daemon.end();
}

#[test]
fn a_session_in_a_directory_that_appears_later_is_found() {
    let stage = Stage::new(50, &scripted("noter", &["append:custom"], NOTE));
    let daemon = stage.daemon(&[]);
    let dir = stage.root().join("--later--/deep");
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    daemon.end();
}

#[test]
fn a_directory_may_be_named_as_sessions_are() {
    let stage = Stage::new(50, &scripted("noter", &["append:custom"], NOTE));
    let daemon = stage.daemon(&["--closed"]);
    let dir = stage.root().join("notes.jsonl");
    let began = std::time::Instant::now();
    std::fs::create_dir(&dir).expect("a directory");
    let path = dir.join("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    assert!(began.elapsed().as_secs() < 45, "found by the walk that is made each minute, not by its event");
    daemon.end();
}

#[test]
fn what_was_there_before_the_first_start_is_history() {
    let stage = Stage::new(50, &scripted("noter", &["append:custom"], NOTE));
    let path = stage.session("old.jsonl");
    let old = include_str!("../cases/real/01_plain_chat.jsonl").replace("2026-", "2025-");
    std::fs::write(&path, &old).expect("an old session");
    let text = stage.once(&[]);
    assert!(text.contains("0 batches proposed"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).expect("the session"), old);
    let text = stage.once(&["--backfill", "--closed"]);
    assert!(!text.contains("0 batches proposed"), "{text}");
}

#[test]
fn a_graft_to_an_old_session_does_not_make_it_the_newest() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let (old, new) = (stage.session("old.jsonl"), stage.session("new.jsonl"));
    let mut pi = Talk::begin(&old);
    pi.user("hello");
    pi.assistant("hi");
    let before = std::fs::metadata(&old).and_then(|m| m.modified()).expect("a time");
    until("a later time", || {
        Talk::begin(&new);
        let time = std::fs::metadata(&new).and_then(|m| m.modified()).expect("a time");
        time > before || std::fs::remove_file(&new).is_err()
    });
    stage.once(&["--closed"]);
    assert_eq!(Session::read(&old).customs("note").len(), 1);
    assert_eq!(std::fs::metadata(&old).and_then(|m| m.modified()).expect("a time"), before);
}

/// Two that answer each other's grafts for ever, if one lets them (product.md 4.3).
#[test]
fn a_chain_of_grafts_ends_after_three_links() {
    let answers = |kind: &str| {
        let script = r#"{"needs":["append:custom"],"on":["graft"],"entry":[{"custom":{"type":"KIND","data":{"of":"$trigger"}}}]}"#;
        scripted(kind, &["append:custom"], &script.replace("KIND", kind))
    };
    let plugins = [scripted("noter", &["append:custom"], NOTE), answers("ping"), answers("pong")];
    let stage = Stage::new(20, &plugins.concat());
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    file.assert_sound();
    let count = |kind| file.customs(kind).len();
    assert_eq!(
        (count("note"), count("ping"), count("pong")),
        (1, 2, 2),
        "each answers the note, and each other's answer once"
    );
}
