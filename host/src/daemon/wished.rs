//! A compaction that somebody at the command line waits for (`pi-graft compact`).
//!
//! It is made when it can land, on the leaf of that moment, by the plugins that would make any other; what they propose is
//! judged, kept and delivered as ever. Whoever asked is told what became of it, or why it has to wait.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pi_session::branch::Branch;
use pi_session::entry::EntryKind;
use pi_session::tree::EntryIx;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::journal::{Batch, Recorded};
use crate::sandbox::RunReport;
use crate::wire::compact::{Compact, Compacted};
use crate::wire::control::Reply;

use super::control::answer;
use super::links::{AskId, real_path};
use super::session::{Session, StepError};
use super::settled::{SettledJob, Wanted, WantedBy, compacts};
use super::socket::Conn;
use super::step::Next;
use super::world::World;
use super::{Daemon, DaemonError};

/// How much longer than `settle` it is waited for a moment in which it can be made, and again for it to land.
const PATIENCE: Duration = Duration::from_secs(10);
/// Why there is nothing where no plugin has said anything.
const NOBODY: &str = "no plugin of the config compacts: that takes one with the grant \"append:compaction\"";

/// What somebody waits for. Dropping it says that it could not be looked at.
pub struct Wish {
    conn: Conn,
    want: Compact,
    over: Arc<AtomicBool>,
    /// When it came, or was made.
    since: Instant,
    /// The plugins that were not asked yet, by their place in the config.
    next_plugin: usize,
    /// The batch that grants it, and the plugin that made it.
    made: Option<(String, String)>,
    /// What became of that batch.
    fate: Option<(&'static str, String)>,
    /// What plugins said.
    why: Vec<String>,
    answered: bool,
}

impl Wish {
    fn new(conn: Conn, want: Compact) -> Wish {
        Wish {
            conn,
            want,
            over: Arc::default(),
            since: Instant::now(),
            next_plugin: 0,
            made: None,
            fate: None,
            why: Vec::new(),
            answered: false,
        }
    }

    /// Bridges count their asks from one.
    fn id(&self) -> AskId {
        (self.conn.id(), 0)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.conn.is_closed()
    }

    fn answer(mut self, outcome: &str, more: Compacted) {
        self.answered = true;
        let (batch, plugin) = self.made.take().unzip();
        let why = std::mem::take(&mut self.why).into_iter().chain(more.why).collect();
        let told = Compacted { outcome: outcome.to_owned(), plugin, batch, why, ..more };
        answer(&self.conn, Ok(told));
    }

    fn nothing(self) {
        let why = if self.why.is_empty() { vec![NOBODY.to_owned()] } else { Vec::new() };
        self.answer("nothing", Compacted { why, ..Compacted::default() });
    }

    /// It cannot be made, or land, at this moment.
    fn waits(self, why: &str) {
        let outcome = if self.made.is_some() { "pending" } else { "nothing" };
        self.answer(outcome, Compacted { why: vec![why.to_owned()], ..Compacted::default() });
    }

    fn rest(&self, world: &World) -> Duration {
        (world.settings.times.settle + PATIENCE).saturating_sub(self.since.elapsed())
    }
}

impl Drop for Wish {
    fn drop(&mut self) {
        if !self.answered && !self.is_over() {
            let why = "the session cannot be worked on at this moment; `pi-graft status` may say why";
            answer(&self.conn, Err::<(), _>(why.to_owned()));
        }
    }
}

impl Session {
    /// Whether somebody waits for a compaction of it: what they want is known to this session in memory alone.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.wishes.is_empty()
    }

    /// Whether somebody still waits for the compaction of this ask.
    pub(super) fn is_wished(&self, ask: AskId) -> bool {
        self.wishes.iter().any(|wish| wish.id() == ask && !wish.is_over())
    }

    /// Whether somebody wants a compaction that no plugin has made yet.
    pub(super) fn has_wish(&self) -> bool {
        self.wishes.iter().any(|wish| wish.made.is_none() && !wish.want.dry_run)
    }

    /// Whether a pending batch is not to land now, since a compaction is to take its place.
    pub(super) fn takes_place_of(&self, batch: &Batch) -> bool {
        self.has_wish() && compacts(batch)
    }

