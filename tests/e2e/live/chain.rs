//! The four shipped plugins in one chain on a real daemon, beside the real Pi with the bridge: what the model is asked.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::home::Home;
use crate::stage::{shipped, until};
use crate::talk::Session;

const COMPACT: &str = r#"
context-window = 9000
at = 4500
reserve-tokens = 1000
keep-recent-tokens = 300
"#;
const TRIM: &str = r#"
older-than-turns = 1
min-saving = 1000
"#;
const BUDGET: &str = r#"
session = [0.004]
"#;

fn chain() -> String {
    shipped(COMPACT, TRIM, BUDGET)
}

const SECRET: &str = "Kr8!vhq2x";

fn run(command: &str) -> String {
    format!("[[tool bash {{\"command\":\"{command}\"}}]] look at it")
}

/// Results in a request whose call is not before them.
fn without_call(request: &Value) -> usize {
    let (mut calls, mut alone) = (BTreeSet::new(), 0);
    for message in request["messages"].as_array().into_iter().flatten() {
        calls.extend(message["tool_calls"].as_array().into_iter().flatten().map(|call| call["id"].to_string()));
        alone += usize::from(message["role"] == "tool" && !calls.contains(&message["tool_call_id"].to_string()));
    }
    alone
}

#[test]
fn the_next_request_has_stubs_and_placeholders_and_every_result_its_call() {
    let Some(home) = Home::with(&chain()) else { return };
    fs::write(home.stage.path("work/env.txt"), format!("DB_PASSWORD={SECRET}\n")).expect("a file with a secret");
    let daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt(&run("seq 1 1900; cat env.txt"));
    pi.prompt("and now?");
    pi.prompt("go on");
    let last = |home: &Home| home.requests().last().expect("a request")["messages"].to_string();
    assert!(last(&home).contains("was left out to keep the context small"), "{}", last(&home));
    assert!(last(&home).contains("Budget: this session has cost"), "{}", last(&home));
    pi.prompt(&run("seq 1000000 1009000; cat env.txt"));
    until("a compaction", || Session::read(&home.session()).compactions() == 1);
    pi.prompt("what was it?");
    assert!(last(&home).contains("## "), "the summary: {}", last(&home));
    // Pi's own, over what was trimmed.
    pi.prompt(&run("seq 1 1500"));
    pi.prompt("[[len 3000]] tell me");
    pi.prompt("[[len 3000]] more");
    let compacted = pi.command("compact", json!({}));
    assert_eq!(compacted["success"], true, "{compacted}");
    pi.prompt("the end");
    pi.quit();
    daemon.end();
    for request in home.requests() {
        assert_eq!(without_call(&request), 0, "{request}");
        assert!(
            !request["messages"].to_string().contains(SECRET),
            "the first request with it has the placeholder: {request}"
        );
    }
    let file = Session::read(&home.session());
    assert_eq!(file.compactions(), 2, "ours and Pi's");
    assert!(home.requests().iter().any(|one| one.to_string().contains("[redacted password ")));
    file.assert_sound();
    let name = home.session();
    let valid = home.stage.run(&["session", "validate", name.to_str().expect("a path")]);
    assert!(valid.status.success(), "{}", String::from_utf8_lossy(&valid.stdout));
}
