//! A batch that was cut off in its write, and then the store is deleted: all that is known of it is what the file says.

use std::fs;
use std::path::Path;

use crate::stage::{Stage, scripted};
use crate::talk::{Session, Talk, member};

const THREE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[
    {"custom":{"type":"note","data":{"n":1}}},{"custom":{"type":"note","data":{"n":2}}},{"custom":{"type":"note","data":{"n":3}}}]}"#;
const SETTLED: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"later":"$trigger"}],
    "settled":[{"custom":{"type":"note","data":{"n":1}}},{"custom":{"type":"note","data":{"n":2}}}]}"#;

#[test]
fn what_is_missing_behind_a_receipt_is_made_again_though_the_store_is_lost() {
    for args in [&["--closed"][..], &["--closed", "--backfill"]] {
        let (stage, path) = grafted(THREE);
        cut_off(&path, 2);
        let said = lose_the_store(&stage, args);
        assert!(said.contains("the store that knew the rest is lost"), "{said}");
        let file = Session::read(&path);
        file.assert_sound();
        let numbers: Vec<_> = file.live_customs("note").iter().map(|note| member(note, &["data", "n"])).collect();
        assert_eq!(numbers, ["1", "2", "3"], "{args:?}: {said}");
        let receipts = file.live_customs("pi-graft.run");
        assert_eq!(member(&receipts[1], &["data", "continues"]), member(&receipts[0], &["data", "batch"]));
        let whole = fs::read(&path).expect("the session");
        lose_the_store(&stage, args);
        assert_eq!(fs::read(&path).expect("the session"), whole, "it is whole now");
    }
}

#[test]
fn what_on_settled_was_given_is_lost_with_the_store_and_that_is_told() {
    let (stage, path) = grafted(SETTLED);
    cut_off(&path, 1);
    let before = fs::read(&path).expect("the session");
    let said = lose_the_store(&stage, &["--closed"]);
    assert!(said.contains("what its run was given is lost too"), "{said}");
    assert_eq!(stage.outcomes(), ["torn"]);
    assert_eq!(fs::read(&path).expect("the session"), before);
}

#[test]
fn a_fork_of_a_session_with_half_a_batch_is_left_as_it_is() {
    let (stage, path) = grafted(THREE);
    cut_off(&path, 2);
    let text = fs::read_to_string(&path).expect("the session");
    let (_, entries) = text.split_once('\n').expect("a header");
    fs::remove_file(&path).expect("the origin goes");
    let fork = stage.session("fork.jsonl");
    let header = r#"{"type":"session","version":3,"id":"f","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/work","parentSession":"/gone.jsonl"}"#;
    let before = format!("{header}\n{entries}");
    fs::write(&fork, &before).expect("the fork");
    lose_the_store(&stage, &["--closed"]);
    assert_eq!(fs::read_to_string(&fork).expect("the fork"), before);
}

/// A session of long ago with one graft.
fn grafted(script: &str) -> (Stage, std::path::PathBuf) {
    let stage = Stage::new(1, &scripted("one", &["append:custom"], script));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    stage.once(&["--closed"]);
    let text = fs::read_to_string(&path).expect("the session");
    let year = &member(text.lines().next().expect("a header"), &["timestamp"])[..5];
    fs::write(&path, text.replace(&format!("\"timestamp\":\"{year}"), "\"timestamp\":\"2024-")).expect("long ago");
    (stage, path)
}

/// The file as if the write of the graft had ended before its last lines.
fn cut_off(path: &Path, lines: usize) {
    let text = fs::read_to_string(path).expect("the session");
    let kept = text.lines().count() - lines;
    let text: String = text.split_inclusive('\n').take(kept).collect();
    fs::write(path, text).expect("cut");
}

fn lose_the_store(stage: &Stage, args: &[&str]) -> String {
    fs::remove_file(stage.path("state/state.redb")).expect("the store is deleted");
    stage.once(args)
}
