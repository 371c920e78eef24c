//! Watching: events of the system are hints that a file may have changed, never more (product.md section 6). A walk over
//! the roots from time to time, and whenever the watcher says it lost count, finds what they missed.
//!
//! On Linux each directory is watched by itself, so one that cannot be is the only one that is not. Elsewhere a root is
//! watched with all that is below it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{CreateKind, ModifyKind, RemoveKind};
use notify::{ErrorKind, EventKind, RecommendedWatcher, RecursiveMode};
use rustix::io::Errno;
use tokio::sync::mpsc::UnboundedSender;
use tracing::warn;

use crate::files::locate::is_session_name;

use super::Event;

/// Where file events come from: a port, so that tests have systems that give none, or too few.
pub trait Watchers: Send + Sync {
    /// A watcher that sends its hints there.
    ///
    /// # Errors
    /// [`WatchError`].
    fn begin(&self, hints: Hints) -> Result<Box<dyn Watcher>, WatchError>;
}

/// One watcher, of one root. Dropping it ends all its watches.
pub trait Watcher: Send {
    /// Watches a directory; `is_root`: it is the root itself. To watch one again does no harm.
    ///
    /// # Errors
    /// [`WatchError`].
    fn add(&mut self, dir: &Path, is_root: bool) -> Result<(), WatchError>;
}

/// Why a directory is not watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The system has no more watches to give: the next one fails too.
    #[error("the system's watches are used up; it gives more with fs.inotify.max_user_watches and max_user_instances")]
    UsedUp,
    /// It is not there any more.
    #[error("it is gone")]
    Gone,
    /// This one cannot be watched.
    #[error("no file events here: {0}")]
    NoEvents(String),
}

/// Where a watcher says what it saw.
#[derive(Clone)]
pub struct Hints {
    to: UnboundedSender<Event>,
}

impl Hints {
    pub(super) fn new(to: UnboundedSender<Event>) -> Hints {
        Hints { to }
    }

    /// A file may have changed.
    pub fn changed(&self, path: PathBuf) {
        // The receiver is gone only when the daemon ends.
        let _ = self.to.send(Event::Changed(path));
    }

    /// A directory may have come, gone or changed its name: it is to be seen what is in it.
    pub fn moved(&self, dir: PathBuf) {
        let _ = self.to.send(Event::Walk(Some(dir)));
    }

    /// Something was missed: everything is to be walked over.
    pub fn lost(&self, why: &str) {
        warn!("file events were lost ({why}); walking over everything");
        let _ = self.to.send(Event::Walk(None));
    }
}

/// The system's own events.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWatchers;

/// As many watches as the root has directories, where the system's do not reach below by themselves.
const EACH_DIRECTORY: bool = cfg!(any(target_os = "linux", target_os = "android"));

struct SystemWatcher(RecommendedWatcher);

impl Watchers for SystemWatchers {
    fn begin(&self, hints: Hints) -> Result<Box<dyn Watcher>, WatchError> {
        // What a link leads to is not below the root.
        let config = notify::Config::default().with_follow_symlinks(false);
        let watcher = notify::Watcher::new(move |event| forward(event, &hints), config).map_err(|e| error_of(&e))?;
        Ok(Box::new(SystemWatcher(watcher)))
    }
}

impl Watcher for SystemWatcher {
    fn add(&mut self, dir: &Path, is_root: bool) -> Result<(), WatchError> {
        let mode = match (EACH_DIRECTORY, is_root) {
            (true, _) => RecursiveMode::NonRecursive,
            (false, true) => RecursiveMode::Recursive,
            (false, false) => return Ok(()),
        };
        notify::Watcher::watch(&mut self.0, dir, mode).map_err(|e| error_of(&e))
    }
}

fn error_of(error: &notify::Error) -> WatchError {
    let used_up = |e: &io::Error| matches!(Errno::from_io_error(e), Some(Errno::NOSPC | Errno::MFILE | Errno::NFILE));
    match &error.kind {
        ErrorKind::MaxFilesWatch => WatchError::UsedUp,
        ErrorKind::PathNotFound => WatchError::Gone,
        ErrorKind::Io(e) if used_up(e) => WatchError::UsedUp,
        ErrorKind::Io(e) if e.kind() == io::ErrorKind::NotFound => WatchError::Gone,
        ErrorKind::Io(e) => WatchError::NoEvents(e.to_string()),
        _ => WatchError::NoEvents(error.to_string()),
    }
}

fn forward(event: notify::Result<notify::Event>, hints: &Hints) {
    match event {
        Ok(event) if event.need_rescan() => hints.lost("more than the system keeps"),
        Ok(event) if event.kind.is_access() => {}
        Ok(event) if event.paths.is_empty() => hints.lost("an event without a path"),
        Ok(event) => event.paths.into_iter().for_each(|path| match is_session_name(&path) {
            true => hints.changed(path),
            false if may_move_sessions(event.kind) => hints.moved(path),
            false => {}
        }),
        Err(e) => hints.lost(&e.to_string()),
    }
}

/// Whether a directory came, went, was renamed or may be read now: it is to be seen what is in it. What is written to other
/// files is not.
fn may_move_sessions(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(kind) => kind != CreateKind::File,
        EventKind::Remove(kind) => kind != RemoveKind::File,
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_) | ModifyKind::Metadata(_) | ModifyKind::Any),
        EventKind::Any | EventKind::Other | EventKind::Access(_) => false,
    }
}

/// The system's events, to be shared.
pub(super) fn system() -> Arc<dyn Watchers> {
    Arc::new(SystemWatchers)
}
