//! `trim-tool-results`: an old, large result becomes a stub; the session stays whole, and can be compacted.

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
