//! Real sessions, grown in writes of random size under a running daemon with `auto-compact` at a small window.

use std::fs;
use std::path::Path;

use crate::stage::{Stage, append, until};
use crate::talk::{Session, Talk, pi_reads};

const COMPACT: &str = r#"[[plugin]]
name = "auto-compact"
grants = ["append:compaction"]
[plugin.config]
context-window = 400
at = "80%"
reserve-tokens = 100
keep-recent-tokens = 20
min-saving = 1
"#;

#[test]
fn every_real_session_ends_with_the_compaction_in_its_context() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/real");
    let mut seed = 1;
    let mut names: Vec<_> = fs::read_dir(cases).expect("the cases").flatten().map(|e| e.path()).collect();
    names.retain(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    names.sort();
    assert!(names.len() >= 7, "{names:?}");
    for case in names {
        let stage = Stage::new(400, COMPACT);
        let whole = fs::read_to_string(&case).expect("a case") + &two_more_turns(&stage, &case);
        let daemon = stage.daemon(&["--backfill", "--closed"]);
        let path = stage.session(&case.file_name().expect("a name").to_string_lossy());
        let mut rest = whole.as_str();
        while !rest.is_empty() {
            let at = rest.floor_char_boundary(random(&mut seed) % 900 + 1).max(1);
            append(&path, &rest[..at]);
            rest = &rest[at..];
        }
        until(&case.display().to_string(), || Session::read(&path).receipts() == 1);
        daemon.end();
        let after = Session::read(&path);
        after.assert_sound();
        let text = fs::read_to_string(&path).expect("the session");
        assert!(text.starts_with(&whole), "what Pi wrote is untouched");
        let branch = after.branch();
        let last = branch.last_compaction().expect("a compaction");
        assert!(branch.facts(last).from_hook && branch.context().entries[0].place == last, "ours is in force");
        check_with_pi(&path);
    }
}

/// The cases are small: with these turns there is something to summarise in each.
fn two_more_turns(stage: &Stage, case: &Path) -> String {
    let copy = stage.path("copy.jsonl");
    fs::copy(case, &copy).expect("a copy");
    let mut pi = Talk::reopen(&copy);
    let before = fs::metadata(&copy).expect("its size").len() as usize;
    for turn in ["first", "second"] {
        pi.user(&format!(
            "Please look at src/{turn}.rs and never touch the tests. {}",
            "It matters a lot. ".repeat(60)
        ));
        pi.assistant(&format!("I changed src/{turn}.rs as you asked. {}", "All of it works now. ".repeat(60)));
    }
    fs::read_to_string(&copy).expect("the copy").split_off(before)
}

fn random(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

/// The real Pi opens it, and has the compaction in its context.
fn check_with_pi(path: &Path) {
    let Some(answer) = pi_reads(path) else { return };
    assert_eq!(answer["loadError"], serde_json::Value::Null);
    assert_eq!(answer["fileChangedByOpen"], false);
    let roles = answer["leaves"][0]["messageRoles"].as_array().expect("roles");
    assert!(roles.iter().any(|role| role == "compactionSummary"), "{roles:?}");
}
