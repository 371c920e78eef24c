//! The daemon: one loop over a closed set of events. It wires; the work is done in steps on worker threads.
//!
//! A session is in one place at a time: in its slot while nothing is to be done, or with a worker. What happens to it
//! meanwhile is noted in the slot and makes the next step. So no lock is held while a plugin works, and entries of one
//! session are handled in file order while sessions run side by side.

mod asking;
mod bridged;
mod call;
pub mod control;
pub mod dispatch;
mod facts;
pub mod feed;
mod forked;
mod hold;
mod known;
pub mod links;
mod mend;
mod orphans;
mod rejoin;
pub mod session;
pub mod settings;
pub mod settled;
mod slots;
pub mod socket;
pub mod status;
pub mod step;
mod watch;
pub mod world;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::files::locate::{self, Found};
use crate::files::{FileId, FilesError};
use crate::journal::{JournalError, Keep};
use crate::wire::bridge::FromPi;
use crate::wire::control::{Request, RootStatus};

use control::{Fresh, Identity};
use session::Tally;
use settled::{SettledDone, SettledLost};
use slots::{Slot, Stepped};
use socket::{Conn, Listening};
use watch::Watching;
use world::World;

/// Pause between two walks over the roots where events come.
const WALK_EVERY: Duration = Duration::from_secs(60);
/// The same where the system gives no events.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Pause before a walk that an event asked for: many directories that come and go are one walk.
const WALK_SOON: Duration = Duration::from_millis(100);
/// Rows of the run log that are kept, at most.
const MOST_RUNS: u64 = 100_000;
/// Bytes of it, with the texts that rows name.
const MOST_LOG: u64 = 256 << 20;
/// How long what is pending for a session is kept after its file is gone, milliseconds.
const KEEP_GONE_MS: i64 = 30 * 24 * 60 * 60 * 1000;
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
    Settled(PathBuf, Box<Result<SettledDone, SettledLost>>),
    /// A bridge said something.
    FromPi(Conn, FromPi),
    /// The command line wants something.
    Control(Conn, Request),
    /// A connection has ended.
    Gone(u64),
    /// Config and plugins were read again for the one who asked.
    Reloaded(Conn, Box<Result<Fresh, String>>),
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
    /// Whoever asked for a reload, and the sessions whose steps began before it.
    reloading: Vec<(Conn, HashSet<PathBuf>)>,
    summary: Summary,
    watching: Option<Watching>,
    identity: Option<Identity>,
    /// Where the socket is to be.
    socket: Option<PathBuf>,
    /// The connections of bridges, and the session that each has.
    linked: HashMap<u64, PathBuf>,
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
            reloading: Vec::new(),
            summary: Summary::default(),
            watching: None,
            identity: None,
            socket: None,
            linked: HashMap::new(),
        }
    }

    /// The same with a socket at `path` while it follows: for bridges and the command line.
    #[must_use]
    pub fn with_socket(self, path: PathBuf, identity: Identity) -> Daemon {
        Daemon { socket: Some(path), identity: Some(identity), ..self }
    }

    /// Follows the roots until `stop` is cancelled.
    ///
    /// # Errors
    /// [`DaemonError`] if the store cannot be read.
    pub async fn run(mut self, stop: CancellationToken) -> Result<Summary, DaemonError> {
        self.watch_roots();
        let listening = self.listen();
        let unwatched = self.watching.as_ref().is_some_and(|watching| watching.unwatched > 0);
        let every = if unwatched { POLL_EVERY } else { WALK_EVERY };
        self.begin()?;
        info!("following; end with Ctrl-C");
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
        // Whoever asks now is better told at once that nobody answers.
        drop(listening);
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

    /// The daemon is worth having without a socket too: sessions that no bridge has are served as ever.
    fn listen(&self) -> Option<Listening> {
        let path = self.socket.as_ref()?;
        let listening = socket::listen(path, self.to.clone());
        listening.inspect_err(|e| warn!("neither bridges nor `pi-graft status` can connect: {e}")).ok()
    }

    fn roots_status(&self) -> Vec<RootStatus> {
        let state = |root: &PathBuf| if root.is_dir() { "watched" } else { "absent" };
        let roots = self.world.settings.roots.iter();
        roots.map(|root| RootStatus { path: root.clone(), state: state(root).to_owned(), why: None }).collect()
    }

    /// Watches the roots of the settings, instead of those before.
    fn watch_roots(&mut self) {
        self.watching = Some(watch::watch(&self.world.settings.roots, self.to.clone()));
        self.walk_at = Some(Instant::now());
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
                let bell = &mut self.slot(&path).bell;
                match *done {
                    Ok(done) => bell.settled.push(done),
                    Err(lost) => bell.lost.push(lost),
                }
                self.touch(&path);
            }
            Event::FromPi(conn, message) => self.hear_pi(conn, message),
            Event::Control(conn, request) => self.control(conn, request),
            Event::Reloaded(conn, fresh) => self.reloaded(&conn, *fresh),
            Event::Gone(conn) => self.left(conn, None),
        }
    }

    /// Whether a path that an event named is a session below a root, reached without a link.
    fn is_followed(&self, path: &Path) -> bool {
        let plain = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
        plain && self.is_below(path) && (self.world.settings.by_path)(path)
    }

    /// Whether a path is below a root, no link leading out of it. Its directory need not be there yet.
    fn is_below(&self, path: &Path) -> bool {
        let settings = &self.world.settings;
        let is_there = path.parent().is_some_and(|dir| std::fs::symlink_metadata(dir).is_ok());
        settings.roots.iter().any(|root| path.starts_with(root)) && (!is_there || settings.is_inside(path))
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
        let fresh = self.world.settings.is_fresh(&found.path);
        let changed = self.world.at(&found.path, |_, record| {
            let other = record.file != FileId::of(&found.meta) || record.offset != found.meta.len();
            other || (fresh && record.skipped > 0)
        });
        match changed {
            Some(changed) => changed,
            None => found.meta.len() > 0 && (fresh || !self.is_old(found)),
        }
    }

    /// Written last before the store's first start: all of it is history, and nobody has to open it.
    fn is_old(&self, found: &Found) -> bool {
        let written = found.meta.modified().map_or(i64::MAX, world::unix_ms);
        written < self.world.journal.first_start_ms() - session::GRACE_MS
    }

    /// What was moved is made to last, and what is too old goes; on a worker, since it waits for the disk.
    fn keep_house(&self) {
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || {
            if let Err(e) = house(&world) {
                warn!("{e}");
            }
        });
    }
}

fn house(world: &World) -> Result<(), JournalError> {
    let (now, keep) = (world::now_ms(), world.settings.keep_runs.as_millis());
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    world.journal.forget_runs(Keep { from_ms: now.saturating_sub(keep), rows: MOST_RUNS, bytes: MOST_LOG })?;
    world.journal.forget_used(now.saturating_sub(keep))?;
    match world.sweep(now, KEEP_GONE_MS)? {
        0 => {}
        forgotten => info!(forgotten, "sessions are gone for 30 days; what was pending for them is forgotten"),
    }
    world.journal.flush()
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
