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
//! a1                       half a line of somebody's came right before our write, and R1 is glued to it: n1 hangs on
//! n1                       nothing, and is loose. So is a graft whose receipt hangs on a line that is not there any more
//! ```

use crate::branch::BranchError;
use crate::draft::RECEIPT_TYPE;
use crate::entry::EntryKind;
use crate::glued;
use crate::json::Json;
use crate::receipt::{Receipt, draft_of};
use crate::tree::{EntryIx, Source, Tree};
use crate::undo;

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
    /// Its receipt (or the rejoin), or its first draft where the receipt was lost.
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

    fn known(&mut self) -> Graft {
        self.fate = Fate::Known;
        *self
    }

    /// Whether it merely leads back to a branch.
    #[must_use]
    pub fn is_rejoin(&self, tree: &Tree) -> bool {
        tree.word(tree.entry(self.first)) == REJOIN_TYPE
    }

    /// Whether it hangs on a line that is not in the file: who opens a file that ends in it begins with an empty context.
    #[must_use]
    pub fn is_loose(&self, tree: &Tree) -> bool {
        tree.entry(self.first).parent.is_some() && tree.parent(self.first).is_none()
    }

    /// Bytes of its lines.
    #[must_use]
    pub fn bytes(&self, tree: &Tree) -> u64 {
        self.entries(tree).map(|ix| u64::from(tree.entry(ix).len)).sum()
    }

    /// The entries that its edits name.
    pub fn targets<'t>(&self, tree: &'t Tree) -> impl Iterator<Item = EntryIx> + use<'t> {
        let edits = self.entries(tree).map(|ix| tree.entry(ix)).filter(|entry| entry.kind == EntryKind::ContextEdit);
        edits.filter_map(|entry| tree.current(entry.names?))
    }

    /// What it was made of, told by itself: its receipt, and the drafts behind that are in the file, as JSON. None of a
    /// rejoin, and where the receipt cannot be read.
    ///
    /// # Errors
    /// [`BranchError`] if the text is not what was indexed.
    pub fn told(&self, tree: &Tree, source: &dyn Source) -> Result<Option<(Receipt, Vec<String>)>, BranchError> {
        let Some(receipt) = read(tree, source, self.first, Receipt::of_entry)? else { return Ok(None) };
        Ok(Some((receipt, self.drafts(tree, source, 1)?)))
    }

    /// The drafts that are in the file, behind so many entries of it, as JSON.
    fn drafts(&self, tree: &Tree, source: &dyn Source, behind: usize) -> Result<Vec<String>, BranchError> {
        let mut drafts = Vec::new();
        for ix in self.entries(tree).skip(behind) {
            drafts.extend(read(tree, source, ix, draft_of)?);
        }
        Ok(drafts)
    }

    fn entries<'t>(&self, tree: &'t Tree) -> impl Iterator<Item = EntryIx> + use<'t> {
        tree.all().skip(self.first.index()).take(self.last.index() + 1 - self.first.index())
    }
}

/// The entry before one in the file's order.
fn before(ix: EntryIx) -> Option<EntryIx> {
    ix.0.checked_sub(1).map(EntryIx)
}

/// Whether an entry names this id as its parent.
fn hangs_on(tree: &Tree, ix: EntryIx, id: &str) -> bool {
    tree.entry(ix).parent.is_some_and(|parent| tree.id_text(parent) == id)
}

