//! From accepted drafts to lines: ids, times, parents, and what the host counts (S12.2, S12.5).
//!
//! Nothing is made ready before its time. A batch that was accepted a while ago is judged again on the branch of
//! this moment (product 4.4); what passes becomes one text, written at once or not at all.

use std::sync::Arc;

use crate::branch::{Branch, BranchError, Origin};
use crate::draft::{Counted, Draft, RECEIPT_TYPE, Stamp};
use crate::receipt::Receipt;
use crate::refusal::{Refusal, Rule};
use crate::strict::RawJson;
use crate::time;
use crate::validate::{self, Accepted};

/// One entry, ready to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComposedEntry {
    /// Its id.
    pub id: String,
    /// Its line, with the `\n`.
    pub line: Vec<u8>,
}

/// A batch, ready to be recorded and written.
#[must_use = "what was composed is to be recorded and written"]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Composed {
    entries: Vec<ComposedEntry>,
    drafts: Vec<Draft>,
    left_out: Vec<(u32, String)>,
    leaf_before: Option<String>,
}

impl Composed {
    /// The entries in order, the receipt first. None if all was left out.
    pub fn entries(&self) -> &[ComposedEntry] {
        &self.entries
    }

    /// The drafts among them, in order: what [`crate::receipt::missing`] is to look for.
    pub fn drafts(&self) -> &[Draft] {
        &self.drafts
    }

    /// Edits that have nothing to do any more: index among the accepted, and why.
    pub fn left_out(&self) -> &[(u32, String)] {
        &self.left_out
    }

    /// Id of the entry that the first one hangs on.
    pub fn leaf_before(&self) -> Option<&str> {
        self.leaf_before.as_deref()
    }

    /// All lines as one text.
    pub fn bytes(&self) -> Vec<u8> {
        self.entries.iter().flat_map(|entry| entry.line.iter().copied()).collect()
    }
}

/// A batch that does not hold any more: it is dropped whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the batch is stale: {refusal}")]
pub struct Stale {
    /// Which draft does not hold.
    pub index: u32,
    /// The rule that it would break now.
    pub refusal: Refusal,
}

impl From<Refusal> for Stale {
    fn from(refusal: Refusal) -> Stale {
        Stale { index: refusal.index.unwrap_or(0), refusal }
    }
}

