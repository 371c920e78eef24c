//! The system's clock is set forward and back by a year, before a start and under a running daemon. The real daemon is told
//! another time by a library that is loaded ahead of the C library's (`tests/clock/set.rs`); what Pi writes bears that time too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::failures::{plugin, quarantine, version};
use crate::stage::{Daemon, Stage, scripted, until};
use crate::talk::{Session, Talk};

const YEAR: i64 = 365 * 24 * 60 * 60;

/// A clock for one scene.
struct Clock<'a> {
    stage: &'a Stage,
    library: &'static Path,
}

impl<'a> Clock<'a> {
    /// Where there is no such library or no compiler for it, this says that the scene was skipped.
    fn new(stage: &'a Stage) -> Option<Clock<'a>> {
        static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
        let library = LIBRARY.get_or_init(compiled).as_deref();
        if library.is_none() {
            eprintln!("skipped: no clock can be set here");
        }
        let clock = Clock { stage, library: library? };
        clock.set(0);
        Some(clock)
    }

    /// The clock is so many seconds ahead from now on.
    fn set(&self, ahead: i64) {
        let path = self.stage.path("clock");
        std::fs::write(path.with_extension("new"), ahead.to_string()).expect("written");
        std::fs::rename(path.with_extension("new"), path).expect("the clock is set");
    }

    fn daemon(&self, args: &[&str]) -> Daemon {
        let (clock, library) = (self.stage.path("clock"), self.library);
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        self.stage.daemon_with(args, &[("LD_PRELOAD", &text(library)), ("PI_GRAFT_TEST_CLOCK", &text(&clock))])
    }
}

fn compiled() -> Option<PathBuf> {
    let (source, to) = (
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/clock/set.rs"),
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("clock-{}.so", std::process::id())),
    );
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(compiler);
    command.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", source, "-o"]).arg(&to);
    let done = cfg!(target_os = "linux") && command.status().is_ok_and(|status| status.success());
    done.then_some(to)
}

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;

fn notes(path: &Path) -> usize {
    Session::read(path).customs("note").len()
}

fn turn(pi: &mut Talk) {
    pi.user("hello");
    pi.assistant("hi");
}

/// Everything of the session is in it, each once.
fn grafted(path: &Path, count: usize) {
    until("the graft", || notes(path) == count);
    Session::read(path).assert_sound();
}

#[test]
fn grafts_come_whatever_is_done_to_the_clock() {
    for first in [0, YEAR, -YEAR] {
        let stage = Stage::new(20, &scripted("noter", &["append:custom"], NOTE));
        let Some(clock) = Clock::new(&stage) else { return };
        clock.set(first);
        let daemon = clock.daemon(&["--closed"]);
        let path = stage.session("a.jsonl");
        turn(&mut Talk::begin(&path).ahead(first));
        grafted(&path, 1);
        for (n, ahead) in [YEAR, -YEAR, 0].into_iter().enumerate() {
            clock.set(ahead);
            turn(&mut Talk::reopen(&path).ahead(ahead));
            grafted(&path, n + 2);
            let other = stage.session(&format!("begun-{n}.jsonl"));
            turn(&mut Talk::begin(&other).ahead(ahead));
            grafted(&other, 1);
        }
        daemon.end();
        assert_eq!(notes(&path), 4);
    }
}

/// Somebody is at work, as far as can be told: a call has no result yet.
#[test]
fn a_clock_that_is_set_forward_makes_nothing_quiet_that_is_not() {
    let stage = Stage::new(20, &scripted("noter", &["append:custom"], NOTE));
    stage.hold_for("1h");
    let Some(clock) = Clock::new(&stage) else { return };
    let daemon = clock.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    let waits = || {
        let said = String::from_utf8_lossy(&stage.run(&["status", "--json"]).stdout).into_owned();
        said.contains("the turn has not ended") && notes(&path) == 0
    };
    until("it waits", waits);
    clock.set(YEAR);
    pi = pi.ahead(YEAR);
    pi.entry("session_info", r#""name":"later""#);
    // Another one shows that time has gone on.
    let other = stage.session("b.jsonl");
    turn(&mut Talk::begin(&other).ahead(YEAR));
    grafted(&other, 1);
    assert!(waits());
    pi.result("c1", "done");
    pi.assistant("hi");
    grafted(&path, 1);
    daemon.end();
}

/// The pause before a run is made again is neither over at once nor lasts for a year.
#[test]
fn a_run_is_made_again_after_its_pause_whatever_is_done_to_the_clock() {
    let stage = Stage::new(20, "");
    let Some(clock) = Clock::new(&stage) else { return };
    let file = version(&stage, "one");
    let slow = |retry: &str| {
        let limits = format!("fuel = 1000000000000\ntime = \"20ms\"\nretry = {retry:?}");
        let script = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"loop":true}]}"#;
        stage.configure(20, &plugin("slow", &file, &limits, script));
    };
    let tries = || quarantine(&stage)["runs"][0]["tries"].as_u64().unwrap_or(0);

    slow("1h");
    let mut daemon = clock.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    turn(&mut pi);
    daemon.wait_for("tried again in 1h");
    clock.set(YEAR);
    pi.ahead(YEAR).entry("session_info", r#""name":"later""#);
    let looked = |name: &str| {
        let other = stage.session(name);
        Talk::begin(&other).ahead(YEAR).user("hello");
        until("its run", || quarantine(&stage)["runs"].as_array().is_some_and(|runs| runs.len() == 2));
    };
    looked("b.jsonl");
    assert_eq!(
        quarantine(&stage)["runs"].as_array().expect("runs").iter().map(|run| run["tries"].as_u64()).max(),
        Some(Some(1))
    );
    daemon.kill();

    // It was put off a year ahead, by a clock that has been put right since.
    std::fs::remove_file(stage.session("b.jsonl")).expect("gone");
    clock.set(0);
    slow("50ms");
    let mut daemon = clock.daemon(&[]);
    daemon.wait_for("in quarantine until a new version comes");
    until("all tries", || tries() == 4);
    daemon.end();

    // And under a running daemon.
    let stage = Stage::new(20, "");
    let clock = Clock::new(&stage).expect("it was one before");
    let limits = "fuel = 1000000000000\ntime = \"20ms\"\nretry = \"300ms\"";
    let script = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"loop":true}]}"#;
    stage.configure(20, &plugin("slow", &version(&stage, "one"), limits, script));
    let mut daemon = clock.daemon(&[]);
    turn(&mut Talk::begin(&stage.session("a.jsonl")));
    daemon.wait_for("tried again in 300ms");
    clock.set(-YEAR);
    daemon.wait_for("in quarantine until a new version comes");
    daemon.end();
}
