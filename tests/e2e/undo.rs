//! `pi-graft undo`: what a plugin did is taken back by further edits, and does not come back.

use std::path::{Path, PathBuf};

use pi_session::entry::EntryKind;
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

/// What the user says is not for the model, and a message says so.
const REDACT: &str = r#"{"needs":["append:context_edit","append:custom_message"],"on":["message:user"],"entry":[
    {"edits":[{"target":"$trigger","text":"REDACTED"}]},{"custom_message":{"type":"told","content":"redacted"}}]}"#;
const OTHER: &str = r#"{"needs":["append:context_edit"],"on":["message:user"],"entry":[
    {"edits":[{"target":"$trigger","text":"BY ANOTHER"}]}]}"#;
/// Keeps the answer only.
const COMPACT: &str = r#"{"needs":["append:compaction"],"on":["message:user"],"entry":[{"later":"now"}],
    "settled":[{"compaction":{"summary":"they talked"}}]}"#;

fn redactor() -> Stage {
    Stage::new(20, &scripted("redactor", &["append:context_edit", "append:custom_message"], REDACT))
}

/// A session of one turn, in which the redactor took something out; and where the turn ends.
fn redacted(stage: &Stage) -> (PathBuf, String) {
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("my password is x");
    let leaf = pi.assistant("ok");
    stage.once(&["--closed"]);
    (path, leaf)
}

/// The answer of `undo --json`, and its exit code.
fn undo(stage: &Stage, args: &[&str]) -> (Value, Option<i32>) {
    let output = stage.run(&[&["undo", "--json"], args].concat());
    let told = serde_json::from_slice(&output.stdout);
    let told = told.unwrap_or_else(|_| json!({ "stderr": String::from_utf8_lossy(&output.stderr) }));
    (told, output.status.code())
}

/// The messages that the model sees.
fn context(stage: &Stage, path: &Path) -> Value {
    let output = stage.run(&["session", "context", "--json", path.to_str().expect("a path")]);
    let mut told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    told["messages"].take()
}

fn edits(path: &Path) -> usize {
    Session::read(path).live_of(EntryKind::ContextEdit)
}

#[test]
fn the_model_sees_again_what_it_would_see_without_the_plugin() {
    let stage = redactor();
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    for text in ["my password is x", "and now y"] {
        pi.user(text);
        pi.assistant("ok");
    }
    let (before, bytes) = (context(&stage, &path), std::fs::read(&path).expect("the session"));
    stage.once(&["--closed"]);
    assert!(context(&stage, &path).to_string().contains("REDACTED"));
    let (told, code) = undo(&stage, &["--plugin", "redactor", "a"]);
    assert_eq!((code, &told["outcome"], &told["enabled"]), (Some(0), &json!("undone"), &json!(true)), "{told}");
    assert_eq!(context(&stage, &path), before);
    assert_eq!((&told["before"]["messages"], &told["after"]["messages"]), (&json!(6), &json!(4)), "{told}");
    assert_eq!(told["changes"].as_array().map(Vec::len), Some(4), "{told}");
    let file = Session::read(&path);
    file.assert_sound();
    assert!(std::fs::read(&path).expect("the session").starts_with(&bytes), "nothing that was there has changed");
    let (again, code) = undo(&stage, &["--plugin", "redactor", "a"]);
    assert_eq!((code, &again["outcome"]), (Some(0), &json!("nothing")), "{again}");
    // The plugin is run on none of it again, and what it did is not offered again.
    stage.once(&["--closed", "--backfill"]);
    assert_eq!((context(&stage, &path), Session::read(&path).ids()), (before, file.ids()));
}

