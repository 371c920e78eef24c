//! What share of the paths, identifiers, error lines, constraints and open tasks of a conversation its summary keeps, against plain
//! truncation at the same size. The figures of the README are these:
//!
//! ```text
//! cargo test -p auto-compact --test measure -- --nocapture
//! MEASURE=a.jsonl:b.jsonl cargo test -p auto-compact --test measure recorded -- --nocapture
//! ```
mod made;
mod part;

use std::collections::BTreeMap;

use auto_compact::AutoCompact;
use pi_graft_plugin::serde_json::{self, Value};
use pi_graft_plugin::testing::FakeHost;
use pi_graft_plugin::{Json, Plan, Plugin, Run, Settled};

use part::Part;

/// What should not get lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// A path.
    Path,
    /// The name of something in code.
    Identifier,
    /// A line that reports an error.
    Error,
    /// What the user laid down.
    Constraint,
    /// What is left to do.
    Open,
}

/// Found and wanted, by kind.
type Shares = BTreeMap<Wanted, (usize, usize)>;

fn shares(wanted: &[(Wanted, String)], text: &str) -> Shares {
    let text = normal(text);
    let mut shares = Shares::new();
    for (kind, what) in wanted {
        let share = shares.entry(*kind).or_default();
        share.0 += usize::from(text.contains(&normal(what)));
        share.1 += 1;
    }
    shares
}

fn normal(text: &str) -> String {
    text.replace("- [ ] ", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The summary that the plugin proposes for this part.
fn summary(part: &Part, bytes: usize) -> String {
    let lines: Vec<String> = part.entries.iter().map(Value::to_string).collect();
    let mut host = FakeHost::new(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let files = |tools: &[&str]| {
        let calls = part.messages().flat_map(|message| message["content"].as_array().into_iter().flatten());
        let calls = calls.filter(|block| block["name"].as_str().is_some_and(|name| tools.contains(&name)));
        calls.filter_map(|call| call["arguments"]["path"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    host.plan = Some(Plan {
        first_kept: Some("kept".into()),
        split_turn: !part.prefix.is_empty(),
        tokens_before: 0,
        previous: None,
        previous_summary: None,
        previous_details: None,
        to_summarize: part.whole.clone(),
        turn_prefix: part.prefix.clone(),
        read_files: files(&["read"]),
        modified_files: files(&["edit", "write"]),
    });
    let config = Json::from_text(serde_json::json!({ "summary-bytes": bytes }).to_string()).to().expect("a config");
    let settled = Settled { reason: "manual".into(), ..Settled::default() };
    AutoCompact::on_settled(&config, &Run::on(&host), &settled).expect("it works");
    host.compactions.take().pop().map(|compaction| compaction.summary).unwrap_or_default()
}

/// Prints a table; gives the shares of summary, beginning and end.
fn measure(name: &str, part: &Part, wanted: &[(Wanted, String)], bytes: usize) -> [Shares; 3] {
    let summary = summary(part, bytes);
    let all = part.serialised();
    let begin = &all[..all.floor_char_boundary(summary.len())];
    let end = &all[all.ceil_char_boundary(all.len() - summary.len().min(all.len()))..];
    let found = [shares(wanted, &summary), shares(wanted, begin), shares(wanted, end)];
    println!("\n{name}: {} bytes of conversation, {} of summary", all.len(), summary.len());
    println!("| | of | summary | its beginning | its end |\n| --- | --- | --- | --- | --- |");
    for (kind, (_, of)) in &found[0] {
        let percent = |shares: &Shares| shares[kind].0 * 100 / of;
        let [summary, begin, end] = [0, 1, 2].map(|at| percent(&found[at]));
        println!("| {kind:?} | {of} | {summary} % | {begin} % | {end} % |");
    }
    if std::env::var_os("SHOW").is_some() {
        println!("{summary}");
    }
    found
}

#[test]
fn a_made_session_loses_less_than_by_truncation() {
    for (seed, turns) in [(1, 30), (2, 60), (3, 120)] {
        let made = made::session(seed, turns);
        let part = part::cut(made.lines, 40_000);
        let end = part.whole.len() + part.prefix.len();
        let mut wanted: Vec<_> =
            made.planted.into_iter().filter(|planted| planted.0 < end).map(|p| (p.1, p.2)).collect();
        wanted.sort();
        wanted.dedup();
        let [summary, begin, tail] = measure(&format!("made, {turns} turns"), &part, &wanted, 12 * 1024);
        for (kind, (found, of)) in summary {
            assert!(found >= begin[&kind].0.max(tail[&kind].0), "{kind:?}: {found} of {of}");
        }
    }
}

#[test]
fn recorded_sessions_are_measured() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/real");
    let cases = std::fs::read_dir(cases).expect("the cases").map(|case| case.expect("a case").path());
    let mut files: Vec<_> = cases.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    files.sort();
    if let Some(more) = std::env::var_os("MEASURE") {
        files.extend(std::env::split_paths(&more));
    }
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let entries = part::branch(&std::fs::read_to_string(&file).expect("a session"));
        let keep = if entries.len() > 100 { 80_000 } else { 400 };
        if entries.is_empty() {
            continue;
        }
        let part = part::cut(entries, keep);
        measure(&name, &part, &part.wanted(), 12 * 1024);
    }
}
