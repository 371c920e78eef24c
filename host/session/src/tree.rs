//! The session as a tree: ids, parents, places and small facts of every entry; never the text (S8).
//!
//! A tree only grows. A line is read once, when it is pushed, and costs its own length; memory grows with the number of
//! entries. Parents are kept by id and looked up when a path is walked, since of two lines with one id the later is the
//! entry, at whatever place (S8.5).

mod depth;
mod files;
mod note;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::entry::{Entry, EntryKind, IdIx, Role};
use crate::facts;
use crate::finding::Finding;
use crate::header::{Header, Version};
use crate::ids::Ids;
use crate::json::{Json, Kind};
use crate::marks;
use crate::problem::{Problem, Problems};
use crate::totals::Totals;
use crate::walk::{self, Found, Line};

pub(crate) use self::files::KeptFile;
pub use crate::source::{Source, SourceError};

/// The number of an entry: its place in the file's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryIx(pub(crate) u32);

impl EntryIx {
    /// As an index into [`Tree::entries`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where Pi stands after loading the file (S8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// There is no entry.
    None,
    /// The last entry has no id: Pi is left without a leaf and with an empty context (S2.2).
    NoId,
    /// The last entry.
    At(EntryIx),
}

/// What kind of file it is so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No line that means anything yet: a session not yet begun (S2.3).
    NotBegun,
    /// The first line that means something is no header: left alone (S2.3).
    NotASession,
    /// A session.
    Session,
}

/// What a line turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// White space.
    Blank,
    /// The header.
    Header,
    /// An entry of the tree.
    Entry(EntryIx),
    /// A line that Pi skips: not JSON, a value that counts for nothing, a later header.
    Skipped,
    /// An entry without an id (S2.2).
    NoId,
    /// The file is no session; nothing is read of it.
    NotASession,
}

/// The number of the empty word.
const NO_WORD: u32 = 0;
/// Steps along parents that each new entry pays for, so that finding the leaf's path anew never costs more than reading.
const STEPS_AN_ENTRY: usize = 64;

/// A session's index.
#[derive(Clone, Debug)]
pub struct Tree {
    status: Status,
    header: Option<Header>,
    entries: Vec<Entry>,
    ids: Ids,
    /// The entry that an id stands for now; none while it was only named.
    current: Vec<Option<EntryIx>>,
    words: Ids,
    leaf: Leaf,
    /// The path to the leaf, root first, while it can be kept by adding to it.
    path: Option<Arc<Vec<EntryIx>>>,
    /// Steps along parents that are paid for.
    steps: usize,
    /// Every parent stands before its child, so that paths are sorted by place.
    in_order: bool,
    lines: u32,
    /// For version 1: the entry of every value that parsed, the header's included (S6.4).
    old_index: Vec<Option<IdIx>>,
    labels: HashMap<IdIx, Box<str>>,
    /// The changes of the thinking level: few, and asked for by every context.
    levels: Vec<EntryIx>,
    files: files::KeptFiles,
    name: Option<Box<str>>,
    totals: Totals,
    problems: Problems,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}

impl Tree {
    /// A tree without a line.
    #[must_use]
    pub fn new() -> Tree {
        let mut words = Ids::default();
        words.intern("");
        Tree {
            status: Status::NotBegun,
            header: None,
            entries: Vec::new(),
            ids: Ids::default(),
            current: Vec::new(),
            words,
            leaf: Leaf::None,
            path: Some(Arc::default()),
            steps: 0,
            in_order: true,
            lines: 0,
            old_index: Vec::new(),
            labels: HashMap::new(),
            levels: Vec::new(),
            files: files::KeptFiles::default(),
            name: None,
            totals: Totals::default(),
            problems: Problems::default(),
        }
    }

    /// A last line without its `\n`, as Pi takes it on load (S2.4).
    pub fn push_last(&mut self, offset: u64, line: &[u8]) -> Pushed {
        self.take_last(offset, walk::read(line))
    }

    /// Takes in what a last line without its `\n` turned out to be.
    pub(crate) fn take_last(&mut self, offset: u64, line: Line<'_>) -> Pushed {
        let before = self.problems.kept.len();
        let pushed = self.take(offset, line);
        if self.status != Status::NotASession {
            let is_torn = |finding| finding == Finding::BadLine;
            let torn = self.problems.kept[before..].iter().any(|problem| is_torn(problem.finding));
            self.problems.kept.retain(|problem| problem.line != self.lines || !is_torn(problem.finding));
            self.note(if torn { Finding::TornEnd } else { Finding::OpenEnd }, offset, None);
        }
        pushed
    }

