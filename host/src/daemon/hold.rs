//! A Pi that cannot be seen, and is there all the same: a graft was misplaced, or passed over by somebody who had not loaded
//! it (product.md section 5). Then the answer to *is a Pi there* is yes for a while, whatever the system shows.

use std::path::Path;
use std::time::Duration;

use pi_session::grafts::News;
use tracing::warn;

use crate::deliver::presence::{Presence, Processes, same_dir};
use crate::deliver::settle::Times;
use crate::files::locate;
use crate::journal::{GraftRecord, Hold};

use super::session::{Session, cwd_of};
use super::world::World;

/// The longest quiet that is waited for after orphans, unless `live-hold` is longer.
const LONGEST: Duration = Duration::from_secs(4 * 60 * 60);
/// Why something waits after a misplaced graft.
const MISPLACED: &str = "somebody wrote at the moment of a graft, so a Pi is there; waiting for live-hold";
/// Why something waits after an orphaned graft.
const ORPHANED: &str =
    "a Pi that cannot be seen has passed over a graft; waiting for live-hold of quiet, doubled each time";

impl Session {
    /// Whether the system shows a Pi that has this session.
    pub(super) fn look(&self, world: &World) -> Presence {
        let cwd = self.tree.header().and_then(|h| h.cwd.clone());
        let cwd = cwd.as_deref().map(Path::new);
        let processes = world.processes();
        processes.presence(cwd, cwd.map_or(0, |cwd| newer_there(&processes, &self.path, cwd)))
    }

    /// How much longer a Pi counts as there although it cannot be seen, and why. What the user says (`--closed`) outranks it.
    pub(super) fn held(&mut self, world: &World) -> Option<(Duration, &'static str)> {
        if world.settings.closed {
            return None;
        }
        let (look, quiet, times) = (self.look(world), self.quiet.lasts(), world.settings.times);
        let now_ms = world.steady_ms();
        let grafts = &mut self.record.grafts;
        if let Some(hold) = &mut grafts.hold {
            hold.over |= look == Presence::Absent && !hold.unseen;
            hold.over |= quiet >= needed(hold, &times);
        }
        let misplaced = (live_for(grafts, now_ms), MISPLACED);
        let orphaned = (still(grafts, quiet, &times), ORPHANED);
        [misplaced, orphaned].into_iter().filter(|(rest, _)| !rest.is_zero()).max()
    }

    /// Somebody's line stands between the place that was checked and ours.
    pub(super) fn note_misplaced(&mut self, world: &World) {
        let hold = i64::try_from(world.settings.times.live_hold.as_millis()).unwrap_or(i64::MAX);
        self.record.grafts.live_until_ms = world.steady_ms().saturating_add(hold);
        warn!(session = %self.path.display(), "misplaced: somebody wrote at the same moment; waiting for live-hold");
    }

    /// Whether a misplaced graft counts still.
    pub(super) fn is_live(&self, world: &World) -> bool {
        !live_for(&self.record.grafts, world.steady_ms()).is_zero()
    }

    /// What a line of Pi's tells of what that Pi had loaded.
    pub(super) fn note_loaded(&mut self, world: &World, news: &News) {
        if news.on_graft {
            self.record.grafts.hold = self.record.grafts.hold.take().filter(|hold| !hold.over);
            self.record.grafts.hold.iter_mut().for_each(|hold| hold.orphans = 0);
        }
        let is_orphan = news.orphaned.iter().any(|graft| !graft.is_rejoin(&self.tree));
        if is_orphan && !self.was_bridged {
            let unseen = self.look(world) == Presence::Absent;
            let hold = self.record.grafts.hold.get_or_insert_default();
            *hold = Hold { orphans: hold.orphans.saturating_add(1), over: false, unseen };
        }
    }

    /// A bridge says how it is. True if something was guessed at until now.
    pub(super) fn forget_holds(&mut self) -> bool {
        let grafts = &mut self.record.grafts;
        let held = grafts.hold.take().is_some() || grafts.live_until_ms != 0;
        grafts.live_until_ms = 0;
        held
    }
}

