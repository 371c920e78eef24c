//! A graft: whose it is, what it is made of, how it came here and what became of it.

use pi_session::branch::BranchError;
use pi_session::grafted::Grafted;
use pi_session::grafts::Fate;
use pi_session::tree::EntryIx;
use serde::Serialize;
use serde_json::value::RawValue;

use super::entry::Brief;
use super::run::{Became, RunTold, became, is_run};
use super::{InFile, Known};
use crate::journal::{PI_HAS_IT, RunRecord};

/// The graft that an entry belongs to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraftTold {
    /// Its batch.
    pub batch: String,
    /// The plugin, as the config calls it.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// `on-entry` or `on-settled`; `undo` of what takes the plugin's work back.
    pub handler: String,
    /// Why it ran.
    pub reason: String,
    /// What it ran on.
    pub trigger: Brief,
    /// Which of the batch's drafts the entry is, from 0; none: it is the receipt.
    pub draft: Option<usize>,
    /// Its entries: the receipt, where that is one, and the drafts.
    pub entries: Vec<String>,
    /// The drafts that are in the file.
    pub drafts: Vec<Box<RawValue>>,
    /// Whether that is all that the receipt speaks of.
    pub whole: bool,
    /// `known` (Pi has gone on from it, or had it over its bridge), `orphaned` (Pi went on beside it), `unproven` (nobody has
    /// written behind it yet).
    pub fate: &'static str,
    /// The receipt by which the user has taken it back (`pi-graft undo`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<String>,
    /// The batch of which it brings what was missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// Other grafts of the same run: what continues it, its edits on other branches, what Pi passed over.
    pub others: Vec<GraftBrief>,
    /// How it came into the file, if that is known.
    pub delivered: Option<Delivered>,
    /// Its run, and the tries before it, oldest first; none if the log does not have it.
    pub runs: Vec<RunTold>,
    /// What became of the batch, as the log has it, oldest first.
    pub became: Vec<Became>,
}

/// A graft in a few words.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraftBrief {
    /// Its batch.
    pub batch: String,
    /// The plugin.
    pub plugin: String,
    /// `on-entry` or `on-settled`.
    pub handler: String,
    /// Its first entry.
    pub entry: String,
    /// Whether it is on the active branch.
    pub active: bool,
    /// As in [`GraftTold`].
    pub fate: &'static str,
    /// As in [`GraftTold`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// How a graft came into the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivered {
    /// `direct`: appended by pi-graft; `bridge`: by Pi, which was handed it.
    pub how: &'static str,
    /// Over a bridge: `boundary`, `idle`, or `compaction` (in place of Pi's own).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<&'static str>,
    /// When the log says so, Unix milliseconds.
    pub at_ms: Option<i64>,
}

impl InFile {
    pub(super) fn graft_told(&self, graft: &Grafted, ix: EntryIx, known: &Known) -> Result<GraftTold, BranchError> {
        let (receipt, source) = (&graft.receipt, self.source.as_ref());
        let drafts = graft.drafts(&self.tree, source)?;
        let became = became(known, &receipt.batch);
        let same = |other: &&Grafted| other.receipt.is_of(&receipt.plugin, &receipt.handler, &receipt.trigger);
        let others = self.grafts.iter().filter(same).filter(|other| *other != graft);
        let mut entries: Vec<EntryIx> = graft.entries(&self.tree).collect();
        let draft = entries.iter().position(|entry| *entry == ix);
        entries.splice(0..0, (!graft.inside).then_some(graft.first));
        Ok(GraftTold {
            batch: receipt.batch.clone(),
            plugin: receipt.plugin.clone(),
            version: receipt.version.clone(),
            digest: receipt.digest.clone(),
            handler: receipt.handler.clone(),
            reason: receipt.reason.clone(),
            trigger: self.brief_of(&receipt.trigger),
            draft,
            entries: entries.iter().map(|ix| self.tree.id(*ix).to_owned()).collect(),
            drafts: drafts.into_iter().filter_map(|draft| RawValue::from_string(draft).ok()).collect(),
            whole: graft.is_whole(&self.tree, source)?,
            fate: fate_text(graft.fate),
            undone: graft.undone.map(|by| self.tree.id(by).to_owned()),
            continues: receipt.continues.clone(),
            others: others.map(|other| self.graft_brief(other)).collect(),
            delivered: delivered(graft, &became),
            runs: known.rows.iter().filter(|row| is_its_run(row, graft)).map(|row| self.run_told(row, known)).collect(),
            became,
        })
    }

    pub(super) fn graft_brief(&self, graft: &Grafted) -> GraftBrief {
        GraftBrief {
            batch: graft.receipt.batch.clone(),
            plugin: graft.receipt.plugin.clone(),
            handler: graft.receipt.handler.clone(),
            entry: self.tree.id(graft.first).to_owned(),
            active: self.is_active(graft.first),
            fate: fate_text(graft.fate),
            continues: graft.receipt.continues.clone(),
        }
    }
}

fn is_its_run(row: &RunRecord, graft: &Grafted) -> bool {
    is_run(row) && graft.receipt.is_of(&row.plugin, row.handler.as_str(), &row.trigger)
}

fn fate_text(fate: Fate) -> &'static str {
    match fate {
        Fate::Unproven => "unproven",
        Fate::Known => "known",
        Fate::Orphaned => "orphaned",
    }
}

/// The receipt in a compaction tells by itself; of the rest the log knows.
fn delivered(graft: &Grafted, became: &[Became]) -> Option<Delivered> {
    let last = |outcome: &str| became.iter().rev().find(|one| one.outcome == outcome);
    let landed = last("grafted");
    let over = |when, at_ms| Some(Delivered { how: "bridge", when, at_ms });
    let at_ms = landed.map(|one| one.at_ms);
    if graft.inside {
        return over(Some("compaction"), at_ms);
    }
    match (last("handed over"), last("pushed"), landed) {
        (Some(_), ..) => over(Some("boundary"), at_ms),
        (None, Some(_), _) => over(Some("idle"), at_ms),
        (None, None, Some(landed)) if landed.message == PI_HAS_IT => over(None, at_ms),
        (None, None, Some(_)) => Some(Delivered { how: "direct", when: None, at_ms }),
        (None, None, None) => None,
    }
}