    /// Reads one line, without its `\n`, that stands at `offset`.
    pub fn push(&mut self, offset: u64, line: &[u8]) -> Pushed {
        self.take(offset, walk::read(line))
    }

    /// Takes in what one line turned out to be.
    pub(crate) fn take(&mut self, offset: u64, line: Line<'_>) -> Pushed {
        self.lines += 1;
        if self.status == Status::NotASession {
            return Pushed::NotASession;
        }
        match line {
            Line::Blank => Pushed::Blank,
            Line::TooLong => {
                self.note(Finding::LongLine, offset, None);
                Pushed::Skipped
            }
            Line::Bad(error, glued) => {
                self.note_bad(offset, error, glued);
                Pushed::Skipped
            }
            Line::Value(value) => self.push_value(offset, value),
            Line::Object(len, found) => self.push_object(offset, len, &found),
        }
    }

    fn push_value(&mut self, offset: u64, value: Json<'_>) -> Pushed {
        if !value.is_truthy() {
            self.note(Finding::SkippedValue, offset, None);
            return Pushed::Skipped;
        }
        if self.status == Status::NotBegun {
            return self.not_a_session(offset);
        }
        // Where the migration writes an id into it, only what has members can take one.
        let is_old = self.version() == Version::V1 && value.kind() != Kind::Array;
        self.no_id(offset, if is_old { Finding::OldValue } else { Finding::NoId })
    }

    fn push_object(&mut self, offset: u64, len: u32, found: &Found<'_>) -> Pushed {
        let is_header = found.kind.and_then(Json::word).is_some_and(|word| *word == *b"session");
        if self.status == Status::NotBegun {
            return self.push_header(offset, len, is_header.then_some(found));
        }
        if is_header {
            self.note_old_index(None);
            self.note(Finding::SecondHeader, offset, None);
            return Pushed::Skipped;
        }
        let id = match found.id.and_then(Json::as_str) {
            _ if self.version() == Version::V1 => Cow::Owned(self.fresh_old_id()),
            Some(id) if !id.is_empty() => id,
            _ => return self.push_nameless(offset, found),
        };
        Pushed::Entry(self.push_entry(offset, len, &id, found))
    }

    fn push_header(&mut self, offset: u64, len: u32, found: Option<&Found<'_>>) -> Pushed {
        let with_id = found.and_then(|found| Some((found, found.id.filter(|id| id.kind() == Kind::String)?.as_str()?)));
        let Some((found, id)) = with_id else {
            return self.not_a_session(offset);
        };
        let header = Header::new(&id, found);
        self.note_header(offset, offset + u64::from(len), &header);
        if found.broken {
            self.note(Finding::HeaderReturn, offset, None);
        }
        self.status = Status::Session;
        self.header = Some(header);
        self.note_old_index(None);
        Pushed::Header
    }

    fn not_a_session(&mut self, offset: u64) -> Pushed {
        self.status = Status::NotASession;
        self.note(Finding::NotASession, offset, None);
        Pushed::NotASession
    }

    fn no_id(&mut self, offset: u64, finding: Finding) -> Pushed {
        self.leaf = Leaf::NoId;
        self.path = None;
        self.note_old_index(None);
        self.note(finding, offset, None);
        Pushed::NoId
    }

    /// An entry without an id: on no path, but Pi takes its label, its name and its usage all the same, and fails where it
    /// looks at every entry of the file.
    fn push_nameless(&mut self, offset: u64, found: &Found<'_>) -> Pushed {
        let (mut entry, marks) = facts::facts(found, self.version() < Version::V3);
        entry.line = self.lines;
        entry.names = self.named_by(&entry, found);
        for mark in marks.into_iter().filter(|mark| marks::stops_wherever_it_is(*mark, &entry)) {
            self.note(mark, offset, None);
        }
        self.note_facts(&entry, found);
        self.no_id(offset, Finding::NoId)
    }

    /// Ids of version 1 are given anew on reading; here by line number, so that they stay (S11.3).
    fn fresh_old_id(&self) -> String {
        format!("v1-{:06}", self.lines)
    }

