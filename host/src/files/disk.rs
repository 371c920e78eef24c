//! The system calls of an append, as a port: each of them can fail half way, and tests make each of them fail.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock};
use rustix::io::Errno;

/// The system calls that touch a session file while it is appended to. What is not said otherwise is the real one.
pub trait Disk: Send + Sync {
    /// Opens for reading and appending; never through a link.
    ///
    /// # Errors
    /// As `open`.
    fn open(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
    }

    /// Takes the advisory lock that every pi-graft takes around a write, without waiting for it. Where the file system has
    /// no locks, the lock of the root still keeps two daemons of one machine apart.
    ///
    /// # Errors
    /// As `flock`; [`io::ErrorKind::WouldBlock`] if somebody has it.
    fn lock(&self, file: &File) -> io::Result<()> {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Size, times and identity.
    ///
    /// # Errors
    /// As `fstat`.
    fn stat(&self, file: &File) -> io::Result<Metadata> {
        file.metadata()
    }

    /// `len` bytes at `offset`, all of them.
    ///
    /// # Errors
    /// As `pread`; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    fn read(&self, file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Makes sure of room for `len` bytes behind `offset` without changing the file's size.
    ///
    /// # Errors
    /// As `fallocate`; a file system that cannot say is taken at its word when the write is made.
    fn allocate(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        match fallocate(file, FallocateFlags::KEEP_SIZE, offset, len) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// One `write` call.
    ///
    /// # Errors
    /// As `write`.
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    /// Data and size to the disk.
    ///
    /// # Errors
    /// As `fdatasync`.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// Sets the modification time.
    ///
    /// # Errors
    /// As `futimens`.
    fn set_modified(&self, file: &File, time: SystemTime) -> io::Result<()> {
        file.set_modified(time)
    }
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {}
