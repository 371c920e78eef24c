//! Paths as Pi writes them down: absolute, without links, `.` and `..`. What is compared with Pi's, or written where Pi reads
//! it, is one of these.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The path as a Pi there would call it. What is not there is followed by its name alone.
///
/// # Errors
/// If there is no current directory, or no path.
pub(super) fn real(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(_) => Ok(plain(&std::path::absolute(path)?)),
    }
}

/// The same to compare with: what has no such path stays as it is.
pub(super) fn real_or_same(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Without `.` and `..`, by name.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_followed_by_name() {
        let real = |path: &str| real(Path::new(path)).expect("a path");
        assert_eq!(real("/nowhere/at/../all/./"), PathBuf::from("/nowhere/all"));
        assert_eq!(real("/nowhere/../../.."), PathBuf::from("/"));
    }

    #[test]
    fn links_are_followed_before_what_is_above_them() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let top = dir.path().canonicalize().expect("there");
        std::fs::create_dir_all(top.join("a/b")).expect("made");
        std::os::unix::fs::symlink("a/b", top.join("link")).expect("linked");
        assert_eq!(real(&top.join("link/..")).expect("there"), top.join("a"));
    }
}
