//! Running the plugins: on each new entry, in the config's order, each seeing what the ones before it proposed; and later,
//! when the branch is settled, on its leaf.

use std::sync::Arc;

use pi_session::branch::{Branch, BranchError};
use pi_session::tree::EntryIx;
use tracing::{debug, info, warn};

use crate::journal::{Batch, Handler, Note, RunRecord};
use crate::sandbox::{self, HostFacts, Plugin, Run, RunReport};

use super::session::{Session, StepError};
use super::world::{World, now_ms, random};

/// Lines of the run log that are kept in one transaction, where nothing was proposed.
const RUNS_AT_ONCE: usize = 256;

/// An `on-settled` run that is to be made outside the entry queue.
pub struct SettledJob {
    /// Whose.
    pub plugin: Arc<Plugin>,
    /// On what.
    pub run: Run,
    /// The wishes that it grants.
    pub asked: Vec<Note>,
}

/// An `on-settled` run that was made.
pub struct SettledDone {
    /// Whose.
    pub plugin: Arc<Plugin>,
    /// The leaf it ran on.
    pub trigger: String,
    /// The wishes that it granted.
    pub asked: Vec<Note>,
    /// What came of it.
    pub report: RunReport,
}

impl SettledJob {
    /// Makes the run. Takes as long as the plugin's limits allow.
    #[must_use]
    pub fn work(self) -> SettledDone {
        let trigger = self.run.trigger_id.clone();
        let report = self.plugin.run(self.run);
        SettledDone { plugin: self.plugin, trigger, asked: self.asked, report }
    }
}

impl Session {
    /// Runs every plugin that the entry wakes, and keeps what they propose together with the cursor behind the entry.
    pub(super) fn dispatch(&mut self, world: &World, ix: EntryIx) -> Result<(), StepError> {
        let trigger = self.tree.id(ix).to_owned();
        let mut batches = Vec::new();
        if let Err(e @ BranchError::Cycle(_)) = Branch::at(&self.tree, self.source(), Some(ix)) {
            warn!(session = %self.path.display(), trigger, "passed over: {e}");
            return Ok(());
        }
        self.tally.handled += 1;
        for plugin in &world.plugins {
            let branch = self.branch_with_pending(Some(ix), &batches)?;
            if !wakes(plugin, &branch)? || self.is_done(plugin.name(), Handler::OnEntry, &trigger) {
                continue;
            }
            let report = plugin.run(self.run(world, sandbox::Handler::OnEntry, branch, &trigger));
            let (batch, record) = self.conclude(plugin, Handler::OnEntry, "entry", &trigger, report);
            batches.extend(batch);
            self.runs.push(record);
        }
        if batches.is_empty() && self.runs.len() < RUNS_AT_ONCE {
            return Ok(());
        }
        self.save(world, batches)
    }

    /// The runs that are asked for and can be made now, the branch being settled.
    pub(super) fn settled_jobs(&mut self, world: &World) -> Result<Vec<SettledJob>, StepError> {
        let Some(leaf) = self.leaf() else { return Ok(Vec::new()) };
        let trigger = self.tree.id(leaf).to_owned();
        let on_branch = self.branch_with_pending(Some(leaf), &[])?;
        let mut jobs = Vec::new();
        for plugin in &world.plugins {
            let asked = |note: &&Note| note.plugin == plugin.name() && on_branch.place_of(&note.trigger).is_some();
            let asked: Vec<Note> = self.record.later.iter().filter(asked).cloned().collect();
            if asked.is_empty() || self.running.contains(plugin.name()) {
                continue;
            }
            if self.is_done(plugin.name(), Handler::OnSettled, &trigger) {
                self.record.later.retain(|note| !asked.contains(note));
                continue;
            }
            let notes = asked.iter().map(|note| note.note.clone()).collect();
            let handler = sandbox::Handler::OnSettled { reason: "settled".to_owned(), notes, instructions: None };
            self.running.insert(plugin.name().to_owned());
            let run = self.run(world, handler, on_branch.clone(), &trigger);
            jobs.push(SettledJob { plugin: Arc::clone(plugin), run, asked });
        }
        Ok(jobs)
    }

