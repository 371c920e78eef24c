//! A run, as the log has it, and what became of what it proposed.

use serde::Serialize;

use super::{InFile, Known};
use crate::journal::{About, Refused, RunRecord};

/// A run of a plugin.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunTold {
    /// The plugin.
    pub plugin: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// `on-entry` or `on-settled`.
    pub handler: &'static str,
    /// Why it ran: `entry`, or the reason of `on-settled`. None in rows of before.
    pub reason: Option<String>,
    /// The entry that it ran on.
    pub trigger: String,
    /// When it ended, Unix milliseconds.
    pub at_ms: i64,
    /// Which try it was.
    pub attempt: Option<u32>,
    /// `nothing`, `proposed`, `later`, or how it failed.
    pub outcome: String,
    /// Why it failed, and what is done about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The drafts of it that were refused.
    pub refused: Vec<Refused>,
    /// Instructions used, about.
    pub fuel: u64,
    /// Wall clock, microseconds.
    pub micros: u64,
    /// Answers of models that it was given.
    pub answers: usize,
    /// What it proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// What became of that, oldest first.
    pub became: Vec<Became>,
    /// Whether that still waits.
    pub pending: bool,
    /// Where it begins in the file: on a branch, perhaps on several.
    pub entries: Vec<String>,
}

/// What became of a batch at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Became {
    /// When, Unix milliseconds.
    pub at_ms: i64,
    /// `handed over`, `grafted`, `stale`, `orphaned`, …
    pub outcome: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Whether a row is about a run.
pub(super) fn is_run(row: &RunRecord) -> bool {
    row.about == About::Run
}

/// What the log says became of a batch.
pub(super) fn became(known: &Known, batch: &str) -> Vec<Became> {
    let of_batch = |row: &&RunRecord| row.about == About::Batch && row.batch.as_deref() == Some(batch);
    let told =
        |row: &RunRecord| Became { at_ms: row.at_ms, outcome: row.outcome.clone(), message: row.message.clone() };
    known.rows.iter().filter(of_batch).map(told).collect()
}

impl InFile {
    pub(super) fn run_told(&self, row: &RunRecord, known: &Known) -> RunTold {
        let batch = row.batch.as_deref();
        // What was refused stands in the message too, where nothing failed.
        let message = if row.refused.is_empty() || row.is_failure() { row.message.clone() } else { String::new() };
        let is_its = |receipt: &pi_session::receipt::Receipt| {
            batch.is_some() && receipt.is_of(&row.plugin, row.handler.as_str(), &row.trigger)
        };
        let grafts = self.grafts.iter().filter(|graft| is_its(&graft.receipt));
        RunTold {
            plugin: row.plugin.clone(),
            digest: row.digest.clone(),
            handler: row.handler.as_str(),
            reason: row.given.as_ref().map(|given| given.reason.clone()),
            trigger: row.trigger.clone(),
            at_ms: row.at_ms,
            attempt: row.given.as_ref().map(|given| given.attempt),
            outcome: row.outcome.clone(),
            message,
            refused: row.refused.clone(),
            fuel: row.fuel,
            micros: row.micros,
            answers: row.given.as_ref().map_or(0, |given| given.answers.len()),
            batch: row.batch.clone(),
            became: batch.map(|batch| became(known, batch)).unwrap_or_default(),
            pending: batch.is_some_and(|batch| known.pending.iter().any(|pending| pending == batch)),
            entries: grafts.map(|graft| self.tree.id(graft.first).to_owned()).collect(),
        }
    }
}
