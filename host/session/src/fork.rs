//! The text of a new session that goes on from one branch of another: a fork, or a clone (S8.6).
//!
//! Entries keep their ids and their order, and every byte but for a parent that was a label, and a `firstKeptEntryId` that
//! named one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::branch::{Branch, BranchError};
use crate::entry::{Entry, EntryKind};
use crate::header::Version;
use crate::json::{Json, quoted};
use crate::migrate::{MigrateError, migrate};
use crate::splice::{Change, Member, edit, object};
use crate::time;
use crate::tree::{EntryIx, Leaf, Status, Tree};

/// What the new session says of itself.
#[derive(Clone, Copy, Debug)]
pub struct NewSession<'a> {
    /// Its id (S1.3); [`time::uuid_of_time`] gives one as Pi does.
    pub id: &'a str,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
    /// Its working directory.
    pub cwd: &'a str,
    /// The file that it comes from.
    pub parent_session: Option<&'a str>,
}

/// Why there is nothing to fork.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// No session, or one of a newer version.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// No entry has this id.
    #[error("there is no entry {0}")]
    NoEntry(String),
    /// Nothing is on the branch but labels.
    #[error("there is nothing on this branch to go on from")]
    Empty,
    /// The branch cannot be followed.
    #[error(transparent)]
    Branch(#[from] BranchError),
}

/// A part of a new session's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// Text that is not in the old session.
    Text(Vec<u8>),
    /// Bytes of the old session as they stand.
    Span {
        /// Where they begin in it, bytes.
        offset: u64,
        /// How many.
        len: u64,
    },
}

/// The new session's text in pieces, so that who copies it needs not hold it; and how many entries of the branch it took
/// over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pieces {
    /// The whole file, in order.
    pub pieces: Vec<Piece>,
    /// Entries that were taken over, labels not counted.
    pub entries: usize,
}

impl Pieces {
    fn push(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.extend_from_slice(text),
            _ => self.pieces.push(Piece::Text(text.to_vec())),
        }
    }

    /// A line of the old session. Behind the one before it, and the line end between them, it is one piece with it.
    fn push_line(&mut self, offset: u64, len: u64) {
        match self.pieces.as_mut_slice() {
            [.., Piece::Span { offset: before, len: long }, Piece::Text(text)]
                if text == b"\n" && *before + *long + 1 == offset =>
            {
                *long += 1 + len;
                self.pieces.pop();
            }
            _ => self.pieces.push(Piece::Span { offset, len }),
        }
    }

    /// The text, spans taken from this session.
    fn text(&self, session: &[u8]) -> Vec<u8> {
        let part = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Span { offset, len } => {
                let start = usize::try_from(*offset).unwrap_or(usize::MAX);
                session.get(start..).and_then(|rest| rest.get(..*len as usize)).unwrap_or_default().to_vec()
            }
        };
        self.pieces.iter().flat_map(part).collect()
    }
}

/// The new session's text, and how many entries of the branch it took over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forked {
    /// The whole file.
    pub text: Vec<u8>,
    /// Entries that were taken over, labels not counted.
    pub entries: usize,
}

/// A new session of the branch that ends in `leaf`, else in the entry that Pi would go on from (S8.2). An old session is
/// migrated first; its entries may be named as they are called while it is read ([`Tree::id`]).
///
/// `random` gives 16 random bytes at each call, for the ids of labels that are written again.
///
/// ```
/// use pi_session::fork::{NewSession, fork};
///
/// let session = concat!(
///     "{\"type\":\"session\",\"version\":3,\"id\":\"old\"}\n",
///     "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"1\"}}\n",
///     "{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"2\"}}\n",
/// );
/// let new = NewSession { id: "new", now_ms: 0, cwd: "/work", parent_session: Some("/old.jsonl") };
/// let forked = fork(session.as_bytes(), Some("a"), &new, &mut || [7; 16])?;
/// assert_eq!(String::from_utf8(forked.text).as_deref(), Ok(concat!(
///     "{\"type\":\"session\",\"version\":3,\"id\":\"new\",\"timestamp\":\"1970-01-01T00:00:00.000Z\",",
///     "\"cwd\":\"/work\",\"parentSession\":\"/old.jsonl\"}\n",
///     "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"1\"}}\n",
/// )));
/// # Ok::<_, pi_session::fork::ForkError>(())
/// ```
///
/// # Errors
/// [`ForkError`].
pub fn fork(
    session: &[u8],
    leaf: Option<&str>,
    new: &NewSession<'_>,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Forked, ForkError> {
    let old = Tree::from_bytes(session);
    if old.status() != Status::Session {
        return Err(MigrateError::NotASession.into());
    }
    let leaf = match leaf {
        Some(id) => old.by_id(id).ok_or_else(|| ForkError::NoEntry(id.to_owned()))?,
        None => leaf_of(&old)?,
    };
    let is_old = old.header().is_some_and(|header| header.version < Version::V3);
    // A migration changes ids and offsets, and neither the number of entries nor their order.
    let text = Arc::new(migrate(session, random)?.into_owned());
    let tree = Arc::new(if is_old { Tree::from_bytes(&text) } else { old });
    let branch = Branch::at(&tree, text.clone(), Some(leaf))?;
    let pieces = fork_branch(&branch, new, random)?;
    Ok(Forked { text: pieces.text(&text), entries: pieces.entries })
}

