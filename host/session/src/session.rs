//! A session that is made or grown by a program: create or open one, append, branch, reset, leave a branch with a summary,
//! fork and clone.
//!
//! A [`Session`] holds the whole text and its [`Tree`], and a leaf, which is the only state there is. Every call checks
//! what it is to write as a plugin's proposals are checked (S12), makes one line and puts it behind the others; lines that
//! are there never change. Nothing touches a file: [`Session::take_lines`] hands over what is new, whole lines to be
//! appended in one write.
//!
//! ```
//! use pi_session::{BranchSummary, NewEntry, Session, draft::Draft, fork::NewSession};
//!
//! // Time and random bytes come from outside; a real program asks its clock and its system.
//! let (now, mut count) = (1767225600000, 0);
//! let mut random = || { count += 1; [count; 16] };
//! let new = NewSession { id: "0199c2f0-example", now_ms: now, cwd: "/work", parent_session: None };
//!
//! // Create: a header and what is set up, then the conversation.
//! let mut session = Session::create(&new)?;
//! session.append(NewEntry::model_change("anthropic", "claude")?, now, &mut random)?;
//! session.append(NewEntry::thinking_level("high")?, now, &mut random)?;
//! let question = session.append(NewEntry::user("What is in src?", now), now, &mut random)?;
//! session.append(NewEntry::label(&question, Some("start")), now, &mut random)?;
//! assert!(session.has_conversation()); // From here on Pi would have a file (S1.5).
//! let file = session.take_lines();
//! assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), 5);
//!
//! // Branch: what comes next hangs on an earlier entry.
//! session.branch_from(&question)?;
//! session.append(Draft::custom_message("my-tool", "\"a note\"", true, None)?, now, &mut random)?;
//!
//! // Leave a branch with a summary of it, and go on from the question.
//! let summary = BranchSummary::new("We looked, and found nothing.", None, None)?;
//! session.branch_with_summary(Some(&question), &summary, now, &mut random)?;
//!
//! // Reset: what comes next is a new root.
//! session.reset();
//! session.append(NewEntry::user("Something else.", now), now, &mut random)?;
//! assert_eq!(session.tree().roots().count(), 2);
//!
//! // Append to the file what is new.
//! let more = session.take_lines();
//! assert_eq!([file, more].concat(), session.text());
//! # Ok::<_, pi_session::refusal::Refusal>(())
//! ```

use std::sync::Arc;

use crate::branch::{Branch, BranchError};
use crate::compose::compose;
use crate::draft::Draft;
use crate::entry::{EntryKind, Role};
use crate::fork::{self, ForkError, NewSession};
use crate::json::quoted;
use crate::new_entry::{BranchSummary, NewEntry, What, call_answered};
use crate::pairing::{self, Answers};
use crate::refusal::{Refusal, Rule};
use crate::splice::{Member, object};
use crate::time;
use crate::tree::{EntryIx, Leaf, Pushed, Tree};
use crate::validate::{self, DraftLimits};

/// 16 random bytes at each call, of which ids are made.
pub type Random<'r> = &'r mut dyn FnMut() -> [u8; 16];

/// A session that grows.
///
/// Appending costs the length of the entry, and for a draft or a tool result that of the branch, as long as no [`Branch`]
/// of this session is held: else the text and the index are copied first.
#[derive(Clone, Debug)]
pub struct Session {
    tree: Arc<Tree>,
    text: Arc<Vec<u8>>,
    leaf: Option<EntryIx>,
    /// Bytes that were there or were handed over.
    given: usize,
}

impl Session {
    /// A new session: its header, which is the first that [`Session::take_lines`] hands over.
    ///
    /// # Errors
    /// Rule S1.3: the id is none that Pi would take.
    pub fn create(new: &NewSession<'_>) -> Result<Session, Refusal> {
        check_session_id(new.id)?;
        let text = format!("{}\n", fork::header(new)).into_bytes();
        let tree = Arc::new(Tree::from_bytes(&text));
        Ok(Session { tree, text: Arc::new(text), leaf: None, given: 0 })
    }

