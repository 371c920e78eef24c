//! What becomes of a run that failed, in four words (product.md 4.3):
//!
//! | word | when | then |
//! | --- | --- | --- |
//! | *skip* | nobody wants it any more | nothing |
//! | *retry* | deadline, model, a text that could not be read | three times more, with growing pauses |
//! | *quarantine* | what would only come again; what three retries did not help | kept for this digest, run when a new one comes |
//! | *suspend* | five entries in a row in one session; in three sessions: everywhere | what passes is kept, and run when it is lifted |
//!
//! Nothing waits for a failed run: it is put aside together with the cursor that moves past its entry.

use std::time::Duration;

use tracing::{info, warn};

use crate::config::duration_text;
use crate::journal::{About, Batch, Change, FailedRun, Handler, Note, Passed, RunRecord, Standing};
use crate::sandbox::{FailureKind, Plugin};

use super::dispatch::{Concluded, batch_id};
use super::session::Session;
use super::world::{World, now_ms};

/// Tries after the first.
const RETRIES: u32 = 3;
/// How much longer each further pause is.
const GROWTH: u32 = 5;
/// Entries in a row whose runs fail before the plugin is suspended.
const IN_A_ROW: u32 = 5;
/// Failed runs that are kept for one session; the oldest in quarantine goes first.
const MOST_FAILED: usize = 256;

/// What is done about a failure.
enum Word {
    Skip,
    Retry(Duration),
    Quarantine,
}

fn word(kind: FailureKind, tries: u32, plugin: &Plugin) -> Word {
    match kind {
        kind if kind.is_nobodys() => Word::Skip,
        kind if kind.is_final() || tries > RETRIES => Word::Quarantine,
        _ => Word::Retry(pause(tries, plugin)),
    }
}

fn pause(tries: u32, plugin: &Plugin) -> Duration {
    plugin.limits().retry.saturating_mul(GROWTH.saturating_pow(tries.saturating_sub(1)))
}

/// The moment after a pause, by the clock that nobody sets; Unix milliseconds.
fn after(world: &World, pause: Duration) -> i64 {
    world.steady_ms().saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX))
}

impl Session {
    /// What becomes of a run of `on-entry`; `before` is what is known of its former tries.
    pub(super) fn judge_entry(
        &mut self,
        world: &World,
        plugin: &Plugin,
        done: &mut Concluded,
        before: Option<&FailedRun>,
    ) {
        let Some(kind) = done.failure else {
            self.done_with(before);
            return self.went_well(plugin);
        };
        let mut run = failed_run(&done.record, before);
        match word(kind, run.tries, plugin) {
            Word::Skip => return self.done_with(before),
            Word::Retry(pause) => self.retry_after(world, done, &mut run, pause),
            Word::Quarantine => quarantine(done, &mut run),
        }
        self.keep_failed(run);
        if before.is_none() {
            self.failed_once_more(world, plugin);
        }
    }

    /// What becomes of a run of `on-settled`, which granted these wishes. A retry is made on the leaf of its own moment.
    pub(super) fn judge_settled(&mut self, world: &World, plugin: &Plugin, done: &mut Concluded, asked: Vec<Note>) {
        let Some(kind) = done.failure else { return self.went_well(plugin) };
        let tries = asked.iter().map(|note| note.failed).max().unwrap_or(0) + 1;
        let mut run = FailedRun { tries, notes: asked, ..failed_run(&done.record, None) };
        match word(kind, tries, plugin) {
            Word::Skip => return run.notes.into_iter().for_each(|note| self.ask_later(note)),
            Word::Retry(pause) => {
                self.retry_after(world, done, &mut run, pause);
                for note in run.notes {
                    self.ask_later(Note { failed: tries, not_before_ms: run.retry_ms, ..note });
                }
            }
            Word::Quarantine => {
                quarantine(done, &mut run);
                self.keep_failed(run);
            }
        }
        if tries == 1 {
            self.failed_once_more(world, plugin);
        }
    }

    /// What becomes of a run that was to make a compaction which Pi wanted: it is not wanted later.
    pub(super) fn judge_wanted(&mut self, world: &World, plugin: &Plugin, done: &mut Concluded) {
        match done.failure {
            None => self.went_well(plugin),
            Some(kind) if kind.is_nobodys() => {}
            Some(_) => self.failed_once_more(world, plugin),
        }
    }