/// How many sessions of the same working directory are newer, as far as it matters: no more than there are Pis in it. A
/// directory of sessions may hold those of many working directories (S1.2), and files that are no sessions.
#[must_use]
pub fn newer_there(processes: &Processes, path: &Path, cwd: &Path) -> usize {
    let there = processes.in_dir(cwd);
    if there == 0 {
        return 0;
    }
    let works_there = |other: &Path| cwd_of(other).is_some_and(|dir| same_dir(Path::new(&dir), cwd));
    locate::newer_in_dir(path, there, works_there)
}

/// The quiet after which that Pi counts as gone.
fn needed(hold: &Hold, times: &Times) -> Duration {
    let doubled = 2u32.saturating_pow(hold.orphans.saturating_sub(1));
    times.live_hold.saturating_mul(doubled).min(LONGEST.max(times.live_hold))
}

/// What of the quiet after an orphan is missing still.
fn still(grafts: &GraftRecord, quiet: Duration, times: &Times) -> Duration {
    let hold = grafts.hold.as_ref().filter(|hold| !hold.over);
    hold.map_or(Duration::ZERO, |hold| needed(hold, times).saturating_sub(quiet))
}

/// How long a misplaced graft counts still.
fn live_for(grafts: &GraftRecord, now_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(grafts.live_until_ms.saturating_sub(now_ms)).unwrap_or(0))
}

/// What was kept by a daemon whose clock was set back since counts for no longer than if it were of this moment.
pub(super) fn restart(grafts: &mut GraftRecord, now_ms: i64, times: &Times) {
    let hold = i64::try_from(times.live_hold.as_millis()).unwrap_or(i64::MAX);
    grafts.live_until_ms = grafts.live_until_ms.min(now_ms.saturating_add(hold));
}

/// Why a Pi counts as there although it cannot be seen, for `status`.
pub(super) fn why_here(grafts: &GraftRecord, quiet: Duration, now_ms: i64, times: &Times) -> Option<String> {
    let (misplaced, orphaned) = (live_for(grafts, now_ms).as_secs(), still(grafts, quiet, times).as_secs());
    match (grafts.hold.as_ref().map_or(0, |hold| hold.orphans.max(1)), orphaned, misplaced) {
        (orphans @ 1.., 1.., _) => {
            let times = if orphans == 1 { "a graft was".to_owned() } else { format!("grafts were, {orphans} times,") };
            Some(format!("{times} passed over by a Pi that cannot be seen (orphaned); so for {orphaned} s of quiet"))
        }
        (.., 1..) => Some(format!("somebody wrote at the moment of a graft (misplaced); so for {misplaced} s")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_while_no_daemon_ran_keeps_nothing_waiting() {
        let times = Times { settle: Duration::from_secs(2), live_hold: Duration::from_secs(600) };
        let day_ms = 24 * 60 * 60 * 1000;
        let mut grafts = GraftRecord { live_until_ms: 10 * day_ms, ..GraftRecord::default() };
        restart(&mut grafts, 9 * day_ms, &times);
        assert_eq!(live_for(&grafts, 9 * day_ms), times.live_hold, "not for a day and more");
        restart(&mut grafts, 9 * day_ms + 400_000, &times);
        assert_eq!(live_for(&grafts, 9 * day_ms + 400_000).as_secs(), 200, "and what is right stays");
    }

    #[test]
    fn the_quiet_doubles_with_each_orphan_up_to_four_hours() {
        let times = Times { settle: Duration::from_secs(2), live_hold: Duration::from_secs(600) };
        let minutes = |orphans| needed(&Hold { orphans, ..Hold::default() }, &times).as_secs() / 60;
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 99].map(minutes), [10, 10, 20, 40, 80, 160, 240, 240]);
        let longer = Times { live_hold: Duration::from_secs(5 * 60 * 60), ..times };
        assert_eq!(needed(&Hold { orphans: 3, ..Hold::default() }, &longer), longer.live_hold);
    }
}
