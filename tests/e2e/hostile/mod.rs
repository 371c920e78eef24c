//! A plugin that misbehaves costs its own run only: every kind of mischief at once on one daemon, beside a good plugin.

#[expect(dead_code, reason = "what takes minutes to compile is for the sandbox's tests")]
mod bombs;
mod cases;
mod wat;

use std::path::Path;

use crate::stage::{Daemon, Stage, scripted, until};
use crate::talk::{Session, Talk, member};

/// Bytes of the entry that is far too long for any guest.
const HUGE: usize = 300 << 20;
/// What the daemon may take beside the pages of files that the system could drop at any time: a huge line once as text
/// and once more while it is read, and the memory of the runs.
const MOST_MEMORY: u64 = (3 * HUGE as u64) + (256 << 20);

#[test]
fn the_good_ones_grafts_all_land_and_nothing_else_does() {
    let stage = Stage::new(50, "");
    let cases = cases::all(&stage);
    let (before, behind) = cases.split_at(cases.len() / 2);
    let tables = |cases: &[cases::Case]| cases.iter().map(|case| case.table.clone()).collect::<String>();
    let good = scripted("good", &["append:custom"], cases::GOOD);
    stage.configure(
        50,
        &format!("[limits]\nfuel = 300000000\nmemory = \"16MiB\"\n{}{good}{}", tables(before), tables(behind)),
    );
    let daemon = stage.daemon(&["--closed"]);
    let paths = ["a.jsonl", "huge.jsonl"].map(|name| stage.session(name));
    let mut asked = [Vec::new(), Vec::new()];
    let mut pi = Talk::begin(&paths[0]);
    pi.entry("custom", r#""customType":"wake""#);
    assert_eq!(pi.assistant(cases::EDITED_OUT), cases::EDITED);
    pi.entry("context_edit", &format!(r#""targetId":"{}","replacement":{{"content":"gone"}}"#, cases::EDITED));
    for text in ["hello", "again"] {
        asked[0].push(pi.user(text));
        pi.assistant("hi");
    }
    let mut pi = Talk::begin(&paths[1]);
    asked[1].push(pi.user(&"long ".repeat(HUGE / 5)));
    pi.assistant("hi");
    asked[1].push(pi.user("and now?"));
    pi.assistant(cases::OTHERS_SECRET);
    for (path, asked) in paths.iter().zip(&asked) {
        until("the good one's grafts", || noted(path) == *asked);
    }
    for case in &cases {
        until(&format!("what {} did in the log", case.name), || case.is_told(&daemon.log()));
    }
    // A turn more: whatever the bad ones left behind would land now at the latest.
    let mut pi = Talk::reopen(&paths[0]);
    asked[0].push(pi.user("still there?"));
    pi.assistant("yes");
    until("one more graft", || noted(&paths[0]) == asked[0]);
    let most = peak_memory(&daemon);
    let log = daemon.end();
    for (path, asked) in paths.iter().zip(&asked) {
        let file = Session::read(path);
        file.assert_sound();
        assert_eq!(file.receipts(), asked.len(), "nothing but the good one's");
    }
    assert!(!log.contains(cases::OTHERS_SECRET), "it read another session");
    assert!(!log.contains(cases::EDITED_OUT), "it read what an edit took out");
    assert!(most < MOST_MEMORY, "{most} bytes");
}

/// Which entries the good plugin noted.
fn noted(path: &Path) -> Vec<String> {
    Session::read(path).customs("good").iter().map(|entry| member(entry, &["data", "of"])).collect()
}

#[test]
fn a_plugin_that_needs_what_is_not_granted_is_not_loaded() {
    let script = r#"{"needs":["append:custom"],"on":["*"]}"#;
    let stage = Stage::new(50, &scripted("greedy", &[], script));
    let output = stage.run(&["run", "--once"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("append:custom") && said.contains("grants"), "{said}");
}

/// The most bytes that a process ever had in memory.
#[cfg(target_os = "linux")]
fn peak_memory(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10
}

/// Not known here.
#[cfg(not(target_os = "linux"))]
fn peak_memory(_: &Daemon) -> u64 {
    0
}