    fn push_entry(&mut self, offset: u64, len: u32, id: &str, found: &Found<'_>) -> EntryIx {
        let ix = EntryIx(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        let known = self.ids.len();
        let id_ix = self.intern(id);
        let (mut entry, marks) = facts::facts(found, self.version() < Version::V3);
        (entry.offset, entry.len, entry.line, entry.id) = (offset, len, self.lines, id_ix);
        entry.parent = self.parent_of(found);
        entry.names = self.named_by(&entry, found);
        entry.word = self.word_of(&entry, found);
        self.note_place(ix, &entry, id_ix.0 as usize == known);
        if entry.kind == EntryKind::ThinkingLevelChange {
            self.levels.push(ix);
        }
        self.note_marks(&entry, &marks, found);
        self.note_facts(&entry, found);
        self.keep_files(ix, &entry, found);
        self.current[id_ix.0 as usize] = Some(ix);
        self.leaf = Leaf::At(ix);
        self.note_old_index(Some(id_ix));
        self.entries.push(entry);
        ix
    }

    /// Version 1 names entries by their place among the lines (S6.4).
    fn note_old_index(&mut self, id: Option<IdIx>) {
        if self.version() == Version::V1 {
            self.old_index.push(id);
        }
    }

    fn parent_of(&mut self, found: &Found<'_>) -> Option<IdIx> {
        if self.version() == Version::V1 {
            return self.entries.last().map(|last| last.id);
        }
        let parent = found.parent?;
        // Most entries hang on the one before.
        if let Some(last) = self.entries.last().filter(|last| parent.is_written(self.id_text(last.id))) {
            return Some(last.id);
        }
        let parent = parent.as_str().filter(|p| !p.is_empty())?;
        Some(self.intern(&parent))
    }

    fn named_by(&mut self, entry: &Entry, found: &Found<'_>) -> Option<IdIx> {
        let named = match entry.kind {
            EntryKind::Compaction if self.version() == Version::V1 && found.first_kept_index.is_some() => {
                return self.old_first_kept(found.first_kept_index);
            }
            EntryKind::Compaction => found.first_kept,
            EntryKind::ContextEdit | EntryKind::Label => found.target,
            EntryKind::BranchSummary => found.from,
            _ => None,
        };
        named.and_then(Json::as_str).map(|id| self.intern(&id))
    }

    /// `firstKeptEntryIndex` counts the lines, header included; 0 or out of range names nothing (S11.3).
    fn old_first_kept(&self, index: Option<Json<'_>>) -> Option<IdIx> {
        let index = index.and_then(Json::as_f64).filter(|n| *n >= 0.0 && n.fract() == 0.0)?;
        self.old_index.get(index as usize).copied().flatten()
    }

    fn word_of(&mut self, entry: &Entry, found: &Found<'_>) -> u32 {
        let word = match (entry.kind, entry.role) {
            (EntryKind::Custom | EntryKind::CustomMessage, _) => found.custom_type,
            (EntryKind::Other, _) => found.kind,
            (EntryKind::Message, Role::Other) => found.message.and_then(|m| m.role),
            _ => None,
        };
        word.and_then(Json::as_str).map_or(NO_WORD, |word| self.words.intern(&word))
    }

    fn intern(&mut self, id: &str) -> IdIx {
        let number = self.ids.intern(id);
        if number as usize == self.current.len() {
            self.current.push(None);
        }
        IdIx(number)
    }

    /// Checks the place of a new entry, and keeps the path of the leaf that it becomes.
    fn note_place(&mut self, ix: EntryIx, entry: &Entry, fresh: bool) {
        let parent = entry.parent.and_then(|p| self.current[p.0 as usize]);
        if !fresh {
            self.note_known_id(entry);
        }
        self.in_order &= fresh && entry.parent != Some(entry.id);
        self.note_parent(entry, parent.is_some());
        self.steps = self.steps.saturating_add(STEPS_AN_ENTRY);
        self.path = if self.in_order { self.path_to(ix, parent) } else { None };
    }

    /// The path to a new entry: the leaf's before it as far as the parent. Where the parent is on another branch it has to
    /// be walked anew, which is put off while it would cost more than all that was read since the last time.
    fn path_to(&mut self, ix: EntryIx, parent: Option<EntryIx>) -> Option<Arc<Vec<EntryIx>>> {
        let Some(parent) = parent else { return Some(Arc::new(vec![ix])) };
        let place = |path: &[EntryIx]| match path.last() {
            Some(last) if *last == parent => Some(path.len() - 1),
            _ => path.binary_search(&parent).ok(),
        };
        let kept = self.path.take().and_then(|path| Some((place(&path)?, path)));
        if let Some((place, mut path)) = kept {
            let own = Arc::make_mut(&mut path);
            own.truncate(place + 1);
            own.push(ix);
            return Some(path);
        }
        let mut path: Vec<_> = self.up_from(parent).take(self.steps).collect();
        self.steps -= path.len();
        if self.steps == 0 {
            return None;
        }
        path.reverse();
        path.push(ix);
        Some(Arc::new(path))
    }

    /// This entry, its parent, and so on.
    pub(crate) fn up_from(&self, ix: EntryIx) -> impl Iterator<Item = EntryIx> {
        std::iter::successors(Some(ix), |ix| self.parent(*ix))
    }

    /// Finds the leaf's path if that was put off.
    pub(crate) fn find_path(&mut self) {
        if let (None, true, Leaf::At(leaf)) = (&self.path, self.in_order, self.leaf) {
            let mut path: Vec<_> = self.up_from(leaf).collect();
            path.reverse();
            self.path = Some(Arc::new(path));
        }
    }

    fn note_facts(&mut self, entry: &Entry, found: &Found<'_>) {
        match entry.kind {
            EntryKind::Label => self.note_label(entry, found),
            EntryKind::SessionInfo => {
                let name = found.name.and_then(Json::as_str);
                let name = name.as_deref().map(|n| n.trim_matches(walk::is_js_space));
                self.name = name.filter(|n| !n.is_empty()).map(Into::into);
            }
            _ => {}
        }
        self.totals.add(entry, found);
    }

    fn note_label(&mut self, entry: &Entry, found: &Found<'_>) {
        let Some(target) = entry.names else { return };
        match found.label.filter(|l| l.is_truthy()) {
            Some(label) => {
                let text = label.as_str().unwrap_or_else(|| label.to_text());
                self.labels.insert(target, text.into());
            }
            None => drop(self.labels.remove(&target)),
        }
    }

    fn version(&self) -> Version {
        self.header.as_ref().map_or(Version::V3, |h| h.version)
    }

    /// What kind of file it is so far.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The header, once it was read.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Every entry in file order, those that a later line with the same id has replaced included.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The facts of an entry.
    #[must_use]
    pub fn entry(&self, ix: EntryIx) -> &Entry {
        &self.entries[ix.index()]
    }

    /// The id of an entry.
    #[must_use]
    pub fn id(&self, ix: EntryIx) -> &str {
        self.id_text(self.entries[ix.index()].id)
    }

    /// The text of an id.
    #[must_use]
    pub fn id_text(&self, id: IdIx) -> &str {
        self.ids.text(id.0)
    }

    /// The entry that an id stands for: the last with it (S8.5).
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<EntryIx> {
        self.known_id(id).and_then(|id| self.current(id))
    }

    /// The number of an id that is an entry's or was named by one.
    #[must_use]
    pub(crate) fn known_id(&self, id: &str) -> Option<IdIx> {
        self.ids.find(id).map(IdIx)
    }

    pub(crate) fn current(&self, id: IdIx) -> Option<EntryIx> {
        self.current[id.0 as usize]
    }

    /// An entry's parent, if that is in the file.
    #[must_use]
    pub fn parent(&self, ix: EntryIx) -> Option<EntryIx> {
        self.entries[ix.index()].parent.and_then(|p| self.current(p))
    }

    /// The numbers of all entries, in the file's order.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = EntryIx> + ExactSizeIterator + use<> {
        (0..self.entries.len() as u32).map(EntryIx)
    }

