//! What the daemon is told to do, resolved from the config and the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::deliver::settle::Times;
use crate::models::Models;
use crate::pi::PiFiles;

/// Decides by a session's path, or by its working directory, whether it is followed.
pub type Filter = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// The kind of network file system that a directory is on, if it is on one.
pub type Network = Box<dyn Fn(&Path) -> Option<&'static str> + Send + Sync>;

/// Why something waits on a network file system.
const ON_NETWORK: &str =
    "its directory is on a network file system, where only the bridge delivers; see watch.network in the config";

/// Settings of one daemon.
pub struct Settings {
    /// Directories that are searched for sessions.
    pub roots: Vec<PathBuf>,
    /// By the session's path (`watch.include`, `watch.exclude`).
    pub by_path: Filter,
    /// By its working directory (`watch.cwd`).
    pub by_cwd: Filter,
    /// Which directories are on a network file system.
    pub network: Network,
    /// Append there directly too (`watch.network`).
    pub append_on_network: bool,
    /// The waiting times.
    pub times: Times,
    /// How long Pi may wait for us at the end of a turn (`bridge.turn-end`).
    pub turn_end: Duration,
    /// Also run on what was there before the first start (`--backfill`).
    pub backfill: bool,
    /// New from their first line, whatever their age: files named with `--once`, and what `--since` covers.
    pub fresh: Vec<PathBuf>,
    /// May be worked on wherever they are, and are no newer for it: what `compact` names.
    pub named: Vec<PathBuf>,
    /// Write nothing (`--dry-run`).
    pub dry_run: bool,
    /// The user says that no Pi runs (`--closed`).
    pub closed: bool,
    /// Plugins that are enabled and could not be loaded: what they have pending waits.
    pub unloaded: Vec<String>,
    /// How long the run log is kept (`state.keep`).
    pub keep_runs: Duration,
    /// Pi's own settings and models.
    pub pi: PiFiles,
    /// The models that plugins may be granted.
    pub models: Arc<Models>,
}

impl Settings {
    /// Every session, nothing of Pi's, no models, and no waiting: what to begin with where no config is.
    #[must_use]
    pub fn plain() -> Settings {
        Settings {
            roots: Vec::new(),
            by_path: Box::new(|_| true),
            by_cwd: Box::new(|_| true),
            network: Box::new(|_| None),
            append_on_network: false,
            times: Times { settle: Duration::ZERO, live_hold: Duration::ZERO },
            turn_end: Duration::from_millis(500),
            backfill: false,
            fresh: Vec::new(),
            named: Vec::new(),
            dry_run: false,
            closed: false,
            unloaded: Vec::new(),
            keep_runs: Duration::from_hours(1),
            pi: PiFiles::new(None),
            models: Arc::default(),
        }
    }

    /// Whether a session is new from its first line, whatever its age.
    #[must_use]
    pub fn is_fresh(&self, path: &Path) -> bool {
        self.backfill || self.fresh.iter().any(|fresh| fresh == path)
    }

    /// Whether a session was picked by name or age: it may be worked on wherever it is.
    #[must_use]
    pub fn is_named(&self, path: &Path) -> bool {
        self.fresh.iter().chain(&self.named).any(|named| named == path)
    }

    /// Whether the directory of `path` is really below a root, no link leading out of it: it may be read.
    #[must_use]
    pub fn is_inside(&self, path: &Path) -> bool {
        let real = |dir: &Path| dir.canonicalize().ok();
        let dir = path.parent().and_then(real);
        dir.is_some_and(|dir| self.roots.iter().filter_map(|root| real(root)).any(|root| dir.starts_with(root)))
    }

    /// Why nothing may be appended directly to the session at `path`, if that is so: `O_APPEND` is not safe between hosts
    /// (product.md section 6).
    #[must_use]
    pub fn bridge_only(&self, path: &Path) -> Option<&'static str> {
        let is_remote = || path.parent().is_some_and(|dir| (self.network)(dir).is_some());
        (!self.append_on_network && is_remote()).then_some(ON_NETWORK)
    }
}
