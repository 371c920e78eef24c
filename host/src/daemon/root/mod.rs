//! One root: whether it is there, whether it is ours, how changes in it are noticed, and what is in it.
//!
//! | it is | that means | and it is looked at again |
//! | --- | --- | --- |
//! | `watched` | locked for this daemon; the system gives events for all of it | each minute, and where an event says so |
//! | `polled` | locked for this daemon, but events cannot be relied on: a network file system, watches used up, none at all | each second; for watches each minute |
//! | `absent` | no directory (yet), or one that cannot be reached | each second |
//! | `locked` | another daemon follows it, something in it, or something above it; this one stays off | each second |
//!
//! A root that is replaced, so that another inode stands at its path, is let go and begun anew.

use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::{info, warn};

use crate::files::locate::{self, Found, Guide};
use crate::files::lock::{RootLock, lock_again, lock_root};
use crate::files::{FileId, FilesError};
use crate::wire::control::RootStatus;

use super::watch::{Hints, WatchError, Watcher, Watchers};

/// A root that this daemon may follow, and which no other one does as long as this is somewhere.
#[derive(Debug)]
pub struct Held {
    /// Its real path.
    pub path: PathBuf,
    id: FileId,
    lock: Option<RootLock>,
}

impl Held {
    /// Whether the directory of `path` is really below it, no link leading out of it, and it is still what was locked, and
    /// locked still.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
        let id = || std::fs::metadata(&self.path).map(|meta| FileId::of(&meta)).ok();
        dir.is_some_and(|dir| dir.starts_with(&self.path)) && id() == Some(self.id) && self.is_locked()
    }

    /// Whether its lock still keeps others out: somebody may have cleaned the file away.
    pub(super) fn is_locked(&self) -> bool {
        self.lock.as_ref().is_none_or(RootLock::holds)
    }
}

/// How a root stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not looked at yet.
    New,
    /// Not there, and what the system said if it is something else.
    Absent(Option<String>),
    /// Not to be followed, and why.
    Locked(String),
    /// The system's events are to be relied on.
    Watched,
    /// They are not, and why.
    Polled(String),
}

impl Standing {
    /// As `status` says it.
    pub(super) fn status(&self, path: &Path) -> RootStatus {
        let (state, why) = match self {
            Standing::New => ("absent", Some("it is being looked at")),
            Standing::Absent(why) => ("absent", why.as_deref()),
            Standing::Locked(why) => ("locked", Some(why.as_str())),
            Standing::Watched => ("watched", None),
            Standing::Polled(why) => ("polled", Some(why.as_str())),
        };
        RootStatus { path: path.to_path_buf(), state: state.to_owned(), why: why.map(str::to_owned) }
    }

    fn tell(&self, root: &Path) {
        let root = root.display();
        match self {
            Standing::New => {}
            Standing::Absent(None) => warn!("{root}: no such directory (yet); see watch.roots in the config"),
            Standing::Absent(Some(why)) => warn!("{root}: cannot be followed: {why}"),
            Standing::Locked(why) => warn!("{root}: not followed: {why}"),
            Standing::Watched => info!("{root}: watched"),
            Standing::Polled(why) => warn!("{root}: looked at every second: {why}"),
        }
    }
}

/// What a look at a root needs of the world.
pub(super) struct Means<'a> {
    /// Where locks are kept; none: nothing is written, so nothing need be locked.
    pub runtime: Option<&'a Path>,
    pub watchers: &'a dyn Watchers,
    pub hints: &'a Hints,
    /// The kind of network file system that a directory is on.
    pub network: &'a dyn Fn(&Path) -> Option<&'static str>,
}

/// How far a look goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Ask {
    /// Over all of it.
    pub whole: bool,
    /// Where it is not watched, that is tried again.
    pub watch: bool,
    /// Else only over these directories.
    pub dirs: BTreeSet<PathBuf>,
}

/// A root, as whoever looks at it has it.
pub(super) struct Root {
    pub named: PathBuf,
    pub standing: Standing,
    pub held: Option<Arc<Held>>,
    watcher: Option<Box<dyn Watcher>>,
    /// What could not be read, so that it is said once.
    troubles: BTreeSet<PathBuf>,
    /// What may have had something to do at the last look over all of it, as it was then.
    seen: HashMap<PathBuf, Stamp>,
}

/// What of a file changes when somebody writes to it.
type Stamp = (FileId, u64, i64, i64);

fn stamp(meta: &Metadata) -> Stamp {
    (FileId::of(meta), meta.len(), meta.mtime(), meta.mtime_nsec())
}

impl Root {
    pub(super) fn new(named: &Path) -> Root {
        let (held, watcher, troubles, seen) = (None, None, BTreeSet::new(), HashMap::new());
        Root { named: named.to_path_buf(), standing: Standing::New, held, watcher, troubles, seen }
    }

    /// Finds out how it stands, and looks at what is in it.
    pub(super) fn look(&mut self, means: &Means<'_>, ask: &Ask) -> Vec<Found> {
        let begun = match self.hold(means) {
            Ok(begun) => begun,
            Err(standing) => {
                (self.held, self.watcher) = (None, None);
                self.stand(standing);
                return Vec::new();
            }
        };
        let Some(held) = self.held.clone() else { return Vec::new() };
        let tries = begun || ask.watch || self.standing == Standing::Watched;
        let fault = if tries { self.ensure_watcher(means).err() } else { None };
        let mut tour = Tour::of(self, means, &held.path, tries, fault);
        let found = locate::walk_with(starts(&held.path, begun || ask.whole, &ask.dirs), &mut tour);
        let fault = tour.fault.take();
        if tries {
            self.stand(fault.map_or(Standing::Watched, Standing::Polled));
        }
        found
    }

