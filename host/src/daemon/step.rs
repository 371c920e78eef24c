//! One step of a session: recover, read, run, deliver; and what it waits for next.

use std::time::Duration;

use pi_session::branch::{Branch, BranchError};
use pi_session::json::Json;
use tracing::{debug, info, warn};

use crate::deliver::append::{Direct, Outcome, Recovery, deliver, recover};
use crate::deliver::presence::Presence;
use crate::deliver::rejoin::is_rejoin;
use crate::deliver::settle::{self, State, Verdict};
use crate::files::append::Mtime;
use crate::files::{FilesError, locate};
use crate::journal::{Batch, Intent, Recorded, RunRecord};

use super::links::Bell;
use super::session::{Session, StepError, Tally};
use super::settled::SettledJob;
use super::turn::Turn;
use super::world::{World, now_ms, random};

/// How long a batch waits at first that could not be written for want of room, rights or a lock.
pub(super) const KEPT_PAUSE: Duration = Duration::from_secs(5);
/// The longest such wait: it is doubled each time.
const KEPT_MOST: Duration = Duration::from_secs(60);
/// How often it is looked whether a Pi that holds a session has quit.
pub(super) const HELD_PAUSE: Duration = Duration::from_secs(2);
/// Why something waits where there is no branch to put it on.
const CYCLE: &str = "the parents of the last entry lead in a circle (S8.5); see `pi-graft session validate`";
/// Why something waits where what was looked at is not what the file ends in any more.
pub(super) const WROTE: &str = "somebody wrote at this moment";
/// Why something waits where it cannot be written; the log has the reason.
const UNWRITABLE: &str = "the file cannot be written; see the log";
/// The same where nothing but room is missing.
const NO_ROOM: &str = "there is no room for it on the disk; it is written once there is";
/// Why something waits where a bridge was and may come back.
const UNBRIDGED: &str = "its Pi has a bridge, which is not connected at this moment";
/// Why something waits where there is more to do than one turn allows.
const TURN_OVER: &str = "other sessions go first for a moment";
/// Why something waits where a bridge has come just now.
pub(super) const BRIDGED: &str = "a Pi with a bridge has just connected";

/// How often in a row something could not be written, and why.
#[derive(Default)]
pub(super) struct Kept {
    times: u32,
    why: String,
}

impl Kept {
    /// One more time. Whether it is for another reason than the time before.
    fn is_news(&mut self, why: &str) -> bool {
        self.times += 1;
        std::mem::replace(&mut self.why, why.to_owned()) != why
    }

    /// Until it is tried again.
    fn pause(&self) -> Duration {
        let doubled = KEPT_PAUSE.saturating_mul(2u32.saturating_pow(self.times.saturating_sub(1)));
        doubled.min(KEPT_MOST)
    }
}

/// What a step leaves to do.
#[derive(Default)]
pub struct Next {
    /// Look again after so much time, even if nothing is written.
    pub after: Option<Duration>,
    /// Why something waits.
    pub waiting: Option<&'static str>,
    /// Runs to be made outside the entry queue.
    pub jobs: Vec<SettledJob>,
    /// What happened.
    pub tally: Tally,
    /// Where the branch stands and whether a Pi is there, if that mattered.
    pub seen: Option<(State, Presence)>,
    /// It took long to run the plugins on what arrived.
    pub slow: bool,
    /// More has arrived than one turn could do.
    pub more: bool,
}

impl Next {
    /// Look again at once.
    pub(super) fn soon(why: &'static str) -> Next {
        Next { after: Some(Duration::ZERO), waiting: Some(why), ..Next::default() }
    }

    /// Failed runs are tried again after so much time.
    fn look_again(&mut self, after: Option<Duration>) {
        self.after = self.after.into_iter().chain(after).min();
        if after.is_some() {
            self.waiting.get_or_insert("a run that failed is tried again");
        }
    }
}

