//! The daemon's socket: who may connect, what a bridge is told, and that a session which a bridge has is left to it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::peer::{Peer, socket_of};
use crate::stage::{Daemon, Stage, scripted, until};
use crate::talk::{Session, Talk};

/// Notes each user message in a `custom` entry.
const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

fn stage() -> Stage {
    Stage::new(20, &scripted("noter", &["append:custom"], NOTE))
}

/// A turn of Pi's, whose graft waits until Pi says that it leaves.
fn is_written_once_pi_leaves(daemon: &mut Daemon, bridge: &mut Peer, path: &Path) {
    let mut pi = Talk::begin(path);
    pi.user("hello");
    let leaf = pi.assistant("hi");
    bridge.say(&json!({ "leaf": leaf, "idle": true, "on": "agent_settled" }));
    daemon.wait_for("waiting: a Pi with a bridge has this session");
    assert_eq!(Session::read(path).receipts(), 0);
    bridge.say(&json!({ "bye": "quit" }));
    until("the graft", || Session::read(path).customs("note").len() == 1);
}

#[test]
fn a_session_with_a_bridge_is_not_written_until_its_pi_leaves() {
    let stage = stage();
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    // Pi says hello before it writes the file, which it does with the first answer.
    let (mut bridge, welcome) = Peer::bridge(&stage, &path, None);
    assert_eq!((&welcome["serves"], &welcome["v"]), (&json!(true), &json!(1)));
    is_written_once_pi_leaves(&mut daemon, &mut bridge, &path);
    daemon.end();
}

#[test]
fn a_bridge_that_is_gone_without_a_word_leaves_too() {
    let stage = stage();
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let (bridge, _) = Peer::bridge(&stage, &path, None);
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    daemon.wait_for("waiting: a Pi with a bridge has this session");
    drop(bridge);
    daemon.wait_for("its bridge has left");
    daemon.end();
}

#[test]
fn an_ask_is_always_answered() {
    let stage = stage();
    let daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let (mut bridge, _) = Peer::bridge(&stage, &path, None);
    // There is no file yet, so there can be nothing to hand over; Pi must not wait for that.
    bridge.say(&json!({ "ask": 7, "at": "turn_end", "leaf": null, "others": [], "ms": 60_000 }));
    assert_eq!(bridge.hear(), Some(json!({ "answer": 7, "leaf": null, "entries": [] })));
    bridge.say(&json!({ "ask": 8, "at": "session_before_compact", "leaf": "x", "reason": "manual", "ms": 60_000 }));
    assert_eq!(bridge.hear(), Some(json!({ "answer": 8, "leaf": "x", "compaction": null })));
    daemon.end();
    assert_eq!(bridge.hear(), None, "the connection ends with the daemon");
}

#[test]
fn what_is_not_followed_is_not_served() {
    let stage = stage();
    let daemon = stage.daemon(&[]);
    for path in ["elsewhere.jsonl", "sessions/--work--/notes.txt"] {
        let (_, welcome) = Peer::bridge(&stage, &stage.path(path), None);
        assert_eq!(welcome["serves"], false, "{path}");
        assert_eq!(welcome["why"], "this session is not followed here");
    }
    std::os::unix::fs::symlink(stage.path("config.toml"), stage.session("link.jsonl")).expect("a link");
    let (_, welcome) = Peer::bridge(&stage, &stage.session("link.jsonl"), None);
    assert_eq!(welcome["serves"], false, "a link");
    daemon.end();
}

/// Whatever a bridge says its Pi has open: it is told why that is not served, and the daemon goes on.
#[test]
fn what_can_be_no_session_is_refused_in_words() {
    let stage = stage();
    let mut daemon = stage.daemon(&[]);
    let root = stage.root().to_str().expect("UTF-8").to_owned();
    let long = "x".repeat(300);
    for (file, why) in [
        (format!("{root}/--work--/a\0b.jsonl"), "no session can be at the path of this one"),
        (format!("{root}/a\0b/c.jsonl"), "no session can be at the path of this one"),
        (format!("{root}/--work--/{long}.jsonl"), "no session can be at the path of this one"),
        (format!("{root}/{}a.jsonl", format!("{long}/").repeat(20)), "no session can be at the path of this one"),
        (format!("{root}/--work--/../../a.jsonl"), "not followed here"),
        (format!("{root}/gone/../../a.jsonl"), "leads up by `..`"),
        ("a.jsonl".to_owned(), "is not absolute"),
        (String::new(), "is not absolute"),
        (format!("{root}/--work--"), "not followed here"),
        (format!("{root}/--work--/a.jsonl/"), "served"),
        (format!("{root}/--work--/a.jsonl\n"), "not followed here"),
    ] {
        let mut peer = Peer::connect(&stage);
        peer.say(&hello(&file, "0198", "/work"));
        let welcome = peer.hear().expect("an answer")["welcome"].clone();
        let told = welcome["why"].as_str().unwrap_or("served");
        assert!(told.contains(why), "{file:?}: {welcome}");
    }
    for (hello, why) in [
        (hello(&format!("{root}/{}", "x".repeat(20 << 10)), "0198", "/work"), "may have 16384 at most"),
        (hello("/a.jsonl", &"x".repeat(20 << 10), "/work"), "may have 16384 at most"),
        (hello("/a.jsonl", "0198", &"x".repeat(20 << 10)), "may have 16384 at most"),
        (json!({ "v": 1, "bridge": "hello", "pid": -1, "session": { "id": "a", "file": null } }), "invalid value"),
        (json!({ "v": 1, "bridge": "hello", "pid": 1 }), "missing field `session`"),
        (json!({ "v": 1, "bridge": "hello", "pid": 1, "session": { "id": 7, "file": null } }), "invalid type"),
    ] {
        let mut peer = Peer::connect(&stage);
        peer.say(&hello);
        let told = peer.hear().expect("a word");
        assert!(told["error"].as_str().expect("text").contains(why), "{told}");
        assert_eq!(peer.hear(), None, "it is let go");
    }
    // A leaf that is as long as a line may be would be kept for as long as the connection lasts.
    let (mut peer, _) = Peer::bridge(&stage, &stage.session("a.jsonl"), None);
    peer.say(&json!({ "leaf": "x".repeat(1 << 20), "idle": true, "on": "input" }));
    assert!(peer.hear().expect("a word")["error"].as_str().expect("text").contains("may have 16384 at most"));
    daemon.wait_for("its bridge has left");
    assert!(!daemon.log().contains("WARN"), "{}", daemon.log());
    daemon.end();
}

