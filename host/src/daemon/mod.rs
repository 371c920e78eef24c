//! The daemon: one loop over a closed set of events. It wires; the work is done in steps on worker threads.
//!
//! A session is in one place at a time: in its slot while nothing is to be done, or with a worker. What happens to it
//! meanwhile is noted in the slot and makes the next step. So no lock is held while a plugin works, and entries of one
//! session are handled in file order while sessions run side by side.

pub mod dispatch;
pub mod session;
pub mod settings;
pub mod step;
mod watch;
pub mod world;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::files::locate::{self, Found};
use crate::files::{FileId, FilesError};
use crate::journal::JournalError;

use dispatch::{SettledDone, SettledJob};
use session::{Session, StepError, Tally};
use step::Next;
use world::World;

/// Pause between two walks over the roots where events come.
const WALK_EVERY: Duration = Duration::from_secs(60);
/// The same where the system gives no events.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Pause before a walk that an event asked for: many directories that come and go are one walk.
const WALK_SOON: Duration = Duration::from_millis(100);
/// First pause after a step that failed; doubled at each further failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest such pause.
const RETRY_MOST: Duration = Duration::from_secs(60);
/// Idle sessions that stay in memory; the others are read anew when something happens to them.
const KEEP_LOADED: usize = 64;
/// `on-settled` runs at one time.
const SETTLED_RUNS: usize = 4;

/// What the loop hears.
pub enum Event {
    /// A file may have changed.
    Changed(PathBuf),
    /// Something was missed: walk over the roots.
    Walk,
    /// A worker has finished a step.
    Stepped(PathBuf, Box<Stepped>),
    /// A worker has finished an `on-settled` run, or lost it to a bug of ours.
    Settled(PathBuf, Option<Box<SettledDone>>),
}

/// How a step ended.
pub struct Stepped {
    session: Option<Session>,
    result: Result<Next, StepError>,
}

/// A session's place in the loop.
#[derive(Default)]
struct Slot {
    session: Option<Session>,
    working: bool,
    /// Something happened while it was with a worker.
    again: bool,
    due: Option<Instant>,
    waiting: Option<&'static str>,
    settled: Vec<SettledDone>,
    /// `on-settled` runs under way.
    jobs: usize,
    failures: u32,
    used: u64,
}

/// What a whole run of the daemon did, for `--once` and the log.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Sums over all sessions.
    pub tally: Tally,
    /// Sessions looked at.
    pub sessions: usize,
    /// Sessions with something that still waits, and why.
    pub waiting: Vec<(PathBuf, &'static str)>,
    /// Sessions that could not be worked on, and why.
    pub failed: BTreeMap<PathBuf, String>,
}

/// Why the daemon could not run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The store failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A root cannot be used.
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// The loop's own state.
pub struct Daemon {
    world: Arc<World>,
    slots: HashMap<PathBuf, Slot>,
    due: BTreeSet<(Instant, PathBuf)>,
    to: UnboundedSender<Event>,
    from: UnboundedReceiver<Event>,
    steps: Arc<Semaphore>,
    settled_runs: Arc<Semaphore>,
    clock: u64,
    walk_at: Option<Instant>,
    summary: Summary,
}

impl Daemon {
    /// A daemon that has not looked yet.
    #[must_use]
    pub fn new(world: Arc<World>) -> Daemon {
        let (to, from) = unbounded_channel();
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Daemon {
            world,
            slots: HashMap::new(),
            due: BTreeSet::new(),
            to,
            from,
            steps: Arc::new(Semaphore::new(cores.max(2))),
            settled_runs: Arc::new(Semaphore::new(SETTLED_RUNS)),
            clock: 0,
            walk_at: None,
            summary: Summary::default(),
        }
    }

    /// Follows the roots until `stop` is cancelled.
    ///
    /// # Errors
    /// [`DaemonError`] if the store cannot be read.
    pub async fn run(mut self, stop: CancellationToken) -> Result<Summary, DaemonError> {
        let watching = watch::watch(&self.world.settings.roots, self.to.clone());
        let every = if watching.unwatched > 0 { POLL_EVERY } else { WALK_EVERY };
        self.begin()?;
        let mut walks = tokio::time::interval(every);
        while !stop.is_cancelled() {
            let (due, walk_at) = (self.due.first().map(|(at, _)| *at), self.walk_at);
            tokio::select! {
                () = stop.cancelled() => break,
                Some(event) = self.from.recv() => self.hear(event),
                _ = walks.tick() => {
                    self.walk();
                    self.keep_house();
                }
                () = sleep_until(walk_at) => self.walk(),
                () = sleep_until(due) => self.wake_due(),
            }
        }
        self.finish().await
    }

