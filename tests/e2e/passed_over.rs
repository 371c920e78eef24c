//! Grafts that a Pi passes over, since it never loaded them; and branches that its user goes to (product.md section 5).
//!
//! The writer here is as a Pi that cannot be seen: it keeps its leaf in memory and never reads the file again.

use pi_session::entry::EntryKind;
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk, member};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;
/// What the user says is not for the model, and a message says so.
const REDACT: &str = r#"{"needs":["append:context_edit","append:custom_message"],"on":["message:user"],"entry":[
    {"edits":[{"target":"$trigger","text":"REDACTED"}]},{"custom_message":{"type":"told","content":"redacted"}}]}"#;

fn notes() -> Stage {
    Stage::new(20, &scripted("noter", &["append:custom"], NOTE))
}

fn redactor() -> Stage {
    Stage::new(20, &scripted("redactor", &["append:context_edit", "append:custom_message"], REDACT))
}

/// The triggers whose note is on the branch that the file ends on, sorted.
fn noted(file: &Session) -> Vec<String> {
    let mut of: Vec<String> = file.live_customs("note").iter().map(|note| member(note, &["data", "of"])).collect();
    of.sort();
    of
}

/// ```text
/// u1 ─ a1 ┬─ R1 n1
///         └─ u2 ─ a2 ─ R1' n1' ─ R2 n2
/// ```
#[test]
fn a_graft_that_pi_went_on_beside_is_grafted_again_on_pis_branch_once() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    let first = pi.user("one");
    pi.assistant("ok");
    until("the graft", || Session::read(&path).receipts() == 1);
    let second = pi.user("two");
    pi.assistant("ok");
    daemon.wait_for("orphaned: Pi went on beside it");
    until("both on the branch", || noted(&Session::read(&path)) == [first.clone(), second.clone()]);
    // A new Pi loads them.
    let third = Talk::reopen(&path).user("three");
    Talk::reopen(&path).assistant("ok");
    until("the third", || noted(&Session::read(&path)) == [first.clone(), second.clone(), third.clone()]);
    let outcomes = stage.outcomes();
    for (outcome, count) in [("orphaned", 1), ("offered again", 1), ("grafted", 4), ("known", 2)] {
        assert_eq!(outcomes.iter().filter(|known| *known == outcome).count(), count, "{outcome}: {outcomes:?}");
    }
    daemon.end();
    stage.once(&["--closed", "--backfill"]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(file.receipts(), 4);
}

/// Then a Pi is taken to be there, whatever the system shows: across a restart of the daemon, until a bridge says how it is.
#[test]
fn after_an_orphan_it_is_waited_for_a_long_quiet_or_a_bridge() {
    let stage = notes();
    stage.hold_for("10m");
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    pi.user("one");
    pi.assistant("ok");
    until("the graft", || Session::read(&path).receipts() == 1);
    pi.user("two");
    let leaf = pi.assistant("ok");
    let passed_over = || {
        let status: Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).expect("JSON");
        let session = &status["sessions"][0];
        let why = session["presenceWhy"].as_str().unwrap_or_default().to_owned();
        (session["pending"].as_array().map_or(0, Vec::len), why.contains("orphaned"))
    };
    until("what status says", || passed_over() == (2, true));
    daemon.end();
    let mut daemon = stage.daemon(&[]);
    daemon.wait_for("a Pi that cannot be seen has passed over a graft");
    assert_eq!(Session::read(&path).receipts(), 1);
    let (mut peer, welcome) = Peer::bridge(&stage, &path, Some(&leaf));
    assert_eq!(welcome["serves"], true);
    let told = peer.hear().expect("a push");
    assert_eq!(told["entries"].as_array().expect("entries").len(), 4, "{told}");
    peer.say(&json!({ "bye": "quit" }));
    until("both grafts", || Session::read(&path).live_customs("note").len() == 2);
    daemon.end();
}

/// The user had gone elsewhere before Pi's next entry: what the graft was made for is not there.
#[test]
fn an_orphan_whose_trigger_is_not_on_the_new_branch_is_stale() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    let first = pi.user("one");
    pi.assistant("ok");
    until("the first", || Session::read(&path).receipts() == 1);
    let mut pi = Talk::reopen(&path);
    let here = Session::read(&path).ids().last().expect("an entry").clone();
    pi.user("two");
    pi.assistant("ok");
    until("the second", || Session::read(&path).receipts() == 2);
    pi.go_to(&here);
    let other = pi.user("elsewhere");
    pi.assistant("ok");
    daemon.wait_for("orphaned: Pi went on beside it");
    until("that of the new branch", || noted(&Session::read(&path)) == [first.clone(), other.clone()]);
    assert_eq!(Session::read(&path).receipts(), 3);
    let outcomes = stage.outcomes();
    let at = outcomes.iter().position(|outcome| outcome == "orphaned").expect("it is told");
    assert_eq!(outcomes[at + 1], "stale", "{outcomes:?}");
    daemon.end();
}

