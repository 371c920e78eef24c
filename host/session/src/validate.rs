//! The gate: what may be appended to a branch, and what not (S12).
//!
//! A [`Judge`] answers a plugin draft by draft, on the branch plus what is pending plus what this run has proposed
//! so far; [`accept_list`] judges the list of `session append`. Both end in [`Accepted`], which only this file makes.
//! Nothing else can be composed, and composing judges once more, on the branch as it is then.

mod place;
mod walk;

use crate::branch::{Branch, Origin};
use crate::draft::Draft;
use crate::pairing::EndsCache;
use crate::refusal::Refusal;
pub(crate) use place::{appendable, has_leaf, writable, writable_id};
use std::sync::Arc;
use walk::{Rules, Walked};

/// How much one batch may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DraftLimits {
    /// Drafts in one batch.
    pub entries: u32,
    /// Bytes of one entry's line, without what the host adds to a compaction.
    pub entry_bytes: u64,
    /// Bytes of all lines of a batch as they will be written, receipt and system message included.
    pub batch_bytes: u64,
}

impl Default for DraftLimits {
    fn default() -> DraftLimits {
        DraftLimits { entries: 32, entry_bytes: 256 * 1024, batch_bytes: 512 * 1024 }
    }
}

/// Room that is kept for a batch's receipt, bytes.
const RECEIPT_ROOM: u64 = 1024;

/// In which order drafts are written, and where calls and results must be whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `custom`, edits, `custom_message`, compaction; whole behind the edits and behind the compaction (product 4.2).
    Batch,
    /// As given; whole at the end (product 3, `session append`).
    AsGiven,
}

/// Drafts that may stand on the branch they were judged on.
#[must_use = "what was accepted is to be recorded and composed"]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    drafts: Vec<Draft>,
    order: Order,
    limits: DraftLimits,
}

impl Accepted {
    /// The drafts in the order in which they will be written.
    pub fn drafts(&self) -> &[Draft] {
        &self.drafts
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// The drafts as a JSON list, for the store.
    pub fn to_json(&self) -> String {
        let drafts: Vec<_> = self.drafts.iter().map(Draft::to_json).collect();
        format!("[{}]", drafts.join(","))
    }

    /// A batch from the store, of the default size at most; that it was accepted once is taken on trust, since
    /// composing judges it anew.
    ///
    /// # Errors
    /// What is no draft any more, by its place in the list.
    pub fn from_store(json: &str) -> Result<Accepted, Vec<Refusal>> {
        let drafts = Draft::list_from_json(json)?;
        Ok(Accepted { drafts, order: Order::Batch, limits: DraftLimits::default() })
    }
}

/// Judges what one run proposes.
#[derive(Clone)]
pub struct Judge {
    base: Branch,
    branch: Branch,
    own: Vec<Draft>,
    rules: Rules,
    cache: EndsCache,
}

impl Judge {
    /// A judge on `branch`, which holds what is pending behind what is in the file. `origin` marks this run's drafts.
    #[must_use]
    pub fn new(branch: Branch, limits: DraftLimits, origin: Origin) -> Judge {
        let origin = Arc::new(origin);
        let rules = Rules { limits, origin, order: Order::Batch, reserved: RECEIPT_ROOM, delivering: false };
        Judge { base: branch.clone(), branch, own: Vec::new(), rules, cache: EndsCache::default() }
    }

    /// Proposes one draft.
    ///
    /// # Errors
    /// The rule that it would break; then nothing has changed.
    pub fn propose(&mut self, draft: Draft) -> Result<(), Refusal> {
        let answer = self.propose_all(vec![draft]).pop();
        answer.unwrap_or(Ok(())).map_err(|refusal| Refusal { index: None, ..refusal })
    }

    /// Proposes a list of context edits that is judged as one, so that a call and its results can go together (S12.6).
    ///
    /// One answer for each. An edit that cannot stand takes with it those that would part a call from its result without
    /// it, and no other.
    pub fn edits(&mut self, edits: Vec<Draft>) -> Vec<Result<(), Refusal>> {
        self.propose_all(edits)
    }

    /// The branch with what is pending and what was accepted so far, as later runs and checks see it.
    #[must_use]
    pub fn branch(&self) -> &Branch {
        &self.branch
    }

    /// What was accepted, in the order of a batch.
    pub fn finish(self) -> Accepted {
        Accepted { drafts: self.own, order: Order::Batch, limits: self.rules.limits }
    }

