//! Every kind of finding: a session that has it, and what the real Pi does with that session.
//!
//! The table of `src/finding.rs` says what Pi does; here the scenes show it. Without Pi (see `tests/oracle/setup.sh`) only
//! our side is looked at.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use common::faults::{self, Fault};
use common::probe::Probe;
use pi_session::Tree;
use pi_session::check::{Checked, check};
use pi_session::finding::Finding;

fn checked(text: &[u8]) -> Checked {
    let tree = Arc::new(Tree::from_bytes(text));
    check(&tree, Arc::new(text.to_vec())).expect("memory can be read")
}

/// The names of what was found, each once, but for what every session of the scene has anyway.
fn names(text: &[u8]) -> BTreeSet<&'static str> {
    checked(text).problems.iter().map(|problem| problem.finding.name()).collect()
}

#[test]
fn each_fault_is_found_and_nothing_else() {
    for fault in faults::all() {
        let found = names(&fault.session);
        let expected: BTreeSet<_> = fault.findings.iter().copied().collect();
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(&fault.session));
    }
}

#[test]
fn there_is_a_scene_for_every_row_of_the_table() {
    let shown: BTreeSet<_> = faults::all().iter().flat_map(|fault| fault.findings.clone()).collect();
    // A line of half a gigabyte is no scene; `tree::note` has a test of its own for it.
    let missing: Vec<_> =
        Finding::ALL.iter().map(|f| f.name()).filter(|f| !shown.contains(f) && *f != "long-line").collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn pi_does_with_each_fault_what_the_table_says() {
    let Some(mut probe) = Probe::start() else { return };
    let file = std::env::temp_dir().join(format!("pi-session-faults-{}.jsonl", std::process::id()));
    let mut differing = Vec::new();
    for Fault { session, findings, pi, .. } in faults::all() {
        std::fs::write(&file, &session).expect("the temporary directory can be written to");
        let does = probe.ask(&file);
        if does != pi {
            differing.push(format!("{findings:?}\n  expected: {pi}\n  Pi:       {does}"));
        }
    }
    let _ = std::fs::remove_file(&file);
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// One byte less, and Pi still sees the header.
#[test]
fn how_far_pi_looks_for_a_header_is_known_to_the_byte() {
    let (_, near, _) = faults::far_header(1);
    assert_eq!(names(&near), BTreeSet::new());
    let Some(mut probe) = Probe::start() else { return };
    let file = std::env::temp_dir().join(format!("pi-session-near-{}.jsonl", std::process::id()));
    std::fs::write(&file, &near).expect("the temporary directory can be written to");
    assert_eq!(probe.ask(&file), "| user: hello / assistant: answer");
    let _ = std::fs::remove_file(&file);
}

#[test]
fn a_random_session_that_is_called_valid_does_not_trouble_pi() {
    valid_ones_do_not_trouble_pi("random", 600, 100, common::generate::session);
}

/// Any value of any line may be another one, or missing, or there twice.
#[test]
fn a_wild_session_that_is_called_valid_does_not_trouble_pi() {
    valid_ones_do_not_trouble_pi("wild", 2000, 100, common::generate::gently_wild);
}

fn valid_ones_do_not_trouble_pi(kind: &str, sessions: u64, enough: u32, make: fn(u64) -> Vec<u8>) {
    let Some(mut probe) = Probe::start() else { return };
    let file = std::env::temp_dir().join(format!("pi-session-valid-{kind}-{}.jsonl", std::process::id()));
    let (mut valid, mut differing) = (0, Vec::new());
    let first = std::env::var("ORACLE_SEED").map_or(1, |text| text.parse().expect("a number"));
    let sessions = std::env::var("ORACLE_SESSIONS").map_or(sessions, |text| text.parse().expect("a number"));
    for seed in first..first + sessions {
        let session = make(seed);
        if !checked(&session).valid {
            continue;
        }
        valid += 1;
        std::fs::write(&file, &session).expect("the temporary directory can be written to");
        if let Some(trouble) = trouble(&probe.ask(&file)) {
            differing.push(format!("seed {seed}: {trouble}"));
        }
    }
    let _ = std::fs::remove_file(&file);
    assert!(valid >= enough, "{valid} valid sessions are too few to compare");
    assert!(differing.is_empty(), "{valid} valid, {} trouble Pi:\n{}", differing.len(), differing.join("\n"));
}

/// What Pi does wrong with a session; that it ends a line or migrates the file is as it should be.
fn trouble(does: &str) -> Option<String> {
    let does = does.split('|').next().unwrap_or_default().replace("changed ended", "").replace("changed rewritten", "");
    let trouble = does.trim_matches([' ', ',']);
    (!trouble.is_empty()).then(|| trouble.to_owned())
}

#[test]
fn the_page_shows_the_table() {
    let row = |finding: &Finding| {
        let (name, severity, rule) = (finding.name(), finding.severity(), finding.rule());
        format!("| `{name}` | {severity} | {rule} | {} | {} |", finding.what(), finding.pi())
    };
    let table: Vec<String> = Finding::ALL.iter().map(row).collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("FINDINGS.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows, table, "copy the table into {}:\n{}\n", page.display(), table.join("\n"));
}

#[test]
fn names_stand_once() {
    let names: BTreeSet<_> = Finding::ALL.iter().map(|finding| finding.name()).collect();
    assert_eq!(names.len(), Finding::ALL.len());
}

#[test]
fn a_sound_session_has_no_findings() {
    for name in ["01_plain_chat", "03_manual_compact", "05_auto_mid_run", "07_extension_drafts", "09_fork_clone_cloned"]
    {
        let file = format!("../../tests/cases/real/{name}.jsonl");
        let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a case");
        let bad: Vec<_> = checked(&text)
            .problems
            .into_iter()
            .filter(|p| p.severity() > pi_session::problem::Severity::Info)
            .collect();
        assert_eq!(bad, [], "{name}");
    }
    assert!(checked(&common::typical::session(7, 1_000_000)).problems.is_empty());
}

#[test]
fn what_is_wrong_is_pointed_at() {
    let fault = faults::all().into_iter().find(|fault| fault.findings.contains(&"glued-lines")).expect("it is there");
    let text = String::from_utf8(fault.session.clone()).expect("text");
    let problem =
        checked(&fault.session).problems.into_iter().find(|p| p.finding == Finding::GluedLines).expect("found");
    let at = problem.at.expect("a glued line says where") as usize;
    assert!(text[at..].starts_with(r#"{"type":"message","id":"x""#), "{}", &text[at..]);
    assert_eq!(text[..at].matches('\n').count() as u32 + 1, problem.line);
    assert_eq!(problem.offset as usize, text[..at].rfind('\n').map_or(0, |end| end + 1));
}

#[test]
fn beyond_ten_thousand_problems_an_error_still_counts() {
    let [header, user, ..] = faults::LINES;
    let garbage = "x\n".repeat(20_000);
    assert!(checked(format!("{header}\n{user}\n{garbage}").as_bytes()).valid, "what Pi merely skips is a warning");
    let text =
        format!("{header}\n{user}\n{garbage}{}\n{garbage}", faults::message("m", "u1", r#""role":"user","content":5"#));
    let checked = checked(text.as_bytes());
    assert!(!checked.valid && checked.more > 10_000, "{} more", checked.more);
}
