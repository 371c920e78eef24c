//! Whether somebody may be at work on a session that is to be replaced or removed.

use std::path::Path;

use crate::cli::failure::Failure;
use crate::config::{Config, duration_text};
use crate::files::shown;
use crate::files::tail::Reading;

/// Nobody wrote to the session within `live-hold`.
///
/// # Errors
/// [`Failure::Problem`] if somebody did.
pub(super) fn check(path: &Path, reading: &Reading, config: Option<&Path>) -> Result<(), Failure> {
    let hold = Config::find(config)?.watch.live_hold;
    let modified = reading.metadata()?.modified()?;
    // A time in the future is no reason to think that nobody writes.
    if modified.elapsed().is_ok_and(|since| since >= hold) {
        return Ok(());
    }
    let (path, hold) = (shown(path), duration_text(hold));
    Err(Failure::Problem(format!(
        "{path}: somebody wrote to it within {hold} (live-hold), a Pi may have it open; --force to do it all the same"
    )))
}
