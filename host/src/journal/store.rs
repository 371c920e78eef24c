//! The embedded store behind the journal's words.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use redb::{Database, Durability, ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failed::{self, Change};
use super::held::{self, Held};
use super::ids;
use super::log;
use super::place::StoreFile;
use super::record::{Batch, Intent, RunRecord, SessionKey, SessionRecord};
use super::used::USED;

pub(super) const META: TableDefinition<'_, &str, &str> = TableDefinition::new("meta");
const SESSIONS: TableDefinition<'_, u64, &str> = TableDefinition::new("sessions");
const PENDING: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("pending");
const INTENTS: TableDefinition<'_, &str, &str> = TableDefinition::new("intents");

/// The layout of the tables. A store of another layout is refused, never guessed at.
const LAYOUT: &str = "1";

/// Why the store could not be used. None of these harms a session.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another pi-graft has the store open.
    #[error("{}: another pi-graft uses this state directory; stop it, or set another [state] dir", .0.display())]
    Busy(PathBuf),
    /// Another store stands where the one that is open was: a backup put back, or one that another pi-graft made.
    #[error(
        "{}: another store stands where the one in use was, and nothing is written to either. Start pi-graft again to go on \
         with the one that is there: what is in the sessions is not grafted twice, and what was pending is proposed again if \
         the store that is there does not hold it yet as handled",
        .0.display()
    )]
    Replaced(PathBuf),
    /// The system lets nobody at the file: rights, a read-only or failing disk, no room. Nothing is wrong with what it holds.
    #[error(
        "{}: the store cannot be opened ({reason}). Make room on its disk, or make it yours to read and write, and start again: \
         nothing of it is lost",
        path.display()
    )]
    Closed {
        /// The store.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is damaged, or of a version this program does not know.
    #[error(
        "{}: the store cannot be read ({reason}). Move it away and start again: what was pending is forgotten, \
         sessions and what was grafted are not touched",
        path.display()
    )]
    Unusable {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// What stands in the file cannot be what the store wrote; found while it was used.
    #[error(
        "the store is damaged ({0}). End pi-graft, move state.redb in its state directory away and start again: what was \
         pending is forgotten, sessions and what was grafted are not touched"
    )]
    Damaged(String),
    /// A row was written by a newer version, or is damaged; only what needs it fails.
    #[error(
        "a row of the store cannot be read ({0}): a newer pi-graft wrote it, or it is damaged. Use the newer one, or move \
         the store away and start again: what was pending is forgotten, sessions and what was grafted are not touched"
    )]
    Unreadable(String),
    /// A transaction failed, most often for want of disk space; nothing of it is in the store.
    #[error("the store could not be written: {0}; free some disk space if it is full")]
    Failed(String),
}

impl JournalError {
    pub(super) fn failed(e: impl std::fmt::Display) -> JournalError {
        JournalError::Failed(e.to_string())
    }
}

pub(super) type Result<T> = std::result::Result<T, JournalError>;

/// The store, open. There is one owner; see [`JournalError::Busy`].
#[derive(Debug)]
pub struct Journal {
    pub(super) db: Held,
    first_start_ms: i64,
    /// The highest session key given out: one may be lost with the disk's failure, and must not be given twice.
    highest: AtomicU64,
}

/// What is kept together with a cursor.
#[derive(Debug, Default)]
pub struct Moved<'a> {
    /// What runs proposed.
    pub batches: Vec<Batch>,
    /// Lines for the run log.
    pub runs: &'a [RunRecord],
    /// Runs that failed, and such as are done with.
    pub failed: &'a [Change],
    /// How many ids of handled entries were kept before, and the fingerprints of those that come behind them.
    pub handled: (u64, &'a [u64]),
}

/// A batch that is in the journal. Only the journal makes one, and delivery uses it up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a recorded batch is delivered or dropped"]
pub struct Recorded {
    session: SessionKey,
    number: u64,
    batch: Batch,
}

impl Recorded {
    /// What was proposed.
    #[must_use]
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The session it is for.
    #[must_use]
    pub fn session(&self) -> SessionKey {
        self.session
    }
}

/// The store's file in its directory.
const FILE: &str = "state.redb";

