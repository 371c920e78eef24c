//! Another try where it is worth one: growing pauses, within the time of the call.

use std::thread;
use std::time::{Duration, Instant};

use super::Raw;
use super::error::AskError;

/// Tries of one call.
const TRIES: u32 = 5;
/// The first pause; doubled at each further one.
const PAUSE: Duration = Duration::from_millis(500);
/// How soon an end is seen.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// A try that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: AskError,
    pub(super) again: Again,
}

/// Whether another try is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It would only come again.
    No,
    /// After a pause of ours.
    Pause,
    /// After the time that the server names.
    After(Duration),
    /// At once: what was wrong is put right.
    AtOnce,
}

/// What is tried.
pub(super) trait Attempt {
    /// One try, which ends at `until`.
    fn attempt(&mut self, until: Instant, over: &dyn Fn() -> bool) -> Result<Raw, Failed>;
}

/// Tries until there is an answer, or no more try is worth it or has room.
pub(super) fn retrying(until: Instant, over: &dyn Fn() -> bool, what: &mut dyn Attempt) -> Result<Raw, AskError> {
    let mut pause = PAUSE;
    for left in (0..TRIES).rev() {
        let Failed { error, again } = match what.attempt(until, over) {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        let wait = match again {
            Again::No => return Err(error),
            _ if left == 0 => return Err(error),
            Again::AtOnce => continue,
            Again::Pause => pause,
            Again::After(time) => time.max(pause),
        };
        pause *= 2;
        if Instant::now() + wait >= until {
            return Err(error);
        }
        tracing::debug!(%error, "a model failed; trying again in {wait:?}");
        rest(wait, over)?;
    }
    // The last try returns.
    Err(AskError::Over)
}

fn rest(wait: Duration, over: &dyn Fn() -> bool) -> Result<(), AskError> {
    let until = Instant::now() + wait;
    while Instant::now() < until {
        if over() {
            return Err(AskError::Over);
        }
        thread::sleep(LOOK.min(wait));
    }
    Ok(())
}
