//! Pending batches whose trigger is not in the file any more: it was shortened, or another one was put in its place.
//!
//! They are kept as long as those of a file that is gone, for a backup that is put back brings the entry back, and its runs
//! are not made again. The log says so when it is noticed, and when they are given up.

use tracing::{info, warn};

use crate::journal::Batch;

use super::KEEP_GONE_MS;
use super::session::{Session, StepError};
use super::world::World;

impl Session {
    /// Notes since when something is pending for entries that are not there, and gives it up after a long time.
    pub(super) fn watch_lost(&mut self, world: &World) -> Result<(), StepError> {
        let lost = self.lost();
        match (lost.is_empty(), self.record.lost_ms) {
            (true, None) => Ok(()),
            (true, Some(_)) => self.found_again(world),
            (false, None) => self.miss(world, &lost),
            (false, Some(since)) if world.at_most_now_ms().saturating_sub(since) >= KEEP_GONE_MS => {
                self.give_up(world, &lost)
            }
            (false, Some(_)) => Ok(()),
        }
    }

    fn lost(&self) -> Vec<Batch> {
        let unended = self.record.unended.as_ref().map(|line| line.id.as_str());
        let is_there = |id: &str| unended == Some(id) || self.tree.by_id(id).is_some();
        let batches = self.pending.iter().map(|recorded| recorded.batch());
        batches.filter(|batch| !is_there(&batch.trigger)).cloned().collect()
    }

    fn found_again(&mut self, world: &World) -> Result<(), StepError> {
        info!(session = %self.path.display(), "the entries for which something is pending are in the file again");
        self.record.lost_ms = None;
        self.save(world, Vec::new())
    }

    fn miss(&mut self, world: &World, lost: &[Batch]) -> Result<(), StepError> {
        for batch in lost {
            let trigger = &batch.trigger;
            warn!(session = %self.path.display(), batch = batch.id, trigger, "its entry is not in the file any more; kept for 30 days");
            self.note(
                batch,
                "lost its entry",
                "the entry it was made for is not in the file any more; kept for 30 days",
            );
        }
        self.record.lost_ms = Some(world.at_most_now_ms());
        self.save(world, Vec::new())
    }

    fn give_up(&mut self, world: &World, lost: &[Batch]) -> Result<(), StepError> {
        for batch in lost {
            warn!(session = %self.path.display(), batch = batch.id, "dropped: its entry has not been in the file for 30 days");
            self.drop_pending(world, &batch.id)?;
            self.note(batch, "dropped", "its entry has not been in the file for 30 days");
        }
        Ok(())
    }
}