impl Session {
    /// Does all there is to do at this moment.
    ///
    /// # Errors
    /// [`StepError`]; the session is then to be dropped and opened anew.
    pub fn step(&mut self, world: &World, mut bell: Bell) -> Result<Next, StepError> {
        self.check_file()?;
        self.look_around(world);
        self.note_arrivals(world, &bell)?;
        let first = self.read_to == 0;
        self.turn = Turn::new(bell.yields && self.may_be_late(&bell));
        if self.read_new(world)? | self.tail_changed() || first {
            self.note_writing(world);
        }
        let turn = std::mem::take(&mut self.turn);
        self.quiet.looked();
        self.recover(world)?;
        self.watch_lost(world)?;
        self.note_departures(world, &bell)?;
        self.note_leaves(world, &bell.bridges)?;
        self.inherit(world)?;
        bell.lost.iter().for_each(|lost| self.lose(lost));
        for done in std::mem::take(&mut bell.settled) {
            self.absorb(world, done)?;
        }
        self.drop_made_for_orphans(world)?;
        self.drop_undone(world)?;
        // A Pi that asks does not wait for what failed before.
        let named = std::mem::take(&mut bell.redo);
        let again =
            if bell.asks.is_empty() || !named.is_empty() { self.redo(world, &named)? } else { self.redo_later(world) };
        if turn.is_over() && self.has_whole_line(&self.reading.clone())? {
            self.keep_log(world)?;
            let tally = std::mem::take(&mut self.tally);
            return Ok(Next { slow: true, more: true, waiting: Some(TURN_OVER), tally, ..Next::default() });
        }
        self.wishes.append(&mut bell.wishes);
        let bridged = !bell.bridges.is_empty();
        let mut next = if bridged { self.serve(world, bell)? } else { self.settle(world)? };
        next.jobs.extend(self.grant_dry(world)?);
        self.look_at_wishes(world, bridged, &mut next)?;
        next.look_again(again);
        (next.tally, next.slow) = (std::mem::take(&mut self.tally), turn.is_long());
        self.keep_log(world)?;
        Ok(next)
    }

    /// Whether nobody waits for all of this step, and nothing in it hangs on the whole file.
    fn may_be_late(&self, bell: &Bell) -> bool {
        let asked = !bell.asks.is_empty() || !bell.wishes.is_empty();
        // What a Pi wrote before it left is told from what comes later by having been read before that is noted.
        !asked && bell.left.is_empty() && !self.is_waited_for() && !self.is_asked() && self.intents.is_empty()
    }

    /// Reads what arrived and runs the plugins on it.
    fn read_new(&mut self, world: &World) -> Result<bool, StepError> {
        let grew = self.read_lines(world, |session, ix| session.dispatch(world, ix))?;
        if grew && self.key.map_or(self.record.offset > 0, |_| true) {
            self.save(world, Vec::new())?;
        }
        Ok(grew)
    }

    /// Keeps what became of batches since the last save.
    fn keep_log(&mut self, world: &World) -> Result<(), StepError> {
        if self.runs.is_empty() && self.changes.is_empty() { Ok(()) } else { self.save(world, Vec::new()) }
    }

    /// A line for the log: what became of a batch.
    pub(super) fn note(&mut self, batch: &Batch, outcome: &str, message: impl Into<String>) {
        let message = message.into();
        self.note_fate(batch, outcome, &message);
        self.runs.push(RunRecord::of_batch(now_ms(), &self.record.session_id, batch, outcome, message));
    }

    /// Settles what a crash or a failed write left unclear.
    fn recover(&mut self, world: &World) -> Result<(), StepError> {
        if world.settings.dry_run {
            return Ok(());
        }
        for intent in std::mem::take(&mut self.intents) {
            let found = recover(world.disk.as_ref(), &self.tree, &self.reading, &self.path, &intent)?;
            let found = if found == Recovery::Completed {
                self.read_own(world)?;
                Recovery::Done
            } else {
                found
            };
            if found != Recovery::Done || !self.recover_orphan(world, &intent)? {
                self.recovered(world, &intent, found)?;
            }
        }
        Ok(())
    }

    fn recovered(&mut self, world: &World, intent: &Intent, found: Recovery) -> Result<(), StepError> {
        let (batch, session) = (&intent.batch, self.path.display());
        match found {
            Recovery::Withdrawn => {
                info!(%session, batch = batch.id, "recovered: not written yet, pending again");
                world.journal.withdraw(&batch.id)?;
            }
            Recovery::Done | Recovery::Completed if is_rejoin(intent) => {
                world.journal.withdraw(&batch.id)?;
                self.note_rejoined(batch, "Pi's last line");
            }
            Recovery::Done | Recovery::Completed => {
                info!(%session, batch = batch.id, "recovered: written, done");
                self.drop_pending(world, &batch.id)?;
                self.note(batch, "grafted", "found in the file after a crash");
                self.tally.grafted += 1;
            }
            Recovery::Partial => {
                warn!(%session, batch = batch.id, "recovered: only a part of it stands in the file; the rest is still to come");
                world.journal.withdraw(&batch.id)?;
            }
        }
        Ok(())
    }

