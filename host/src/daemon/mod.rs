//! The daemon: one loop over a closed set of events. It wires; the work is done in steps on worker threads.
//!
//! A session is in one place at a time: in its slot while nothing is to be done, or with a worker. What happens to it
//! meanwhile is noted in the slot and makes the next step. So no lock is held while a plugin works, and entries of one
//! session are handled in file order while sessions run side by side.

mod asking;
mod bridged;
mod call;
pub mod control;
mod cut;
pub mod dispatch;
mod facts;
mod failures;
pub mod feed;
mod forked;
mod handled;
pub mod hold;
mod known;
pub mod links;
mod lost;
mod mend;
mod orphans;
pub mod quarantine;
mod quiet;
mod redo;
mod rejoin;
mod room;
mod root;
mod roots;
pub mod rows;
pub mod session;
pub mod settings;
pub mod settled;
mod slots;
pub mod socket;
pub mod status;
pub mod step;
mod suspended;
mod turn;
mod undone;
mod unended;
pub mod watch;
mod wished;
pub mod world;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::files::FilesError;
use crate::files::lock::{RootLock, lock_root, socket_path};
use crate::journal::{JournalError, Keep};
use crate::wire::bridge::FromPi;
use crate::wire::control::Request;

use control::{Fresh, Identity};
use roots::{Looked, Roots};
use session::Tally;
use settled::{SettledDone, SettledLost};
use slots::{Slot, Stepped};
use socket::{Conn, Listening};
use watch::Watchers;
use world::World;

/// Pause between two rounds of keeping house.
const HOUSE_EVERY: Duration = Duration::from_secs(60);
/// Pause between two looks whether the store and the locks of the roots are still where they were.
const GUARD_EVERY: Duration = Duration::from_secs(5);
/// Rows of the run log that are kept, at most.
const MOST_RUNS: u64 = 100_000;
/// Bytes of it, with the texts that rows name.
const MOST_LOG: u64 = 256 << 20;
/// How long what is pending for a session is kept after its file is gone, milliseconds.
const KEEP_GONE_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Steps at one time beyond one a core, so that slow plugins on a few sessions do not hold up the others.
const BESIDE_SLOW: usize = 6;
/// Of these, sessions whose last turn was long have at most one in so many: the others find a worker at once.
const PART_OF_SLOW: usize = 2;
/// `on-settled` runs at one time.
const SETTLED_RUNS: usize = 4;

/// What the loop hears.
pub enum Event {
    /// A file may have changed.
    Changed(PathBuf),
    /// Something may have come or gone in this directory; none: something was missed, walk over all roots.
    Walk(Option<PathBuf>),
    /// A worker has looked at a root.
    Looked(Box<Looked>),
    /// A worker has finished a step.
    Stepped(PathBuf, Box<Stepped>),
    /// A worker has finished an `on-settled` run, or lost it to a bug of ours.
    Settled(PathBuf, Box<Result<SettledDone, SettledLost>>),
    /// A bridge said something.
    FromPi(Conn, FromPi, room::Held),
    /// The command line wants something.
    Control(Conn, Request),
    /// A connection has ended.
    Gone(u64),
    /// Failed runs, by session, are to be made again.
    Redo(BTreeMap<PathBuf, Vec<String>>),
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
    /// Steps of sessions whose last turn was long.
    slow_steps: Arc<Semaphore>,
    settled_runs: Arc<Semaphore>,
    clock: u64,
    roots: Roots,
    /// Each root was looked at, at least once.
    follows: bool,
    /// Whoever asked for a reload, and the sessions whose steps began before it.
    reloading: Vec<(Conn, HashSet<PathBuf>)>,
    summary: Summary,
    identity: Option<Identity>,
    /// Where the socket is to be.
    socket: Option<PathBuf>,
    /// It could not be made, and that was said.
    deaf: bool,
    /// The connections of bridges, and the session that each has.
    linked: HashMap<u64, PathBuf>,
    /// Sessions in memory whose steps have begun or wait for their turn.
    carried: usize,
    /// The look for sessions in memory whose files are gone, while it is under way.
    gone: Option<JoinHandle<()>>,
    /// The connections of those who want a compaction, its session, and the sign that they are gone.
    wishing: HashMap<u64, (PathBuf, Arc<AtomicBool>)>,
}