    /// The entries where a path begins: those whose parent is none, or not in the file, or themselves (S8.1, S8.5).
    pub fn roots(&self) -> impl Iterator<Item = EntryIx> {
        self.all().filter(|ix| {
            let entry = self.entry(*ix);
            entry.parent.is_none_or(|parent| parent == entry.id || self.current(parent).is_none())
        })
    }

    /// The `customType`, or the type or role that this version does not know; empty where there is none.
    #[must_use]
    pub fn word(&self, entry: &Entry) -> &str {
        self.words.text(entry.word)
    }

    /// Where Pi would stand after loading the file (S8.2).
    #[must_use]
    pub fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// Lines read so far, blank ones included.
    #[must_use]
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// The label of an entry (S4.6).
    #[must_use]
    pub fn label(&self, id: &str) -> Option<&str> {
        self.known_id(id).and_then(|ix| self.labels.get(&ix)).map(AsRef::as_ref)
    }

    /// All labels, by the id of their target, in no order.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(id, label)| (self.id_text(*id), &**label))
    }

    /// The session's name (S4.6).
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What the session has used so far (S4.5).
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// What was found wrong while reading, in file order; at most 10,000, the first. What shows only when all is read,
    /// [`crate::check`] finds.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems.kept
    }

    /// How many problems there are beyond those.
    #[must_use]
    pub fn more_problems(&self) -> u64 {
        self.problems.more
    }

    /// All changes of the thinking level, in the file's order.
    pub(crate) fn levels(&self) -> &[EntryIx] {
        &self.levels
    }

    /// The path that is kept for the leaf, if it is.
    pub(crate) fn leaf_path(&self) -> Option<&Arc<Vec<EntryIx>>> {
        self.path.as_ref()
    }

    /// Every parent stands before its child.
    pub(crate) fn in_order(&self) -> bool {
        self.in_order
    }
}