    fn retry_after(&self, world: &World, done: &mut Concluded, run: &mut FailedRun, pause: Duration) {
        run.retry_ms = Some(after(world, pause));
        say(done, &format!("try {} of {}, the next in {}", run.tries, RETRIES + 1, duration_text(pause)));
        info!(session = %self.path.display(), plugin = run.plugin, trigger = run.trigger, "tried again in {}", duration_text(pause));
    }

    /// What was put off by a daemon whose clock was set back since waits for no longer than if it were put off now.
    pub(super) fn restart_pauses(&mut self, world: &World) {
        let at_most = |name: &str, tries: u32, at: &mut Option<i64>| {
            if let Some(plugin) = world.plugins.iter().find(|plugin| plugin.name() == name) {
                *at = at.map(|at| at.min(after(world, pause(tries, plugin))));
            }
        };
        self.failed.iter_mut().for_each(|run| at_most(&run.plugin, run.tries, &mut run.retry_ms));
        self.record.later.iter_mut().for_each(|note| at_most(&note.plugin, note.failed, &mut note.not_before_ms));
    }

    /// A failed run is kept in the place of what was known of it.
    fn keep_failed(&mut self, run: FailedRun) {
        let is_it = |known: &FailedRun| {
            (&known.plugin, known.handler, &known.trigger) == (&run.plugin, run.handler, &run.trigger)
        };
        let old = self.failed.extract_if(.., |known| is_it(known) && known.id != run.id);
        self.changes.extend(old.map(|known| Change::Gone(known.id)));
        self.failed.retain(|known| known.id != run.id);
        if self.failed.len() >= MOST_FAILED {
            let oldest =
                (0..self.failed.len()).min_by_key(|at| (self.failed[*at].retry_ms.is_some(), self.failed[*at].last_ms));
            let gone = oldest.map(|at| self.failed.remove(at).id);
            warn!(session = %self.path.display(), gone, "more than {MOST_FAILED} failed runs; the oldest is forgotten");
            self.changes.extend(gone.map(Change::Gone));
        }
        self.changes.push(Change::Put(Box::new(run.clone())));
        self.failed.push(run);
    }

    /// A failed run that is nobody's concern any more.
    pub(super) fn done_with(&mut self, run: Option<&FailedRun>) {
        let Some(run) = run else { return };
        self.failed.retain(|known| known.id != run.id);
        self.changes.push(Change::Gone(run.id.clone()));
    }

    fn standing(&self, plugin: &str) -> Option<&Standing> {
        self.record.standing.iter().find(|standing| standing.plugin == plugin)
    }

    fn standing_mut(&mut self, plugin: &str) -> &mut Standing {
        let at = self.record.standing.iter().position(|standing| standing.plugin == plugin);
        let at = at.unwrap_or_else(|| {
            self.record.standing.push(Standing { plugin: plugin.to_owned(), ..Standing::default() });
            self.record.standing.len() - 1
        });
        &mut self.record.standing[at]
    }

    /// A row without anything to say goes.
    fn tidy_standing(&mut self) {
        self.record.standing.retain(|of| of.failed > 0 || of.suspended_ms.is_some() || of.owes.is_some());
    }

    fn went_well(&mut self, plugin: &Plugin) {
        if self.standing(plugin.name()).is_some_and(|standing| standing.failed > 0 || standing.suspended_ms.is_some()) {
            let standing = self.standing_mut(plugin.name());
            (standing.failed, standing.suspended_ms) = (0, None);
            self.tidy_standing();
        }
    }

    /// One more entry whose run failed: too many in a row, and the plugin is suspended here.
    fn failed_once_more(&mut self, world: &World, plugin: &Plugin) {
        let holds = self.is_suspended(world, plugin);
        let standing = self.standing_mut(plugin.name());
        // What another version did, or what was lifted, does not count.
        if standing.digest != plugin.digest() || (standing.suspended_ms.is_some() && !holds) {
            (standing.failed, standing.suspended_ms) = (0, None);
            plugin.digest().clone_into(&mut standing.digest);
        }
        standing.failed += 1;
        if standing.failed < IN_A_ROW || standing.suspended_ms.is_some() {
            return;
        }
        standing.suspended_ms = Some(world.suspended().now(plugin.name(), now_ms()));
        let how = "until a new version of it comes, or `pi-graft reload` or `pi-graft quarantine retry`";
        let why = format!("{IN_A_ROW} failures in a row: suspended in this session, {how}");
        warn!(session = %self.path.display(), plugin = plugin.name(), "{why}");
        self.runs.push(about_plugin(&self.record.session_id, plugin, "suspended", why));
    }

