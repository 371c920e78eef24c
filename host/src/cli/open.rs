//! A session that a command looks at: its tree, and the file behind it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi_session::entry::Entry;
use pi_session::json::Json;
use pi_session::tree::{Source, Status};
use pi_session::{Branch, Tree};

use crate::files::append::Place;
use crate::files::tail::Reading;
use crate::files::{FileId, FilesError, shown};

use super::cores::{cores, on_all_cores};
use super::failure::Failure;
use super::progress::Progress;

/// Entries whose lines are looked at together; what is made of them is in memory until it is printed.
pub const AT_ONCE: usize = 1024;

/// A session that was read to its end.
pub struct Opened {
    /// Where it is.
    pub path: PathBuf,
    /// Its tree, as Pi would have it after loading the file.
    pub tree: Arc<Tree>,
    /// The file, to read texts from.
    pub reading: Arc<Reading>,
    /// Which file it is, and how long.
    pub place: Place,
    /// It ends with a line end, or is empty.
    pub ends_line: bool,
}

impl Opened {
    /// Reads a session, on all cores. The text is gone through once and not kept.
    ///
    /// # Errors
    /// [`Failure::Problem`] if the file cannot be read.
    pub fn at(path: &Path) -> Result<Opened, Failure> {
        let len = path.metadata().map_or(0, |meta| meta.len());
        Opened::of_many(path, &Progress::of("reading", len), cores())
    }

    /// The same as a part of work on several, on so many threads.
    ///
    /// # Errors
    /// As [`Opened::at`].
    pub fn of_many(path: &Path, progress: &Progress, threads: usize) -> Result<Opened, Failure> {
        let io = |source| FilesError::Io { path: path.to_path_buf(), source };
        let reading = Reading::open(path)?;
        let meta = reading.metadata().map_err(io)?;
        let len = meta.len();
        let read = Tree::from_source(&reading, len, threads, &|bytes| progress.add(bytes));
        let tree = read.map_err(|error| io(io::Error::other(error)))?;
        let last = reading.read(len.saturating_sub(1), len.min(1) as usize).map_err(Failure::problem)?;
        let ends_line = last.iter().all(|byte| *byte == b'\n');
        let place = Place::new(FileId::of(&meta), len);
        Ok(Opened { path: path.to_path_buf(), tree: Arc::new(tree), reading: Arc::new(reading), place, ends_line })
    }

    /// The same, if it is a session; one that has not begun is an empty one (S2.3).
    ///
    /// # Errors
    /// [`Failure::Problem`] if it cannot be read or is none.
    pub fn session(path: &Path) -> Result<Opened, Failure> {
        Opened::at(path)?.if_session()
    }

    /// The same, if it is a session.
    ///
    /// # Errors
    /// [`Failure::Problem`] if it is none.
    pub fn if_session(self) -> Result<Opened, Failure> {
        let begins = match self.tree.status() {
            Status::Session => true,
            // A file of nothing that means anything is not opened by Pi either.
            Status::NotBegun => self.place.is_empty(),
            Status::NotASession => false,
        };
        if !begins {
            let path = shown(&self.path);
            return Err(Failure::Problem(format!("{path}: S2.3: no Pi session: it does not begin with a header")));
        }
        Ok(self)
    }

    /// The branch of the file's own leaf (S8.2), or of the entry that was named.
    ///
    /// # Errors
    /// [`Failure::Usage`] if there is no such entry, [`Failure::Problem`] if its parents lead in a circle (S8.5).
    pub fn branch(&self, leaf: Option<&str>) -> Result<Branch, Failure> {
        let source = Arc::clone(&self.reading) as Arc<dyn Source>;
        let Some(id) = leaf else { return Ok(Branch::of_leaf(&self.tree, source)?) };
        let missing = || Failure::usage(format!("{}: there is no entry {id}", shown(&self.path)));
        let leaf = self.tree.by_id(id).ok_or_else(missing)?;
        Ok(Branch::at(&self.tree, source, Some(leaf))?)
    }

    /// Reads the line of an entry and gives it to `look`.
    ///
    /// # Errors
    /// [`Failure::Problem`] if it cannot be read back.
    pub fn read<T>(&self, entry: &Entry, look: impl FnOnce(Json<'_>) -> T) -> Result<T, Failure> {
        let line = self.reading.read(entry.offset, entry.len as usize).map_err(Failure::problem)?;
        Ok(look(Json::parse(&line).map_err(Failure::problem)?))
    }

    /// What `look` makes of the line of each of these entries, in their order; all cores read.
    ///
    /// # Errors
    /// [`Failure::Problem`] if one cannot be read back.
    pub fn read_all<T: Send>(&self, entries: &[Entry], look: impl Fn(Json<'_>) -> T + Sync) -> Result<Vec<T>, Failure> {
        on_all_cores(entries, |entry| self.read(entry, &look)).into_iter().collect()
    }
}
