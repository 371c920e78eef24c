//! Grafts: whether what a receipt of pi-graft speaks of stands behind it (product 4.5).

use std::collections::HashSet;
use std::sync::Arc;

use super::Check;
use crate::branch::BranchError;
use crate::draft::RECEIPT_TYPE;
use crate::entry::EntryKind;
use crate::finding::Finding;
use crate::json::Json;
use crate::receipt::{self, Receipt};
use crate::tree::{EntryIx, Source};

impl Check<'_> {
    pub(super) fn receipts(&mut self, source: &Arc<dyn Source>) -> Result<(), BranchError> {
        let (mut open, mut continued) = (Vec::new(), HashSet::new());
        for ix in self.tree.all() {
            let own = self.is_receipt(ix);
            if !own && self.tree.entry(ix).kind != EntryKind::Compaction {
                continue;
            }
            match self.read(source, ix, Receipt::of_entry)? {
                Some(receipt) => {
                    if !self.is_whole(source, ix, &receipt)? {
                        open.push((ix, receipt.batch.clone()));
                    }
                    continued.extend(receipt.continues);
                }
                None if own => self.note(Finding::ReceiptUnread, ix),
                None => {}
            }
        }
        for (ix, _) in open.iter().filter(|(_, batch)| !continued.contains(batch)) {
            self.note(Finding::ReceiptIncomplete, *ix);
        }
        Ok(())
    }

    fn is_receipt(&self, ix: EntryIx) -> bool {
        let entry = self.tree.entry(ix);
        entry.kind == EntryKind::Custom && self.tree.word(entry) == RECEIPT_TYPE
    }

    fn read<T>(&self, source: &Arc<dyn Source>, ix: EntryIx, look: impl Fn(Json<'_>) -> T) -> Result<T, BranchError> {
        let entry = self.tree.entry(ix);
        let line = source.read(entry.offset, entry.len as usize)?;
        let offset = entry.offset;
        let json = Json::parse(&line).map_err(|reason| BranchError::Changed { offset, reason })?;
        Ok(look(json))
    }

    /// Whether the entries on the way down from a receipt are, up to its number, what it speaks of. The ways of several
    /// receipts have no entry in common, so all of them together cost no more than the entries.
    fn is_whole(&self, source: &Arc<dyn Source>, ix: EntryIx, receipt: &Receipt) -> Result<bool, BranchError> {
        if !self.is_receipt(ix) {
            return Ok(receipt::is_whole(receipt, vec![self.read(source, ix, receipt::content)?]));
        }
        let (mut contents, mut at) = (Vec::new(), ix);
        while (contents.len() as u64) < u64::from(receipt.entries) {
            let is_of_batch =
                |ix: &EntryIx| receipt::may_be_grafted(self.tree.entry(*ix).kind) && !self.is_receipt(*ix);
            let Some(next) = self.order.children(at).find(is_of_batch) else { break };
            contents.push(self.read(source, next, receipt::content)?);
            at = next;
        }
        Ok(receipt::is_whole(receipt, contents))
    }
}