    /// Handles what is new and ends: waits at most `settle` for what may yet settle, and for runs under way.
    ///
    /// # Errors
    /// [`DaemonError`] if the store cannot be read.
    pub async fn once(mut self, files: &[PathBuf], stop: CancellationToken) -> Result<Summary, DaemonError> {
        if files.is_empty() {
            self.begin()?;
            self.walk();
        }
        files.iter().for_each(|file| self.touch(file));
        let mut until = None;
        while !stop.is_cancelled() {
            if !self.is_busy() {
                until.get_or_insert_with(|| Instant::now() + self.world.settings.times.settle);
            }
            let due = self.due.first().map(|(at, _)| *at).filter(|at| until.is_none_or(|until| *at <= until));
            if due.is_none() && !self.is_busy() {
                break;
            }
            tokio::select! {
                () = stop.cancelled() => break,
                Some(event) = self.from.recv() => self.hear(event),
                () = sleep_until(due) => self.wake_due(),
            }
        }
        self.finish().await
    }

    /// Sessions that a former run left unfinished.
    fn begin(&mut self) -> Result<(), DaemonError> {
        for path in self.world.unfinished()? {
            // It may be a link or a pipe by now, or outside the roots of today's config.
            if self.is_followed(&path) {
                self.touch(&path);
            }
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        self.slots.values().any(|slot| slot.working || slot.jobs > 0)
    }

    /// Lets the workers end, and makes what was moved last.
    async fn finish(mut self) -> Result<Summary, DaemonError> {
        self.world.end();
        while self.is_busy() {
            match self.from.recv().await {
                Some(Event::Stepped(path, stepped)) => self.stepped_last(&path, *stepped),
                Some(Event::Settled(path, _)) => self.job_ended(&path),
                _ => {}
            }
        }
        self.world.journal.flush()?;
        let waits = |(path, slot): (&PathBuf, &Slot)| slot.waiting.map(|why| (path.clone(), why));
        self.summary.waiting = self.slots.iter().filter_map(waits).collect();
        self.summary.waiting.sort();
        self.summary.sessions = self.slots.len();
        Ok(self.summary)
    }

    /// A step that ended while the daemon ends: its `on-settled` runs are asked for again at the next start.
    fn stepped_last(&mut self, path: &Path, stepped: Stepped) {
        let slot = self.slot(path);
        slot.working = false;
        if let Ok(next) = stepped.result {
            slot.waiting = next.waiting;
            self.summary.tally.add(&next.tally);
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Changed(path) => {
                if self.is_followed(&path) {
                    self.wake(&path);
                }
            }
            Event::Walk => {
                self.walk_at.get_or_insert_with(|| Instant::now() + WALK_SOON);
            }
            Event::Stepped(path, stepped) => self.stepped(&path, *stepped),
            Event::Settled(path, done) => {
                self.job_ended(&path);
                if let Some(done) = done {
                    self.slot(&path).settled.push(*done);
                }
                self.touch(&path);
            }
        }
    }

    /// The slot may be another one than the run began with, if the file went away meanwhile.
    fn job_ended(&mut self, path: &Path) {
        let slot = self.slot(path);
        slot.jobs = slot.jobs.saturating_sub(1);
    }

    /// Wakes a session because of what is to be seen of its file; one that failed is left alone until its pause is over.
    fn wake(&mut self, path: &Path) {
        let pausing = self.slots.get(path).is_some_and(|slot| slot.failures > 0 && slot.due.is_some());
        if !pausing {
            self.touch(path);
        }
    }

    /// Whether a path that an event named is a session below a root, reached without a link.
    fn is_followed(&self, path: &Path) -> bool {
        let settings = &self.world.settings;
        let below = settings.roots.iter().any(|root| path.starts_with(root));
        let plain = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
        below && plain && settings.is_inside(path) && (settings.by_path)(path)
    }

    /// Looks at every file below the roots and wakes those that changed.
    fn walk(&mut self) {
        self.walk_at = None;
        for root in self.world.settings.roots.clone() {
            let found = locate::walk(&root, &mut |path, e| debug!("{}: {e}", path.display()));
            for file in found {
                if (self.world.settings.by_path)(&file.path) && self.may_be_new(&file) {
                    self.wake(&file.path);
                }
            }
        }
    }

    /// Whether there may be something to do for a file, told without opening it.
    fn may_be_new(&self, found: &Found) -> bool {
        let known = self.world.record_at(&found.path);
        let fresh = self.world.settings.is_fresh(&found.path);
        match known {
            Some(record) if fresh && record.skipped > 0 => true,
            Some(record) => record.file != FileId::of(&found.meta) || record.offset != found.meta.len(),
            None => found.meta.len() > 0 && (fresh || !self.is_old(found)),
        }
    }

    /// Written last before the store's first start: all of it is history, and nobody has to open it.
    fn is_old(&self, found: &Found) -> bool {
        let written = found.meta.modified().map_or(i64::MAX, world::unix_ms);
        written < self.world.journal.first_start_ms() - session::GRACE_MS
    }

    /// What was moved is made to last, and old lines of the run log go; on a worker, since it waits for the disk.
    fn keep_house(&self) {
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || {
            let keep = i64::try_from(world.settings.keep_runs.as_millis()).unwrap_or(i64::MAX);
            let done = world.journal.forget_runs(world::now_ms().saturating_sub(keep));
            if let Err(e) = done.and_then(|()| world.journal.flush()) {
                warn!("{e}");
            }
        });
    }

