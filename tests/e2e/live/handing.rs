//! What is answered at a boundary stands on Pi's own branch, and counts in the next request.

use serde_json::{Value, json};

use super::fake::{Fake, answer, asks_at, batch, note};
use super::home::{Home, bridge};

/// An extension of somebody else that uses the same hook, and keeps what others put there.
const OTHER: &str = r#"export default function (pi) {
	pi.on("turn_end", (event) => ({ entries: [...event.entries, { type: "custom", customType: "other", data: event.entries.length }] }));
}"#;

fn id_of(home: &Home, role: &str) -> String {
    let entries = home.entries();
    let entry = entries.iter().find(|entry| entry["message"]["role"] == role).expect("such a message");
    entry["id"].as_str().expect("an id").to_owned()
}

/// What a chain from the leaf to the root says, root first: type and customType.
fn branch(home: &Home) -> Vec<(String, String)> {
    let entries = home.entries();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut chain = Vec::new();
    let mut at = entries.last().cloned();
    while let Some(entry) = at {
        chain.push((text(&entry["type"]), text(&entry["customType"])));
        at = entries.iter().find(|parent| parent["id"] == entry["parentId"] && parent["type"] != "session").cloned();
    }
    chain.reverse();
    chain
}

fn of_type(home: &Home, kind: &str) -> Vec<Value> {
    home.entries().into_iter().filter(|entry| entry["type"] == kind).collect()
}

/// The texts of the newest request to the model.
fn newest_request(home: &Home) -> String {
    home.requests().last().expect("a request")["messages"].to_string()
}

#[test]
fn all_four_kinds_at_one_boundary_count_in_the_next_request() {
    let Some(home) = Home::new() else { return };
    let file = home.stage.root();
    let daemon = Fake::new(&home, move |message| {
        if message.get("ask").is_none() {
            return Vec::new();
        }
        let ids = user_ids(&file);
        if !asks_at(message, "turn_end") || ids.len() < 3 {
            return vec![answer(message, &[])];
        }
        let edit = json!({ "type": "context_edit", "targetId": ids[1], "replacement": { "content": "SHORTENED" } });
        let state = json!({ "type": "custom", "customType": "p.state", "data": 1 });
        let compaction = json!({ "type": "compaction", "summary": "SUMMED UP", "firstKeptEntryId": ids[1] });
        let batches = [
            batch("one", &[state]),
            batch("two", &[edit]),
            batch("three", &[note("NOTED")]),
            batch("four", &[compaction]),
        ];
        vec![answer(message, &batches.concat())]
    });
    let mut pi = home.pi();
    daemon.next("bridge");
    pi.prompt("FIRST");
    pi.prompt("SECOND is long");
    pi.prompt("third [[tool read {\"path\":\"notes.txt\"}]]");
    // The boundary is that of the turn with the call: the request with its result is the first one after it.
    let request = newest_request(&home);
    for there in ["SHORTENED", "NOTED", "SUMMED UP"] {
        assert!(request.contains(there), "{there}: {request}");
    }
    for gone in ["FIRST", "SECOND"] {
        assert!(!request.contains(gone), "{gone}: {request}");
    }
    assert_eq!(of_type(&home, "compaction").last().expect("one")["fromHook"], true);
    pi.quit();
}

fn user_ids(root: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(root).expect("the sessions").map(|entry| entry.expect("an entry").path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "jsonl")).expect("a session");
    let entries = super::home::lines(&file);
    let users = entries.iter().filter(|entry| entry["message"]["role"] == "user");
    users.map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn an_ask_says_where_pi_stands_and_what_others_put_there() {
    let Some(home) = Home::new() else { return };
    let other = home.extension("other.ts", OTHER);
    let daemon = Fake::new(&home, |message| match message.get("ask") {
        Some(_) => vec![answer(message, &[])],
        None => Vec::new(),
    });
    let mut pi = home.pi_with(&[other, bridge()], &[]);
    let hello = daemon.next("bridge");
    pi.prompt("hello [[tool read {\"path\":\"notes.txt\"}]]");
    let asks = daemon.all("ask");
    let result = id_of(&home, "toolResult");
    assert_eq!(asks[0]["leaf"], result.as_str());
    let of = |ask: &Value| (ask["at"].clone(), ask["outcome"].clone(), ask["stopReason"].clone());
    let said: Vec<_> = asks.iter().map(of).collect();
    let done = json!("completed");
    assert_eq!(said[0], (json!("turn_end"), done.clone(), json!("toolUse")));
    assert_eq!(said[1], (json!("turn_end"), done.clone(), json!("stop")));
    assert_eq!(said[2], (json!("agent_before_settle"), done, json!(null)));
    assert_eq!(asks[0]["others"], json!([{ "type": "custom", "customType": "other", "data": 0 }]));
    assert_eq!(hello["session"]["file"], home.session().to_str().expect("UTF-8"));
    assert_eq!(hello["why"], "startup");
    assert_eq!(hello["pid"], pi.pid());
    pi.quit();
}