/// The same for a branch of a session that is not in memory, and of version 3. Only lines that change are read.
///
/// # Errors
/// [`ForkError`].
pub fn fork_branch(
    branch: &Branch,
    new: &NewSession<'_>,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Pieces, ForkError> {
    match branch.tree().header().map(|header| header.version) {
        Some(Version::V3) => Kept::of(branch)?.write(new, random),
        Some(Version::Newer) => Err(MigrateError::Newer.into()),
        Some(Version::V1 | Version::V2) => Err(MigrateError::Old.into()),
        None => Err(MigrateError::NotASession.into()),
    }
}

/// A new session of the whole of another, all branches, as `pi --fork` makes it: a new header, and every line that Pi would
/// read, byte for byte. An old session is migrated first.
///
/// `random` gives 16 random bytes at each call, for the ids of entries of version 1.
///
/// ```
/// use pi_session::fork::{NewSession, fork_whole};
///
/// let session = "{\"type\":\"session\",\"version\":3,\"id\":\"old\"}\nno JSON\n{\"type\":\"custom\",\"id\":\"a\"}\n";
/// let new = NewSession { id: "new", now_ms: 0, cwd: "/work", parent_session: Some("/old.jsonl") };
/// let forked = fork_whole(session.as_bytes(), &new, &mut || [7; 16])?;
/// assert!(forked.text.ends_with(b"\"parentSession\":\"/old.jsonl\"}\n{\"type\":\"custom\",\"id\":\"a\"}\n"));
/// # Ok::<_, pi_session::fork::ForkError>(())
/// ```
///
/// # Errors
/// [`ForkError::Migrate`].
pub fn fork_whole(
    session: &[u8],
    new: &NewSession<'_>,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Forked, ForkError> {
    let migrated = migrate(session, random)?;
    let is_header = |line: Json<'_>| line.get("type").and_then(Json::as_str).as_deref() == Some("session");
    let counts = |line: &&[u8]| Json::parse(line).is_ok_and(|json| json.is_truthy() && !is_header(json));
    let (mut text, mut entries) = (header(new).into_bytes(), 0);
    for line in migrated.split(|byte| *byte == b'\n').filter(counts) {
        text.push(b'\n');
        text.extend_from_slice(line);
        entries += 1;
    }
    text.push(b'\n');
    Ok(Forked { text, entries })
}

fn leaf_of(tree: &Tree) -> Result<EntryIx, ForkError> {
    match tree.leaf() {
        Leaf::At(ix) => Ok(ix),
        Leaf::None | Leaf::NoId => Err(ForkError::Empty),
    }
}

/// What a branch leaves behind when its labels are dropped.
struct Kept<'b> {
    branch: &'b Branch,
    /// Places of the entries that stay.
    places: Vec<u32>,
    /// For each label that goes, the entry that stands in for it.
    instead: HashMap<&'b str, &'b str>,
}

