//! Whole session files, for the user's own commands only (never the daemon): a new one, a migrated one in place of an old
//! one, one that goes. What was there before stays reachable, as a backup or in the trash, unless the user says otherwise.

#![expect(
    clippy::disallowed_methods,
    reason = "`session migrate` renames over, and `session rm` deletes, as asked for"
)]

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pi_session::tree::Source;

use super::append::{Place, open_locked};
use super::tail::Reading;
use super::{FileId, FilesError, shown};

/// Bytes that are in memory at a time while a file is copied.
const PIECE: usize = 1 << 20;

/// Writes a file that is not there yet, and sees it to the disk. Half a file is not left behind.
///
/// # Errors
/// What `write` says; [`FilesError::Exists`] if something has that name; [`FilesError::Io`].
pub fn create<E: From<FilesError>>(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> Result<(), E> {
    create_as(path, None, write)
}

/// The same with the rights and the time of the file that it is to replace.
fn create_as<E: From<FilesError>>(
    path: &Path,
    like: Option<&Metadata>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let made = File::options().write(true).create_new(true).open(path);
    let file = made.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => FilesError::Exists { path: path.to_path_buf() },
        _ => FilesError::io(path)(source),
    })?;
    let mut to = BufWriter::with_capacity(PIECE, New { file: &file, path });
    let written = write(&mut to).and_then(|()| {
        let flushed = to.flush().and_then(|()| finish(&file, like)).and_then(|()| sync_dir(path));
        Ok(flushed.map_err(FilesError::io(path))?)
    });
    // What is still to be written of half a file is not worth writing.
    let _ = to.into_parts();
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

fn finish(file: &File, like: Option<&Metadata>) -> io::Result<()> {
    if let Some(like) = like {
        file.set_permissions(like.permissions())?;
        like.modified().map_or(Ok(()), |time| file.set_modified(time))?;
    }
    file.sync_all()
}

/// A new file, whose errors say which it is.
struct New<'f> {
    file: &'f File,
    path: &'f Path,
}

impl Write for New<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", shown(self.path)));
        self.file.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies a span of a session, a piece at a time.
///
/// # Errors
/// What reading or writing says.
pub fn copy(from: &Reading, offset: u64, len: u64, to: &mut dyn Write) -> io::Result<()> {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let piece = (end - at).min(PIECE as u64) as usize;
        let bytes = from.read(at, piece).map_err(io::Error::other)?;
        to.write_all(&bytes)?;
        at += piece as u64;
    }
    Ok(())
}

/// Puts what `write` writes in the place of the session at `path`, if that still is what `place` says: written beside it,
/// flushed and renamed over it. The old file keeps a name of its own, which is given back (S11.2). Times and rights stay.
///
/// # Errors
/// [`FilesError::Changed`] and [`FilesError::Busy`]: the session was not touched. What `write` says, and
/// [`FilesError::Io`], likewise.
pub fn replace<E: From<FilesError>>(
    path: &Path,
    place: Place,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let old = open_locked(path)?;
    let meta = unchanged(&old, path, place)?;
    let beside = with_suffix(path, &format!(".new-{}", std::process::id()));
    create_as(&beside, Some(&meta), write)?;
    let replaced = back_up(path).and_then(|backup| {
        unchanged(&old, path, place)?;
        std::fs::rename(&beside, path).and_then(|()| sync_dir(path)).map_err(FilesError::io(path))?;
        Ok(backup)
    });
    if replaced.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    Ok(replaced?)
}

/// Gives the old file a second name, one that no session has.
fn back_up(path: &Path) -> Result<PathBuf, FilesError> {
    for number in 1..1000 {
        let suffix = if number == 1 { ".bak".to_owned() } else { format!(".bak{number}") };
        let backup = with_suffix(path, &suffix);
        match std::fs::hard_link(path, &backup) {
            Ok(()) => return Ok(backup),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(FilesError::Io { path: backup, source }),
        }
    }
    Err(FilesError::Io { path: path.to_path_buf(), source: io::Error::other("there are 999 backups of it already") })
}

/// Deletes the session at `path`, if it still is what `place` says.
///
/// # Errors
/// [`FilesError::Changed`], [`FilesError::Busy`], [`FilesError::Io`].
pub fn delete(path: &Path, place: Place) -> Result<(), FilesError> {
    let file = open_locked(path)?;
    unchanged(&file, path, place)?;
    std::fs::remove_file(path).and_then(|()| sync_dir(path)).map_err(FilesError::io(path))
}

/// The file's metadata, if it still is what was read and is what the path names.
pub(super) fn unchanged(file: &File, path: &Path, place: Place) -> Result<Metadata, FilesError> {
    let meta = file.metadata().map_err(FilesError::io(path))?;
    let named = std::fs::symlink_metadata(path).map_err(FilesError::io(path))?;
    let same = FileId::of(&meta) == place.file && FileId::of(&named) == place.file && meta.len() == place.len;
    if same { Ok(meta) } else { Err(FilesError::Changed { path: path.to_path_buf() }) }
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A new name is on the disk once its directory is.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}
