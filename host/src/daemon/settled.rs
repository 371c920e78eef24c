//! `on-settled` runs: made outside the entry queue, on the leaf of a moment when the branch is at rest, when Pi stands at a
//! boundary, or when a compaction is wanted.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pi_session::branch::Branch;
use pi_session::draft::Draft;
use pi_session::tree::EntryIx;
use tracing::{debug, info, warn};

use super::asking::Asking;
use super::call::{Call, CallFacts};
use super::links::AskId;
use super::session::{Session, StepError};
use super::world::World;
use crate::journal::{Batch, Handler, Note};
use crate::sandbox::{self, FailureKind, Plugin, Run, RunReport};

/// The grant without which no compaction can be proposed.
const MAY_COMPACT: &str = "append:compaction";

/// An `on-settled` run that is to be made outside the entry queue.
pub struct SettledJob {
    /// Whose.
    pub plugin: Arc<Plugin>,
    /// On what.
    pub run: Run,
    /// The wishes that it grants.
    pub asked: Vec<Note>,
    /// What the log is to say of it.
    pub(super) facts: CallFacts,
    /// The ask that wants a compaction, if it is made for one.
    pub wanted: Option<AskId>,
    /// The models that it may ask.
    pub(super) asking: Asking,
}

/// An `on-settled` run that was made.
pub struct SettledDone {
    /// Whose.
    pub plugin: Arc<Plugin>,
    /// The leaf it ran on.
    pub trigger: String,
    /// The wishes that it granted.
    pub asked: Vec<Note>,
    /// As in [`SettledJob`].
    pub(super) facts: CallFacts,
    /// As in [`SettledJob`].
    pub wanted: Option<AskId>,
    /// What came of it.
    pub report: RunReport,
}

/// Who makes the compaction that Pi wants.
pub(super) enum Wanted {
    /// This run.
    Run(Box<SettledJob>),
    /// A plugin that is at work on this session: there is one such run of a plugin at a time.
    Busy,
    /// No plugin is left that may.
    Nobody,
}

/// Who wants a compaction.
pub(super) struct WantedBy {
    pub(super) ask: AskId,
    /// `manual`, `threshold` or `overflow`.
    pub(super) reason: String,
    pub(super) instructions: Option<String>,
    /// The sign that nobody waits any more.
    pub(super) over: Arc<AtomicBool>,
    /// When it is too late.
    pub(super) until: Option<Instant>,
    /// A live Pi, which may make its own.
    pub(super) of_pi: bool,
}

/// An `on-settled` run that was lost to a bug of ours.
pub struct SettledLost {
    /// Whose.
    pub plugin: String,
    /// The wishes that it was to grant. They are not granted: the same would only come again.
    pub asked: Vec<Note>,
}

impl SettledJob {
    /// Makes the run. Takes as long as the plugin's limits allow.
    #[must_use]
    pub fn work(self) -> SettledDone {
        let (trigger, asking) = (self.run.trigger_id.clone(), Arc::new(self.asking));
        let report = self.plugin.run_with(self.run, Some(Arc::clone(&asking) as Arc<dyn sandbox::Models>));
        let SettledJob { plugin, asked, facts, wanted, .. } = self;
        SettledDone { plugin, trigger, asked, facts: facts.with_answers(asking.answers()), wanted, report }
    }
}

impl Session {
    /// The runs that are asked for and can be made now on the branch that ends in `leaf`.
    pub(super) fn settled_jobs(
        &mut self,
        world: &World,
        leaf: Option<EntryIx>,
        reason: &str,
    ) -> Result<Vec<SettledJob>, StepError> {
        let Some(leaf) = leaf.filter(|_| !self.record.later.is_empty()) else { return Ok(Vec::new()) };
        let trigger = self.tree.id(leaf).to_owned();
        let on_branch = self.branch_with_pending(Some(leaf), &[])?;
        let mut jobs = Vec::new();
        for plugin in &world.plugins {
            if self.is_suspended(world, plugin) {
                continue;
            }
            let now = world.steady_ms();
            let asked = |note: &&Note| {
                let is_due = note.not_before_ms.is_none_or(|at| at <= now);
                is_due && note.plugin == plugin.name() && on_branch.place_of(&note.trigger).is_some()
            };
            let asked: Vec<Note> = self.record.later.iter().filter(asked).cloned().collect();
            if asked.is_empty() || self.running.contains(plugin.name()) {
                continue;
            }
            if self.is_done(plugin.name(), Handler::OnSettled, &trigger) {
                self.record.later.retain(|note| !asked.contains(note));
                continue;
            }
            let notes = asked.iter().map(|note| note.note.clone()).collect();
            let handler = sandbox::Handler::OnSettled { reason: reason.to_owned(), notes, instructions: None };
            self.running.insert(plugin.name().to_owned());
            let Call { run, asked: facts } = self.call(world, plugin, handler, on_branch.clone(), leaf)?;
            let asking = Asking::of(world, plugin.name());
            jobs.push(SettledJob { plugin: Arc::clone(plugin), run, asked, facts, wanted: None, asking });
        }
        Ok(jobs)
    }

