//! Batches that were cut off in the file, where the store that knew the rest is lost (product.md 4.5).
//!
//! A receipt says how many drafts follow it and what they add up to, so the file alone tells which one is not whole. What is
//! missing stands nowhere any more. But a run of `on-entry` is a function of the session: it is made again on its entry, also
//! if that is history by now, and what it proposes that does not stand in the file continues the batch ([`super::mend`]).
//! What `on-settled` was given (its wishes, the answers of models) is lost with the store: that is told, and what did land
//! stays.

use pi_session::receipt::{Passing, Receipt};
use pi_session::tree::EntryIx;
use pi_session::undo;
use tracing::warn;

use super::orphans::made_of;
use super::session::Session;
use super::world::World;
use crate::journal::Handler;

/// The receipts of a file behind which not all stands that they speak of.
#[derive(Default)]
pub(super) struct Cut {
    passing: Passing,
    open: Vec<Receipt>,
}

impl Cut {
    /// Takes the next line, and the receipt that it is, if it is the first one of its run.
    pub(super) fn pass(&mut self, line: &[u8], receipt: Option<Receipt>) {
        self.open.extend(receipt);
        if let Some(whole) = self.passing.pass(line) {
            self.open.retain(|open| !open.is_of(&whole.plugin, &whole.handler, &whole.trigger));
        }
    }

    /// Whether the next line may belong to the receipt that passed last.
    pub(super) fn is_open(&self) -> bool {
        self.passing.is_open()
    }

    /// Whether no receipt of this run is whole.
    pub(super) fn has(&self, plugin: &str, handler: Handler, trigger: &str) -> bool {
        self.open.iter().any(|open| open.is_of(plugin, handler.as_str(), trigger))
    }

    fn of_trigger<'a>(&'a self, trigger: &'a str) -> impl Iterator<Item = &'a Receipt> {
        self.open.iter().filter(move |open| open.trigger == trigger)
    }
}

impl Session {
    /// Whether a batch that was made for this entry is cut off in this very session, and nothing is known of it.
    pub(super) fn is_cut_at(&self, ix: EntryIx) -> bool {
        self.cut.of_trigger(self.tree.id(ix)).any(|receipt| !self.knows(receipt)) && !self.is_inherited(ix)
    }

    fn knows(&self, receipt: &Receipt) -> bool {
        let is_it =
            |batch: &crate::journal::Batch| receipt.is_of(&batch.plugin, batch.handler.as_str(), &batch.trigger);
        self.pending.iter().any(|recorded| is_it(recorded.batch()))
    }

    /// Says of what is cut off at this entry what becomes of it.
    pub(super) fn tell_cut(&mut self, world: &World, trigger: &str) {
        let cut = self.cut.of_trigger(trigger).filter(|receipt| !self.knows(receipt));
        for receipt in cut.cloned().collect::<Vec<_>>() {
            let why = format!(
                "it is cut off in the file, and the store that knew the rest is lost; {}",
                remedy(world, &receipt)
            );
            warn!(session = %self.path.display(), batch = receipt.batch, plugin = receipt.plugin, "torn: {why}");
            if let Some(batch) = made_of(receipt, &[]) {
                self.note(&batch, "torn", why);
            }
        }
    }
}

fn remedy(world: &World, receipt: &Receipt) -> &'static str {
    let is_enabled = world.plugins.iter().any(|plugin| plugin.name() == receipt.plugin);
    match receipt.handler.as_str() {
        "on-entry" if is_enabled => "its run is made again, and what is missing continues it",
        "on-entry" => "what did land stays: its plugin is not loaded",
        undo::HANDLER => "`pi-graft undo` writes the rest",
        _ => "what did land stays: what its run was given is lost too",
    }
}
