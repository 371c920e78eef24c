//! The one function that writes to a session file.
//!
//! Check, make room, write once, look where it landed, sync. Check and write cannot be one step beside a Pi that takes no
//! lock (S13.1), so the answer says whether somebody's line stands between the place that was checked and ours. What
//! cannot be completed stays as it is: nothing is ever truncated, Pi may have written meanwhile.
//!
//! A write that was cut short is gone on with one piece at a time: first what is left of the line that was cut, then the
//! lines behind it. So whatever somebody writes at that moment, no line of ours ever stands in the file without the one
//! that it hangs on.

use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::path::Path;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

pub use super::disk::{Disk, RealDisk};
use super::{FileId, FilesError};

/// What a batch was checked against: the file and its length. Both must still hold when it is written (S12.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// The file that was read.
    pub file: FileId,
    /// Its length in bytes when it was read.
    pub len: u64,
    /// What it ended in, where the length alone is not to be trusted.
    #[serde(skip)]
    pub last: Option<LastLine>,
}

/// The last line of a file that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastLine {
    /// Where it begins.
    pub at: u64,
    /// SHA-256 of all that stands from there to the file's end.
    pub sum: [u8; 32],
    /// Whether it has its `\n`.
    pub ended: bool,
}

impl LastLine {
    /// The last line that stands at `at` and is `text`, with its `\n` if it has one.
    #[must_use]
    pub fn new(at: u64, text: &[u8]) -> LastLine {
        LastLine { at, sum: Sha256::digest(text).into(), ended: text.ends_with(b"\n") }
    }
}

impl Place {
    /// A file and its length.
    #[must_use]
    pub fn new(file: FileId, len: u64) -> Place {
        Place { file, len, last: None }
    }

    /// Whether nothing stands in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the file's last line is known to lack its `\n`, so that what is appended begins with one (S2.4).
    #[must_use]
    pub fn lacks_end(&self) -> bool {
        self.last.is_some_and(|last| !last.ended)
    }
}

/// Where an append ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes that somebody else wrote between the checked place and ours: 0, or the graft is *misplaced*.
    pub between: u64,
}

/// Whether the file's modification time is put back after a graft (S13.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtime {
    /// The session is the newest of its directory: the time may move.
    Move,
    /// It is not: the time goes back to what it was, unless somebody wrote meanwhile.
    Keep,
}

/// Appends `bytes` to the session at `path`, if it still is what `place` says: whole lines, each ended by `\n`, and before
/// them a lone `\n` if the file's last line has none.
///
/// # Errors
/// [`FilesError::Changed`], [`FilesError::Busy`], [`FilesError::NoRoom`], [`FilesError::Unwritable`], [`FilesError::Link`]:
/// nothing was written.
/// [`FilesError::Torn`]: a prefix was written and the rest could not be; see [`complete`].
/// [`FilesError::Glued`]: all of it was written, right behind half a line that somebody had begun.
/// [`FilesError::Io`]: as the system says; if the write itself had happened, the bytes are in the file.
pub fn append(disk: &dyn Disk, path: &Path, place: Place, bytes: &[u8], mtime: Mtime) -> Result<Landed, FilesError> {
    let file = open_locked_on(disk, path)?;
    let before = check(disk, &file, path, place, bytes)?;
    // Making room is enough to move the time, so it is put back after a failure too.
    let written = make_room(disk, &file, path, place.len, bytes.len())
        .and_then(|()| write_whole(disk, &file, path, place, bytes));
    if mtime == Mtime::Keep {
        let end = end_of(&written, place.len, bytes.len());
        put_back(disk, &file, before.modified().ok(), end);
    }
    let offset = written?;
    Ok(Landed { offset, between: offset - place.len })
}

/// Where the file ends if nobody but us wrote.
fn end_of(written: &Result<u64, FilesError>, len: u64, bytes: usize) -> u64 {
    match written {
        Ok(_) => len + bytes as u64,
        Err(FilesError::Torn { written, .. }) => len + *written as u64,
        // Also where somebody did write: the length that is found is another one then.
        Err(_) => len,
    }
}

