//! Which tool call belongs to which result in a projection, and which stand alone.
//!
//! A result without its call breaks every later request to a provider; a call without its result is answered by
//! Pi in our place. Sessions hold such loose ends already (a run that was killed), so what counts is whether a
//! draft makes *new* ones (S12.5, S12.6).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::branch::{Branch, BranchError};
use crate::context::Shown;
use crate::entry::Role;
use crate::json::Json;
use crate::walk;

/// The calls or the result that one message holds.
#[derive(Clone, Default, Debug)]
struct Ends {
    calls: Vec<String>,
    result: Option<String>,
}

/// What was read of entries in the file, which never change, so that a message is parsed once for a judge.
#[derive(Clone, Default, Debug)]
pub(crate) struct EndsCache(HashMap<u32, Arc<Ends>>);

/// A call without a result, or a result without its call: its place on the branch and the call's id.
pub(crate) type Loose = (u32, String);

/// Calls and results of one projection.
#[derive(Default, Debug)]
pub(crate) struct Pairs {
    /// Of each call its place, its id and the places of its results.
    calls: Vec<(u32, String, Vec<u32>)>,
    /// Results that no call precedes.
    orphans: Vec<Loose>,
}

impl Pairs {
    /// The calls and results that the context of `branch` shows.
    pub(crate) fn of(branch: &Branch, cache: &mut EndsCache) -> Result<Pairs, BranchError> {
        let (mut pairs, mut latest) = (Pairs::default(), HashMap::new());
        for entry in branch.context().entries {
            let ends = cache.ends(branch, entry.place, entry.shown)?;
            pairs.add(entry.place, &ends, &mut latest);
        }
        Ok(pairs)
    }

    /// Takes in the next message. A result answers the latest call of its id; of two in one message, both.
    fn add(&mut self, place: u32, ends: &Ends, latest: &mut HashMap<String, usize>) {
        for id in &ends.calls {
            if latest.get(id).is_some_and(|call| self.calls[*call].0 == place) {
                continue;
            }
            latest.insert(id.clone(), self.calls.len());
            self.calls.push((place, id.clone(), Vec::new()));
        }
        let Some(id) = &ends.result else { return };
        match latest.get(id) {
            Some(call) => self.calls[*call].2.push(place),
            None => self.orphans.push((place, id.clone())),
        }
    }

    /// All that stand alone.
    pub(crate) fn loose(&self) -> BTreeSet<Loose> {
        let unanswered = self.calls.iter().filter(|(_, _, results)| results.is_empty());
        unanswered.map(|(place, id, _)| (*place, id.clone())).chain(self.orphans.iter().cloned()).collect()
    }

    /// The places of what a call or result belongs to here.
    pub(crate) fn partners(&self, (place, id): &Loose) -> Vec<u32> {
        let mut partners = Vec::new();
        for (call, _, results) in self.calls.iter().filter(|(_, call_id, _)| call_id == id) {
            if call == place {
                partners.extend(results);
            } else if results.contains(place) {
                partners.push(*call);
            }
        }
        partners
    }
}

/// What the context says of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answers {
    /// It waits for its result.
    Open,
    /// It has its result.
    Answered,
    /// It is not there.
    NoCall,
}

/// Whether the latest call of this id waits for its result. Looks from the end back, so the usual case costs little.
pub(crate) fn answers(branch: &Branch, call: &str) -> Result<Answers, BranchError> {
    let mut cache = EndsCache::default();
    for entry in branch.context().entries.iter().rev() {
        let ends = cache.ends(branch, entry.place, entry.shown)?;
        if ends.result.as_deref() == Some(call) {
            return Ok(Answers::Answered);
        }
        if ends.calls.iter().any(|id| id == call) {
            return Ok(Answers::Open);
        }
    }
    Ok(Answers::NoCall)
}

/// Bytes of a tool result in which the id of its call stands, as Pi writes it.
const HEAD: usize = 1024;

impl Branch {
    /// The call that the tool result at `place` answers. Where the id stands near the beginning, as Pi writes it, the rest
    /// of what may be a long line is not read.
    pub(crate) fn call_of_result(&self, place: u32) -> Result<Option<String>, BranchError> {
        let head = walk::call_in_head(&self.part(place, 0, HEAD)?);
        match head {
            Some(call) => Ok(Some(call)),
            None => Ok(self
                .read(place, |entry| Some(ends_of(entry.get("message")?, Role::ToolResult)))?
                .and_then(|e| e.result)),
        }
    }
}

impl EndsCache {
    /// The ids of the calls that the assistant message at `place` shows.
    pub(crate) fn calls(&mut self, branch: &Branch, place: u32, shown: Shown) -> Result<Vec<String>, BranchError> {
        Ok(self.ends(branch, place, shown)?.calls.clone())
    }

    /// What the entry at `place` shows of calls and results.
    fn ends(&mut self, branch: &Branch, place: u32, shown: Shown) -> Result<Arc<Ends>, BranchError> {
        let facts = branch.facts(place);
        match (facts.role, shown) {
            (_, Shown::Nothing | Shown::Omitted { .. }) => Ok(Arc::default()),
            (Role::Assistant, Shown::Replaced { by }) => replaced(branch, by),
            (Role::Assistant, Shown::AsIs) if !facts.calls => Ok(Arc::default()),
            (Role::Assistant | Role::ToolResult, _) => self.original(branch, place, facts.role),
            _ => Ok(Arc::default()),
        }
    }

    /// What the message at `place` holds by itself.
    fn original(&mut self, branch: &Branch, place: u32, role: Role) -> Result<Arc<Ends>, BranchError> {
        if let Some(ends) = self.0.get(&place) {
            return Ok(ends.clone());
        }
        let ends = branch.read(place, |entry| entry.get("message").map(|message| ends_of(message, role)))?;
        let ends = Arc::new(ends.unwrap_or_default());
        self.0.insert(place, ends.clone());
        Ok(ends)
    }
}

/// What an assistant message shows after the edit at place `by`.
fn replaced(branch: &Branch, by: u32) -> Result<Arc<Ends>, BranchError> {
    let ends = branch.read(by, |edit| edit.get("replacement").map(|message| ends_of(message, Role::Assistant)))?;
    Ok(Arc::new(ends.unwrap_or_default()))
}

/// The ids in a message, or in a replacement, which has its content at the same name.
fn ends_of(message: Json<'_>, role: Role) -> Ends {
    let text = |object: Json<'_>, key: &str| Some(object.get(key)?.as_str()?.into_owned());
    if role == Role::ToolResult {
        return Ends { calls: Vec::new(), result: text(message, "toolCallId") };
    }
    let blocks = message.get("content").into_iter().flat_map(Json::items);
    let calls = blocks.filter(|block| text(*block, "type").as_deref() == Some("toolCall"));
    Ends { calls: calls.filter_map(|call| text(call, "id")).collect(), result: None }
}
