//! The grafts that a session holds, on whatever branch, as its file tells of them: whose each is, what it is made of, and
//! whether Pi ever loaded it (product 4.5).

use crate::branch::BranchError;
use crate::draft::RECEIPT_TYPE;
use crate::entry::EntryKind;
use crate::grafts::{Fate, Grafts, read};
use crate::receipt::{Receipt, content, draft_of, is_whole};
use crate::tree::{EntryIx, Source, Tree};
use crate::undo;

/// One graft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grafted {
    /// What it says of itself.
    pub receipt: Receipt,
    /// Its receipt; of one that a bridge handed over in place of Pi's own compaction, that compaction.
    pub first: EntryIx,
    /// Its last entry.
    pub last: EntryIx,
    /// The receipt stands in the `details` of the compaction, which is its one draft.
    pub inside: bool,
    /// What became of it.
    pub fate: Fate,
    /// The receipt by which the user has taken it back since ([`crate::undo`]).
    pub undone: Option<EntryIx>,
}

impl Grafted {
    /// Whether an entry belongs to it.
    #[must_use]
    pub fn holds(&self, ix: EntryIx) -> bool {
        self.first <= ix && ix <= self.last
    }

    /// Its entries, the receipt apart.
    pub fn entries<'t>(&self, tree: &'t Tree) -> impl Iterator<Item = EntryIx> + use<'t> {
        let (skip, last) = (self.first.index() + usize::from(!self.inside), self.last.index());
        tree.all().skip(skip).take((last + 1).saturating_sub(skip))
    }

    /// What of its batch is in the file, as JSON, in the file's order.
    ///
    /// # Errors
    /// [`BranchError`] if the text is not what was indexed.
    pub fn drafts(&self, tree: &Tree, source: &dyn Source) -> Result<Vec<String>, BranchError> {
        let mut drafts = Vec::new();
        for ix in self.entries(tree) {
            drafts.extend(read(tree, source, ix, draft_of)?);
        }
        Ok(drafts)
    }

    /// Whether what is in the file is, by the receipt's own sum, all that it speaks of.
    ///
    /// # Errors
    /// [`BranchError`] if the text is not what was indexed.
    pub fn is_whole(&self, tree: &Tree, source: &dyn Source) -> Result<bool, BranchError> {
        let contents = self.entries(tree).map(|ix| read(tree, source, ix, content));
        Ok(is_whole(&self.receipt, contents.collect::<Result<_, _>>()?))
    }
}

/// All grafts of a session in the file's order. Reads their receipts and every compaction, nothing else.
///
/// # Errors
/// [`BranchError`] if the text is not what was indexed.
pub fn all(tree: &Tree, source: &dyn Source) -> Result<Vec<Grafted>, BranchError> {
    let (mut grafts, mut found) = (Grafts::default(), Vec::new());
    for ix in tree.all() {
        let entry = tree.entry(ix);
        let is_receipt = entry.kind == EntryKind::Custom && tree.word(entry) == RECEIPT_TYPE;
        let line = if is_receipt { source.read(entry.offset, entry.len as usize)? } else { (&[][..]).into() };
        grafts.note(tree, ix, &line);
        let is_other = entry.kind == EntryKind::Compaction && grafts.of(ix).is_none();
        if let Some(receipt) = if is_other { read(tree, source, ix, Receipt::of_entry)? } else { None } {
            found.push(Grafted { receipt, first: ix, last: ix, inside: true, fate: Fate::Known, undone: None });
        }
    }
    for graft in grafts.all() {
        let receipt = read(tree, source, graft.first, Receipt::of_entry)?;
        let (first, last, fate) = (graft.first, graft.last, graft.fate);
        found.extend(receipt.map(|receipt| Grafted { receipt, first, last, inside: false, fate, undone: None }));
    }
    found.sort_by_key(|graft| graft.first);
    if !grafts.is_nothing_undone() {
        found.iter_mut().for_each(|graft| graft.undone = undone(graft, &grafts, tree));
    }
    Ok(found)
}

fn undone(graft: &Grafted, grafts: &Grafts, tree: &Tree) -> Option<EntryIx> {
    let trigger = tree.by_id(&graft.receipt.trigger).filter(|_| graft.receipt.handler != undo::HANDLER)?;
    grafts.undone_by(tree, &graft.receipt.plugin, trigger).filter(|by| *by > graft.first)
}