    /// The session in a file, at the leaf that Pi would have (S8.2). If its last byte is no `\n`, the missing one is the
    /// first that is handed over (S2.4).
    ///
    /// ```
    /// use pi_session::{NewEntry, Session};
    ///
    /// let file = concat!(
    ///     "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n",
    ///     "{\"type\":\"custom\",\"customType\":\"x\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:00.000Z\"}\n",
    /// );
    /// let mut session = Session::open(file.into())?;
    /// assert_eq!(session.leaf_id(), Some("a"));
    /// session.append(NewEntry::session_name("Tests"), 1767225600000, &mut || [0xab; 16])?;
    /// assert_eq!(String::from_utf8_lossy(&session.take_lines()), concat!(
    ///     "{\"type\":\"session_info\",\"id\":\"abababab\",\"parentId\":\"a\",",
    ///     "\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"name\":\"Tests\"}\n",
    /// ));
    /// # Ok::<_, pi_session::refusal::Refusal>(())
    /// ```
    ///
    /// # Errors
    /// What cannot be appended to: no session (S2.3), an old version (S11.2), one above 3 (S3).
    pub fn open(mut text: Vec<u8>) -> Result<Session, Refusal> {
        let tree = Tree::from_bytes(&text);
        validate::writable(&tree)?;
        let given = text.len();
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        let leaf = match tree.leaf() {
            Leaf::At(ix) => Some(ix),
            Leaf::None | Leaf::NoId => None,
        };
        Ok(Session { tree: Arc::new(tree), text: Arc::new(text), leaf, given })
    }

    /// Appends an entry to the leaf, which it then is; its id. A time before the leaf's is taken as the leaf's (S12.2).
    ///
    /// # Errors
    /// The rule that it would break; then nothing has changed.
    pub fn append(&mut self, entry: impl Into<NewEntry>, now_ms: i64, random: Random<'_>) -> Result<String, Refusal> {
        match entry.into().0 {
            What::Draft(draft) => self.append_one(draft, now_ms, random),
            What::Message(message) => {
                self.check_answer(call_answered(&message))?;
                self.write("message", &[("message", message.as_str().to_owned())], now_ms, random)
            }
            What::Label { target, label } => {
                self.entry(&target)?;
                let mut members = vec![("targetId", quoted(&target))];
                members.extend(label.map(|label| ("label", quoted(&label))));
                self.write("label", &members, now_ms, random)
            }
            What::Plain(kind, members) => self.write(kind, &members, now_ms, random),
        }
    }

    /// Appends drafts, all or none; their ids. That no call is parted from its result is judged at the end, so that edits of
    /// both can go together (S12.6).
    ///
    /// # Errors
    /// Every draft that cannot stand; then nothing has changed.
    pub fn append_drafts(
        &mut self,
        drafts: &[Draft],
        now_ms: i64,
        random: Random<'_>,
    ) -> Result<Vec<String>, Vec<Refusal>> {
        let limits = DraftLimits { entries: u32::MAX, entry_bytes: u64::MAX, batch_bytes: u64::MAX };
        let branch = self.branch().map_err(|error| vec![unreadable(&error)])?;
        let accepted = validate::accept_list(&branch, drafts, limits)?;
        let composed = compose(&branch, &accepted, None, now_ms, random).map_err(|stale| vec![stale.refusal])?;
        drop(branch);
        let ids = composed.entries().iter().map(|entry| {
            self.push(&entry.line);
            entry.id.clone()
        });
        Ok(ids.collect())
    }

    fn append_one(&mut self, draft: Draft, now_ms: i64, random: Random<'_>) -> Result<String, Refusal> {
        let ids = self.append_drafts(&[draft], now_ms, random);
        let mut ids = ids.map_err(|refusals| refusals.into_iter().next().expect("a refused list names a draft"))?;
        Ok(ids.pop().expect("one draft becomes one entry"))
    }

