//! Watching: events of the system are hints that a file may have changed, never more (product.md section 6). A walk over
//! the roots from time to time, and whenever the watcher says it lost count, finds what they missed.

use std::path::{Path, PathBuf};

use notify::event::{CreateKind, ModifyKind, RemoveKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc::UnboundedSender;
use tracing::warn;

use crate::files::locate::is_session_name;

use super::Event;

/// The watcher, as long as it is wanted.
pub struct Watching {
    _watcher: Option<RecommendedWatcher>,
    /// Roots that could not be watched: they are walked more often.
    pub unwatched: usize,
}

/// Watches the roots and sends events.
pub fn watch(roots: &[PathBuf], to: UnboundedSender<Event>) -> Watching {
    let watcher = notify::recommended_watcher(move |event| forward(event, &to));
    let mut watcher = match watcher {
        Ok(watcher) => watcher,
        Err(e) => {
            warn!("no file events here ({e}); the roots are walked instead");
            return Watching { _watcher: None, unwatched: roots.len() };
        }
    };
    let unwatched = roots.iter().filter(|root| !add(&mut watcher, root)).count();
    Watching { _watcher: Some(watcher), unwatched }
}

fn add(watcher: &mut RecommendedWatcher, root: &Path) -> bool {
    match watcher.watch(root, RecursiveMode::Recursive) {
        Ok(()) => true,
        Err(e) => {
            warn!(root = %root.display(), "cannot be watched ({e}); it is walked instead");
            false
        }
    }
}

fn forward(event: notify::Result<notify::Event>, to: &UnboundedSender<Event>) {
    // The receiver is gone only when the daemon ends.
    let send = |event| drop(to.send(event));
    match event {
        Ok(event) if event.need_rescan() => send(Event::Walk),
        Ok(event) if event.kind.is_access() => {}
        Ok(event) if event.paths.is_empty() => send(Event::Walk),
        Ok(event) => event.paths.into_iter().for_each(|path| match is_session_name(&path) {
            true => send(Event::Changed(path)),
            false if may_move_sessions(event.kind) => send(Event::Walk),
            false => {}
        }),
        Err(e) => {
            warn!("the watcher reports: {e}");
            send(Event::Walk);
        }
    }
}

/// Whether a directory came, went or was renamed: it is to be seen what is in it. What is written to other files is not.
fn may_move_sessions(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(kind) => kind != CreateKind::File,
        EventKind::Remove(kind) => kind != RemoveKind::File,
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_) | ModifyKind::Any),
        EventKind::Any | EventKind::Other | EventKind::Access(_) => false,
    }
}