/// Completes a write that was cut short: appends exactly the rest of `bytes` if the file still ends in the prefix that
/// stands at `offset`, else a lone `\n` where somebody's line would be glued to it. True if the whole batch is there now.
///
/// # Errors
/// As [`append`].
pub fn complete(disk: &dyn Disk, path: &Path, offset: u64, bytes: &[u8]) -> Result<bool, FilesError> {
    let file = open_locked_on(disk, path)?;
    let len = disk.stat(&file).map_err(FilesError::io(path))?.len();
    let behind = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
    let there = disk.read(&file, offset, behind).map_err(FilesError::io(path))?;
    let ours = there.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    let cut = &there[ours..];
    if ours < bytes.len() && cut.is_empty() {
        go_on(disk, &file, path, Torn { offset, written: ours, bytes })?;
    } else if ours < bytes.len() {
        let in_a_line = ours > 0 && bytes[ours - 1] != b'\n';
        if in_a_line && !cut.contains(&b'\n') {
            write_once(disk, &file, b"\n").map_err(FilesError::io(path))?;
            disk.sync(&file).map_err(FilesError::io(path))?;
        }
        return Ok(false);
    }
    disk.sync(&file).map_err(FilesError::io(path))?;
    Ok(true)
}

/// Makes sure that what was found in the file after a crash is on the disk, and puts the time back that a graft moved, if
/// the file still ends at `end`. A file that cannot be opened for writing any more is left as it is.
///
/// # Errors
/// [`FilesError::Io`] if the disk fails.
pub fn settle_down(disk: &dyn Disk, path: &Path, end: u64, keep: Option<SystemTime>) -> Result<(), FilesError> {
    let Ok(file) = disk.open(path) else { return Ok(()) };
    disk.sync(&file).map_err(FilesError::io(path))?;
    if disk.stat(&file).is_ok_and(|meta| meta.len() == end) {
        put_back(disk, &file, keep, end);
    }
    Ok(())
}

/// Opens for appending and takes the advisory lock that every pi-graft takes around a write.
pub(super) fn open_locked(path: &Path) -> Result<File, FilesError> {
    open_locked_on(&RealDisk, path)
}

fn open_locked_on(disk: &dyn Disk, path: &Path) -> Result<File, FilesError> {
    let file = disk.open(path).map_err(unwritable(path))?;
    match disk.lock(&file) {
        Ok(()) => Ok(file),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(FilesError::Busy { path: path.to_path_buf() }),
        Err(e) => Err(unwritable(path)(e)),
    }
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> FilesError + '_ {
    let is_link = move || std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    move |source| match is_link() {
        true => FilesError::Link { path: path.to_path_buf() },
        false => FilesError::Unwritable { path: path.to_path_buf(), source },
    }
}

/// The file's metadata, if it is what was checked and `bytes` can follow it.
fn check(disk: &dyn Disk, file: &File, path: &Path, place: Place, bytes: &[u8]) -> Result<Metadata, FilesError> {
    let meta = disk.stat(file).map_err(unwritable(path))?;
    let same = FileId::of(&meta) == place.file && meta.len() == place.len;
    let can_follow =
        || Ok(ends_in(disk, file, place)? && (bytes.starts_with(b"\n") || ends_line(disk, file, place.len)?));
    if same && can_follow().map_err(unwritable(path))? {
        return Ok(meta);
    }
    Err(FilesError::Changed { path: path.to_path_buf() })
}

/// Whether the file's last line is the one that was read.
fn ends_in(disk: &dyn Disk, file: &File, place: Place) -> io::Result<bool> {
    let Some(last) = place.last else { return Ok(true) };
    let text = disk.read(file, last.at, usize::try_from(place.len - last.at).unwrap_or(usize::MAX))?;
    Ok(LastLine::new(last.at, &text) == last)
}

fn ends_line(disk: &dyn Disk, file: &File, len: u64) -> io::Result<bool> {
    Ok(len == 0 || disk.read(file, len - 1, 1)? == b"\n")
}

fn make_room(disk: &dyn Disk, file: &File, path: &Path, offset: u64, bytes: usize) -> Result<(), FilesError> {
    disk.allocate(file, offset, bytes as u64).map_err(|source| match is_full(&source) {
        true => FilesError::NoRoom { path: path.to_path_buf(), bytes },
        false => unwritable(path)(source),
    })
}

