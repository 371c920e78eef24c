//! A session's turn with a worker. One that has much to do, or slow plugins, goes on behind whoever waits by then: so nobody
//! waits longer than for what a worker does in a turn.

use std::time::{Duration, Instant};

/// How long a turn lasts before the worker goes to the next session. The run that is under way then is not cut short.
const TURN: Duration = Duration::from_secs(1);

/// The turn of the step that is under way.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// None if it has no end: somebody waits for all of it.
    yields: bool,
    /// When the first new entry was read. What had to be read before that is no progress.
    begun: Option<Instant>,
}

impl Turn {
    /// A turn begins; it has an end if it is to yield.
    pub(super) fn new(yields: bool) -> Self {
        Self { yields, begun: None }
    }

    /// An entry is handled.
    pub(super) fn note(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// Whether others are to go first now.
    pub(super) fn is_over(&self) -> bool {
        self.yields && self.is_long()
    }

    /// Whether it took long enough to be one of those that wait for each other.
    pub(super) fn is_long(&self) -> bool {
        self.begun.is_some_and(|begun| begun.elapsed() >= TURN)
    }
}
