//! Thousands of sessions that nobody writes to: what they cost once each has been read, and after a start (product.md section
//! 8). Ten thousand of them if `PI_GRAFT_IDLE` says so.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use crate::stage::{Daemon, Stage, scripted, until};

/// Looks at each user message, and proposes nothing.
const LOOKS: &str = r#"{"on":["message:user"],"entry":[{"read":"$trigger"}]}"#;
/// Memory of the daemon without any session: a build for tests, which is larger than others.
const BARE: usize = 75 << 20;
/// What a session that nothing happens to may take: 10,000 of them and the daemon stay under 150 MB.
const EACH: usize = 7500;

fn count() -> usize {
    std::env::var("PI_GRAFT_IDLE").ok().and_then(|count| count.parse().ok()).unwrap_or(1000)
}

#[test]
fn sessions_that_nothing_happens_to_take_little_memory_and_no_processor_time() {
    let stage = Stage::new(20, &scripted("looker", &[], LOOKS));
    let sessions = count();
    (0..sessions).for_each(|number| write(&stage, number));
    let daemon = stage.daemon_with(&["--closed", "--backfill"], &[("RUST_LOG", "info")]);
    until("each was read", || known(&stage) == sessions);
    until("all is done", || ticks_of(&daemon, Duration::from_millis(500)) == 0);
    let memory = memory_of(&daemon);
    eprintln!("{sessions} sessions, each of them read: {} MB", memory / 1_000_000);
    assert!(memory < BARE + sessions * EACH, "{memory} bytes for {sessions} sessions");
    // What comes with time comes with the minute.
    let idling = ticks_of(&daemon, Duration::from_secs(4));
    assert!(idling <= 2, "{idling} hundredths of a second in four seconds of idling");
    daemon.end();

    let daemon = stage.daemon_with(&["--closed", "--backfill"], &[("RUST_LOG", "debug")]);
    until("all is done", || ticks_of(&daemon, Duration::from_millis(500)) == 0);
    let (memory, ticks) = (memory_of(&daemon), ticks(&daemon));
    eprintln!("a warm start: {ticks} hundredths of a second, {} MB", memory / 1_000_000);
    assert!(ticks < 200 && memory < BARE + sessions * EACH / 2, "{ticks} ticks, {memory} bytes");
    let log = daemon.end();
    assert!(!log.contains("ran plugin"), "nothing is read again: {log}");
}

/// A session of ten turns, in one of many directories.
fn write(stage: &Stage, number: usize) {
    let dir = stage.root().join(format!("--{}--", number / 50));
    fs::create_dir_all(&dir).expect("a directory");
    let time = "2026-01-01T00:00:00.000Z";
    let mut text =
        format!("{{\"type\":\"session\",\"version\":3,\"id\":\"s{number}\",\"timestamp\":\"{time}\",\"cwd\":\"/\"}}\n");
    let (words, mut parent) = ("word ".repeat(100), "null".to_owned());
    for entry in 0..20 {
        let role = ["user", "assistant"][entry % 2];
        writeln!(text, r#"{{"type":"message","id":"e{entry}","parentId":{parent},"timestamp":"{time}","message":{{"role":"{role}","content":"{words}","stopReason":"stop"}}}}"#).expect("a String takes all");
        parent = format!("\"e{entry}\"");
    }
    fs::write(dir.join(format!("{number}.jsonl")), text).expect("a session");
}

fn known(stage: &Stage) -> usize {
    let status: serde_json::Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).expect("JSON");
    usize::try_from(status["known"].as_u64().expect("a number")).expect("a number")
}

/// Its memory, its program included.
fn memory_of(daemon: &Daemon) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    line.split_ascii_whitespace().nth(1).and_then(|kb| kb.parse::<usize>().ok()).expect("a number") << 10
}

/// The hundredths of a second of processor time that it has used so far.
fn ticks(daemon: &Daemon) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.id())).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let times = fields.split_ascii_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

/// The same within a time.
fn ticks_of(daemon: &Daemon, within: Duration) -> u64 {
    let before = ticks(daemon);
    std::thread::sleep(within);
    ticks(daemon) - before
}