    /// A compaction that is pending on the branch already will do, unless the user says what a summary is to look at.
    pub(super) fn join_wishes(&mut self, branch: &Branch) {
        let here = |r: &&Recorded| compacts(r.batch()) && branch.place_of(&r.batch().trigger).is_some();
        let pending = self.pending.iter().find(here).map(|r| (r.batch().id.clone(), r.batch().plugin.clone()));
        let joins = |wish: &&mut Wish| wish.made.is_none() && !wish.want.dry_run && wish.want.instructions.is_none();
        if let Some(pending) = pending {
            self.wishes.iter_mut().filter(joins).for_each(|wish| wish.made = Some(pending.clone()));
        }
    }

    /// A dry run needs no moment in which something can land.
    pub(super) fn grant_dry(&mut self, world: &World) -> Result<Vec<SettledJob>, StepError> {
        self.grant(world, self.leaf(), true)
    }

    /// Begins what is wished for and not begun yet, on a leaf that is at rest.
    pub(super) fn grant_wishes(&mut self, world: &World, leaf: Option<EntryIx>) -> Result<Vec<SettledJob>, StepError> {
        self.grant(world, leaf, false)
    }

    fn grant(&mut self, world: &World, leaf: Option<EntryIx>, dry_run: bool) -> Result<Vec<SettledJob>, StepError> {
        let mut jobs = Vec::new();
        if world.stops().is_some() {
            return Ok(jobs);
        }
        for mut wish in std::mem::take(&mut self.wishes) {
            let begins = wish.want.dry_run == dry_run && wish.made.is_none() && self.wants_running != Some(wish.id());
            if wish.is_over() || !begins {
                self.wishes.push(wish);
                continue;
            }
            let by = WantedBy {
                ask: wish.id(),
                reason: "manual".to_owned(),
                instructions: wish.want.instructions.clone(),
                over: Arc::clone(&wish.over),
                until: None,
                of_pi: false,
            };
            match self.wanted_job(world, leaf, by, &mut wish.next_plugin)? {
                Wanted::Nobody => wish.nothing(),
                Wanted::Busy => self.wishes.push(wish),
                Wanted::Run(job) => {
                    self.wants_running = Some(wish.id());
                    jobs.push(*job);
                    self.wishes.push(wish);
                }
            }
        }
        Ok(jobs)
    }

    /// What a plugin said, to whoever waits for it: why it failed, or the last line of its log.
    pub(super) fn note_wished(&mut self, ask: AskId, plugin: &str, report: &RunReport) {
        let said = match &report.outcome {
            Err(failure) => Some(failure.to_string()),
            Ok(done) if done.accepted.as_ref().is_some_and(|accepted| !accepted.is_empty()) => None,
            Ok(_) => {
                report.refusals.last().map(ToString::to_string).or(report.logs.last().map(|line| line.text.clone()))
            }
        };
        let wish = self.wishes.iter_mut().find(|wish| wish.id() == ask);
        if let (Some(wish), Some(said)) = (wish, said) {
            wish.why.push(format!("{plugin}: {said}"));
        }
    }

    /// A batch was made for this ask. True if that was all that was wanted: a dry run keeps nothing.
    pub(super) fn made_wished(&mut self, ask: AskId, batch: &Batch) -> bool {
        let Some(at) = self.wishes.iter().position(|wish| wish.id() == ask) else { return false };
        let wish = &mut self.wishes[at];
        (wish.made, wish.since) = (Some((batch.id.clone(), batch.plugin.clone())), Instant::now());
        if !wish.want.dry_run {
            return false;
        }
        let (leaf, drafts) = (Some(batch.trigger.clone()), Some(batch.drafts.clone()));
        self.wishes.swap_remove(at).answer("made", Compacted { leaf, drafts, ..Compacted::default() });
        true
    }

    /// Hears what became of each batch.
    pub(super) fn note_fate(&mut self, batch: &Batch, outcome: &str, message: &str) {
        let fate = match outcome {
            "grafted" => "grafted",
            "stale" | "dropped" => "nothing",
            _ => return,
        };
        let is_it = |wish: &&mut Wish| wish.made.as_ref().is_some_and(|(id, _)| *id == batch.id);
        self.wishes.iter_mut().filter(is_it).for_each(|wish| wish.fate = Some((fate, message.to_owned())));
    }

