//! Whole session files, for the user's own commands only (never the daemon): a new one, a migrated one in place of an old
//! one, one that goes. What was there before stays reachable, as a backup or in the trash, unless the user says otherwise.

#![expect(
    clippy::disallowed_methods,
    reason = "`session migrate` renames over, and `session rm` deletes, as asked for"
)]

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::append::{Place, open_locked};
use super::{FileId, FilesError};

/// Writes a file that is not there yet, and sees it to the disk. Half a file is not left behind.
///
/// # Errors
/// [`FilesError::Io`]; with [`io::ErrorKind::AlreadyExists`] if something has that name.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), FilesError> {
    create_as(path, bytes, None, None).map_err(FilesError::io(path))
}

fn create_as(path: &Path, bytes: &[u8], mode: Option<Permissions>, modified: Option<SystemTime>) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    let write = |file: &mut File| {
        mode.map_or(Ok(()), |mode| file.set_permissions(mode))?;
        file.write_all(bytes)?;
        modified.map_or(Ok(()), |time| file.set_modified(time))?;
        file.sync_all()
    };
    let written = write(&mut file).and_then(|()| sync_dir(path));
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Puts `bytes` in the place of the session at `path`, if it still is what `place` says: written beside it, flushed and
/// renamed over it. The old file keeps a name of its own, which is given back (S11.2). Times and rights stay.
///
/// # Errors
/// [`FilesError::Changed`] and [`FilesError::Busy`]: the session was not touched. [`FilesError::Io`] likewise.
pub fn replace(path: &Path, place: Place, bytes: &[u8]) -> Result<PathBuf, FilesError> {
    let old = open_locked(path)?;
    let meta = unchanged(&old, path, place)?;
    let beside = with_suffix(path, &format!(".new-{}", std::process::id()));
    create_as(&beside, bytes, Some(meta.permissions()), meta.modified().ok()).map_err(FilesError::io(&beside))?;
    let replaced = back_up(path).and_then(|backup| {
        unchanged(&old, path, place)?;
        std::fs::rename(&beside, path).and_then(|()| sync_dir(path)).map_err(FilesError::io(path))?;
        Ok(backup)
    });
    if replaced.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    replaced
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

/// Moves the session at `path` to the desktop's trash at `trash`, as freedesktop.org describes it: first the note of where
/// it came from, `deleted` being the local time, then the file. Gives its place there.
///
/// # Errors
/// [`FilesError::Changed`], [`FilesError::Busy`]; [`FilesError::Io`], also if the trash is on another file system.
pub fn trash(path: &Path, place: Place, trash: &Path, deleted: &str) -> Result<PathBuf, FilesError> {
    let file = open_locked(path)?;
    unchanged(&file, path, place)?;
    let (files, notes) = (trash.join("files"), trash.join("info"));
    for dir in [&files, &notes] {
        std::fs::create_dir_all(dir).map_err(FilesError::io(dir))?;
    }
    let from = std::path::absolute(path).map_err(FilesError::io(path))?;
    let note = format!("[Trash Info]\nPath={}\nDeletionDate={deleted}\n", percent_encoded(&from));
    let (name, note) = take_name(path, &notes, &files, note.as_bytes())?;
    let to = files.join(name);
    if let Err(source) = std::fs::rename(path, &to).and_then(|()| sync_dir(path)) {
        let _ = std::fs::remove_file(note);
        return Err(FilesError::Io { path: to, source });
    }
    Ok(to)
}

/// A name that is free in the trash, taken by making its note.
fn take_name(path: &Path, notes: &Path, files: &Path, note: &[u8]) -> Result<(OsString, PathBuf), FilesError> {
    let own = path.file_name().unwrap_or_default();
    for number in 1..1000 {
        let mut name = own.to_owned();
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let info = with_suffix(&notes.join(&name), ".trashinfo");
        if std::fs::symlink_metadata(files.join(&name)).is_ok() {
            continue;
        }
        match create(&info, note) {
            Err(FilesError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| (name, info)),
        }
    }
    Err(FilesError::Io { path: notes.to_path_buf(), source: io::Error::other("its name is taken 999 times") })
}

/// A path as in a URL.
fn percent_encoded(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The file's metadata, if it still is what was read and is what the path names.
fn unchanged(file: &File, path: &Path, place: Place) -> Result<std::fs::Metadata, FilesError> {
    let meta = file.metadata().map_err(FilesError::io(path))?;
    let named = std::fs::symlink_metadata(path).map_err(FilesError::io(path))?;
    let same = FileId::of(&meta) == place.file && FileId::of(&named) == place.file && meta.len() == place.len;
    if same { Ok(meta) } else { Err(FilesError::Changed { path: path.to_path_buf() }) }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A new name is on the disk once its directory is.
fn sync_dir(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}
