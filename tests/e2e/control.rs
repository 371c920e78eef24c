//! Talking to the running daemon: how things stand, the log, a pause, a reload.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::peer::Peer;
use crate::stage::{Stage, append, scripted, until};
use crate::talk::{Session, Talk};

/// Notes each user message in a `custom` entry.
const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;
/// The same with another type.
const MARK: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"mark","data":{"of":"$trigger"}}}]}"#;

fn noter() -> String {
    scripted("noter", &["append:custom"], NOTE)
}

/// Runs a command with `--json`: its exit code and what it printed, a value a line.
fn json(stage: &Stage, args: &[&str]) -> (i32, Vec<Value>) {
    let output = stage.run(&[args, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let values = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (output.status.code().expect("a code"), values)
}

fn status(stage: &Stage) -> Value {
    let (code, mut values) = json(stage, &["status"]);
    assert_eq!((code, values.len()), (0, 1));
    values.remove(0)
}

#[test]
fn status_says_what_waits_and_why() {
    let stage = Stage::new(20, &noter());
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let (_bridge, _) = Peer::bridge(&stage, &path, None);
    let mut pi = Talk::begin(&path);
    let asked = pi.user("hello");
    daemon.wait_for("waiting: a Pi with a bridge has this session");
    let status = status(&stage);
    assert_eq!(status["daemon"]["stateDir"], stage.path("state").to_str().expect("text"));
    assert_eq!(status["daemon"]["paused"], false);
    assert_eq!((&status["plugins"][0]["name"], &status["plugins"][0]["why"]), (&"noter".into(), &Value::Null));
    assert_eq!((&status["roots"][0]["state"], &status["known"]), (&"watched".into(), &1.into()));
    let session = &status["sessions"][0];
    assert_eq!((&session["id"], &session["state"]), (&"a".into(), &"bridged".into()));
    assert_eq!((&session["presence"], &session["cwd"]), (&"here".into(), &"/work".into()));
    assert_eq!(session["waiting"], "a Pi with a bridge has this session, and takes it at its next boundary");
    let pending = &session["pending"][0];
    assert_eq!((&pending["plugin"], &pending["kinds"][0]), (&"noter".into(), &"custom".into()));
    assert_eq!(pending["trigger"], asked);
    let text = stage.run(&["status"]);
    assert!(text.status.success());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("waits: a Pi with a bridge has this session"), "{text}");
    daemon.end();
}

#[test]
fn without_a_daemon_the_store_is_shown_and_how_to_start_one() {
    let stage = Stage::new(20, &noter());
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    stage.once(&[]);
    let output = stage.run(&["status", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no daemon runs") && said.contains("pi-graft run"), "{said}");
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&status["daemon"], &status["known"]), (&Value::Null, &1.into()));
    assert_eq!(status["sessions"][0]["pending"][0]["plugin"], "noter");
    assert_eq!(stage.run(&["pause"]).status.code(), Some(1));
}

#[test]
fn the_log_has_runs_and_what_became_of_their_batches() {
    let stage = Stage::new(20, &noter());
    let daemon = stage.daemon(&["--closed"]);
    let mut follow = stage.command(&["log", "--json", "--follow"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(follow.stdout.take().expect("its output")).lines();
    let (path, other) = (stage.session("a.jsonl"), stage.session("b.jsonl"));
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    let mut next = || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON") };
    let (run, graft) = (next(), next());
    assert_eq!((&run["about"], &run["outcome"], &run["session"]), (&"run".into(), &"proposed".into(), &"a".into()));
    assert_eq!((&graft["about"], &graft["outcome"]), (&"batch".into(), &"grafted".into()));
    assert_eq!(run["batch"], graft["batch"]);
    assert_eq!(graft["path"], path.to_str().expect("text"));
    follow.kill().expect("killed");
    follow.wait().expect("it ends");
    Talk::begin(&other).user("hello");
    until("the other's run and graft", || json(&stage, &["log", "--session", "b"]).1.len() == 2);
    assert_eq!(json(&stage, &["log"]).1.len(), 4);
    assert_eq!(json(&stage, &["log", "-n", "1"]).1[0]["session"], "b");
    assert_eq!(json(&stage, &["log", "--plugin", "nobody"]).1.len(), 0);
    daemon.end();
    assert_eq!(json(&stage, &["log"]).1.len(), 4, "and without a daemon");
}

#[test]
fn nothing_happens_in_a_pause_and_nothing_is_lost_by_it() {
    let stage = Stage::new(20, &noter());
    let mut daemon = stage.daemon(&["--closed"]);
    let (a, b) = (stage.session("a.jsonl"), stage.session("b.jsonl"));
    assert!(stage.run(&["pause"]).status.success());
    assert_eq!(status(&stage)["daemon"]["paused"], true);
    let mut pi = Talk::begin(&a);
    pi.user("hello");
    pi.assistant("hi");
    // An ask in a pause is answered at once.
    let (mut bridge, _) = Peer::bridge(&stage, &b, None);
    bridge.say(&serde_json::json!({ "ask": 1, "at": "turn_end", "leaf": null, "ms": 60_000 }));
    assert_eq!(bridge.hear().expect("an answer")["entries"], serde_json::json!([]));
    assert!(!daemon.log().contains("proposed"));
    assert_eq!(json(&stage, &["log"]).1.len(), 0);
    assert!(stage.run(&["resume"]).status.success());
    until("the graft", || Session::read(&a).customs("note").len() == 1);

    // One session alone.
    let (code, answer) = json(&stage, &["pause", "--session", "a"]);
    assert_eq!((code, &answer[0]["session"]), (0, &a.to_str().expect("text").into()));
    assert_eq!(json(&stage, &["pause", "--session", "nobody"]).0, 1);
    pi.user("more");
    pi.assistant("ok");
    let c = stage.session("c.jsonl");
    let mut other = Talk::begin(&c);
    other.user("hello");
    other.assistant("hi");
    until("the other's graft", || Session::read(&c).customs("note").len() == 1);
    assert_eq!(Session::read(&a).customs("note").len(), 1);
    assert!(stage.run(&["resume", "--session", "a"]).status.success());
    until("the second graft", || Session::read(&a).live_customs("note").len() == 2);
    daemon.wait_for("resumed");
    daemon.end();
}

#[test]
fn a_reload_takes_new_plugins_and_roots_without_losing_an_entry() {
    let stage = Stage::new(20, &noter());
    let daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("one");
    pi.assistant("1");
    until("the first graft", || Session::read(&path).customs("note").len() == 1);
    let mut pi = Talk::reopen(&path);
    stage.configure(20, &format!("{}{}", noter(), scripted("marker", &["append:custom"], MARK)));
    let (code, answer) = json(&stage, &["reload"]);
    assert_eq!((code, &answer[0]["plugins"][1]["name"]), (0, &"marker".into()), "{answer:?}");
    pi.user("two");
    pi.assistant("2");
    until("both grafts", || {
        Session::read(&path).customs("mark").len() == 1 && Session::read(&path).customs("note").len() == 2
    });
    Session::read(&path).assert_sound();

    // A config that does not hold, and a plugin that cannot be loaded: what ran before goes on.
    append(&stage.path("config.toml"), "\n[wathc]\n");
    let output = stage.run(&["reload"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("nothing is changed") && said.contains("wathc"), "{said}");
    stage.configure(20, &noter().replace("scripted.wasm", "lost.wasm"));
    let (code, answer) = json(&stage, &["reload"]);
    assert_eq!(code, 1);
    assert!(answer[0]["plugins"][0]["why"].as_str().expect("why").contains("lost.wasm"), "{answer:?}");
    assert!(answer[0]["plugins"][0]["version"].is_string(), "the old one still runs");
    let mut pi = Talk::reopen(&path);
    pi.user("three");
    pi.assistant("3");
    until("the third graft", || Session::read(&path).customs("note").len() == 3);
    assert_eq!(Session::read(&path).customs("mark").len(), 1, "the other one is disabled");
    daemon.end();
}

#[test]
fn a_reload_watches_other_roots() {
    let stage = Stage::new(20, &noter());
    let daemon = stage.daemon(&["--closed"]);
    let new_root = stage.path("more");
    std::fs::create_dir(&new_root).expect("a directory");
    let path = new_root.join("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    let config = std::fs::read_to_string(stage.path("config.toml")).expect("the config");
    let config = config.replacen("roots = [", &format!("roots = [{new_root:?}, "), 1);
    std::fs::write(stage.path("config.toml"), config).expect("the config");
    let (code, answer) = json(&stage, &["reload"]);
    assert_eq!((code, answer[0]["roots"].as_array().expect("roots").len()), (0, 2));
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    let mut pi = Talk::reopen(&path);
    pi.user("more");
    pi.assistant("ok");
    until("the graft of an event", || Session::read(&path).customs("note").len() == 2);
    daemon.end();
}

/// One's own plugin, being worked on: its file is another one, torn for a moment, and good again.
#[test]
fn a_plugin_that_was_built_anew_is_taken_with_a_reload_and_a_torn_one_keeps_the_old() {
    let stage = Stage::new(20, "");
    let wasm = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/prebuilt/scripted.wasm"));
    let (wasm, file) = (wasm.expect("a guest"), stage.path("mine.wasm"));
    std::fs::write(&file, &wasm).expect("written");
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/prebuilt/scripted.wasm");
    stage.configure(20, &noter().replace(shared, file.to_str().expect("a path")));
    let daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    Talk::begin(&path);
    let mut turns = 0;
    let mut turn = |digest: &str| {
        let mut pi = Talk::reopen(&path);
        pi.user("hello");
        pi.assistant("hi");
        turns += 1;
        until("the graft", || Session::read(&path).customs("note").len() == turns);
        let receipts = Session::read(&path).customs("pi-graft.run");
        assert!(receipts[turns - 1].contains(digest), "{digest}: {}", receipts[turns - 1]);
    };
    let digest = |answer: &[Value]| answer[0]["plugins"][0]["digest"].as_str().expect("a digest").to_owned();
    let (_, first) = json(&stage, &["reload"]);
    turn(&digest(&first));
    std::fs::write(&file, &wasm[..wasm.len() / 2]).expect("half of it");
    let (code, torn) = json(&stage, &["reload"]);
    assert_eq!((code, digest(&torn)), (1, digest(&first)), "{torn:?}");
    turn(&digest(&first));
    // One more custom section, empty: another file, and as good a component.
    std::fs::write(&file, [&wasm[..], &[0, 2, 1, b'x']].concat()).expect("all of it");
    let (code, fresh) = json(&stage, &["reload"]);
    assert!(code == 0 && digest(&fresh) != digest(&first), "{fresh:?}");
    turn(&digest(&fresh));
    Session::read(&path).assert_sound();
    daemon.end();
}
