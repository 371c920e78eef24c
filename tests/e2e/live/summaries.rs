//! `auto-compact` with a model of ours, in place of the real Pi's own compaction: nobody pays for a second summary, and what
//! Pi asks its model next is what `session context` says.

use serde_json::{Value, json};

use super::home::{Home, bridge};
use crate::server::{Server, completion};
use crate::stage::{model_at, until};
use crate::talk::Session;

/// What Pi's own request for a summary says.
const PIS_OWN: &str = "ontext summarization assistant";
const READ: &str = "[[tool read {\"path\":\"notes.txt\"}]]";

/// `auto-compact` with the model at this server; never due by itself.
fn plugin(server: &Server) -> String {
    let model = model_at(server);
    format!(
        r#"{model}
[[plugin]]
name = "auto-compact"
grants = ["append:compaction", "model:summary"]
[plugin.config]
at = 1000000
summary = "model"
"#
    )
}

fn compactions(home: &Home) -> Vec<Value> {
    home.entries().into_iter().filter(|entry| entry["type"] == "compaction").collect()
}

/// The texts of a message, whatever its shape.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// What `session context` says that the model sees: the role and the text of each message.
fn context(home: &Home) -> Vec<(String, String)> {
    let path = home.session();
    let output = home.stage.run(&["session", "context", path.to_str().expect("a path"), "--json"]);
    let context: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let messages = context["messages"].as_array().expect("messages").clone();
    messages.iter().map(shown).filter(|(role, _)| role != "system").collect()
}

fn shown(message: &Value) -> (String, String) {
    match message["role"].as_str().expect("a role") {
        "compactionSummary" => ("user".into(), message["summary"].as_str().expect("text").into()),
        "toolResult" => ("tool".into(), text_of(&message["content"])),
        role => (role.into(), text_of(&message["content"])),
    }
}

/// A request of Pi's to its model is what the context says, its prompt behind it.
fn assert_is_asked(request: &Value, context: &[(String, String)], prompt: &str) {
    let messages = request["messages"].as_array().expect("messages");
    assert!(matches!(messages[0]["role"].as_str(), Some("system" | "developer")), "{request}");
    let asked: Vec<(&str, String)> =
        messages[1..].iter().map(|m| (m["role"].as_str().expect("a role"), text_of(&m["content"]))).collect();
    assert_eq!(asked.len(), context.len() + 1, "{asked:#?} {context:#?}");
    for ((role, text), (of, said)) in asked.iter().zip(context) {
        assert_eq!(role, of);
        assert!(text.contains(said.as_str()), "{text} {said}");
    }
    assert!(asked.last().is_some_and(|(role, text)| *role == "user" && text.contains(prompt)), "{asked:#?}");
    assert_paired(messages);
}

