//! Telling a recorded session anew: entry by entry, grafts left out, and what the plugins propose now in their place.
//!
//! Of two children of one entry the first in the file goes behind the graft, later ones stay on the entry: so a branch that
//! Pi left is left here too.
//!
//! ```text
//! recorded  a1 ── R n1 ── u2        told anew  a1 ┬─ R' n1' ── u2
//!              └─ u3                              └─ u3
//! ```

use std::collections::HashSet;

use pi_session::context::Context;
use pi_session::entry::{Entry, EntryKind, Role, Stop};
use pi_session::grafts::Grafts;
use pi_session::json::Json;
use pi_session::retell::{Retold, retell};
use pi_session::tree::EntryIx;
use serde_json::value::RawValue;

use super::ReplayError;
use super::cache::{self, Break};
use super::pi::{Appended, Boundary, Handed, Pi, Pushed};
use super::recorded::{Part, Recorded};
use super::scene::Want;

/// How often in a row an idle Pi is pushed something: a plugin that answers its own grafts ends somewhere.
const MOST_PUSHES: u32 = 64;

/// What became of a recorded entry.
#[derive(Clone, Debug, Default)]
struct Stand {
    /// Its id here, or what stands in its place; none for what stands before the first entry.
    id: Option<String>,
    /// The last entry of the graft behind it, where its first child goes.
    behind: Option<String>,
    /// It has its first child.
    taken: bool,
    /// A graft, or a part of one.
    left_out: bool,
    /// The context here is another one than was recorded; of what is left out, that it showed something.
    other: bool,
    /// The same behind the graft.
    other_behind: bool,
}

/// Tells one session.
pub(super) struct Play<'r> {
    recorded: &'r Recorded,
    pi: Pi,
    /// By the number of the recorded entry.
    stands: Vec<Stand>,
    /// Before the first entry.
    root: Stand,
    /// Where Pi stands.
    leaf: Option<String>,
    /// Calls of the last assistant message without a result.
    open: HashSet<String>,
    /// Lines that were written and not read by the daemon.
    unread: bool,
    pub(super) left_out: u64,
    pub(super) breaks: Vec<Break>,
}

