//! The sessions' places in the loop: who works on what, what is due when, and what happens after a step.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use crate::deliver::presence::Presence;
use crate::deliver::settle::State;
use crate::files::FilesError;

use super::links::{Bell, Links};
use super::roots::Following;
use super::session::{Session, StepError};
use super::settled::{SettledJob, SettledLost};
use super::step::Next;
use super::world::World;
use super::{Daemon, Event};

/// First pause after a step that failed; doubled at each further failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest such pause.
const RETRY_MOST: Duration = Duration::from_secs(60);
/// Idle sessions that stay in memory; the others are read anew when something happens to them.
const KEEP_LOADED: usize = 64;

/// How a step ended.
pub struct Stepped {
    session: Option<Session>,
    result: Result<Next, StepError>,
}

/// A session's place in the loop.
#[derive(Default)]
pub(super) struct Slot {
    session: Option<Session>,
    pub(super) working: bool,
    /// Its worker has, or will have, the session that was in memory.
    carried: bool,
    /// Something happened while it was with a worker.
    pub(super) again: bool,
    due: Option<Instant>,
    pub(super) waiting: Option<&'static str>,
    /// Where its branch stood at the last step, and whether a Pi was there, if that mattered.
    pub(super) seen: Option<(State, Presence)>,
    /// Left alone until it is resumed.
    pub(super) paused: bool,
    /// What its next step is to know.
    pub(super) bell: Bell,
    pub(super) links: Links,
    /// `on-settled` runs under way.
    pub(super) jobs: usize,
    pub(super) failures: u32,
    /// Its last turn was long.
    slow: bool,
    used: u64,
}

impl Daemon {
    pub(super) fn slot(&mut self, path: &Path) -> &mut Slot {
        self.slots.entry(path.to_path_buf()).or_default()
    }

    /// Makes a step of the session at `path`, now or as soon as its worker is done.
    pub(super) fn touch(&mut self, path: &Path) {
        self.clock += 1;
        let clock = self.clock;
        let paused = self.world.is_paused();
        let slot = self.slot(path);
        slot.used = clock;
        if paused || slot.paused {
            // Pi must not wait until the pause is over.
            slot.bell.asks.clear();
            slot.bell.wishes.clear();
            slot.again = true;
            return;
        }
        if slot.working {
            slot.again = true;
            return;
        }
        slot.working = true;
        let bell = Bell { bridges: slot.links.view(), yields: true, ..std::mem::take(&mut slot.bell) };
        let slow = slot.slow;
        if let Some(due) = slot.due.take() {
            self.due.remove(&(due, path.to_path_buf()));
        }
        let session = self.carry(path);
        self.start(path.to_path_buf(), session, bell, slow);
    }

    /// The session in memory, for its step. Where too many wait for theirs it is read anew: each has its file open.
    fn carry(&mut self, path: &Path) -> Option<Session> {
        let full = self.carried >= KEEP_LOADED;
        let slot = self.slot(path);
        let may_go = slot.jobs == 0 && slot.links.is_empty();
        let session = slot.session.take().filter(|session| !(full && may_go) || session.is_waited_for());
        slot.carried = session.is_some();
        self.carried += usize::from(session.is_some());
        session
    }

    fn brought_back(&mut self, path: &Path) {
        let slot = self.slot(path);
        slot.working = false;
        let carried = std::mem::take(&mut slot.carried);
        self.carried -= usize::from(carried);
    }

    fn start(&self, path: PathBuf, session: Option<Session>, bell: Bell, slow: bool) {
        let (world, to, steps) = (Arc::clone(&self.world), self.to.clone(), Arc::clone(&self.steps));
        let slow_steps = slow.then(|| Arc::clone(&self.slow_steps));
        // The step keeps its root locked, also if a reload lets it go meanwhile.
        let following = self.roots.following();
        tokio::spawn(async move {
            // A Pi that waits does not wait for other sessions too.
            let waits = bell.asks.is_empty();
            let _slow =
                if let Some(slow) = slow_steps.filter(|_| waits) { slow.acquire_owned().await.ok() } else { None };
            let _permit = if waits { steps.acquire_owned().await.ok() } else { None };
            let at = path.clone();
            let work = tokio::task::spawn_blocking(move || step_session(&world, &following, &at, session, bell));
            let stepped = work.await.unwrap_or_else(|panic| Stepped::panicked(&panic));
            // The receiver is gone only when the daemon has ended.
            let _ = to.send(Event::Stepped(path, Box::new(stepped)));
        });
    }

