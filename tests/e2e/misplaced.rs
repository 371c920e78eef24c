//! Another writes between our check and our write: the graft would be where Pi goes on, and that line off the branch
//! (product.md section 5, *misplaced*). The daemon is held at that very moment.

use std::path::{Path, PathBuf};

use crate::peer::Peer;
use crate::stage::{Daemon, Stage, scripted, until};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

/// A stage whose daemon stops at a labelled step, each time, until it may go on.
struct Gap {
    stage: Stage,
    path: PathBuf,
    held: PathBuf,
}

impl Gap {
    fn new(plugins: &str) -> Gap {
        let stage = Stage::new(20, plugins);
        let (path, held) = (stage.session("a.jsonl"), stage.path("held"));
        Gap { stage, path, held }
    }

    fn daemon(&self, step: &str, more: &[(&str, &str)]) -> Daemon {
        let wait = format!("{step}={}", self.held.display());
        self.stage.daemon_with(&[], &[&[("PI_GRAFT_TEST_WAIT_AT", wait.as_str())], more].concat())
    }

    fn wait(&self) {
        until("the step", || self.held.exists());
    }

    fn go_on(&self) {
        let _ = std::fs::remove_dir(&self.held);
    }

    /// Waits while nobody is held any more.
    fn until(&self, what: &str, there: impl Fn(&Session) -> bool) {
        until(what, || {
            self.go_on();
            there(&Session::read(&self.path))
        });
    }
}

fn rejoins(file: &Session) -> usize {
    file.customs("pi-graft.rejoin").len()
}

fn noter() -> String {
    scripted("noter", &["append:custom"], NOTE)
}

/// ```text
/// u1 ─ a1 ┬─ u2 ─ J ─ R1' n1' …     u2 came into the gap; J leads back to it
///         └─ R1 n1
/// ```
#[test]
fn the_line_that_came_between_is_on_the_branch_again_and_the_graft_too() {
    let gap = Gap::new(&noter());
    let mut daemon = gap.daemon("checked", &[]);
    let mut pi = Talk::begin(&gap.path);
    pi.user("one");
    pi.assistant("ok");
    gap.wait();
    let between = pi.user("in the gap");
    gap.go_on();
    daemon.wait_for("misplaced");
    gap.until("the way back", |file| rejoins(file) == 1);
    assert!(Session::read(&gap.path).is_live(&between));
    gap.until("both notes on the branch", |file| file.live_customs("note").len() == 2);
    let file = Session::read(&gap.path);
    file.assert_sound();
    assert!(file.is_live(&between));
    assert_eq!((file.receipts(), rejoins(&file)), (3, 1));
    let outcomes = gap.stage.outcomes();
    for outcome in ["misplaced", "rejoined", "orphaned", "offered again"] {
        assert!(outcomes.iter().any(|known| known == outcome), "{outcome}: {outcomes:?}");
    }
    daemon.end();
}

/// Whatever the system shows, somebody is there: until `live-hold` is over nothing is grafted behind the way back.
#[test]
fn after_a_misplaced_graft_a_pi_counts_as_there_for_live_hold() {
    let gap = Gap::new(&noter());
    gap.stage.hold_for("1h");
    let daemon = gap.daemon("checked", &[]);
    let mut pi = Talk::begin(&gap.path);
    pi.user("one");
    pi.assistant("ok");
    gap.wait();
    pi.user("in the gap");
    pi.assistant("ok");
    gap.go_on();
    gap.until("the way back", |file| rejoins(file) == 1);
    gap.until("word of the wait", |_| {
        daemon.log().contains("waiting: somebody wrote at the moment of a graft, so a Pi is there")
    });
    let other = gap.stage.session("other.jsonl");
    let mut pi = Talk::begin(&other);
    pi.user("one");
    pi.assistant("ok");
    gap.until("a graft elsewhere", |_| Session::read(&other).receipts() == 1);
    let file = Session::read(&gap.path);
    assert_eq!((file.receipts(), rejoins(&file)), (1, 1));
    daemon.end();
    gap.stage.once(&["--closed"]);
    let file = Session::read(&gap.path);
    file.assert_sound();
    assert_eq!(file.live_customs("note").len(), 2);
}

