//! The store's own file: whether it still stands where it was opened, and how it is put back if somebody deleted it.
//!
//! | at its path is | what is done |
//! | --- | --- |
//! | the file that was opened | nothing |
//! | nothing: it was deleted or moved away, with or without its directory | it is put back with all it holds, so nothing is forgotten |
//! | another file: a backup that was restored, or a store that another pi-graft made | nothing is written any more: it may be somebody else's, and it is what counts at the next start |

#![expect(clippy::disallowed_types, reason = "the store's own file, never a session")]

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError};

use crate::files::FileId;
use crate::files::lock::private_dir;
use crate::files::named::take_free_name;

use super::held::opening;
use super::store::JournalError;

/// The file of a database that is open.
#[derive(Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    id: FileId,
    /// Keeps what was deleted readable. It holds no lock.
    reader: File,
}

/// What stands at the store's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    Own,
    Nothing,
    Other,
}

impl StoreFile {
    /// Opens or creates the database at `path`.
    pub(super) fn open(path: &Path) -> Result<(Database, StoreFile), DatabaseError> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let id = FileId::of(&file.metadata()?);
        let reader = File::open(path)?;
        if FileId::of(&reader.metadata()?) != id {
            return Err(DatabaseError::DatabaseAlreadyOpen);
        }
        let db = opening().create_with_backend(FileBackend::new(file)?)?;
        Ok((db, StoreFile { path: path.to_path_buf(), id, reader }))
    }

    /// Opens the same database once more.
    pub(super) fn open_again(&mut self) -> Result<Database, JournalError> {
        let (db, file) = StoreFile::open(&self.path).map_err(JournalError::failed)?;
        *self = file;
        Ok(db)
    }

    /// Removes what a process left that was killed while it put a store back.
    pub(super) fn sweep(&self) {
        let all = self.path.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
        let is_left = |path: &PathBuf| {
            let of_ours = path.with_extension("") == self.path;
            of_ours && path.extension().is_some_and(|pid| pid.as_encoded_bytes().iter().all(u8::is_ascii_digit))
        };
        all.map(|entry| entry.path()).filter(is_left).for_each(|path| drop(remove(&path)));
    }

    /// What cannot be looked at is taken to be there.
    pub(super) fn stands(&self) -> Stands {
        match std::fs::metadata(&self.path) {
            Ok(meta) if FileId::of(&meta) != self.id => Stands::Other,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Stands::Nothing,
            _ => Stands::Own,
        }
    }

    pub(super) fn replaced(&self) -> JournalError {
        JournalError::Replaced(self.path.clone())
    }

    /// Puts the file back, whose database is closed, and opens it. It has its name only when it is whole and locked, and
    /// takes nobody's.
    pub(super) fn put_back(&mut self) -> Result<Database, JournalError> {
        if let Some(dir) = self.path.parent() {
            private_dir(dir).map_err(JournalError::failed)?;
        }
        let beside = self.path.with_extension(format!("redb.{}", std::process::id()));
        // Half a store is not left behind.
        let (db, file) = self.put_back_by(&beside).inspect_err(|_| drop(remove(&beside)))?;
        tracing::warn!(
            "{}: deleted while it was in use; put back with all it holds. To begin anew, end pi-graft before deleting it",
            self.path.display()
        );
        *self = file;
        Ok(db)
    }

    fn put_back_by(&mut self, beside: &Path) -> Result<(Database, StoreFile), JournalError> {
        self.copy_to(beside).map_err(JournalError::failed)?;
        let (db, file) = StoreFile::open(beside).map_err(JournalError::failed)?;
        take_free_name(beside, &self.path).map_err(JournalError::failed)?;
        Ok((db, StoreFile { path: self.path.clone(), ..file }))
    }

    fn copy_to(&mut self, beside: &Path) -> io::Result<()> {
        let _ = remove(beside);
        let mut to = File::options().write(true).create_new(true).mode(0o600).open(beside)?;
        self.reader.rewind()?;
        io::copy(&mut self.reader, &mut to)?;
        to.sync_all()
    }
}

#[expect(clippy::disallowed_methods, reason = "a file that this process has made a moment ago")]
fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}
