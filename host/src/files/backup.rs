//! What a session was before it is replaced keeps a name of its own: a second one of the very same file, or where the file
//! system has no hard links a copy, which has its name only once it is whole and on the disk.

#![expect(
    clippy::disallowed_methods,
    reason = "a backup that is not needed goes again; the session has a name of its own"
)]

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::FilesError;
use super::append::Place;
use super::named::take_free_name;
use super::whole::{PIECE, beside, create_as, in_place_of, with_suffix};

/// What the name of a copy ends in that is still being written.
const COPY: &str = ".pi-graft-old";

/// How a file gets a second name.
pub(super) type Link<'l> = &'l dyn Fn(&Path, &Path) -> io::Result<()>;

/// The old file, under another name.
pub(super) struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// It is another file of the same bytes, rights and time.
    is_copy: bool,
}

impl Backup {
    /// Keeps what stands in `old`, the session at `path`, up to the length that was checked, under a name that no session
    /// has.
    ///
    /// # Errors
    /// [`FilesError::Io`], [`FilesError::Exists`] if there are 999 backups of it already: nothing was made.
    pub fn of(old: &File, path: &Path, place: Place, link: Link<'_>) -> Result<Backup, FilesError> {
        let linked = with_free_name(path, |name| {
            link(path, name).map_err(|source| match source.kind() {
                io::ErrorKind::AlreadyExists => FilesError::Exists { path: name.to_path_buf() },
                _ => FilesError::io(name)(source),
            })
        });
        match linked {
            // Whatever keeps it from a second name, a copy fails for a reason of its own.
            Err(FilesError::Io { .. }) => Backup::copied(old, path, place.len),
            linked => Ok(Backup { path: linked?, is_copy: false }),
        }
    }

    fn copied(old: &File, path: &Path, len: u64) -> Result<Backup, FilesError> {
        let meta = old.metadata().map_err(FilesError::io(path))?;
        let copy = beside(path, COPY)?;
        create_as(&copy, |file| in_place_of(file, &meta), |to| copy_to(old, 0, len, to).map_err(FilesError::io(path)))?;
        let named = with_free_name(path, |name| take_free_name(&copy, name));
        if named.is_err() {
            let _ = std::fs::remove_file(&copy);
        }
        Ok(Backup { path: named?, is_copy: true })
    }

    /// Takes in what somebody wrote to the old file behind the length that was checked; of a file that has two names
    /// nothing is to be done.
    ///
    /// # Errors
    /// [`FilesError::Io`]: what came is lost with the old file.
    pub fn catch_up(&self, old: &File, len: u64) -> Result<(), FilesError> {
        if !self.is_copy {
            return Ok(());
        }
        let caught_up = File::options().append(true).open(&self.path).and_then(|mut copy| {
            copy_to(old, len, old.metadata()?.len(), &mut copy)?;
            copy.sync_all()
        });
        caught_up.map_err(FilesError::io(&self.path))
    }

    /// Takes its name away, if the old file still has its own.
    pub fn forget(self, old: &File) {
        let names = if self.is_copy { 0 } else { 1 };
        if old.metadata().is_ok_and(|meta| meta.nlink() > names) {
            let _ = std::fs::remove_file(self.path);
        }
    }
}

/// Gives the first name of a backup that is free.
fn with_free_name(path: &Path, give: impl Fn(&Path) -> Result<(), FilesError>) -> Result<PathBuf, FilesError> {
    for number in 1..1000 {
        let suffix = if number == 1 { ".bak".to_owned() } else { format!(".bak{number}") };
        let name = with_suffix(path, &suffix);
        match give(&name) {
            Err(FilesError::Exists { .. }) => {}
            given => return given.map(|()| name),
        }
    }
    Err(FilesError::Exists { path: with_suffix(path, ".bak999") })
}

/// Copies a span of the old file, a piece at a time.
fn copy_to(old: &File, from: u64, end: u64, to: &mut dyn Write) -> io::Result<()> {
    let (mut at, mut room) = (from, vec![0; PIECE]);
    while at < end {
        let piece = &mut room[..(end - at).min(PIECE as u64) as usize];
        old.read_exact_at(piece, at)?;
        to.write_all(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}