    /// At the end of a step: answers what can be answered, and sees to it that the rest is looked at in time.
    pub(super) fn look_at_wishes(&mut self, world: &World, bridged: bool, next: &mut Next) -> Result<(), StepError> {
        let entry = self.newest_compaction()?;
        for mut wish in std::mem::take(&mut self.wishes) {
            let (rest, runs) = (wish.rest(world), self.wants_running == Some(wish.id()) || self.is_busy_for(&wish));
            // Where a bridge is, or the file waits for somebody to end, any moment may bring it.
            let hopeless = !bridged && next.after.is_none_or(|after| after > rest);
            let why = world.stops().or(next.waiting).unwrap_or("the branch is not at rest");
            match wish.fate.take() {
                _ if wish.is_over() => {}
                Some(("grafted", _)) => {
                    wish.answer("grafted", Compacted { entry: entry.clone(), ..Compacted::default() });
                }
                Some((outcome, message)) => {
                    wish.answer(outcome, Compacted { why: vec![message], ..Compacted::default() })
                }
                None if world.stops().is_some() => wish.waits(why),
                None if !runs && (hopeless || rest.is_zero()) => wish.waits(why),
                None => {
                    if !runs {
                        next.after = next.after.into_iter().chain([rest]).min();
                    }
                    self.wishes.push(wish);
                }
            }
        }
        Ok(())
    }

    /// A plugin is at work on this session, and this wish waits for it.
    fn is_busy_for(&self, wish: &Wish) -> bool {
        wish.made.is_none() && !self.running.is_empty()
    }

    fn newest_compaction(&self) -> Result<Option<String>, StepError> {
        if self.wishes.iter().all(|wish| wish.fate.is_none()) {
            return Ok(None);
        }
        let branch = Branch::of_leaf(&self.tree, self.source())?;
        let place = (0..branch.len()).rev().find(|place| branch.facts(*place).kind == EntryKind::Compaction);
        Ok(place.and_then(|place| branch.item(place).id.map(str::to_owned)))
    }
}

impl Daemon {
    /// The command line wants a session compacted.
    pub(super) fn wish(&mut self, conn: Conn, want: Compact) {
        let path = real_path(&want.session);
        if let Some(why) = self.cannot_wish(&path) {
            return answer(&conn, Err::<(), _>(why));
        }
        info!(session = %path.display(), dry_run = want.dry_run, "a compaction is wanted");
        let wish = Wish::new(conn, want);
        self.wishing.insert(wish.conn.id(), (path.clone(), Arc::clone(&wish.over)));
        self.slot(&path).bell.wishes.push(wish);
        self.wake(&path);
        let slot = self.slot(&path);
        if !slot.working {
            // It failed just now and is left alone for a while: nobody is to wait for that.
            slot.bell.wishes.clear();
        }
    }

    fn cannot_wish(&self, path: &Path) -> Option<String> {
        let named = self.world.settings.is_named(path);
        if !named && !self.is_followed(path) {
            return Some(format!("{}: not followed by this daemon; see [watch] in its config", path.display()));
        }
        let paused = self.world.is_paused() || self.slots.get(path).is_some_and(|slot| slot.paused);
        paused.then(|| "pi-graft pauses; end it with `pi-graft resume`".to_owned())
    }

    /// Whoever wanted a compaction is gone, or has its answer.
    pub(super) fn wished_no_more(&mut self, conn: u64) {
        let Some((path, over)) = self.wishing.remove(&conn) else { return };
        // What only this holds was answered.
        if Arc::strong_count(&over) > 1 {
            over.store(true, Ordering::Relaxed);
            self.touch(&path);
        }
    }

    /// Compacts one session where no daemon runs, and ends.
    ///
    /// # Errors
    /// [`DaemonError`] if the session is another daemon's, or the store fails.
    pub async fn compact(mut self, want: Compact, stop: CancellationToken) -> Result<Option<Reply>, DaemonError> {
        let file = want.session.clone();
        let _locks = self.lock_files(std::slice::from_ref(&file))?;
        let (conn, mut answers) = Conn::within(0);
        self.wish(conn, want);
        let answer = loop {
            let due = self.due.first().map(|(at, _)| *at);
            tokio::select! {
                biased;
                line = answers.recv() => break line,
                () = stop.cancelled() => break None,
                Some(event) = self.from.recv() => self.hear(event),
                () = super::sleep_until(due) => self.wake_due(),
            }
        };
        if answer.is_none() {
            self.wished_no_more(0);
        }
        let summary = self.finish().await?;
        for (path, why) in &summary.failed {
            warn!(session = %path.display(), "{why}");
        }
        Ok(answer.and_then(|line| serde_json::from_slice(&line).ok()))
    }
}