    /// Moves the leaf: what comes next hangs on this entry (S8.3). The file does not change.
    ///
    /// # Errors
    /// Rule S8.1: there is no such entry.
    pub fn branch_from(&mut self, id: &str) -> Result<(), Refusal> {
        self.leaf = Some(self.entry(id)?);
        Ok(())
    }

    /// Moves the leaf before the first entry: what comes next is a root. The file does not change.
    pub fn reset(&mut self) {
        self.leaf = None;
    }

    /// Leaves the branch for `to` (none: the start) and appends there what it was about; the new entry's id (S8.4).
    ///
    /// # Errors
    /// Rule S8.1: there is no entry `to`.
    pub fn branch_with_summary(
        &mut self,
        to: Option<&str>,
        summary: &BranchSummary,
        now_ms: i64,
        random: Random<'_>,
    ) -> Result<String, Refusal> {
        let to = to.map(|id| self.entry(id)).transpose()?;
        let members = summary.members(self.leaf_id().unwrap_or("root"));
        let left = std::mem::replace(&mut self.leaf, to);
        let written = self.write("branch_summary", &members, now_ms, random);
        if written.is_err() {
            self.leaf = left;
        }
        written
    }

    /// A new session that goes on from one branch of this one: a fork at the entry `leaf`, or with none a clone of the
    /// branch one is on (S8.6). The whole of it is new, so that is what it hands over.
    ///
    /// ```
    /// use pi_session::{NewEntry, Session, fork::NewSession};
    ///
    /// # let (now, mut count) = (1767225600000, 0);
    /// # let mut random = || { count += 1; [count; 16] };
    /// # let new = NewSession { id: "old", now_ms: now, cwd: "/work", parent_session: None };
    /// # let mut session = Session::create(&new)?;
    /// let question = session.append(NewEntry::user("A question.", now), now, &mut random)?;
    /// session.append(NewEntry::user("Another.", now), now, &mut random)?;
    /// let new = NewSession { id: "new", now_ms: now, cwd: "/work", parent_session: Some("/sessions/old.jsonl") };
    /// let fork = session.fork(Some(&question), &new, &mut random)?;
    /// let mut clone = session.fork(None, &new, &mut random)?;
    /// assert_eq!((fork.tree().entries().len(), clone.tree().entries().len()), (1, 2));
    /// assert!(clone.take_lines().starts_with(br#"{"type":"session","version":3,"id":"new""#));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ForkError`].
    pub fn fork(&self, leaf: Option<&str>, new: &NewSession<'_>, random: Random<'_>) -> Result<Session, ForkError> {
        let leaf = leaf.or(self.leaf_id()).ok_or(ForkError::Empty)?;
        let text = fork::fork(&self.text, Some(leaf), new, random)?.text;
        let tree = Tree::from_bytes(&text);
        let leaf = tree.all().next_back();
        Ok(Session { tree: Arc::new(tree), text: Arc::new(text), leaf, given: 0 })
    }

    /// The lines that were not handed over yet, each with its `\n`: to be appended to the file in one write.
    ///
    /// Pi makes a file only once [`Session::has_conversation`] (S1.5); a program that writes one earlier makes a Pi that
    /// has begun this session in memory fail.
    #[must_use = "what is handed over is not handed over again"]
    pub fn take_lines(&mut self) -> Vec<u8> {
        let lines = self.text[self.given..].to_vec();
        self.given = self.text.len();
        lines
    }

    /// Whether there is a message of a user or assistant.
    #[must_use]
    pub fn has_conversation(&self) -> bool {
        let speaks = |role| matches!(role, Role::User | Role::Assistant);
        self.tree.entries().iter().any(|entry| entry.kind == EntryKind::Message && speaks(entry.role))
    }

