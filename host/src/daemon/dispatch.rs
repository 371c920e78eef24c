//! Running the plugins on each new entry, in the config's order, each seeing what the ones before it proposed.

use pi_session::branch::{Branch, BranchError};
use pi_session::figures::{grouped, hex, used};
use pi_session::refusal::Refusal;
use pi_session::tree::EntryIx;
use tracing::{debug, info, warn};

use crate::journal::{About, Batch, Handler, Logged, Note, Refused, RunRecord};
use crate::sandbox::{self, FailureKind, Plugin, RunReport};

use super::call::{Call, CallFacts};
use super::session::{Session, StepError};
use super::world::{World, now_ms, random};

/// Lines of the run log that are kept in one transaction, where nothing was proposed.
pub(super) const RUNS_AT_ONCE: usize = 256;
/// Wishes for `on-settled` that are remembered for one plugin in one session.
const MOST_NOTES: usize = 64;

/// A run that has ended.
pub(super) struct Concluded {
    /// What it proposed.
    pub(super) batch: Option<Batch>,
    /// Its line for the log.
    pub(super) record: RunRecord,
    /// How it failed, if it did.
    pub(super) failure: Option<FailureKind>,
}

impl Session {
    /// Runs every plugin that the entry wakes, and keeps what they propose together with the cursor behind the entry.
    pub(super) fn dispatch(&mut self, world: &World, ix: EntryIx) -> Result<(), StepError> {
        let trigger = self.tree.id(ix).to_owned();
        if let Err(e @ BranchError::Cycle(_)) = Branch::at(&self.tree, self.source(), Some(ix)) {
            warn!(session = %self.path.display(), trigger, "passed over: {e}");
            return Ok(());
        }
        self.tally.handled += 1;
        self.turn.note();
        self.tell_cut(world, &trigger);
        // History comes here only where something is cut off.
        let is_old = self.is_cut_at(ix) && self.is_history(world, ix);
        let mut batches = if is_old { Vec::new() } else { self.note_grafts(world, ix)? };
        // What is left of a graft that hangs on nothing is pending again, and wakes nobody.
        let is_loose = self.lineage.is_loose(&self.tree, ix);
        for plugin in world.plugins.iter().filter(|_| !is_loose) {
            if is_old && !self.cut.has(plugin.name(), Handler::OnEntry, &trigger) {
                continue;
            }
            if self.passes(world, plugin) {
                self.owe(plugin.name());
                continue;
            }
            let branch = self.branch_with_pending(Some(ix), &batches)?;
            if !wakes(plugin, &branch)? || self.is_done(plugin.name(), Handler::OnEntry, &trigger) {
                continue;
            }
            let Call { run, asked } = self.call(world, plugin, sandbox::Handler::OnEntry, branch, ix)?;
            let report = plugin.run(run);
            let mut done = self.conclude(plugin, &trigger, asked, report);
            self.judge_entry(world, plugin, &mut done, None);
            batches.extend(done.batch);
            self.runs.push(done.record);
        }
        world.settings.unloaded.iter().filter(|_| !is_old).for_each(|name| self.owe(name));
        if batches.is_empty() && self.runs.len() < RUNS_AT_ONCE {
            return Ok(());
        }
        self.save(world, batches)
    }

    /// Remembers a wish. A plugin that only ever asks loses its oldest ones.
    pub(super) fn ask_later(&mut self, note: Note) {
        let of_plugin = |known: &&Note| known.plugin == note.plugin;
        if self.record.later.iter().filter(of_plugin).count() >= MOST_NOTES {
            let oldest = self.record.later.iter().position(|known| known.plugin == note.plugin);
            let dropped = oldest.map(|at| self.record.later.remove(at).trigger);
            warn!(session = %self.path.display(), plugin = note.plugin, dropped, "more than {MOST_NOTES} wishes; the oldest is dropped");
        }
        self.record.later.push(note);
    }

