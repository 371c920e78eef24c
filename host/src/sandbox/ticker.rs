//! The clock that ends runs which never call the host: a thread that ticks while something runs, and sleeps otherwise.
//!
//! It lingers a little when the last run ends, since waking it costs more than a short run does.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;

/// How late a deadline may strike.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// Ticks without a run before it sleeps.
const LINGER: u32 = 10;

/// Ticks the engine's epoch while at least one [`Running`] is held, and lets so many be held at a time.
pub(super) struct Ticker {
    shared: Arc<Shared>,
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
    waiting: usize,
    asleep: bool,
    closed: bool,
}

/// Keeps the ticker going.
pub(super) struct Running<'a>(&'a Shared);

impl Ticker {
    /// A ticker for so many runs at a time.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(super) fn new(engine: Engine, places: u32) -> std::io::Result<Self> {
        let (state, changed, freed) = (Mutex::default(), Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { engine, state, changed, freed, places: places.max(1) as usize });
        let ticking = Arc::clone(&shared);
        thread::Builder::new().name("epoch".into()).spawn(move || ticking.tick())?;
        Ok(Self { shared })
    }

    /// Waits for a place, then ticks until the answer is dropped.
    pub(super) fn run(&self) -> Running<'_> {
        let mut state = self.shared.lock();
        while state.running >= self.shared.places {
            state.waiting += 1;
            state = self.shared.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.running += 1;
        if state.asleep {
            state.asleep = false;
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
        let (mut state, mut idle) = (self.lock(), 0);
        while !state.closed {
            if idle > LINGER {
                state.asleep = true;
                let asleep = |state: &mut State| state.asleep && !state.closed;
                state = self.changed.wait_while(state, asleep).unwrap_or_else(PoisonError::into_inner);
                idle = 0;
                continue;
            }
            let waited = self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            // Woken before its time, it has not waited for a whole tick.
            if waited.1.timed_out() {
                self.engine.increment_epoch();
            }
            idle = if state.running == 0 { idle + 1 } else { 0 };
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        if state.waiting > 0 {
            self.0.freed.notify_one();
        }
    }
}

impl Drop for Ticker {
    /// Lets the thread end. Nobody waits for it: it holds nothing but the engine.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_time_is_covered_by_its_ticks() {
        assert_eq!(ticks(Duration::from_millis(10)), 2);
        assert_eq!(ticks(Duration::from_millis(11)), 3);
        assert!(ticks(Duration::MAX) > 1 << 60);
    }

    #[test]
    fn it_sleeps_when_nothing_runs_and_wakes_again() {
        let ticker = Ticker::new(Engine::default(), 1).expect("a thread");
        let until = |asleep: bool| {
            let begun = Instant::now();
            while ticker.shared.lock().asleep != asleep {
                assert!(begun.elapsed() < Duration::from_secs(10));
                thread::yield_now();
            }
        };
        until(true);
        let running = ticker.run();
        until(false);
        drop(running);
        until(true);
    }
}
