//! The path to a leaf, root first, and behind it what is not in the file yet.
//!
//! A proposal is judged, and a later plugin runs, on the branch *plus* what is pending: so pending drafts stand here behind
//! the newest entry as if they had been appended (product.md 4.4). They have no id, and nothing can name them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::entry::{Entry, EntryKind, IdIx};
use crate::facts;
use crate::header::Version;
use crate::json::{Json, JsonError};
use crate::tree::{EntryIx, Leaf, Source, SourceError, Tree};
use crate::walk::{self, Line};

/// Why there is no branch, or its text cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchError {
    /// Following the parents leads back to the same entry: Pi eats gigabytes and dies on it (S8.5).
    #[error("S8.5: the parents of {0} lead in a circle; Pi cannot open this session at that leaf")]
    Cycle(String),
    /// The file does not give the text back.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The text is not what was indexed: the file was changed in place.
    #[error("the line at byte {offset} is not what was read before ({reason}); read the file anew")]
    Changed {
        /// Offset of the line, bytes.
        offset: u64,
        /// What the scanner said.
        reason: JsonError,
    },
}

/// Where a draft on the branch comes from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Origin {
    /// The plugin's name.
    pub plugin: String,
    /// The batch it belongs to; empty for what the run itself proposed so far.
    pub batch: String,
}

/// A draft that stands on the branch without being in the file.
#[derive(Clone, Debug)]
struct Extra {
    facts: Entry,
    word: Box<str>,
    text: Arc<str>,
    origin: Arc<Origin>,
}

/// The path to a leaf.
#[derive(Clone)]
pub struct Branch {
    tree: Arc<Tree>,
    source: Arc<dyn Source>,
    path: Arc<Vec<EntryIx>>,
    extra: Vec<Extra>,
}

impl std::fmt::Debug for Branch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Branch").field("leaf", &self.leaf_id()).field("len", &self.len()).finish_non_exhaustive()
    }
}

/// One entry of a branch.
#[derive(Clone, Copy, Debug)]
pub struct Item<'b> {
    /// Its place along the branch, from 0, root first.
    pub place: u32,
    /// Its id; none while it is pending.
    pub id: Option<&'b str>,
    /// The id of the entry before it on the branch.
    pub parent_id: Option<&'b str>,
    /// Its facts.
    pub facts: &'b Entry,
    /// Its `customType`, or the type or role that has no name here.
    pub word: &'b str,
    /// Who proposed it, if it is not in the file.
    pub pending: Option<&'b Origin>,
}

impl Branch {
    /// The branch that ends in `leaf`; none is the empty branch before the first entry. Costs nothing for the leaf that
    /// the file ends in, else the length of the path.
    ///
    /// # Errors
    /// [`BranchError::Cycle`] (S8.5).
    pub fn at(tree: &Arc<Tree>, source: Arc<dyn Source>, leaf: Option<EntryIx>) -> Result<Branch, BranchError> {
        let kept = tree.leaf_path().filter(|path| path.last().copied() == leaf);
        let path = match kept {
            Some(path) => Arc::clone(path),
            None => Arc::new(walk_up(tree, leaf)?),
        };
        Ok(Branch { tree: Arc::clone(tree), source, path, extra: Vec::new() })
    }

    /// The branch that Pi continues from after loading the file (S8.2); empty where Pi has no leaf.
    ///
    /// # Errors
    /// [`BranchError::Cycle`] (S8.5).
    pub fn of_leaf(tree: &Arc<Tree>, source: Arc<dyn Source>) -> Result<Branch, BranchError> {
        let leaf = match tree.leaf() {
            Leaf::At(ix) => Some(ix),
            Leaf::None | Leaf::NoId => None,
        };
        Branch::at(tree, source, leaf)
    }

    /// The tree it is a path of.
    #[must_use]
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Entries on it, those that are not in the file included.
    #[must_use]
    pub fn len(&self) -> u32 {
        (self.path.len() + self.extra.len()) as u32
    }

