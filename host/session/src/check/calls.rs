//! Calls and results in the context of the leaf, as Pi pairs them when it sends a request (S12.5, S12.6).
//!
//! A result counts only before the next message of anybody else: what comes later Pi has answered by itself. A call in a
//! message that failed or was aborted is not sent, and needs no answer. System messages may stand anywhere.

use std::collections::HashMap;

use super::Check;
use crate::branch::{Branch, BranchError};
use crate::context::ContextEntry;
use crate::entry::{Role, Stop};
use crate::finding::Finding;
use crate::pairing::EndsCache;

/// The calls of the last assistant message.
#[derive(Default)]
struct Waiting {
    /// Place of the message.
    place: u32,
    /// Ids of its calls, and whether each has its result.
    calls: Vec<(String, bool)>,
    /// Where among them those of an id stand that have none yet, the first of them last.
    open: HashMap<String, Vec<usize>>,
}

impl Waiting {
    fn of(place: u32, calls: Vec<String>) -> Waiting {
        let mut open = HashMap::<String, Vec<usize>>::new();
        for (at, call) in calls.iter().enumerate().rev() {
            open.entry(call.clone()).or_default().push(at);
        }
        Waiting { place, calls: calls.into_iter().map(|call| (call, false)).collect(), open }
    }

    /// Whether one waited for this result.
    fn answer(&mut self, call: &str) -> bool {
        let at = self.open.get_mut(call).and_then(Vec::pop);
        if let Some(at) = at {
            self.calls[at].1 = true;
        }
        at.is_some()
    }
}

impl Check<'_> {
    pub(super) fn calls(&mut self, branch: &Branch) -> Result<(), BranchError> {
        let (mut waiting, mut cache) = (Waiting::default(), EndsCache::default());
        for entry in branch.context().entries.iter().filter(|entry| entry.gives()) {
            match branch.facts(entry.place).role {
                Role::Assistant => {
                    self.unanswered(branch, &waiting, Finding::CallAlone);
                    waiting = calls_of(branch, entry, &mut cache)?;
                }
                Role::ToolResult => self.result(branch, entry.place, &mut waiting)?,
                Role::User | Role::Custom | Role::BranchSummary | Role::CompactionSummary => {
                    self.unanswered(branch, &waiting, Finding::CallAlone);
                    waiting = Waiting::default();
                }
                // A command that is kept from the model does not part a call from its result; nor does what is not sent.
                Role::System | Role::BashExecution | Role::Other => {}
            }
        }
        self.unanswered(branch, &waiting, Finding::CallOpen);
        Ok(())
    }

    fn unanswered(&mut self, branch: &Branch, waiting: &Waiting, finding: Finding) {
        let Some(ix) = branch.entry_at(waiting.place).filter(|_| !waiting.calls.is_empty()) else { return };
        for (call, _) in waiting.calls.iter().filter(|(_, answered)| !answered) {
            self.note_as(finding, ix, format!("{}: {call:?}", finding.what()));
        }
    }

    fn result(&mut self, branch: &Branch, place: u32, waiting: &mut Waiting) -> Result<(), BranchError> {
        let call = branch.call_of_result(place)?;
        if call.as_ref().is_some_and(|call| waiting.answer(call)) {
            return Ok(());
        }
        if let Some(ix) = branch.entry_at(place) {
            let call = call.map_or_else(|| "it names no call".to_owned(), |call| format!("{call:?}"));
            self.note_as(Finding::ResultAlone, ix, format!("{}: {call}", Finding::ResultAlone.what()));
        }
        Ok(())
    }
}

fn calls_of(branch: &Branch, entry: &ContextEntry, cache: &mut EndsCache) -> Result<Waiting, BranchError> {
    let place = entry.place;
    let is_sent = !matches!(branch.facts(place).stop, Stop::Error | Stop::Aborted);
    let calls = if is_sent { cache.calls(branch, place, entry.shown)? } else { Vec::new() };
    Ok(Waiting::of(place, calls))
}
