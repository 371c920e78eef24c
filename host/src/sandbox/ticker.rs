//! The clock that ends runs which never call the host: a thread that ticks while something runs, and sleeps otherwise.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::Engine;

/// How late a deadline may strike.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// Ticks the engine's epoch while at least one [`Running`] is held, and lets so many be held at a time.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    engine: Engine,
    state: Mutex<State>,
    /// Something runs now, or the ticker closes.
    changed: Condvar,
    /// A place is free.
    freed: Condvar,
    places: usize,
}

#[derive(Default)]
struct State {
    running: usize,
    closed: bool,
}

/// Keeps the ticker going.
pub(super) struct Running<'a>(&'a Shared);

impl Ticker {
    /// A ticker for so many runs at a time. Its thread starts with the first.
    pub(super) fn new(engine: Engine, places: u32) -> Self {
        let (state, changed, freed) = (Mutex::default(), Condvar::new(), Condvar::new());
        let shared = Shared { engine, state, changed, freed, places: places.max(1) as usize };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    /// Waits for a place, then ticks until the answer is dropped.
    pub(super) fn run(&self) -> Running<'_> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let spawned = thread::Builder::new().name("epoch".into()).spawn(move || shared.tick());
            // Without the thread the deadline still strikes in host calls, and fuel everywhere.
            *thread = spawned.ok();
        }
        drop(thread);
        let full = |state: &mut State| state.running >= self.shared.places;
        let mut state = self.shared.freed.wait_while(self.shared.lock(), full).unwrap_or_else(PoisonError::into_inner);
        state.running += 1;
        if state.running == 1 {
            self.shared.changed.notify_one();
        }
        Running(&self.shared)
    }
}

/// How many ticks cover this time.
pub(super) fn ticks(time: Duration) -> u64 {
    let ticks = time.as_nanos().div_ceil(TICK.as_nanos());
    // One more, since the first may come at once.
    u64::try_from(ticks).unwrap_or(u64::MAX / 2).min(u64::MAX / 2) + 1
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) {
        let mut state = self.lock();
        while !state.closed {
            state = if state.running == 0 {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner);
                if waited.1.timed_out() {
                    self.engine.increment_epoch();
                }
                waited.0
            };
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.freed.notify_one();
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic in it has nothing to tell that the runs did not show.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_covered_by_its_ticks() {
        assert_eq!(ticks(Duration::from_millis(10)), 2);
        assert_eq!(ticks(Duration::from_millis(11)), 3);
        assert!(ticks(Duration::MAX) > 1 << 60);
    }
}
