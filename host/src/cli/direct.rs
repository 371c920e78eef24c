//! A direct append by the user's own command: judged on the file as it is, written only if it still is so (S12.8), by the same
//! write as the daemon's.

use std::path::Path;
use std::time::Duration;

use crate::files::append::{Landed, Mtime, RealDisk, append, complete};
use crate::files::{FilesError, locate, shown};

use super::failure::Failure;
use super::open::Opened;

/// How often a session that changed under our hands is read and judged anew.
const TRIES: u32 = 5;
/// How long nobody may have written to a last line without its end, before it is taken for torn.
const QUIET: Duration = Duration::from_secs(2);

/// Why an attempt came to nothing.
pub(super) enum Attempt {
    /// Somebody wrote meanwhile: read and judge anew.
    Changed,
    Failed(Failure),
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Attempt {
        Attempt::Failed(failure)
    }
}

impl From<FilesError> for Attempt {
    fn from(error: FilesError) -> Attempt {
        match error {
            FilesError::Changed { .. } => Attempt::Changed,
            other => Attempt::Failed(other.into()),
        }
    }
}

/// Makes an attempt, and again while somebody else writes.
///
/// # Errors
/// What the attempt says, or that somebody keeps writing.
pub(super) fn retried<T>(path: &Path, mut attempt: impl FnMut() -> Result<T, Attempt>) -> Result<T, Failure> {
    for _ in 0..TRIES {
        match attempt() {
            Err(Attempt::Changed) => continue,
            Err(Attempt::Failed(failure)) => return Err(failure),
            Ok(done) => return Ok(done),
        }
    }
    Err(Failure::problem(format!("{}: somebody keeps writing to it; nothing was written", shown(path))))
}

/// The session at `path`, if its last line is not just being written.
///
/// # Errors
/// [`Failure::Problem`] if it is, or there is no session.
pub(super) fn open(path: &Path) -> Result<Opened, Failure> {
    let opened = Opened::session(path)?;
    if opened.ends_line || is_quiet(&opened) {
        return Ok(opened);
    }
    Err(Failure::Problem(format!("{}: S2.4: its last line is still being written; try again", shown(path))))
}

/// Nobody wrote for a while: a line without its end will not be completed any more.
fn is_quiet(opened: &Opened) -> bool {
    let modified = opened.reading.metadata().and_then(|meta| meta.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|since| since >= QUIET))
}

/// Appends these lines to the session, if it is still as it was opened.
///
/// # Errors
/// [`Attempt::Changed`] if it is not.
pub(super) fn write(opened: &Opened, mut bytes: Vec<u8>) -> Result<Landed, Attempt> {
    if !opened.ends_line {
        bytes.insert(0, b'\n');
    }
    let mtime = if locate::is_newest(&opened.path) { Mtime::Move } else { Mtime::Keep };
    match append(&RealDisk, &opened.path, opened.place, &bytes, mtime) {
        Err(FilesError::Torn { offset, .. }) if complete(&RealDisk, &opened.path, offset, &bytes)? => {
            Ok(Landed { offset, between: offset - opened.place.len })
        }
        other => Ok(other?),
    }
}
