//! What the log says of a session, as little of it as is needed: which runs are to be made again and when, what each batch
//! held, and what became of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::journal::{About, Given, RunRecord, Text};
use crate::sandbox::Plugin;

use super::RunLog;
use crate::replay::ReplayError;

/// Whose runs belong together: one plugin's handler on one trigger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub plugin: Arc<str>,
    pub handler: &'static str,
    pub trigger: Arc<str>,
}

/// A row about a run that is to be made again.
pub(super) struct Planned {
    pub place: Place,
    pub digest: Arc<str>,
    /// Which of the loaded plugins makes it.
    pub with: usize,
    pub given: GivenThen,
    pub outcome: Arc<str>,
    /// The rules by which drafts were refused.
    pub refused: Vec<Arc<str>>,
    pub batch: Option<Arc<str>>,
    pub drafts: Option<Arc<str>>,
    /// Its number among the rows.
    pub row: usize,
}

/// What a run was given; see [`crate::journal::Given`]. A log has many rows, and most say the same.
pub(super) struct GivenThen {
    pub reason: Arc<str>,
    pub entries: u64,
    pub pending: Vec<Arc<str>>,
    pub facts: Arc<str>,
    pub told: Option<Arc<str>>,
    pub answers: Vec<Arc<str>>,
}

/// Why runs are not made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Why {
    NotLoaded,
    Digest,
    Config,
    Old,
    Clock,
    /// What it was given is not kept any more.
    Forgotten,
    /// The entry that it ran on is not in this file, and nothing of it.
    Elsewhere,
}

impl Why {
    pub(super) fn text(self) -> &'static str {
        match self {
            Why::NotLoaded => "no plugin of this name is loaded",
            Why::Digest => "another version of it is loaded",
            Why::Config => "it is loaded with another config, other grants or other limits",
            Why::Old => "an older pi-graft kept the row, without what the run was given",
            Why::Clock => "it failed by the clock, or nobody waited for it any more",
            Why::Forgotten => "what it was given is not in the log any more",
            Why::Elsewhere => "the entry that it ran on is not in this file: that of a copy, or the file was changed",
        }
    }
}

/// What became of a batch, as far as that explains what the file has of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fate {
    /// The log says that it is in the file.
    pub landed: bool,
    /// Some of it was left out or lost, and the log says why.
    pub told: bool,
}

/// What a batch held from some row on.
struct Held {
    row: usize,
    plugin: Arc<str>,
    /// The drafts' hash.
    drafts: Arc<str>,
}

/// The log of one session.
#[derive(Default)]
pub(super) struct Plan {
    /// Rows there are.
    pub rows: usize,
    /// In the order in which they are to be made: by the entries that they saw.
    pub runs: Vec<Planned>,
    /// Runs that are not made again: by row, whose, which digest, and why.
    pub others: Vec<(Place, Arc<str>, Why)>,
    /// What each batch held, by id, oldest row first.
    batches: HashMap<Arc<str>, Vec<Held>>,
    pub fates: HashMap<Arc<str>, Fate>,
    pub pending: BTreeSet<String>,
    words: BTreeSet<Arc<str>>,
}

impl Plan {
    /// Reads the log page by page.
    pub(super) fn read(log: &dyn RunLog, session: &str, plugins: &[Arc<Plugin>]) -> Result<Plan, ReplayError> {
        let settings = plugins.iter().map(|plugin| Text::new(Arc::clone(plugin.settings())));
        let loaded: BTreeMap<&str, (usize, &str, String)> = plugins
            .iter()
            .zip(settings)
            .enumerate()
            .map(|(at, (plugin, settings))| (plugin.name(), (at, plugin.digest(), settings.hash().to_owned())))
            .collect();
        let (mut plan, mut after) = (Plan::default(), None);
        loop {
            let page = log.page(session, after).map_err(ReplayError::Log)?;
            for row in page.rows {
                plan.take(row, &loaded);
            }
            (after, plan.pending) = (page.next, page.pending.into_iter().collect());
            if after.is_none() {
                break;
            }
        }
        plan.runs.sort_by_key(|run| (run.given.entries, run.row));
        Ok(plan)
    }