impl Journal {
    /// Whether there is a store in `dir`.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Opens or creates the store in `dir`, which must be this user's alone.
    ///
    /// # Errors
    /// [`JournalError::Busy`], [`JournalError::Closed`], [`JournalError::Unusable`].
    pub fn open(dir: &Path, now_ms: i64) -> Result<Journal> {
        let path = dir.join(FILE);
        let unusable = |reason: String| JournalError::Unusable { path: path.clone(), reason };
        let (db, file) = match held::whole(|| Ok(StoreFile::open(&path))).map_err(|e| unusable(e.to_string()))? {
            Ok(opened) => opened,
            Err(redb::DatabaseError::DatabaseAlreadyOpen) => return Err(JournalError::Busy(path)),
            Err(redb::DatabaseError::Storage(redb::StorageError::Io(e))) if !is_damage(&e) => {
                return Err(JournalError::Closed { path, reason: e.to_string() });
            }
            Err(e) => return Err(unusable(e.to_string())),
        };
        file.sweep();
        let db = Held::new(db, Some(file));
        let first_start_ms = db.with(|db| prepare(db, now_ms)).map_err(|e| match e {
            // As redb words what the system said.
            JournalError::Failed(reason) if reason.starts_with("I/O error") => {
                JournalError::Closed { path: path.clone(), reason }
            }
            e => unusable(e.to_string()),
        })?;
        Ok(Journal { db, first_start_ms, highest: AtomicU64::new(0) })
    }

