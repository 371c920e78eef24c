//! A compaction of ours in place of Pi's own, and one that we begin.

use serde_json::{Value, json};

use super::fake::{Fake, answer, asks_at};
use super::home::{Home, bridge};

/// A daemon that answers a wanted compaction with this summary, keeping nothing; none: it has none.
fn summing(home: &Home, summary: Option<&'static str>) -> Fake {
    Fake::new(home, move |message| {
        if !asks_at(message, "session_before_compact") {
            return if message.get("ask").is_some() { vec![answer(message, &[])] } else { Vec::new() };
        }
        let details = json!({ "pi-graft": { "batch": "b" } });
        let made = |summary| json!({ "summary": summary, "firstKeptEntryId": message["leaf"], "tokensBefore": 7, "details": details });
        vec![json!({ "answer": message["ask"], "leaf": message["leaf"], "compaction": summary.map(made) })]
    })
}

/// Long enough for a compaction to be worth it.
fn talk(pi: &mut super::pi::Pi) {
    pi.prompt("[[len 3000]] one");
    pi.prompt("[[len 3000]] two");
}

fn compactions(home: &Home) -> Vec<Value> {
    home.entries().into_iter().filter(|entry| entry["type"] == "compaction").collect()
}

#[test]
fn the_users_compaction_is_ours_if_we_have_one() {
    let Some(home) = Home::new() else { return };
    let daemon = summing(&home, Some("OURS"));
    let mut pi = home.pi();
    talk(&mut pi);
    let response = pi.command("compact", json!({ "customInstructions": "be brief" }));
    assert_eq!(response["success"], true, "{response}");
    let ask = daemon.wait("the ask", |message| asks_at(message, "session_before_compact"));
    assert_eq!((&ask["reason"], &ask["instructions"]), (&json!("manual"), &json!("be brief")));
    let made = compactions(&home);
    assert_eq!(
        (made.len(), &made[0]["summary"], &made[0]["details"]["pi-graft"]["batch"]),
        (1, &json!("OURS"), &json!("b"))
    );
    pi.prompt("three");
    assert!(home.requests().last().expect("a request").to_string().contains("OURS"));
    pi.quit();
}

#[test]
fn pi_makes_its_own_if_we_have_none() {
    let Some(home) = Home::new() else { return };
    let _daemon = summing(&home, None);
    let mut pi = home.pi();
    talk(&mut pi);
    pi.command("compact", json!({}));
    let made = compactions(&home);
    assert!(made[0]["summary"].as_str().expect("a summary").contains("Mock summary"), "{made:?}");
    pi.quit();
}

#[test]
fn over_the_threshold_and_after_an_overflow_too() {
    let Some(home) = Home::new() else { return };
    let daemon = summing(&home, Some("OURS"));
    let mut pi = home.pi_with(&[bridge()], &["--model", "mock/small"]);
    pi.prompt("[[len 3000]] one");
    pi.prompt("[[len 3000]] [[usage 27000]] two");
    let ask = daemon.wait("the ask", |message| asks_at(message, "session_before_compact"));
    assert_eq!(ask["reason"], "threshold");
    pi.prompt("[[len 3000]] three");
    pi.prompt("[[overflow]] four");
    let ask = daemon.wait("the ask", |message| asks_at(message, "session_before_compact"));
    assert_eq!(ask["reason"], "overflow");
    let made = compactions(&home);
    assert_eq!(made.iter().map(|entry| entry["summary"].clone()).collect::<Vec<_>>(), ["OURS", "OURS"]);
    pi.quit();
}

/// Has an idle Pi begin a compaction; the daemon's last word on it.
fn begin(home: &Home, daemon: &Fake, pi: &mut super::pi::Pi) -> Value {
    talk(pi);
    daemon.wait("an idle Pi", |message| message["idle"] == true && message["on"] == "agent_settled");
    let leaf = home.entries().last().expect("an entry")["id"].clone();
    daemon.say(&json!({ "compact": 3, "leaf": leaf, "token": "pi-graft:1" }));
    daemon.next("pushed")
}

#[test]
fn one_that_we_begin_is_known_by_its_token() {
    let Some(home) = Home::new() else { return };
    let daemon = summing(&home, Some("OURS"));
    let mut pi = home.pi();
    let pushed = begin(&home, &daemon, &mut pi);
    assert_eq!((&pushed["pushed"], &pushed["ok"]), (&json!(3), &json!(true)), "{pushed}");
    let asks = daemon.all("ask");
    let ask = asks.iter().find(|ask| ask["at"] == "session_before_compact").expect("the ask");
    assert_eq!((&ask["token"], &ask["instructions"]), (&json!("pi-graft:1"), &json!(null)));
    assert_eq!(compactions(&home)[0]["summary"], "OURS");
    assert_eq!(pushed["leaf"], compactions(&home)[0]["id"]);
    daemon.wait("an idle Pi", |message| message["idle"] == true && message["leaf"] == pushed["leaf"]);
    pi.quit();
}

#[test]
fn one_that_we_begin_and_then_have_nothing_for_costs_pi_no_summary() {
    let Some(home) = Home::new() else { return };
    let daemon = summing(&home, None);
    let mut pi = home.pi();
    let pushed = begin(&home, &daemon, &mut pi);
    assert_eq!((&pushed["pushed"], &pushed["ok"]), (&json!(3), &json!(false)), "{pushed}");
    assert_eq!(compactions(&home), [] as [Value; 0]);
    assert_eq!(home.requests().len(), 2, "no request for a summary");
    // What the user wants is not ours to cancel.
    assert_eq!(pi.command("compact", json!({}))["success"], true);
    assert_eq!(compactions(&home).len(), 1);
    pi.quit();
}

#[test]
fn a_pi_at_work_begins_none() {
    let Some(home) = Home::new() else { return };
    let daemon = summing(&home, Some("OURS"));
    let mut pi = home.pi();
    talk(&mut pi);
    pi.begin("[[delay 1500]] three");
    pi.wait("the request", |event| event["type"] == "message_end" && event["message"]["role"] == "user");
    let leaf = home.entries().last().expect("an entry")["id"].clone();
    daemon.say(&json!({ "compact": 3, "leaf": leaf, "token": "pi-graft:1" }));
    assert_eq!(daemon.next("pushed")["why"], "not idle");
    pi.settled();
    assert_eq!(compactions(&home), [] as [Value; 0]);
    pi.quit();
}

#[test]
fn an_abort_ends_the_wait_for_a_summary() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::new(&home, |message| match asks_at(message, "session_before_compact") {
        false if message.get("ask").is_some() => vec![answer(message, &[])],
        _ => Vec::new(),
    });
    let mut pi = home.pi();
    talk(&mut pi);
    pi.send("compact", json!({}));
    let ask = daemon.wait("the ask", |message| asks_at(message, "session_before_compact"));
    pi.command("abort", json!({}));
    assert_eq!(daemon.next("cancel")["cancel"], ask["ask"]);
    assert_eq!(compactions(&home), [] as [Value; 0]);
    pi.quit();
}
