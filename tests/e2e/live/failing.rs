//! Whatever goes wrong on our side, Pi goes on as if we were not there, and soon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fake::{Fake, answer, asks_at, batch, note, welcome_with};
use super::home::{Home, bridge};

/// Far less than the limit that a fake daemon names: who waits longer than this waits for that limit.
const SOON: Duration = Duration::from_secs(8);

/// The custom types of the session's `custom` and `custom_message` entries.
fn grafts(home: &Home) -> Vec<String> {
    let entries = home.entries();
    entries.iter().filter_map(|entry| entry["customType"].as_str()).map(str::to_owned).collect()
}

/// One prompt beside a daemon that does `script`: Pi answers soon, appends nothing of ours, and reports no error.
fn goes_on(script: impl FnMut(&Value) -> Vec<Value> + Send + 'static) -> Option<(Home, Fake)> {
    let home = Home::new()?;
    let daemon = Fake::new(&home, script);
    let mut pi = home.pi();
    daemon.next("bridge");
    let begun = Instant::now();
    pi.prompt("hello [[say it goes on]]");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(grafts(&home), [] as [&str; 0]);
    pi.quit();
    Some((home, daemon))
}

#[test]
fn without_a_daemon_pi_is_as_ever() {
    let Some(home) = Home::new() else { return };
    std::fs::remove_dir(home.stage.path("runtime/pi-graft")).expect("an empty directory");
    let mut pi = home.pi();
    pi.prompt("[[tool read {\"path\":\"notes.txt\"}]] hello");
    assert_eq!(grafts(&home), [] as [&str; 0]);
    pi.quit();
}

