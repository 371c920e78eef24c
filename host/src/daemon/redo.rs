//! Making runs again: failed ones whose time has come, and what passed while a plugin was suspended or not loaded.
//!
//! Such a run sees what it would have seen then (product.md 4.3): the lines up to its trigger, so the file is read anew up
//! to there into a tree of its own; and behind the trigger what was pending when it failed. What passed without a plugin
//! is run in order, before any newer entry of the session; new entries join its end meanwhile. All of it is done in
//! portions, so that new entries do not wait for the other plugins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pi_session::Tree;
use pi_session::branch::{Branch, BranchError, Origin};
use pi_session::tree::{EntryIx, Pushed};
use tracing::{debug, info};

use crate::files::FilesError;
use crate::journal::{Change, FailedRun, Handler, Passed};
use crate::sandbox::{self, Plugin};

use super::call::Call;
use super::dispatch::RUNS_AT_ONCE;
use super::session::{Session, StepError};
use super::world::World;

/// How long one portion takes, about.
const PORTION: Duration = Duration::from_secs(2);

/// What is to be made again.
#[derive(Default)]
struct Work {
    failed: Vec<FailedRun>,
    passed: BTreeMap<String, Passed>,
}

impl Work {
    /// Whether something is to be done at the entry with this number.
    fn wants(&self, entries: u64) -> bool {
        let passed = |passed: &Passed| passed.from < entries && entries <= passed.to;
        self.failed.iter().any(|run| run.entries == entries) || self.passed.values().any(passed)
    }

    /// The number of the last entry at which something is to be done.
    fn last(&self) -> u64 {
        let failed = self.failed.iter().map(|run| run.entries);
        failed.chain(self.passed.values().map(|passed| passed.to)).max().unwrap_or(0)
    }
}

impl Session {
    /// Makes again what is due, and those that the user named. Says when to look again.
    pub(super) fn redo(&mut self, world: &World, named: &[String]) -> Result<Option<Duration>, StepError> {
        if self.failed.is_empty() && self.record.standing.is_empty() && self.record.later.is_empty() {
            return Ok(None);
        }
        self.forget_disabled(world);
        self.name_again(named);
        self.wish_again(world);
        if world.stops().is_some() {
            return Ok(None);
        }
        let work = self.work(world);
        let whole = work.last() == 0 || self.make_again(world, &work)?;
        self.save_changes(world)?;
        Ok(if whole { self.next_due(world) } else { Some(Duration::ZERO) })
    }

    /// When to look again where Pi waits for something else now.
    pub(super) fn redo_later(&self, world: &World) -> Option<Duration> {
        let owes = self.record.standing.iter().any(|standing| standing.owes.is_some());
        if owes { Some(PORTION) } else { self.next_due(world) }
    }

    fn save_changes(&mut self, world: &World) -> Result<(), StepError> {
        if self.changes.is_empty() && self.runs.is_empty() { Ok(()) } else { self.save(world, Vec::new()) }
    }

    /// What the user named is tried at once, as if it had not been before.
    fn name_again(&mut self, named: &[String]) {
        for run in self.failed.iter_mut().filter(|run| named.contains(&run.id)) {
            (run.retry_ms, run.tries) = (Some(0), 0);
            self.changes.push(Change::Put(Box::new(run.clone())));
        }
    }

    /// Failed runs of `on-settled` that are to be made again are wished for anew: they are made on the leaf of then.
    fn wish_again(&mut self, world: &World) {
        let is_due = |run: &FailedRun| run.handler == Handler::OnSettled && is_due(world, run);
        let due: Vec<FailedRun> = self.failed.iter().filter(|run| is_due(run)).cloned().collect();
        for run in due {
            self.done_with(Some(&run));
            run.notes.into_iter().for_each(|note| {
                self.ask_later(crate::journal::Note { failed: 0, not_before_ms: None, ..note });
            });
        }
    }

