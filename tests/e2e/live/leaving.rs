//! Sessions that come and go, reloads, and daemons that come back.

use serde_json::{Value, json};

use super::fake::{Fake, answer, asks_at, batch, note, welcome};
use super::home::{Home, bridge};

/// A command that reloads Pi's extensions.
const RELOAD: &str =
    "export default function (pi) { pi.registerCommand('again', { handler: async (_, ctx) => ctx.reload() }); }";

fn quiet(home: &Home) -> Fake {
    Fake::new(home, |message| match message.get("ask") {
        Some(_) => vec![answer(message, &[])],
        None => Vec::new(),
    })
}

#[test]
fn each_session_is_greeted_and_left() {
    let Some(home) = Home::new() else { return };
    let daemon = quiet(&home);
    let reload = home.extension("reload.ts", RELOAD);
    let mut pi = home.pi_with(&[bridge(), reload], &[]);
    let first = daemon.next("bridge");
    pi.prompt("hello");
    let (file, user) = (first["session"]["file"].clone(), user_id(&home));
    let mut step = |kind: &str, members: Value, reason: &str| {
        pi.command(kind, members);
        assert_eq!(daemon.next("bye")["bye"], reason);
        let hello = daemon.next("bridge");
        assert_eq!(hello["why"], reason, "{hello}");
        hello["session"]["file"].clone()
    };
    assert_eq!(step("prompt", json!({ "message": "/again" }), "reload"), file);
    assert_ne!(step("new_session", json!({}), "new"), file);
    assert_eq!(step("switch_session", json!({ "sessionPath": file }), "resume"), file);
    assert_ne!(step("fork", json!({ "entryId": user }), "fork"), file);
    pi.prompt("and on");
    daemon.wait("an ask in the fork", |message| asks_at(message, "turn_end"));
    pi.quit();
    assert_eq!(daemon.next("bye")["bye"], "quit");
    daemon.wait_for_none();
}

fn user_id(home: &Home) -> Value {
    let entries = home.entries();
    entries.iter().find(|entry| entry["message"]["role"] == "user").expect("a prompt")["id"].clone()
}

#[test]
fn a_daemon_that_comes_later_and_comes_back_is_found_by_an_idle_pi() {
    let Some(home) = Home::new() else { return };
    let mut pi = home.pi();
    pi.prompt("hello");
    for _ in 0..2 {
        let daemon = quiet(&home);
        let hello = daemon.next("bridge");
        assert_eq!(hello["leaf"], home.entries().last().expect("an entry")["id"]);
        assert_eq!(hello["idle"], true);
    }
    pi.quit();
}

#[test]
fn a_daemon_that_does_not_serve_the_session_is_left_alone_until_it_is_new() {
    let Some(home) = Home::new() else { return };
    let refuse = |message: &Value| match message.get("bridge") {
        Some(_) => vec![welcome(false)],
        None => Vec::new(),
    };
    let daemon = Fake::new(&home, refuse);
    let mut pi = home.pi();
    // Once more when there is a file: before, it could not know the session.
    (0..4).for_each(|_| pi.prompt("hello"));
    assert!((1..=2).contains(&daemon.all("bridge").len()), "{:?}", daemon.all("bridge"));
    assert_eq!(daemon.all("ask"), [] as [Value; 0]);
    drop(daemon);
    let daemon = quiet(&home);
    daemon.next("bridge");
    pi.quit();
}

#[test]
fn of_several_daemons_the_one_that_serves_it_is_asked() {
    let Some(home) = Home::new() else { return };
    let other = Fake::named(&home, "state-2-2.sock", |message| match message.get("bridge") {
        Some(_) => vec![welcome(false)],
        None => Vec::new(),
    });
    let strange =
        Fake::named(&home, "state-3-3.sock", |_| vec![json!({ "error": "version 1 is not spoken here", "v": 9 })]);
    let ours = Fake::new(&home, |message| match asks_at(message, "turn_end") {
        true => vec![answer(message, &batch("b", &[note("x")]))],
        false if message.get("ask").is_some() => vec![answer(message, &[])],
        false => Vec::new(),
    });
    let mut pi = home.pi();
    ours.next("bridge");
    pi.prompt("hello");
    assert_eq!(ours.all("ask").len(), 2);
    assert_eq!((other.all("ask").len(), strange.all("ask").len()), (0, 0));
    other.wait_for_none();
    strange.wait_for_none();
    pi.quit();
}

#[test]
fn installed_twice_it_speaks_once() {
    let Some(home) = Home::new() else { return };
    let copy = home.extension("copy.ts", &std::fs::read_to_string(bridge()).expect("the extension"));
    let daemon = quiet(&home);
    let reload = home.extension("reload.ts", RELOAD);
    let mut pi = home.pi_with(&[bridge(), copy, reload], &[]);
    daemon.next("bridge");
    pi.prompt("hello");
    pi.command("prompt", json!({ "message": "/again" }));
    daemon.next("bye");
    daemon.next("bridge");
    pi.prompt("hello");
    assert_eq!(daemon.all("bridge").len(), 2);
    assert_eq!(daemon.all("ask").len(), 4);
    pi.quit();
}