#[test]
fn a_dry_run_shows_it_and_writes_nothing() {
    let stage = redactor();
    let (path, _) = redacted(&stage);
    let before = std::fs::read(&path).expect("the session");
    let output = stage.run(&["undo", "--plugin", "redactor", "--dry-run", "a"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for word in ["a dry run: to undo redactor, 3 entries", "before ", "after ", "- ", "my password is x", "left out"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert_eq!(std::fs::read(&path).expect("the session"), before);
    let (told, code) = undo(&stage, &["--plugin", "nobody", "a"]);
    assert_eq!((code, &told["outcome"]), (Some(0), &json!("nothing")), "{told}");
    let output = stage.run(&["undo", "--plugin", "nobody", "a"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("did something here: redactor"), "{output:?}");
}

#[test]
fn what_another_plugin_did_to_the_same_entry_stays() {
    let plugins = [
        scripted("other", &["append:context_edit"], OTHER),
        scripted("redactor", &["append:context_edit", "append:custom_message"], REDACT),
    ];
    let stage = Stage::new(20, &plugins[0]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("one");
    pi.assistant("ok");
    stage.once(&["--closed"]);
    let before = context(&stage, &path);
    stage.configure(20, &scripted("redactor", &["append:context_edit", "append:custom_message"], REDACT));
    std::fs::remove_dir_all(stage.path("state")).expect("another store");
    stage.once(&["--closed"]);
    assert!(context(&stage, &path).to_string().contains("REDACTED"));
    let (told, _) = undo(&stage, &["--plugin", "redactor", "a"]);
    assert_eq!(told["changes"][0]["to"], "edit", "{told}");
    assert_eq!(context(&stage, &path), before);
    undo(&stage, &["--plugin", "other", "a"]);
    assert!(context(&stage, &path).to_string().contains("one"));
}

/// ```text
/// u1 ─ a1 ─ R1 e1 m1 ─ a2 ─ U e m
///        └─ u3 ─ a3 ─ R3 e3 m3        u3 is new; of R1 nothing
/// ```
#[test]
fn it_does_not_come_back_on_another_branch_also_with_a_lost_store() {
    for lost in [false, true] {
        let stage = redactor();
        let path = stage.session("a.jsonl");
        let mut daemon = stage.daemon(&[]);
        let mut pi = Talk::begin(&path);
        let first = pi.user("my password is x");
        let fork_at = pi.assistant("ok");
        until("the graft", || Session::read(&path).receipts() == 1);
        Talk::reopen(&path).assistant("going on");
        let known = || stage.outcomes().iter().any(|outcome| outcome == "known");
        until("that Pi has it", known);
        let (told, code) = undo(&stage, &["--plugin", "redactor", "a"]);
        assert_eq!((code, &told["outcome"]), (Some(0), &json!("undone")), "{told}");
        let mut pi = Talk::reopen(&path);
        if lost {
            daemon.end();
            std::fs::remove_dir_all(stage.path("state")).expect("no store at all");
            daemon = stage.daemon(&["--backfill"]);
        }
        pi.go_to(&fork_at);
        pi.user("and now y");
        pi.assistant("ok");
        until("what is new there", || edits(&path) == 1);
        let here = context(&stage, &path).to_string();
        assert!(here.contains("my password is x") && !here.contains("and now y"), "{here}");
        assert!(Session::read(&path).is_live(&first));
        daemon.end();
        stage.once(&["--closed", "--backfill"]);
        assert_eq!(edits(&path), 1, "lost: {lost}");
    }
}

#[test]
fn it_does_not_come_back_in_a_fork() {
    let stage = redactor();
    let (path, fork_at) = redacted(&stage);
    Talk::reopen(&path).assistant("going on");
    undo(&stage, &["--plugin", "redactor", "a"]);
    let output = stage.run(&["session", "fork", "--json", path.to_str().expect("UTF-8"), "--leaf", &fork_at]);
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    stage.once(&["--closed"]);
    let fork = Session::read(Path::new(told["path"].as_str().expect("a path")));
    assert_eq!((fork.live_of(EntryKind::ContextEdit), fork.receipts()), (0, 0));
}

/// Pi had loaded neither the graft nor that it is undone, and went on beside both.
#[test]
fn what_is_undone_and_orphaned_is_not_offered_again() {
    let stage = redactor();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    pi.user("my password is x");
    pi.assistant("ok");
    until("the graft", || Session::read(&path).receipts() == 1);
    undo(&stage, &["--plugin", "redactor", "a"]);
    pi.assistant("going on");
    daemon.wait_for("orphaned: Pi had not loaded that it is undone");
    daemon.end();
    stage.once(&["--closed"]);
    assert_eq!(edits(&path), 0);
}

#[test]
fn what_waits_is_given_up() {
    let stage = redactor();
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    // Known, so that it can be paused alone.
    let mut pi = Talk::begin(&path);
    pi.user("one");
    pi.assistant("ok");
    until("the graft", || Session::read(&path).receipts() == 1);
    stage.hold_for("10m");
    assert!(stage.run(&["reload"]).status.success());
    let mut pi = Talk::reopen(&path);
    pi.user("two");
    pi.call("c1", "bash");
    let waits = || {
        let status: Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).unwrap_or_default();
        status["sessions"][0]["pending"].as_array().map_or(0, Vec::len)
    };
    until("what waits", || waits() == 1);
    let (told, code) = undo(&stage, &["--plugin", "redactor", "a"]);
    assert_eq!(code, Some(1), "a Pi may be running that call: {told}");
    assert!(told["stderr"].as_str().is_some_and(|why| why.contains("nothing was written")), "{told}");
    assert!(stage.run(&["pause"]).status.success());
    pi.result("c1", "done");
    pi.assistant("ok");
    let (told, code) = undo(&stage, &["--plugin", "redactor", "a"]);
    assert_eq!((code, &told["pending"]), (Some(0), &json!(1)), "{told}");
    assert!(stage.run(&["resume"]).status.success());
    until("that it is given up", || stage.outcomes().iter().any(|outcome| outcome == "dropped"));
    daemon.end();
    stage.once(&["--closed"]);
    let seen = context(&stage, &path).to_string();
    assert!(seen.contains("one") && seen.contains("two") && !seen.contains("REDACTED"), "{seen}");
}

#[test]
fn a_session_that_a_pi_with_a_bridge_has_is_left_alone() {
    let stage = redactor();
    let (path, _) = redacted(&stage);
    let before = std::fs::read(&path).expect("the session");
    let daemon = stage.daemon(&[]);
    let leaf = Session::read(&path).ids().last().cloned();
    let refused = || {
        let (told, code) = undo(&stage, &["--plugin", "redactor", "a"]);
        assert_eq!(code, Some(1), "{told}");
        assert!(told["stderr"].as_str().is_some_and(|why| why.contains("a Pi has it open")), "{told}");
        assert_eq!(std::fs::read(&path).expect("the session"), before);
    };
    let (_peer, _) = Peer::bridge(&stage, &path, leaf.as_deref());
    refused();
    daemon.kill();
    refused();
    let _daemon = stage.daemon(&[]);
    let (mut peer, _) = Peer::bridge(&stage, &path, leaf.as_deref());
    peer.say(&json!({ "bye": "quit" }));
    until("that Pi has left", || undo(&stage, &["--plugin", "redactor", "a"]).1 == Some(0));
    assert!(context(&stage, &path).to_string().contains("my password is x"));
}

#[test]
fn a_compaction_stays_and_the_way_around_it_is_said() {
    let stage = Stage::new(20, &scripted("compactor", &["append:compaction"], COMPACT));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("one");
    let last = pi.assistant("ok");
    stage.once(&["--closed"]);
    assert_eq!(Session::read(&path).compactions(), 1);
    let before = std::fs::read(&path).expect("the session");
    let output = stage.run(&["undo", "--plugin", "compactor", "a"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains(&format!("session fork {} --leaf {last}", path.display())),
        "{text}"
    );
    assert_eq!(std::fs::read(&path).expect("the session"), before, "there is nothing to write");
}

/// Plugins look at the whole context each time: what is undone is not to be done once more at the next entry.
#[test]
fn the_shipped_plugins_leave_alone_what_is_undone() {
    let trim = "[[plugin]]\nname = \"trim-tool-results\"\ngrants = [\"append:context_edit\"]\n[plugin.config]\nolder-than-turns = 1\n";
    let redact = "[[plugin]]\nname = \"redact-secrets\"\ngrants = [\"append:context_edit\", \"append:custom\"]\n";
    let stage = Stage::new(1, &[trim, redact].concat());
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let token = ["gh", "p_", "x7Kq2mWz9LpR4tVb8NcY1sDf6GhJ3aEu5Qo0"].concat();
    pi.user(&format!("deploy with {token} please"));
    pi.call("c1", "bash");
    pi.result("c1", &"word ".repeat(100_000));
    pi.assistant("done");
    pi.user("go on");
    pi.assistant("ok");
    let before = context(&stage, &path);
    stage.once(&["--closed"]);
    let trimmed = context(&stage, &path);
    assert!(!trimmed.to_string().contains("word word") && !trimmed.to_string().contains(&token), "{trimmed}");
    for plugin in ["trim-tool-results", "redact-secrets"] {
        let (told, code) = undo(&stage, &["--plugin", plugin, "a"]);
        assert_eq!((code, &told["outcome"]), (Some(0), &json!("undone")), "{told}");
    }
    assert_eq!(context(&stage, &path), before);
    let mut pi = Talk::reopen(&path);
    pi.user("once more");
    pi.assistant("ok");
    stage.once(&["--closed"]);
    let after = context(&stage, &path).to_string();
    assert!(after.contains("word word") && after.contains(&token), "{after}");
}

/// `kill -9` in the one write: whatever of it is there, the next undo writes the rest, and nobody is confused meanwhile.
#[test]
fn an_undo_that_was_cut_off_is_made_whole_by_the_next_one() {
    let stage = redactor();
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    for text in ["my password is x", "and now y"] {
        pi.user(text);
        pi.assistant("ok");
    }
    let before = context(&stage, &path);
    stage.once(&["--closed"]);
    let from = std::fs::read(&path).expect("the session").len();
    undo(&stage, &["--plugin", "redactor", "a"]);
    let whole = std::fs::read(&path).expect("the session");
    let ends = (from..whole.len()).filter(|at| whole[*at] == b'\n');
    let cuts: Vec<usize> = ends.flat_map(|end| [end - 30, end, end + 1]).filter(|cut| *cut < whole.len()).collect();
    assert!(cuts.len() > 10);
    for cut in cuts {
        std::fs::write(&path, &whole[..cut]).expect("cut");
        let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        let file = std::fs::File::options().append(true).open(&path).expect("the session");
        file.set_modified(hour_ago).expect("nobody writes any more");
        stage.once(&["--closed"]);
        let (told, code) = undo(&stage, &["--plugin", "redactor", "--closed", "a"]);
        assert_eq!(code, Some(0), "cut at {cut}: {told}");
        assert_eq!(context(&stage, &path), before, "cut at {cut}");
        let (again, _) = undo(&stage, &["--plugin", "redactor", "--closed", "a"]);
        assert_eq!(again["outcome"], "nothing", "cut at {cut}: {again}");
    }
}
