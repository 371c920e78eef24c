//! What all sessions share: the plugins, the store, the disk, and which sessions are known.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tracing::warn;

use crate::deliver::presence::Processes;
use crate::files::append::Disk;
use crate::files::{FileId, locate};
use crate::journal::{Batch, FailedRun, Journal, JournalError, Moved, RunRecord, SessionKey, SessionRecord};
use crate::sandbox::Plugin;

use super::feed::Feed;
use super::known::Known;
pub use super::known::Met;
use super::quiet::Steady;
use super::session;
use super::settings::Settings;
use super::suspended::Suspended;

/// How long one look at the system's processes is good for.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// After a start nothing is written directly to a session that a bridge had, so that bridges can come back.
const BRIDGES_COME_BACK: Duration = Duration::from_secs(10);

/// Who keeps the run log in the store's place: hears each line and batch when it would be kept.
pub type Observer = Box<dyn Fn(&[RunRecord], &[Batch]) + Send + Sync>;

/// What all workers share. A step works with the one that it began with; a reload makes a new one beside it, with the same
/// store and the same knowledge.
pub struct World {
    /// The store.
    pub journal: Arc<Journal>,
    /// The plugins in the config's order.
    pub plugins: Vec<Arc<Plugin>>,
    /// What to do.
    pub settings: Settings,
    /// The system calls of a write.
    pub disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
    /// Set when a reload has put another one in its place.
    replaced: Arc<AtomicBool>,
}

/// Where a session is that was known at some path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    There,
    /// Its file is below a root under another name.
    Elsewhere,
    Gone,
}

/// The end of whatever began in a world: the daemon's own, or a reload.
#[derive(Clone)]
pub struct Ending {
    shared: Arc<Shared>,
    replaced: Arc<AtomicBool>,
}

impl Ending {
    /// Whether it has come.
    #[must_use]
    pub fn has_come(&self) -> bool {
        self.shared.ending.load(Ordering::Relaxed) || self.replaced.load(Ordering::Relaxed)
    }
}

/// What outlives a reload.
struct Shared {
    known: Mutex<Known>,
    suspended: Mutex<Suspended>,
    feed: Feed,
    ending: AtomicBool,
    steady: Steady,
    paused: AtomicBool,
    processes: Mutex<Option<(Instant, Arc<Processes>)>>,
    bridged: Mutex<HashSet<PathBuf>>,
    observer: Option<Observer>,
}

impl World {
    /// A world with what the store knows.
    ///
    /// # Errors
    /// [`JournalError`] if the store cannot be read.
    pub fn new(
        journal: Journal,
        plugins: Vec<Arc<Plugin>>,
        settings: Settings,
        disk: Box<dyn Disk>,
    ) -> Result<World, JournalError> {
        World::observed(journal, plugins, settings, disk, None)
    }

    /// The same, where somebody else keeps the run log.
    ///
    /// # Errors
    /// [`JournalError`] if the store cannot be read.
    pub fn observed(
        journal: Journal,
        plugins: Vec<Arc<Plugin>>,
        settings: Settings,
        disk: Box<dyn Disk>,
        observer: Option<Observer>,
    ) -> Result<World, JournalError> {
        let sessions = journal.sessions()?;
        let shared = Shared {
            suspended: Mutex::new(Suspended::new(&sessions, journal.lifted()?)),
            known: Mutex::new(Known::new(sessions)),
            feed: Feed::default(),
            ending: AtomicBool::new(false),
            steady: Steady::begin(),
            paused: AtomicBool::new(false),
            processes: Mutex::new(None),
            bridged: Mutex::default(),
            observer,
        };
        let (journal, shared, replaced) = (Arc::new(journal), Arc::new(shared), Arc::default());
        Ok(World { journal, plugins, settings, disk: disk.into(), shared, replaced })
    }

