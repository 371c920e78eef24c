//! Opening the store where another may have it for a moment: `status` and `log` without a daemon, `run` beside them.

use std::time::{Duration, Instant};

use crate::config::Config;
use crate::daemon::world::now_ms;
use crate::journal::{Journal, JournalError};

use crate::cli::{Failure, say};

/// How long somebody who has the store is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two tries.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Opens the store; `who` has it, if it is still in use after a moment.
///
/// # Errors
/// [`Failure`] as [`Journal::open`].
pub(in crate::cli) fn open(config: &Config, who: &str) -> Result<Journal, Failure> {
    let (dir, until) = (&config.state.dir, Instant::now() + PATIENCE);
    let mut has_said = false;
    loop {
        match Journal::open(dir, now_ms()) {
            Err(JournalError::Busy(_)) if Instant::now() < until => {
                if !std::mem::replace(&mut has_said, true) {
                    say("the store is in use at this moment; waiting for it");
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(JournalError::Busy(path)) => {
                let what = format!("{}: {who} has this store open", path.display());
                return Err(Failure::problem(format!(
                    "{what}; try again when it has ended, or set another [state] dir"
                )));
            }
            opened => return opened.map_err(Failure::problem),
        }
    }
}