    /// The whole file as it stands with all that was appended.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The index of it.
    #[must_use]
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// The id of the entry that the next one hangs on; none before the first.
    #[must_use]
    pub fn leaf_id(&self) -> Option<&str> {
        self.leaf.map(|ix| self.tree.id(ix))
    }

    /// The branch that ends in the leaf: its context, tokens, compaction plan.
    ///
    /// # Errors
    /// [`BranchError::Cycle`] (S8.5).
    pub fn branch(&self) -> Result<Branch, BranchError> {
        Branch::at(&self.tree, self.text.clone(), self.leaf)
    }

    fn entry(&self, id: &str) -> Result<EntryIx, Refusal> {
        let entry = self.tree.by_id(id);
        entry.ok_or_else(|| Refusal::new(Rule::PARENT, format!("there is no entry {id:?} in this session")))
    }

    /// A tool's result answers a call that is in the context and has no result (S5).
    fn check_answer(&self, call: Option<String>) -> Result<(), Refusal> {
        let Some(call) = call else { return Ok(()) };
        let branch = self.branch().map_err(|error| unreadable(&error))?;
        let why = match pairing::answers(&branch, &call).map_err(|error| unreadable(&error))? {
            Answers::Open => return Ok(()),
            Answers::Answered => "has its result already",
            Answers::NoCall => "is not in the context: a result without its call ends every later request",
        };
        Err(Refusal::new(Rule::PAIRING, format!("the tool call {call:?} {why}")))
    }

    /// Makes the line of an entry and puts it behind the others.
    fn write(
        &mut self,
        kind: &str,
        members: &[(&'static str, String)],
        now_ms: i64,
        random: Random<'_>,
    ) -> Result<String, Refusal> {
        validate::has_leaf(&self.tree, self.leaf)?;
        self.leaf_id().map_or(Ok(()), |id| validate::writable_id(id, Rule::IDENTITY))?;
        let id = time::fresh_id(|id| self.tree.known_id(id).is_some(), random);
        let above = self.leaf.and_then(|ix| self.tree.entry(ix).time_ms);
        let time = quoted(&time::iso(above.map_or(now_ms, |above| above.max(now_ms))));
        let (kind, own, parent) = (quoted(kind), quoted(&id), fork::json_or_null(self.leaf_id()));
        let head = [("type", &kind), ("id", &own), ("parentId", &parent), ("timestamp", &time)];
        let own = members.iter().map(|(name, json)| (*name, json));
        let members: Vec<_> = head.into_iter().chain(own).map(|(name, json)| Member::text(name, json)).collect();
        self.push(format!("{}\n", object(&members)).as_bytes());
        Ok(id)
    }

    /// Takes in a line, with its `\n`, that was just made.
    fn push(&mut self, line: &[u8]) {
        let text = Arc::make_mut(&mut self.text);
        let offset = text.len() as u64;
        text.extend_from_slice(line);
        let pushed = Arc::make_mut(&mut self.tree).push(offset, &line[..line.len() - 1]);
        if let Pushed::Entry(ix) = pushed {
            self.leaf = Some(ix);
        }
    }
}

/// S1.3: letters, digits and `._-`, the first and the last a letter or digit.
pub(crate) fn is_session_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    let allowed = id.chars().all(|c| is_plain(c) || matches!(c, '.' | '_' | '-'));
    allowed && id.starts_with(is_plain) && id.ends_with(is_plain)
}

fn check_session_id(id: &str) -> Result<(), Refusal> {
    match is_session_id(id) {
        true => Ok(()),
        false => Err(Refusal::new(
            Rule::SESSION_ID,
            format!(
                "{id:?}: a session id has letters, digits, `.`, `_` and `-`, and begins and ends with a letter or digit"
            ),
        )),
    }
}

fn unreadable(error: &BranchError) -> Refusal {
    Refusal::new(Rule::UNREADABLE, error.to_string())
}