    pub(super) fn stepped(&mut self, path: &Path, stepped: Stepped) {
        self.answer_reloads(Some(path));
        let paused = self.world.is_paused();
        self.brought_back(path);
        let slot = self.slot(path);
        slot.session = stepped.session;
        // It may have stopped half way.
        slot.again |= paused;
        match stepped.result {
            Ok(next) => self.plan(path, next),
            Err(e) => self.failed(path, &e),
        }
        if self.slots.get_mut(path).is_some_and(|slot| std::mem::take(&mut slot.again)) {
            self.wake(path);
        }
        self.drop_idle();
        self.forget_empty(path);
    }

    fn plan(&mut self, path: &Path, next: Next) {
        self.summary.tally.add(&next.tally);
        self.summary.failed.remove(path);
        let slot = self.slot(path);
        (slot.failures, slot.slow) = (0, next.slow);
        slot.again |= next.more;
        if slot.waiting != next.waiting
            && let Some(why) = next.waiting
        {
            debug!(session = %path.display(), "waiting: {why}");
        }
        (slot.waiting, slot.seen) = (next.waiting, next.seen);
        slot.jobs += next.jobs.len();
        next.jobs.into_iter().for_each(|job| self.start_job(path.to_path_buf(), job));
        if let Some(after) = next.after {
            self.wake_at(path, Instant::now() + after);
        }
    }

    fn start_job(&self, path: PathBuf, job: SettledJob) {
        debug!(session = %path.display(), plugin = job.plugin.name(), "an on-settled run begins");
        let (to, runs) = (self.to.clone(), Arc::clone(&self.settled_runs));
        tokio::spawn(async move {
            // A compaction that Pi waits for does not wait for what others ask models.
            let _permit = if job.wanted.is_none() { runs.acquire_owned().await.ok() } else { None };
            let lost = SettledLost { plugin: job.plugin.name().to_owned(), asked: job.asked.clone() };
            let done = tokio::task::spawn_blocking(move || job.work()).await;
            let _ = to.send(Event::Settled(path, Box::new(done.map_err(|_| lost))));
        });
    }

    /// The session is read anew after a pause; at once, if it was merely replaced.
    fn failed(&mut self, path: &Path, error: &StepError) {
        let slot = self.slot(path);
        slot.session = None;
        slot.failures += 1;
        if !(slot.again && error.is_quiet()) {
            // Pi must not wait until the pause is over. Where there is none, what was asked meanwhile is looked at now.
            slot.bell.asks.clear();
            slot.bell.wishes.clear();
        }
        let pause = (RETRY_AFTER * 2u32.saturating_pow(slot.failures.min(16) - 1)).min(RETRY_MOST);
        if !error.is_quiet() {
            warn!(session = %path.display(), "{error}; trying again in {} s", pause.as_secs());
            self.summary.failed.insert(path.to_path_buf(), error.to_string());
            self.wake_at(path, Instant::now() + pause);
        } else if error.is_looked_at_again() && self.slot(path).failures < 3 {
            debug!("{error}");
            self.slot(path).again = true;
        } else {
            self.forget(path);
        }
    }

    fn wake_at(&mut self, path: &Path, at: Instant) {
        let slot = self.slot(path);
        let old = slot.due.replace(at);
        if let Some(old) = old {
            self.due.remove(&(old, path.to_path_buf()));
        }
        self.due.insert((at, path.to_path_buf()));
    }

