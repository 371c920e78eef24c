//! The way over a bridge: which pending batches a live Pi is handed at one of its boundaries (product.md section 5).
//!
//! Pi appends them itself, and gives ids and times. Nothing is marked done here: what was taken is recognised in the file,
//! by its receipt, and never by an answer alone; what was not taken is still pending and is handed over again.
//!
//! | died, or gave up | the store says | the file has | what happens |
//! | --- | --- | --- | --- |
//! | before Pi appended | pending | nothing | handed over again at the next boundary |
//! | while Pi appended | pending | the receipt and some drafts | the rest becomes a batch that continues it |
//! | after Pi appended | pending | receipt and drafts | recognised, done |

use pi_session::branch::Branch;
use pi_session::compose::Stale;
use pi_session::draft::Draft;
use pi_session::entry::EntryKind;
use pi_session::handover::{self, Handover, Offered};
use pi_session::refusal::{Refusal, Rule};
use pi_session::validate::Accepted;

use crate::journal::{Batch, Recorded};

use super::append::receipt_of;

/// When the list has so many bytes, what is left goes at the next boundary: with one batch more it is still far from the
/// longest line of the protocol.
const MOST_BYTES: usize = 4 << 20;

/// Which drafts may be in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// All kinds: a boundary of a turn that ended well.
    All,
    /// No compaction: after a failed turn it would make Pi skip its own recovery.
    NoCompaction,
    /// `custom` and `custom_message` only: an idle Pi can be pushed no others.
    Messages,
}

/// What is handed over, and what became of the batches that are not.
#[derive(Debug, Default)]
pub struct List {
    /// The drafts as JSON, in order, each batch behind its receipt.
    pub drafts: Vec<String>,
    /// The batches in it, each with its edits that were left out, and why.
    pub handed: Vec<(Recorded, Vec<String>)>,
    /// Those that do not hold any more, and why.
    pub stale: Vec<(Recorded, Stale)>,
    /// Those all of whose edits have nothing to do any more, and why.
    pub nothing: Vec<(Recorded, String)>,
}

/// Puts the list together for a Pi that stands on `branch`'s end, behind what `others` have put into it.
#[must_use]
pub fn hand_over(branch: &Branch, batches: &[Recorded], others: &[String], takes: Takes) -> List {
    let mut handover = Handover::new(branch, others.iter().map(String::as_str));
    let (mut list, mut bytes) = (List::default(), 0);
    for recorded in batches {
        if bytes > MOST_BYTES {
            break;
        }
        let batch = recorded.batch();
        let accepted = match holds(branch, batch) {
            Ok(accepted) => accepted,
            Err(stale) => {
                list.stale.push((recorded.clone(), stale));
                continue;
            }
        };
        if !accepted.drafts().iter().all(|draft| takes.takes(draft)) {
            continue;
        }
        match handover.offer(&accepted, &receipt_of(batch)) {
            Ok(Offered::Handed(handed)) => {
                bytes += handed.drafts.iter().map(String::len).sum::<usize>();
                list.drafts.extend(handed.drafts);
                list.handed.push((recorded.clone(), told(&handed.left_out).collect()));
            }
            Ok(Offered::Nothing(left_out)) => {
                let why = told(&left_out).collect::<Vec<_>>().join("; ");
                list.nothing.push((recorded.clone(), why));
            }
            Ok(Offered::Later) => {}
            Err(stale) => list.stale.push((recorded.clone(), stale)),
        }
    }
    list
}

/// The first of `batches` that can stand in for Pi's own compaction on `branch`, as JSON, with its batch.
#[must_use]
pub fn compaction(branch: &Branch, batches: &[Recorded]) -> Option<(String, Recorded)> {
    batches.iter().find_map(|recorded| {
        let accepted = holds(branch, recorded.batch()).ok()?;
        let json = handover::compaction(branch, &accepted, &receipt_of(recorded.batch())).ok()??;
        Some((json, recorded.clone()))
    })
}

impl Takes {
    fn takes(self, draft: &Draft) -> bool {
        match (self, draft) {
            (Takes::All, _) => true,
            (Takes::NoCompaction, draft) => !matches!(draft, Draft::Compaction { .. }),
            (Takes::Messages, draft) => matches!(draft, Draft::Custom { .. } | Draft::CustomMessage { .. }),
        }
    }
}

fn told(left_out: &[(u32, String)]) -> impl Iterator<Item = String> {
    left_out.iter().map(|(index, why)| format!("draft {index}: {why}"))
}

/// What the store holds of a batch, which was accepted once and is judged again when it is composed or offered.
///
/// # Errors
/// [`Stale`] if it cannot be read, or is a compaction whose plan is of before another one.
pub(super) fn holds(branch: &Branch, batch: &Batch) -> Result<Accepted, Stale> {
    let accepted = Accepted::from_store(&batch.drafts).map_err(|refusals| match refusals.into_iter().next() {
        Some(refusal) => Stale::from(refusal),
        None => Stale::from(Refusal::new(Rule::FIELDS, "no drafts")),
    })?;
    let compaction = accepted.drafts().iter().position(|draft| matches!(draft, Draft::Compaction { .. }));
    match compaction.filter(|_| is_overtaken(branch, &batch.trigger)) {
        None => Ok(accepted),
        Some(index) => {
            let refusal = Refusal::new(Rule::COMPACTION, "another compaction has landed since this one was planned");
            Err(Stale { index: u32::try_from(index).unwrap_or(0), refusal })
        }
    }
}

/// Whether the branch holds a compaction behind the entry that a batch was made for.
fn is_overtaken(branch: &Branch, trigger: &str) -> bool {
    let behind = branch.place_of(trigger).map_or(0, |place| place + 1);
    (behind..branch.in_file()).any(|place| branch.facts(place).kind == EntryKind::Compaction)
}
