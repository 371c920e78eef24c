//! The open database, how it comes back after the disk failed, and that it is still the one at its path.
//!
//! Once a write has failed for want of room, redb refuses everything until it is opened anew. A daemon must not have to be
//! started again for that, so the next use opens it: what was on the disk is there, and mere moves since the last sync are
//! made again (they propose nothing twice, for the receipts are in the sessions). In the same way it comes back if its file was
//! deleted ([`super::place`]), which each use looks for: it costs one `stat`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use redb::{Builder, Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use super::place::{Stands, StoreFile};
use super::store::JournalError;

/// Bytes of the store that are kept in memory; redb would keep a gigabyte. The system has the file's pages anyway, and a
/// daemon that stands by for days must not hold all that it once looked at.
const CACHE: usize = 16 << 20;

/// How a store is opened, whatever holds its bytes.
pub(super) fn opening() -> Builder {
    let mut opening = Database::builder();
    opening.set_cache_size(CACHE);
    opening
}

/// A database that is opened anew after a failure.
#[derive(Debug)]
pub(super) struct Held {
    db: RwLock<Option<Database>>,
    /// None in memory: that one cannot fail for want of room, and would be empty if it were opened anew.
    file: Option<Mutex<StoreFile>>,
    failed: AtomicBool,
}

impl Held {
    pub(super) fn new(db: Database, file: Option<StoreFile>) -> Held {
        Held { db: RwLock::new(Some(db)), file: file.map(Mutex::new), failed: AtomicBool::new(false) }
    }

    /// Makes use of what the database holds at one moment.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.with(|db| work(&db.begin_read().map_err(JournalError::failed)?))
    }

    /// Makes one transaction; if it fails, the next use opens the database anew, and waits for this one to end.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(WriteTransaction) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.with(|db| work(db.begin_write().map_err(JournalError::failed)?))
            .inspect_err(|_| self.failed.store(true, Ordering::SeqCst))
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, JournalError>) -> Result<T, JournalError> {
        self.stand()?;
        let held = self.db.read().unwrap_or_else(PoisonError::into_inner);
        let Some(db) = held.as_ref() else { return Err(JournalError::failed("it could not be opened again")) };
        whole(|| work(db))
    }

    /// Makes sure that it is open, and its file where it was.
    pub(super) fn stand(&self) -> Result<(), JournalError> {
        let Some(file) = &self.file else { return Ok(()) };
        let stands = locked(file).stands();
        if stands == Stands::Own && !self.failed.load(Ordering::SeqCst) { Ok(()) } else { self.reopen(file) }
    }

    fn reopen(&self, file: &Mutex<StoreFile>) -> Result<(), JournalError> {
        // Uses that are under way end first.
        let mut held = self.db.write().unwrap_or_else(PoisonError::into_inner);
        let mut file = locked(file);
        let stands = file.stands();
        match stands {
            Stands::Other => return Err(file.replaced()),
            Stands::Own if !self.failed.load(Ordering::SeqCst) => return Ok(()),
            Stands::Own | Stands::Nothing => {}
        }
        // The old one goes first: it holds the file's lock.
        let _ = close(&mut held);
        self.failed.store(true, Ordering::SeqCst);
        *held = Some(whole(|| if stands == Stands::Own { file.open_again() } else { file.put_back() })?);
        self.failed.store(false, Ordering::SeqCst);
        Ok(())
    }
}

fn locked(file: &Mutex<StoreFile>) -> MutexGuard<'_, StoreFile> {
    // A panic while it was held leaves one file or the other.
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = self.db.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = close(held) {
            tracing::warn!("{e}");
        }
    }
}

/// Closing a database writes, so it may fail as any use.
fn close(held: &mut Option<Database>) -> Result<(), JournalError> {
    whole(|| {
        drop(held.take());
        Ok(())
    })
}