    fn slot(&mut self, path: &Path) -> &mut Slot {
        self.slots.entry(path.to_path_buf()).or_default()
    }

    /// Makes a step of the session at `path`, now or as soon as its worker is done.
    fn touch(&mut self, path: &Path) {
        self.clock += 1;
        let clock = self.clock;
        let slot = self.slot(path);
        slot.used = clock;
        if slot.working {
            slot.again = true;
            return;
        }
        slot.working = true;
        let (session, settled) = (slot.session.take(), std::mem::take(&mut slot.settled));
        if let Some(due) = slot.due.take() {
            self.due.remove(&(due, path.to_path_buf()));
        }
        self.start(path.to_path_buf(), session, settled);
    }

    fn start(&self, path: PathBuf, session: Option<Session>, settled: Vec<SettledDone>) {
        let (world, to, steps) = (Arc::clone(&self.world), self.to.clone(), Arc::clone(&self.steps));
        tokio::spawn(async move {
            let _permit = steps.acquire_owned().await;
            let at = path.clone();
            let work = tokio::task::spawn_blocking(move || step_session(&world, &at, session, settled));
            let stepped = work.await.unwrap_or_else(|panic| Stepped::panicked(&panic));
            // The receiver is gone only when the daemon has ended.
            let _ = to.send(Event::Stepped(path, Box::new(stepped)));
        });
    }

    fn stepped(&mut self, path: &Path, stepped: Stepped) {
        let slot = self.slot(path);
        slot.working = false;
        slot.session = stepped.session;
        match stepped.result {
            Ok(next) => self.plan(path, next),
            Err(e) => self.failed(path, &e),
        }
        if self.slots.get_mut(path).is_some_and(|slot| std::mem::take(&mut slot.again)) {
            self.wake(path);
        }
        self.drop_idle();
    }

    fn plan(&mut self, path: &Path, next: Next) {
        self.summary.tally.add(&next.tally);
        self.summary.failed.remove(path);
        let slot = self.slot(path);
        slot.failures = 0;
        if slot.waiting != next.waiting
            && let Some(why) = next.waiting
        {
            debug!(session = %path.display(), "waiting: {why}");
        }
        slot.waiting = next.waiting;
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
            let _permit = runs.acquire_owned().await;
            let done = tokio::task::spawn_blocking(move || job.work()).await;
            let _ = to.send(Event::Settled(path, done.ok().map(Box::new)));
        });
    }

    /// The session is read anew after a pause; at once, if it was merely replaced.
    fn failed(&mut self, path: &Path, error: &StepError) {
        let slot = self.slot(path);
        slot.session = None;
        slot.failures += 1;
        let pause = (RETRY_AFTER * 2u32.saturating_pow(slot.failures.min(16) - 1)).min(RETRY_MOST);
        if !error.is_quiet() {
            warn!(session = %path.display(), "{error}; trying again in {} s", pause.as_secs());
            self.summary.failed.insert(path.to_path_buf(), error.to_string());
            self.wake_at(path, Instant::now() + pause);
        } else if matches!(error, StepError::Replaced(_)) && self.slot(path).failures < 3 {
            self.slot(path).again = true;
        } else {
            self.slots.remove(path);
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

    fn wake_due(&mut self) {
        let now = Instant::now();
        while let Some((at, path)) = self.due.first().cloned().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, path.clone()));
            self.slot(&path).due = None;
            self.touch(&path);
        }
    }

    /// Lets go of the text and index of sessions that nothing happens to.
    fn drop_idle(&mut self) {
        let idle = |slot: &Slot| slot.session.is_some() && !slot.working && slot.jobs == 0;
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
                self.slots.remove(path);
            }
        }
    }
}

fn step_session(world: &World, path: &Path, session: Option<Session>, settled: Vec<SettledDone>) -> Stepped {
    let opened = match session {
        _ if world.is_ending() => Ok(None),
        // A directory on the way to it may have become a link since it was last looked at.
        _ if !world.settings.is_named(path) && !world.settings.is_inside(path) => {
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
            let result = session.step(world, settled);
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

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Says what a whole run did.
pub fn tell(summary: &Summary) {
    let Tally { handled, history, proposed, grafted, stale, failed } = summary.tally;
    info!(handled, history, proposed, grafted, stale, failed, waiting = summary.waiting.len(), "ended");
}
