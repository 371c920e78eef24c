//! `session stats`: entries, tokens and cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::entry::EntryKind;
use pi_session::time::iso;
use pi_session::totals::Usage;
use serde_json::{Value, json};

use crate::cli::failure::{Failure, Outcome};
use crate::cli::find::session_file;
use crate::cli::open::Opened;
use crate::cli::out::{Out, grouped, json_number};

/// Arguments of `session stats`.
#[derive(Debug, Args)]
pub struct Stats {
    /// The sessions: paths, session ids, or unique beginnings of one.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Stats {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        for (at, file) in self.files.iter().enumerate() {
            let opened = Opened::session(&session_file(file, config)?)?;
            let facts = Facts::of(&opened)?;
            if out.json {
                out.line(facts.json(&opened))?;
            } else {
                out.put(if at > 0 { "\n" } else { "" })?;
                facts.write(&opened, out)?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// What is counted.
struct Facts {
    by_type: BTreeMap<&'static str, u64>,
    roots: usize,
    leaves: usize,
    depth: u32,
    context_tokens: Option<f64>,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
}

impl Facts {
    fn of(opened: &Opened) -> Result<Facts, Failure> {
        let tree = &opened.tree;
        let entries = tree.entries();
        let mut by_type = BTreeMap::new();
        entries.iter().for_each(|entry| *by_type.entry(entry.kind.as_str()).or_default() += 1);
        let parents: Vec<_> = opened.entries.iter().map(|ix| tree.parent(*ix)).collect();
        let mut has_child = vec![false; entries.len()];
        parents.iter().flatten().for_each(|parent| has_child[parent.index()] = true);
        let branch = opened.branch(None).ok();
        let context_tokens = branch.as_ref().map(|b| b.tokens(&b.context()).map(|t| t.total)).transpose()?;
        let times = || entries.iter().filter_map(|entry| entry.time_ms);
        Ok(Facts {
            by_type,
            roots: parents.iter().filter(|parent| parent.is_none()).count(),
            leaves: has_child.iter().filter(|has| !**has).count(),
            depth: tree.depth(),
            context_tokens,
            first_ms: times().min(),
            last_ms: times().max(),
        })
    }

    fn json(&self, opened: &Opened) -> Value {
        let totals = opened.tree.totals();
        let by_model: serde_json::Map<_, _> =
            totals.by_model.iter().map(|(name, usage)| (name.clone(), usage_json(usage))).collect();
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
            "usage": usage_json(&totals.all),
            "byModel": by_model,
            "from": self.first_ms.map(iso),
            "to": self.last_ms.map(iso),
        })
    }

    fn compactions(&self) -> u64 {
        self.by_type.get(EntryKind::Compaction.as_str()).copied().unwrap_or(0)
    }

    fn write(&self, opened: &Opened, out: &mut Out) -> Result<(), Failure> {
        let totals = opened.tree.totals();
        out.line(opened.path.display())?;
        out.line(format!("  entries   {}", grouped(opened.tree.entries().len() as u64)))?;
        for (name, count) in &self.by_type {
            out.line(format!("    {name:<22} {:>9}", grouped(*count)))?;
        }
        out.line(format!("  tree      {} roots, {} leaves, {} deep", self.roots, self.leaves, self.depth))?;
        if let Some(tokens) = self.context_tokens {
            out.line(format!("  context   {} tokens, {} compactions", grouped(tokens as u64), self.compactions()))?;
        }
        if let (Some(first), Some(last)) = (self.first_ms, self.last_ms) {
            out.line(format!("  time      {} to {}", iso(first), iso(last)))?;
        }
        out.line(format!("  used      {}", usage_text(&totals.all)))?;
        for (name, usage) in &totals.by_model {
            let name = if name.is_empty() { "no model named" } else { name };
            out.line(format!("    {name:<28} {}", usage_text(usage)))?;
        }
        Ok(())
    }
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

fn usage_text(usage: &Usage) -> String {
    let Usage { input, output, cache_read, cache_write, cost } = *usage;
    let [input, output, read, write] = [input, output, cache_read, cache_write].map(|n| grouped(n as u64));
    format!("{input} in, {output} out, {read} read and {write} written in the cache, ${cost:.4}")
}
