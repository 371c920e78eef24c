//! Which entries of a session are grafts, and what became of each: whether Pi ever loaded it (product 5).
//!
//! The file tells it by itself. A graft on which an entry of Pi's hangs is *known*: Pi had it in its memory. One beside
//! which Pi's next entry went is *orphaned*: it was written behind the back of a Pi that never read it. Until Pi's next
//! entry it is neither. A `pi-graft.rejoin` of the host's counts as a graft without drafts.
//!
//! ```text
//! a1 ── R1 n1 ── u2        u2 hangs on the graft: known
//! a1 ┬─ R1 n1              the graft was passed over: orphaned
//!    └─ u2
//! a1 ── R1 n1 ── u2 ── a2  known; u3 branches off before it, which is the user's will
//!    └─ u3
//! ```

use crate::draft::RECEIPT_TYPE;
use crate::entry::EntryKind;
use crate::json::Json;
use crate::receipt::Receipt;
use crate::tree::{EntryIx, Tree};

/// The `customType` of the entry that leads back to the branch of a line that a graft had passed over.
pub const REJOIN_TYPE: &str = "pi-graft.rejoin";

/// What became of a graft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nobody has written behind it yet.
    Unproven,
    /// Pi had it in its memory: an entry of Pi's hangs on it.
    Known,
    /// Pi's next entry went beside it.
    Orphaned,
}

/// One graft in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graft {
    /// Its receipt (or the rejoin).
    pub first: EntryIx,
    /// Its last entry so far.
    pub last: EntryIx,
    /// What became of it.
    pub fate: Fate,
}

impl Graft {
    fn holds(&self, ix: EntryIx) -> bool {
        self.first <= ix && ix <= self.last
    }
}

/// What one entry tells of the grafts before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// It hangs on a graft: whoever wrote it had loaded that.
    pub on_graft: bool,
    /// The grafts that it passed over, in the file's order; a rejoin among them has no receipt.
    pub orphaned: Vec<Graft>,
    /// Pi branched off: it hangs on another entry than the one that Pi stood on before.
    pub branched: bool,
}

/// The grafts of a session, told entry by entry in the file's order.
#[derive(Clone, Debug, Default)]
pub struct Grafts {
    list: Vec<Graft>,
    /// Those before this are known or orphaned.
    settled: usize,
    /// Drafts that may yet follow the last receipt.
    left: u32,
}

impl Grafts {
    /// All of them, in the file's order.
    #[must_use]
    pub fn all(&self) -> &[Graft] {
        &self.list
    }

    /// Whether the entry belongs to a graft that nobody has written behind yet.
    #[must_use]
    pub fn is_unproven(&self, ix: EntryIx) -> bool {
        self.list[self.settled..].iter().any(|graft| graft.holds(ix) && graft.fate == Fate::Unproven)
    }

    /// A Pi says that it stands on `leaf`, so it has loaded every graft on the way to it.
    pub fn seen_from(&mut self, tree: &Tree, leaf: EntryIx) {
        let way = self.way(tree, leaf);
        let unproven = self.list[self.settled..].iter_mut();
        unproven.filter(|graft| way.iter().any(|ix| graft.holds(*ix))).for_each(|graft| graft.fate = Fate::Known);
    }

    /// Takes in the newest entry of `tree`, whose line is `line`.
    pub fn note(&mut self, tree: &Tree, ix: EntryIx, line: &[u8]) -> News {
        let entry = tree.entry(ix);
        match (entry.kind, tree.word(entry)) {
            (EntryKind::Custom, RECEIPT_TYPE) => {
                let receipt = Json::parse(line).ok().and_then(Receipt::of_entry);
                self.begin(ix, receipt.map_or(0, |receipt| receipt.entries));
                News::default()
            }
            (EntryKind::Custom, REJOIN_TYPE) => {
                let news = self.pass(tree, ix);
                self.begin(ix, 0);
                News { on_graft: false, branched: false, ..news }
            }
            _ if self.is_next_draft(tree, ix) => {
                self.left -= 1;
                self.list.iter_mut().next_back().into_iter().for_each(|graft| graft.last = ix);
                News::default()
            }
            _ => self.pass(tree, ix),
        }
    }

    fn begin(&mut self, ix: EntryIx, drafts: u32) {
        self.list.push(Graft { first: ix, last: ix, fate: Fate::Unproven });
        self.left = drafts;
    }

    fn is_next_draft(&self, tree: &Tree, ix: EntryIx) -> bool {
        use EntryKind::{Compaction, ContextEdit, Custom, CustomMessage};
        let kind = tree.entry(ix).kind;
        let fits = self.left > 0 && matches!(kind, Custom | CustomMessage | Compaction | ContextEdit);
        fits && self.list.last().is_some_and(|graft| tree.parent(ix) == Some(graft.last))
    }

    /// An entry that belongs to no graft: those that were unproven are known now, or orphaned.
    fn pass(&mut self, tree: &Tree, ix: EntryIx) -> News {
        let way = self.way(tree, ix);
        let parent = tree.parent(ix);
        let mut orphaned = Vec::new();
        for graft in &mut self.list[self.settled..] {
            if way.iter().any(|ix| graft.holds(*ix)) {
                graft.fate = Fate::Known;
            } else if graft.fate == Fate::Unproven {
                graft.fate = Fate::Orphaned;
                orphaned.push(*graft);
            }
        }
        let on_graft = parent.is_some_and(|parent| self.list[self.settled..].iter().any(|graft| graft.holds(parent)));
        let branched = parent != came_from(tree, ix, &orphaned);
        (self.settled, self.left) = (self.list.len(), 0);
        News { on_graft, orphaned, branched }
    }

    /// The way up from `ix` to where the unproven grafts begin. Nobody but us has written since, so it is short.
    fn way(&self, tree: &Tree, ix: EntryIx) -> Vec<EntryIx> {
        let Some(first) = self.list.get(self.settled).map(|graft| graft.first) else { return Vec::new() };
        let most = ix.index().saturating_sub(first.index()) + 1;
        tree.up_from(ix).take(most).take_while(|ix| *ix >= first).collect()
    }
}

/// The entry that Pi stood on before it wrote `ix`: the one before it in the file, grafts that it passed over apart.
fn came_from(tree: &Tree, ix: EntryIx, orphaned: &[Graft]) -> Option<EntryIx> {
    let before = ix.index().checked_sub(1).and_then(|at| tree.all().nth(at));
    orphaned.iter().rev().fold(before, |at, graft| match at {
        Some(at) if graft.holds(at) => tree.parent(graft.first),
        at => at,
    })
}