impl<'r> Play<'r> {
    pub(super) fn new(recorded: &'r Recorded, pi: Pi) -> Play<'r> {
        let stands = vec![Stand::default(); recorded.tree.entries().len()];
        let (root, open, breaks) = (Stand::default(), HashSet::new(), Vec::new());
        Play { recorded, pi, stands, root, leaf: None, open, unread: false, left_out: 0, breaks }
    }

    /// Tells all of it; `told` hears of the bytes that were told.
    pub(super) fn all(&mut self, wants: &[Want], told: &dyn Fn(u64)) -> Result<(), ReplayError> {
        let mut grafts = Grafts::default();
        for ix in self.recorded.tree.all() {
            let line = self.recorded.line(ix)?;
            match self.recorded.part(&mut grafts, ix, &line) {
                Part::Graft => self.leave_out(ix),
                Part::Wanted(reason) => self.want_again(ix, reason)?,
                Part::Own => self.tell(ix, &line)?,
            }
            self.want_behind(ix, wants)?;
            told(line.len() as u64 + 1);
        }
        self.read()
    }

    /// Asks for the compactions that are wanted behind a recorded entry.
    fn want_behind(&mut self, ix: EntryIx, wants: &[Want]) -> Result<(), ReplayError> {
        let (Some(kept), _) = self.kept(Some(ix)) else { return Ok(()) };
        for want in wants.iter().filter(|want| want.after == ix.index() + 1) {
            self.read()?;
            let (reason, instructions) = (Some(want.reason.clone()), want.instructions.clone());
            let boundary = Boundary { at: "session_before_compact", reason, instructions, ..Boundary::default() };
            let handed = self.pi.ask(self.leaf.as_deref(), boundary)?;
            self.graft(kept, &handed)?;
        }
        Ok(())
    }

    /// The end: Pi stands at rest behind the last entry, whatever that is, and takes what is pending.
    pub(super) fn rest(&mut self) -> Result<(), ReplayError> {
        let (Some(last), _) = self.kept(self.recorded.tree.all().next_back()) else { return Ok(()) };
        self.offer(last, Boundary { at: "agent_before_settle", outcome: "completed", ..Boundary::default() })?;
        self.settle(last)
    }

    /// Where the recorded session's leaf is here.
    pub(super) fn end(&self) -> Option<String> {
        let (kept, _) = self.kept(self.recorded.tree.all().next_back());
        let stand = kept.map_or(&self.root, |ix| &self.stands[ix.index()]);
        stand.behind.clone().or_else(|| stand.id.clone())
    }

    pub(super) fn pi(&self) -> &Pi {
        &self.pi
    }

    fn stand_of(&mut self, kept: Option<EntryIx>) -> &mut Stand {
        match kept {
            Some(ix) => &mut self.stands[ix.index()],
            None => &mut self.root,
        }
    }

    /// What hung on a graft hangs on what the graft hung on.
    fn leave_out(&mut self, ix: EntryIx) {
        let other = self.recorded.tree.entry(ix).kind != EntryKind::Custom;
        self.stands[ix.index()] = Stand { left_out: true, other, ..Stand::default() };
        self.left_out += 1;
    }

    /// The entry that a child of `parent` hangs on, grafts left out, and whether one of those had shown something.
    fn kept(&self, parent: Option<EntryIx>) -> (Option<EntryIx>, bool) {
        let (mut at, mut other) = (parent, false);
        // A circle of parents ends too.
        for _ in 0..self.stands.len() {
            let Some(stand) = at.map(|ix| &self.stands[ix.index()]).filter(|stand| stand.left_out) else { break };
            other |= stand.other;
            at = at.and_then(|ix| self.recorded.tree.parent(ix));
        }
        (at, other)
    }

    /// A compaction that a plugin had made for Pi: it is wanted again.
    fn want_again(&mut self, ix: EntryIx, reason: String) -> Result<(), ReplayError> {
        let parent = self.recorded.tree.parent(ix);
        let (kept, _) = self.kept(parent);
        let before = self.stand_of(kept).taken;
        let hang = self.hang(parent);
        self.leave_out(ix);
        if !self.want(ix, &hang, reason)? {
            self.stand_of(kept).taken = before;
        }
        Ok(())
    }

    /// Where a child of `parent` hangs, and whether its context is another than was recorded.
    fn hang(&mut self, parent: Option<EntryIx>) -> (Option<String>, bool) {
        let (kept, other) = self.kept(parent);
        let stand = self.stand_of(kept);
        let first = !std::mem::replace(&mut stand.taken, true);
        match stand.behind.clone().filter(|_| first) {
            Some(behind) => (Some(behind), other || stand.other_behind),
            None => (stand.id.clone(), other || stand.other),
        }
    }

    /// Asks for a compaction in the place of `ix`. Whether a plugin made one.
    fn want(&mut self, ix: EntryIx, hang: &(Option<String>, bool), reason: String) -> Result<bool, ReplayError> {
        self.leaf.clone_from(&hang.0);
        self.read()?;
        let boundary = Boundary { at: "session_before_compact", reason: Some(reason), ..Boundary::default() };
        let handed = self.pi.ask(self.leaf.as_deref(), boundary)?;
        if matches!(handed, Handed::Nothing) {
            return Ok(false);
        }
        let appended = self.take(&handed)?;
        self.stands[ix.index()] = Stand { id: appended.leaf, other: true, ..Stand::default() };
        Ok(true)
    }

    /// Pi appends what it was handed, and stands behind it.
    fn take(&mut self, handed: &Handed) -> Result<Appended, ReplayError> {
        let before = if may_change(handed) { self.context()? } else { Context::default() };
        let appended = self.pi.append(self.leaf.as_deref(), handed)?;
        self.leaf.clone_from(&appended.leaf);
        if appended.changes {
            self.note_break(&before)?;
        }
        Ok(appended)
    }

    fn context(&self) -> Result<Context, ReplayError> {
        Ok(self.pi.branch(self.leaf.as_deref())?.context())
    }

    fn note_break(&mut self, before: &Context) -> Result<(), ReplayError> {
        let branch = self.pi.branch(self.leaf.as_deref())?;
        let found = cache::compare(&branch, before, &branch.context());
        self.breaks.extend(found);
        Ok(())
    }

    fn read(&mut self) -> Result<(), ReplayError> {
        if std::mem::take(&mut self.unread) { self.pi.read(self.leaf.as_deref()) } else { Ok(()) }
    }

    /// Writes a recorded entry at its place here, and does what Pi does behind it.
    fn tell(&mut self, ix: EntryIx, line: &[u8]) -> Result<(), ReplayError> {
        let (parent, facts) = (self.recorded.tree.parent(ix), *self.recorded.tree.entry(ix));
        let hang = self.hang(parent);
        if facts.kind == EntryKind::Compaction && self.want(ix, &hang, "threshold".to_owned())? {
            return Ok(());
        }
        let changes = matches!(facts.kind, EntryKind::Compaction | EntryKind::ContextEdit);
        let before = if changes { Some(self.context_at(&hang.0)?) } else { None };
        let text = self.retold(ix, line, parent, &hang)?;
        self.pi.write(text.as_deref().unwrap_or(line))?;
        let id = Some(self.recorded.tree.id(ix).to_owned());
        self.leaf.clone_from(&id);
        self.unread = true;
        self.stands[ix.index()] = Stand { id, other: hang.1, ..Stand::default() };
        if let Some(before) = before {
            self.read()?;
            self.note_break(&before)?;
        }
        self.at_boundary(ix, &facts, line)
    }

    fn context_at(&mut self, leaf: &Option<String>) -> Result<Context, ReplayError> {
        self.leaf.clone_from(leaf);
        self.read()?;
        self.context()
    }

    /// The line with what is different here; none if nothing is.
    fn retold(
        &mut self,
        ix: EntryIx,
        line: &[u8],
        parent: Option<EntryIx>,
        (hang, other): &(Option<String>, bool),
    ) -> Result<Option<Vec<u8>>, ReplayError> {
        let facts = *self.recorded.tree.entry(ix);
        let moved = parent.map(|parent| self.recorded.tree.id(parent)) != hang.as_deref();
        let first_kept = self.first_kept(&facts);
        let reports = *other && facts.usage.is_some();
        if !moved && first_kept.is_none() && !reports {
            return Ok(None);
        }
        let context_tokens = if reports { Some(self.estimate(hang, &facts)?) } else { None };
        let parent = moved.then_some(hang.as_deref());
        let retold = Retold { parent, first_kept: first_kept.as_deref(), context_tokens };
        Ok(Some(retell(line, &retold).map_err(|e| ReplayError::Unfit(e.to_string()))?))
    }

    /// What a compaction of Pi's keeps first, if that is something else here.
    fn first_kept(&self, facts: &Entry) -> Option<String> {
        let named = facts.names.filter(|_| facts.kind == EntryKind::Compaction)?;
        let named = self.recorded.tree.id_text(named);
        let at = self.recorded.tree.by_id(named)?.index();
        let stand = self.stands[at..].iter().find(|stand| !stand.left_out)?;
        stand.id.clone().filter(|id| id != named)
    }

    /// The tokens of the context behind an answer, as they are estimated here: what was reported is of another context.
    fn estimate(&mut self, hang: &Option<String>, facts: &Entry) -> Result<u64, ReplayError> {
        let context = self.context_at(hang)?;
        let branch = self.pi.branch(self.leaf.as_deref())?;
        Ok(branch.tokens(&context)?.total as u64 + u64::from(facts.tokens))
    }

    /// A boundary after each assistant entry whose calls are answered; settled where a turn ends.
    fn at_boundary(&mut self, ix: EntryIx, facts: &Entry, line: &[u8]) -> Result<(), ReplayError> {
        if facts.kind != EntryKind::Message {
            return Ok(());
        }
        match facts.role {
            Role::Assistant => {
                self.open = if facts.calls { calls(line) } else { HashSet::new() };
                if self.open.is_empty() { self.turn_end(ix, facts.stop) } else { Ok(()) }
            }
            Role::ToolResult => {
                let answered = answered(line).is_some_and(|call| self.open.remove(&call));
                if answered && self.open.is_empty() { self.turn_end(ix, Stop::ToolUse) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn turn_end(&mut self, ix: EntryIx, stop: Stop) -> Result<(), ReplayError> {
        self.read()?;
        let (outcome, stop_reason) = words(stop);
        self.offer(ix, Boundary { at: "turn_end", outcome, stop: Some(stop_reason), ..Boundary::default() })?;
        if !matches!(stop, Stop::Stop | Stop::Aborted) {
            return Ok(());
        }
        self.offer(ix, Boundary { at: "agent_before_settle", outcome, ..Boundary::default() })?;
        self.settle(ix)
    }

    /// Asks at a boundary, if there may be something to be handed.
    fn offer(&mut self, ix: EntryIx, boundary: Boundary) -> Result<(), ReplayError> {
        if !self.pi.has_left() {
            return Ok(());
        }
        let handed = self.pi.ask(self.leaf.as_deref(), boundary)?;
        self.graft(ix, &handed)
    }

    /// Pi is idle: what can be pushed is, until there is nothing more.
    fn settle(&mut self, ix: EntryIx) -> Result<(), ReplayError> {
        for _ in 0..MOST_PUSHES {
            if !self.pi.has_left() {
                return Ok(());
            }
            let handed = match self.pi.idle(self.leaf.as_deref())? {
                None => return Ok(()),
                Some(Pushed::Entries(entries)) => Handed::Entries(entries),
                Some(Pushed::Compact(token)) => {
                    let at = "session_before_compact";
                    let boundary =
                        Boundary { at, reason: Some("manual".to_owned()), token: Some(token), ..Boundary::default() };
                    self.pi.ask(self.leaf.as_deref(), boundary)?
                }
            };
            if matches!(handed, Handed::Nothing) {
                return Ok(());
            }
            self.graft(ix, &handed)?;
        }
        Ok(())
    }

    /// Puts a graft behind a recorded entry.
    fn graft(&mut self, ix: EntryIx, handed: &Handed) -> Result<(), ReplayError> {
        if matches!(handed, Handed::Nothing) {
            return Ok(());
        }
        let appended = self.take(handed)?;
        let stand = &mut self.stands[ix.index()];
        stand.other_behind = stand.other || stand.other_behind || appended.shows;
        stand.behind = appended.leaf;
        Ok(())
    }
}

/// Whether the context may be another one behind this, told without reading it.
fn may_change(handed: &Handed) -> bool {
    let names = |entry: &RawValue| ["\"compaction\"", "\"context_edit\""].iter().any(|kind| entry.get().contains(kind));
    match handed {
        Handed::Nothing => false,
        Handed::Compaction(_) => true,
        Handed::Entries(entries) => entries.iter().any(|entry| names(entry)),
    }
}

/// How a turn ended, and why the model stopped, in Pi's words.
fn words(stop: Stop) -> (&'static str, &'static str) {
    match stop {
        Stop::Stop => ("completed", "stop"),
        Stop::ToolUse => ("completed", "toolUse"),
        Stop::Length => ("completed", "length"),
        Stop::Error => ("error", "error"),
        Stop::Aborted => ("aborted", "aborted"),
        Stop::None | Stop::Other => ("completed", ""),
    }
}

/// The ids of an assistant's calls.
fn calls(line: &[u8]) -> HashSet<String> {
    let content = Json::parse(line).ok().and_then(|entry| entry.get("message")?.get("content"));
    let is_call = |block: &Json<'_>| block.get("type").and_then(Json::as_str).as_deref() == Some("toolCall");
    let calls = content.into_iter().flat_map(Json::items).filter(is_call);
    calls.filter_map(|call| Some(call.get("id")?.as_str()?.into_owned())).collect()
}

/// The call that a tool's result answers.
fn answered(line: &[u8]) -> Option<String> {
    let entry = Json::parse(line).ok()?;
    Some(entry.get("message")?.get("toolCallId")?.as_str()?.into_owned())
}