/// A directory may have a line end in its name, and Pi names directories after that; the log stays one line an event.
#[test]
fn a_session_with_a_line_end_in_its_path_is_served_like_any_other() {
    let stage = stage();
    let mut daemon = stage.daemon(&["--closed"]);
    let dir = stage.root().join("--a\nb--");
    std::fs::create_dir(&dir).expect("a directory");
    let path = dir.join("a.jsonl");
    let (mut bridge, welcome) = Peer::bridge(&stage, &path, None);
    assert_eq!(welcome["serves"], true, "{welcome}");
    is_written_once_pi_leaves(&mut daemon, &mut bridge, &path);
    let log = daemon.end();
    assert!(log.lines().all(|line| line.starts_with("20") || !line.contains("b--")), "{log}");
}

fn hello(file: &str, id: &str, cwd: &str) -> serde_json::Value {
    json!({
        "v": 1, "bridge": "hello", "pid": 1, "leaf": null, "idle": true, "why": "startup",
        "session": { "id": id, "file": file, "cwd": cwd },
    })
}

#[test]
fn a_bridge_may_go_from_session_to_session() {
    let stage = stage();
    let mut daemon = stage.daemon(&["--closed"]);
    let (a, b) = (stage.session("a.jsonl"), stage.session("b.jsonl"));
    let (mut bridge, _) = Peer::bridge(&stage, &a, None);
    let mut pi = Talk::begin(&a);
    pi.user("hello");
    pi.assistant("hi");
    daemon.wait_for("waiting: a Pi with a bridge has this session");
    bridge.say(&json!({
        "v": 1, "bridge": "hello", "pid": 1, "leaf": null, "idle": true, "why": "new",
        "session": { "id": "b", "file": b, "cwd": "/work" },
    }));
    assert_eq!(bridge.hear().expect("an answer")["welcome"]["serves"], true);
    until("the graft", || Session::read(&a).customs("note").len() == 1);
    daemon.end();
}

#[test]
fn who_says_something_else_is_told_and_let_go() {
    let stage = stage();
    let daemon = stage.daemon(&[]);
    let long = format!("{{\"v\":1,\"control\":\"{}\"}}\n", "x".repeat(9 << 20));
    for (line, why) in [
        ("{\"v\":2,\"control\":\"status\"}\n", "speaks version 1 of the protocol, not 2"),
        ("{\"v\":1,\"control\":\"dance\"}\n", "not understood"),
        ("GET / HTTP/1.1\n", "not understood"),
        (long.as_str(), "a line of more than"),
    ] {
        let mut peer = Peer::connect(&stage);
        peer.say_text(line);
        let told = peer.hear().expect("a word");
        assert!(told["error"].as_str().expect("text").contains(why), "{told}");
        assert_eq!(told["v"], 1);
        assert_eq!(peer.hear(), None);
    }
    daemon.end();
}

#[test]
fn the_socket_is_this_users_alone_and_goes_with_the_daemon() {
    let stage = stage();
    let daemon = stage.daemon(&[]);
    let socket = socket_of(&stage);
    let mode = std::fs::metadata(&socket).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    daemon.kill();
    assert!(socket.exists(), "a killed daemon leaves it");
    let daemon = stage.daemon(&[]);
    Peer::connect(&stage);
    daemon.end();
    assert!(!socket.exists());
}

#[test]
fn a_path_too_long_for_a_socket_costs_the_socket_only() {
    let stage = stage();
    let long = stage.path(&"long/".repeat(30));
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon_with(&["--closed"], &[("PI_GRAFT_RUNTIME_DIR", long.to_str().expect("text"))]);
    daemon.wait_for("too long for a socket's path; set PI_GRAFT_RUNTIME_DIR");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    daemon.end();
}
