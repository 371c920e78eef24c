//! Whether somebody may be at work on a session that is to be replaced or removed.

use std::path::Path;

use crate::cli::control::Client;
use crate::cli::failure::Failure;
use crate::config::{Config, duration_text};
use crate::files::tail::Reading;
use crate::files::{FileId, shown};
use crate::wire::control::{Request, Status};

/// No bridge holds the session and, unless `force` says that this does not matter, nobody wrote to it within `live-hold`.
///
/// # Errors
/// [`Failure::Problem`] if that is not so.
pub(super) fn check(path: &Path, reading: &Reading, config: Option<&Path>, force: bool) -> Result<(), Failure> {
    not_bridged(path, reading.id(), config)?;
    let hold = Config::find(config)?.watch.live_hold;
    let modified = reading.metadata()?.modified()?;
    // A time in the future is no reason to think that nobody writes.
    if force || modified.elapsed().is_ok_and(|since| since >= hold) {
        return Ok(());
    }
    let (path, hold) = (shown(path), duration_text(hold));
    Err(Failure::Problem(format!(
        "{path}: somebody wrote to it within {hold} (live-hold), a Pi may have it open; --force to do it all the same"
    )))
}

/// No Pi has this file open through a bridge, as far as the daemon knows: such a session is not written directly.
///
/// # Errors
/// [`Failure::Problem`] if one has.
pub(in crate::cli) fn not_bridged(path: &Path, file: FileId, config: Option<&Path>) -> Result<(), Failure> {
    let Some(mut daemon) = Client::connect(&Config::find(config)?)? else { return Ok(()) };
    let status: Status = daemon.ask(&Request::Status { all: false })?;
    let is_it = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|meta| FileId::of(&meta) == file);
    let mut bridged = status.sessions.iter().filter(|session| !session.bridged.is_empty());
    let Some(held) = bridged.find(|session| is_it(&session.path)) else { return Ok(()) };
    let (path, why) = (shown(path), &held.presence_why);
    Err(Failure::Problem(format!(
        "{path}: a Pi has it open ({why}); end that Pi, or let it go to another session, first"
    )))
}
