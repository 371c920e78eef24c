//! What a file system may hold or do that no Pi would.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use crate::stage::{Stage, append, scripted, until};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;

fn stage(settle_ms: u64) -> Stage {
    Stage::new(settle_ms, &scripted("noter", &["append:custom"], NOTE))
}

fn notes(path: &std::path::Path) -> usize {
    Session::read(path).customs("note").len()
}

/// Opening a pipe waits for a writer. One that stands where a session with something pending was must hold nobody up.
#[test]
fn a_pipe_in_a_sessions_place_holds_nobody_up() {
    let stage = stage(20);
    let (path, other) = (stage.session("a.jsonl"), stage.session("b.jsonl"));
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    let mut daemon = stage.daemon(&[]);
    daemon.wait_for("waiting");
    fs::remove_file(&path).expect("gone");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    daemon.end();
    let daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&other);
    pi.user("hello");
    pi.assistant("hi");
    until("the graft", || notes(&other) == 1);
    daemon.end();
    let output = stage.run(&["run", "--once", path.to_str().expect("a path")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("not a regular file"), "{said}");
}

#[test]
fn a_name_that_is_not_utf8_is_a_name() {
    let stage = stage(20);
    let path = stage.root().join(OsStr::from_bytes(b"--caf\xe9--"));
    fs::create_dir(&path).expect("a directory");
    let path = path.join("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    stage.once(&["--closed"]);
    stage.once(&["--closed"]);
    assert_eq!(notes(&path), 1);
    // Nor does it cost anybody the answer of a daemon.
    let daemon = stage.daemon(&["--closed"]);
    for args in [&["status", "--all", "--json"][..], &["log", "--json"], &["pause", "--session", "a"]] {
        let output = stage.run(args);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("--caf\u{fffd}--"), "{args:?}: {said}");
    }
    daemon.end();
}

/// Copied from a machine whose clock is ahead: the file's time says nothing then, and the quiet counts from now.
#[test]
fn a_modification_time_in_the_future_does_not_hold_a_graft_back() {
    let stage = stage(20);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    let file = File::options().append(true).open(&path).expect("the session");
    file.set_modified(SystemTime::now() + Duration::from_secs(3600)).expect("a later time");
    let daemon = stage.daemon(&[]);
    until("the graft", || notes(&path) == 1);
    daemon.end();
}

/// A copy is followed from its present end, and a slow one is not at its end when it is first seen.
#[test]
fn a_copy_that_arrives_slowly_is_still_a_copy() {
    let stage = stage(20);
    let (path, copy) = (stage.session("a.jsonl"), stage.session("b.jsonl"));
    let mut pi = Talk::begin(&path);
    for turn in ["one", "two", "three"] {
        pi.user(turn);
    }
    let text = fs::read_to_string(&path).expect("the session");
    let daemon = stage.daemon(&["--closed"]);
    until("the grafts", || notes(&path) == 3);
    for line in text.split_inclusive('\n') {
        append(&copy, line);
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut pi = Talk::reopen(&copy);
    pi.user("in the copy");
    pi.assistant("hi");
    until("the graft", || notes(&copy) == 1);
    let status: serde_json::Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).expect("JSON");
    let sessions = status["sessions"].as_array().expect("a list");
    let told = sessions.iter().filter(|session| session["history"].as_str().is_some_and(|why| why.contains("a copy")));
    let told: Vec<_> = told.map(|session| session["path"].as_str().expect("a path").to_owned()).collect();
    assert_eq!(told, [copy.to_string_lossy()]);
    assert!(daemon.log().contains("a copy of a session that is elsewhere: followed from its end"));
    daemon.end();
}

/// Moved to another file system, so that it is another file, while another session came to its path: what is pending goes along.
#[test]
fn a_session_whose_path_is_another_ones_by_now_was_moved_and_is_no_copy() {
    let stage = stage(1);
    stage.hold_for("10m");
    let (path, elsewhere, other) = (stage.session("a.jsonl"), stage.session("moved.jsonl"), stage.session("b.jsonl"));
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    stage.once(&[]);
    assert_eq!(notes(&path), 0, "it is pending");
    fs::copy(&path, &elsewhere).expect("copied");
    let mut pi = Talk::begin(&other);
    pi.user("hello");
    pi.assistant("hi");
    fs::rename(&other, &path).expect("put in its place");
    let mut pi = Talk::reopen(&elsewhere);
    pi.result("c1", "ok");
    pi.assistant("done");
    stage.once(&["--closed"]);
    assert_eq!((notes(&elsewhere), notes(&path)), (1, 1));
}

/// The copy is met first, by its name. It is the very file that is the session, and not whichever copy of it comes first.
#[test]
fn of_a_session_that_was_moved_and_a_copy_of_it_the_copy_is_the_copy() {
    let stage = stage(1);
    stage.hold_for("10m");
    let (path, moved, copy) = (stage.session("m.jsonl"), stage.session("z.jsonl"), stage.session("b.jsonl"));
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    stage.once(&[]);
    assert_eq!(notes(&path), 0, "it is pending");
    fs::rename(&path, &moved).expect("moved");
    fs::copy(&moved, &copy).expect("copied");
    let mut pi = Talk::reopen(&moved);
    pi.result("c1", "ok");
    pi.user("more");
    pi.assistant("done");
    stage.once(&["--closed"]);
    assert_eq!((notes(&moved), notes(&copy)), (2, 0));
}

/// Much is pending and the user does not want to wait: what is left is done at the next start.
#[test]
fn an_end_in_the_middle_of_many_grafts_is_soon() {
    let stage = stage(300);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let turns = 300;
    for turn in 0..turns {
        pi.user(&format!("turn {turn}"));
    }
    pi.assistant("done");
    let mut daemon = stage.daemon(&["--closed"]);
    daemon.wait_for("grafted");
    daemon.end();
    let there = notes(&path);
    assert!(there < turns, "all of them were waited for");
    Session::read(&path).assert_sound();
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!((file.receipts(), file.customs("note").len()), (turns, turns));
}

/// Two entries that are each other's parents: passed over with a word, and what comes behind on another root is handled.
#[test]
fn a_circle_of_parents_blocks_nothing_behind_it() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let message = |id: &str, parent: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"timestamp\":\"2099-01-01T00:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}\n"
        )
    };
    crate::stage::append(&path, &(message("c1", "c2") + &message("c2", "c1")));
    pi.user("hello");
    pi.assistant("hi");
    let said = stage.once(&["--closed"]);
    assert!(said.contains("S8.5") && !said.contains("failed:"), "{said}");
    assert!(!Session::read(&path).customs("note").is_empty(), "{said}");
}

/// As a migration in place does: every line is another one, so that none stands where the last handled line stood.
#[test]
fn a_session_that_was_rewritten_is_known_by_its_count() {
    let stage = Stage::new(1, "");
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    for turn in 0..5 {
        pi.user(&format!("turn {turn}"));
        pi.assistant("ok");
    }
    assert!(stage.once(&["--closed"]).contains("10 entries handled"));
    let text = std::fs::read_to_string(&path).expect("the session");
    std::fs::write(&path, text.replace("}\n", &format!("{:300}}}\n", ""))).expect("rewritten");
    let said = stage.once(&["--closed"]);
    assert!(said.contains("0 entries handled"), "{said}");
    Talk::reopen(&path).user("and one more");
    let said = stage.once(&["--closed"]);
    assert!(said.contains("1 entries handled"), "{said}");
}
