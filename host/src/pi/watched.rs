//! One small file of somebody else's, read again only when it changed.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pi_session::settings::trust::Trust;
use pi_session::settings::{Models, Settings, Store};

/// Bytes of a file that is read; a bigger one is none of Pi's.
const MOST_BYTES: u64 = 16 << 20;
/// How old the lock beside a file may be. Pi renews the one it holds, so an older one was left behind.
const LOCK_IS_OLD: Duration = Duration::from_secs(10);

/// What is made of the text of a file; the default where there is none.
pub(super) trait Parsed: Default {
    /// From its text.
    fn parse(name: &str, text: &[u8]) -> Self;
    /// Where it cannot be read.
    fn unreadable(name: &str, why: &str) -> Self;
}

impl Parsed for Settings {
    fn parse(name: &str, text: &[u8]) -> Self {
        Settings::parse(name, text)
    }
    fn unreadable(name: &str, why: &str) -> Self {
        Settings::unreadable(name, why)
    }
}

impl Parsed for Trust {
    fn parse(name: &str, text: &[u8]) -> Self {
        Trust::parse(name, text)
    }
    fn unreadable(name: &str, why: &str) -> Self {
        Trust::unreadable(name, why)
    }
}

impl Parsed for Models {
    fn parse(name: &str, text: &[u8]) -> Self {
        Models::parse(name, text)
    }
    fn unreadable(name: &str, why: &str) -> Self {
        Models::unreadable(name, why)
    }
}

impl Parsed for Store {
    fn parse(name: &str, text: &[u8]) -> Self {
        Store::parse(name, text)
    }
    fn unreadable(name: &str, why: &str) -> Self {
        Store::unreadable(name, why)
    }
}

/// Which text a file has: it, its size and its times.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Stamp {
        Stamp {
            file: (meta.dev(), meta.ino()),
            len: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// A file and what was made of it.
#[derive(Default)]
pub(super) struct Watched<T> {
    /// None where there is no file.
    stamp: Option<Stamp>,
    value: Arc<T>,
    is_there: bool,
}

impl<T: Parsed> Watched<T> {
    /// What the file says now: the very same value if it did not change.
    pub(super) fn look(&mut self, path: Option<&Path>) -> Arc<T> {
        let meta = path.map(std::fs::metadata).transpose();
        let stamp = meta.as_ref().ok().and_then(Option::as_ref).map(Stamp::of);
        // Pi writes in place, behind a lock: what stands there meanwhile is half of it, or nothing.
        let being_written = || self.is_there && path.is_some_and(is_locked);
        let errs = matches!(&meta, Err(e) if !is_absent(e));
        if (stamp != self.stamp || errs) && !being_written() {
            self.is_there = stamp.is_some() || errs;
            self.stamp = stamp;
            let value = path.filter(|_| self.is_there).map(read).unwrap_or_default();
            self.value = Arc::new(value);
        }
        Arc::clone(&self.value)
    }

    /// Whether there is such a file.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The file is read after it was looked at, so a change in between is seen at the next look.
fn read<T: Parsed>(path: &Path) -> T {
    let name = path.to_string_lossy();
    match text(path) {
        Ok(text) => T::parse(&name, &text),
        Err(why) if is_absent(&why) => T::default(),
        Err(why) => T::unreadable(&name, &why.to_string()),
    }
}

fn text(path: &Path) -> std::io::Result<Vec<u8>> {
    let meta = std::fs::metadata(path)?;
    // A pipe would be waited for, a device has no end.
    if !meta.is_file() {
        return Err(std::io::Error::other("not a plain file"));
    }
    if meta.len() > MOST_BYTES {
        return Err(std::io::Error::other(format!("{} bytes, more than {MOST_BYTES}", meta.len())));
    }
    std::fs::read(path)
}

fn is_locked(path: &Path) -> bool {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let modified = std::fs::metadata(lock).and_then(|meta| meta.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < LOCK_IS_OLD))
}
