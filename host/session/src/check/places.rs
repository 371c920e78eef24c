//! Places in the tree: circles, and times (S8.5, S12.2).

use super::Check;
use crate::entry::EntryKind;
use crate::finding::Finding;
use crate::tree::EntryIx;

impl Check<'_> {
    pub(super) fn places(&mut self) {
        for ix in self.tree.all() {
            let parent = self.tree.parent(ix);
            let time = |ix: EntryIx| self.tree.entry(ix).time_ms;
            // A clone writes labels again behind everything, with the time that they had (S8.6).
            let is_label = self.tree.entry(ix).kind == EntryKind::Label;
            if let (Some(own), Some(before), false) = (time(ix), parent.and_then(time), is_label)
                && own < before
            {
                self.note(Finding::TimeBeforeParent, ix);
            }
        }
        self.circles();
    }

    /// Names each circle once, at its last entry. One of a single entry is told when that is read.
    fn circles(&mut self) {
        const NOT_SEEN: u32 = 0;
        let mut seen = vec![NOT_SEEN; self.tree.entries().len()];
        for (walk, ix) in (1..).zip(self.tree.all()).filter(|(_, ix)| !self.order.is_reached(*ix)).collect::<Vec<_>>() {
            let mut at = ix;
            while seen[at.index()] == NOT_SEEN {
                seen[at.index()] = walk;
                // What no root leads to has a parent that none leads to.
                at = self.tree.parent(at).unwrap_or(at);
            }
            if seen[at.index()] == walk && self.tree.parent(at) != Some(at) {
                self.circle(at);
            }
        }
    }

    fn circle(&mut self, on_it: EntryIx) {
        let parent = |ix: &EntryIx| self.tree.parent(*ix).filter(|parent| *parent != on_it);
        let (mut last, mut len) = (on_it, 0u32);
        for ix in std::iter::successors(Some(on_it), parent) {
            (last, len) = (last.max(ix), len + 1);
        }
        self.note_as(Finding::Cycle, last, format!("its parents lead in a circle of {len} entries"));
    }
}
