//! `session plan-compaction`: the compaction that Pi would make now (S10).

use std::collections::HashMap;
use std::path::Path;

use clap::Args;
use pi_session::Branch;
use pi_session::compaction::{Plan, PlanSettings};
use pi_session::settings::{Facts, Given, Known, ModelId};
use serde_json::json;

use super::File;
use super::context::write_list;
use crate::cli::around;
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
    /// Tokens to keep free in the context window; default: as in Pi's settings for the session's directory and model.
    #[arg(long, value_name = "N")]
    reserve: Option<u64>,
    /// Tokens of the newest part to keep as they are; default: as in Pi's settings.
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
}

impl PlanCompaction {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        let branch = opened.branch(self.leaf.as_deref())?;
        let (facts, model) = around::facts(&opened, &branch, &self.given())?;
        let settings = PlanSettings { reserve: facts.reserve.value, keep_recent: facts.keep_recent.value };
        let plan = branch.plan(&settings)?;
        match &plan {
            Some(plan) if out.json => return write_json(&branch, plan, out).map(|()| Outcome::Done),
            None if out.json => out.line("null")?,
            Some(plan) => write_text(&branch, plan, out)?,
            None => out.line("nothing to compact")?,
        }
        if !out.json {
            write_numbers(&branch, &facts, model.as_ref(), out)?;
        }
        Ok(Outcome::Done)
    }

    fn given(&self) -> Given {
        let by = |value: Option<u64>, flag: &str| value.map(|value| (value, flag.to_owned()));
        Given { reserve: by(self.reserve, "--reserve"), keep_recent: by(self.keep, "--keep"), window: None }
    }
}

/// What the plan was made with, and when Pi would make it, each number with who says so.
fn write_numbers(branch: &Branch, facts: &Facts, model: Option<&ModelId>, out: &mut Out) -> Result<(), Failure> {
    out.line("")?;
    let row =
        |name: &str, known: &Known<u64>| format!("{name:<12} {:<9} {}", grouped(known.value), around::origin_of(known));
    out.row(&row("reserve", &facts.reserve))?;
    out.row(&row("keep", &facts.keep_recent))?;
    let name = model.map(around::name_of).unwrap_or_else(|| "no model named".to_owned());
    match &facts.window {
        Some(window) => out.row(&format!("{} ({name})", row("window", window)))?,
        None => out.row(&format!("{:<12} not known ({name})", "window"))?,
    }
    let tokens = branch.tokens(&branch.context())?.total;
    let when = match facts.threshold() {
        _ if !facts.enabled.value => format!("never by itself ({})", around::origin_of(&facts.enabled)),
        None => "cannot be said without a window".to_owned(),
        Some(threshold) if tokens > threshold as f64 => format!("now: over {} tokens", grouped(threshold)),
        Some(threshold) => format!("over {} tokens", grouped(threshold)),
    };
    Ok(out.row(&format!("{:<12} {when}", "Pi compacts"))?)
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