    /// Takes what can stand of `drafts`. Each round judges the whole batch with those that are left, so that what was
    /// accepted before still stands with them.
    fn propose_all(&mut self, drafts: Vec<Draft>) -> Vec<Result<(), Refusal>> {
        let mut answers: Vec<_> = drafts.iter().map(|_| Ok(())).collect();
        let mut left: Vec<(usize, Draft)> = drafts.into_iter().enumerate().collect();
        while !left.is_empty() {
            let (batch, sources) = self.batch_with(&left);
            let walked = walk::walk(&self.base, &batch, &self.rules, &mut self.cache);
            if walked.refusals.is_empty() {
                (self.branch, self.own) = (walked.branch, walked.drafts);
                break;
            }
            let refused = blame(walked, &sources, &left);
            left.retain(|(index, _)| refused.iter().all(|(other, _)| other != index));
            for (index, refusal) in refused {
                answers[index] = Err(refusal.at(index));
            }
        }
        answers
    }

    /// The batch as it would be written with `more`, and for each of its drafts which of `more` it is.
    fn batch_with(&self, more: &[(usize, Draft)]) -> (Vec<Draft>, Vec<Option<usize>>) {
        let own = self.own.iter().map(|draft| (draft, None));
        let more = more.iter().map(|(index, draft)| (draft, Some(*index)));
        let mut batch: Vec<_> = own.chain(more).collect();
        batch.sort_by_key(|(draft, _)| (draft.rank(), place::is_edit_of_other_than_result(&self.base, draft)));
        batch.into_iter().map(|(draft, source)| (draft.clone(), source)).unzip()
    }
}

/// Who of those `left` has to go: the refused among them, or all if what breaks was accepted before.
fn blame(walked: Walked, sources: &[Option<usize>], left: &[(usize, Draft)]) -> Vec<(usize, Refusal)> {
    let of_left = |(at, refusal): &(usize, Refusal)| Some((sources[*at]?, refusal.clone()));
    let refused: Vec<_> = walked.refusals.iter().filter_map(of_left).collect();
    if !refused.is_empty() {
        return refused;
    }
    let (_, first) = &walked.refusals[0];
    let message = format!("with this, what you proposed before would not stand any more: {}", first.message);
    left.iter().map(|(index, _)| (*index, Refusal::new(first.rule, message.clone()))).collect()
}

/// Judges the list of `session append` on the branch as it is in the file: all or nothing.
///
/// Every draft is judged behind those before it, and calls and results at the end of the list.
///
/// # Errors
/// Every draft that cannot stand.
pub fn accept_list(branch: &Branch, drafts: &[Draft], limits: DraftLimits) -> Result<Accepted, Vec<Refusal>> {
    let origin = Arc::default();
    let rules = Rules { limits, origin, order: Order::AsGiven, reserved: 0, delivering: false };
    let walked = walk::walk(branch, drafts, &rules, &mut EndsCache::default());
    if !walked.refusals.is_empty() {
        return Err(walked.refusals.into_iter().map(|(at, refusal)| refusal.at(at)).collect());
    }
    Ok(Accepted { drafts: walked.drafts, order: Order::AsGiven, limits })
}

/// What of an accepted batch can be written on a branch now.
pub(crate) struct Rejudged {
    /// The drafts that are to be written, in order.
    pub drafts: Vec<Draft>,
    /// Edits that have nothing to do any more, by their index among the accepted, and why.
    pub left_out: Vec<(u32, String)>,
}

/// Judges an accepted batch again, on the branch of this moment (S12.8), with `reserved` bytes for its receipt.
pub(crate) fn rejudge(branch: &Branch, accepted: &Accepted, reserved: u64) -> Result<Rejudged, Refusal> {
    let limits = DraftLimits { entries: u32::MAX, entry_bytes: u64::MAX, ..accepted.limits };
    let origin = Arc::default();
    let rules = Rules { limits, origin, order: accepted.order, reserved, delivering: true };
    let walked = walk::walk(branch, &accepted.drafts, &rules, &mut EndsCache::default());
    match walked.refusals.into_iter().next() {
        Some((at, refusal)) => Err(refusal.at(at)),
        None => {
            let left_out = walked.left_out.into_iter().map(|(at, why)| (at as u32, why)).collect();
            Ok(Rejudged { drafts: walked.drafts, left_out })
        }
    }
}
