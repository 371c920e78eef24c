//! `pi-graft plugin try`: a plugin in the real host on a session of a few lines.

use std::path::Path;

use serde_json::{Value, json};

/// A home of its own for each test.
mod home;

use home::{Home, said};

const ALL: [&str; 4] = ["append:compaction", "append:context_edit", "append:custom", "append:custom_message"];

/// Tries the guest whose config says what it does; gives the report, and the exit code.
fn try_it(home: &Home, mut script: Value, lines: &[Value], args: &[&str]) -> (Value, i32) {
    script["needs"] = script.get("needs").cloned().unwrap_or_else(|| json!(ALL));
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/prebuilt/scripted.wasm");
    let guest = guest.display().to_string();
    let script = script.to_string();
    let fixed = ["plugin", "try", &guest, "--json", "--plugin-config", &script];
    let session: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let output = home.feed(&[&fixed[..], args].concat(), &session);
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
    (report, output.status.code().expect("a code"))
}

/// What the runs proposed, and on which entry.
fn proposed(report: &Value) -> Vec<(Value, Value, Value)> {
    let runs = report["runs"].as_array().expect("runs").iter().filter(|run| run["outcome"].is_string());
    runs.map(|run| (run["entry"].clone(), run["proposed"][0].clone(), run["outcome"].clone())).collect()
}

/// The context's messages, each its role and text.
fn context(report: &Value) -> Vec<(Value, Value)> {
    let text = |message: &Value| match &message["content"] {
        Value::Array(blocks) => blocks[0]["text"].clone(),
        Value::Null => message["summary"].clone(),
        text => text.clone(),
    };
    let all = report["context"].as_array().expect("a context").iter().map(|shown| &shown["message"]);
    all.map(|message| (message["role"].clone(), text(message))).collect()
}

#[test]
fn each_entry_is_told_with_what_was_proposed_on_it() {
    let home = Home::new();
    let script = json!({ "on": ["message:user"], "entry": [{ "custom": { "type": "seen", "data": "$trigger" } }] });
    let lines = [json!({"user":"hi"}), json!({"assistant":"hello"}), json!({"user":"again","id":"second"})];
    let (report, code) = try_it(&home, script.clone(), &lines, &[]);
    assert_eq!(code, 0);
    let seen = |id: &str| json!({ "type": "custom", "customType": "seen", "data": id });
    let expected = [(json!(0), seen("e0"), json!("grafted")), (json!(2), seen("second"), json!("grafted"))];
    assert_eq!(proposed(&report), expected, "the last one too, though no answer follows: {report}");
    assert_eq!(report["plugin"]["grants"], json!(ALL));
    assert!(report["runs"][0]["fuel"].as_u64().is_some_and(|fuel| fuel > 0));
    assert_eq!(try_it(&home, script, &lines, &[]).0, report, "the same each time");
    let left = std::fs::read_dir(home.path(".")).expect("the home").flatten().map(|entry| entry.file_name());
    assert!(left.into_iter().all(|name| name == ".cache"), "nothing is written but compiled code");
}

#[test]
fn the_context_at_the_end_is_what_the_model_would_see() {
    let home = Home::new();
    let script = json!({ "on": ["message:toolResult"], "entry": [
        { "edits": [{ "target": "$trigger", "text": "[cut]" }] },
        { "custom_message": { "type": "note", "content": "careful" } }] });
    let lines = [
        json!({"user":"list"}),
        json!({"assistant":"look","calls":[{"name":"bash","arguments":{"command":"ls"}}]}),
        json!({"toolResult":"a very long list"}),
    ];
    let (report, _) = try_it(&home, script, &lines, &[]);
    let expected = [("user", "list"), ("assistant", "look"), ("toolResult", "[cut]"), ("custom", "careful")];
    assert_eq!(context(&report), expected.map(|(role, text)| (json!(role), json!(text))), "{report}");
    assert!(report["tokens"].as_u64().is_some_and(|tokens| tokens > 0));
}

#[test]
fn refusals_logs_and_failures_stand_by_their_run() {
    let home = Home::new();
    let script = json!({ "on": ["message:*"], "entry": [
        { "edits": [{ "target": "nothing" }] }, { "log": { "level": "info", "text": "looked" } },
        { "err": "no answers, please", "role": "assistant" }] });
    let (report, code) = try_it(&home, script, &[json!({"user":"hi"}), json!({"assistant":"hello"})], &[]);
    let run = &report["runs"][0];
    assert_eq!(run["refused"][0]["rule"], "S12.6", "{report}");
    let logged = json!({ "level": "info", "text": "looked" });
    assert!(run["log"].as_array().expect("lines").contains(&logged), "{run}");
    assert_eq!((code, &run["failed"]), (1, &Value::Null));
    assert_eq!(report["runs"][1]["failed"], json!({ "kind": "error", "message": "no answers, please" }));
}