/// No result of a tool stands without its call, and no call without its result.
fn assert_paired(messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if let Some(id) = message["tool_call_id"].as_str() {
            let at = open.iter().position(|call| *call == id);
            open.remove(at.expect("a result behind its call"));
            continue;
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.filter_map(|call| call["id"].as_str()));
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

#[test]
fn a_models_summary_takes_the_place_of_pis_own_whoever_wants_it() {
    let server = Server::new([completion("## Goal\n- OUR SUMMARY", "stop")]);
    let Some(home) = Home::with(&plugin(&server)) else { return };
    let daemon = home.stage.daemon(&[]);
    let mut pi = home.pi_with(&[bridge()], &["--model", "mock/small"]);
    pi.prompt(&format!("[[len 3000]] {READ} one"));
    pi.prompt(&format!("[[len 3000]] {READ} two"));
    assert_eq!(pi.command("compact", json!({ "customInstructions": "be brief" }))["success"], true);
    assert!(server.requests()[0].1.contains("be brief"));
    let seen = context(&home);
    assert!(seen[0].1.contains("OUR SUMMARY"), "{seen:#?}");
    pi.prompt("[[len 3000]] three");
    assert_is_asked(home.requests().last().expect("a request"), &seen, "three");
    pi.prompt("[[len 3000]] [[usage 27000]] four");
    assert_eq!(compactions(&home).len(), 2, "over the threshold");
    let seen = context(&home);
    pi.prompt("[[len 3000]] five");
    assert_is_asked(home.requests().last().expect("a request"), &seen, "five");
    pi.prompt("[[overflow]] six");
    let made = compactions(&home);
    assert_eq!((made.len(), server.requests().len()), (3, 3), "{made:#?}");
    assert!(made.iter().all(|entry| entry["usage"]["totalTokens"] == 150 && entry["fromHook"] == true), "{made:#?}");
    assert!(home.requests().iter().all(|request| !request.to_string().contains(PIS_OWN)));
    pi.quit();
    daemon.end();
    Session::read(&home.session()).assert_sound();
}

#[test]
fn an_extract_takes_its_place_only_if_the_config_says_always() {
    for (take_over, ours) in [("model", false), ("always", true)] {
        let plugin =
            "[[plugin]]\nname = \"auto-compact\"\ngrants = [\"append:compaction\"]\n[plugin.config]\nat = 1000000\n";
        let Some(home) = Home::with(&format!("{plugin}take-over = {take_over:?}\n")) else { return };
        let daemon = home.stage.daemon(&[]);
        let mut pi = home.pi();
        pi.prompt("[[len 3000]] one");
        pi.prompt("[[len 3000]] two");
        assert_eq!(pi.command("compact", json!({ "customInstructions": "be brief" }))["success"], true);
        let own = home.requests().iter().filter(|request| request.to_string().contains(PIS_OWN)).count();
        // Of a turn that is cut in its middle Pi asks for two.
        assert_eq!(own == 0, ours, "{take_over}: {own}");
        let summary = compactions(&home)[0]["summary"].as_str().expect("text").to_owned();
        assert_eq!(summary.starts_with("Focus: be brief"), ours, "{summary}");
        pi.quit();
        daemon.end();
    }
}

#[test]
fn after_pi_graft_compact_a_pi_that_opens_the_session_goes_on_from_it() {
    let server = Server::new([completion("## Goal\n- OUR SUMMARY", "stop")]);
    let Some(home) = Home::with(&plugin(&server)) else { return };
    let mut pi = home.pi_with(&[], &[]);
    pi.prompt(&format!("[[len 3000]] {READ} one"));
    pi.prompt(&format!("[[len 3000]] {READ} two"));
    pi.quit();
    let path = home.session();
    let output = home.stage.run(&["compact", "--closed", path.to_str().expect("a path")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = context(&home);
    assert!(seen[0].1.contains("OUR SUMMARY"), "{seen:#?}");
    let mut pi = home.pi_with(&[], &["--continue"]);
    pi.prompt("three");
    pi.quit();
    assert_is_asked(home.requests().last().expect("a request"), &seen, "three");
    assert!(home.requests().iter().all(|request| !request.to_string().contains(PIS_OWN)));
}

/// The user runs a command of much output right behind a compaction: too much for the threshold, but no answer has come since.
#[test]
fn what_comes_right_behind_a_compaction_causes_no_second_one_at_once() {
    let plugin = "[[plugin]]\nname = \"auto-compact\"\ngrants = [\"append:compaction\"]\n[plugin.config]\nat = 5000\n";
    let Some(home) = Home::with(plugin) else { return };
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt("[[len 9000]] one");
    pi.prompt("[[len 9000]] two");
    until("the compaction", || compactions(&home).len() == 1);
    pi.command("bash", json!({ "command": "seq 1 10000" }));
    daemon.wait_for("no answer has come since the compaction before");
    let seen = context(&home);
    pi.prompt("[[say It is counted.]] three");
    until("the next", || compactions(&home).len() == 2);
    pi.quit();
    daemon.end();
    let entries = home.entries();
    let first = entries.iter().position(|entry| entry["type"] == "compaction").expect("the first");
    let kinds = entries[first + 1..].iter().map(|entry| (&entry["type"], &entry["message"]["role"]));
    let answer = kinds.clone().position(|(_, role)| role == "assistant").expect("an answer");
    assert!(kinds.take(answer).all(|(kind, _)| kind != "compaction"), "{entries:#?}");
    assert!(seen[0].1.contains("## Goal") && seen.last().is_some_and(|(role, _)| role == "bashExecution"), "{seen:#?}");
}
