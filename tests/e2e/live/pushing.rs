//! What comes while Pi is idle, and what idle means.

use serde_json::{Value, json};

use super::fake::{Fake, answer, batch, note};
use super::home::{Home, bridge};

/// A daemon with nothing to hand over at boundaries.
fn quiet(home: &Home) -> Fake {
    Fake::new(home, |message| match message.get("ask") {
        Some(_) => vec![answer(message, &[])],
        None => Vec::new(),
    })
}

/// Where Pi says that it stands.
fn leaf(daemon: &Fake) -> Value {
    daemon.say(&json!({ "leaf?": 1 }));
    daemon.wait("where Pi stands", |message| message["re"] == 1)
}

#[test]
fn a_push_to_an_idle_pi_is_appended_and_begins_no_turn() {
    let Some(home) = Home::new() else { return };
    let daemon = quiet(&home);
    let mut pi = home.pi();
    pi.prompt("hello");
    let stands = leaf(&daemon);
    assert_eq!(stands["idle"], true);
    let (requests, before) = (home.requests().len(), home.entries().len());
    let state = json!({ "type": "custom", "customType": "p.state", "data": { "a": 1 } });
    daemon.say(&json!({ "push": 7, "leaf": stands["leaf"], "entries": batch("b", &[state, note("PUSHED")]) }));
    let pushed = daemon.next("pushed");
    let entries = home.entries();
    assert_eq!((&pushed["pushed"], &pushed["ok"]), (&json!(7), &json!(true)), "{pushed}");
    assert_eq!(pushed["leaf"], entries.last().expect("an entry")["id"]);
    let kinds: Vec<_> = entries[before..].iter().map(|entry| entry["customType"].clone()).collect();
    assert_eq!(kinds, ["pi-graft.run", "p.state", "p.note"]);
    assert_eq!(home.requests().len(), requests, "no turn");
    pi.prompt("again");
    assert!(home.requests().last().expect("a request").to_string().contains("PUSHED"));
    pi.quit();
}

#[test]
fn a_push_for_another_leaf_or_of_what_cannot_be_pushed_is_refused() {
    let Some(home) = Home::new() else { return };
    let daemon = quiet(&home);
    let mut pi = home.pi();
    pi.prompt("hello");
    let here = leaf(&daemon)["leaf"].clone();
    let before = home.entries().len();
    let edit = json!({ "type": "context_edit", "targetId": here, "replacement": null });
    for (leaf, entries) in [
        (json!("00000000"), batch("b", &[note("x")])),
        (json!(null), batch("b", &[note("x")])),
        (here.clone(), batch("b", &[edit])),
        (here.clone(), vec![note("no receipt")]),
        (here.clone(), vec![]),
    ] {
        daemon.say(&json!({ "push": 1, "leaf": leaf, "entries": entries }));
        let pushed = daemon.next("pushed");
        assert_eq!((&pushed["ok"], &pushed["leaf"]), (&json!(false), &here), "{pushed}");
    }
    assert_eq!(home.entries().len(), before);
    pi.quit();
}

#[test]
fn a_pi_at_work_takes_no_push() {
    let Some(home) = Home::new() else { return };
    let daemon = quiet(&home);
    let mut pi = home.pi();
    pi.prompt("hello");
    pi.begin("[[delay 1500]] wait");
    pi.wait("the request", |event| event["type"] == "message_end" && event["message"]["role"] == "user");
    let stands = leaf(&daemon);
    assert_eq!(stands["idle"], false);
    daemon.say(&json!({ "push": 1, "leaf": stands["leaf"], "entries": batch("b", &[note("x")]) }));
    assert_eq!(daemon.next("pushed")["why"], "not idle");
    pi.settled();
    pi.quit();
}

#[test]
fn a_prompt_that_is_being_prepared_is_no_idleness() {
    let Some(home) = Home::new() else { return };
    let daemon = quiet(&home);
    let go = home.stage.path("go");
    let slow = home.extension(
        "slow.ts",
        &format!(
            r#"import {{ existsSync }} from "node:fs";
export default function (pi) {{
	pi.on("input", async (event, ctx) => {{
		if (event.text !== "slow") return;
		pi.setSessionName(`idle ${{ctx.isIdle()}}`);
		while (!existsSync({go:?})) await new Promise((resolve) => setTimeout(resolve, 10));
	}});
}}"#
        ),
    );
    let mut pi = home.pi_with(&[bridge(), slow], &[]);
    pi.prompt("hello");
    pi.begin("slow");
    pi.wait("the name", |event| event["type"] == "session_info_changed" && event["name"] == "idle true");
    let stands = leaf(&daemon);
    assert_eq!(stands["idle"], false, "though Pi calls itself idle");
    daemon.say(&json!({ "push": 1, "leaf": stands["leaf"], "entries": batch("b", &[note("x")]) }));
    assert_eq!(daemon.next("pushed")["why"], "not idle");
    std::fs::write(&go, "").expect("a sign");
    pi.settled();
    daemon.wait("that Pi is idle again", |message| message["idle"] == true && message.get("on").is_some());
    pi.quit();
}

#[test]
fn every_move_of_the_leaf_is_told_also_where_pi_has_no_event_for_it() {
    let Some(home) = Home::new() else { return };
    let daemon = quiet(&home);
    let labels = "export default function (pi) { pi.registerCommand('label', { handler: async (_, ctx) => pi.setLabel(ctx.sessionManager.getLeafId(), 'here') }); }";
    let other = home.extension("other.ts", labels);
    let mut pi = home.pi_with(&[bridge(), other], &[]);
    pi.prompt("hello");
    for command in [("set_session_name", json!({ "name": "n" })), ("set_thinking_level", json!({ "level": "off" }))] {
        pi.command(command.0, command.1);
    }
    pi.command("set_model", json!({ "provider": "mock", "modelId": "small" }));
    pi.command("bash", json!({ "command": "echo hi" }));
    pi.command("prompt", json!({ "message": "/label" }));
    let label = home.entries().pop().expect("an entry");
    assert_eq!(label["type"], "label");
    daemon.wait("the label", |message| message["leaf"] == label["id"]);
    pi.quit();
}
