//! How long nobody has written to a session, whatever is done to the system's clock meanwhile.
//!
//! A file's time is all there is to go by when a session is met: it is compared with the wall clock as it is, and with the
//! wall clock of the daemon's start carried on by the clock that only runs. Whichever says less counts: so a clock that is
//! set forward makes nothing quiet that is not, and one that is set back keeps nothing waiting.

use std::time::{Duration, Instant, SystemTime};

use super::session::GRACE_MS;
use super::world::{now_ms, unix_ms};

/// The clock that is never set, and what the wall clock said at one moment of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    began: Instant,
    wall: SystemTime,
}

impl Steady {
    pub(super) fn begin() -> Steady {
        Steady { began: Instant::now(), wall: SystemTime::now() }
    }

    /// Time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The wall clock of the beginning, carried on: whatever is done to that one, this is never set. Unix milliseconds.
    pub(super) fn now_ms(&self) -> i64 {
        unix_ms(self.wall + self.elapsed())
    }

    /// How long ago at least something was written that has this time.
    pub(super) fn age(&self, written: SystemTime) -> Duration {
        self.age_at(written, SystemTime::now(), self.elapsed())
    }

    fn age_at(&self, written: SystemTime, wall: SystemTime, elapsed: Duration) -> Duration {
        let by_wall = wall.duration_since(written).unwrap_or_default();
        let steady = (self.wall + elapsed).duration_since(written).unwrap_or_default();
        by_wall.min(steady)
    }
}

/// A moment that has been, to which times in a session are compared. If it lies in the future, the clock was set back since:
/// then what is written now (within the grace) is no older than that moment. Unix milliseconds.
pub(super) fn past(ms: i64) -> i64 {
    past_at(ms, now_ms())
}

fn past_at(ms: i64, now_ms: i64) -> i64 {
    // What another host wrote may lie a little ahead.
    if ms > now_ms.saturating_add(GRACE_MS) { now_ms - GRACE_MS } else { ms }
}

/// The quiet since somebody else last wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quiet {
    before: Duration,
    since: Instant,
    /// When the file was last looked at: what has come since then is not older.
    looked: Option<Instant>,
}

impl Quiet {
    pub(super) fn begin() -> Quiet {
        Quiet { before: Duration::ZERO, since: Instant::now(), looked: None }
    }

    /// The file was looked at, and what was new in it is known.
    pub(super) fn looked(&mut self) {
        self.looked = Some(Instant::now());
    }

    /// Somebody wrote, so long ago by the file's time.
    pub(super) fn broken(&mut self, age: Duration) {
        let most = self.looked.map_or(Duration::MAX, |looked| looked.elapsed());
        (self.before, self.since) = (age.min(most), Instant::now());
    }

    /// How long it lasts.
    pub(super) fn lasts(&self) -> Duration {
        self.before.saturating_add(self.since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);

    /// A daemon that started at this wall time.
    fn started() -> Steady {
        Steady { began: Instant::now(), wall: SystemTime::UNIX_EPOCH + 1_000_000 * HOUR }
    }

    #[test]
    fn a_clock_that_is_set_forward_makes_nothing_quiet() {
        let steady = started();
        let written = steady.wall + MINUTE;
        let (wall, elapsed) = (written + MINUTE, 2 * MINUTE);
        assert_eq!(steady.age_at(written, wall, elapsed), MINUTE);
        assert_eq!(steady.age_at(written, wall + HOUR, elapsed), MINUTE, "set forward behind the write");
        assert_eq!(steady.age_at(written + HOUR, wall + HOUR, elapsed), Duration::ZERO, "and before it");
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nothing_waiting_for_longer_than_the_quiet_that_is_wanted() {
        let steady = started();
        let written = steady.wall + MINUTE;
        assert_eq!(steady.age_at(written, written - HOUR, 2 * MINUTE), Duration::ZERO);
        let mut quiet = Quiet::begin();
        quiet.broken(Duration::ZERO);
        quiet.since = Instant::now().checked_sub(MINUTE).expect("the machine runs for a minute");
        assert!(quiet.lasts() >= MINUTE, "it grows by the clock that only runs");
    }

    #[test]
    fn behind_a_clock_that_was_set_back_what_is_written_now_is_new() {
        let (then, day_ms) = (1_000 * GRACE_MS, 24 * 60 * 60 * 1000);
        assert_eq!(past_at(then, then + day_ms), then);
        assert_eq!(past_at(then, then - 1000), then, "somebody's clock is a second ahead");
        let now = then - day_ms;
        assert!(past_at(then, now) < now, "what is written now is not older");
    }

    #[test]
    fn what_has_come_since_the_last_look_is_not_older_whatever_its_time_says() {
        let mut quiet = Quiet::begin();
        quiet.broken(HOUR);
        assert!(quiet.lasts() >= HOUR, "met for the first time: the file's time counts");
        quiet.looked();
        quiet.broken(HOUR);
        assert!(quiet.lasts() < HOUR);
    }
}
