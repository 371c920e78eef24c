//! Is a branch settled, so that something may be appended to it directly? (the table of product.md section 5)
//!
//! Pi keeps its leaf in memory: what is appended while it works lands beside its next entry. So a direct append waits until
//! the branch stands where a person, not a program, goes on.

use std::time::Duration;

use pi_session::branch::{Branch, BranchError};
use pi_session::context::Shown;
use pi_session::entry::{EntryKind, Role, Stop};
use pi_session::json::Json;
use pi_session::receipt;

use super::presence::Presence;

/// Where a branch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The assistant has stopped (or was aborted) and all its calls are answered: the user's turn.
    Finished,
    /// The same, but the tokens are over those at which Pi compacts by itself: it is probably doing so.
    Full,
    /// A call of the last assistant message has no result.
    Unanswered,
    /// Anything else: a run that goes on, the pause before a retry, a compaction of Pi's, a run that was killed.
    Open,
}

/// Whether to append now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Settled,
    /// Not before so much more quiet.
    Wait(Duration, &'static str),
    /// Not by a direct append, as things stand.
    Held(&'static str),
}

/// The two waiting times of the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// `watch.settle`.
    pub settle: Duration,
    /// `watch.live-hold`.
    pub live_hold: Duration,
}

/// Where the branch stands, grafts apart.
///
/// # Errors
/// [`BranchError`] if the text cannot be read back.
pub fn state(branch: &Branch) -> Result<State, BranchError> {
    if unanswered(branch)? {
        return Ok(State::Unanswered);
    }
    let grafts = graft_places(branch)?;
    let counts = |place: &u32| {
        let facts = branch.facts(*place);
        let is_graft = grafts.iter().any(|range| range.contains(place));
        !is_graft && (facts.gives || facts.kind == EntryKind::ContextEdit)
    };
    let Some(last) = (0..branch.in_file()).rev().find(counts) else { return Ok(State::Open) };
    let facts = branch.facts(last);
    let is_assistant = facts.kind == EntryKind::Message && facts.role == Role::Assistant;
    let stopped = matches!(facts.stop, Stop::Stop | Stop::Aborted);
    Ok(if is_assistant && stopped { State::Finished } else { State::Open })
}

/// The same where it is known above how many tokens Pi compacts by itself.
///
/// # Errors
/// [`BranchError`] if the text cannot be read back.
pub fn regarding(state: State, branch: &Branch, threshold: Option<u64>) -> Result<State, BranchError> {
    let Some(threshold) = threshold.filter(|_| state == State::Finished) else { return Ok(state) };
    let tokens = branch.tokens(&branch.context())?.total;
    Ok(if tokens > threshold as f64 { State::Full } else { State::Finished })
}

/// Whether an append may be made after `quiet` without a write of anybody else's.
#[must_use]
pub fn verdict(state: State, presence: Presence, quiet: Duration, times: &Times) -> Verdict {
    let needed = match (presence, state) {
        (Presence::Here, _) => {
            return Verdict::Held("a Pi has this session open and would not see it; waiting until it quits");
        }
        (Presence::Unknown, State::Unanswered) => {
            return Verdict::Held("tool calls are unanswered, and a Pi may be running them");
        }
        (_, State::Finished) | (Presence::Absent, State::Open | State::Full) => times.settle,
        (Presence::Absent, State::Unanswered) | (Presence::Unknown, State::Open | State::Full) => times.live_hold,
    };
    match needed.checked_sub(quiet).filter(|rest| !rest.is_zero()) {
        None => Verdict::Settled,
        Some(rest) if state == State::Finished => Verdict::Wait(rest, "the turn has just ended"),
        Some(rest) if state == State::Full => Verdict::Wait(rest, "a Pi may be compacting: its threshold is passed"),
        Some(rest) => Verdict::Wait(rest, "the turn has not ended"),
    }
}

/// The places of receipts and of what is there of their drafts.
fn graft_places(branch: &Branch) -> Result<Vec<std::ops::RangeInclusive<u32>>, BranchError> {
    let found = receipt::receipts(branch, None)?;
    Ok(found.iter().map(receipt::Found::places).collect())
}

/// Whether a call of the last assistant message in the projection has no result behind it.
fn unanswered(branch: &Branch) -> Result<bool, BranchError> {
    let context = branch.context();
    let is = |place: u32, role| {
        let facts = branch.facts(place);
        facts.kind == EntryKind::Message && facts.role == role
    };
    let last = context.entries.iter().rposition(|e| e.gives() && is(e.place, Role::Assistant));
    let Some(at) = last else { return Ok(false) };
    let entry = &context.entries[at];
    if !branch.facts(entry.place).calls && entry.shown == Shown::AsIs {
        return Ok(false);
    }
    let mut open: Vec<String> = branch.messages(entry)?.iter().flat_map(|m| call_ids(m)).collect();
    for result in context.entries[at + 1..].iter().filter(|e| e.gives() && is(e.place, Role::ToolResult)) {
        let id = branch.read(result.place, |line| text_at(line, &["message", "toolCallId"]))?;
        open.retain(|call| Some(call) != id.as_ref());
    }
    Ok(!open.is_empty())
}

fn call_ids(message: &str) -> Vec<String> {
    let Ok(message) = Json::parse(message.as_bytes()) else { return Vec::new() };
    let is_call = |block: &Json<'_>| block.get("type").and_then(Json::as_str).as_deref() == Some("toolCall");
    let blocks = message.get("content").into_iter().flat_map(Json::items);
    blocks.filter(is_call).filter_map(|block| text_at(block, &["id"])).collect()
}

fn text_at(json: Json<'_>, path: &[&str]) -> Option<String> {
    let at = path.iter().try_fold(json, |json, name| json.get(name))?;
    at.as_str().map(|text| text.into_owned())
}
