//! The one function that writes to a session file.
//!
//! Check, make room, write once, look where it landed, sync. Check and write cannot be one step beside a Pi that takes no
//! lock (S13.1), so the answer says whether somebody's line stands between the place that was checked and ours. What
//! cannot be completed stays as it is: nothing is ever truncated, Pi may have written meanwhile.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};

use super::{FileId, FilesError};

/// What a batch was checked against: the file and its length. Both must still hold when it is written (S12.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// The file that was read.
    pub file: FileId,
    /// Its length in bytes when it was read.
    pub len: u64,
}

/// Where an append ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes that somebody else wrote between the checked place and ours: 0, or the graft is *misplaced*.
    pub between: u64,
}

/// The system calls of an append that can fail half way: a port, so that tests can make each of them fail.
pub trait Disk: Send + Sync {
    /// Makes sure of room for `len` bytes behind `offset` without changing the file's size.
    ///
    /// # Errors
    /// As `fallocate`.
    fn allocate(&self, file: &File, offset: u64, len: u64) -> io::Result<()>;
    /// One `write` call.
    ///
    /// # Errors
    /// As `write`.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;
    /// Data and size to the disk.
    ///
    /// # Errors
    /// As `fdatasync`.
    fn sync(&self, file: &File) -> io::Result<()>;
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn allocate(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        match fallocate(file, FallocateFlags::KEEP_SIZE, offset, len) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// Whether the file's modification time is put back after a graft (S13.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtime {
    /// The session is the newest of its directory: the time may move.
    Move,
    /// It is not: the time goes back to what it was, unless somebody wrote meanwhile.
    Keep,
}

/// Appends `bytes` (whole lines, each ended by `\n`) to the session at `path`, if it still is what `place` says.
///
/// # Errors
/// [`FilesError::Changed`], [`FilesError::Busy`] and [`FilesError::NoRoom`]: nothing was written.
/// [`FilesError::Torn`]: a prefix was written and the rest could not be; see [`complete`].
/// [`FilesError::Io`]: as the system says; if the write itself had happened, the bytes are in the file.
pub fn append(disk: &dyn Disk, path: &Path, place: Place, bytes: &[u8], mtime: Mtime) -> Result<Landed, FilesError> {
    let file = open_locked(path)?;
    let before = file.metadata().map_err(FilesError::io(path))?;
    if FileId::of(&before) != place.file || before.len() != place.len {
        return Err(FilesError::Changed { path: path.to_path_buf() });
    }
    if !ends_line(&file, place.len).map_err(FilesError::io(path))? && bytes.first() != Some(&b'\n') {
        return Err(FilesError::Changed { path: path.to_path_buf() });
    }
    make_room(disk, &file, path, place.len, bytes.len())?;
    let offset = write_whole(disk, &file, path, place.len, bytes)?;
    disk.sync(&file).map_err(FilesError::io(path))?;
    if mtime == Mtime::Keep {
        put_back(&file, before.modified().ok(), offset + bytes.len() as u64);
    }
    Ok(Landed { offset, between: offset - place.len })
}

/// Completes a write that was cut short: appends exactly the rest of `bytes` if the file still ends in the prefix that
/// stands at `offset`, else a lone `\n` so that Pi's next line is not swallowed. True if the whole batch is there now.
///
/// # Errors
/// As [`append`].
pub fn complete(disk: &dyn Disk, path: &Path, offset: u64, bytes: &[u8]) -> Result<bool, FilesError> {
    let file = open_locked(path)?;
    let len = file.metadata().map_err(FilesError::io(path))?.len();
    let there = len.saturating_sub(offset) as usize;
    let mut tail = vec![0; there.min(bytes.len())];
    file.read_exact_at(&mut tail, offset).map_err(FilesError::io(path))?;
    let ours = tail.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    if ours == bytes.len() {
        return Ok(true);
    }
    let rest = if ours == there { &bytes[ours..] } else { b"\n".as_slice() };
    if rest == b"\n" && ends_line(&file, len).map_err(FilesError::io(path))? {
        return Ok(false);
    }
    write_whole(disk, &file, path, len, rest)?;
    disk.sync(&file).map_err(FilesError::io(path))?;
    Ok(ours == there)
}

/// Opens for appending and takes the advisory lock that every pi-graft takes around a write.
pub(super) fn open_locked(path: &Path) -> Result<File, FilesError> {
    let file = File::options()
        .read(true)
        .append(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .map_err(FilesError::io(path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(FilesError::Busy { path: path.to_path_buf() }),
        // A file system without locks: the lock of the root still keeps two daemons of one machine apart.
        Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOSYS | rustix::io::Errno::NOLCK) => Ok(file),
        Err(e) => Err(FilesError::Io { path: path.to_path_buf(), source: e.into() }),
    }
}

fn ends_line(file: &File, len: u64) -> io::Result<bool> {
    let mut last = [b'\n'];
    if len > 0 {
        file.read_exact_at(&mut last, len - 1)?;
    }
    Ok(last == [b'\n'])
}

fn make_room(disk: &dyn Disk, file: &File, path: &Path, offset: u64, bytes: usize) -> Result<(), FilesError> {
    disk.allocate(file, offset, bytes as u64).map_err(|source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            FilesError::NoRoom { path: path.to_path_buf(), bytes }
        }
        _ => FilesError::Io { path: path.to_path_buf(), source },
    })
}

/// Writes all of `bytes` in one call; a short write is followed by the rest while the file still ends in our prefix.
/// Gives the offset where they landed, at or behind `expected`.
fn write_whole(disk: &dyn Disk, file: &File, path: &Path, expected: u64, bytes: &[u8]) -> Result<u64, FilesError> {
    let mut written = disk.write(file, bytes).map_err(FilesError::io(path))?;
    let offset = find_ours(file, expected, &bytes[..written]).map_err(FilesError::io(path))?;
    while written < bytes.len() {
        let torn = |source| FilesError::Torn { path: path.to_path_buf(), offset, bytes: bytes.len(), written, source };
        let len = file.metadata().map_err(FilesError::io(path))?.len();
        if len != offset + written as u64 {
            return Err(torn(io::Error::other("somebody wrote behind it")));
        }
        match disk.write(file, &bytes[written..]) {
            Ok(0) => return Err(torn(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(e) => return Err(torn(e)),
        }
    }
    Ok(offset)
}

/// Where our bytes stand, looking from `from` on. They are there: the write that put them has returned.
fn find_ours(file: &File, from: u64, ours: &[u8]) -> io::Result<u64> {
    let mut reader: &File = file;
    reader.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    reader.read_to_end(&mut tail)?;
    let at = memchr::memmem::find(&tail, ours);
    at.map(|at| from + at as u64).ok_or_else(|| io::Error::other("what was written is not in the file"))
}

/// Puts the modification time back; if the size shows that somebody wrote meanwhile, it becomes now.
fn put_back(file: &File, before: Option<SystemTime>, end: u64) {
    let Some(before) = before else { return };
    let _ = file.set_modified(before);
    if file.metadata().is_ok_and(|now| now.len() != end) {
        let _ = file.set_modified(SystemTime::now());
    }
}
