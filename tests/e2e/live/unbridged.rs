//! Beside a real Pi without the bridge: nothing is written behind the back of one that can be seen, and what one that cannot
//! be seen passed over is on its branch in the end.

use serde_json::Value;

use super::home::Home;
use crate::stage::{append, scripted, until};
use crate::talk::{Session, Talk, member};

/// A message to the model for each of the user's.
const NOTE: &str = r#"{"needs":["append:custom_message"],"on":["message:user"],"entry":[
    {"custom_message":{"type":"note","content":"NOTED $trigger"}}]}"#;
/// Pi inside another program: its title is not Pi's, so nobody can see that it is one.
const EMBEDDED: &str = "export default function (pi) { process.title = 'some-program'; }";

fn home() -> Option<Home> {
    Home::with(&scripted("noter", &["append:custom_message"], NOTE))
}

fn noted(request: &Value) -> usize {
    request["messages"].to_string().matches("NOTED").count()
}

fn live(home: &Home) -> Vec<String> {
    let notes = Session::read(&home.session()).live_customs("note");
    notes.iter().map(|note| member(note, &["content"])).collect()
}

#[test]
fn a_pi_that_can_be_seen_gets_all_of_it_once_it_has_quit() {
    let Some(home) = home() else { return };
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi_with(&[], &[]);
    for text in ["one", "two", "three"] {
        pi.prompt(text);
    }
    daemon.wait_for("a Pi has this session open");
    assert_eq!(Session::read(&home.session()).receipts(), 0, "nothing behind its back");
    pi.quit();
    until("all three", || Session::read(&home.session()).receipts() == 3);
    let mut pi = home.pi_with(&[], &["--continue"]);
    pi.prompt("and on");
    pi.quit();
    assert_eq!(noted(home.requests().last().expect("a request")), 3, "in effect in the next request");
    until("the fourth", || live(&home).len() == 4);
    assert!(!daemon.log().contains("orphaned"));
    Session::read(&home.session()).assert_sound();
    daemon.end();
}

#[test]
fn what_a_pi_that_cannot_be_seen_passed_over_is_offered_once_more_to_its_branch() {
    let Some(home) = home() else { return };
    let embedded = home.extension("embedded.ts", EMBEDDED);
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi_with(&[embedded], &[]);
    pi.prompt("one");
    until("a graft behind its back", || Session::read(&home.session()).receipts() == 1);
    pi.prompt("two");
    daemon.wait_for("orphaned: Pi went on beside it");
    assert_eq!(noted(home.requests().last().expect("a request")), 0, "that Pi never loaded it");
    pi.quit();
    until("both on the branch", || live(&home).len() == 2);
    let mut pi = home.pi_with(&[], &["--continue"]);
    pi.prompt("three");
    pi.quit();
    assert_eq!(noted(home.requests().last().expect("a request")), 2, "in effect in the next request");
    until("the third", || live(&home).len() == 3);
    daemon.end();
    home.stage.once(&["--closed"]);
    let (file, mut once) = (Session::read(&home.session()), live(&home));
    file.assert_sound();
    once.dedup();
    assert_eq!((once.len(), file.receipts()), (3, 4), "each once on the branch, and one copy off it");
}

/// What the user says is kept from the model.
const REDACT: &str = r#"{"needs":["append:context_edit"],"on":["message:user"],"entry":[
    {"edits":[{"target":"$trigger","text":"REDACTED"}]}]}"#;

/// Forked by Pi itself, before the graft: the fork shows what was redacted, so it is redacted there too.
#[test]
fn a_fork_of_pis_is_as_redacted_as_its_session() {
    let Some(home) = Home::with(&scripted("redactor", &["append:context_edit"], REDACT)) else { return };
    let mut pi = home.pi_with(&[], &[]);
    pi.prompt("SECRET one");
    pi.prompt("SECRET two");
    let second =
        home.entries().iter().rfind(|entry| entry["message"]["role"] == "user").expect("a prompt")["id"].clone();
    pi.quit();
    home.stage.once(&["--closed"]);
    let first = home.session();
    assert_eq!(Session::read(&first).receipts(), 2);
    let mut pi = home.pi_with(&[], &["--session", first.to_str().expect("UTF-8")]);
    pi.command("fork", serde_json::json!({ "entryId": second }));
    pi.quit();
    home.stage.once(&["--closed"]);
    let fork = home.sessions().into_iter().find(|path| *path != first).expect("a fork");
    let mut pi = home.pi_with(&[], &["--session", fork.to_str().expect("UTF-8")]);
    pi.prompt("and on");
    pi.quit();
    let request = home.requests().last().expect("a request")["messages"].to_string();
    assert!(request.contains("REDACTED") && !request.contains("SECRET"), "{request}");
    Session::read(&fork).assert_sound();
}

/// The model is asked about the line that came between, and the graft counts, once, when Pi opens what was led back.
#[test]
fn pi_goes_on_behind_the_line_that_a_misplaced_graft_had_passed_over() {
    let Some(home) = home() else { return };
    let mut pi = home.pi_with(&[], &[]);
    pi.prompt("one");
    pi.quit();
    let (path, held) = (home.session(), home.stage.path("held"));
    let wait = format!("checked={}", held.display());
    let daemon = home.stage.daemon_with(&[], &[("PI_GRAFT_TEST_WAIT_AT", wait.as_str())]);
    until("the gap", || held.exists());
    let mut between = Talk::reopen(&path);
    between.user("IN THE GAP");
    between.assistant("ok");
    until("all of it", || {
        let _ = std::fs::remove_dir(&held);
        live(&home).len() == 2
    });
    daemon.end();
    assert_eq!(Session::read(&path).customs("pi-graft.rejoin").len(), 1);
    let mut pi = home.pi_with(&[], &["--continue"]);
    pi.prompt("and on");
    pi.quit();
    let request = home.requests().last().expect("a request").clone();
    assert!(request["messages"].to_string().contains("IN THE GAP"));
    assert_eq!(noted(&request), 2);
    Session::read(&path).assert_sound();
}

/// Whose half line it is loses it, and the graft its receipt; a Pi that opens the session right then has its whole context all
/// the same, and the graft is there once it is due.
#[test]
fn half_a_line_in_the_gap_costs_pi_nothing_of_its_context() {
    let Some(home) = home() else { return };
    let mut pi = home.pi_with(&[], &[]);
    pi.prompt("BEFORE THE GAP");
    pi.quit();
    let (path, held) = (home.session(), home.stage.path("held"));
    home.stage.hold_for("1h");
    let wait = format!("checked={}", held.display());
    let mut daemon = home.stage.daemon_with(&[], &[("PI_GRAFT_TEST_WAIT_AT", wait.as_str())]);
    until("the gap", || held.exists());
    append(&path, r#"{"type":"message","id":"half"#);
    until("the way back", || {
        let _ = std::fs::remove_dir(&held);
        Session::read(&path).customs("pi-graft.rejoin").len() == 1
    });
    daemon.wait_for("somebody wrote at the same moment; waiting for live-hold");
    daemon.end();
    assert_eq!(live(&home).len(), 0, "it is not there before live-hold is over");
    let mut pi = home.pi_with(&[], &["--continue"]);
    pi.prompt("and on");
    pi.quit();
    assert!(home.requests().last().expect("a request")["messages"].to_string().contains("BEFORE THE GAP"));
    home.stage.once(&["--closed"]);
    let mut pi = home.pi_with(&[], &["--continue"]);
    pi.prompt("and on");
    pi.quit();
    assert_eq!(noted(home.requests().last().expect("a request")), 2, "both in effect, each once");
}
