//! All four shipped plugins in one chain, redacting first, eager to work: on the case sessions and on made ones they refuse
//! nothing, leave the context whole, and do the same again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::stage::{Stage, shipped};
use crate::talk::{Session, Talk};

const COMPACT: &str = r#"
context-window = 4000
reserve-tokens = 1000
keep-recent-tokens = 500
min-saving = 1
"#;
const TRIM: &str = r#"
older-than-turns = 1
larger-than = 100
min-saving = 200
expected-requests = 100
"#;
const BUDGET: &str = r#"
session = 0.002
model = 0.003
day = [0.001, 0.01]
"#;

fn chain() -> String {
    shipped(COMPACT, TRIM, BUDGET)
}

/// The case sessions that are of the current version.
fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    let files = ["real", "odd", "pages"].map(|dir| std::fs::read_dir(root.join(dir)).expect("the cases"));
    let paths = files.into_iter().flatten().map(|entry| entry.expect("a file").path());
    let mut cases: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect();
    cases.sort();
    cases
}

/// Dice that fall the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn secret(&mut self) -> String {
        let digits: String = (0..12).map(|_| char::from(b'a' + self.below(26) as u8)).collect();
        format!("DB_PASSWORD={digits}{}!", self.below(1000))
    }
}

/// A session of many turns, with secrets, large results and branches, that costs something.
fn busy(path: &Path, seed: u64) {
    let (mut dice, mut pi) = (Dice(seed), Talk::begin(path));
    let mut ends = Vec::new();
    for turn in 0..30 {
        let ask = if dice.below(4) == 0 {
            dice.secret()
        } else {
            "Go on with src/main.rs, but never touch the tests.".to_owned()
        };
        pi.user(&ask);
        for call in 0..dice.below(4) {
            let id = format!("call_{turn}_{call}");
            pi.call(&id, "bash");
            let text = format!("{}\n{}", dice.secret(), "all is well here. ".repeat(dice.below(500) as usize));
            pi.result(&id, &text);
        }
        ends.push(answer(&mut pi, dice.below(9)));
        if dice.below(8) == 0 {
            pi.go_to(&ends[dice.below(ends.len() as u64) as usize].clone());
        }
    }
}

fn answer(pi: &mut Talk, cost: u64) -> String {
    let usage = format!(
        r#""usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{{"total":0.000{cost}}}}}"#
    );
    let message = format!(
        r#""message":{{"role":"assistant","content":[{{"type":"text","text":"Done, as you said."}}],"api":"x","provider":"p","model":"m",{usage},"stopReason":"stop","timestamp":1}}"#
    );
    pi.entry("message", &message)
}

/// Results in the context whose call is not before them.
fn without_call(stage: &Stage, path: &Path) -> BTreeSet<String> {
    let output = stage.run(&["session", "context", "--json", path.to_str().expect("a path")]);
    let context: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let (mut calls, mut alone) = (BTreeSet::new(), BTreeSet::new());
    for message in context["messages"].as_array().into_iter().flatten() {
        let blocks = message["content"].as_array().into_iter().flatten();
        calls.extend(blocks.filter(|block| block["type"] == "toolCall").map(|block| block["id"].to_string()));
        let result = message["toolCallId"].to_string();
        if message["role"] == "toolResult" && !calls.contains(&result) {
            alone.insert(result);
        }
    }
    alone
}

/// What `session validate` calls an error: the rules.
fn errors(stage: &Stage, path: &Path) -> Vec<String> {
    let output = stage.run(&["session", "validate", "--json", path.to_str().expect("a path")]);
    let told: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let problems = told["problems"].as_array().into_iter().flatten();
    problems.filter(|one| one["severity"] == "error").map(|one| one["rule"].to_string()).collect()
}

/// Replays a session twice; what the report says of it, if it can be replayed.
fn replayed(stage: &Stage, path: &Path) -> Option<Value> {
    let run = || stage.run(&["replay", "--json", "--diff", path.to_str().expect("a path")]).stdout;
    let report = run();
    assert_eq!(report, run(), "{}: the same again", path.display());
    let report: Value = serde_json::from_slice(&report).expect("a report");
    report["sessions"].get(0).cloned()
}

/// Nothing fails, and nothing is refused but what gives way to what is pending.
fn check(told: &Value) {
    assert_eq!(told["failures"], serde_json::json!([]), "{told}");
    for refusal in told["refusals"].as_array().into_iter().flatten() {
        assert_eq!(refusal["rule"], "pending", "a conflict, and told as one: {refusal}");
    }
    let plugins = told["plugins"].as_array().into_iter().flatten();
    assert!(plugins.into_iter().all(|one| one["refused"] == one["conflicts"]), "{told}");
}

/// What the daemon itself makes of a copy.
fn handled(path: &Path) {
    let stage = Stage::new(1, &chain());
    let copy = stage.session("a.jsonl");
    std::fs::copy(path, &copy).expect("a copy");
    let (alone, wrong) = (without_call(&stage, &copy), errors(&stage, &copy));
    let name = copy.to_str().expect("a path");
    stage.run(&["run", "--once", "--closed", "--backfill", name]);
    assert_eq!(errors(&stage, &copy), wrong, "{}", path.display());
    assert!(without_call(&stage, &copy).is_subset(&alone), "{}", path.display());
    let grafts = Session::read(&copy).receipts();
    stage.run(&["run", "--once", "--closed", "--backfill", name]);
    let again = Session::read(&copy).receipts();
    assert!(again == grafts || again == grafts + 1, "{}: {grafts} grafts, then {again}", path.display());
}

#[test]
fn on_every_case_session_the_chain_refuses_nothing_and_leaves_the_context_whole() {
    let stage = Stage::new(1, &chain());
    let mut told = 0;
    for path in cases() {
        if let Some(report) = replayed(&stage, &path) {
            check(&report);
            told += 1;
            if report["grafts"].as_array().is_none_or(Vec::is_empty) {
                continue;
            }
        }
        handled(&path);
    }
    assert!(told > 40, "{told}");
}

#[test]
fn on_made_sessions_too_and_each_plugin_has_work() {
    for seed in 1..5 {
        let stage = Stage::new(1, &chain());
        let path = stage.session("a.jsonl");
        busy(&path, seed);
        let report = replayed(&stage, &path).expect("a session");
        check(&report);
        for plugin in report["plugins"].as_array().expect("the plugins") {
            assert!(plugin["grafted"].as_u64().is_some_and(|grafts| grafts > 0), "{plugin}");
        }
        handled(&path);
    }
}
