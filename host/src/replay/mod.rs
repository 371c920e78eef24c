//! Replay: what plugins would have done in sessions that were recorded (product.md 4.6).
//!
//! The plugins are run by the daemon's own code: a session of its, on a file that nobody else sees, with a store in memory.
//! Beside it stands a [Pi](pi) that writes what was recorded, entry by entry, asks at the boundaries where the real one
//! would have asked over its bridge, and appends what it is handed. What the plugins' order, chains, batches, checks and
//! refusals are is therefore not said here a second time.
//!
//! ```text
//! recorded ─play─> scratch file ─daemon::session─> answers ─pi─> scratch file …
//!                                      └─> run log ─report─> Told
//! ```
//!
//! Two replays of the same sessions with the same components, config and settings of Pi's are equal, but for the time they
//! took: ids come from a count, times are the recording's, and no limit of wall clock counts.

pub mod account;
pub mod cache;
mod pi;
mod play;
mod recorded;
pub mod report;
mod scene;
pub mod tried;
pub mod verify;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pi_session::branch::{Branch, BranchError};
use pi_session::tree::SourceError;

use crate::daemon::session::StepError;
use crate::daemon::settings::Settings;
use crate::daemon::world::{Observer, World};
use crate::files::FilesError;
use crate::files::append::RealDisk;
use crate::files::scratch::Scratch;
use crate::files::shown;
use crate::journal::{Batch, Journal, JournalError, RunRecord};
use crate::models::Models;
use crate::pi::PiFiles;
use crate::sandbox::Plugin;

use account::Account;
use pi::{Ids, Pi};
use play::Play;
pub use recorded::Recorded;
use report::{Seen, Side, Told};
use scene::Want;
pub use scene::{Scene, SceneError};
use tried::{Heard, Tried};

/// No wall clock counts in a replay; fuel does, which is the same on every machine.
pub const NO_TIME_LIMIT: Duration = Duration::from_hours(24 * 365);

/// Why a session could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is no session, or none yet.
    #[error("{}: S2.3: no Pi session: it does not begin with a header", shown(.0))]
    NoSession(PathBuf),
    /// Nothing can be appended to an old one.
    #[error(
        "{}: S11.2: a session of an old version: replay what `pi-graft session migrate -o FILE` makes of it",
        shown(.0)
    )]
    Old(PathBuf),
    /// The recording, or the file that is replayed into.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The text does not make a branch.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// The text cannot be read back.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store in memory.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The daemon's session.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The run log.
    #[error("the run log: {0}")]
    Log(String),
    /// A bug: what was handed over cannot be appended.
    #[error("what was handed over cannot be appended: {0}")]
    Unfit(String),
    /// A bug: the leaf is not in the file.
    #[error("the replay lost its place: there is no entry {0:?}")]
    Leaf(String),
    /// A bug: the daemon does not follow the file.
    #[error("the replay's own file is no session")]
    NotFollowed,
}

/// What replays share.
pub struct Replay {
    /// The plugins in the config's order, without limits of wall clock.
    pub plugins: Vec<Arc<Plugin>>,
    /// Pi's agent directory, for its settings and models.
    pub agent_dir: Option<PathBuf>,
}

/// A session that was told anew.
pub struct Replayed {
    /// What is to be said of it.
    pub told: Told,
    /// Its branch without the plugins.
    pub before: Branch,
    /// Its branch with them.
    pub after: Branch,
}

impl Replay {
    /// Replays the session at `path`; `told` hears of bytes as they are gone through, four times the file's length in all.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn session(&self, path: &Path, told: &dyn Fn(u64)) -> Result<Replayed, ReplayError> {
        let recorded = Recorded::open(path, told)?;
        let before = self.tell(&recorded, Telling::default(), told)?;
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let telling =
            Telling { plugins: &self.plugins, observer: Some(observer(&seen, Seen::note)), ..Telling::default() };
        let after = self.tell(&recorded, telling, &|bytes| told(2 * bytes))?;
        let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        let sides = (before.side, after.side);
        let told = report::told(&recorded, &self.plugins, seen, sides, after.left_out)?;
        Ok(Replayed { told, before: before.branch, after: after.branch })
    }

    /// Tries the plugins on a scene, with these models to be asked: each run, and the context at the end.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn scene(&self, scene: &Scene, models: Arc<Models>) -> Result<Tried, ReplayError> {
        let recorded = scene.record()?;
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let observer = Some(observer(&heard, Heard::note));
        let telling =
            Telling { plugins: &self.plugins, observer, models: Arc::clone(&models), wants: Some(scene.wants()) };
        let ended = self.tell(&recorded, telling, &|_| ())?;
        let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
        tried::tried(&recorded, heard, &models, &ended.branch)
    }

    fn tell(&self, recorded: &Recorded, telling: Telling<'_>, told: &dyn Fn(u64)) -> Result<Ended, ReplayError> {
        let scratch = Scratch::new()?;
        let wants = telling.wants;
        let world = self.world(telling, scratch.path())?;
        let pi = Pi::open(world, scratch, &recorded.header, Ids::new(&recorded.tree))?;
        let mut play = Play::new(recorded, pi);
        play.all(wants.unwrap_or_default(), told)?;
        if wants.is_some() {
            play.rest()?;
        }
        let branch = play.pi().branch(play.end().as_deref())?;
        let account = Account::of(&branch, |leaf| play.pi().branch(leaf))?;
        let side = Side::of(&branch, account, std::mem::take(&mut play.breaks))?;
        // The descriptor of the scratch file stays with the branch.
        Ok(Ended { branch, side, left_out: play.left_out })
    }

    fn world(&self, telling: Telling<'_>, path: &Path) -> Result<World, ReplayError> {
        let settings = Settings {
            turn_end: NO_TIME_LIMIT,
            backfill: true,
            fresh: vec![path.to_path_buf()],
            closed: true,
            keep_runs: NO_TIME_LIMIT,
            pi: PiFiles::new(self.agent_dir.clone()),
            models: telling.models,
            ..Settings::plain()
        };
        let (journal, disk) = (Journal::in_memory(0)?, Box::new(RealDisk));
        Ok(World::observed(journal, telling.plugins.to_vec(), settings, disk, telling.observer)?)
    }
}

/// How a session is told.
#[derive(Default)]
struct Telling<'t> {
    plugins: &'t [Arc<Plugin>],
    observer: Option<Observer>,
    /// No model that would have to be asked: a replay needs no network, and is the same each time.
    models: Arc<Models>,
    /// Of a scene: where compactions are wanted. It ends at rest.
    wants: Option<&'t [Want]>,
}

/// What is left of a telling.
struct Ended {
    branch: Branch,
    side: Side,
    left_out: u64,
}

/// Has `note` hear the run log.
fn observer<T: Send + 'static>(seen: &Arc<Mutex<T>>, note: fn(&mut T, &[RunRecord], &[Batch])) -> Observer {
    let seen = Arc::clone(seen);
    Box::new(move |runs, batches| note(&mut seen.lock().unwrap_or_else(PoisonError::into_inner), runs, batches))
}
