//! Making good what is only half there: a receipt on the branch that lacks some of its drafts (product.md 4.5).
//!
//! It comes from a write that was cut short and written behind, or from a Pi whose disk was full. What did land stays; the
//! drafts that are missing become a batch that says which one it continues. What no longer holds is told when it is
//! delivered.

use pi_session::branch::Branch;
use pi_session::draft::Draft;
use pi_session::receipt::{self, Found};
use tracing::{info, warn};

use crate::journal::{Batch, PI_HAS_IT, Recorded, RunRecord};

use super::dispatch::batch_id;
use super::session::{Session, StepError};
use super::world::{World, now_ms};

impl Session {
    /// Marks done what is on the branch with all that its receipt speaks of.
    pub(super) fn take_in(&mut self, world: &World, branch: &Branch) -> Result<(), StepError> {
        for recorded in self.pending.clone() {
            if receipts(branch, recorded.batch())?.iter().any(|found| found.complete) {
                self.taken(world, recorded.batch())?;
            }
        }
        Ok(())
    }

    /// The same; and of a batch whose receipt lacks some drafts, those become one that continues it. Only while nobody is
    /// writing it: a Pi appends its drafts one by one.
    pub(super) fn make_good(&mut self, world: &World, branch: &Branch) -> Result<(), StepError> {
        for recorded in self.pending.clone() {
            let (batch, found) = (recorded.batch(), receipts(branch, recorded.batch())?);
            if found.iter().any(|found| found.complete) {
                self.taken(world, batch)?;
            } else {
                self.go_on_with(world, &recorded, branch, &halves(&found, batch))?;
            }
        }
        Ok(())
    }

    pub(super) fn taken(&mut self, world: &World, batch: &Batch) -> Result<(), StepError> {
        let session = self.path.display();
        if self.record.bridged.is_empty() {
            info!(%session, batch = batch.id, "done: the file already holds its receipt");
            self.note(batch, "grafted", "the file already holds its receipt");
        } else {
            info!(%session, batch = batch.id, "grafted: Pi has taken it");
            self.tally.grafted += 1;
            self.note(batch, "grafted", PI_HAS_IT);
        }
        self.drop_pending(world, &batch.id)
    }

    fn go_on_with(
        &mut self,
        world: &World,
        half: &Recorded,
        branch: &Branch,
        halves: &[&Found],
    ) -> Result<(), StepError> {
        let Some(first) = halves.first().map(|found| &found.receipt.batch) else { return Ok(()) };
        let (batch, places) = (half.batch(), halves.iter().map(|found| found.place).collect::<Vec<_>>());
        // What cannot be read as drafts any more is told as stale when it is delivered.
        let Ok(drafts) = Draft::list_from_json(&batch.drafts) else { return Ok(()) };
        let missing = receipt::missing_behind(branch, &places, &drafts)?;
        if missing.is_empty() {
            return self.taken(world, batch);
        }
        if missing.len() == drafts.len() && *first != batch.id {
            return Ok(());
        }
        let missing: Vec<String> = missing.iter().map(|index| drafts[*index as usize].to_json()).collect();
        let (id, made_ms, continues) = (batch_id(), now_ms(), Some(first.clone()));
        let rest = Batch { id, made_ms, continues, drafts: format!("[{}]", missing.join(",")), ..batch.clone() };
        let text = format!("{} of {} drafts are missing; batch {} brings them", missing.len(), drafts.len(), rest.id);
        warn!(session = %self.path.display(), batch = batch.id, "torn: {text}");
        self.note(batch, "torn", text);
        let (at_ms, session, why) =
            (now_ms(), &self.record.session_id, format!("what is missing of batch {}", batch.id));
        self.runs.push(RunRecord::of_batch(at_ms, session, &rest, "continues", why).with_drafts(&rest.drafts));
        let rest = world.journal.replace(half, rest)?;
        crate::steps::reached("replaced");
        self.pending.iter_mut().filter(|known| *known == half).for_each(|known| *known = rest.clone());
        Ok(())
    }
}

/// The receipts of which a batch can be the rest: its own, or, for one of a store that does not know of it, those of what
/// another store proposed for the same trigger and could not finish.
fn halves<'a>(found: &'a [Found], batch: &Batch) -> Vec<&'a Found> {
    let own: Vec<&Found> = found.iter().filter(|found| found.receipt.batch == batch.id).collect();
    if own.is_empty() && batch.continues.is_none() { found.iter().collect() } else { own }
}

fn receipts(branch: &Branch, batch: &Batch) -> Result<Vec<Found>, StepError> {
    Ok(receipt::receipts_of(branch, &batch.plugin, batch.handler.as_str(), &batch.trigger)?)
}
