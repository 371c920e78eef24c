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
    /// A line that reports an error which nothing has settled since.
    Error,
    /// One of an error that was settled later.
    Settled,
    /// What the user laid down.
    Constraint,
    /// What is left to do.
    Open,
}

impl Wanted {
    fn label(self) -> &'static str {
        match self {
            Self::Path => "paths",
            Self::Identifier => "identifiers",
            Self::Error => "errors that stand",
            Self::Settled => "errors settled since",
            Self::Constraint => "constraints",
            Self::Open => "open tasks",
        }
    }
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

/// A summary, and the files that go on from it.
#[derive(Default)]
struct Made {
    text: String,
    details: Option<String>,
}

/// What the plugin proposes for this part, behind the compaction before.
fn summary(part: &Part, before: Option<&Made>, bytes: usize) -> Made {
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
        previous_summary: before.map(|made| made.text.clone()),
        previous_details: before.and_then(|made| made.details.clone()),
        to_summarize: part.whole.clone(),
        turn_prefix: part.prefix.clone(),
        read_files: files(&["read"]),
        modified_files: files(&["edit", "write"]),
    });
    let config = Json::from_text(serde_json::json!({ "summary-bytes": bytes }).to_string()).to().expect("a config");
    let settled = Settled { reason: "manual".into(), ..Settled::default() };
    AutoCompact::on_settled(&config, &Run::on(&host), &settled).expect("it works");
    let made = host.compactions.take().pop();
    made.map(|made| Made { text: made.summary, details: made.details.map(|json| json.as_str().to_owned()) })
        .unwrap_or_default()
}

/// The rows of a table: what of `wanted` is in the summary, and in as many bytes of either end of the conversation.
fn rows(name: &str, talk: &str, summary: &str, wanted: &[(Wanted, String)]) -> (String, [Shares; 3]) {
    let begin = &talk[..talk.floor_char_boundary(summary.len())];
    let end = &talk[talk.ceil_char_boundary(talk.len() - summary.len().min(talk.len()))..];
    let found = [shares(wanted, summary), shares(wanted, begin), shares(wanted, end)];
    let (mut rows, mut name) = (String::new(), name);
    for (kind, (_, of)) in &found[0] {
        let [summary, begin, end] = [0, 1, 2].map(|at| found[at][kind].0 * 100 / of);
        rows += &format!("| {name} | {} | {of} | {summary} % | {begin} % | {end} % |\n", kind.label());
        name = "";
    }
    (rows, found)
}

const HEAD: &str = "| session | | of | summary | beginning | end |\n| --- | --- | --- | --- | --- | --- |\n";

/// What was put into these entries, each once.
fn wanted(made: &made::Made, entries: std::ops::Range<usize>) -> Vec<(Wanted, String)> {
    let here = made.planted.iter().filter(|planted| entries.contains(&planted.0));
    let mut wanted: Vec<_> = here.map(|planted| (planted.1, planted.2.clone())).collect();
    wanted.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
    // An error that came again and stands is one that stands.
    wanted.dedup_by(|a, b| a.1 == b.1);
    wanted.sort();
    wanted
}

/// Most bytes of the summaries: what the plugin has unless it is told otherwise.
const BYTES: usize = 12 * 1024;

/// The README's rows, and whether a class is worse off than by truncation.
fn once(seed: u64, turns: usize) -> (String, [Shares; 3]) {
    let made = made::session(seed, turns);
    let part = part::cut(made.lines.clone(), 40_000);
    let wanted = wanted(&made, 0..part.whole.len() + part.prefix.len());
    let (talk, told) = (part.serialised(), summary(&part, None, BYTES).text);
    if std::env::var_os("SHOW").is_some() {
        println!("{told}");
    }
    rows(&format!("made, {turns} turns (of {} KB)", talk.len() / 1000), &talk, &told, &wanted)
}

/// The same session compacted three times, each updating the one before; all of it, and what the first summarised.
fn thrice(seed: u64, turns: usize) -> (String, Vec<[Shares; 3]>) {
    let made = made::session(seed, turns);
    let all = part::cut(made.lines.clone(), 40_000);
    let end = all.whole.len() + all.prefix.len();
    let cuts = [0, end / 3, end * 2 / 3, end];
    let told = cuts.windows(2).fold(None, |before: Option<Made>, cut| {
        let part = part::whole(made.lines[cut[0]..cut[1]].to_vec());
        Some(summary(&part, before.as_ref(), BYTES))
    });
    let (talk, told) = (all.serialised(), told.unwrap_or_default().text);
    if std::env::var_os("SHOW").is_some() {
        println!("{told}");
    }
    let of_all = rows(&format!("the same {turns} turns in three compactions"), &talk, &told, &wanted(&made, 0..end));
    let of_first = rows("of it what the first one summarised", &talk, &told, &wanted(&made, 0..cuts[1]));
    ([of_all.0, of_first.0].concat(), vec![of_all.1, of_first.1])
}

#[test]
fn a_made_session_keeps_what_truncation_loses_and_the_readme_says_so() {
    let (mut table, mut all) = (HEAD.to_owned(), Vec::new());
    for (seed, turns) in [(2, 60), (3, 120), (4, 240)] {
        let (rows, found) = once(seed, turns);
        table += &rows;
        all.push(found);
    }
    let (rows, found) = thrice(3, 120);
    table += &rows;
    all.extend(found);
    println!("{table}");
    for (at, [summary, begin, end]) in all.iter().enumerate() {
        for (kind, (found, of)) in summary {
            let cut = begin[kind].0.max(end[kind].0);
            // What was settled goes first; of the longest not all is read in full.
            let most = at == 2 || *found * 10 >= of * 7;
            let better = *kind == Wanted::Settled || most && *found > 2 * cut;
            assert!(better, "{at}, {kind:?}: {found} of {of}, {cut} by truncation\n{table}");
        }
    }
    assert!(include_str!("../../README.md").contains(&table), "the README has other figures than\n{table}");
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
        let (talk, told) = (part.serialised(), summary(&part, None, BYTES).text);
        let name = format!("{name} ({} bytes into {})", talk.len(), told.len());
        println!("{HEAD}{}", rows(&name, &talk, &told, &part.wanted()).0);
    }
}