impl<'b> Kept<'b> {
    fn of(branch: &'b Branch) -> Result<Kept<'b>, ForkError> {
        let (mut places, mut instead, mut labels) = (Vec::new(), HashMap::new(), Vec::new());
        for item in branch.items() {
            let id = item.id.unwrap_or_default();
            if item.facts.kind == EntryKind::Label {
                labels.push(id);
                continue;
            }
            instead.extend(labels.drain(..).map(|label| (label, id)));
            places.push(item.place);
        }
        if places.is_empty() { Err(ForkError::Empty) } else { Ok(Kept { branch, places, instead }) }
    }

    fn write(&self, new: &NewSession<'_>, random: &mut dyn FnMut() -> [u8; 16]) -> Result<Pieces, ForkError> {
        let mut out = Pieces { pieces: Vec::new(), entries: self.places.len() };
        out.push(header(new).as_bytes());
        let mut parent = None;
        for place in &self.places {
            out.push(b"\n");
            self.write_entry(&mut out, *place, parent)?;
            parent = self.branch.item(*place).id;
        }
        out.push(b"\n");
        self.write_labels(&mut out, parent, random)?;
        Ok(out)
    }

    /// The entry as it stands in the file, on its new parent.
    fn write_entry(&self, out: &mut Pieces, place: u32, parent: Option<&str>) -> Result<(), ForkError> {
        let (tree, facts) = (self.branch.tree(), self.branch.facts(place));
        let mut changes = Vec::new();
        if facts.parent.map(|id| tree.id_text(id)) != parent {
            changes.push(Change::Set("parentId", json_or_null(parent).into_bytes()));
        }
        let named = facts.names.filter(|_| facts.kind == EntryKind::Compaction);
        if let Some(instead) = named.and_then(|id| self.instead.get(tree.id_text(id))) {
            changes.push(Change::Set("firstKeptEntryId", quoted(instead).into_bytes()));
        }
        if changes.is_empty() {
            out.push_line(facts.offset, u64::from(facts.len));
            return Ok(());
        }
        let line = self.branch.line(facts)?;
        out.push(&edit(&line, parsed(facts, &line)?, &changes));
        Ok(())
    }

    /// Labels of what stays, each with the time it was given, one behind the other at the end.
    fn write_labels(
        &self,
        out: &mut Pieces,
        leaf: Option<&str>,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<(), ForkError> {
        let mut taken: HashSet<String> =
            self.places.iter().filter_map(|place| self.branch.item(*place).id).map(str::to_owned).collect();
        let mut parent = leaf.map(str::to_owned);
        for label in self.labels(&taken)? {
            let id = time::fresh_id(|id| taken.contains(id), random);
            let line = self.branch.line(label)?;
            let json = parsed(label, &line)?;
            let (own, above) = (quoted(&id), json_or_null(parent.as_deref()));
            let members = [
                Member::text("type", "\"label\""),
                Member::text("id", &own),
                Member::text("parentId", &above),
                Member::json("timestamp", json.get("timestamp")),
                Member::json("targetId", json.get("targetId")),
                Member::json("label", json.get("label")),
            ];
            out.push(object(&members).as_bytes());
            out.push(b"\n");
            taken.insert(id.clone());
            parent = Some(id);
        }
        Ok(())
    }

    /// The label entries that hold in the whole file for these targets, in the order in which each target got its first.
    fn labels(&self, targets: &HashSet<String>) -> Result<Vec<&'b Entry>, ForkError> {
        let tree = self.branch.tree();
        let is_label = |entry: &&Entry| entry.kind == EntryKind::Label;
        let (mut labels, mut at) = (Vec::new(), HashMap::new());
        for entry in tree.entries().iter().filter(is_label) {
            let Some(target) = entry.names.map(|id| tree.id_text(id)).filter(|id| targets.contains(*id)) else {
                continue;
            };
            if !self.sets(entry)? {
                at.remove(target).into_iter().for_each(|at: usize| labels[at] = None);
            } else if let Some(at) = at.get(target) {
                labels[*at] = Some(entry);
            } else {
                at.insert(target, labels.len());
                labels.push(Some(entry));
            }
        }
        Ok(labels.into_iter().flatten().collect())
    }

    /// Whether a label entry gives a label; else it takes one away (S4.6).
    fn sets(&self, label: &Entry) -> Result<bool, ForkError> {
        let line = self.branch.line(label)?;
        Ok(Json::parse(&line).is_ok_and(|json| json.get("label").is_some_and(Json::is_truthy)))
    }
}

fn parsed<'l>(entry: &Entry, line: &'l [u8]) -> Result<Json<'l>, ForkError> {
    let changed = |reason| BranchError::Changed { offset: entry.offset, reason };
    Ok(Json::parse(line).map_err(changed)?)
}

pub(crate) fn header(new: &NewSession<'_>) -> String {
    let (id, cwd) = (quoted(new.id), quoted(new.cwd));
    let (timestamp, parent) = (quoted(&time::iso(new.now_ms)), new.parent_session.map(quoted));
    let mut members = vec![
        Member::text("type", "\"session\""),
        Member::text("version", "3"),
        Member::text("id", &id),
        Member::text("timestamp", &timestamp),
        Member::text("cwd", &cwd),
    ];
    members.extend(parent.as_deref().map(|parent| Member::text("parentSession", parent)));
    object(&members)
}

pub(crate) fn json_or_null(id: Option<&str>) -> String {
    id.map_or_else(|| "null".to_owned(), quoted)
}