fn is_full(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Writes all of `bytes` in one call and looks where they landed; a short write is gone on with while the file still ends
/// in our prefix. Gives the offset of the first byte.
fn write_whole(disk: &dyn Disk, file: &File, path: &Path, place: Place, bytes: &[u8]) -> Result<u64, FilesError> {
    let written = disk.write(file, bytes).map_err(|source| match source.kind() {
        _ if is_full(&source) => FilesError::NoRoom { path: path.to_path_buf(), bytes: bytes.len() },
        // A limit of this process, looked at before anything is written.
        io::ErrorKind::FileTooLarge => unwritable(path)(source),
        // Of any other failure it is not certain what it left behind.
        _ => FilesError::Io { path: path.to_path_buf(), source },
    })?;
    let offset = landed(disk, file, &bytes[..written]).map_err(FilesError::io(path))?;
    go_on(disk, file, path, Torn { offset, written, bytes })?;
    disk.sync(file).map_err(FilesError::io(path))?;
    let glued = offset > place.len && !ends_line(disk, file, offset).map_err(FilesError::io(path))?;
    if glued { Err(FilesError::Glued { path: path.to_path_buf() }) } else { Ok(offset) }
}

/// A write of which the beginning is there.
struct Torn<'a> {
    offset: u64,
    written: usize,
    bytes: &'a [u8],
}

impl Torn<'_> {
    fn end(&self) -> u64 {
        self.offset + self.written as u64
    }

    /// What is left of the line that was cut, or else all that is left.
    fn piece(&self) -> &[u8] {
        let (there, rest) = self.bytes.split_at(self.written);
        let cut = !there.is_empty() && !there.ends_with(b"\n");
        match memchr::memchr(b'\n', rest).filter(|_| cut) {
            Some(end) => &rest[..=end],
            None => rest,
        }
    }
}

/// Appends what is missing, each piece only while the file ends in what is there.
fn go_on(disk: &dyn Disk, file: &File, path: &Path, mut torn: Torn<'_>) -> Result<(), FilesError> {
    while torn.written < torn.bytes.len() {
        match go_on_once(disk, file, &torn) {
            Ok(more) => torn.written += more,
            Err(source) => {
                let Torn { offset, written, bytes } = torn;
                return Err(FilesError::Torn { path: path.to_path_buf(), offset, bytes: bytes.len(), written, source });
            }
        }
    }
    Ok(())
}

fn go_on_once(disk: &dyn Disk, file: &File, torn: &Torn<'_>) -> io::Result<usize> {
    if disk.stat(file)?.len() != torn.end() {
        return Err(io::Error::other("somebody wrote behind it"));
    }
    let (at, more) = write_once(disk, file, torn.piece())?;
    if at != torn.end() {
        return Err(io::Error::other("somebody wrote between it and the rest"));
    }
    Ok(more)
}

/// One write, and where it landed.
fn write_once(disk: &dyn Disk, file: &File, bytes: &[u8]) -> io::Result<(u64, usize)> {
    let written = disk.write(file, bytes)?;
    Ok((landed(disk, file, &bytes[..written])?, written))
}

/// Where what was written last stands: a descriptor opened with `O_APPEND` is left behind it. It is read back, since a
/// file system that is not of this machine may not be at its word.
fn landed(disk: &dyn Disk, mut file: &File, ours: &[u8]) -> io::Result<u64> {
    if ours.is_empty() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let offset = file.stream_position()?.checked_sub(ours.len() as u64);
    let offset = offset.ok_or_else(|| io::Error::other("what was written has no place"))?;
    if disk.read(file, offset, ours.len())? == ours {
        return Ok(offset);
    }
    Err(io::Error::other("what was written is not in the file"))
}

/// Puts the modification time back; if the size shows that somebody wrote meanwhile, it becomes now. A time that cannot be
/// put back costs an order in a listing, and no graft is worth less for it.
fn put_back(disk: &dyn Disk, file: &File, before: Option<SystemTime>, end: u64) {
    let Some(before) = before else { return };
    let _ = disk.set_modified(file, before);
    if disk.stat(file).is_ok_and(|now| now.len() != end) {
        let _ = disk.set_modified(file, SystemTime::now());
    }
}
