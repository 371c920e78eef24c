//! `trim-tool-results`: an old, large result becomes a stub; the session stays whole, and can be compacted.

use serde_json::Value;

use crate::stage::Stage;
use crate::talk::{Session, Talk};

const TRIM: &str = "[[plugin]]\nname = \"trim-tool-results\"\ngrants = [\"append:context_edit\"]\n[plugin.config]\nolder-than-turns = 1\n";

#[test]
fn an_old_result_becomes_a_stub_and_the_newest_turn_is_left_alone() {
    let stage = Stage::new(1, TRIM);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    for turn in ["c1", "c2"] {
        pi.user("look at it");
        pi.call(turn, "bash");
        pi.result(turn, &format!("{turn} {}", "word ".repeat(if turn == "c1" { 12_000 } else { 2_000 })));
        pi.assistant("done");
    }
    let name = path.to_str().expect("a path");
    let log = stage.once(&["--closed"]);
    let output = stage.run(&["session", "context", "--json", name]);
    let context = String::from_utf8(output.stdout).expect("text");
    assert!(context.contains("[The result of bash {} (about 15"), "{log}");
    assert!(!context.contains("c1 word") && context.contains("c2 word"), "{log}");
    assert_eq!(Session::read(&path).receipts(), 1);
    let plan = stage.run(&["session", "plan-compaction", "--keep", "100", "--json", name]);
    assert!(plan.status.success() && String::from_utf8_lossy(&plan.stdout).contains("firstKeptEntryId"));
    stage.once(&["--closed"]);
    assert_eq!(Session::read(&path).receipts(), 1, "once");
    Session::read(&path).assert_sound();
}

/// What an edit costs by breaking the cache, what it saves at each later request, and when it has paid for itself.
#[test]
fn a_replay_gives_the_account_of_the_cache() {
    let stage = Stage::new(1, &TRIM.replace("turns = 1", "turns = 3\nlarger-than = 5000"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    for turn in ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"] {
        pi.user("look at it");
        pi.call(turn, "bash");
        pi.result(turn, &"word ".repeat(if turn == "c1" { 12_000 } else { 2_000 }));
        pi.assistant("done");
    }
    let output = stage.run(&["replay", "--json", path.to_str().expect("a path")]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let told = &report["sessions"][0];
    let number = |side: &str, name: &str| told[side]["account"][name].as_u64().expect("a number");
    assert_eq!((number("before", "requests"), number("after", "requests")), (16, 16), "{told}");
    let (anew, broken) = (&told["after"]["sentAnew"], &told["after"]["breaks"][0]);
    let gone = broken["tokensBefore"].as_u64().expect("a number") - broken["tokensAfter"].as_u64().expect("a number");
    assert_eq!(told["before"]["breaks"], serde_json::json!([]));
    // Without the plugin each token is sent anew once; with it, what stands behind the stub is twice.
    let twice = number("after", "written") - number("before", "written");
    assert!(twice > 4000 && anew.as_u64().is_some_and(|anew| twice <= anew), "{told}");
    assert!(
        number("before", "read") - number("after", "read") > 6 * gone,
        "each later request reads so much less: {told}"
    );
    let balance = &told["balance"];
    assert!(balance["saved"].as_i64().is_some_and(|saved| saved > 0), "{balance}");
    let paid = balance["paidBackAfter"].as_u64().expect("it was dearer first");
    assert!(balance["dearerAt"].is_u64() && broken["paysAfter"].as_u64().is_some_and(|most| paid <= most), "{told}");
    let said = String::from_utf8(stage.run(&["replay", path.to_str().expect("a path")]).stdout).expect("text");
    assert!(said.contains("in fresh tokens (read 0.1, written 1.25): ") && said.contains("pays after"), "{said}");
}
