//! `explain`: the story of an entry, from the daemon, from the store, or from the file alone.

use std::path::Path;

use serde_json::{Value, json};

use crate::peer::Peer;
use crate::stage::{Stage, append, scripted, until};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

fn notes() -> Stage {
    Stage::new(20, &scripted("noter", &["append:custom"], NOTE))
}

fn explain(stage: &Stage, args: &[&str]) -> Value {
    let output = stage.run(&[&["explain", "--json"], args].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What it says for people.
fn words(stage: &Stage, args: &[&str]) -> String {
    let output = stage.run(&[&["explain"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// What it says that it cannot do; the exit code is that of wrong usage.
fn refused(stage: &Stage, args: &[&str]) -> String {
    let output = stage.run(&[&["explain"], args].concat());
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).expect("text")
}

/// The id of the last entry of this `customType`.
fn id_of(path: &Path, custom_type: &str) -> String {
    let text = Session::read(path).customs(custom_type).pop().expect("an entry");
    let entry: Value = serde_json::from_str(&text).expect("JSON");
    entry["id"].as_str().expect("an id").to_owned()
}

fn outcomes(of: &Value) -> Vec<&str> {
    of.as_array().expect("a list").iter().map(|one| one["outcome"].as_str().expect("text")).collect()
}

#[test]
fn a_graft_tells_its_story_while_the_daemon_runs_and_when_it_is_gone() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut talk = Talk::begin(&path);
    let user = talk.user("hello");
    talk.assistant("hi");
    until("the graft", || Session::read(&path).receipts() == 1);
    let note = id_of(&path, "note");
    // From the id alone: the session is found.
    let told = explain(&stage, &[&note]);
    assert_eq!((&told["source"], &told["session"]), (&json!("daemon"), &json!("a")));
    assert_eq!((&told["entry"]["type"], &told["entry"]["active"]), (&json!("custom:note"), &json!(true)));
    let graft = &told["graft"];
    assert_eq!(
        (&graft["plugin"], &graft["handler"], &graft["reason"]),
        (&json!("noter"), &json!("on-entry"), &json!("entry"))
    );
    assert_eq!((&graft["trigger"]["id"], &graft["trigger"]["type"]), (&json!(user), &json!("message:user")));
    assert_eq!(graft["drafts"], json!([{ "type": "custom", "customType": "note", "data": { "of": user } }]));
    assert_eq!((&graft["draft"], &graft["whole"], &graft["fate"]), (&json!(0), &json!(true), &json!("unproven")));
    assert_eq!(graft["delivered"]["how"], "direct");
    let run = &graft["runs"][0];
    assert!(run["fuel"].as_u64().is_some_and(|fuel| fuel > 0) && run["outcome"] == "proposed", "{run}");
    assert_eq!(outcomes(&graft["became"]), ["grafted"]);
    // Pi goes on from it.
    let mut talk = Talk::reopen(&path);
    talk.user("more");
    talk.assistant("ok");
    until("the second", || Session::read(&path).receipts() == 2);
    daemon.end();
    let told = explain(&stage, &[&note[..6], "--session", "a"]);
    assert_eq!((&told["source"], &told["graft"]["fate"]), (&json!("store"), &json!("known")));
    assert_eq!(outcomes(&told["graft"]["became"]), ["grafted", "known"]);
    assert_eq!(told["entry"]["id"], note);
    // The batch's id names its receipt.
    let batch = told["graft"]["batch"].as_str().expect("an id").to_owned();
    let receipt = explain(&stage, &[&batch]);
    assert_eq!((&receipt["entry"]["type"], &receipt["graft"]["draft"]), (&json!("custom:pi-graft.run"), &Value::Null));
    let words = words(&stage, &[&note]);
    for part in
        [&*batch, "noter", "on-entry, reason entry", "directly, by pi-graft", "known: Pi has gone on from it", "fuel "]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    // Without the store the file still tells whose it is.
    std::fs::remove_dir_all(stage.path("state")).expect("the store is gone");
    let told = explain(&stage, &[&note]);
    assert_eq!((&told["source"], &told["graft"]["plugin"]), (&json!("file"), &json!("noter")));
    assert_eq!((&told["graft"]["runs"], &told["graft"]["delivered"]), (&json!([]), &Value::Null));
    assert!(!stage.path("state").exists(), "looking makes no store");
    assert!(self::words(&stage, &[&note]).contains("from the file alone"));
}

#[test]
fn an_entry_tells_what_ran_on_it_what_was_refused_and_who_edited_it() {
    let edits = r#"{"needs":["append:context_edit"],"on":["message:user"],"entry":[
        {"custom":{"type":"note"}},{"edits":[{"target":"$trigger","text":"REDACTED"}]}]}"#;
    let traps = r#"{"on":["message:user"],"entry":[{"trap":true}]}"#;
    let idle = r#"{"on":["message:user"],"entry":[]}"#;
    let plugins = [
        scripted("redactor", &["append:context_edit"], edits),
        scripted("trapper", &[], traps),
        scripted("idler", &[], idle),
    ];
    let stage = Stage::new(20, &plugins.concat());
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut talk = Talk::begin(&path);
    let user = talk.user("my secret");
    let answer = talk.assistant("hi");
    until("the graft", || Session::read(&path).receipts() == 1);
    let told = explain(&stage, &[&user]);
    assert_eq!((&told["entry"]["shows"], &told["graft"]), (&json!("edited"), &Value::Null));
    let edit = &told["edits"][0];
    assert_eq!((&edit["plugin"], &edit["id"]), (&json!("redactor"), &told["entry"]["showsBy"]));
    let runs = told["runs"].as_array().expect("runs");
    let of = |name: &str| runs.iter().find(|run| run["plugin"] == name).expect("its run");
    assert_eq!(of("idler")["outcome"], "nothing");
    assert_eq!(
        (&of("redactor")["outcome"], outcomes(&of("redactor")["became"])),
        (&json!("proposed"), vec!["grafted"])
    );
    assert_eq!(of("redactor")["refused"][0]["rule"], "S12.1");
    assert_eq!(of("redactor")["entries"].as_array().map(Vec::len), Some(1));
    assert_eq!((&of("trapper")["outcome"], &told["failed"][0]["state"]), (&json!("trap"), &json!("quarantine")));
    let said = words(&stage, &[&user]);
    for part in ["edited", "refused", "quarantine", "shown with other content", "in the file as "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let told = explain(&stage, &[&answer]);
    assert_eq!((&told["runs"], &told["entry"]["shows"]), (&json!([]), &json!("as it is")));
    assert!(words(&stage, &[&answer]).contains("nothing ran on it"));
    daemon.end();
}

#[test]
fn what_pi_passed_over_and_what_came_in_its_place_are_told() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    let first = pi.user("one");
    pi.assistant("ok");
    until("the graft", || Session::read(&path).receipts() == 1);
    let passed_over = id_of(&path, "note");
    pi.user("two");
    let leaf = pi.assistant("ok");
    daemon.wait_for("orphaned: Pi went on beside it");
    until("both on the branch", || Session::read(&path).receipts() == 3);
    let told = explain(&stage, &[&passed_over]);
    assert_eq!((&told["entry"]["active"], &told["graft"]["fate"]), (&json!(false), &json!("orphaned")));
    assert_eq!(told["entry"]["leaf"], passed_over, "its branch ends there");
    assert_eq!(outcomes(&told["graft"]["became"]), ["grafted", "orphaned", "offered again", "grafted"]);
    let other = &told["graft"]["others"][0];
    assert_eq!((&other["batch"], &other["active"]), (&told["graft"]["batch"], &json!(true)));
    let told = explain(&stage, &[&first]);
    assert_eq!(told["grafts"].as_array().map(Vec::len), Some(2), "{told}");
    assert_eq!(explain(&stage, &[&leaf])["graft"], Value::Null);
    daemon.end();
}

#[test]
fn what_pi_took_over_the_bridge_is_told_so() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let (mut peer, _) = Peer::bridge(&stage, &path, None);
    let mut talk = Talk::begin(&path);
    talk.user("one");
    let leaf = talk.assistant("ok");
    let (at, outcome, others) = ("turn_end", "completed", json!([]));
    let ask = json!({ "ask": 1, "leaf": leaf, "ms": 20_000, "at": at, "outcome": outcome, "stopReason": "stop", "others": others });
    peer.say(&ask);
    let drafts = peer.hear().expect("an answer")["entries"].clone();
    for draft in drafts.as_array().expect("drafts") {
        let mut draft = draft.as_object().expect("a draft").clone();
        let kind = draft.remove("type").expect("a type");
        let members = Value::Object(draft).to_string();
        talk.entry(kind.as_str().expect("text"), &members[1..members.len() - 1]);
    }
    daemon.wait_for("grafted: Pi has taken it");
    let told = explain(&stage, &[&id_of(&path, "note")]);
    let delivered = &told["graft"]["delivered"];
    assert_eq!((&delivered["how"], &delivered["when"]), (&json!("bridge"), &json!("boundary")), "{told}");
    daemon.end();
}

#[test]
fn a_batch_that_waits_is_named_by_its_id_too() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut talk = Talk::begin(&path);
    let user = talk.user("hello");
    talk.call("c1", "bash");
    let waits = || {
        let status: Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).unwrap_or_default();
        status["sessions"][0]["pending"][0]["batch"].as_str().map(str::to_owned)
    };
    until("what waits", || waits().is_some());
    let batch = waits().expect("it waits");
    for named in [&*batch, &batch[..12]] {
        let told = explain(&stage, &[named]);
        assert_eq!((&told["entry"]["id"], &told["source"]), (&json!(user), &json!("daemon")), "{told}");
    }
    assert!(words(&stage, &[&batch]).contains("it waits"));
    daemon.end();
    assert_eq!(explain(&stage, &[&batch])["entry"]["id"], user);
}

#[test]
fn an_id_that_is_not_there_or_means_several_is_an_error_that_says_what_to_do() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut talk = Talk::begin(&path);
    let user = talk.user("hello");
    talk.assistant("hi");
    assert!(refused(&stage, &["ffffffff"]).contains("--session"));
    assert!(refused(&stage, &["ff"]).contains("give more of it"));
    let several = refused(&stage, &["0000", "--session", "a"]);
    assert!(several.contains("2 ids begin with \"0000\"; give more of it") && several.contains(&user), "{several}");
    assert!(refused(&stage, &["ffff", "--session", "a"]).contains("session tree"));
    // A fork has the entries of its session.
    let text = std::fs::read_to_string(&path).expect("the session");
    append(&stage.session("b.jsonl"), &text.replacen("\"id\":\"a\"", "\"id\":\"b\"", 1));
    let several = refused(&stage, &[&user]);
    assert!(several.contains("2 sessions have an entry") && several.contains("b.jsonl"), "{several}");
    assert_eq!(explain(&stage, &[&user, "--session", "b"])["session"], "b");
}