    /// Whether a plugin is suspended here, or everywhere.
    pub(super) fn is_suspended(&self, world: &World, plugin: &Plugin) -> bool {
        let suspended = world.suspended();
        let here = self.standing(plugin.name()).is_some_and(|standing| suspended.holds(standing, plugin.digest()));
        here || suspended.everywhere(plugin.name(), plugin.digest())
    }

    /// Whether entries pass without this plugin for now: it is suspended, or has yet to see older ones.
    pub(super) fn passes(&self, world: &World, plugin: &Plugin) -> bool {
        self.owed(plugin.name()).is_some() || self.is_suspended(world, plugin)
    }

    /// What passed without a plugin.
    pub(super) fn owed(&self, plugin: &str) -> Option<Passed> {
        self.standing(plugin).and_then(|standing| standing.owes)
    }

    /// The entry that was read last passes without a plugin.
    pub(super) fn owe(&mut self, plugin: &str) {
        let to = self.tree.entries().len() as u64;
        let owes = &mut self.standing_mut(plugin).owes;
        let from = owes.map_or(to - 1, |passed| passed.from);
        *owes = Some(Passed { from, to });
    }

    /// A plugin has seen what passed without it, up to this entry.
    pub(super) fn paid(&mut self, plugin: &str, entries: u64) {
        let owes = &mut self.standing_mut(plugin).owes;
        *owes = owes.map(|passed| Passed { from: entries, ..passed }).filter(|passed| passed.from < passed.to);
        self.tidy_standing();
    }

    /// A plugin that is no longer in the config has nothing to make up for.
    pub(super) fn forget_disabled(&mut self, world: &World) {
        let is_enabled = |name: &String| {
            world.settings.unloaded.contains(name) || world.plugins.iter().any(|plugin| plugin.name() == name)
        };
        self.record.standing.retain(|standing| is_enabled(&standing.plugin));
        let gone = self.failed.extract_if(.., |run| !is_enabled(&run.plugin));
        self.changes.extend(gone.map(|run| Change::Gone(run.id)));
    }
}

/// A run that has just failed, with what is known of its former tries.
fn failed_run(record: &RunRecord, before: Option<&FailedRun>) -> FailedRun {
    let given = record.given.clone().unwrap_or_default();
    let id = before.map_or_else(|| batch_id()[..8].to_owned(), |before| before.id.clone());
    FailedRun {
        id,
        plugin: record.plugin.clone(),
        digest: record.digest.clone(),
        handler: record.handler,
        trigger: record.trigger.clone(),
        entries: given.entries,
        pending: given.pending,
        notes: Vec::new(),
        kind: record.outcome.clone(),
        message: record.message.clone(),
        tries: given.attempt,
        retry_ms: None,
        first_ms: before.map_or(record.at_ms, |before| before.first_ms),
        last_ms: record.at_ms,
    }
}

fn quarantine(done: &mut Concluded, run: &mut FailedRun) {
    run.retry_ms = None;
    say(done, &format!("in quarantine as {} until a new version comes", run.id));
    warn!(plugin = run.plugin, trigger = run.trigger, id = run.id, "in quarantine until a new version comes");
}

/// Adds to a line of the log what is done about it.
fn say(done: &mut Concluded, what: &str) {
    let message = &mut done.record.message;
    *message = if message.is_empty() { what.to_owned() } else { format!("{message}; {what}") };
}

/// A line of the log about a plugin in a session.
fn about_plugin(session: &str, plugin: &Plugin, outcome: &str, message: String) -> RunRecord {
    let nobody = Batch {
        id: String::new(),
        plugin: plugin.name().to_owned(),
        version: plugin.version().to_owned(),
        digest: plugin.digest().to_owned(),
        handler: Handler::OnEntry,
        reason: String::new(),
        trigger: String::new(),
        drafts: String::new(),
        made_ms: 0,
        continues: None,
    };
    let row = RunRecord::of_batch(now_ms(), session, &nobody, outcome, message);
    RunRecord { about: About::Plugin, batch: None, ..row }
}