    /// What a finished run means: a batch to keep, a wish to remember, a line for the run log.
    pub(super) fn conclude(
        &mut self,
        plugin: &Plugin,
        trigger: &str,
        asked: CallFacts,
        mut report: RunReport,
    ) -> Concluded {
        tell(plugin, trigger, &report);
        let CallFacts { handler, given, texts } = asked;
        let reason = given.reason.clone();
        let mut record = RunRecord {
            about: About::Run,
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
            given: Some(given),
            drafts: None,
            texts,
            refused: report.refusals.iter().map(refused).collect(),
            logged: if self.keeps_logged { logged(&mut report) } else { Vec::new() },
        };
        let done = match report.outcome {
            Ok(done) => done,
            Err(failure) => {
                self.tally.failed += 1;
                record.outcome = failure.kind.name().to_owned();
                record.message = failure.message;
                return Concluded { batch: None, record, failure: Some(failure.kind) };
            }
        };
        if let Some(note) = done.later {
            record.outcome = "later".to_owned();
            let (plugin, trigger) = (plugin.name().to_owned(), trigger.to_owned());
            self.ask_later(Note { plugin, trigger, note, failed: 0, not_before_ms: None });
        }
        let Some(accepted) = done.accepted.filter(|accepted| !accepted.is_empty()) else {
            return Concluded { batch: None, record, failure: None };
        };
        let batch = new_batch(plugin, handler, &reason, trigger, accepted.to_json());
        self.tally.proposed += 1;
        info!(session = %self.path.display(), plugin = plugin.name(), trigger, batch = batch.id, "proposed");
        record.outcome = "proposed".to_owned();
        record.batch = Some(batch.id.clone());
        let record = record.with_drafts(&batch.drafts);
        Concluded { batch: Some(batch), record, failure: None }
    }
}

fn refused(refusal: &Refusal) -> Refused {
    Refused { rule: refusal.rule.as_str().to_owned(), message: refusal.message.clone() }
}

fn logged(report: &mut RunReport) -> Vec<Logged> {
    let lines = std::mem::take(&mut report.logs).into_iter();
    lines.map(|line| Logged { level: line.level, text: line.text }).collect()
}

/// A batch's id: 16 hex digits.
#[must_use]
pub fn batch_id() -> String {
    hex(&random()[..8])
}

fn new_batch(plugin: &Plugin, handler: Handler, reason: &str, trigger: &str, drafts: String) -> Batch {
    Batch {
        id: batch_id(),
        plugin: plugin.name().to_owned(),
        version: plugin.version().to_owned(),
        digest: plugin.digest().to_owned(),
        handler,
        reason: reason.to_owned(),
        trigger: trigger.to_owned(),
        drafts,
        made_ms: now_ms(),
        continues: None,
    }
}

/// Whether the newest entry in the file wakes this plugin. A graft wakes only those that ask for grafts, never its maker;
/// a receipt wakes nobody.
fn wakes(plugin: &Plugin, branch: &Branch) -> Result<bool, StepError> {
    let Some(place) = branch.in_file().checked_sub(1) else { return Ok(false) };
    Ok(plugin.wakes_on(branch, place)?)
}

/// How many lines were too many.
fn lines_dropped(report: &RunReport) -> String {
    let (kept, dropped) = (report.logs.len() as u64, report.logs_dropped);
    let used = used(kept + dropped, kept, "lines in the log (limits.log-lines)");
    format!("{used}: {} dropped", grouped(dropped))
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
    if report.logs_dropped > 0 {
        warn!(plugin = name, trigger, "{}", lines_dropped(report));
    }
    for refusal in &report.refusals {
        warn!(plugin = name, trigger, "refused: {refusal}");
    }
    if let Err(failure) = &report.outcome {
        warn!(plugin = name, trigger, "the run failed ({failure}); what it proposed is dropped");
    }
    debug!(plugin = name, trigger, fuel = report.fuel, micros = report.wall.as_micros() as u64, "ran");
}