    pub(super) fn drop_pending(&mut self, world: &World, batch: &str) -> Result<(), StepError> {
        let (gone, kept) = std::mem::take(&mut self.pending).into_iter().partition(|r| r.batch().id == batch);
        self.pending = kept;
        let gone: Vec<Recorded> = gone;
        if gone.is_empty() {
            world.journal.withdraw(batch)?;
        }
        gone.into_iter().try_for_each(|recorded| world.journal.finish(recorded))?;
        Ok(())
    }

    /// Delivers what can be delivered now, and says what the rest waits for.
    fn settle(&mut self, world: &World) -> Result<Next, StepError> {
        if let Some(next) = self.wait_for_end(world)? {
            return Ok(next);
        }
        let waits = self.has_work();
        if (!waits && !self.record.grafts.misplaced) || world.settings.dry_run {
            return Ok(Next::default());
        }
        if let waiting @ Some(_) = world.stops() {
            return Ok(Next { waiting, ..Next::default() });
        }
        if let waiting @ Some(_) = world.settings.bridge_only(&self.path) {
            return Ok(Next { waiting, ..Next::default() });
        }
        if self.may_be_bridged(world) {
            return Ok(Next { after: Some(HELD_PAUSE), waiting: Some(UNBRIDGED), ..Next::default() });
        }
        if let Some(next) = self.lead_back(world)? {
            return Ok(next);
        }
        let branch = match Branch::of_leaf(&self.tree, self.source()) {
            Err(BranchError::Cycle(_)) => return Ok(Next { waiting: Some(CYCLE), ..Next::default() }),
            branch => branch?,
        };
        let state = self.state(world, &branch)?;
        if let Some((rest, waiting)) = self.held(world) {
            let (after, seen) = (Some(rest.min(HELD_PAUSE)), Some((state, Presence::Here)));
            return Ok(Next { after, seen, waiting: waits.then_some(waiting), ..Next::default() });
        }
        let presence = self.look(world);
        let next = match settle::verdict(state, presence, self.quiet.lasts(), &world.settings.times) {
            Verdict::Settled => self.deliver_all(world)?,
            Verdict::Wait(rest, why) => Next { after: Some(rest), waiting: Some(why), ..Next::default() },
            Verdict::Held(why) => {
                // A Pi that is seen may quit, also in the middle of a call. What cannot be seen will not change unseen.
                let after = (presence == Presence::Here || state != State::Unanswered).then_some(HELD_PAUSE);
                Next { after, waiting: Some(why), ..Next::default() }
            }
        };
        Ok(Next { seen: Some((state, presence)), ..next })
    }

    /// Everything pending on the leaf's branch, in order, then the `on-settled` runs.
    fn deliver_all(&mut self, world: &World) -> Result<Next, StepError> {
        let branch = Branch::of_leaf(&self.tree, self.source())?;
        self.make_good(world, &branch)?;
        let here = |recorded: &&Recorded| branch.place_of(&recorded.batch().trigger).is_some();
        self.join_wishes(&branch);
        let here: Vec<&Recorded> = self.pending.iter().filter(here).collect();
        let due: Vec<Recorded> = here.iter().filter(|r| !self.takes_place_of(r.batch())).copied().cloned().collect();
        let held_back = due.len() < here.len();
        // One look for all: our own grafts change nothing about it.
        let mtime = if due.is_empty() || locate::is_newest(&self.path) { Mtime::Move } else { Mtime::Keep };
        for recorded in due {
            if let waiting @ Some(_) = world.stops() {
                return Ok(Next { waiting, ..Next::default() });
            }
            if let Some(why) = not_allowed(world, recorded.batch()) {
                warn!(session = %self.path.display(), batch = recorded.batch().id, "dropped: {why}");
                self.drop_pending(world, &recorded.batch().id)?;
                self.note(recorded.batch(), "dropped", why);
                continue;
            }
            if let Some(waiting) = self.deliver_one(world, recorded, mtime)? {
                let after = Some(self.kept.pause());
                return Ok(Next { after, waiting: Some(waiting), ..Next::default() });
            }
        }
        let mut jobs = self.grant_wishes(world, self.leaf())?;
        jobs.extend(self.settled_jobs(world, self.leaf(), "settled")?);
        let waiting = (!self.pending.is_empty()).then_some("its branch is not the one the file ends on");
        // What was held back for a compaction that is not made after all is delivered now.
        let after = (held_back && !self.has_wish()).then_some(Duration::ZERO);
        Ok(Next { jobs, waiting, after, ..Next::default() })
    }