    /// One text, however often it comes.
    fn word(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.words.get(text) {
            return Arc::clone(known);
        }
        let word: Arc<str> = text.into();
        self.words.insert(Arc::clone(&word));
        word
    }

    fn take(&mut self, row: RunRecord, loaded: &BTreeMap<&str, (usize, &str, String)>) {
        let number = self.rows;
        self.rows += 1;
        let batch = row.batch.as_deref().map(|batch| self.word(batch));
        let drafts = row.drafts.as_deref().map(|drafts| self.word(drafts));
        if let (Some(batch), Some(drafts)) = (&batch, &drafts) {
            let held = Held { row: number, plugin: self.word(&row.plugin), drafts: Arc::clone(drafts) };
            self.batches.entry(Arc::clone(batch)).or_default().push(held);
        }
        match row.about {
            About::Run => self.take_run(row, number, batch, drafts, loaded),
            About::Batch => batch.into_iter().for_each(|batch| self.take_fate(batch, &row)),
            About::Plugin => {}
        }
    }

    fn take_fate(&mut self, batch: Arc<str>, row: &RunRecord) {
        let fate = self.fates.entry(batch).or_default();
        match row.outcome.as_str() {
            "grafted" => fate.landed = true,
            "left out" | "stale" | "dropped" | "torn" => fate.told = true,
            // What was left out is said there.
            "handed over" | "pushed" => fate.told |= !row.message.is_empty(),
            _ => {}
        }
    }

    fn take_run(
        &mut self,
        row: RunRecord,
        number: usize,
        batch: Option<Arc<str>>,
        drafts: Option<Arc<str>>,
        loaded: &BTreeMap<&str, (usize, &str, String)>,
    ) {
        let place =
            Place { plugin: self.word(&row.plugin), handler: row.handler.as_str(), trigger: self.word(&row.trigger) };
        let digest = self.word(&row.digest);
        match planned(&row, loaded) {
            Err(why) => self.others.push((place, digest, why)),
            Ok(with) => {
                let given = self.given(&row.given.unwrap_or_default());
                let outcome = self.word(&row.outcome);
                let refused = row.refused.iter().map(|refused| self.word(&refused.rule)).collect();
                self.runs.push(Planned { place, digest, with, given, outcome, refused, batch, drafts, row: number });
            }
        }
    }

    fn given(&mut self, given: &Given) -> GivenThen {
        GivenThen {
            reason: self.word(&given.reason),
            entries: given.entries,
            pending: given.pending.iter().map(|batch| self.word(batch)).collect(),
            facts: self.word(&given.facts),
            told: given.told.as_deref().map(|told| self.word(told)),
            answers: given.answers.iter().map(|answer| self.word(answer)).collect(),
        }
    }

    /// What a batch held when this row was written: whose it was, and the drafts' hash.
    pub(super) fn batch_at(&self, batch: &str, row: usize) -> Option<(&Arc<str>, &Arc<str>)> {
        let all = self.batches.get(batch)?;
        let before = all.iter().rev().find(|held| held.row < row);
        before.or(all.first()).map(|held| (&held.plugin, &held.drafts))
    }
}

/// Which of the loaded plugins makes a run again, or why none does.
fn planned(row: &RunRecord, loaded: &BTreeMap<&str, (usize, &str, String)>) -> Result<usize, Why> {
    let (at, digest, settings) = loaded.get(row.plugin.as_str()).ok_or(Why::NotLoaded)?;
    let given = row.given.as_ref().ok_or(Why::Old)?;
    match row.outcome.as_str() {
        _ if row.digest != *digest => Err(Why::Digest),
        _ if given.config != *settings => Err(Why::Config),
        "deadline" | "session" | "over" => Err(Why::Clock),
        _ => Ok(*at),
    }
}