#[test]
fn a_compaction_is_wanted_where_a_line_says_so_and_at_the_end() {
    let home = Home::new();
    let script = json!({ "on": ["message:user"], "settled": [{ "compaction": { "summary": "for $reason", "first_kept": "$leaf" } }] });
    let lines = [
        json!({"user":"hi"}),
        json!({"assistant":"hello"}),
        json!({"compact":"manual"}),
        json!({"user":"more"}),
        json!({"assistant":"well"}),
    ];
    let (report, _) = try_it(&home, script.clone(), &lines, &[]);
    let summaries =
        |report: &Value| proposed(report).into_iter().map(|(_, draft, _)| draft["summary"].clone()).collect::<Vec<_>>();
    assert_eq!(summaries(&report), ["for manual"], "{report}");
    let roles: Vec<_> = context(&report).into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["compactionSummary", "assistant", "user", "assistant"], "{report}");
    let (report, _) = try_it(&home, script, &lines, &["--compact", "overflow"]);
    assert_eq!(summaries(&report), ["for manual", "for overflow"], "{report}");
}

#[test]
fn models_give_the_answers_that_were_given_for_them() {
    let home = Home::new();
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/prebuilt/auto-compact.wasm");
    let config = json!({ "summary": "model", "model": "fast", "keep-recent-tokens": 10, "min-saving": 1 }).to_string();
    let args = ["plugin", "try", &plugin.display().to_string(), "--json", "--plugin-config", &config];
    let long = "word ".repeat(400);
    let turn = |n| format!("{}\n{}\n", json!({ "user": format!("{n} {long}") }), json!({ "assistant": "done" }));
    let turns: String = (1..6).map(turn).collect();
    let session = format!("{turns}{}\n{turns}", json!({ "compact": "manual" }));
    let more = ["--compact", "manual", "--model", "fast=## Goal\nA few words."];
    let output = home.feed(&[&args[..], &more].concat(), &session);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
    let asked = &report["asked"];
    assert!(
        asked[0]["request"]["messages"][0]["content"].as_str().is_some_and(|text| text.contains("word")),
        "{report}"
    );
    assert_eq!(
        (&asked[0]["model"], &asked[0]["answer"]),
        (&json!("fast"), &json!("## Goal\nA few words.")),
        "{report}"
    );
    assert_eq!((&asked[1]["answer"], output.status.code()), (&Value::Null, Some(1)), "there was but one: {report}");
    let last = report["runs"].as_array().and_then(|runs| runs.last()).expect("a run");
    assert_eq!((&last["reason"], &last["failed"]["kind"]), (&json!("manual"), &json!("model")));
}

#[test]
fn what_is_not_granted_is_refused() {
    let home = Home::new();
    let script = json!({ "needs": [], "can_use": ["append:custom"], "on": ["message:user"], "entry": [{ "custom": { "type": "seen" } }] });
    let (report, _) = try_it(&home, script.clone(), &[json!({"user":"hi"})], &["--grant", ""]);
    assert_eq!((&report["plugin"]["grants"], &report["runs"][0]["refused"][0]["rule"]), (&json!([]), &json!("S12.1")));
    let (report, _) = try_it(&home, script, &[json!({"user":"hi"})], &[]);
    assert_eq!(report["runs"][0]["refused"], json!([]), "it is granted what it can use");
}

#[test]
fn a_recorded_session_is_a_scene_too() {
    let home = Home::new();
    let session = home.case("real/05_auto_mid_run.jsonl", "s");
    let script =
        json!({ "needs": ["append:custom"], "on": ["message:user"], "entry": [{ "custom": { "type": "seen" } }] });
    let (report, code) = try_it(&home, script, &[], &[session.to_str().expect("text")]);
    assert_eq!((code, proposed(&report).len()), (0, 3), "{report}");
}

#[test]
fn what_is_no_scene_is_said_with_its_line_and_exit_code_2() {
    let home = Home::new();
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/prebuilt/scripted.wasm");
    let output =
        home.feed(&["plugin", "try", &guest.display().to_string()], "{\"user\":\"hi\"}\n{\"asistant\":\"hi\"}\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("line 2"), "{}", said(&output));
}

#[test]
fn people_read_the_same_in_a_few_lines() {
    let home = Home::new();
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/prebuilt/scripted.wasm");
    let script =
        json!({ "needs": ["append:custom"], "on": ["message:user"], "entry": [{ "custom": { "type": "seen" } }] });
    let args = ["plugin", "try", &guest.display().to_string(), "--plugin-config", &script.to_string()];
    let output = home.feed(&args, "{\"user\":\"hi\"}\n");
    let told = said(&output);
    for part in [
        "scripted 0.1.0  granted append:custom",
        "on-entry, fuel",
        "grafted",
        "\"customType\":\"seen\"",
        "context: 1 messages",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn clock_and_randomness_are_the_entrys_own_and_the_same_each_time() {
    let home = Home::new();
    let script = json!({ "needs": ["append:custom"], "on": ["message:user"], "entry": [{ "chance": "chance" }] });
    let lines = [json!({"user":"hi"}), json!({"user":"again"})];
    let (report, _) = try_it(&home, script.clone(), &lines, &[]);
    let seen: Vec<_> = proposed(&report).into_iter().map(|(_, draft, _)| draft["data"].clone()).collect();
    assert_eq!((&seen[0][0], &seen[1][0]), (&json!(1_767_225_600_000_u64), &json!(1_767_225_601_000_u64)), "{report}");
    assert!(seen[0][1] != seen[1][1] && seen[0][1] != seen[0][2], "{report}");
    assert_eq!(try_it(&home, script, &lines, &[]).0, report, "a run is a function of its session");
}
