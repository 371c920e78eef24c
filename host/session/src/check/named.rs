//! What entries name: the targets of edits and labels, the first kept entries of compactions (S4.6, S6.1, S7, S8.4).

use super::Check;
use crate::entry::{Entry, EntryKind, Replacement, Role};
use crate::finding::Finding;
use crate::tree::EntryIx;

/// What `fromId` says where the branch was left before its first entry (S8.4).
const NO_ORIGIN: &str = "root";

impl Check<'_> {
    pub(super) fn named(&mut self) {
        for ix in self.tree.all() {
            let entry = self.tree.entry(ix);
            match entry.kind {
                EntryKind::Compaction => self.compaction(ix, entry),
                EntryKind::ContextEdit => self.edit(ix, entry),
                EntryKind::Label if self.named_by(entry).is_none() => self.note(Finding::UnknownLabelled, ix),
                EntryKind::BranchSummary => self.origin(ix, entry),
                _ => {}
            }
        }
    }

    fn named_by(&self, entry: &Entry) -> Option<EntryIx> {
        entry.names.and_then(|id| self.tree.current(id))
    }

    /// The id that an entry names, for a message.
    fn name(&self, entry: &Entry) -> String {
        entry.names.map_or_else(String::new, |id| format!(" {:?}", self.tree.id_text(id)))
    }

    fn compaction(&mut self, ix: EntryIx, entry: &Entry) {
        if self.order.compaction_close_above(ix).is_some() {
            self.note(Finding::CompactionTwice, ix);
        }
        if entry.names.is_none() {
            return self.note(Finding::NoFirstKept, ix);
        }
        let message = match self.named_by(entry) {
            Some(kept) if self.order.is_on_path(kept, ix) || kept == ix => return,
            Some(_) => "is not on the path to the compaction",
            None => "is not in the file",
        };
        let message = format!("the first kept entry{} {message}", self.name(entry));
        self.note_as(Finding::KeptOffPath, ix, message);
    }

    fn origin(&mut self, ix: EntryIx, entry: &Entry) {
        let is_root = entry.names.is_some_and(|id| self.tree.id_text(id) == NO_ORIGIN);
        if !is_root && self.named_by(entry).is_none() {
            self.note(Finding::UnknownOrigin, ix);
        }
    }

    fn edit(&mut self, ix: EntryIx, edit: &Entry) {
        if let Some(finding) = self.edit_finding(ix, edit) {
            let message = format!("{}:{}", finding.what(), self.name(edit));
            self.note_as(finding, ix, message);
        }
    }

    fn edit_finding(&self, ix: EntryIx, edit: &Entry) -> Option<Finding> {
        let Some(target) = self.named_by(edit) else { return Some(Finding::UnknownTarget) };
        if !self.order.is_on_path(target, ix) {
            return Some(Finding::TargetOffPath);
        }
        if self.is_hidden(target, ix) {
            return Some(Finding::TargetHidden);
        }
        let entry = self.tree.entry(target);
        match (entry.kind, entry.role) {
            (EntryKind::CustomMessage, _) | (EntryKind::Message, Role::User | Role::Assistant | Role::ToolResult) => {
                None
            }
            _ if !entry.gives => Some(Finding::TargetSilent),
            (_, role) if edit.replacement == Replacement::Omit || role.takes_replacement() => {
                Some(Finding::TargetUnfit)
            }
            _ => Some(Finding::TargetSilent),
        }
    }

    /// Whether the last compaction before the edit does not keep its target.
    fn is_hidden(&self, target: EntryIx, edit: EntryIx) -> bool {
        let Some(compaction) = self.order.compaction_above(edit) else { return false };
        let is_before = target != compaction && self.order.is_on_path(target, compaction);
        let kept = self.named_by(self.tree.entry(compaction)).filter(|kept| self.order.is_on_path(*kept, compaction));
        is_before && !kept.is_some_and(|kept| self.order.is_on_path(kept, target))
    }
}