    /// A store that lives no longer than this process: for `--dry-run`.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn in_memory(now_ms: i64) -> Result<Journal> {
        let backend = redb::backends::InMemoryBackend::new();
        let db = held::opening().create_with_backend(backend).map_err(JournalError::failed)?;
        let first_start_ms = prepare(&db, now_ms)?;
        Ok(Journal { db: Held::new(db, None), first_start_ms, highest: AtomicU64::new(0) })
    }

    /// When this store was started first, Unix milliseconds: older entries are history (product.md 4.3).
    #[must_use]
    pub fn first_start_ms(&self) -> i64 {
        self.first_start_ms
    }

    /// Every session the store knows.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn sessions(&self) -> Result<Vec<(SessionKey, SessionRecord)>> {
        self.db.read(|read| {
            let table = read.open_table(SESSIONS).map_err(JournalError::failed)?;
            let rows = table.iter().map_err(JournalError::failed)?;
            rows.map(|row| {
                let (key, value) = row.map_err(JournalError::failed)?;
                Ok((SessionKey(key.value()), decode(value.value())?))
            })
            .collect()
        })
    }

    /// What is pending for one session, in the order it was proposed.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn pending(&self, session: SessionKey) -> Result<Vec<Recorded>> {
        self.db.read(|read| {
            let table = read.open_table(PENDING).map_err(JournalError::failed)?;
            let rows = table.range((session.0, 0)..=(session.0, u64::MAX)).map_err(JournalError::failed)?;
            rows.map(|row| {
                let (key, value) = row.map_err(JournalError::failed)?;
                Ok(Recorded { session, number: key.value().1, batch: decode(value.value())? })
            })
            .collect()
        })
    }

    /// The sessions for which something is pending.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn sessions_with_pending(&self) -> Result<Vec<SessionKey>> {
        self.db.read(|read| {
            let table = read.open_table(PENDING).map_err(JournalError::failed)?;
            let rows = table.iter().map_err(JournalError::failed)?;
            let mut keys = rows
                .map(|row| row.map(|(key, _)| SessionKey(key.value().0)).map_err(JournalError::failed))
                .collect::<Result<Vec<_>>>()?;
            keys.dedup();
            Ok(keys)
        })
    }

    /// The writes of which it is not known whether they happened: the work of recovery.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn intents(&self) -> Result<Vec<(SessionKey, Intent)>> {
        self.db.read(|read| {
            let table = read.open_table(INTENTS).map_err(JournalError::failed)?;
            let rows = table.iter().map_err(JournalError::failed)?;
            rows.map(|row| {
                let (_, value) = row.map_err(JournalError::failed)?;
                decode::<(SessionKey, Intent)>(value.value())
            })
            .collect()
        })
    }

    /// The fingerprints of the first `count` ids that were handled in a session; as many of them as were kept.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn handled(&self, session: SessionKey, count: u64) -> Result<Vec<u64>> {
        self.db.read(|read| ids::get(read, session, count))
    }

    /// Moves a session's cursor and keeps what the runs on the way proposed, in one transaction. It is on the disk when
    /// something was proposed; a mere move may be lost and is then made again, by runs that propose nothing. A session
    /// without a key gets one in the same transaction: a cursor that stood alone would lose what belongs to it.
    ///
    /// # Errors
    /// [`JournalError::Failed`]: nothing was kept.
    pub fn record(
        &self,
        session: Option<SessionKey>,
        record: &SessionRecord,
        moved: Moved<'_>,
    ) -> Result<(SessionKey, Vec<Recorded>)> {
        let Moved { batches, runs, failed, handled: (at, handled) } = moved;
        let durability = if batches.is_empty() { Durability::None } else { Durability::Immediate };
        self.write(durability, |txn| {
            let session = self.put_session(txn, session, record)?;
            log::put(txn, runs)?;
            failed::put(txn, session, failed)?;
            ids::put(txn, session, at, handled)?;
            let recorded = batches.into_iter().map(|batch| put_pending(txn, session, batch));
            Ok((session, recorded.collect::<Result<_>>()?))
        })
    }

    /// Writes down that `recorded` is about to be written, before it is. On the disk when this returns.
    ///
    /// # Errors
    /// [`JournalError::Failed`]: the write must not be made.
    pub fn intend(&self, recorded: &Recorded, intent: &Intent) -> Result<()> {
        self.write(Durability::Immediate, |txn| put_intent(txn, recorded.session, intent))
    }

    /// The same for a line of the host's own, which was never pending: it goes with [`Journal::withdraw`], done or not.
    ///
    /// # Errors
    /// [`JournalError::Failed`]: the write must not be made.
    pub fn intend_own(&self, session: SessionKey, intent: &Intent) -> Result<()> {
        self.write(Durability::Immediate, |txn| put_intent(txn, session, intent))
    }

    /// The write did not happen: the batch is merely pending again.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn withdraw(&self, batch_id: &str) -> Result<()> {
        self.write(Durability::Immediate, |txn| {
            txn.open_table(INTENTS).map_err(JournalError::failed)?.remove(batch_id).map_err(JournalError::failed)?;
            Ok(())
        })
    }

    /// The batch is in the file, or dropped: neither pending nor intended any more.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn finish(&self, recorded: Recorded) -> Result<()> {
        self.write(Durability::Immediate, |txn| remove_pending(txn, &recorded))
    }

    /// Puts what of a batch is still to be grafted in its place, in one transaction.
    ///
    /// # Errors
    /// [`JournalError::Failed`]: the old one is still pending.
    pub fn replace(&self, recorded: &Recorded, batch: Batch) -> Result<Recorded> {
        self.write(Durability::Immediate, |txn| {
            remove_pending(txn, recorded)?;
            put_pending(txn, recorded.session, batch)
        })
    }

    /// Drops what is pending and intended for a session.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn forget_pending(&self, session: SessionKey) -> Result<()> {
        self.write(Durability::Immediate, |txn| {
            let mut pending = txn.open_table(PENDING).map_err(JournalError::failed)?;
            let rows = (session.0, 0)..=(session.0, u64::MAX);
            pending.retain_in(rows, |_, _| false).map_err(JournalError::failed)?;
            let mut intents = txn.open_table(INTENTS).map_err(JournalError::failed)?;
            let others = |_: &str, row: &str| {
                // A row that cannot be read is not known to be this session's.
                decode::<(SessionKey, Intent)>(row).map_or(true, |(of, _)| of != session)
            };
            intents.retain(others).map_err(JournalError::failed)
        })
    }

    /// Makes everything moved so far last.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn flush(&self) -> Result<()> {
        self.write(Durability::Immediate, |_| Ok(()))
    }

    /// Looks whether the store is where it was opened, and puts it back if somebody deleted it; costs one `stat`.
    ///
    /// # Errors
    /// [`JournalError::Replaced`] if another one stands there; [`JournalError::Failed`] if it cannot be put back.
    pub fn stand(&self) -> Result<()> {
        self.db.stand()
    }

    pub(super) fn write<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&WriteTransaction) -> Result<T>,
    ) -> Result<T> {
        self.db.write(|mut txn| {
            txn.set_durability(durability).map_err(JournalError::failed)?;
            let value = work(&txn)?;
            txn.commit().map_err(JournalError::failed)?;
            Ok(value)
        })
    }

    fn put_session(
        &self,
        txn: &WriteTransaction,
        session: Option<SessionKey>,
        record: &SessionRecord,
    ) -> Result<SessionKey> {
        let mut table = txn.open_table(SESSIONS).map_err(JournalError::failed)?;
        let last = table.last().map_err(JournalError::failed)?.map_or(0, |(key, _)| key.value());
        let free = last.max(self.highest.load(Ordering::SeqCst)) + 1;
        let key = session.unwrap_or(SessionKey(free));
        self.highest.fetch_max(key.0, Ordering::SeqCst);
        table.insert(key.0, encode(record)?.as_str()).map_err(JournalError::failed)?;
        Ok(key)
    }
}

