//! Beside a real Pi without the bridge: nothing is written behind the back of one that can be seen, and what one that cannot
//! be seen passed over is on its branch in the end.

use serde_json::Value;

use super::home::Home;
use crate::stage::{scripted, until};
use crate::talk::{Session, member};

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