/// What stands behind the first answer, with a second extension before ours or behind it.
fn beside(other: &str, ours_first: bool) -> Option<(Vec<String>, Vec<String>)> {
    let home = Home::new()?;
    let other = home.extension("other.ts", other);
    let daemon = Fake::new(&home, |message| match asks_at(message, "turn_end") {
        true => vec![answer(message, &batch("b", &[note("ours")]))],
        false if message.get("ask").is_some() => vec![answer(message, &[])],
        false => Vec::new(),
    });
    let extensions = if ours_first { [bridge(), other] } else { [other, bridge()] };
    let mut pi = home.pi_with(&extensions, &[]);
    daemon.next("bridge");
    pi.prompt("hello");
    let grafts = branch(&home).into_iter().map(|(_, custom)| custom).filter(|custom| !custom.is_empty()).collect();
    Some((grafts, pi.quit_anyhow()))
}

#[test]
fn a_second_extension_loses_nothing_and_we_neither() {
    let Some((grafts, errors)) = beside(OTHER, true) else { return };
    assert_eq!((grafts, errors.len()), (["pi-graft.run", "p.note", "other"].map(str::to_owned).to_vec(), 0));
    let Some((grafts, errors)) = beside(OTHER, false) else { return };
    assert_eq!((grafts, errors.len()), (["other", "pi-graft.run", "p.note"].map(str::to_owned).to_vec(), 0));
}

#[test]
fn a_second_extension_that_throws_takes_nothing_of_ours_with_it() {
    let throws = "export default function (pi) { pi.on('turn_end', () => { throw new Error('boom'); }); }";
    for ours_first in [true, false] {
        let Some((grafts, errors)) = beside(throws, ours_first) else { return };
        assert_eq!(grafts, ["pi-graft.run", "p.note"]);
        assert!(errors.len() == 1 && errors[0].contains("boom"), "{errors:?}");
    }
}

#[test]
fn with_nothing_to_hand_over_what_others_put_there_stays() {
    let Some(home) = Home::new() else { return };
    let other = home.extension("other.ts", OTHER);
    let daemon = Fake::new(&home, |message| match message.get("ask") {
        Some(ask) => vec![json!({ "answer": ask, "leaf": "00000000", "entries": batch("b", &[note("x")]) })],
        None => Vec::new(),
    });
    let mut pi = home.pi_with(&[other, bridge()], &[]);
    daemon.next("bridge");
    pi.prompt("hello");
    let customs: Vec<_> = of_type(&home, "custom").iter().map(|entry| entry["customType"].clone()).collect();
    assert_eq!(customs, ["other"]);
    pi.quit();
}

#[test]
fn a_name_that_is_given_meanwhile_does_not_make_an_answer_useless_but_a_message_does() {
    let Some(home) = Home::new() else { return };
    let (give, given) = std::sync::mpsc::channel::<()>();
    let daemon = Fake::new(&home, move |message| match message["at"].as_str() {
        Some("turn_end") => {
            given.recv().expect("the scene goes on");
            vec![answer(message, &batch("b", &[note("ours")]))]
        }
        Some(_) => vec![answer(message, &[])],
        None => Vec::new(),
    });
    let pushes = "export default function (pi) { pi.registerCommand('say', { handler: async () => pi.appendEntry('silent', 1) }); }";
    let other = home.extension("other.ts", pushes);
    let mut pi = home.pi_with(&[bridge(), other], &[]);
    daemon.next("bridge");
    pi.begin("hello");
    pi.wait("the end of the message", |e| e["type"] == "message_end" && e["message"]["role"] == "assistant");
    pi.command("set_session_name", json!({ "name": "a name" }));
    give.send(()).expect("it waits");
    pi.settled();
    assert_eq!(of_type(&home, "custom_message").len(), 1);
    pi.begin("again");
    pi.wait("the end of the message", |e| e["type"] == "message_end" && e["message"]["role"] == "assistant");
    pi.command("bash", json!({ "command": "echo hi" }));
    give.send(()).expect("it waits");
    pi.settled();
    let bash = home.entries().iter().filter(|entry| entry["message"]["role"] == "bashExecution").count();
    let notes = of_type(&home, "custom_message").len();
    // Pi may keep the shell's output back until the run is over; then there was no message in between.
    assert!(bash == 1 && (notes == 1 || notes == 2), "{bash} {notes}");
    pi.quit();
}

#[test]
fn after_a_failed_turn_batches_without_a_compaction_alone_are_taken() {
    let Some(home) = Home::new() else { return };
    let settings = r#"{"retry":{"enabled":false},"compaction":{"keepRecentTokens":300,"reserveTokens":4000}}"#;
    std::fs::write(home.stage.path("agent/settings.json"), settings).expect("settings");
    let daemon = Fake::new(&home, |message| match asks_at(message, "turn_end") {
        true => {
            let compaction = json!({ "type": "compaction", "summary": "s", "firstKeptEntryId": null });
            let state = json!({ "type": "custom", "customType": "p.state" });
            vec![answer(message, &[batch("one", &[compaction]), batch("two", &[state])].concat())]
        }
        false if message.get("ask").is_some() => vec![answer(message, &[])],
        false => Vec::new(),
    });
    let mut pi = home.pi();
    daemon.next("bridge");
    pi.prompt("[[http 400]] hello");
    assert_eq!(daemon.next("ask")["outcome"], "error");
    assert_eq!(of_type(&home, "compaction").len(), 0);
    assert_eq!(of_type(&home, "custom").len(), 2);
    pi.quit();
}
