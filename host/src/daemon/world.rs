//! What all sessions share: the plugins, the store, the disk, and which sessions are known.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::deliver::presence::Processes;
use crate::files::FileId;
use crate::files::append::Disk;
use crate::journal::{Journal, JournalError, SessionKey, SessionRecord};
use crate::sandbox::Plugin;

use super::settings::Settings;

/// How long one look at the system's processes is good for.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// After a start nothing is written directly to a session that a bridge had, so that bridges can come back.
const BRIDGES_COME_BACK: Duration = Duration::from_secs(10);

/// Shared by all workers.
pub struct World {
    /// The store.
    pub journal: Journal,
    /// The plugins in the config's order.
    pub plugins: Vec<Arc<Plugin>>,
    /// What to do.
    pub settings: Settings,
    /// The system calls of a write.
    pub disk: Box<dyn Disk>,
    known: Mutex<Known>,
    ending: AtomicBool,
    began: Instant,
    processes: Mutex<Option<(Instant, Arc<Processes>)>>,
}

/// The sessions that the store knows.
#[derive(Default)]
struct Known {
    records: HashMap<SessionKey, SessionRecord>,
    by_path: HashMap<PathBuf, SessionKey>,
}

/// What a path turned out to be, when it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// The session that was here before, or was moved here.
    Known(SessionKey, SessionRecord),
    /// A session that was never met.
    New,
    /// The same session id as a file that still exists elsewhere: followed from its present end (product.md 4.3).
    Copy,
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
        let records: HashMap<_, _> = journal.sessions()?.into_iter().collect();
        let by_path = records.iter().map(|(key, record)| (record.path.clone(), *key)).collect();
        let known = Mutex::new(Known { records, by_path });
        Ok(World {
            journal,
            plugins,
            settings,
            disk,
            known,
            ending: AtomicBool::new(false),
            began: Instant::now(),
            processes: Mutex::new(None),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A panic while it was held leaves whole rows: they are replaced one at a time.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the workers to end at the next entry or batch; what they leave is done at the next start.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether the daemon is ending.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Whether it started so recently that bridges may not have come back yet.
    #[must_use]
    pub fn is_young(&self) -> bool {
        self.began.elapsed() < BRIDGES_COME_BACK
    }

    /// What is known of the session with `id` at `path`.
    #[must_use]
    pub fn meet(&self, path: &Path, id: &str, file: FileId) -> Met {
        let known = self.known();
        let here = known.by_path.get(path).and_then(|key| Some((*key, known.records.get(key)?)));
        if let Some((key, record)) = here.filter(|(_, record)| record.session_id == id) {
            return Met::Known(key, record.clone());
        }
        let same_id = known.records.iter().filter(|(_, record)| record.session_id == id);
        let moved = |record: &SessionRecord| record.file == file || !record.path.exists();
        let mut copies = false;
        for (key, record) in same_id {
            if moved(record) {
                return Met::Known(*key, record.clone());
            }
            copies = true;
        }
        if copies { Met::Copy } else { Met::New }
    }

    /// The record of the session last seen at `path`.
    #[must_use]
    pub fn record_at(&self, path: &Path) -> Option<SessionRecord> {
        let known = self.known();
        known.by_path.get(path).and_then(|key| known.records.get(key)).cloned()
    }

    /// Takes over a session's newest record.
    pub fn remember(&self, key: SessionKey, record: &SessionRecord) {
        let mut known = self.known();
        if let Some(old) = known.records.insert(key, record.clone())
            && old.path != record.path
        {
            known.by_path.remove(&old.path);
        }
        known.by_path.insert(record.path.clone(), key);
    }

    /// The paths of sessions with something left to do: pending batches, intents, wishes for `on-settled`.
    ///
    /// # Errors
    /// [`JournalError`] if the store cannot be read.
    pub fn unfinished(&self) -> Result<Vec<PathBuf>, JournalError> {
        let intended = self.journal.intents()?.into_iter().map(|(key, _)| key);
        let mut keys: Vec<_> = self.journal.sessions_with_pending()?.into_iter().chain(intended).collect();
        let known = self.known();
        keys.extend(known.records.iter().filter(|(_, record)| !record.later.is_empty()).map(|(key, _)| *key));
        keys.sort_unstable();
        keys.dedup();
        Ok(keys.iter().filter_map(|key| known.records.get(key)).map(|record| record.path.clone()).collect())
    }

    /// The Pi processes of this moment.
    #[must_use]
    pub fn processes(&self) -> Arc<Processes> {
        if self.settings.closed {
            return Arc::new(Processes::none());
        }
        let mut held = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
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
