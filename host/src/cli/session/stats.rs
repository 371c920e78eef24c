//! `session stats`: entries, tokens and cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::entry::EntryKind;
use pi_session::settings::{Given, Known, ModelId};
use pi_session::time::iso;
use pi_session::totals::{Usage, day_name};
use serde_json::{Value, json};

use crate::cli::around;
use crate::cli::cores::cores;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::find::session_file;
use crate::cli::open::Opened;
use crate::cli::out::{Out, grouped, json_number, say};
use crate::cli::paint::{Ink, Row};
use crate::cli::preview;
use crate::cli::progress::Progress;
use crate::cli::when::Zone;
use crate::files::shown;

/// Arguments of `session stats`.
#[derive(Debug, Args)]
pub struct Stats {
    /// The sessions: paths, session ids, or unique beginnings of one.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Stats {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let paths = self.files.iter().map(|file| session_file(file, config)).collect::<Result<Vec<_>, _>>()?;
        let size = |path: &PathBuf| path.metadata().map_or(0, |meta| meta.len());
        let progress = Progress::of("reading", paths.iter().map(size).sum());
        let (mut outcome, mut first) = (Outcome::Done, true);
        for path in &paths {
            match Opened::of_many(path, &progress, cores()).and_then(Opened::if_session) {
                Ok(opened) => tell(&opened, std::mem::take(&mut first), out)?,
                // What one file is says nothing of the others.
                Err(Failure::Problem(message)) => {
                    say(message);
                    outcome = Outcome::Problems;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(outcome)
    }
}

fn tell(opened: &Opened, is_first: bool, out: &mut Out) -> Result<(), Failure> {
    let facts = Facts::of(opened)?;
    if out.json {
        return Ok(out.line(facts.json(opened))?);
    }
    out.put(if is_first { "" } else { "\n" })?;
    facts.write(opened, out)
}

/// What is counted.
struct Facts {
    by_type: BTreeMap<&'static str, u64>,
    roots: usize,
    leaves: usize,
    depth: u32,
    context_tokens: Option<f64>,
    window: Option<Known<u64>>,
    model: Option<ModelId>,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
}

impl Facts {
    fn of(opened: &Opened) -> Result<Facts, Failure> {
        let tree = &opened.tree;
        let entries = tree.entries();
        let mut by_type = BTreeMap::new();
        entries.iter().for_each(|entry| *by_type.entry(entry.kind.as_str()).or_default() += 1);
        let parents: Vec<_> = tree.all().map(|ix| tree.parent(ix)).collect();
        let mut has_child = vec![false; entries.len()];
        parents.iter().flatten().for_each(|parent| has_child[parent.index()] = true);
        let branch = opened.branch(None).ok();
        let context_tokens = branch.as_ref().map(|b| b.tokens(&b.context()).map(|t| t.total)).transpose()?;
        let around = branch.as_ref().map(|branch| around::facts(opened, branch, &Given::default())).transpose()?;
        let (window, model) = around.map_or((None, None), |(facts, model)| (facts.window, model));
        let times = || entries.iter().filter_map(|entry| entry.time_ms);
        Ok(Facts {
            by_type,
            roots: parents.iter().filter(|parent| parent.is_none()).count(),
            leaves: has_child.iter().filter(|has| !**has).count(),
            depth: tree.depth(),
            context_tokens,
            window,
            model,
            first_ms: times().min(),
            last_ms: times().max(),
        })
    }

    fn json(&self, opened: &Opened) -> Value {
        let totals = opened.tree.totals();
        let by_model: serde_json::Map<_, _> =
            totals.by_model.iter().map(|(name, usage)| (name.clone(), usage_json(usage))).collect();
        let by_day: serde_json::Map<_, _> =
            totals.by_day.iter().map(|(day, usage)| (day_name(*day), usage_json(usage))).collect();
        json!({
            "path": opened.path.display().to_string(),
            "id": opened.tree.header().map(|header| header.id.as_str()),
            "entries": opened.tree.entries().len(),
            "byType": self.by_type,
            "roots": self.roots,
            "leaves": self.leaves,
            "depth": self.depth,
            "compactions": self.compactions(),
            "contextTokens": self.context_tokens.map(json_number),
            "contextWindow": self.window.as_ref().map(|known| known.value),
            "contextWindowFrom": self.window.as_ref().map(|known| known.origin.to_string()),
            "model": self.model.as_ref().map(|model| json!({ "provider": model.provider, "modelId": model.id })),
            "usage": usage_json(&totals.all),
            "byModel": by_model,
            "byDay": by_day,
            "from": self.first_ms.map(iso),
            "to": self.last_ms.map(iso),
        })
    }

    fn compactions(&self) -> u64 {
        self.by_type.get(EntryKind::Compaction.as_str()).copied().unwrap_or(0)
    }

    fn write(&self, opened: &Opened, out: &mut Out) -> Result<(), Failure> {
        let (tree, totals) = (&opened.tree, opened.tree.totals());
        out.line(shown(&opened.path))?;
        out.paint(&fact("name", tree.name().map(preview::one_line).unwrap_or_default()))?;
        let shape = format!("{}, {}, {} deep", many(self.roots, "root"), many(self.leaves, "leaf"), self.depth);
        out.paint(&fact("tree", format!("{}, {shape}", many(tree.entries().len(), "entry"))))?;
        let tokens = self.context_tokens.map(|tokens| around::of_window(tokens, self.window.as_ref()));
        let compactions = many(self.compactions() as usize, "compaction");
        out.paint(&fact("context", tokens.map(|tokens| format!("{tokens}, {compactions}")).unwrap_or_default()))?;
        let model = self.model.as_ref().map(around::name_of);
        out.paint(&fact("model", model.unwrap_or_default()))?;
        out.paint(&fact("time", self.span().unwrap_or_default()))?;
        out.line("")?;
        for (name, count) in &self.by_type {
            out.paint(&Row::new().and(Ink::Dim, &format!("  {name:<22}")).number(Ink::Plain, 11, &grouped(*count)))?;
        }
        out.line("")?;
        let heads = ["input", "output", "cache read", "written"].map(str::to_owned);
        out.paint(&usage_row(Ink::Dim, "tokens", &heads, "cost"))?;
        for (name, usage) in &totals.by_model {
            let name = if name.is_empty() { "no model named" } else { name };
            out.paint(&of_usage(Ink::Plain, name, usage))?;
        }
        if totals.by_model.len() != 1 {
            out.paint(&of_usage(Ink::Bold, "all", &totals.all))?;
        }
        Ok(())
    }

    /// From the first to the last time, on this machine's clock.
    fn span(&self) -> Option<String> {
        let (zone, first, last) = (Zone::of_process(), self.first_ms?, self.last_ms?);
        Some(format!("{} to {}", zone.minutes(first), zone.minutes(last)))
    }
}

/// A fact; none where there is nothing to say.
fn fact(name: &str, value: String) -> Row {
    let value = if value.is_empty() { "-".to_owned() } else { value };
    Row::new().and(Ink::Dim, &format!("  {name:<9}")).and(Ink::Plain, &value)
}

fn many(count: usize, one: &str) -> String {
    let word = match one {
        _ if count == 1 => one.to_owned(),
        "leaf" => "leaves".to_owned(),
        "entry" => "entries".to_owned(),
        _ => format!("{one}s"),
    };
    format!("{} {word}", grouped(count as u64))
}

fn of_usage(ink: Ink, name: &str, usage: &Usage) -> Row {
    let Usage { input, output, cache_read, cache_write, cost } = *usage;
    let numbers = [input, output, cache_read, cache_write].map(|n| grouped(n as u64));
    usage_row(ink, name, &numbers, &format!("${cost:.4}"))
}

fn usage_row(ink: Ink, name: &str, numbers: &[String; 4], cost: &str) -> Row {
    let row = Row::new().and(ink, "  ").column(ink, 22, name);
    numbers.iter().fold(row, |row, number| row.number(ink, 11, number)).number(ink, 10, cost)
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "input": json_number(usage.input),
        "output": json_number(usage.output),
        "cacheRead": json_number(usage.cache_read),
        "cacheWrite": json_number(usage.cache_write),
        "cost": json_number(usage.cost),
    })
}