impl Daemon {
    /// A daemon that has not looked yet.
    #[must_use]
    pub fn new(world: Arc<World>) -> Daemon {
        let (to, from) = unbounded_channel();
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let steps = cores.max(2) + BESIDE_SLOW;
        Daemon {
            world,
            slots: HashMap::new(),
            due: BTreeSet::new(),
            to,
            from,
            steps: Arc::new(Semaphore::new(steps)),
            slow_steps: Arc::new(Semaphore::new(steps / PART_OF_SLOW)),
            settled_runs: Arc::new(Semaphore::new(SETTLED_RUNS)),
            clock: 0,
            roots: Roots::new(watch::system()),
            follows: false,
            reloading: Vec::new(),
            summary: Summary::default(),
            identity: None,
            socket: None,
            deaf: false,
            linked: HashMap::new(),
            carried: 0,
            gone: None,
            wishing: HashMap::new(),
        }
    }

    /// The same with a socket at `path` while it follows: for bridges and the command line.
    #[must_use]
    pub fn with_socket(self, path: PathBuf, identity: Identity) -> Daemon {
        Daemon { socket: Some(path), identity: Some(identity), ..self }
    }

    /// The same that locks what it follows, in this directory. Without it nothing is locked, so nothing may be written.
    #[must_use]
    pub fn with_locks(mut self, runtime: PathBuf) -> Daemon {
        self.roots.runtime = Some(runtime);
        self
    }

    /// The same with other events than the system's.
    #[must_use]
    pub fn with_watchers(mut self, watchers: Arc<dyn Watchers>) -> Daemon {
        self.roots.watchers = watchers;
        self
    }