#[test]
fn passed_over_while_no_daemon_ran_also_with_a_lost_store() {
    for lost in [false, true] {
        let stage = notes();
        let path = stage.session("a.jsonl");
        let mut pi = Talk::begin(&path);
        let first = pi.user("one");
        pi.assistant("ok");
        stage.once(&["--closed"]);
        let second = pi.user("two");
        pi.assistant("ok");
        if lost {
            std::fs::remove_file(stage.path("state/state.redb")).expect("no store at all");
        }
        for _ in 0..2 {
            stage.once(&["--closed", "--backfill"]);
            let file = Session::read(&path);
            file.assert_sound();
            assert_eq!((noted(&file), file.receipts()), (vec![first.clone(), second.clone()], 3), "lost: {lost}");
        }
    }
}

/// The daemon died at a step of the write, and Pi went on beside what was written.
#[test]
fn a_crash_between_the_write_and_pis_next_line_loses_and_doubles_nothing() {
    for step in ["intended", "checked", "written", "done"] {
        let stage = notes();
        let path = stage.session("a.jsonl");
        let daemon = stage.daemon_with(&["--closed"], &[("PI_GRAFT_TEST_DIE_AT", step)]);
        let mut pi = Talk::begin(&path);
        let first = pi.user("one");
        pi.assistant("ok");
        daemon.wait_for_end();
        let second = pi.user("two");
        pi.assistant("ok");
        for _ in 0..2 {
            stage.once(&["--closed"]);
            let file = Session::read(&path);
            file.assert_sound();
            let written = usize::from(matches!(step, "written" | "done"));
            assert_eq!((noted(&file), file.receipts()), (vec![first.clone(), second.clone()], 2 + written), "{step}");
        }
    }
}

/// ```text
/// u1 ─ a1 ─ R1 e1 m1 ─ u2 ─ a2
///        └─ u3 ─ a3 ─ R e1'        the edit of u1, and not the message
/// ```
#[test]
fn branching_off_before_a_known_graft_takes_the_edits_along_and_nothing_else() {
    let stage = redactor();
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    pi.user("my password is x");
    let fork_at = pi.assistant("ok");
    until("the graft", || Session::read(&path).receipts() == 1);
    let mut pi = Talk::reopen(&path);
    pi.assistant("going on");
    pi.go_to(&fork_at);
    pi.assistant("otherwise");
    until("the edit on the other branch", || Session::read(&path).live_of(EntryKind::ContextEdit) == 1);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!((file.receipts(), file.live_customs("told").len(), file.customs("told").len()), (2, 0, 1));
    // Back and forth: each branch has it.
    pi.go_to(&fork_at);
    pi.assistant("a third way");
    until("there too", || Session::read(&path).receipts() == 3);
    daemon.end();
    assert!(!stage.once(&["--closed"]).contains("offered again"));
    assert_eq!(Session::read(&path).live_of(EntryKind::ContextEdit), 1);
}

/// The fork ends before the graft, and shows what the graft took out.
#[test]
fn a_fork_inherits_the_edits_of_what_it_shows() {
    let stage = redactor();
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("my password is x");
    let fork_at = pi.assistant("ok");
    stage.once(&["--closed"]);
    Talk::reopen(&path).assistant("going on");
    let output = stage.run(&["session", "fork", path.to_str().expect("UTF-8"), "--leaf", &fork_at]);
    assert!(output.status.success(), "{output:?}");
    let dir = path.parent().expect("its directory");
    let files = std::fs::read_dir(dir).expect("sessions").map(|entry| entry.expect("an entry").path());
    let fork = files.into_iter().find(|file| *file != path).expect("a fork");
    assert_eq!(Session::read(&fork).live_of(EntryKind::ContextEdit), 0);
    for _ in 0..2 {
        stage.once(&["--closed"]);
        let file = Session::read(&fork);
        file.assert_sound();
        assert_eq!((file.live_of(EntryKind::ContextEdit), file.receipts(), file.customs("told").len()), (1, 1, 0));
    }
    assert_eq!(Session::read(&path).receipts(), 1);
}

/// What an `on-settled` run made on a graft cannot land once Pi has passed over that graft.
#[test]
fn what_was_made_for_an_orphaned_graft_is_stale() {
    let settled = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"later":"due"}],
        "settled":[{"calls":30000},{"custom":{"type":"late"}}]}"#;
    let plugins = [scripted("noter", &["append:custom"], NOTE), scripted("late", &["append:custom"], settled)];
    let stage = Stage::new(20, &plugins.concat());
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    pi.user("one");
    pi.assistant("ok");
    daemon.wait_for("an on-settled run begins");
    pi.call("c1", "bash");
    daemon.wait_for("orphaned: Pi went on beside it");
    until("what became of it", || stage.outcomes().iter().any(|outcome| outcome == "stale"));
    daemon.end();
}
