//! Where sessions are: every `*.jsonl` below the roots (S1, S13.5). Links are not followed, so nothing outside the roots
//! is ever reached.

use std::fs::{DirEntry, Metadata};
use std::path::{Path, PathBuf};

/// A file that may be a session, as the walk saw it.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its path, below one of the roots.
    pub path: PathBuf,
    /// Its metadata when it was seen.
    pub meta: Metadata,
}

/// What a walk meets on its way.
pub trait Guide {
    /// Comes to a directory, before what is in it is read.
    fn enter(&mut self, dir: &Path, meta: &Metadata);
    /// Passes over what cannot be read.
    fn trouble(&mut self, path: &Path, error: std::io::Error);
}

/// A guide that only hears of trouble.
struct Hearing<'a>(&'a mut dyn FnMut(&Path, std::io::Error));

impl Guide for Hearing<'_> {
    fn enter(&mut self, _dir: &Path, _meta: &Metadata) {}

    fn trouble(&mut self, path: &Path, error: std::io::Error) {
        (self.0)(path, error);
    }
}

/// Every regular `*.jsonl` file below `root`, in the order of names. What cannot be read is passed over and told to
/// `trouble`.
pub fn walk(root: &Path, trouble: &mut dyn FnMut(&Path, std::io::Error)) -> Vec<Found> {
    match std::fs::metadata(root) {
        Ok(meta) => walk_with(vec![(root.to_path_buf(), meta)], &mut Hearing(trouble)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => {
            trouble(root, e);
            Vec::new()
        }
    }
}

/// The same below each of some directories, with a guide. A directory is entered before it is read, so that what comes to it
/// from then on can be noticed.
pub fn walk_with(mut open: Vec<(PathBuf, Metadata)>, guide: &mut dyn Guide) -> Vec<Found> {
    let mut found = Vec::new();
    while let Some((dir, meta)) = open.pop() {
        guide.enter(&dir, &meta);
        look_into(&dir, &mut open, &mut found, &mut |path, e| guide.trouble(path, e));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Every regular `*.jsonl` file in `dir` itself, as [`walk`] gives them.
pub fn list(dir: &Path, trouble: &mut dyn FnMut(&Path, std::io::Error)) -> Vec<Found> {
    let (mut below, mut found) = (Vec::new(), Vec::new());
    look_into(dir, &mut below, &mut found, trouble);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Sorts what is in `dir` into directories and sessions.
fn look_into(
    dir: &Path,
    below: &mut Vec<(PathBuf, Metadata)>,
    found: &mut Vec<Found>,
    trouble: &mut dyn FnMut(&Path, std::io::Error),
) {
    match read_dir(dir) {
        Ok(names) => names.into_iter().for_each(|path| sort_in(path, below, found, trouble)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => trouble(dir, e),
    }
}

fn read_dir(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(dir)?.map(|entry| entry.map(|e| e.path())).collect()
}

fn sort_in(
    path: PathBuf,
    below: &mut Vec<(PathBuf, Metadata)>,
    found: &mut Vec<Found>,
    trouble: &mut dyn FnMut(&Path, std::io::Error),
) {
    match std::fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_dir() => below.push((path, meta)),
        Ok(meta) if meta.is_file() && is_session_name(&path) => found.push(Found { path, meta }),
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => trouble(&path, e),
        _ => {}
    }
}

/// Whether a name is a session's (S13.5).
#[must_use]
pub fn is_session_name(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "jsonl")
}

/// How many sessions of its directory are newer, by modification time (S13.3), counted up to `most`: so of 10,000 few are
/// looked at, unless the session is itself among the newest. Only those count that `counts`, which is asked last.
#[must_use]
pub fn newer_in_dir(path: &Path, most: usize, counts: impl Fn(&Path) -> bool) -> usize {
    let modified = |meta: std::io::Result<Metadata>| meta.and_then(|meta| meta.modified()).ok();
    let (Some(dir), Some(own)) = (path.parent(), modified(std::fs::symlink_metadata(path))) else { return 0 };
    let newer = |other: &DirEntry| {
        let name = other.file_name();
        is_session_name(Path::new(&name))
            && Some(name.as_os_str()) != path.file_name()
            && modified(other.metadata()).is_some_and(|time| time > own)
            && counts(&other.path())
    };
    std::fs::read_dir(dir).into_iter().flatten().flatten().filter(newer).take(most).count()
}

/// Whether `path` is the newest session of its directory (S13.3).
#[must_use]
pub fn is_newest(path: &Path) -> bool {
    newer_in_dir(path, 1, |_| true) == 0
}