    /// Of what may have something to do: what is not as it was at the last look. A root that is polled is looked at each second,
    /// and what cannot be done (half a line, a file that is no session) is not to be tried each second; each minute it is.
    pub(super) fn news(&mut self, ask: &Ask, found: Vec<Found>) -> Vec<Found> {
        if !ask.whole {
            return found;
        }
        let stamps = found.iter().map(|file| (file.path.clone(), stamp(&file.meta))).collect();
        let old = std::mem::replace(&mut self.seen, stamps);
        let is_news = |file: &Found| ask.watch || old.get(&file.path) != Some(&stamp(&file.meta));
        found.into_iter().filter(is_news).collect()
    }

    /// Makes sure that it is there and ours; true if that has just become so.
    fn hold(&mut self, means: &Means<'_>) -> Result<bool, Standing> {
        let (path, id) = identity(&self.named)?;
        let same = |held: &Arc<Held>| held.path == path && held.id == id && held.is_locked();
        if self.held.as_ref().is_some_and(same) {
            return Ok(false);
        }
        let (held, _) = (self.held.take(), self.watcher.take());
        // A step may have what was held: then it is not free, and ours all the same.
        let had = held.as_ref().filter(|held| held.id == id).and_then(|held| held.lock.as_ref());
        let lock = |runtime: &Path| match had {
            Some(had) => lock_again(runtime, &path, had),
            None => lock_root(runtime, &path),
        };
        let lock = means.runtime.map(lock).transpose().map_err(|e| unlocked(&e))?;
        self.held = Some(Arc::new(Held { path, id, lock }));
        self.seen.clear();
        Ok(true)
    }

    /// Says why events cannot be relied on, if no watcher can be had.
    fn ensure_watcher(&mut self, means: &Means<'_>) -> Result<(), String> {
        if self.watcher.is_none() {
            self.watcher = Some(means.watchers.begin(means.hints.clone()).map_err(|e| e.to_string())?);
        }
        Ok(())
    }

    /// Said once, until it is otherwise.
    fn stand(&mut self, standing: Standing) {
        if self.standing != standing {
            standing.tell(&self.named);
            self.standing = standing;
        }
    }
}

/// The real path of a root, and which directory that is.
fn identity(named: &Path) -> Result<(PathBuf, FileId), Standing> {
    let absent = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Standing::Absent(None),
        _ => Standing::Absent(Some(e.to_string())),
    };
    let path = named.canonicalize().map_err(absent)?;
    let meta = std::fs::metadata(&path).map_err(absent)?;
    match meta.is_dir() {
        true => Ok((path, FileId::of(&meta))),
        false => Err(Standing::Absent(Some("it is not a directory".to_owned()))),
    }
}

fn unlocked(error: &FilesError) -> Standing {
    Standing::Locked(match error {
        FilesError::Busy { .. } => {
            "another pi-graft follows it, or something in or above it (or another program keeps it locked); stop that one, or give this one other roots"
                .to_owned()
        }
        other => format!("it cannot be locked ({other})"),
    })
}

/// Where a look begins. A directory that an event named may be anything by now.
fn starts(root: &Path, whole: bool, dirs: &BTreeSet<PathBuf>) -> Vec<(PathBuf, Metadata)> {
    let root = [root.to_path_buf()];
    let dirs: Vec<&PathBuf> = if whole { root.iter().collect() } else { dirs.iter().collect() };
    let meta = |dir: &PathBuf| std::fs::symlink_metadata(dir).ok().filter(Metadata::is_dir);
    dirs.into_iter().filter_map(|dir| Some((dir.clone(), meta(dir)?))).collect()
}

/// A walk over a root that watches each directory before it is read.
struct Tour<'a> {
    root: &'a Path,
    watcher: Option<&'a mut Box<dyn Watcher>>,
    troubles: &'a mut BTreeSet<PathBuf>,
    network: &'a dyn Fn(&Path) -> Option<&'static str>,
    /// By device: a mount may stand anywhere below the root.
    kinds: HashMap<u64, Option<&'static str>>,
    /// Why events cannot be relied on.
    fault: Option<String>,
}

impl<'a> Tour<'a> {
    fn of(root: &'a mut Root, means: &Means<'a>, at: &'a Path, tries: bool, fault: Option<String>) -> Tour<'a> {
        let watcher = root.watcher.as_mut().filter(|_| tries);
        Tour { root: at, watcher, troubles: &mut root.troubles, network: means.network, kinds: HashMap::new(), fault }
    }

    fn watch(&mut self, dir: &Path) {
        let is_root = dir == self.root;
        let Some(watcher) = &mut self.watcher else { return };
        match watcher.add(dir, is_root) {
            Ok(()) | Err(WatchError::Gone) => {}
            Err(WatchError::NoEvents(why)) if !is_root => self.note(dir, &format!("it is not watched: {why}")),
            Err(e) => {
                self.fault = Some(e.to_string());
                // Each further one would fail in the same way.
                self.watcher = None;
            }
        }
    }

    fn note(&mut self, path: &Path, why: &str) {
        if self.troubles.insert(path.to_path_buf()) {
            warn!("{}: {why}", path.display());
        }
    }
}

impl Guide for Tour<'_> {
    fn enter(&mut self, dir: &Path, meta: &Metadata) {
        match *self.kinds.entry(meta.dev()).or_insert_with(|| (self.network)(dir)) {
            None => self.watch(dir),
            Some(kind) => {
                let what = if dir == self.root { "it is" } else { "a part of it is" };
                let why = || format!("{what} on {kind}, which gives no events of what other hosts write");
                self.fault.get_or_insert_with(why);
            }
        }
    }

    fn trouble(&mut self, path: &Path, error: io::Error) {
        self.note(path, &error.to_string());
    }
}

#[cfg(test)]
mod tests;
