//! What the daemon leaves alone.

use std::fs;
use std::path::PathBuf;

use crate::stage::{Stage, scripted};
use crate::talk::Talk;

const NOTE: &str = r#"{"needs":["append:custom"],"on":["*"],"entry":[{"custom":{"type":"note"}}]}"#;

/// No session, a version it does not write, a link that leads out of the root, another ending.
#[test]
fn files_that_are_not_its_business_stay_as_they_are() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let outside = stage.path("outside.jsonl");
    let mut pi = Talk::begin(&outside);
    pi.user("hello");
    pi.assistant("hi");
    std::os::unix::fs::symlink(&outside, stage.session("link.jsonl")).expect("a link");
    std::os::unix::fs::symlink(stage.path("."), stage.root().join("dir")).expect("a link");
    let talk = |version: &str| {
        format!(
            "{{\"type\":\"session\",\"version\":{version},\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}}\n{}\n",
            r#"{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"assistant","content":[],"stopReason":"stop"}}"#
        )
    };
    let files: Vec<(PathBuf, String)> = [
        ("v4.jsonl", talk("4")),
        ("v2.jsonl", talk("2")),
        ("v1.jsonl", talk("1")),
        ("no-session.jsonl", "{\"type\":\"log\"}\n{\"id\":\"x\"}\n".to_owned()),
        ("garbage.jsonl", "\u{feff}{\"type\":\"session\",\"id\":\"x\"}\nnot JSON\n".to_owned()),
        ("empty.jsonl", String::new()),
        ("session.txt", talk("3")),
    ]
    .map(|(name, text)| (stage.session(name), text))
    .into();
    for (path, text) in &files {
        fs::write(path, text).expect("written");
    }
    let before = fs::read(&outside).expect("outside");
    let said = stage.once(&["--backfill", "--closed"]);
    for (path, text) in &files {
        assert_eq!(&fs::read_to_string(path).expect("still there"), text, "{}", path.display());
    }
    assert_eq!(fs::read(&outside).expect("outside"), before);
    assert!(said.contains("S11.2") && said.contains("S3:"), "{said}");
}

#[test]
fn a_state_directory_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new(1, "");
    let state = stage.path("state");
    fs::create_dir(&state).expect("a directory");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).expect("open to all");
    let output = stage.run(&["run", "--once"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("others can write"));
}

#[test]
fn a_second_daemon_stays_off() {
    let stage = Stage::new(1, "");
    let daemon = stage.daemon(&[]);
    let output = stage.run(&["run", "--once"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("another pi-graft"), "{said}");
    daemon.end();
}

#[test]
fn a_dry_run_writes_nothing_at_all() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    let before = fs::read(&path).expect("the session");
    let said = stage.once(&["--dry-run", "--closed"]);
    assert!(said.contains("2 batches proposed, 0 grafted"), "{said}");
    assert_eq!(fs::read(&path).expect("the session"), before);
    assert!(!stage.path("state").exists());
}

/// The directory is moved elsewhere and a link put in its place, while a graft waits in it.
#[test]
fn a_directory_that_becomes_a_link_out_of_the_root_is_left_alone() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    daemon.wait_for("the turn has not ended");
    let before = fs::read(&path).expect("the session");
    let elsewhere = stage.path("elsewhere");
    fs::rename(stage.root().join("--work--"), &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, stage.root().join("--work--")).expect("a link");
    daemon.wait_for("not below a root any more");
    daemon.end();
    assert_eq!(fs::read(&path).expect("the session"), before);
}
