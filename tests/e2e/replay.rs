//! `replay`: what plugins would have done in recorded sessions.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::stage::{Stage, append, scripted};

const EVERY: &[&str] = &["append:custom", "append:custom_message", "append:context_edit", "append:compaction"];

/// A conversation of turns: each a question and an answer, 2.5 KB.
fn session(stage: &Stage, turns: usize) -> PathBuf {
    let path = stage.session("s.jsonl");
    let mut text = header("s");
    let (mut parent, words) = ("null".to_owned(), "word ".repeat(250));
    for turn in 0..turns {
        text += &message(&format!("q{turn}"), &parent, &format!(r#"{{"role":"user","content":"{words}"}}"#));
        text += &message(&format!("a{turn}"), &format!("\"q{turn}\""), &answer(&words, 1000 * (turn + 1)));
        parent = format!("\"a{turn}\"");
    }
    append(&path, &text);
    path
}

fn header(id: &str) -> String {
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}}\n"
    )
}

fn message(id: &str, parent: &str, message: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{message}}}\n"
    )
}

fn answer(text: &str, tokens: usize) -> String {
    format!(
        r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"api":"x","provider":"p","model":"m","stopReason":"stop","usage":{{"input":{tokens},"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":{tokens},"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}}}}"#
    )
}

/// The report, and the exit code.
fn replay(stage: &Stage, args: &[&str]) -> (Value, i32) {
    let output = stage.run(&[&["replay", "--json"], args].concat());
    let text = String::from_utf8(output.stdout).expect("text");
    let said = String::from_utf8_lossy(&output.stderr);
    (serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{said}")), output.status.code().expect("a code"))
}

fn last_id(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("the session");
    let last: Value = serde_json::from_str(text.lines().next_back().expect("a line")).expect("JSON");
    last["id"].as_str().expect("an id").to_owned()
}

fn name(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn each_turn_is_seen_as_if_live_and_nothing_is_written() {
    let script = r#"{"on":["message:user"],"entry":[{"custom":{"type":"seen","data":"$trigger"}}]}"#;
    let stage = Stage::new(0, &scripted("p", EVERY, script));
    let path = session(&stage, 3);
    let before = std::fs::read(&path).expect("the session");
    let (report, code) = replay(&stage, &[name(&path)]);
    let told = &report["sessions"][0];
    assert_eq!(code, 0);
    let seen: Vec<_> =
        told["grafts"].as_array().expect("grafts").iter().map(|g| g["drafts"][0]["data"].clone()).collect();
    assert_eq!(seen, ["q0", "q1", "q2"], "{told}");
    assert!(told["grafts"].as_array().expect("grafts").iter().all(|graft| graft["outcome"] == "grafted"));
    assert_eq!((&told["plugins"][0]["runs"], &told["plugins"][0]["proposed"]), (&json!(3), &json!(3)));
    assert_eq!(told["before"]["tokens"], told["after"]["tokens"], "a custom entry is in no context");
    assert_eq!(std::fs::read(&path).expect("the session"), before);
    assert!(!stage.path("state").exists(), "no store is made");
}

#[test]
fn two_replays_are_equal_to_the_byte() {
    let script = r#"{"on":["message:*"],"entry":[{"custom_message":{"type":"n","content":"\"note\""}},{"later":"x"}],
        "settled":[{"custom":{"type":"settled"}}]}"#;
    let stage = Stage::new(0, &scripted("p", EVERY, script));
    let path = session(&stage, 5);
    let run = || stage.run(&["replay", "--json", "--diff", name(&path), name(&path)]).stdout;
    let first = run();
    assert!(String::from_utf8_lossy(&first).contains("custom_message"));
    assert_eq!(first, run());
}

#[test]
fn what_the_daemon_grafted_is_left_out_and_comes_again() {
    let script = r#"{"on":["message:user"],"entry":[{"custom":{"type":"seen","data":"$trigger"}},{"custom_message":{"type":"n","content":"note"}}]}"#;
    let stage = Stage::new(0, &scripted("p", EVERY, script));
    let path = session(&stage, 2);
    stage.once(&["--closed", name(&path)]);
    append(&path, &message("u9", &format!("\"{}\"", last_id(&path)), r#"{"role":"user","content":"more"}"#));
    let (report, _) = replay(&stage, &[name(&path)]);
    let told = &report["sessions"][0];
    assert_eq!(told["leftOut"], 6, "two receipts, each with two entries");
    let outcomes: Vec<_> = told["grafts"]
        .as_array()
        .expect("grafts")
        .iter()
        .map(|g| (g["trigger"].clone(), g["outcome"].clone()))
        .collect();
    let expected = [("q0", "grafted"), ("q1", "grafted"), ("u9", "waiting")];
    assert_eq!(outcomes, expected.map(|(trigger, outcome)| (json!(trigger), json!(outcome))));
}

#[test]
fn behind_a_graft_tokens_are_estimated_and_what_the_cache_lost_is_counted() {
    let script = r#"{"on":["message:user"],"needs":["append:compaction"],"entry":[{"later":"x","unless":"once"},{"custom":{"type":"once"},"unless":"once"}],
        "settled":[{"compaction":{"summary":"in short","plan_keep":100}}]}"#;
    let stage = Stage::new(0, &scripted("p", EVERY, script));
    let path = session(&stage, 6);
    let (report, _) = replay(&stage, &["--diff", name(&path)]);
    let told = &report["sessions"][0];
    let tokens = |side: &str| told[side]["tokens"].as_u64().expect("tokens");
    assert_eq!((tokens("before"), told["recordedTokens"].clone()), (6000, json!(6000)), "as the model reported");
    assert!(tokens("after") < 4000, "estimated behind the compaction: {told}");
    let breaks = &told["after"]["breaks"];
    assert_eq!((&breaks[0]["message"], told["before"]["breaks"].clone()), (&json!(0), json!([])));
    assert!(breaks[0]["sentAnew"].as_u64().expect("tokens") > 0);
    let diff = told["diff"].as_array().expect("a diff");
    assert!(diff.iter().any(|line| line["new"]["summary"] == "in short"), "{diff:?}");
    assert!(diff.iter().any(|line| line["gone"]["role"] == "user"));
}

#[test]
fn a_compaction_of_pis_is_a_wanted_one() {
    let script = r#"{"on":["message:user"],"needs":["append:compaction"],"settled":[{"compaction":{"summary":"for $reason","plan_keep":100}}]}"#;
    let stage = Stage::new(0, &scripted("p", EVERY, script));
    let path = session(&stage, 3);
    append(
        &path,
        "{\"type\":\"compaction\",\"id\":\"c\",\"parentId\":\"a2\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"summary\":\"Pi's\",\"firstKeptEntryId\":\"q2\",\"tokensBefore\":3000}\n",
    );
    append(&path, &message("u9", "\"c\"", r#"{"role":"user","content":"more"}"#));
    let (report, _) = replay(&stage, &["--diff", name(&path)]);
    let told = &report["sessions"][0];
    assert_eq!(told["grafts"][0]["drafts"][0]["summary"], "for threshold");
    let diff = told["diff"].as_array().expect("a diff");
    assert!(diff.iter().any(|line| line["gone"]["summary"] == "Pi's"), "{diff:?}");
}

#[test]
fn refusals_conflicts_and_failures_are_told() {
    let one = r#"{"on":["message:assistant"],"entry":[{"edits":[{"target":"$trigger","text":"one"}]}]}"#;
    let two = r#"{"on":["message:assistant"],"entry":[{"edits":[{"target":"$trigger","text":"two"}]},{"custom":{"type":"pi.x"}}]}"#;
    let three = r#"{"on":["message:user"],"entry":[{"trap":true}]}"#;
    let plugins = [scripted("one", EVERY, one), scripted("two", EVERY, two), scripted("three", EVERY, three)].concat();
    let stage = Stage::new(0, &plugins);
    let path = session(&stage, 1);
    let (report, _) = replay(&stage, &[name(&path)]);
    let told = &report["sessions"][0];
    assert_eq!((&told["plugins"][1]["refused"], &told["plugins"][1]["conflicts"]), (&json!(2), &json!(1)), "{told}");
    assert_eq!(told["refusals"][0]["rule"], "pending");
    assert_eq!((&told["failures"][0]["plugin"], &told["failures"][0]["rule"]), (&json!("three"), &json!("trap")));
}

#[test]
fn a_branch_that_pi_left_is_left_here_too() {
    let script = r#"{"on":["message:assistant"],"entry":[{"custom_message":{"type":"n","content":"note"}}]}"#;
    let stage = Stage::new(0, &scripted("p", EVERY, script));
    let path = session(&stage, 1);
    // The first child goes behind the graft on a0, the second stays on a0.
    append(&path, &message("first", "\"a0\"", r#"{"role":"user","content":"one way"}"#));
    append(&path, &message("second", "\"a0\"", r#"{"role":"user","content":"another"}"#));
    let (report, _) = replay(&stage, &["--diff", name(&path)]);
    assert_eq!(report["sessions"][0]["diff"], json!([{ "same": 3 }]), "the note is on the other branch");
}

#[test]
fn a_baseline_fails_when_fuel_or_outcome_changed() {
    let script =
        |text: &str| format!(r#"{{"on":["message:user"],"entry":[{{"custom":{{"type":"seen","data":"{text}"}}}}]}}"#);
    let stage = Stage::new(0, &scripted("p", EVERY, &script("as before")));
    let (path, base) = (session(&stage, 2), stage.path("base.json"));
    assert_eq!(replay(&stage, &["--write-baseline", name(&base), name(&path)]).1, 0);
    let (report, code) = replay(&stage, &["--baseline", name(&base), name(&path)]);
    assert_eq!((report["changed"].clone(), code), (json!([]), 0));
    stage.configure(0, &scripted("p", EVERY, &script("otherwise, and longer")));
    let (report, code) = replay(&stage, &["--baseline", name(&base), name(&path)]);
    let changed: Vec<_> = report["changed"].as_array().expect("changes").iter().map(|c| c["what"].clone()).collect();
    assert_eq!(code, 1);
    assert!(
        changed.contains(&json!("plugins.p.fuel")) && changed.contains(&json!("grafts.0.drafts.0.data")),
        "{changed:?}"
    );
}

#[test]
fn a_component_is_replayed_without_a_config_and_against_another() {
    let stage = Stage::new(0, "");
    let path = session(&stage, 2);
    let wasm = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/prebuilt/scripted.wasm");
    let script = r#"{"on":["message:user"],"needs":["append:custom"],"entry":[{"custom":{"type":"seen"}}]}"#;
    let args = ["--plugin", wasm, "--plugin-config", script, "--against", wasm, name(&path)];
    let (report, code) = replay(&stage, &args);
    assert_eq!((code, report["differences"].clone()), (0, json!([])));
    assert_eq!(report["sessions"][0]["plugins"][0]["grafted"], 2, "it was granted what it asks for");
    assert_eq!(report["against"]["sessions"][0]["plugins"][0]["grafted"], 2);
}

#[test]
fn what_cannot_be_replayed_is_named_and_the_rest_is_replayed() {
    let stage = Stage::new(0, &scripted("p", EVERY, r#"{"entry":[]}"#));
    let (path, odd) = (session(&stage, 1), stage.session("odd.jsonl"));
    append(&odd, "not a session\n");
    let (report, code) = replay(&stage, &[name(&path), name(&odd)]);
    assert_eq!((report["sessions"].as_array().map(Vec::len), code), (Some(1), 1));
    assert!(report["failed"][0]["why"].as_str().is_some_and(|why| why.contains("S2.3")));
    let circle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/odd/12_cycle_two.jsonl");
    let output = stage.run(&["replay", name(&circle), name(&odd)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((said.matches("12_cycle_two").count(), said.matches("odd.jsonl").count()), (1, 1), "{said}");
}
