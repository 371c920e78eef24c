//! Small files that other programs read, no sessions: an extension of Pi's, a unit of the system's service manager, a plugin.
//!
//! Each is written beside and renamed over, so that who reads at this moment sees the old one or the new one, and so does
//! everybody if the process dies on the way.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "no session: files of ours, replaced whole")]

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::FilesError;
use crate::files::named::take_free_name;

/// What stands in the name of a file that is not whole yet, before the digits.
const FRESH: &str = ".new-";

/// Writes a file, in place of the one that is there; its directory is made if it is not there.
///
/// # Errors
/// What the system says. The one that was there is as it was.
pub fn put(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(dir_of(path))?;
    let fresh = beside(path)?;
    let done = write_new(&fresh, bytes.as_ref()).and_then(|()| fs::rename(&fresh, path));
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    done
}

/// Writes a file that is not there yet; its directory is made if it is not there.
///
/// # Errors
/// What the system says: [`io::ErrorKind::AlreadyExists`] if something has that name, which stays as it is.
pub fn put_new(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(dir_of(path))?;
    let fresh = beside(path)?;
    let done = write_new(&fresh, bytes.as_ref()).and_then(|()| {
        take_free_name(&fresh, path).map_err(|e| match e {
            FilesError::Exists { .. } => io::ErrorKind::AlreadyExists.into(),
            FilesError::Io { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })
    });
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    done
}

/// Removes a file.
///
/// # Errors
/// What the system says.
pub fn take_away(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// Removes what killed processes have left of [`put`] in a directory. Nobody may be at work in it.
pub fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(FRESH) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name beside it that nobody else has.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let number = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{FRESH}{number:016x}"));
    Ok(path.with_file_name(name))
}

/// A file that did not exist before, on disk when this returns.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_reads_meanwhile_sees_a_whole_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("plugin.wasm");
        let text = |n: u8| vec![n; 1 << 16];
        put(&path, text(0)).expect("written");
        std::thread::scope(|scope| {
            for writer in 1..=2 {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| put(path, text(writer)).expect("written")));
            }
            for _ in 0..500 {
                let seen = fs::read(&path).expect("it is always there");
                assert!((0..=2).any(|n| seen == text(n)), "{} bytes", seen.len());
            }
        });
        assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 1, "nothing is left over");
    }

    #[test]
    fn what_is_new_takes_no_name_that_something_has() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, link) = (dir.path().join("sub/config.toml"), dir.path().join("sub/link"));
        put_new(&path, "first").expect("written");
        std::os::unix::fs::symlink("nowhere", &link).expect("a link");
        for taken in [&path, &link] {
            assert_eq!(put_new(taken, "second").expect_err("taken").kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "first");
        assert_eq!(fs::read_dir(dir.path().join("sub")).expect("the folder").count(), 2, "nothing is left over");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("taken");
        fs::create_dir_all(path.join("by a folder")).expect("made");
        put(&path, "new").expect_err("a folder has the name");
        assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 1, "nothing is left over");
        sweep(dir.path());
        assert!(path.is_dir());
    }
}