    /// Whether a plugin is loaded, and not suspended.
    fn may_run(&self, world: &World, name: &str) -> bool {
        let plugin = world.plugins.iter().find(|plugin| plugin.name() == name);
        plugin.is_some_and(|plugin| !self.is_suspended(world, plugin))
    }

    fn work(&self, world: &World) -> Work {
        let may_run = |name: &str| self.may_run(world, name);
        let failed = self.failed.iter().filter(|run| run.handler == Handler::OnEntry && is_due(world, run));
        let failed = failed.filter(|run| may_run(&run.plugin)).cloned().collect();
        let owes = self.record.standing.iter().filter_map(|of| Some((of.plugin.clone(), of.owes?)));
        Work { failed, passed: owes.filter(|(name, _)| may_run(name)).collect() }
    }

    /// How long until the next failed run is tried again, or the next wish may be granted. What is due and cannot be done now
    /// (its plugin is suspended or not loaded, the branch is not settled) is looked at when that changes.
    fn next_due(&self, world: &World) -> Option<Duration> {
        let now = world.steady_ms();
        let failed = self.failed.iter().filter(|run| self.may_run(world, &run.plugin)).filter_map(|run| run.retry_ms);
        let wishes = self.record.later.iter().filter_map(|note| note.not_before_ms).filter(|at| *at > now);
        let at = failed.chain(wishes).min()?;
        Some(Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0)))
    }

    /// Reads the file anew up to the last entry at which something is due. False if something was left for later.
    fn make_again(&mut self, world: &World, work: &Work) -> Result<bool, StepError> {
        let (reading, read_to, last) = (self.reading.clone(), self.read_to, work.last());
        let (mut past, begun) = (Arc::new(Tree::new()), Instant::now());
        let (mut whole, mut failure) = (true, None);
        let read = reading.lines(0, |offset, line| {
            if offset >= read_to {
                return false;
            }
            let pushed = Arc::make_mut(&mut past).push(offset, line);
            let (Pushed::Entry(ix), entries) = (pushed, past.entries().len() as u64) else { return true };
            if work.wants(entries) {
                failure = self.again_at(world, work, &past, ix).err();
                whole = entries >= last || (world.stops().is_none() && begun.elapsed() < PORTION);
            }
            failure.is_none() && whole && entries < last
        });
        read.map_err(|source| FilesError::Io { path: self.path.clone(), source })?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if whole {
            self.forget_beyond(work, past.entries().len() as u64);
        }
        Ok(whole)
    }

    /// What was to be made again at entries that the file does not have any more.
    fn forget_beyond(&mut self, work: &Work, entries: u64) {
        let gone = work.failed.iter().filter(|run| run.entries > entries);
        gone.for_each(|run| self.done_with(Some(run)));
        for (plugin, _) in work.passed.iter().filter(|(_, passed)| passed.to > entries) {
            self.paid(plugin, u64::MAX);
        }
    }

    /// Makes again what is due at one entry, in the config's order.
    fn again_at(&mut self, world: &World, work: &Work, past: &Arc<Tree>, ix: EntryIx) -> Result<(), StepError> {
        let entries = past.entries().len() as u64;
        for plugin in &world.plugins {
            let name = plugin.name();
            let run = work.failed.iter().find(|run| run.plugin == name && run.entries == entries);
            let owed = work.passed.contains_key(name)
                && self.owed(name).is_some_and(|passed| passed.from < entries && entries <= passed.to)
                && !self.is_suspended(world, plugin);
            if run.is_some() || (owed && !self.is_history(world, ix)) {
                self.again(world, plugin, past, ix, run)?;
            }
            if owed {
                self.paid(name, entries);
            }
        }
        if self.runs.len() < RUNS_AT_ONCE { Ok(()) } else { self.save(world, Vec::new()) }
    }

    fn again(
        &mut self,
        world: &World,
        plugin: &Plugin,
        past: &Arc<Tree>,
        ix: EntryIx,
        before: Option<&FailedRun>,
    ) -> Result<(), StepError> {
        let trigger = past.id(ix).to_owned();
        let branch = match self.branch_of_then(world, past, ix, before) {
            Err(StepError::Branch(BranchError::Cycle(_))) => {
                self.done_with(before);
                return Ok(());
            }
            branch => branch?,
        };
        let is_it = before.is_none_or(|before| before.trigger == trigger);
        let wakes = branch.in_file() > 0 && plugin.wakes_on(&branch, branch.in_file() - 1)?;
        if !is_it || !wakes || self.is_done(plugin.name(), Handler::OnEntry, &trigger) {
            debug!(session = %self.path.display(), plugin = plugin.name(), trigger, "not made again: there is nothing to do");
            self.done_with(before);
            return Ok(());
        }
        let fresh = before.is_some_and(|before| before.digest != plugin.digest());
        let tries = before.filter(|_| !fresh).map_or(0, |before| before.tries);
        info!(session = %self.path.display(), plugin = plugin.name(), trigger, tries, "made again");
        let Call { run, mut asked } = self.call(world, plugin, sandbox::Handler::OnEntry, branch, ix)?;
        asked.given.attempt = tries + 1;
        let report = plugin.run(run);
        let mut done = self.conclude(plugin, &trigger, asked, report);
        self.judge_entry(world, plugin, &mut done, before);
        self.runs.push(done.record);
        match done.batch {
            Some(batch) => self.save(world, vec![batch]),
            None => Ok(()),
        }
    }

    /// The branch up to an entry, with what was pending when a run on it failed; of an entry that passed, with what is
    /// pending now.
    fn branch_of_then(
        &self,
        world: &World,
        past: &Arc<Tree>,
        ix: EntryIx,
        before: Option<&FailedRun>,
    ) -> Result<Branch, StepError> {
        let mut branch = Branch::at(past, self.source(), Some(ix))?;
        match before {
            Some(before) => {
                for id in &before.pending {
                    self.push_batch(world, &mut branch, id)?;
                }
            }
            None => {
                let here = |trigger: &str| branch.place_of(trigger).is_some();
                let pending = self.pending.iter().map(|recorded| recorded.batch());
                let pending: Vec<_> = pending.filter(|batch| here(&batch.trigger)).collect();
                pending.iter().for_each(|batch| push(&mut branch, &batch.plugin, &batch.id, &batch.drafts));
            }
        }
        Ok(branch)
    }

    /// Puts a batch that was pending behind a branch, as the store or the log has it.
    fn push_batch(&self, world: &World, branch: &mut Branch, id: &str) -> Result<(), StepError> {
        if let Some(recorded) = self.pending.iter().find(|recorded| recorded.batch().id == id) {
            let batch = recorded.batch();
            push(branch, &batch.plugin, &batch.id, &batch.drafts);
            return Ok(());
        }
        let row = world.journal.runs(1, |row| row.batch.as_deref() == Some(id) && row.drafts.is_some())?.pop();
        if let Some((plugin, hash)) = row.and_then(|row| Some((row.plugin, row.drafts?)))
            && let Some(drafts) = world.journal.text(&hash)?
        {
            push(branch, &plugin, id, &drafts);
        }
        Ok(())
    }
}

fn push(branch: &mut Branch, plugin: &str, batch: &str, drafts: &str) {
    let origin = Arc::new(Origin { plugin: plugin.to_owned(), batch: batch.to_owned() });
    branch.push_all(drafts, &origin);
}

/// Whether a failed run is to be made again now: its pause is over, or another version of its plugin is loaded.
fn is_due(world: &World, run: &FailedRun) -> bool {
    let plugin = world.plugins.iter().find(|plugin| plugin.name() == run.plugin);
    plugin.is_some_and(|plugin| match run.retry_ms {
        Some(at) => at <= world.steady_ms(),
        None => run.digest != plugin.digest(),
    })
}
