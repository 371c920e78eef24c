//! One compaction is one: what comes late behind it causes no second one at once, and plugins, however many of them compact,
//! never do it to the same branch twice.

use std::path::Path;

use pi_session::entry::EntryKind;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

/// An extractive `auto-compact` under this name, due above 240 tokens.
fn compactor(name: &str, more: &str) -> String {
    let wasm = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/prebuilt/auto-compact.wasm");
    format!(
        r#"[[plugin]]
name = "{name}"
path = {wasm:?}
grants = ["append:compaction"]
[plugin.config]
context-window = 400
reserve-tokens = 100
keep-recent-tokens = 20
min-saving = 1
{more}
"#
    )
}

fn once(stage: &Stage, path: &Path) -> Session {
    stage.once(&["--closed", path.to_str().expect("a path")]);
    let session = Session::read(path);
    session.assert_sound();
    session
}

/// Somebody compacted while a tool was at work; the result, which is big, comes behind it.
#[test]
fn a_tool_result_that_comes_late_waits_for_the_answer() {
    let stage = Stage::new(1, &compactor("sums", ""));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.two_turns();
    let kept = pi.user(&format!("Now run all of it. {}", "Take your time. ".repeat(30)));
    pi.call("c1", "bash");
    let members = format!(r###""summary":"## Goal\n- go on","firstKeptEntryId":"{kept}","tokensBefore":900"###);
    pi.entry("compaction", &members);
    pi.result("c1", &"a line of output\n".repeat(400));
    assert_eq!(once(&stage, &path).compactions(), 1, "the one that was there");
    pi.assistant("It ran.");
    assert_eq!(once(&stage, &path).compactions(), 2, "with the answer it is due");
    assert_eq!(once(&stage, &path).compactions(), 2, "and then no more");
}

#[test]
fn of_two_plugins_that_find_it_due_one_compacts() {
    let stage = Stage::new(1, &[compactor("first", ""), compactor("second", "")].concat());
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    let session = once(&stage, &path);
    assert_eq!((session.compactions(), session.receipts()), (1, 1));
    assert_eq!(once(&stage, &path).compactions(), 1);
}

/// The other one proposes at once, at the user's message; it is pending when ours would be made.
#[test]
fn one_that_is_pending_is_the_one() {
    let eager = r#"{"needs":["append:compaction"],"on":["message:user"],"entry":[
        {"unless":"pi-graft.run","compaction":{"summary":"EAGER","first_kept":"$trigger"}}]}"#;
    let eager = scripted("eager", &["append:compaction"], eager);
    let stage = Stage::new(1, &[compactor("first", ""), eager].concat());
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    let session = once(&stage, &path);
    assert_eq!((session.compactions(), session.receipts()), (1, 1));
}

/// A model takes long, another plugin does not wait for it, and the user goes on. What the model says in the end is of a branch
/// that is no more.
#[test]
fn a_summary_that_was_overtaken_by_another_is_dropped() {
    let stage = Stage::new(1, "");
    let gate = stage.path("gate");
    let script = format!("cat > /dev/null; until [ -e {gate:?} ]; do sleep 0.02; done; echo '## Goal'; echo '- LATE'");
    let model = format!("[models.summary]\nkind = \"command\"\nargv = [\"sh\", \"-c\", {script:?}]\n");
    let roomy = |name, more: &str| compactor(name, &format!("at = 1000\n{more}")).replace("400", "4000");
    let plugins = [
        model,
        roomy("slow", "summary = \"model\"").replace("compaction\"]", "compaction\", \"model:summary\"]"),
        roomy("quick", "summary-bytes = 600"),
    ];
    stage.configure(1, &plugins.concat());
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&["--closed"]);
    let mut pi = Talk::begin(&path);
    pi.two_turns();
    until("the quick one's", || Session::read(&path).compactions() == 1);
    let mut pi = Talk::reopen(&path);
    pi.user("and on");
    let leaf = pi.assistant("ok");
    std::fs::write(gate, "").expect("the model may answer");
    daemon.wait_for("another compaction has landed since");
    daemon.end();
    let session = Session::read(&path);
    session.assert_sound();
    assert_eq!((session.compactions(), session.live_of(EntryKind::Compaction)), (1, 1));
    assert!(session.is_live(&leaf));
}
