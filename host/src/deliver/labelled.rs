//! The disk with a labelled step between the check of a write and the write itself: the gap into which another may write.

#![expect(clippy::disallowed_types, reason = "it is handed what `files` has opened")]

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use crate::files::append::Disk;

/// A disk that says when the place was checked and nothing is written yet.
pub struct Labelled<'a>(pub &'a dyn Disk);

impl Disk for Labelled<'_> {
    fn open(&self, path: &Path) -> io::Result<File> {
        self.0.open(path)
    }

    fn lock(&self, file: &File) -> io::Result<()> {
        self.0.lock(file)
    }

    fn stat(&self, file: &File) -> io::Result<Metadata> {
        self.0.stat(file)
    }

    fn read(&self, file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.read(file, offset, len)
    }

    fn set_modified(&self, file: &File, time: SystemTime) -> io::Result<()> {
        self.0.set_modified(file, time)
    }

    fn allocate(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        let allocated = self.0.allocate(file, offset, len);
        crate::steps::reached("checked");
        allocated
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(file, bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.0.sync(file)
    }
}
