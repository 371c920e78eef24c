//! What a live Pi is handed at one of its boundaries: drafts, which it appends itself (product 5, *bridge*).
//!
//! Pi gives ids and times, so nothing is composed here. All batches that hold go into one list, each behind its receipt,
//! judged on the branch that Pi says it stands on, behind what other extensions have put into the list already. One draft
//! that Pi cannot apply would lose everybody's.

use std::sync::Arc;

use crate::branch::{Branch, Origin};
use crate::compose::{Count, Stale, push, receipt_draft};
use crate::draft::Draft;
use crate::json::{Json, Kind, quoted};
use crate::receipt::Receipt;
use crate::refusal::{Refusal, Rule};
use crate::validate::{self, Accepted};

/// A list that is being put together for one boundary.
pub struct Handover {
    branch: Branch,
    origin: Arc<Origin>,
    /// Nothing can follow a compaction: what is left is judged on the branch behind it, at the next boundary.
    closed: bool,
}

/// One batch in the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handed {
    /// The receipt, then the drafts, each as JSON that Pi takes.
    pub drafts: Vec<String>,
    /// Edits that have nothing to do any more: index among the accepted, and why.
    pub left_out: Vec<(u32, String)>,
}

/// What became of a batch that was offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Offered {
    /// It is in the list.
    Handed(Handed),
    /// All its edits have nothing to do any more, and why.
    Nothing(Vec<(u32, String)>),
    /// Not in this list: it has to follow what is in it.
    Later,
}

impl Handover {
    /// A list on `branch`, which ends in Pi's leaf with nothing pending, behind the drafts of `others` (JSON; what is no
    /// draft is Pi's to judge, and passed over).
    #[must_use]
    pub fn new<'a>(branch: &Branch, others: impl IntoIterator<Item = &'a str>) -> Handover {
        let mut handover = Handover { branch: branch.without_pending(), origin: Arc::default(), closed: false };
        others.into_iter().for_each(|draft| handover.put_other(draft));
        handover
    }

    fn put_other(&mut self, draft: &str) {
        let kind = Json::parse(draft.as_bytes()).ok().and_then(|draft| draft.get("type")?.as_str().map(String::from));
        if kind.is_some() && self.branch.push(draft, &self.origin).is_ok() {
            self.closed |= kind.as_deref() == Some("compaction");
        }
    }

    /// Puts a batch at the list's end, if it may stand there; batches are offered in the order of the config.
    ///
    /// # Errors
    /// [`Stale`]: it does not hold on this branch any more.
    pub fn offer(&mut self, accepted: &Accepted, receipt: &Receipt) -> Result<Offered, Stale> {
        if self.closed {
            return Ok(Offered::Later);
        }
        let reserved = receipt_draft(receipt).to_json().len() as u64 + 256;
        let rejudged = match validate::rejudge(&self.branch, accepted, reserved) {
            // Somebody's draft in this very list names the same entry.
            Err(refusal) if refusal.rule == Rule::PENDING => return Ok(Offered::Later),
            rejudged => rejudged?,
        };
        if rejudged.drafts.is_empty() {
            return Ok(Offered::Nothing(rejudged.left_out));
        }
        let receipt = receipt_draft(&receipt.clone().of_drafts(&rejudged.drafts));
        for draft in std::iter::once(&receipt).chain(&rejudged.drafts) {
            self.put(draft)?;
        }
        let drafts = std::iter::once(&receipt).chain(&rejudged.drafts).map(Draft::to_json).collect();
        Ok(Offered::Handed(Handed { drafts, left_out: rejudged.left_out }))
    }

    fn put(&mut self, draft: &Draft) -> Result<(), Stale> {
        let unreadable = |e: crate::branch::BranchError| Refusal::new(Rule::UNREADABLE, e.to_string());
        let count = Count::before(draft, &self.branch, 0).map_err(unreadable)?;
        push(&mut self.branch, draft, count.as_ref(), &self.origin);
        self.closed |= matches!(draft, Draft::Compaction { .. });
        Ok(())
    }
}

/// What Pi takes in place of its own compaction, as JSON: `{summary, firstKeptEntryId, tokensBefore, details, usage?}`.
/// There is no receipt before it, so the receipt stands in its `details`, under `pi-graft`. `None` if the batch is anything
/// but one compaction that keeps something: it can be handed over at a boundary only.
///
/// # Errors
/// [`Stale`]: it does not hold on this branch any more.
pub fn compaction(branch: &Branch, accepted: &Accepted, receipt: &Receipt) -> Result<Option<String>, Stale> {
    let [Draft::Compaction { summary, first_kept: Some(first_kept), details, usage }] = accepted.drafts() else {
        return Ok(None);
    };
    let branch = branch.without_pending();
    let rejudged = validate::rejudge(&branch, accepted, 0)?;
    let Some(draft) = rejudged.drafts.first() else { return Ok(None) };
    let unreadable = |e: crate::branch::BranchError| Refusal::new(Rule::UNREADABLE, e.to_string());
    let Some(count) = Count::before(draft, &branch, 0).map_err(unreadable)? else { return Ok(None) };
    let receipt = receipt.clone().of_drafts(&rejudged.drafts).to_json();
    let details = with_receipt(details.as_ref().map(|details| details.json()), &receipt);
    let usage = usage.as_ref().map_or_else(String::new, |usage| format!(",\"usage\":{}", usage.json().to_text()));
    Ok(Some(format!(
        "{{\"summary\":{},\"firstKeptEntryId\":{},\"tokensBefore\":{},\"details\":{details}{usage}}}",
        quoted(summary),
        quoted(first_kept),
        count.as_counted().tokens_before,
    )))
}

/// A plugin's details with the receipt beside them; details that are no object stand under `details`.
fn with_receipt(details: Option<Json<'_>>, receipt: &str) -> String {
    let own = match details {
        None => String::new(),
        Some(details) if details.kind() == Kind::Object => {
            let members = details.members().filter(|(key, _)| !key.is("pi-graft"));
            members.map(|(key, value)| format!("{}:{},", quoted(&key.text()), value.to_text())).collect()
        }
        Some(other) => format!("\"details\":{},", other.to_text()),
    };
    format!("{{{own}\"pi-graft\":{receipt}}}")
}
