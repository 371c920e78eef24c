//! Taking back what a plugin did on a branch, by further edits (product 4.5).
//!
//! Nothing in a file is ever changed, so an edit is taken back by a later edit of its target: to the content that the target
//! would show without the plugin, which is its own, or that of the last edit of somebody else. A message is taken back by an
//! edit that leaves it out. What was written for that stands behind receipts of its own ([`HANDLER`]), which say that all the
//! plugin did on the way to them is taken back; so nobody offers it again. Those edits are nobody's: a later undo, of this
//! plugin or another one, looks through them.
//!
//! ```text
//! u1 ─ a1 ─ R1 e1(u1) ─ R2 e2(u1) ─ U e3(u1) ─ …     U takes back R1, e3 gives u1 what e2 gives it: nothing is to be done,
//!                                                    unless R2 is taken back too: then e3 gives it its own text
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::branch::{Branch, BranchError, Origin};
use crate::context::{Context, ContextEntry, Shown};
use crate::draft::Draft;
use crate::entry::{EntryKind, Role};
use crate::json::{Json, Kind};
use crate::receipt::{Found, places_behind, receipts};
use crate::refusal::{Refusal, Rule};
use crate::strict::canonical;
use crate::validate::{Accepted, DraftLimits, Judge};

/// The handler that receipts of an undo name. Their plugin is the one whose work is taken back.
pub const HANDLER: &str = "undo";

/// Bytes of one original that is written once more, at most.
const MOST_ENTRY: u64 = 64 << 20;
/// Bytes of all of them.
const MOST_BYTES: u64 = 256 << 20;

/// What there is to be taken back of one plugin's work.
#[derive(Clone, Debug)]
pub struct Undo {
    /// The edits that do it, judged as one list.
    pub accepted: Accepted,
    /// What each of them does, in the branch's order.
    pub changes: Vec<Change>,
    /// What would have to be done and cannot, and why.
    pub refused: Vec<(Change, Refusal)>,
    /// Compactions of the plugin's: only branching before them undoes them.
    pub compactions: Vec<Compaction>,
    /// Its edits and messages that a compaction hides, so that there is nothing to take back.
    pub hidden: u32,
    /// Its `custom` entries, which give nothing to the context.
    pub customs: u32,
    /// It did something here that no earlier undo speaks of.
    pub is_news: bool,
    /// The branch with the edits behind it.
    pub after: Branch,
}

/// What becomes of one entry of the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its id.
    pub target: String,
    /// Its place on the branch.
    pub place: u32,
    /// How it shows then.
    pub to: To,
}

/// How an entry shows once a plugin's work is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// As it stands.
    Itself,
    /// As the edit of this id, which is somebody else's, has it.
    Edit(String),
    /// Not at all: it is the plugin's own message.
    Nothing,
}

/// A compaction that a plugin made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Its id.
    pub id: String,
    /// The entry to branch from to be rid of it; none if nothing stands before it.
    pub before: Option<String>,
}

/// Finds what is to be done so that `branch` shows what it would show without what `plugin` did on it.
///
/// # Errors
/// [`BranchError`] if the text cannot be read back.
pub fn undo(branch: &Branch, plugin: &str) -> Result<Undo, BranchError> {
    let work = Work::of(branch, plugin)?;
    let (context, wanted) = (branch.context(), branch.context_without(&work.out));
    let mut wishes = Vec::new();
    for (now, then) in context.entries.iter().zip(&wanted.entries) {
        if work.touched.contains(&now.place) {
            wishes.extend(wish(branch, now, then, &work)?);
        }
    }
    let (changes, drafts, mut refused) = drafted(wishes);
    let limits = DraftLimits { entries: u32::MAX, entry_bytes: MOST_ENTRY, batch_bytes: MOST_BYTES };
    let mut judge = Judge::new(branch.without_pending(), limits, Origin::default());
    let answers = judge.edits(drafts);
    let mut done = Vec::new();
    for (change, answer) in changes.into_iter().zip(answers) {
        match answer {
            Ok(()) => done.push(change),
            Err(refusal) => refused.push((change, refusal)),
        }
    }
    let after = judge.branch().clone();
    let (hidden, compactions) = (work.hidden(branch, &context), work.compactions(branch));
    let (customs, is_news) = (work.customs, work.is_news);
    Ok(Undo { accepted: judge.finish(), changes: done, refused, compactions, hidden, customs, is_news, after })
}

/// What a plugin did on a branch.
struct Work {
    /// Edits and messages that do not count: what is taken back, of this plugin now and of others before, and what did that.
    out: HashSet<u32>,
    /// What this plugin edited, and its messages.
    touched: BTreeSet<u32>,
    /// Each of its edits, and the place of its target.
    edits: Vec<Option<u32>>,
    messages: Vec<u32>,
    /// Its compactions, and the receipt of each.
    compactions: Vec<(u32, u32)>,
    customs: u32,
    is_news: bool,
}

impl Work {
    fn of(branch: &Branch, plugin: &str) -> Result<Work, BranchError> {
        let found = receipts(branch, None)?;
        let undone: BTreeMap<&str, u32> = found
            .iter()
            .filter(|f| f.receipt.handler == HANDLER)
            .map(|f| (f.receipt.plugin.as_str(), f.place))
            .collect();
        let mut work = Work {
            out: HashSet::new(),
            touched: BTreeSet::new(),
            edits: Vec::new(),
            messages: Vec::new(),
            compactions: Vec::new(),
            customs: 0,
            is_news: false,
        };
        for graft in &found {
            let (by, last) = (graft.receipt.plugin.as_str(), undone.get(graft.receipt.plugin.as_str()));
            let is_undo = graft.receipt.handler == HANDLER;
            let is_own = by == plugin && !is_undo;
            if is_undo || is_own || last.is_some_and(|last| graft.place < *last) {
                work.take_out(branch, graft);
            }
            if is_own {
                work.take(branch, graft, last.is_none_or(|last| graft.place > *last));
            }
        }
        work.touched = work.edits.iter().copied().flatten().chain(work.messages.iter().copied()).collect();
        Ok(work)
    }

