//! `kill -9` at each labelled step, and at any moment: no line lost, doubled or torn, every proposal grafted once.

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

#[test]
fn a_crash_at_any_step_of_a_delivery_grafts_once() {
    for step in ["intended", "written", "done"] {
        let stage = Stage::new(20, &scripted("noter", &["append:custom"], NOTE));
        let path = stage.session("a.jsonl");
        let daemon = stage.daemon_with(&[], &[("PI_GRAFT_TEST_DIE_AT", step)]);
        let mut pi = Talk::begin(&path);
        pi.user("hello");
        pi.assistant("hi");
        daemon.wait_for_end();
        let daemon = stage.daemon(&[]);
        until(step, || Session::read(&path).customs("note").len() == 1);
        daemon.end();
        stage.once(&["--closed"]);
        let file = Session::read(&path);
        file.assert_sound();
        assert_eq!((file.receipts(), file.customs("note").len()), (1, 1), "died at {step}");
    }
}

/// The writer is like a Pi that is there all the time: it never reads the file again, so what lands while it writes is beside
/// its next entry. `--closed` says that there is none; what the daemon promises even then is that nothing is lost or doubled.
#[test]
fn killed_again_and_again_beside_a_writer() {
    let stage = Stage::new(5, &scripted("noter", &["append:custom"], NOTE));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let turns = 12;
    for turn in 0..turns {
        let daemon = stage.daemon(&["--closed"]);
        pi.user(&format!("turn {turn}"));
        pi.assistant("ok");
        // Whatever it is at by then.
        std::thread::sleep(std::time::Duration::from_millis(turn * 4));
        daemon.kill();
    }
    // Pi's own branch is the one the file ends on, whatever landed beside it.
    pi.user("the last turn");
    pi.assistant("ok");
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    file.assert_sound();
    // What landed beside the writer's next entry was grafted again, and counts on the branch once.
    let mut of: Vec<String> =
        file.live_customs("note").iter().map(|n| crate::talk::member(n, &["data", "of"])).collect();
    assert_eq!(of.len(), turns as usize + 1);
    of.sort();
    of.dedup();
    assert_eq!(of.len(), turns as usize + 1);
}