/// What `look` makes of the line of an entry.
pub(crate) fn read<T>(
    tree: &Tree,
    source: &dyn Source,
    ix: EntryIx,
    look: impl FnOnce(Json<'_>) -> Option<T>,
) -> Result<Option<T>, BranchError> {
    let entry = tree.entry(ix);
    let line = source.read(entry.offset, entry.len as usize)?;
    let json = Json::parse(&line).map_err(|reason| BranchError::Changed { offset: entry.offset, reason })?;
    Ok(look(json))
}

/// What one entry tells of the grafts before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// It hangs on a graft: whoever wrote it had loaded that.
    pub on_graft: bool,
    /// The grafts that are known from it on, in the file's order.
    pub known: Vec<Graft>,
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
    /// The plugins whose work was taken back, and by which receipt.
    undone: Vec<(String, EntryIx)>,
    /// The last receipt that is no entry, for it is glued to half a line: its id, and what it says.
    lost: Option<(String, Receipt)>,
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

    /// Whether the entry is the last one of the newest graft.
    #[must_use]
    pub fn ends_in(&self, ix: EntryIx) -> bool {
        self.list.last().is_some_and(|graft| graft.last == ix)
    }

    /// The graft that an entry belongs to.
    #[must_use]
    pub fn of(&self, ix: EntryIx) -> Option<&Graft> {
        let behind = self.list.partition_point(|graft| graft.first <= ix);
        self.list[..behind].last().filter(|graft| graft.holds(ix))
    }

    /// Whether no plugin's work was taken back.
    #[must_use]
    pub fn is_nothing_undone(&self) -> bool {
        self.undone.is_empty()
    }

    /// The newest receipt that takes back what this plugin did for `trigger`: it stands behind it.
    #[must_use]
    pub fn undone_by(&self, tree: &Tree, plugin: &str, trigger: EntryIx) -> Option<EntryIx> {
        let of_plugin = self.undone.iter().rev().filter(|(name, _)| name == plugin).map(|(_, by)| *by);
        let is_above = |by: &EntryIx| {
            let most = by.index().saturating_sub(trigger.index()) + 1;
            tree.up_from(*by).take(most).take_while(|ix| *ix >= trigger).any(|ix| ix == trigger)
        };
        of_plugin.into_iter().find(is_above)
    }

    /// What a graft was made of, as [`Graft::told`], also where its receipt is the last that was lost.
    ///
    /// # Errors
    /// [`BranchError`] if the text is not what was indexed.
    pub fn told(
        &self,
        graft: &Graft,
        tree: &Tree,
        source: &dyn Source,
    ) -> Result<Option<(Receipt, Vec<String>)>, BranchError> {
        match &self.lost {
            Some((id, receipt)) if hangs_on(tree, graft.first, id) => {
                Ok(Some((receipt.clone(), graft.drafts(tree, source, 0)?)))
            }
            _ => graft.told(tree, source),
        }
    }

    /// A Pi says that it stands on `leaf`, so it has loaded every graft on the way to it. Gives those of which that is news.
    pub fn seen_from(&mut self, tree: &Tree, leaf: EntryIx) -> Vec<Graft> {
        let way = self.way(tree, leaf);
        let unproven = self.list[self.settled..].iter_mut().filter(|graft| graft.fate == Fate::Unproven);
        let seen = unproven.filter(|graft| way.iter().any(|ix| graft.holds(*ix)));
        seen.map(|graft| graft.known()).collect()
    }

    /// The file ends in grafts that nobody has written behind yet, and the line of somebody else's before them is not on
    /// their branch: they are misplaced, and that line would be off the branch at the next open. Gives that line; of a loose
    /// graft, the entry before it.
    #[must_use]
    pub fn passed_over(&self, tree: &Tree) -> Option<EntryIx> {
        let last = tree.all().next_back()?;
        if let Some(graft) = self.of(last).filter(|graft| graft.is_loose(tree)) {
            return before(graft.first);
        }
        let first = self.list[self.settled..].iter().find(|graft| graft.fate == Fate::Unproven)?;
        let over = self.before(first)?;
        let most = last.index() - over.index() + 1;
        let is_on_it = tree.up_from(last).take(most).take_while(|ix| *ix >= over).any(|ix| ix == over);
        (!is_on_it).then_some(over)
    }

    /// The entry before a graft in the file's order, other grafts apart.
    fn before(&self, graft: &Graft) -> Option<EntryIx> {
        let mut at = before(graft.first)?;
        while let Some(other) = self.of(at) {
            at = before(other.first)?;
        }
        Some(at)
    }

    /// Takes in the newest entry of `tree`, whose line is `line`.
    pub fn note(&mut self, tree: &Tree, ix: EntryIx, line: &[u8]) -> News {
        let entry = tree.entry(ix);
        match (entry.kind, tree.word(entry)) {
            (EntryKind::Custom, RECEIPT_TYPE) => {
                let receipt = Json::parse(line).ok().and_then(Receipt::of_entry);
                self.begin(ix, receipt.as_ref().map_or(0, |receipt| receipt.entries));
                let undo = receipt.filter(|receipt| receipt.handler == undo::HANDLER);
                self.undone.extend(undo.map(|undo| (undo.plugin, ix)));
                News::default()
            }
            (EntryKind::Custom, REJOIN_TYPE) => {
                let news = self.pass(tree, ix, false);
                self.begin(ix, 0);
                News { on_graft: false, branched: false, ..news }
            }
            _ if self.is_next_draft(tree, ix) => {
                self.left -= 1;
                self.list.iter_mut().next_back().into_iter().for_each(|graft| graft.last = ix);
                News::default()
            }
            _ if self.is_behind_lost(tree, ix) => {
                let entries = self.lost.as_ref().map_or(0, |(_, receipt)| receipt.entries);
                self.begin(ix, entries.saturating_sub(1));
                News::default()
            }
            _ => self.pass(tree, ix, true),
        }
    }

    /// Takes in a line that is no entry: a receipt may be glued to what it begins with.
    pub fn note_bad(&mut self, line: &[u8]) {
        let is_named = memchr::memmem::find(line, RECEIPT_TYPE.as_bytes()).is_some();
        let Some(at) = glued::on(line).filter(|_| is_named) else { return };
        let Ok(entry) = Json::parse(&line[at as usize..]) else { return };
        let id = entry.get("id").and_then(Json::as_str).map(|id| id.into_owned());
        self.lost = id.zip(Receipt::of_entry(entry)).or(self.lost.take());
    }

    fn is_behind_lost(&self, tree: &Tree, ix: EntryIx) -> bool {
        self.lost.as_ref().is_some_and(|(id, _)| hangs_on(tree, ix, id) && tree.parent(ix).is_none())
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

    /// An entry that belongs to no graft: those that were unproven are orphaned now, or known, unless it is one of ours, which
    /// `proves` nothing.
    fn pass(&mut self, tree: &Tree, ix: EntryIx, proves: bool) -> News {
        let way = self.way(tree, ix);
        let parent = tree.parent(ix);
        let (mut known, mut orphaned) = (Vec::new(), Vec::new());
        for graft in &mut self.list[self.settled..] {
            match (way.iter().any(|ix| graft.holds(*ix)), graft.fate) {
                (true, Fate::Unproven) if proves => known.push(graft.known()),
                (false, Fate::Unproven) => {
                    graft.fate = Fate::Orphaned;
                    orphaned.push(*graft);
                }
                _ => {}
            }
        }
        let on_graft = parent.is_some_and(|parent| self.list[self.settled..].iter().any(|graft| graft.holds(parent)));
        let branched = parent != self.came_from(ix);
        let unproven = self.list[self.settled..].iter().position(|graft| graft.fate == Fate::Unproven);
        self.settled = unproven.map_or(self.list.len(), |at| self.settled + at);
        self.left = 0;
        News { on_graft, known, orphaned, branched }
    }

    /// The entry that Pi stood on before it wrote `ix`: the one before it in the file, grafts that it passed over apart.
    fn came_from(&self, ix: EntryIx) -> Option<EntryIx> {
        let mut at = before(ix)?;
        while let Some(graft) = self.of(at).filter(|graft| graft.fate == Fate::Orphaned) {
            at = before(graft.first)?;
        }
        Some(at)
    }

    /// The way up from `ix` to where the unproven grafts begin. Nobody but us has written since, so it is short.
    fn way(&self, tree: &Tree, ix: EntryIx) -> Vec<EntryIx> {
        let Some(first) = self.list.get(self.settled).map(|graft| graft.first) else { return Vec::new() };
        let most = ix.index().saturating_sub(first.index()) + 1;
        tree.up_from(ix).take(most).take_while(|ix| *ix >= first).collect()
    }
}