    fn take_out(&mut self, branch: &Branch, graft: &Found) {
        let counts =
            |place: &u32| matches!(branch.facts(*place).kind, EntryKind::ContextEdit | EntryKind::CustomMessage);
        self.out.extend(entries_of(branch, graft).filter(counts));
    }

    fn take(&mut self, branch: &Branch, graft: &Found, is_news: bool) {
        for place in entries_of(branch, graft) {
            let facts = branch.facts(place);
            match facts.kind {
                EntryKind::ContextEdit => self.edits.push(facts.names.and_then(|id| branch.place_of_ix(id))),
                EntryKind::CustomMessage => self.messages.push(place),
                EntryKind::Compaction => self.compactions.push((place, graft.place)),
                _ => self.customs += 1,
            }
            self.is_news |= is_news && matches!(facts.kind, EntryKind::ContextEdit | EntryKind::CustomMessage);
        }
    }

    /// How many of its edits and messages have nothing in the context.
    fn hidden(&self, branch: &Branch, context: &Context) -> u32 {
        let shown: HashSet<u32> = context.entries.iter().map(|entry| entry.place).collect();
        let is_hidden = |place: &u32| !shown.contains(place) && *place < branch.in_file();
        let edits = self.edits.iter().filter(|target| target.is_none_or(|place| is_hidden(&place))).count();
        (edits + self.messages.iter().filter(|place| is_hidden(place)).count()) as u32
    }

    fn compactions(&self, branch: &Branch) -> Vec<Compaction> {
        let id = |place: u32| branch.item(place).id.map(str::to_owned);
        let of = |(place, receipt): &(u32, u32)| {
            Some(Compaction { id: id(*place)?, before: receipt.checked_sub(1).and_then(id) })
        };
        self.compactions.iter().filter_map(of).collect()
    }
}

/// The places of what stands behind a receipt.
fn entries_of(branch: &Branch, graft: &Found) -> impl Iterator<Item = u32> {
    places_behind(branch, graft.place, graft.receipt.entries as usize)
}

/// What is to be appended for one entry: the edit, or why there is none.
type Wish = (Change, Result<Draft, Refusal>);

/// What is to be done so that an entry shows as it is to show; nothing where it does already.
fn wish(branch: &Branch, now: &ContextEntry, then: &ContextEntry, work: &Work) -> Result<Option<Wish>, BranchError> {
    if now.shown == then.shown || (!now.gives() && !then.gives()) {
        return Ok(None);
    }
    let Some(target) = branch.item(now.place).id.map(str::to_owned) else { return Ok(None) };
    let to = match then.shown {
        _ if work.out.contains(&then.place) => To::Nothing,
        Shown::Omitted { by } | Shown::Replaced { by } => To::Edit(branch.item(by).id.unwrap_or_default().to_owned()),
        Shown::Nothing | Shown::AsIs => To::Itself,
    };
    let change = Change { target, place: now.place, to };
    if !then.gives() {
        let draft = Draft::context_edit(&change.target, None);
        return Ok(Some((change, draft)));
    }
    let Some(content) = content(branch, then)? else {
        let refusal = Refusal::new(Rule::EDIT, "it has no content of its own, so no edit can give it back");
        return Ok(Some((change, Err(refusal))));
    };
    if now.gives() && self::content(branch, now)?.is_some_and(|shown| is_same(&shown, &content)) {
        return Ok(None);
    }
    let draft = Draft::context_edit(&change.target, Some(&format!("{{\"content\":{content}}}")));
    Ok(Some((change, draft)))
}

/// The content that an entry shows, as JSON, in the form in which an edit has it (S7.2).
fn content(branch: &Branch, entry: &ContextEntry) -> Result<Option<String>, BranchError> {
    let messages = branch.messages(entry)?;
    let [message] = &messages[..] else { return Ok(None) };
    let content = Json::parse(message.as_bytes()).ok().and_then(|message| message.get("content"));
    let in_blocks = matches!(branch.facts(entry.place).role, Role::Assistant | Role::ToolResult);
    Ok(content.map(|content| match content.kind() {
        Kind::String if in_blocks => format!("[{{\"type\":\"text\",\"text\":{}}}]", content.to_text()),
        _ => content.to_text().into_owned(),
    }))
}

fn is_same(a: &str, b: &str) -> bool {
    let spelt = |text: &str| Json::parse(text.as_bytes()).ok().and_then(canonical);
    a == b || spelt(a).is_some_and(|a| Some(a) == spelt(b))
}

/// Those for which there is an edit, and those for which there is none.
fn drafted(wishes: Vec<Wish>) -> (Vec<Change>, Vec<Draft>, Vec<(Change, Refusal)>) {
    let (mut changes, mut drafts, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (change, draft) in wishes {
        match draft {
            Ok(draft) => {
                changes.push(change);
                drafts.push(draft);
            }
            Err(refusal) => refused.push((change, refusal)),
        }
    }
    (changes, drafts, refused)
}
