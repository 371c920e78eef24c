//! What the user has taken back (`pi-graft undo`) does not come back: neither offered again on another branch or in a fork,
//! nor from what waits. The file says it by itself, so a lost store changes nothing.

use pi_session::branch::Branch;
use pi_session::grafts::{Graft, Grafts};
use pi_session::tree::{EntryIx, Tree};
use pi_session::undo;
use tracing::{info, warn};

use crate::journal::Batch;

use super::session::{Session, StepError};
use super::world::World;

impl Session {
    /// What a plugin made, or asked to be run for, before its work was taken back is given up.
    pub(super) fn drop_undone(&mut self, world: &World) -> Result<(), StepError> {
        let grafts = &self.lineage.grafts;
        if grafts.is_nothing_undone() {
            return Ok(());
        }
        let by = |plugin: &str, trigger: &str| grafts.undone_by(&self.tree, plugin, self.tree.by_id(trigger)?);
        let is_before = |made_ms: i64, by: EntryIx| self.tree.entry(by).time_ms.is_none_or(|at| made_ms <= at);
        let is_undone =
            |batch: &&Batch| by(&batch.plugin, &batch.trigger).is_some_and(|by| is_before(batch.made_ms, by));
        let gone: Vec<Batch> = self.pending.iter().map(|r| r.batch()).filter(is_undone).cloned().collect();
        let later = std::mem::take(&mut self.record.later);
        self.record.later = later.into_iter().filter(|note| by(&note.plugin, &note.trigger).is_none()).collect();
        for batch in gone {
            info!(session = %self.path.display(), batch = batch.id, "dropped: the user has undone its plugin here");
            self.drop_pending(world, &batch.id)?;
            self.note(&batch, "dropped", "the user has undone its plugin here");
        }
        Ok(())
    }

    /// Pi went on beside what takes a plugin's work back. That is the user's own, and not offered again.
    pub(super) fn pass_over_undo(&self, here: &Branch, graft: &Graft) -> Result<(), StepError> {
        let told = graft.told(&self.tree, self.source().as_ref())?.map(|(receipt, _)| receipt);
        if let Some(receipt) = told.filter(|receipt| receipt.handler == undo::HANDLER) {
            let (session, beside) = (self.path.display(), here.leaf_id().unwrap_or_default());
            let plugin = receipt.plugin;
            warn!(%session, plugin, beside, "orphaned: Pi had not loaded that it is undone; `pi-graft undo` does it anew");
        }
        Ok(())
    }
}

/// Whether the user has taken back what this graft of the tree did.
pub(super) fn is_undone(grafts: &Grafts, tree: &Tree, graft: &Graft, batch: &Batch) -> bool {
    let by = tree.by_id(&batch.trigger).and_then(|trigger| grafts.undone_by(tree, &batch.plugin, trigger));
    by.is_some_and(|by| by > graft.first)
}