    /// Delivers one batch. Says why if it has to wait, and with it all that come after.
    fn deliver_one(
        &mut self,
        world: &World,
        recorded: Recorded,
        mtime: Mtime,
    ) -> Result<Option<&'static str>, StepError> {
        if world.has_bridge(&self.path) {
            return Ok(Some(BRIDGED));
        }
        // Whoever had a bridge here is gone: from now on the grafts are ours.
        self.forget_bridges();
        let branch = Branch::of_leaf(&self.tree, self.source())?;
        let place = self.place();
        let mut direct =
            Direct { disk: world.disk.as_ref(), journal: &world.journal, now_ms: now_ms(), random: &mut random };
        let batch = recorded.batch().clone();
        let outcome = deliver(&mut direct, recorded, &branch, &self.path, place, mtime)?;
        if let Outcome::Kept(why) = outcome {
            return self.kept(&batch.id, why);
        }
        self.kept = Kept::default();
        self.pending.retain(|r| r.batch().id != batch.id);
        let (session, plugin) = (self.path.display(), batch.plugin.as_str());
        match outcome {
            Outcome::Delivered { landed, ids, left_out } => {
                self.tally.grafted += 1;
                info!(%session, plugin, batch = batch.id, entries = ids.len() - 1, trigger = batch.trigger, "grafted");
                left_out.iter().for_each(|why| info!(batch = batch.id, "left out: {why}"));
                self.note(&batch, "grafted", format!("{} entries", ids.len() - 1));
                left_out.iter().for_each(|why| self.note(&batch, "left out", why.to_string()));
                if landed.between > 0 {
                    self.note_misplaced(world);
                    self.note(&batch, "misplaced", "somebody wrote at the same moment");
                }
                self.read_own(world)?;
                if landed.between > 0 || !self.ends_in(ids.last()) {
                    self.note_writing(world);
                    return Ok(Some(WROTE));
                }
            }
            Outcome::Stale(stale) => {
                self.tally.stale += 1;
                let (index, refusal) = (stale.index, stale.refusal);
                warn!(%session, plugin, batch = batch.id, draft = index, "stale, dropped whole: {refusal}");
                self.note(&batch, "stale", format!("draft {index}: {refusal}"));
            }
            Outcome::Nothing(why) => {
                info!(%session, plugin, batch = batch.id, "nothing to do: {why}");
                self.note(&batch, "left out", why.to_string());
            }
            Outcome::Kept(_) => {}
        }
        Ok(None)
    }

    /// Whether the file still ends in this entry of ours.
    fn ends_in(&self, id: Option<&String>) -> bool {
        self.leaf().map(|leaf| self.tree.id(leaf)) == id.map(String::as_str)
    }

    fn kept(&mut self, batch: &str, why: FilesError) -> Result<Option<&'static str>, StepError> {
        match why {
            FilesError::Changed { .. } => Ok(Some(WROTE)),
            other => {
                let waiting = if matches!(other, FilesError::NoRoom { .. }) { NO_ROOM } else { UNWRITABLE };
                let (session, why) = (self.path.display(), other.to_string());
                if self.kept.is_news(&why) {
                    warn!(%session, batch, "kept for later: {why}; tried again, and not told again");
                } else {
                    debug!(%session, batch, "kept for later: {why}");
                }
                Ok(Some(waiting))
            }
        }
    }

    /// Reads back what was just written, so that the tree ends in it.
    pub(super) fn read_own(&mut self, world: &World) -> Result<(), StepError> {
        self.read_new(world).map(drop)
    }
}

/// Why a pending batch may not be grafted any more: a plugin that is disabled, or loses a grant, loses its pending batches
/// (product.md 4.3). One that is enabled and could not be loaded keeps them.
pub(super) fn not_allowed(world: &World, batch: &Batch) -> Option<String> {
    let name = &batch.plugin;
    if world.settings.unloaded.contains(name) {
        return None;
    }
    let Some(plugin) = world.plugins.iter().find(|plugin| plugin.name() == name) else {
        return Some(format!("plugin {name:?} is no longer enabled in the config"));
    };
    let drafts = Json::parse(batch.drafts.as_bytes()).ok();
    let kinds = drafts.into_iter().flat_map(Json::items).filter_map(|draft| draft.get("type")?.as_str());
    let wanted = kinds.map(|kind| format!("append:{kind}"));
    let lost = wanted.into_iter().find(|grant| !plugin.grants().any(|granted| granted == grant))?;
    Some(format!("plugin {name:?} is no longer granted {lost:?}"))
}
