//! Two Pis on one session, only one of them with the bridge; and a Pi that dies together with the daemon.

use super::home::{Home, bridge};
use crate::stage::{scripted, until};
use crate::talk::{Session, member, pi_reads};

/// A message to the model for each of the user's, marked with the user's entry.
const NOTE: &str = r#"{"needs":["append:custom_message"],"on":["message:user"],"entry":[
    {"custom_message":{"type":"note","content":"$trigger"}}]}"#;
const READ: &str = "[[tool read {\"path\":\"notes.txt\"}]]";

fn home() -> Option<Home> {
    Home::with(&scripted("noter", &["append:custom_message"], NOTE))
}

/// The user's messages on the branch that Pi would continue from, and those that have their note there, sorted.
fn live(home: &Home) -> (Vec<String>, Vec<String>) {
    let file = Session::read(&home.session());
    let users = home.entries().into_iter().filter(|entry| entry["message"]["role"] == "user");
    let ids = users.map(|entry| entry["id"].as_str().expect("an id").to_owned());
    let mut users: Vec<String> = ids.filter(|id| file.is_live(id)).collect();
    let mut noted: Vec<String> = file.live_customs("note").iter().map(|note| member(note, &["content"])).collect();
    users.sort();
    noted.sort();
    (users, noted)
}

/// Each of the user's messages on the branch has its note there, once, and Pi loads the file.
fn ends_whole(home: &Home) {
    until("all notes", || {
        let (users, noted) = live(home);
        users == noted
    });
    Session::read(&home.session()).assert_sound();
    let answer = pi_reads(&home.session()).expect("Pi is at hand");
    assert_eq!((&answer["loadError"], &answer["fileChangedByOpen"]), (&serde_json::Value::Null, &false.into()));
}

#[test]
fn of_two_pis_on_one_session_of_which_one_has_a_bridge_nobody_loses_anything() {
    let Some(home) = home() else { return };
    let daemon = home.stage.daemon(&[]);
    let mut bridged = home.pi();
    bridged.prompt("one");
    let mut plain = home.pi_with(&[], &["--continue"]);
    plain.prompt("two, by the one that nobody asks");
    bridged.prompt("three, which hangs on what the bridged one knows");
    plain.prompt("four");
    let receipts = Session::read(&home.session()).receipts();
    bridged.prompt("five");
    bridged.quit();
    plain.prompt("six, alone by now");
    plain.quit();
    ends_whole(&home);
    assert!(Session::read(&home.session()).receipts() > receipts);
    assert_eq!(home.entries().iter().filter(|entry| entry["message"]["role"] == "user").count(), 6, "nothing is lost");
    daemon.end();
}

/// Its Pi is gone, as the system shows; but another one may have the session by now, and be about to say so.
#[test]
fn a_daemon_that_has_just_started_waits_for_the_bridge_that_a_session_had() {
    let Some(home) = home() else { return };
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt("one");
    pi.begin("[[delay 20000]] two");
    until("its proposal", || daemon.log().matches("proposed").count() == 2);
    daemon.kill();
    pi.kill();
    daemon = home.stage.daemon(&[]);
    daemon.wait_for("its Pi has a bridge, which is not connected");
    assert_eq!(live(&home).1.len(), 1, "nothing is written yet");
    until("the second note", || live(&home).1.len() == 2);
    daemon.end();
    ends_whole(&home);
}

#[test]
fn a_daemon_and_a_pi_that_die_together_leave_nothing_undone_and_nothing_twice() {
    let Some(home) = home() else { return };
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt("first");
    for turn in 0..4u64 {
        pi.begin(&format!("{READ} turn {turn}"));
        // Whatever they are at by then.
        std::thread::sleep(std::time::Duration::from_millis(60 * turn));
        if turn % 2 == 0 {
            pi.kill();
            daemon.kill();
        } else {
            daemon.kill();
            pi.kill();
        }
        daemon = home.stage.daemon(&[]);
        pi = home.pi_with(&[bridge()], &["--continue"]);
        pi.prompt("and on");
    }
    pi.quit();
    ends_whole(&home);
    daemon.end();
}