#[test]
fn the_way_back_may_be_misplaced_itself() {
    let gap = Gap::new(&noter());
    let daemon = gap.daemon("checked", &[]);
    let mut pi = Talk::begin(&gap.path);
    pi.user("one");
    pi.assistant("ok");
    for text in ["in the gap", "in the gap of the way back", "and once more"] {
        gap.wait();
        pi.user(text);
        gap.go_on();
    }
    let last = pi.user("the last word");
    gap.until("the way back", |file| file.is_live(&last) && file.live_customs("note").len() == 5);
    Session::read(&gap.path).assert_sound();
    daemon.end();
}

/// A Pi that is there goes on from its own line: nothing has to be led back.
#[test]
fn a_pi_that_writes_on_needs_no_way_back() {
    let gap = Gap::new(&noter());
    gap.stage.configure(1500, &noter());
    let mut daemon = gap.daemon("checked", &[]);
    let mut pi = Talk::begin(&gap.path);
    pi.user("one");
    pi.assistant("ok");
    gap.wait();
    pi.user("in the gap");
    gap.go_on();
    daemon.wait_for("misplaced");
    pi.assistant("ok");
    gap.until("both notes on the branch", |file| file.live_customs("note").len() == 2);
    let file = Session::read(&gap.path);
    file.assert_sound();
    assert_eq!(rejoins(&file), 0);
    daemon.end();
}

#[test]
fn a_crash_at_any_step_of_it_leads_back_once() {
    for step in ["written", "done", "rejoin-intended", "rejoin-written", "rejoin-done"] {
        let gap = Gap::new(&noter());
        let daemon = gap.daemon("checked", &[("PI_GRAFT_TEST_DIE_AT", step)]);
        let mut pi = Talk::begin(&gap.path);
        pi.user("one");
        pi.assistant("ok");
        gap.wait();
        let between = pi.user("in the gap");
        gap.go_on();
        release_until_ended(&gap, daemon);
        let daemon = gap.stage.daemon(&[]);
        until(step, || {
            let file = Session::read(&gap.path);
            file.is_live(&between) && file.live_customs("note").len() == 2
        });
        let file = Session::read(&gap.path);
        file.assert_sound();
        assert_eq!((rejoins(&file), file.receipts()), (1, 3), "died at {step}");
        daemon.end();
    }
}

/// It may be held at the same step again before it dies.
fn release_until_ended(gap: &Gap, daemon: Daemon) {
    let (held, done) = (gap.held.clone(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = std::fs::remove_dir(&held);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        daemon.wait_for_end();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    gap.go_on();
}

/// The first batch was about to be written when the bridge said hello: it is an orphan, and handed over. The second one is
/// not written any more.
#[test]
fn a_bridge_that_comes_while_a_graft_is_written_is_handed_it_again() {
    let gap = Gap::new(&[noter(), scripted("other", &["append:custom"], NOTE)].concat());
    let mut daemon = gap.daemon("intended", &[]);
    let mut pi = Talk::begin(&gap.path);
    pi.user("one");
    let leaf = pi.assistant("ok");
    gap.wait();
    let (mut peer, welcome) = Peer::bridge(&gap.stage, &gap.path, Some(&leaf));
    assert_eq!(welcome["serves"], true);
    peer.say(&serde_json::json!({ "leaf": leaf, "idle": false, "on": "input" }));
    gap.go_on();
    daemon.wait_for("grafted");
    pi.user("two");
    let leaf = pi.assistant("ok");
    let drafts = boundary(&mut peer, &gap.path, &leaf);
    let of: Vec<(String, String)> = drafts
        .chunks(2)
        .map(|batch| (batch[0]["data"]["plugin"].to_string(), batch[0]["data"]["trigger"].to_string()))
        .collect();
    assert_eq!(of.len(), 4, "each plugin's note of each message: {of:?}");
    assert_eq!(Session::read(&gap.path).receipts(), 1, "the second was not written behind the bridge's back");
    daemon.end();
}

fn boundary(peer: &mut Peer, path: &Path, leaf: &str) -> Vec<serde_json::Value> {
    assert!(path.exists());
    peer.say(&serde_json::json!({
        "ask": 1, "leaf": leaf, "ms": 20_000, "at": "turn_end", "outcome": "completed", "stopReason": "stop", "others": [],
    }));
    loop {
        let told = peer.hear().expect("an answer");
        if told["answer"] == 1 {
            return told["entries"].as_array().expect("entries").clone();
        }
    }
}
