//! `kill -9` of the real process at every labelled step there is, one scene a step; a new label without a scene fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::stage::{Daemon, Stage, append, scripted, until};
use crate::talk::{Session, Talk, member};

const TWO: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[
    {"custom":{"type":"note","data":{"n":1}}},{"custom":{"type":"note","data":{"n":2}}}]}"#;

/// How a daemon comes to a step.
#[derive(Clone, Copy)]
enum Way {
    /// It delivers.
    Delivers,
    /// It died in its write, which ended in the middle of a line.
    Completes,
    /// It died in its write, and another wrote behind what is there.
    Continues,
    /// Another wrote into the gap between check and write.
    LeadsBack,
}

const WALKS: [(&str, Way); 9] = [
    ("intended", Way::Delivers),
    ("checked", Way::Delivers),
    ("written", Way::Delivers),
    ("done", Way::Delivers),
    ("completed", Way::Completes),
    ("replaced", Way::Continues),
    ("rejoin-intended", Way::LeadsBack),
    ("rejoin-written", Way::LeadsBack),
    ("rejoin-done", Way::LeadsBack),
];

#[test]
fn killed_at_each_labelled_step_everything_is_grafted_once() {
    for (step, way) in WALKS {
        let stage = Stage::new(20, &scripted("noter", &["append:custom"], TWO));
        let path = stage.session("a.jsonl");
        let mut pi = Talk::begin(&path);
        let lives = match way {
            Way::Delivers => one_turn(&stage, &mut pi, step),
            Way::Completes | Way::Continues => {
                one_turn(&stage, &mut pi, "written").wait_for_end();
                cut_off(&path);
                if matches!(way, Way::Continues) {
                    append(&path, "{\"type\":\"custom\",\"customType\":\"torn by another\"\n");
                }
                stage.daemon_with(&["--closed"], &[("PI_GRAFT_TEST_DIE_AT", step)])
            }
            Way::LeadsBack => misplaced(&stage, &path, &mut pi, step),
        };
        lives.wait_for_end();
        let turns = if matches!(way, Way::LeadsBack) { 2 } else { 1 };
        let daemon = stage.daemon(&["--closed"]);
        until(step, || numbers(&path).len() == 2 * turns);
        daemon.end();
        let whole = fs::read(&path).expect("the session");
        stage.once(&["--closed"]);
        assert_eq!(fs::read(&path).expect("the session"), whole, "{step}: nothing is left to do");
        assert_eq!(numbers(&path), ["1", "2"].repeat(turns), "{step}");
    }
}

#[test]
fn no_labelled_step_is_without_a_walk() {
    let walked: BTreeSet<String> = WALKS.iter().map(|(step, _)| (*step).to_owned()).collect();
    let mut labels = BTreeSet::new();
    labels_below(&PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut labels);
    assert_eq!(labels, walked);
}

/// Pi talks while a daemon follows that dies at `step`.
fn one_turn(stage: &Stage, pi: &mut Talk, step: &str) -> Daemon {
    let daemon = stage.daemon_with(&["--closed"], &[("PI_GRAFT_TEST_DIE_AT", step)]);
    pi.user("hello");
    pi.assistant("hi");
    daemon
}

/// The same with a line of Pi's in the gap of the first graft.
fn misplaced(stage: &Stage, path: &Path, pi: &mut Talk, step: &str) -> Daemon {
    let held = stage.path("held");
    let wait = format!("checked={}", held.display());
    let env = [("PI_GRAFT_TEST_WAIT_AT", wait.as_str()), ("PI_GRAFT_TEST_DIE_AT", step)];
    let mut daemon = stage.daemon_with(&[], &env);
    pi.user("hello");
    pi.assistant("hi");
    until("the gap", || held.exists());
    pi.user("in the gap");
    // What leads back is checked too, and goes on at once.
    until("its end", || {
        let _ = fs::remove_dir(&held);
        daemon.has_ended()
    });
    Session::read(path).assert_sound();
    daemon
}

/// The file's last line ends in its middle.
fn cut_off(path: &Path) {
    let text = fs::read(path).expect("the session");
    fs::write(path, &text[..text.len() - 20]).expect("cut");
}

/// The notes on the branch that Pi would continue from.
fn numbers(path: &Path) -> Vec<String> {
    Session::read(path).live_customs("note").iter().map(|note| member(note, &["data", "n"])).collect()
}

fn labels_below(dir: &Path, labels: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).expect("the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            labels_below(&path, labels);
        } else {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let calls = text.split("steps::reached(\"").skip(1);
            labels.extend(calls.filter_map(|call| call.split_once('"')).map(|(label, _)| label.to_owned()));
        }
    }
}
