//! The open database, and how it comes back after the disk failed.
//!
//! Once a write has failed for want of room, redb refuses everything until it is opened anew. A daemon must not have to be
//! started again for that, so the next use opens it: what was on the disk is there, and mere moves since the last sync are
//! made again (they propose nothing twice, for the receipts are in the sessions).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use super::store::JournalError;

/// A database that is opened anew after a failure.
#[derive(Debug)]
pub(super) struct Held {
    db: RwLock<Option<Database>>,
    /// None in memory: that one cannot fail for want of room, and would be empty if it were opened anew.
    path: Option<PathBuf>,
    failed: AtomicBool,
}

impl Held {
    pub(super) fn new(db: Database, path: Option<PathBuf>) -> Held {
        Held { db: RwLock::new(Some(db)), path, failed: AtomicBool::new(false) }
    }

    pub(super) fn read(&self) -> Result<ReadTransaction, JournalError> {
        self.with(|db| db.begin_read().map_err(JournalError::failed))
    }

    /// Makes one transaction; if it fails, the next use opens the database anew, and waits for this one to end.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(WriteTransaction) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let done = self.with(|db| work(db.begin_write().map_err(JournalError::failed)?));
        done.inspect_err(|_| self.failed.store(true, Ordering::SeqCst))
    }

    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, JournalError>) -> Result<T, JournalError> {
        self.reopen()?;
        let held = self.db.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map_or_else(|| Err(JournalError::failed("it could not be opened again")), work)
    }

    fn reopen(&self) -> Result<(), JournalError> {
        let Some(path) = self.path.as_ref().filter(|_| self.failed.load(Ordering::SeqCst)) else { return Ok(()) };
        let mut held = self.db.write().unwrap_or_else(PoisonError::into_inner);
        if !self.failed.load(Ordering::SeqCst) {
            return Ok(());
        }
        // The old one goes first: it holds the file's lock.
        drop(held.take());
        *held = Some(Database::open(path).map_err(JournalError::failed)?);
        self.failed.store(false, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::{ReadableTable, TableDefinition};

    use super::*;

    const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("t");

    #[test]
    fn what_was_there_is_there_again_after_a_failure() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.redb");
        let held = Held::new(Database::create(&path).expect("a database"), Some(path));
        let put = |key| {
            held.write(|txn| {
                txn.open_table(TABLE).map_err(JournalError::failed)?.insert(key, 0).map_err(JournalError::failed)?;
                txn.commit().map_err(JournalError::failed)
            })
        };
        put(1).expect("written");
        held.write(|_| Err::<(), _>(JournalError::failed("no room"))).expect_err("it fails");
        put(2).expect("opened anew and written");
        let read = held.read().expect("readable");
        let table = read.open_table(TABLE).expect("the table");
        assert_eq!(table.iter().expect("rows").count(), 2);
    }
}