    /// Takes in what an `on-settled` run left: the wishes it was given are granted, its batch is pending. What was asked
    /// for while it ran is still to come. If nothing of what it was given is asked for any more, another run has answered
    /// (the session was read anew meanwhile), and this one is one too many.
    pub(super) fn absorb(&mut self, world: &World, done: SettledDone) -> Result<(), StepError> {
        self.running.remove(done.plugin.name());
        let asked = self.record.later.len();
        self.record.later.retain(|note| !done.asked.contains(note));
        if self.record.later.len() == asked {
            return Ok(());
        }
        let (batch, record) = self.conclude(&done.plugin, Handler::OnSettled, "settled", &done.trigger, done.report);
        self.runs.push(record);
        self.save(world, batch.into_iter().collect())
    }

    fn run(&self, world: &World, handler: sandbox::Handler, branch: Branch, trigger: &str) -> Run {
        let facts = HostFacts { pi_compaction: world.settings.compaction, model: None };
        let header_json = self.header_json.clone();
        Run { handler, branch, trigger_id: trigger.to_owned(), facts, header_json }
    }

    /// What a finished run means: a batch to keep, a wish to remember, a line for the run log.
    fn conclude(
        &mut self,
        plugin: &Plugin,
        handler: Handler,
        reason: &str,
        trigger: &str,
        report: RunReport,
    ) -> (Option<Batch>, RunRecord) {
        tell(plugin, trigger, &report);
        let mut record = RunRecord {
            at_ms: now_ms(),
            session: self.record.session_id.clone(),
            plugin: plugin.name().to_owned(),
            digest: plugin.digest().to_owned(),
            handler,
            trigger: trigger.to_owned(),
            outcome: "nothing".to_owned(),
            batch: None,
            message: report.refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            fuel: report.fuel,
            micros: u64::try_from(report.wall.as_micros()).unwrap_or(u64::MAX),
        };
        let done = match report.outcome {
            Ok(done) => done,
            Err(failure) => {
                self.tally.failed += 1;
                record.outcome = failure.kind.name().to_owned();
                record.message = failure.message;
                return (None, record);
            }
        };
        if let Some(note) = done.later {
            record.outcome = "later".to_owned();
            self.record.later.push(Note { plugin: plugin.name().to_owned(), trigger: trigger.to_owned(), note });
        }
        let Some(accepted) = done.accepted.filter(|accepted| !accepted.is_empty()) else { return (None, record) };
        let batch = new_batch(plugin, handler, reason, trigger, accepted.to_json());
        self.tally.proposed += 1;
        info!(session = %self.path.display(), plugin = plugin.name(), trigger, batch = batch.id, "proposed");
        record.outcome = "proposed".to_owned();
        record.batch = Some(batch.id.clone());
        (Some(batch), record)
    }
}

fn new_batch(plugin: &Plugin, handler: Handler, reason: &str, trigger: &str, drafts: String) -> Batch {
    let id = random()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Batch {
        id,
        plugin: plugin.name().to_owned(),
        version: plugin.version().to_owned(),
        digest: plugin.digest().to_owned(),
        handler,
        reason: reason.to_owned(),
        trigger: trigger.to_owned(),
        drafts,
        made_ms: now_ms(),
    }
}

/// Whether the newest entry in the file wakes this plugin. A graft wakes only those that ask for grafts, never its maker;
/// a receipt wakes nobody.
fn wakes(plugin: &Plugin, branch: &Branch) -> Result<bool, StepError> {
    let Some(place) = branch.in_file().checked_sub(1) else { return Ok(false) };
    Ok(plugin.wakes_on(branch, place)?)
}

/// What a run has to say, to the log. Session text stays below `info`.
fn tell(plugin: &Plugin, trigger: &str, report: &RunReport) {
    let name = plugin.name();
    for line in &report.logs {
        match line.level.as_str() {
            "error" | "warn" => warn!(plugin = name, trigger, "{}", line.text),
            "info" => info!(plugin = name, trigger, "{}", line.text),
            _ => debug!(plugin = name, trigger, "{}", line.text),
        }
    }
    for refusal in &report.refusals {
        warn!(plugin = name, trigger, "refused: {refusal}");
    }
    if let Err(failure) = &report.outcome {
        warn!(plugin = name, trigger, "the run failed ({failure}); what it proposed is dropped");
    }
    debug!(plugin = name, trigger, fuel = report.fuel, micros = report.wall.as_micros() as u64, "ran");
}
