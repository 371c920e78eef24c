//! `session plan-compaction`: the compaction that Pi would make now (S10).

use std::collections::HashMap;
use std::path::Path;

use clap::Args;
use pi_session::Branch;
use pi_session::compaction::{Plan, PlanSettings};
use serde_json::json;

use super::File;
use super::context::write_list;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::{Out, grouped, js_number, quoted};

/// Arguments of `session plan-compaction`.
#[derive(Debug, Args)]
pub struct PlanCompaction {
    #[command(flatten)]
    file: File,
    /// The leaf to plan for; default: where Pi would go on.
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    /// Tokens to keep free in the context window.
    #[arg(long, value_name = "N", default_value_t = PlanSettings::default().reserve)]
    reserve: u64,
    /// Tokens of the newest part to keep as they are.
    #[arg(long, value_name = "N", default_value_t = PlanSettings::default().keep_recent)]
    keep: u64,
}

impl PlanCompaction {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let branch = self.file.session(config)?.branch(self.leaf.as_deref())?;
        let settings = PlanSettings { reserve: self.reserve, keep_recent: self.keep };
        match branch.plan(&settings)? {
            Some(plan) if out.json => write_json(&branch, &plan, out)?,
            Some(plan) => write_text(&branch, &plan, out)?,
            None if out.json => out.line("null")?,
            None => out.line("nothing to compact")?,
        }
        Ok(Outcome::Done)
    }
}

fn write_json(branch: &Branch, plan: &Plan, out: &mut Out) -> Result<(), Failure> {
    let (kept, split, tokens) = (quoted(&plan.first_kept_id), plan.split_turn, js_number(plan.tokens_before));
    out.put(&format!("{{\"firstKeptEntryId\":{kept},\"isSplitTurn\":{split},\"tokensBefore\":{tokens}"))?;
    if let Some(summary) = &plan.previous_summary {
        out.put(&format!(",\"previousSummary\":{summary}"))?;
    }
    out.put(",\"messagesToSummarize\":[")?;
    write_messages(branch, &plan.to_summarize, out)?;
    out.put("],\"turnPrefixMessages\":[")?;
    write_messages(branch, &plan.turn_prefix, out)?;
    let (read, modified) = (json!(plan.read_files), json!(plan.modified_files));
    out.line(format!("],\"readFiles\":{read},\"modifiedFiles\":{modified}}}"))?;
    Ok(())
}

fn write_messages(branch: &Branch, places: &[u32], out: &mut Out) -> Result<(), Failure> {
    let context = branch.context();
    let by_place: HashMap<u32, _> = context.entries.iter().map(|entry| (entry.place, entry)).collect();
    let mut first = true;
    for entry in places.iter().filter_map(|place| by_place.get(place)) {
        write_list(&branch.messages(entry)?, &mut first, out)?;
    }
    Ok(())
}

fn write_text(branch: &Branch, plan: &Plan, out: &mut Out) -> Result<(), Failure> {
    let kept = branch.item(plan.first_kept_place);
    let total = branch.len() - plan.first_kept_place;
    out.line(format!("tokens now   {}", grouped(plan.tokens_before as u64)))?;
    out.line(format!("first kept   {} ({}), {total} entries on", plan.first_kept_id, kept.facts.role.as_str()))?;
    out.line(format!("summarise    {} entries", plan.to_summarize.len()))?;
    if plan.split_turn {
        out.line(format!("split turn   {} entries at its beginning are summarised apart", plan.turn_prefix.len()))?;
    }
    if plan.previous_summary.is_some() {
        out.line("             and the summary of the compaction before")?;
    }
    for (name, files) in [("read", &plan.read_files), ("modified", &plan.modified_files)] {
        for file in files {
            out.row(&format!("{name:<12} {file}"))?;
        }
    }
    Ok(())
}