    /// Whether there is nothing on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries on it that are in the file: the places below this are theirs.
    #[must_use]
    pub fn in_file(&self) -> u32 {
        self.path.len() as u32
    }

    /// The entry of the tree at a place; none where it is not in the file.
    pub(crate) fn entry_at(&self, place: u32) -> Option<EntryIx> {
        self.path.get(place as usize).copied()
    }

    /// The newest entry that is in the file.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryIx> {
        self.path.last().copied()
    }

    /// Its id.
    #[must_use]
    pub fn leaf_id(&self) -> Option<&str> {
        self.leaf().map(|ix| self.tree.id(ix))
    }

    /// The facts of the entry at a place.
    ///
    /// # Panics
    /// If `place` is not below [`Branch::len`].
    #[must_use]
    pub fn facts(&self, place: u32) -> &Entry {
        let place = place as usize;
        match self.path.get(place) {
            Some(ix) => self.tree.entry(*ix),
            None => &self.extra[place - self.path.len()].facts,
        }
    }

    /// The entry at a place.
    ///
    /// # Panics
    /// If `place` is not below [`Branch::len`].
    #[must_use]
    pub fn item(&self, place: u32) -> Item<'_> {
        let at = place as usize;
        let before = at.checked_sub(1).and_then(|i| self.path.get(i)).map(|ix| self.tree.id(*ix));
        match self.path.get(at) {
            Some(ix) => {
                let facts = self.tree.entry(*ix);
                let (id, word) = (Some(self.tree.id(*ix)), self.tree.word(facts));
                Item { place, id, parent_id: before, facts, word, pending: None }
            }
            None => {
                let extra = &self.extra[at - self.path.len()];
                let pending = Some(extra.origin.as_ref());
                Item { place, id: None, parent_id: before, facts: &extra.facts, word: &extra.word, pending }
            }
        }
    }

    /// All entries, root first.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = Item<'_>> {
        (0..self.len()).map(|place| self.item(place))
    }

    /// The place of the entry with this id, if it is on the branch.
    #[must_use]
    pub fn place_of(&self, id: &str) -> Option<u32> {
        self.tree.known_id(id).and_then(|id| self.place_of_ix(id))
    }

    pub(crate) fn place_of_ix(&self, id: IdIx) -> Option<u32> {
        self.place_of_entry(self.tree.current(id)?)
    }

    pub(crate) fn place_of_entry(&self, ix: EntryIx) -> Option<u32> {
        let place = match self.tree.in_order() {
            true => self.path.binary_search(&ix).ok(),
            false => self.path.iter().position(|on_path| *on_path == ix),
        };
        place.map(|place| place as u32)
    }

    /// The line at a place, as it stands in the file; of what is not in the file its JSON, without id, parent and time.
    ///
    /// # Errors
    /// [`BranchError::Source`].
    pub fn text(&self, place: u32) -> Result<Cow<'_, [u8]>, BranchError> {
        let at = place as usize;
        match self.path.get(at) {
            Some(ix) => {
                let entry = self.tree.entry(*ix);
                Ok(self.source.read(entry.offset, entry.len as usize)?)
            }
            None => Ok(Cow::Borrowed(self.extra[at - self.path.len()].text.as_bytes())),
        }
    }

    /// The line of any entry of the tree, on the branch or not, as it stands in the file.
    ///
    /// # Errors
    /// [`BranchError::Source`].
    pub fn line(&self, entry: &Entry) -> Result<Cow<'_, [u8]>, BranchError> {
        Ok(self.source.read(entry.offset, entry.len as usize)?)
    }

    /// A part of what [`Branch::text`] gives: at most `max` bytes from `offset` on. Nothing more is read.
    ///
    /// # Errors
    /// [`BranchError::Source`].
    pub fn part(&self, place: u32, offset: u64, max: usize) -> Result<Cow<'_, [u8]>, BranchError> {
        let left = u64::from(self.facts(place).len).saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        let at = place as usize;
        match self.path.get(at) {
            _ if len == 0 => Ok(Cow::Borrowed(&[])),
            Some(ix) => Ok(self.source.read(self.tree.entry(*ix).offset + offset, len)?),
            None => {
                let text = self.extra[at - self.path.len()].text.as_bytes();
                // `offset` is below the length of the text, since `len` is not 0.
                Ok(Cow::Borrowed(&text[offset as usize..][..len]))
            }
        }
    }

    /// Reads the entry at a place and gives it to `look`.
    ///
    /// # Errors
    /// [`BranchError::Source`], [`BranchError::Changed`].
    pub fn read<T>(&self, place: u32, look: impl FnOnce(Json<'_>) -> T) -> Result<T, BranchError> {
        let text = self.text(place)?;
        let offset = self.facts(place).offset;
        let json = Json::parse(&text).map_err(|reason| BranchError::Changed { offset, reason })?;
        Ok(look(json))
    }

    /// Members of the entry at a place, by name: one pass over its text, however many are wanted.
    pub(crate) fn pick<const N: usize, T>(
        &self,
        place: u32,
        names: [&str; N],
        look: impl FnOnce([Option<Json<'_>>; N]) -> T,
    ) -> Result<T, BranchError> {
        let text = self.text(place)?;
        let offset = self.facts(place).offset;
        let picked = Json::pick(&text, names).map_err(|reason| BranchError::Changed { offset, reason })?;
        Ok(look(picked))
    }

    /// Puts a list of drafts (JSON) behind the newest entry; what is no JSON object in it is left out.
    pub fn push_all(&mut self, drafts: &str, origin: &Arc<Origin>) {
        let drafts = Json::parse(drafts.as_bytes()).ok();
        for draft in drafts.into_iter().flat_map(Json::items) {
            // What was accepted is a JSON object; if somebody says otherwise, a check refuses it by name.
            let _ = self.push(&draft.to_text(), origin);
        }
    }

    /// Puts what is not in the file behind the newest entry. `text` is the entry's JSON without id, parent and time.
    ///
    /// # Errors
    /// [`JsonError`] if it is no JSON object.
    pub fn push(&mut self, text: &str, origin: &Arc<Origin>) -> Result<(), JsonError> {
        let found = match walk::read(text.as_bytes()) {
            Line::Object(_, found) => found,
            Line::Bad(error, _) => return Err(error),
            _ => return Err(JsonError { at: 0, what: "not an object" }),
        };
        let (mut facts, _) = facts::facts(&found, false);
        let named = match facts.kind {
            EntryKind::Compaction => found.first_kept,
            _ => found.target,
        };
        facts.names = named.and_then(Json::as_str).and_then(|id| self.tree.known_id(&id));
        facts.time_ms = (!self.is_empty()).then(|| self.facts(self.len() - 1).time_ms).flatten();
        facts.len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let word = found.custom_type.and_then(Json::as_str).unwrap_or_default().into();
        self.extra.push(Extra { facts, word, text: text.into(), origin: Arc::clone(origin) });
        Ok(())
    }

    /// The branch as the file has it, without what is pending.
    #[must_use]
    pub fn without_pending(&self) -> Branch {
        Branch { extra: Vec::new(), ..self.clone() }
    }

    /// Roles of version 1 and 2 are read as those of 3 (S11.1).
    pub(crate) fn old_roles(&self) -> bool {
        self.tree.header().is_some_and(|h| h.version < Version::V3)
    }
}

/// The path from the root to `leaf`, by way of the parents.
fn walk_up(tree: &Tree, leaf: Option<EntryIx>) -> Result<Vec<EntryIx>, BranchError> {
    let mut path = Vec::new();
    let mut at = leaf;
    while let Some(ix) = at {
        path.push(ix);
        if path.len() > tree.entries().len() {
            return Err(BranchError::Cycle(leaf.map_or_else(String::new, |l| tree.id(l).to_owned())));
        }
        at = tree.parent(ix);
    }
    path.reverse();
    Ok(path)
}