    /// The same world with other plugins and settings, which takes the place of this one: models are not asked in this one
    /// any more.
    #[must_use]
    pub fn with(&self, plugins: Vec<Arc<Plugin>>, settings: Settings) -> World {
        self.replaced.store(true, Ordering::Relaxed);
        let (journal, disk, shared) = (Arc::clone(&self.journal), Arc::clone(&self.disk), Arc::clone(&self.shared));
        World { journal, plugins, settings, disk, shared, replaced: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A panic while it was held leaves whole rows: they are replaced one at a time.
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines that the store is to keep: none where an observer has heard them.
    pub(super) fn to_keep<'r>(&self, runs: &'r [RunRecord], batches: &[Batch]) -> &'r [RunRecord] {
        match &self.shared.observer {
            Some(observer) => {
                observer(runs, batches);
                &[]
            }
            None => runs,
        }
    }

    /// Whether somebody else keeps the log, and so hears what plugins log too.
    pub(super) fn is_observed(&self) -> bool {
        self.shared.observer.is_some()
    }

    /// Those who follow the log.
    pub(super) fn feed(&self) -> &Feed {
        &self.shared.feed
    }

    /// The end of what begins now.
    #[must_use]
    pub fn ending(&self) -> Ending {
        Ending { shared: Arc::clone(&self.shared), replaced: Arc::clone(&self.replaced) }
    }

    /// Asks the workers to end at the next entry or batch; what they leave is done at the next start.
    pub fn end(&self) {
        self.shared.ending.store(true, Ordering::Relaxed);
    }

