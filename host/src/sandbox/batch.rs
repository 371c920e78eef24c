//! What one run proposes: each draft is judged when it comes, against the grants and on the branch with all that is
//! pending and proposed so far; all are kept together, or none.
use std::sync::Arc;

use pi_session::Branch;
use pi_session::branch::Origin;
use pi_session::draft::Draft;
use pi_session::refusal::{Refusal, Rule};
use pi_session::validate::{Accepted, DraftLimits, Judge};

use super::contract::Refused;
use super::grants::Grants;
use super::limits::{Limits, MAX_NOTE_BYTES, MAX_REFUSALS};

/// The proposals of a run.
pub(super) struct Batch {
    judge: Judge,
    grants: Arc<Grants>,
    refusals: Vec<Refusal>,
    later: Option<String>,
}

impl Batch {
    pub(super) fn new(plugin: &str, branch: Branch, limits: &Limits, grants: Arc<Grants>) -> Self {
        let (entry_bytes, batch_bytes) = (limits.entry_bytes, limits.batch_bytes);
        let limits = DraftLimits { entries: limits.proposals, entry_bytes, batch_bytes };
        let origin = Origin { plugin: plugin.into(), batch: String::new() };
        Self { judge: Judge::new(branch, limits, origin), grants, refusals: Vec::new(), later: None }
    }

    /// Whether this is granted.
    pub(super) fn has(&self, capability: &str) -> bool {
        self.grants.has(capability)
    }

    /// Proposes one draft.
    pub(super) fn propose(
        &mut self,
        capability: &str,
        draft: impl FnOnce() -> Result<Draft, Refusal>,
    ) -> Result<(), Refused> {
        let granted = self.granted(capability);
        let judged = granted.and_then(|()| draft()).and_then(|draft| self.judge.propose(draft));
        judged.map_err(|refusal| self.refuse(refusal))
    }

    /// Proposes edits as one; an answer for each. One that is no edit at all takes none with it.
    pub(super) fn edits(&mut self, edits: Vec<Result<Draft, Refusal>>) -> Vec<Result<(), Refused>> {
        let granted = self.granted("append:context_edit");
        let edits: Vec<_> = edits.into_iter().map(|edit| granted.clone().and(edit)).collect();
        let good = edits.iter().filter_map(|edit| edit.as_ref().ok().cloned()).collect();
        let mut judged = self.judge.edits(good).into_iter();
        let answers = edits.into_iter().map(|edit| match edit {
            Ok(_) => judged.next().unwrap_or(Ok(())),
            Err(refusal) => Err(refusal),
        });
        let answers: Vec<_> = answers.collect();
        answers.into_iter().map(|answer| answer.map_err(|refusal| self.refuse(refusal))).collect()
    }

    /// Asks for `on-settled`; of several notes the last counts.
    pub(super) fn later(&mut self, note: String) -> Result<(), Refused> {
        if note.len() > MAX_NOTE_BYTES {
            let message = format!("the note has {} bytes; at most {MAX_NOTE_BYTES} are kept", note.len());
            return Err(Refused::new("limit", message));
        }
        self.later = Some(note);
        Ok(())
    }

    /// What is kept of a run that ended well.
    pub(super) fn finish(self) -> (Option<Accepted>, Option<String>, Vec<Refusal>) {
        let accepted = Some(self.judge.finish()).filter(|accepted| !accepted.is_empty());
        (accepted, self.later, self.refusals)
    }

    /// What is kept of one that did not.
    pub(super) fn refusals(self) -> Vec<Refusal> {
        self.refusals
    }

    fn granted(&self, capability: &str) -> Result<(), Refusal> {
        if self.has(capability) {
            return Ok(());
        }
        Err(Refusal::new(Rule::TYPE, Refused::not_granted(capability).message))
    }

    fn refuse(&mut self, refusal: Refusal) -> Refused {
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(refusal.clone());
        }
        refusal.into()
    }
}