    /// Follows the roots until `stop` is cancelled.
    ///
    /// # Errors
    /// [`DaemonError`] if another daemon has each root that is there.
    pub async fn run(mut self, stop: CancellationToken) -> Result<Summary, DaemonError> {
        self.roots.set(&self.world.settings.roots);
        let mut listening: Vec<Listening> = self.listen().into_iter().collect();
        let (mut house, mut guard) = (tokio::time::interval(HOUSE_EVERY), tokio::time::interval(GUARD_EVERY));
        let mut store = None;
        while !stop.is_cancelled() {
            let (due, look) = (self.due.first().map(|(at, _)| *at), self.roots.due());
            tokio::select! {
                () = stop.cancelled() => break,
                Some(event) = self.from.recv() => self.hear(event),
                _ = house.tick() => {
                    self.let_go_gone();
                    self.keep_house();
                }
                _ = guard.tick(), if store.is_none() => {
                    self.roots.guard();
                    store = Some(self.look_for_store());
                }
                stands = looked_for(&mut store) => match stands {
                    Ok(()) => self.listen_again(&mut listening),
                    // The end of it all says why.
                    Err(JournalError::Replaced(_)) => break,
                    // So does its next use.
                    Err(_) => {}
                },
                () = sleep_until(look) => self.look_due(),
                () = sleep_until(due) => self.wake_due(),
            }
            self.begin()?;
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
        let _locks = self.lock_files(files)?;
        if files.is_empty() {
            self.roots.set(&self.world.settings.roots);
            self.look_due();
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
            self.begin()?;
        }
        let locked = self.roots.locked().map(|(path, why)| (path.to_path_buf(), why.to_owned()));
        self.summary.failed.extend(locked);
        self.finish().await
    }

    /// Files that are named are locked one by one, wherever they are.
    fn lock_files(&self, files: &[PathBuf]) -> Result<Vec<RootLock>, FilesError> {
        let Some(runtime) = &self.roots.runtime else { return Ok(Vec::new()) };
        files.iter().map(|file| lock_root(runtime, file)).collect()
    }

    /// Once each root was looked at, it is known whether there is anything to do here.
    fn begin(&mut self) -> Result<(), DaemonError> {
        if self.follows || !self.roots.are_seen() {
            return Ok(());
        }
        self.follows = true;
        if let Some(refusal) = self.roots.refusal() {
            return Err(refusal.into());
        }
        info!("following; end with Ctrl-C");
        Ok(())
    }

    /// The daemon is worth having without a socket too: sessions that no bridge has are served as ever.
    fn listen(&mut self) -> Option<Listening> {
        let listening = socket::listen(self.socket.as_ref()?, self.to.clone());
        // It is tried every few seconds, and told once.
        match &listening {
            Err(e) if !self.deaf => warn!("neither bridges nor `pi-graft status` can connect: {e}"),
            _ => {}
        }
        self.deaf = listening.is_err();
        listening.ok()
    }

    /// The socket's file may have been cleaned away; and it is called after the state directory's inode, which is another one
    /// if that was put back. Connections that stand are kept.
    fn listen_again(&mut self, listening: &mut Vec<Listening>) {
        let (Some(socket), Some(identity)) = (&self.socket, &self.identity) else { return };
        let Some(path) = socket.parent().and_then(|dir| socket_path(dir, &identity.about.state_dir).ok()) else {
            return;
        };
        // What could not be had at the start is not tried again.
        if listening.last().is_none_or(|last| last.stands_at(&path)) {
            return;
        }
        self.socket = Some(path);
        listening.extend(self.listen());
    }

    fn is_busy(&self) -> bool {
        !self.roots.are_seen() || self.is_working()
    }

    fn is_working(&self) -> bool {
        self.slots.values().any(|slot| slot.working || slot.jobs > 0)
    }

    /// Lets the workers end, and makes what was moved last.
    async fn finish(mut self) -> Result<Summary, DaemonError> {
        self.world.end();
        // A look at a root that hangs is not waited for: it writes nothing.
        while self.is_working() {
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
                } else {
                    self.hear_odd(&path);
                }
            }
            Event::Walk(dir) => self.roots.hint(dir.as_deref()),
            Event::Looked(looked) => self.looked(*looked),
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
            Event::FromPi(conn, message, held) => self.hear_pi(conn, message, held),
            Event::Control(conn, request) => self.control(conn, request),
            Event::Redo(runs) => self.redo(runs),
            Event::Reloaded(conn, fresh) => self.reloaded(&conn, *fresh),
            Event::Gone(conn) => {
                self.left(conn, None);
                self.wished_no_more(conn);
            }
        }
    }

    /// Whether a path that an event named is a session below a root, reached without a link.
    fn is_followed(&self, path: &Path) -> bool {
        let plain = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
        plain && self.roots.following().has(path) && (self.world.settings.by_path)(path)
    }

    /// What an event named is no session that is followed.
    fn hear_odd(&mut self, path: &Path) {
        let meta = std::fs::symlink_metadata(path);
        if !self.roots.following().has(path) {
            self.roots.hint_early(path);
        } else if meta.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            // A directory may be named as sessions are.
            self.roots.hint(Some(path));
        }
        if !meta.is_ok_and(|meta| meta.is_file()) {
            self.let_go(path);
        }
    }

    /// Whether another store has taken the place of ours; one that was deleted is put back. On a worker, since that copies it.
    fn look_for_store(&self) -> JoinHandle<Result<(), JournalError>> {
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || world.journal.stand())
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
    let (now, keep) = (world.at_most_now_ms(), world.settings.keep_runs.as_millis());
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    let from_ms = now.saturating_sub(keep);
    world.journal.forget_used(from_ms)?;
    world.journal.forget_failed(|_, run| run.retry_ms.is_some() || run.last_ms >= from_ms)?;
    world.journal.forget_runs(Keep { from_ms, rows: MOST_RUNS, bytes: MOST_LOG })?;
    match world.sweep(now, KEEP_GONE_MS)? {
        0 => {}
        forgotten => info!(forgotten, "sessions are gone for 30 days; what was pending for them is forgotten"),
    }
    world.journal.flush()
}

/// What the look that is under way has found; the next one may begin then.
async fn looked_for(look: &mut Option<JoinHandle<Result<(), JournalError>>>) -> Result<(), JournalError> {
    let Some(under_way) = look else { return std::future::pending().await };
    let found = under_way.await;
    *look = None;
    found.unwrap_or_else(|lost| Err(JournalError::Damaged(lost.to_string())))
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