    /// The run of the next plugin, from `next` on in the config's order, that may make the compaction that is wanted.
    pub(super) fn wanted_job(
        &mut self,
        world: &World,
        leaf: Option<EntryIx>,
        by: WantedBy,
        next: &mut usize,
    ) -> Result<Wanted, StepError> {
        let may = |plugin: &Plugin| plugin.wants_settled() && plugin.grants().any(|grant| grant == MAY_COMPACT);
        let ready = |plugin: &Plugin| may(plugin) && !self.is_suspended(world, plugin);
        let found = world.plugins.iter().enumerate().skip(*next).find(|(_, plugin)| ready(plugin));
        let (Some(leaf), Some((at, plugin))) = (leaf, found) else { return Ok(Wanted::Nobody) };
        if self.running.contains(plugin.name()) {
            return Ok(Wanted::Busy);
        }
        *next = at + 1;
        let branch = self.branch_to_compact(leaf)?;
        let (reason, notes, instructions) = (by.reason, Vec::new(), by.instructions);
        let handler = sandbox::Handler::OnSettled { reason, notes, instructions };
        self.running.insert(plugin.name().to_owned());
        let call = self.call(world, plugin, handler, branch, leaf)?;
        let Call { run, asked: facts } = if by.of_pi { call.in_place_of_pi() } else { call };
        let (plugin, wanted) = (Arc::clone(plugin), Some(by.ask));
        let asking = Asking::of(world, plugin.name()).waited_for(by.over, by.until);
        Ok(Wanted::Run(Box::new(SettledJob { plugin, run, asked: Vec::new(), facts, wanted, asking })))
    }

    /// The branch with what is pending, but for compactions: what is wanted now takes their place.
    fn branch_to_compact(&self, leaf: EntryIx) -> Result<Branch, StepError> {
        let batches = self.pending.iter().map(|r| r.batch()).filter(|batch| !compacts(batch));
        self.branch_with(Some(leaf), batches)
    }

    /// Takes in what an `on-settled` run left: the wishes it was given are granted, its batch is pending. What was asked
    /// for while it ran is still to come. If nothing of what it was given is asked for any more, another run has answered
    /// (the session was read anew meanwhile), and this one is one too many.
    pub(super) fn absorb(&mut self, world: &World, done: SettledDone) -> Result<(), StepError> {
        self.running.remove(done.plugin.name());
        if let Some(ask) = done.wanted {
            return self.absorb_wanted(world, done, ask);
        }
        if is_over(&done.report) {
            // A reload: the wishes stand, and the plugins of now are asked.
            return Ok(());
        }
        let asked = self.record.later.len();
        self.record.later.retain(|note| !done.asked.contains(note));
        if self.record.later.len() == asked {
            return Ok(());
        }
        let mut ended = self.conclude(&done.plugin, &done.trigger, done.facts, done.report);
        self.judge_settled(world, &done.plugin, &mut ended, done.asked);
        self.runs.push(ended.record);
        self.save(world, ended.batch.into_iter().collect())
    }

    /// An `on-settled` run that was lost: its plugin may be run again, when it asks again.
    pub(super) fn lose(&mut self, lost: &SettledLost) {
        warn!(session = %self.path.display(), plugin = lost.plugin, "a bug in pi-graft: an on-settled run was lost");
        self.running.remove(&lost.plugin);
        self.wants_running = None;
        self.record.later.retain(|note| !lost.asked.contains(note));
    }

    /// A compaction that was wanted takes the place of one that was pending; whoever serves proposes nothing else. One that
    /// nobody waits for any more, since Pi's user has aborted or it took too long, is not wanted later either.
    fn absorb_wanted(&mut self, world: &World, done: SettledDone, ask: AskId) -> Result<(), StepError> {
        self.wants_running = self.wants_running.filter(|running| *running != ask);
        self.note_wished(ask, done.plugin.name(), &done.report);
        if is_over(&done.report) {
            debug!(session = %self.path.display(), plugin = done.plugin.name(), "nobody waits for its compaction any more");
            return Ok(());
        }
        let mut ended = self.conclude(&done.plugin, &done.trigger, done.facts, done.report);
        self.judge_wanted(world, &done.plugin, &mut ended);
        self.runs.push(ended.record);
        let Some(batch) = ended.batch else { return self.save(world, Vec::new()) };
        let waits = self.served.waits_for(ask) || self.is_wished(ask);
        let why = match (drafts(&batch).len() == 1 && compacts(&batch), waits) {
            (false, _) => Some("a wanted compaction is to be proposed alone"),
            (true, false) => Some("nobody waits for it any more"),
            (true, true) => None,
        };
        if let Some(why) = why {
            warn!(session = %self.path.display(), batch = batch.id, plugin = batch.plugin, "dropped: {why}");
            self.note(&batch, "dropped", why);
            return self.save(world, Vec::new());
        }
        if self.made_wished(ask, &batch) {
            self.note(&batch, "dropped", "a dry run");
            return self.save(world, Vec::new());
        }
        let older: Vec<Batch> = self.pending.iter().map(|r| r.batch()).filter(|b| compacts(b)).cloned().collect();
        self.made_for = Some((ask, batch.id.clone()));
        self.save(world, vec![batch])?;
        for batch in older {
            info!(session = %self.path.display(), batch = batch.id, "dropped: a compaction that was wanted now takes its place");
            self.drop_pending(world, &batch.id)?;
            self.note(&batch, "dropped", "a compaction that was wanted takes its place");
        }
        Ok(())
    }
}

/// Whether a run ended because nobody waited for it any more.
fn is_over(report: &RunReport) -> bool {
    report.outcome.as_ref().is_err_and(|failure| failure.kind == FailureKind::Over)
}

fn drafts(batch: &Batch) -> Vec<Draft> {
    Draft::list_from_json(&batch.drafts).unwrap_or_default()
}

/// Whether a batch is nothing but a compaction whose summary a model made.
pub(super) fn was_paid(batch: &Batch) -> bool {
    matches!(&drafts(batch)[..], [Draft::Compaction { usage: Some(_), .. }])
}

/// Whether a batch holds a compaction.
pub(super) fn compacts(batch: &Batch) -> bool {
    drafts(batch).iter().any(|draft| matches!(draft, Draft::Compaction { .. }))
}