    pub(super) fn wake_due(&mut self) {
        let now = Instant::now();
        while let Some((at, path)) = self.due.first().cloned().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, path.clone()));
            self.slot(&path).due = None;
            self.touch(&path);
        }
    }

    /// A slot that holds nothing goes; what a bridge has open may yet be written, and a pause is the user's word.
    fn forget(&mut self, path: &Path) {
        if self.slots.get(path).is_some_and(|slot| slot.links.is_empty() && !slot.paused && !slot.again) {
            self.slots.remove(path);
        }
    }

    /// Nothing is at its path any more, or no session: a file that is gone must not be kept open.
    pub(super) fn let_go(&mut self, path: &Path) {
        if self.slots.get(path).is_some_and(|slot| slot.session.is_some() && !slot.working) {
            self.touch(path);
        }
    }

    /// The same for all that went unnoticed. Looked for on a worker, one at a time, since a file system may hang.
    pub(super) fn let_go_gone(&mut self) {
        if self.gone.as_ref().is_some_and(|under_way| !under_way.is_finished()) {
            return;
        }
        let loaded = self.slots.iter().filter(|(_, slot)| slot.session.is_some());
        let (loaded, to): (Vec<PathBuf>, _) = (loaded.map(|(path, _)| path.clone()).collect(), self.to.clone());
        self.gone = Some(tokio::task::spawn_blocking(move || {
            // The receiver is gone only when the daemon has ended.
            loaded.into_iter().filter(|path| !path.exists()).for_each(|path| drop(to.send(Event::Changed(path))));
        }));
    }

    /// What turned out to be no session, or is not followed, has no slot.
    fn forget_empty(&mut self, path: &Path) {
        let idle = |slot: &Slot| !slot.working && slot.session.is_none() && slot.jobs == 0 && slot.due.is_none();
        if self.slots.get(path).is_some_and(|slot| idle(slot) && slot.waiting.is_none() && slot.failures == 0) {
            self.forget(path);
        }
    }

    /// After a change of roots: sessions that are below none of them, and that nobody has or works on, are let go.
    pub(super) fn forget_unfollowed(&mut self) {
        let idle = |slot: &Slot| !slot.working && slot.jobs == 0 && slot.links.is_empty() && !slot.paused;
        let gone = self.slots.iter().filter(|(path, slot)| idle(slot) && !self.roots.names(path));
        for path in gone.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            let due = self.slots.remove(&path).and_then(|slot| slot.due);
            due.map(|due| self.due.remove(&(due, path)));
        }
    }

    /// Lets go of the text and index of sessions that nothing happens to.
    fn drop_idle(&mut self) {
        let waited_for = |slot: &Slot| slot.session.as_ref().is_none_or(Session::is_waited_for);
        let idle = |slot: &Slot| !waited_for(slot) && !slot.working && slot.jobs == 0;
        let mut loaded: Vec<(u64, PathBuf)> =
            self.slots.iter().filter(|(_, s)| idle(s)).map(|(path, s)| (s.used, path.clone())).collect();
        if loaded.len() <= KEEP_LOADED {
            return;
        }
        loaded.sort_unstable();
        for (_, path) in &loaded[..loaded.len() - KEEP_LOADED] {
            let slot = self.slot(path);
            slot.session = None;
            if slot.due.is_none() && slot.waiting.is_none() {
                self.forget(path);
            }
        }
    }

    /// A step that ended while the daemon ends: its `on-settled` runs are asked for again at the next start.
    pub(super) fn stepped_last(&mut self, path: &Path, stepped: Stepped) {
        self.brought_back(path);
        let slot = self.slot(path);
        if let Ok(next) = stepped.result {
            slot.waiting = next.waiting;
            self.summary.tally.add(&next.tally);
        }
    }

    /// The slot may be another one than the run began with, if the file went away meanwhile.
    pub(super) fn job_ended(&mut self, path: &Path) {
        let slot = self.slot(path);
        slot.jobs = slot.jobs.saturating_sub(1);
    }

    /// Wakes a session because of what is to be seen of its file; one that failed is left alone until its pause is over.
    pub(super) fn wake(&mut self, path: &Path) {
        let pausing = self.slots.get(path).is_some_and(|slot| slot.failures > 0 && slot.due.is_some());
        if !pausing {
            self.touch(path);
        }
    }
}

fn step_session(world: &World, following: &Following, path: &Path, session: Option<Session>, bell: Bell) -> Stepped {
    let opened = match session {
        _ if world.is_ending() => Ok(None),
        // A directory on the way to it may have become a link since it was last looked at.
        _ if !world.settings.is_named(path) && !following.has(path) => {
            debug!(session = %path.display(), "not below a root any more");
            Ok(None)
        }
        Some(session) => Ok(Some(session)),
        None => Session::open(world, path),
    };
    match opened {
        Err(e) => Stepped { session: None, result: Err(e) },
        Ok(None) => Stepped { session: None, result: Ok(Next::default()) },
        Ok(Some(mut session)) => {
            let result = session.step(world, bell);
            Stepped { session: Some(session), result }
        }
    }
}

impl Stepped {
    /// A bug of ours cost this session its step, and nothing else: it is read anew.
    fn panicked(panic: &tokio::task::JoinError) -> Stepped {
        let source = std::io::Error::other(format!("a bug in pi-graft: {panic}"));
        let error = FilesError::Io { path: PathBuf::new(), source };
        Stepped { session: None, result: Err(error.into()) }
    }
}