/// Uses a database that may be damaged: redb tells some damage by a panic, which is to cost the one who asks no more than an
/// error. What such a use leaves behind is never used: a transaction ends with it, and a failed database is opened anew.
pub(super) fn whole<T>(work: impl FnOnce() -> Result<T, JournalError>) -> Result<T, JournalError> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it cannot be read");
        Err(JournalError::Damaged(text.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use std::sync::atomic::AtomicU64;

    use redb::backends::InMemoryBackend;
    use redb::{ReadableTable, StorageBackend, TableDefinition};

    use super::*;
    use crate::journal::Journal;

    const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("t");

    #[test]
    fn what_was_there_is_there_again_after_a_failure() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.redb");
        let held = open(&path);
        put(&held, 1).expect("written");
        held.write(|_| Err::<(), _>(JournalError::failed("no room"))).expect_err("it fails");
        put(&held, 2).expect("opened anew and written");
        assert_eq!(count(&held), 2);
    }

    #[test]
    fn what_was_deleted_is_put_back_with_all_it_holds() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = dir.path().join("state");
        fs::create_dir(&state).expect("a directory");
        let held = open(&state.join("t.redb"));
        put(&held, 1).expect("written");
        fs::remove_file(state.join("t.redb")).expect("deleted");
        put(&held, 2).expect("put back and written");
        fs::remove_dir_all(&state).expect("deleted");
        assert_eq!(count(&held), 2, "a look is enough");
        fs::rename(&state, dir.path().join("elsewhere")).expect("moved away");
        put(&held, 3).expect("put back and written");
        let names: Vec<_> = fs::read_dir(&state).expect("there").map(|e| e.expect("an entry").file_name()).collect();
        assert_eq!(names, ["t.redb"], "nothing is left beside it");
        assert!(StoreFile::open(&state.join("t.redb")).is_err(), "it is locked as ever");
        drop(held);
        assert_eq!(count(&open(&state.join("t.redb"))), 3, "and it is on the disk");
    }

    #[test]
    fn what_was_left_half_put_back_goes_at_the_next_start() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["state.redb.4711", "state.redb.backup", "other.redb.4711"] {
            fs::write(dir.path().join(name), "half").expect("left");
        }
        drop(Journal::open(dir.path(), 0).expect("a store"));
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).expect("there").map(|e| e.expect("an entry").file_name()).collect();
        names.sort();
        assert_eq!(names, ["other.redb.4711", "state.redb", "state.redb.backup"]);
    }

    #[test]
    fn another_one_in_its_place_is_not_touched() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.redb");
        let held = open(&path);
        put(&held, 1).expect("written");
        fs::write(dir.path().join("backup"), "yesterday's").expect("a backup");
        fs::rename(dir.path().join("backup"), &path).expect("put back");
        for _ in 0..2 {
            assert!(matches!(put(&held, 2), Err(JournalError::Replaced(_))));
        }
        drop(held);
        assert_eq!(fs::read(&path).expect("there"), b"yesterday's");
    }

    fn open(path: &Path) -> Held {
        let (db, file) = StoreFile::open(path).expect("a database");
        Held::new(db, Some(file))
    }

    fn put(held: &Held, key: u64) -> Result<(), JournalError> {
        held.write(|txn| {
            txn.open_table(TABLE).map_err(JournalError::failed)?.insert(key, 0).map_err(JournalError::failed)?;
            txn.commit().map_err(JournalError::failed)
        })
    }

    fn count(held: &Held) -> usize {
        let count = held.read(|read| {
            let table = read.open_table(TABLE).map_err(JournalError::failed)?;
            Ok(table.iter().map_err(JournalError::failed)?.count())
        });
        count.expect("readable")
    }

    /// Bytes that are read from below a store: what it does not have in memory.
    static READ: AtomicU64 = AtomicU64::new(0);

    #[derive(Debug, Default)]
    struct Counting(InMemoryBackend);

    impl StorageBackend for Counting {
        fn len(&self) -> Result<u64, std::io::Error> {
            self.0.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), std::io::Error> {
            READ.fetch_add(out.len() as u64, Ordering::SeqCst);
            self.0.read(offset, out)
        }

        fn set_len(&self, len: u64) -> Result<(), std::io::Error> {
            self.0.set_len(len)
        }

        fn sync_data(&self) -> Result<(), std::io::Error> {
            self.0.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> Result<(), std::io::Error> {
            self.0.write(offset, data)
        }
    }

    /// A daemon that looked through all of a large log once does not hold it from then on: the next look reads it again.
    #[test]
    fn of_a_large_store_little_is_kept_in_memory() {
        const TEXTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("texts");
        let rows = (3 * CACHE as u64) >> 20;
        let held = Held::new(opening().create_with_backend(Counting::default()).expect("a database"), None);
        let text = vec![b'x'; 1 << 20];
        let put = |key: u64| {
            held.write(|txn| {
                let mut table = txn.open_table(TEXTS).map_err(JournalError::failed)?;
                table.insert(key, text.as_slice()).map_err(JournalError::failed)?;
                drop(table);
                txn.commit().map_err(JournalError::failed)
            })
        };
        (0..rows).for_each(|key| put(key).expect("written"));
        let look = || {
            let before = READ.load(Ordering::SeqCst);
            let seen = held.read(|read| {
                let table = read.open_table(TEXTS).map_err(JournalError::failed)?;
                let lengths =
                    table.iter().map_err(JournalError::failed)?.map(|row| row.expect("a row").1.value().len());
                Ok(lengths.sum::<usize>())
            });
            assert_eq!(seen.expect("readable"), 3 * CACHE);
            READ.load(Ordering::SeqCst) - before
        };
        look();
        let again = look();
        assert!(again >= 2 * CACHE as u64, "{again} bytes were read: the rest is kept");
    }
}
