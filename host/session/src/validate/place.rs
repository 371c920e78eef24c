//! Where a draft would stand: whether its target is there, may be edited, is in the context and is nobody else's
//! (S12.5, S12.6, product 4.4).

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::branch::Branch;
use crate::context::Shown;
use crate::draft::{Draft, fields};
use crate::entry::{EntryKind, Role};
use crate::header::Version;
use crate::json::Json;
use crate::refusal::{Refusal, Rule};
use crate::shape::{Owner, check_content};
use crate::strict::RawJson;
use crate::tree::{EntryIx, Leaf, Status, Tree};

/// What is known of a branch before the first draft is judged.
pub(super) struct Placed {
    /// The branch whose context counts: what is in the file.
    file: Branch,
    /// The places in that context and how they show, once they are asked for.
    shown: OnceCell<HashMap<u32, Shown>>,
    /// The places that a pending edit of another run names.
    edited: HashSet<u32>,
    /// Another run's compaction is pending.
    compacting: bool,
}

impl Placed {
    /// Looks at `branch`. What only a pending compaction hides counts as shown: it may never land.
    pub(super) fn on(branch: &Branch) -> Placed {
        let pending: Vec<_> = (branch.in_file()..branch.len()).map(|place| branch.facts(place)).collect();
        let edits = pending.iter().filter(|facts| facts.kind == EntryKind::ContextEdit);
        Placed {
            file: branch.without_pending(),
            shown: OnceCell::new(),
            edited: edits.filter_map(|edit| branch.place_of_ix(edit.names?)).collect(),
            compacting: pending.iter().any(|facts| facts.kind == EntryKind::Compaction),
        }
    }

    /// How the entry at `place` shows; `None` if it is not in the context.
    fn shown(&self, place: u32) -> Option<Shown> {
        let all = || self.file.context().entries.iter().map(|entry| (entry.place, entry.shown)).collect();
        self.shown.get_or_init(all).get(&place).copied()
    }

    /// Whether an edit of the entry at `place` could part a call from its result. Most cannot, and cost no look at pairs.
    pub(super) fn may_part(&self, place: u32, replacement: Option<&RawJson>) -> bool {
        let facts = self.file.facts(place);
        let stays = replacement.is_some() && self.shown(place) == Some(Shown::AsIs);
        match facts.role {
            Role::ToolResult => !stays,
            Role::Assistant => !stays || facts.calls || replacement.is_some_and(has_calls),
            _ => false,
        }
    }

    /// Looks at the context again, after a compaction that will be in the file before what follows.
    pub(super) fn look_again(&mut self, branch: &Branch) {
        self.file = branch.clone();
        self.shown = OnceCell::new();
    }
}

/// Whether the content of a replacement holds tool calls.
fn has_calls(replacement: &RawJson) -> bool {
    let blocks = replacement.json().get("content").into_iter().flat_map(Json::items);
    blocks.filter_map(|block| block.get("type")?.as_str()).any(|kind| kind == "toolCall")
}

/// Whether anything may be appended behind this branch at all (S3, S11.2, S2.2, S12.2).
pub(crate) fn appendable(branch: &Branch) -> Result<(), Refusal> {
    writable(branch.tree())?;
    has_leaf(branch.tree(), branch.leaf())?;
    branch.leaf_id().map_or(Ok(()), |id| writable_id(id, Rule::IDENTITY))
}

/// Whether anything may be appended to this file (S2.3, S3, S11.2).
pub(crate) fn writable(tree: &Tree) -> Result<(), Refusal> {
    let version = tree.header().filter(|_| tree.status() == Status::Session).map(|header| header.version);
    let (rule, message) = match version {
        None => (Rule::NO_SESSION, "the file has no session header yet: nothing can hang on it"),
        Some(Version::V1 | Version::V2) => {
            (Rule::OLD_VERSION, "the session is of an old version: run `pi-graft session migrate` first")
        }
        Some(Version::Newer) => (Rule::NEWER_VERSION, "the session is of a version above 3, which is never written to"),
        Some(Version::V3) => return Ok(()),
    };
    Err(Refusal::new(rule, message))
}

/// Whether it is known what an entry would hang on: where Pi is left without a leaf, one has to be named (S2.2).
pub(crate) fn has_leaf(tree: &Tree, leaf: Option<EntryIx>) -> Result<(), Refusal> {
    if leaf.is_some() || tree.leaf() != Leaf::NoId {
        return Ok(());
    }
    let message = "Pi has no leaf in this file, since its last entry has no id: name an entry to go on from";
    Err(Refusal::new(Rule::NO_LEAF, message))
}

/// An edit that may stand, or why not.
pub(super) enum Edit {
    /// It may stand, in this form (S7.2).
    Fits(Draft),
    /// Its target is not in the context.
    Hidden(Refusal),
}

/// Judges an edit of `target` (S7.1, S12.6).
pub(super) fn edit(
    branch: &Branch,
    placed: &Placed,
    target: &str,
    replacement: Option<&RawJson>,
) -> Result<Edit, Refusal> {
    let Some(place) = place_in_file(branch, target, Rule::EDIT)? else {
        return Ok(Edit::Hidden(absent(branch, target)));
    };
    let owner = editable(branch, place, target)?;
    if placed.shown(place).is_none() {
        return Ok(Edit::Hidden(summarised(target)));
    }
    if placed.edited.contains(&place) {
        let message = format!(
            "an edit of {target:?} by an earlier run is pending: leave this entry alone until it is in the file"
        );
        return Err(Refusal::new(Rule::PENDING, message));
    }
    let replacement = replacement.map(|replacement| fit(replacement, owner, branch, place)).transpose()?;
    Ok(Edit::Fits(Draft::ContextEdit { target: target.to_owned(), replacement }))
}