/// Makes the lines of a batch for `branch`, which is what the file holds, with nothing pending.
///
/// `receipt`, if one is to stand first, gets its number of entries here. `now_ms` is the time, Unix milliseconds, and
/// `random` gives 16 random bytes at each call.
///
/// # Errors
/// [`Stale`] names the first draft that cannot stand on this branch.
pub fn compose(
    branch: &Branch,
    accepted: &Accepted,
    receipt: Option<&Receipt>,
    now_ms: i64,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Composed, Stale> {
    let reserved = receipt.map_or(0, |receipt| receipt_draft(receipt).to_json().len() as u64 + 256);
    let rejudged = validate::rejudge(branch, accepted, reserved)?;
    let receipt = receipt.filter(|_| !rejudged.drafts.is_empty());
    let receipt = receipt.map(|receipt| receipt_draft(&receipt.clone().of_drafts(&rejudged.drafts)));
    let mut chain = Chain::on(branch, now_ms, random)?;
    for draft in receipt.iter().chain(&rejudged.drafts) {
        chain.add(draft).map_err(|error| Refusal::new(Rule::UNREADABLE, error.to_string()))?;
    }
    let leaf_before = branch.leaf_id().map(str::to_owned);
    Ok(Composed { entries: chain.entries, drafts: rejudged.drafts, left_out: rejudged.left_out, leaf_before })
}

/// The same in parts of `most` drafts at most, each behind a receipt of its own, which `receipt` gives; one part at least, so
/// that a receipt without drafts is written where there are none.
///
/// # Errors
/// As [`compose`].
pub fn compose_parts(
    branch: &Branch,
    accepted: &Accepted,
    receipt: &mut dyn FnMut() -> Receipt,
    most: usize,
    now_ms: i64,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Composed, Stale> {
    let rejudged = validate::rejudge(branch, accepted, 0)?;
    let parts = rejudged.drafts.chunks(most.max(1));
    let none: Option<&[Draft]> = rejudged.drafts.is_empty().then_some(&[]);
    let mut chain = Chain::on(branch, now_ms, random)?;
    for part in parts.chain(none) {
        let receipt = receipt_draft(&receipt().of_drafts(part));
        for draft in std::iter::once(&receipt).chain(part) {
            chain.add(draft).map_err(|error| Refusal::new(Rule::UNREADABLE, error.to_string()))?;
        }
    }
    let leaf_before = branch.leaf_id().map(str::to_owned);
    Ok(Composed { entries: chain.entries, drafts: rejudged.drafts, left_out: rejudged.left_out, leaf_before })
}

/// Makes one `custom` entry of the host's own, such as `pi-graft.rejoin`, which no plugin may propose (S12.4).
///
/// # Errors
/// [`Stale`] if no entry can hang on this branch's leaf.
pub fn compose_note(
    branch: &Branch,
    custom_type: &str,
    data: RawJson,
    now_ms: i64,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Composed, Stale> {
    let draft = Draft::Custom { custom_type: custom_type.to_owned(), data: Some(data) };
    let mut chain = Chain::on(branch, now_ms, random)?;
    chain.add(&draft).map_err(|error| Refusal::new(Rule::UNREADABLE, error.to_string()))?;
    let leaf_before = branch.leaf_id().map(str::to_owned);
    Ok(Composed { entries: chain.entries, drafts: vec![draft], left_out: Vec::new(), leaf_before })
}

pub(crate) fn receipt_draft(receipt: &Receipt) -> Draft {
    Draft::Custom { custom_type: RECEIPT_TYPE.to_owned(), data: Some(RawJson::assembled(receipt.to_json())) }
}

/// Entries that hang on each other.
struct Chain<'a> {
    /// The branch with the chain so far, for what is counted on it.
    branch: Branch,
    parent: Option<String>,
    time: String,
    time_ms: i64,
    random: &'a mut dyn FnMut() -> [u8; 16],
    entries: Vec<ComposedEntry>,
}

impl<'a> Chain<'a> {
    /// A chain that begins behind the leaf, at a time not before the leaf's (S12.2).
    fn on(branch: &Branch, now_ms: i64, random: &'a mut dyn FnMut() -> [u8; 16]) -> Result<Chain<'a>, Refusal> {
        validate::appendable(branch)?;
        let parent = branch.leaf_id().map(str::to_owned);
        let leaf = branch.len().checked_sub(1).map(|place| branch.facts(place).time_ms);
        let time_ms = leaf.flatten().map_or(now_ms, |time| time.max(now_ms));
        let (branch, time) = (branch.clone(), time::iso(time_ms));
        Ok(Chain { branch, parent, time, time_ms, random, entries: Vec::new() })
    }

    fn add(&mut self, draft: &Draft) -> Result<(), BranchError> {
        let id = time::fresh_id(|id| is_taken(&self.branch, &self.entries, id), self.random);
        let count = Count::before(draft, &self.branch, self.time_ms)?;
        let stamp = Stamp { id: &id, parent: self.parent.as_deref(), timestamp: &self.time };
        let mut line = draft.entry_json(Some(&stamp), count.as_ref().map(Count::as_counted).as_ref()).into_bytes();
        line.push(b'\n');
        push(&mut self.branch, draft, count.as_ref(), &Arc::default());
        self.parent = Some(id.clone());
        self.entries.push(ComposedEntry { id, line });
        Ok(())
    }
}

/// Whether the file has this id, or names it, or the chain so far.
fn is_taken(branch: &Branch, chain: &[ComposedEntry], id: &str) -> bool {
    branch.tree().known_id(id).is_some() || chain.iter().any(|entry| entry.id == id)
}

/// Puts a draft behind a branch, as if it had been appended.
pub(crate) fn push(branch: &mut Branch, draft: &Draft, count: Option<&Count>, origin: &Arc<Origin>) {
    let text = draft.entry_json(None, count.map(Count::as_counted).as_ref());
    branch.push(&text, origin).expect("a draft's entry is put together from checked JSON");
}

/// What the host counts for a compaction (S12.5).
pub(crate) struct Count {
    tokens_before: String,
    system_message: Option<String>,
}

impl Count {
    /// For a compaction on `branch`, made at `time_ms`; nothing for other drafts.
    pub(crate) fn before(draft: &Draft, branch: &Branch, time_ms: i64) -> Result<Option<Count>, BranchError> {
        if !matches!(draft, Draft::Compaction { .. }) {
            return Ok(None);
        }
        let context = branch.context();
        let total = branch.tokens(&context)?.total;
        let system_message = branch.system(&context)?.message(Some(time_ms)).map(one_line);
        Ok(Some(Count { tokens_before: number(total), system_message }))
    }

    /// The same, borrowed.
    pub(crate) fn as_counted(&self) -> Counted<'_> {
        Counted { tokens_before: &self.tokens_before, system_message: self.system_message.as_deref() }
    }
}

/// A count as JavaScript writes it. A reported usage beyond all numbers must still become one (S12.9).
fn number(count: f64) -> String {
    ryu_js::Buffer::new().format(count.clamp(0.0, f64::MAX)).to_owned()
}

/// Raw line breaks in JSON stand between its parts, where a space says the same (S12.7).
fn one_line(json: String) -> String {
    json.replace(['\n', '\r'], " ")
}
