//! A disk that stays full for long: a real one, as small as can be, where this user may mount it. What each system call may say
//! is walked through in `host/tests/faults.rs`.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

/// More than the last page of a small session has room for.
fn noter() -> String {
    let data = "x".repeat(16 << 10);
    let note = format!(
        r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{{"custom":{{"type":"note","data":"{data}"}}}}]}}"#
    );
    scripted("noter", &["append:custom"], &note)
}

/// A small file system in memory, gone at the end of the scene.
struct Small(PathBuf);

impl Small {
    fn at(dir: &Path, size: &str) -> Option<Small> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "small"]).arg(dir);
        if !mount.output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: this user may not mount a small disk");
            return None;
        }
        Some(Small(dir.to_owned()))
    }

    /// Fills it to the last byte.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut filler = File::create_new(&path).expect("a file");
        while filler.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn on_a_full_disk_a_graft_waits_for_room_and_other_disks_do_not() {
    let stage = Stage::new(20, &noter());
    let (full, roomy) = (stage.session("full.jsonl"), stage.root().join("--other--/roomy.jsonl"));
    let Some(small) = Small::at(full.parent().expect("its directory"), "256k") else { return };
    std::fs::create_dir(roomy.parent().expect("its directory")).expect("another directory");
    let mut daemon = stage.daemon(&["--closed"]);
    let mut pi = Talk::begin(&full);
    pi.user("hello");
    pi.call("c1", "bash");
    daemon.wait_for("waiting: the turn has not ended");
    let filler = small.fill();
    pi.result("c1", "done");
    pi.assistant("hi");
    let waits = || {
        let status: serde_json::Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).expect("JSON");
        status["sessions"].as_array().is_some_and(|all| {
            all.iter().any(|one| one["waiting"] == "there is no room for it on the disk; it is written once there is")
        })
    };
    until("status to say why", waits);
    let before = std::fs::read(&full).expect("the session");
    let mut other = Talk::begin(&roomy);
    other.user("hello");
    other.assistant("hi");
    until("the graft elsewhere", || Session::read(&roomy).customs("note").len() == 1);
    until("a second try", || daemon.log().matches("kept for later").count() >= 2);
    assert_eq!(daemon.log().matches("WARN").count(), 1, "it is said once: {}", daemon.log());
    assert_eq!(std::fs::read(&full).expect("the session"), before, "not one byte is written");
    std::fs::remove_file(filler).expect("room again");
    until("the graft", || Session::read(&full).customs("note").len() == 1);
    daemon.end();
    stage.once(&["--closed"]);
    let file = Session::read(&full);
    file.assert_sound();
    assert_eq!((file.receipts(), file.customs("note").len()), (1, 1));
}

/// A turn as of a Pi that has just opened the session.
fn turn(path: &Path) {
    let mut pi = Talk::reopen(path);
    pi.user("hello");
    pi.assistant("hi");
}

fn notes(path: &Path) -> usize {
    Session::read(path).customs("note").len()
}

fn plain_noter() -> String {
    let note = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;
    scripted("noter", &["append:custom"], note)
}

/// What is not written down in the store is not written into a session.
#[test]
fn where_the_stores_own_disk_is_full_nothing_is_grafted_until_there_is_room() {
    let stage = Stage::new(1, &plain_noter());
    std::fs::create_dir(stage.path("state")).expect("a directory");
    let Some(small) = Small::at(&stage.path("state"), "6m") else { return };
    let path = stage.session("a.jsonl");
    drop(Talk::begin(&path));
    let mut daemon = stage.daemon(&["--closed"]);
    turn(&path);
    until("the first graft", || notes(&path) == 1);
    let filler = small.fill();
    // The store has pages to spare for a while.
    let mut turns = 1;
    while !daemon.log().contains("the store could not be written") {
        assert!(turns < 2000, "it is written although there is no room");
        turn(&path);
        turns += 1;
        let log = || daemon.log().contains("the store could not be written");
        until("a graft, or word of the store", || notes(&path) == turns || log());
    }
    let waits = || {
        let said = String::from_utf8_lossy(&stage.run(&["status", "--json"]).stdout).into_owned();
        said.contains("the store could not be written")
    };
    until("status to say why", waits);
    turn(&path);
    turns += 1;
    let before = notes(&path);
    daemon.wait_for("trying again in 4 s");
    assert_eq!(notes(&path), before, "nothing is grafted meanwhile");
    daemon.kill();

    // Nor is one that starts now of any use, and it says so.
    let output = stage.run(&["run", "--once", "--closed"]);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ake room") || said.contains("free some disk space"), "{said}");
    assert!(!said.contains("ove it away"), "{said}");

    std::fs::remove_file(filler).expect("room again");
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!((notes(&path), file.receipts()), (turns, turns));
}

/// Where writes of the store fail, and those to sessions do not: at any moment between what is intended and what is done.
#[test]
fn a_store_that_fails_now_and_then_loses_nothing_and_doubles_nothing() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let stage = Stage::new(1, &plain_noter());
    let path = stage.session("a.jsonl");
    drop(Talk::begin(&path));
    let daemon = stage.daemon(&["--closed"]);
    let pid = Pid::from_raw(daemon.id().cast_signed()).expect("a pid");
    // Of the store's pages those that are further back cannot be written; the session is smaller.
    let fails = |fails: bool| {
        let current = fails.then_some(128 << 10);
        prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum: None }).expect("a limit");
    };
    for turns in 1..=4 {
        turn(&path);
        for wait in 0..turns.min(2) {
            let from = daemon.log().len();
            (0..wait * 20).for_each(|_| std::thread::yield_now());
            fails(true);
            let more = || daemon.log().len() > from || notes(&path) == turns;
            until("something to happen", more);
            fails(false);
        }
        until("the graft", || notes(&path) == turns);
    }
    let log = daemon.end();
    assert!(log.contains("the store could not be written"), "it never failed: {log}");
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!((notes(&path), file.receipts()), (4, 4));
}