/// The place of a named entry; `None` if it is not on the branch.
fn place_in_file(branch: &Branch, id: &str, rule: Rule) -> Result<Option<u32>, Refusal> {
    if id.is_empty() {
        let message =
            "an entry that is not in the file yet has no id, and a draft may not name it: wait until it has one";
        return Err(Refusal::new(Rule::TARGET_PENDING, message));
    }
    writable_id(id, rule)?;
    Ok(branch.place_of(id).filter(|place| *place < branch.in_file()))
}

/// Ids are compared by Pi as they stand; one that was not valid Unicode cannot be written the same again (S2.5).
pub(crate) fn writable_id(id: &str, rule: Rule) -> Result<(), Refusal> {
    match id.contains('\u{fffd}') {
        true => {
            Err(Refusal::new(rule, format!("the id {id:?} is not valid Unicode in the file, so it cannot be named")))
        }
        false => Ok(()),
    }
}

/// Why an id that is not on the branch cannot be edited.
fn absent(branch: &Branch, target: &str) -> Refusal {
    let message = match branch.tree().by_id(target) {
        Some(_) => format!("{target:?} is on another branch: edit entries of the branch that the plugin runs on"),
        None => format!("there is no entry {target:?} in this session: name one by the id that `branch` gives"),
    };
    Refusal::new(Rule::EDIT, message)
}

/// Why a summarised entry cannot be edited.
fn summarised(target: &str) -> Refusal {
    let message = format!(
        "{target:?} is not in the context: a compaction has already summarised it away, so an edit would do nothing"
    );
    Refusal::new(Rule::EDIT, message)
}

/// Whose content the entry at `place` shows, if it is one that may be edited (S7.1).
fn editable(branch: &Branch, place: u32, target: &str) -> Result<Owner, Refusal> {
    let facts = branch.facts(place);
    match (facts.kind, facts.role) {
        (EntryKind::CustomMessage, _) | (EntryKind::Message, Role::User | Role::ToolResult) => Ok(Owner::Plain),
        (EntryKind::Message, Role::Assistant) => Ok(Owner::Assistant),
        (EntryKind::Message, role) => Err(not_editable(target, &format!("{} message", role.as_str()))),
        (kind, _) => Err(not_editable(target, &format!("{} entry", kind.as_str()))),
    }
}

fn not_editable(target: &str, what: &str) -> Refusal {
    let message = format!(
        "{target:?} is a {what}: only user, assistant and toolResult messages and custom_message entries can be edited"
    );
    Refusal::new(Rule::EDIT, message)
}

/// The replacement as it is stored for this target: text of an assistant or a tool result as a block (S7.2).
fn fit(replacement: &RawJson, owner: Owner, branch: &Branch, place: u32) -> Result<RawJson, Refusal> {
    let Some(content) = replacement.json().get("content") else {
        return Err(Refusal::new(Rule::FIELDS, "`replacement` has no `content`"));
    };
    fields(check_content(content, owner), "replacement.content")?;
    let takes_blocks = matches!(branch.facts(place).role, Role::Assistant | Role::ToolResult);
    if !takes_blocks || content.as_str().is_none() {
        return Ok(replacement.clone());
    }
    let block = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", content.to_text());
    Ok(RawJson::assembled(block))
}

/// Judges where a compaction would stand; whether its cut parts a call is seen when it is there (S12.5).
pub(super) fn compaction(branch: &Branch, placed: &Placed, first_kept: Option<&str>) -> Result<(), Refusal> {
    if placed.compacting {
        let message = "a compaction by an earlier run is pending: wait until it is in the file";
        return Err(Refusal::new(Rule::PENDING, message));
    }
    if follows_compaction(branch) {
        let message = "nothing has come into the context since the last compaction: wait for the next message";
        return Err(Refusal::new(Rule::COMPACTION, message));
    }
    let Some(id) = first_kept else { return Ok(()) };
    match place_in_file(branch, id, Rule::COMPACTION)? {
        Some(_) => Ok(()),
        None => Err(Refusal::new(Rule::COMPACTION, off_path(id))),
    }
}

fn off_path(id: &str) -> String {
    format!(
        "the first kept entry {id:?} is not on this branch, so Pi would lose all earlier context: \
         name an entry of the branch, such as the one in the host's compaction plan, or none to keep none"
    )
}

/// Whether a compaction that still gives its summary has nothing behind it that gives a message.
fn follows_compaction(branch: &Branch) -> bool {
    let entries = branch.context().entries;
    let Some(first) = entries.first() else { return false };
    let is_summary = branch.facts(first.place).kind == EntryKind::Compaction && first.shown == Shown::AsIs;
    is_summary && !entries.iter().any(|entry| entry.place > first.place && entry.gives())
}

/// For the order within a list of edits: a result stands before its call (product 4.5).
pub(super) fn is_edit_of_other_than_result(branch: &Branch, draft: &Draft) -> bool {
    let Draft::ContextEdit { target, .. } = draft else { return false };
    let role = branch.place_of(target).map(|place| branch.facts(place).role);
    role != Some(Role::ToolResult)
}