#[test]
fn a_socket_that_nobody_listens_to_costs_nothing() {
    let Some(home) = Home::new() else { return };
    let path = home.stage.path("runtime/pi-graft/state-1-1.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let mut pi = home.pi();
    pi.prompt("hello");
    pi.quit();
    assert!(path.exists(), "it is not ours to remove");
}

#[test]
fn a_daemon_that_never_answers_is_waited_for_no_longer_than_its_limit() {
    let scene = goes_on(|message| match message.get("bridge") {
        Some(_) => vec![welcome_with(true, 200)],
        None => Vec::new(),
    });
    let Some((_home, daemon)) = scene else { return };
    let (asks, cancels) = (daemon.all("ask"), daemon.all("cancel"));
    let at: Vec<&Value> = asks.iter().map(|ask| &ask["at"]).collect();
    assert_eq!(at, ["turn_end", "agent_before_settle"]);
    assert!(asks.iter().all(|ask| ask["ms"] == 200), "{asks:?}");
    let over: Vec<&Value> = cancels.iter().map(|cancel| &cancel["cancel"]).collect();
    assert_eq!(over, asks.iter().map(|ask| &ask["ask"]).collect::<Vec<_>>());
}

#[test]
fn garbage_ends_the_connection_and_nothing_else() {
    for garbage in ["no JSON\n", "null\n", "[]\n", "7\n", "{\"answer\":\n", "\u{0}\n"] {
        let scene = goes_on(move |message| match message.get("ask") {
            Some(_) => vec![garbage.into()],
            None => Vec::new(),
        });
        let Some((_home, daemon)) = scene else { return };
        daemon.wait_for_none();
        assert_eq!(daemon.all("ask").len(), 1, "{garbage:?}: a daemon that talks nonsense is not asked again");
    }
}

#[test]
fn a_line_without_an_end_is_not_collected_for_ever() {
    let long = "x".repeat(9 << 20);
    let scene = goes_on(move |message| match message.get("ask") {
        Some(_) => vec![long.as_str().into()],
        None => Vec::new(),
    });
    let Some((_home, daemon)) = scene else { return };
    daemon.wait_for_none();
}

#[test]
fn a_daemon_that_goes_away_in_the_middle_of_an_ask_is_not_waited_for() {
    goes_on(|message| match message.get("ask") {
        Some(_) => vec!["".into()],
        None => Vec::new(),
    });
}

#[test]
fn messages_that_it_does_not_know_are_passed_over() {
    goes_on(|message| match message.get("ask") {
        Some(_) => vec![json!({ "new": 1 }), json!({ "answer": "1" }), json!({ "answer": 99 }), answer(message, &[])],
        None => vec![json!({})],
    });
}

#[test]
fn an_answer_for_another_leaf_is_not_taken() {
    for leaf in [json!("00000000"), json!(null), json!(7)] {
        goes_on(move |message| match message.get("ask") {
            Some(ask) => vec![json!({ "answer": ask, "leaf": leaf, "entries": batch("b", &[note("late")]) })],
            None => Vec::new(),
        });
    }
}

#[test]
fn what_is_no_list_of_whole_batches_is_not_taken() {
    let edit = |replacement: Value| json!({ "type": "context_edit", "targetId": "$leaf", "replacement": replacement });
    let spoilt = [
        json!("entries"),
        json!([note("without a receipt")]),
        json!(batch("b", &[note("x")])[..1]),
        json!(batch("b", &[json!({ "type": "label", "targetId": "x" })])),
        json!(batch("b", &[json!({ "type": "custom_message", "customType": "x", "content": 7, "display": true })])),
        json!(batch("b", &[json!({ "type": "custom", "data": 1 })])),
        json!(batch("b", &[edit(json!({}))])),
        json!(batch("b", &[json!({ "type": "context_edit", "targetId": "00000000", "replacement": null })])),
        json!(batch("b", &[json!({ "type": "compaction", "summary": "", "firstKeptEntryId": null })])),
        json!(batch("b", &[json!({ "type": "compaction", "summary": "s", "firstKeptEntryId": "00000000" })])),
    ];
    let Some(home) = Home::new() else { return };
    let mut at = 0;
    let daemon = Fake::new(&home, move |message| {
        let Some(ask) = message.get("ask") else { return Vec::new() };
        at += 1;
        let entries = spoilt.get(at - 1).cloned().unwrap_or_default();
        vec![json!({ "answer": ask, "leaf": message["leaf"], "entries": entries })]
    });
    let mut pi = home.pi();
    daemon.next("bridge");
    (0..6).for_each(|_| pi.prompt("hello"));
    assert_eq!(daemon.all("ask").len(), 12);
    assert_eq!(grafts(&home), [] as [&str; 0]);
    pi.quit();
}

#[test]
fn a_late_answer_is_let_go_and_the_next_one_taken() {
    let Some(home) = Home::new() else { return };
    let mut late: Option<Value> = None;
    let daemon = Fake::new(&home, move |message| {
        if message.get("bridge").is_some() {
            return vec![welcome_with(true, 300)];
        }
        if let Some(ask) = message.get("cancel").and(late.take()) {
            return vec![answer(&ask, &batch("late", &[note("late")]))];
        }
        match message["at"].as_str() {
            Some("turn_end") => late = Some(message.clone()),
            Some(_) => return vec![answer(message, &batch("now", &[note("in time")]))],
            None => {}
        }
        Vec::new()
    });
    let mut pi = home.pi();
    daemon.next("bridge");
    pi.prompt("hello");
    let notes: Vec<Value> = home.entries().iter().filter_map(|e| e.get("content").cloned()).collect();
    assert_eq!(notes, ["in time"]);
    pi.quit();
}

#[test]
fn an_abort_ends_the_wait() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::silent(&home);
    let mut pi = home.pi();
    daemon.next("bridge");
    pi.begin("hello");
    let ask = daemon.wait("the ask", |message| asks_at(message, "turn_end"));
    let begun = Instant::now();
    pi.command("abort", json!({}));
    assert!(begun.elapsed() < SOON || daemon.all("ask").len() > 1, "{:?}", begun.elapsed());
    let cancel = daemon.next("cancel");
    assert_eq!(cancel["cancel"], ask["ask"]);
    assert_eq!(grafts(&home), [] as [&str; 0]);
    drop(daemon);
    pi.quit();
}

#[test]
fn a_directory_that_others_can_write_to_is_not_looked_into() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::silent(&home);
    home.open_runtime_to(0o777);
    let mut pi = home.pi();
    pi.prompt("hello");
    assert_eq!(daemon.all("bridge"), [] as [Value; 0]);
    pi.quit();
}

#[test]
fn a_session_in_memory_has_no_bridge() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::silent(&home);
    let mut pi = home.pi_with(&[bridge()], &["--no-session"]);
    pi.prompt("hello");
    assert_eq!(daemon.all("bridge"), [] as [Value; 0]);
    pi.quit();
}

#[test]
fn pi_p_exits_as_soon_as_ever() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::new(&home, |message| match message.get("ask") {
        Some(_) => vec![answer(message, &batch("b", &[note("printed too")]))],
        None => Vec::new(),
    });
    let begun = Instant::now();
    let output = home.print_command("hello [[say printed]]").output().expect("Pi runs");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "printed");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(daemon.next("bye")["bye"], "quit");
    assert_eq!(grafts(&home), [] as [String; 0], "behind a message of ours Pi would have printed nothing");
}

#[test]
fn pi_p_does_not_exit_in_the_middle_of_an_ask() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::new(&home, |message| match message.get("bridge") {
        Some(_) => vec![welcome_with(true, 300)],
        None => Vec::new(),
    });
    let output = home.print_command("hello [[say printed]]").output().expect("Pi runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "printed");
    assert_eq!(daemon.all("cancel").len(), 2);
}
