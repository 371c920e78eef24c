//! Many sessions on few cores: whoever has slow plugins, or much to do, holds up nobody else.

use std::path::Path;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk, member};

/// Notes each user message.
const NOTES: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

/// Keeps a core busy for a while on each `custom` of the type `work`, and notes it.
fn slow(calls: u64) -> String {
    let script = format!(
        r#"{{"needs":["append:custom"],"on":["custom:work"],"entry":[{{"calls":{calls}}},{{"custom":{{"type":"worked","data":{{"of":"$trigger"}}}}}}]}}"#
    );
    let limits = "[plugin.limits]\nfuel = 1000000000000\ntime = \"60s\"\n[plugin.config]";
    scripted("slow", &["append:custom"], &script).replacen("[plugin.config]", limits, 1)
}

/// A session with so many entries that are work.
fn busy(path: &Path, entries: usize) -> Vec<String> {
    let mut pi = Talk::begin(path);
    let work = (0..entries).map(|_| pi.entry("custom", r#""customType":"work""#)).collect();
    pi.user("hello");
    pi.assistant("hi");
    work
}

/// Which entries a plugin noted.
fn noted(path: &Path, kind: &str) -> Vec<String> {
    Session::read(path).customs(kind).iter().map(|entry| member(entry, &["data", "of"])).collect()
}

#[test]
fn more_slow_sessions_than_there_are_workers_hold_up_no_other() {
    let stage = Stage::new(20, &[slow(30_000), scripted("noter", &["append:custom"], NOTES)].concat());
    let (sessions, entries) = (24, 500);
    for n in 0..sessions {
        busy(&stage.session(&format!("busy-{n}.jsonl")), entries);
    }
    // What is there before the first start, and no older than a minute, counts as new.
    let mut daemon = stage.daemon(&["--closed"]);
    let is_slow = |line: &&str| line.contains("plugin=\"slow\"") && line.contains("proposed");
    let worked = |log: &str| log.lines().filter(is_slow).count();
    daemon.wait_for("plugin=\"slow\"");
    for n in 0..5 {
        let path = stage.session(&format!("quick-{n}.jsonl"));
        let mut pi = Talk::begin(&path);
        let asked = [pi.user("hello")];
        pi.assistant("hi");
        until("its graft", || noted(&path, "note") == asked);
        let log = daemon.log();
        assert!(worked(&log) > 0, "they are at work");
        assert!(worked(&log) < entries, "not even one of them is through: {}", worked(&log));
    }
    daemon.kill();
}

#[test]
fn a_session_whose_work_takes_many_turns_is_done_in_order_and_once() {
    let stage = Stage::new(20, &slow(50_000));
    let path = stage.session("busy.jsonl");
    let work = busy(&path, 30);
    stage.once(&["--closed", path.to_str().expect("a path")]);
    assert_eq!(noted(&path, "worked"), work);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(file.receipts(), work.len());
}