    /// Whether the daemon is ending.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.shared.ending.load(Ordering::Relaxed)
    }

    /// Asks the workers to stop at the next entry or batch until the pause is over.
    pub fn pause(&self, paused: bool) {
        self.shared.paused.store(paused, Ordering::Relaxed);
    }

    /// Whether the daemon pauses.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.shared.paused.load(Ordering::Relaxed)
    }

    /// Whether workers are to stop where they may, and why.
    #[must_use]
    pub fn stops(&self) -> Option<&'static str> {
        match (self.is_ending(), self.is_paused()) {
            (true, _) => Some("pi-graft is ending; it goes on at the next start"),
            (false, true) => Some("pi-graft pauses; end it with `pi-graft resume`"),
            (false, false) => None,
        }
    }

    /// Whether it started so recently that bridges may not have come back yet.
    #[must_use]
    pub fn is_young(&self) -> bool {
        self.shared.steady.elapsed() < BRIDGES_COME_BACK
    }

    /// Now, by a clock that nobody sets while the daemon runs; Unix milliseconds.
    #[must_use]
    pub fn steady_ms(&self) -> i64 {
        self.shared.steady.now_ms()
    }

    /// A moment that may have come, and nothing is thrown away before: whatever was done to the clock, not later than now.
    #[must_use]
    pub fn at_most_now_ms(&self) -> i64 {
        self.steady_ms().min(now_ms())
    }

    /// How long ago at least something was written that has this time, whatever was done to the clock.
    #[must_use]
    pub fn age(&self, written: SystemTime) -> Duration {
        self.shared.steady.age(written)
    }

    fn bridged(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        // A panic while it was held leaves whole paths.
        self.shared.bridged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bridge has the session at `path` from now on, or none has it any more.
    pub(super) fn note_bridge(&self, path: &Path, has: bool) {
        let mut bridged = self.bridged();
        bridged.remove(path);
        bridged.extend(has.then(|| path.to_path_buf()));
    }

    /// Whether a bridge has the session at `path`: at this very moment, which a step that began before does not know else.
    pub(super) fn has_bridge(&self, path: &Path) -> bool {
        self.bridged().contains(path)
    }

    /// What is known of the session with `id` at `path`.
    #[must_use]
    pub fn meet(&self, path: &Path, id: &str, file: FileId) -> Met {
        loop {
            // Looked for while nobody waits for what is known: a walk over the roots takes its time, or hangs.
            let others = self.known().others(path, id, file);
            let looked: Vec<(PathBuf, FileId, Place)> = others
                .into_iter()
                .map(|(at, of)| match (session::is_at(&at, id), of) {
                    (true, _) => (at, of.unwrap_or(file), Place::There),
                    (false, Some(of)) if self.is_below_a_root(of, id) => (at, of, Place::Elsewhere),
                    (false, _) => (at, of.unwrap_or(file), Place::Gone),
                })
                .collect();
            let new = Cell::new(false);
            let find = |place: Place, is: &dyn Fn(&Path, FileId) -> bool| {
                let places: Vec<Place> = looked.iter().filter(|(at, of, _)| is(at, *of)).map(|one| one.2).collect();
                new.set(new.get() || places.is_empty());
                places.is_empty() || places.contains(&place)
            };
            let is_at = |path: &Path, _: &str| find(Place::There, &|at, _| at == path);
            let is_elsewhere = |file: FileId, _: &str| find(Place::Elsewhere, &|_, of| of == file);
            let met = self.known().meet(path, id, file, is_at, is_elsewhere);
            // Another one with this id has come meanwhile: then it was taken for a copy, and nothing was noted.
            if !new.get() {
                return met;
            }
        }
    }

    /// Whether this very file stands below a root, under whatever name, and is followed as the session with `id`. Costs a walk.
    fn is_below_a_root(&self, file: FileId, id: &str) -> bool {
        let real = self.settings.roots.iter().filter_map(|root| root.canonicalize().ok());
        let mut found = real.flat_map(|root| locate::walk(&root, &mut |_, _| {}));
        let is_followed = |path: &Path| (self.settings.by_path)(path) && session::is_at(path, id);
        found.any(|found| FileId::of(&found.meta) == file && is_followed(&found.path))
    }

    /// What `look` makes of the record of the session last seen at `path`.
    pub fn at<T>(&self, path: &Path, look: impl FnOnce(SessionKey, &SessionRecord) -> T) -> Option<T> {
        self.known().at(path).map(|(key, record)| look(key, record))
    }

    /// Where the session with this id is.
    #[must_use]
    pub fn path_of(&self, id: &str) -> Option<PathBuf> {
        self.known().with_id(id).next().map(|(_, record)| record.path.clone())
    }

    /// The numbers of the session with this id: more than one if there are copies.
    pub(super) fn keys_of(&self, id: &str) -> Vec<SessionKey> {
        self.known().with_id(id).map(|(key, _)| key).collect()
    }

    /// Where the session with this number is.
    pub(super) fn path_with(&self, key: SessionKey) -> Option<PathBuf> {
        self.known().get(key).map(|record| record.path.clone())
    }

    /// What is known of the sessions in which a plugin does not simply run, and of these.
    pub(super) fn troubled(&self, these: &BTreeSet<SessionKey>) -> BTreeMap<SessionKey, SessionRecord> {
        let known = self.known();
        let troubled = known.all().filter(|(key, record)| !record.standing.is_empty() || these.contains(key));
        troubled.map(|(key, record)| (key, record.clone())).collect()
    }

    /// The sessions whose id begins so, and where they are.
    #[must_use]
    pub fn with_prefix(&self, prefix: &str) -> Vec<PathBuf> {
        let known = self.known();
        let found = known.all().filter(|(_, record)| record.session_id.starts_with(prefix));
        found.map(|(_, record)| record.path.clone()).collect()
    }

    /// Every path at which a session is known.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.known().all().map(|(_, record)| record.path.clone()).collect()
    }

    /// How many sessions are known.
    #[must_use]
    pub fn count(&self) -> usize {
        self.known().len()
    }

    /// Takes over a session's newest record.
    pub fn remember(&self, key: SessionKey, record: &SessionRecord) {
        self.known().remember(key, record);
        for plugin in self.suspended().note(key, record) {
            warn!(plugin, "suspended in three sessions, and so everywhere");
        }
    }

    /// Where plugins are suspended.
    pub(super) fn suspended(&self) -> MutexGuard<'_, Suspended> {
        // A panic while it was held leaves whole rows.
        self.shared.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every suspension of a plugin up to now.
    ///
    /// # Errors
    /// [`JournalError`] if the store fails.
    pub fn lift(&self, plugin: &str) -> Result<(), JournalError> {
        let now = self.suspended().so_far(plugin, now_ms());
        self.journal.lift(plugin, now)?;
        self.suspended().lift(plugin, now);
        Ok(())
    }

    /// The paths of sessions in which plugins have something to make up for now, or to try again.
    ///
    /// # Errors
    /// [`JournalError`] if the store cannot be read.
    pub fn to_redo(&self) -> Result<Vec<PathBuf>, JournalError> {
        let is_due = |run: &FailedRun| {
            let plugin = self.plugins.iter().find(|plugin| plugin.name() == run.plugin);
            plugin.is_some_and(|plugin| run.retry_ms.is_some() || run.digest != plugin.digest())
        };
        let failed = self.journal.all_failed()?;
        let mut keys: Vec<_> = failed.iter().filter(|(_, run)| is_due(run)).map(|(key, _)| *key).collect();
        let known = self.known();
        let owes = known.all().filter(|(_, record)| record.standing.iter().any(|standing| standing.owes.is_some()));
        keys.extend(owes.map(|(key, _)| key));
        keys.sort_unstable();
        keys.dedup();
        Ok(keys.iter().filter_map(|key| known.get(*key)).map(|record| record.path.clone()).collect())
    }

    /// Sessions with something left to do: pending batches, intents, wishes for `on-settled`, a misplaced graft; by number.
    fn unfinished_keys(&self) -> Result<Vec<SessionKey>, JournalError> {
        let intended = self.journal.intents()?.into_iter().map(|(key, _)| key);
        let mut keys: Vec<_> = self.journal.sessions_with_pending()?.into_iter().chain(intended).collect();
        let is_left = |record: &SessionRecord| !record.later.is_empty() || record.grafts.misplaced;
        keys.extend(self.known().all().filter(|(_, record)| is_left(record)).map(|(key, _)| key));
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// The paths of sessions with something left to do.
    ///
    /// # Errors
    /// [`JournalError`] if the store cannot be read.
    pub fn unfinished(&self) -> Result<Vec<PathBuf>, JournalError> {
        let keys = self.unfinished_keys()?;
        let known = self.known();
        Ok(keys.iter().filter_map(|key| known.get(*key)).map(|record| record.path.clone()).collect())
    }

    /// Notes which sessions with something left to do are not there, and forgets what is pending for those that have been
    /// gone for `keep_ms`, milliseconds. Gives how many were forgotten.
    ///
    /// # Errors
    /// [`JournalError`] if the store fails.
    pub fn sweep(&self, now_ms: i64, keep_ms: i64) -> Result<usize, JournalError> {
        let mut forgotten = 0;
        for key in self.unfinished_keys()? {
            let Some(mut record) = self.known().get(key).cloned() else { continue };
            let gone_ms = if record.path.exists() { None } else { Some(record.gone_ms.unwrap_or(now_ms)) };
            if gone_ms.is_some_and(|since| now_ms.saturating_sub(since) >= keep_ms) {
                record.later.clear();
                self.journal.forget_pending(key)?;
                self.journal.forget_failed(|of, _| of != key)?;
                record.standing.clear();
                forgotten += 1;
            } else if gone_ms == record.gone_ms {
                continue;
            }
            record.gone_ms = gone_ms;
            self.journal.record(Some(key), &record, Moved::default())?;
            self.remember(key, &record);
        }
        Ok(forgotten)
    }

    /// The Pi processes of this moment.
    #[must_use]
    pub fn processes(&self) -> Arc<Processes> {
        if self.settings.closed {
            return Arc::new(Processes::none());
        }
        let mut held = self.shared.processes.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some((at, seen)) if at.elapsed() < LOOK_AGAIN => Arc::clone(seen),
            _ => {
                let seen = Arc::new(Processes::look());
                *held = Some((Instant::now(), Arc::clone(&seen)));
                seen
            }
        }
    }
}

/// Now, Unix milliseconds.
#[must_use]
pub fn now_ms() -> i64 {
    unix_ms(SystemTime::now())
}

/// A time as Unix milliseconds.
#[must_use]
pub fn unix_ms(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// 16 bytes of the system's randomness.
///
/// # Panics
/// If the system has none: nothing can be written safely then.
#[must_use]
pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system gives random bytes; without them no id is safe");
    bytes
}