fn put_intent(txn: &WriteTransaction, session: SessionKey, intent: &Intent) -> Result<()> {
    let mut table = txn.open_table(INTENTS).map_err(JournalError::failed)?;
    let row = encode(&(session, intent))?;
    table.insert(intent.batch.id.as_str(), row.as_str()).map_err(JournalError::failed)?;
    Ok(())
}

fn remove_pending(txn: &WriteTransaction, recorded: &Recorded) -> Result<()> {
    let mut intents = txn.open_table(INTENTS).map_err(JournalError::failed)?;
    intents.remove(recorded.batch.id.as_str()).map_err(JournalError::failed)?;
    let mut pending = txn.open_table(PENDING).map_err(JournalError::failed)?;
    pending.remove((recorded.session.0, recorded.number)).map_err(JournalError::failed)?;
    Ok(())
}

fn put_pending(txn: &WriteTransaction, session: SessionKey, batch: Batch) -> Result<Recorded> {
    let mut table = txn.open_table(PENDING).map_err(JournalError::failed)?;
    let last = table
        .range((session.0, 0)..=(session.0, u64::MAX))
        .map_err(JournalError::failed)?
        .next_back()
        .transpose()
        .map_err(JournalError::failed)?
        .map_or(0, |(key, _)| key.value().1);
    let number = last + 1;
    table.insert((session.0, number), encode(&batch)?.as_str()).map_err(JournalError::failed)?;
    Ok(Recorded { session, number, batch })
}

/// Whether an error is about what the file holds.
fn is_damage(e: &std::io::Error) -> bool {
    matches!(e.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof)
}

/// Makes the tables, checks the layout, and gives the time of the first start.
fn prepare(db: &Database, now_ms: i64) -> Result<i64> {
    let txn = db.begin_write().map_err(JournalError::failed)?;
    let first = {
        let mut meta = txn.open_table(META).map_err(JournalError::failed)?;
        let known = meta.get("layout").map_err(JournalError::failed)?.map(|v| v.value().to_owned());
        if known.as_deref().is_some_and(|layout| layout != LAYOUT) {
            return Err(JournalError::Damaged(format!("layout {}, expected {LAYOUT}", known.unwrap_or_default())));
        }
        meta.insert("layout", LAYOUT).map_err(JournalError::failed)?;
        let first = meta.get("first-start").map_err(JournalError::failed)?.and_then(|v| v.value().parse().ok());
        // A clock that has been set back since: what is written from now on is not older than the first start.
        let first = first.unwrap_or(now_ms).min(now_ms);
        meta.insert("first-start", first.to_string().as_str()).map_err(JournalError::failed)?;
        first
    };
    txn.open_table(SESSIONS).map_err(JournalError::failed)?;
    txn.open_table(PENDING).map_err(JournalError::failed)?;
    txn.open_table(INTENTS).map_err(JournalError::failed)?;
    log::prepare(&txn)?;
    txn.open_table(USED).map_err(JournalError::failed)?;
    failed::prepare(&txn)?;
    txn.commit().map_err(JournalError::failed)?;
    Ok(first)
}

pub(super) fn encode<T: Serialize>(row: &T) -> Result<String> {
    serde_json::to_string(row).map_err(JournalError::failed)
}

pub(super) fn decode<T: DeserializeOwned>(row: &str) -> Result<T> {
    serde_json::from_str(row).map_err(|e| JournalError::Unreadable(e.to_string()))
}
