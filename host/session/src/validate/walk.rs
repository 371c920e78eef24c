//! One walk over a list of drafts: each is judged where it would stand, behind those before it.

use std::sync::Arc;

use super::place::{self, Edit, Placed};
use super::{DraftLimits, Order};
use crate::branch::{Branch, BranchError, Origin};
use crate::compose::{Count, push};
use crate::draft::{Draft, Stamp};
use crate::figures::used;
use crate::pairing::{EndsCache, Loose, Pairs};
use crate::refusal::{Refusal, Rule};

/// What a list is held to.
#[derive(Clone)]
pub(super) struct Rules {
    pub limits: DraftLimits,
    pub origin: Arc<Origin>,
    pub order: Order,
    /// Bytes that are taken by what is not a draft.
    pub reserved: u64,
    /// An edit that has nothing to do is left out, not refused (product 4.4).
    pub delivering: bool,
}

/// What came of it.
pub(super) struct Walked {
    /// The branch with what can stand.
    pub branch: Branch,
    /// What can stand, as it is to be stored (S7.2).
    pub drafts: Vec<Draft>,
    /// What cannot, by its index in the list.
    pub refusals: Vec<(usize, Refusal)>,
    /// Edits that are left out, by their index, and why.
    pub left_out: Vec<(usize, String)>,
}

/// Walks over `drafts` on `base`.
pub(super) fn walk(base: &Branch, drafts: &[Draft], rules: &Rules, cache: &mut EndsCache) -> Walked {
    let walked = Walked { branch: base.clone(), drafts: Vec::new(), refusals: Vec::new(), left_out: Vec::new() };
    let (placed, bytes) = (Placed::on(base), rules.reserved);
    let mut walk = Walk { rules, cache, placed, walked, stretch: Vec::new(), before: None, bytes };
    for (at, draft) in drafts.iter().enumerate() {
        walk.step(at, draft);
    }
    walk.look_at_pairs();
    walk.walked
}

/// The state of a walk.
struct Walk<'a> {
    rules: &'a Rules,
    cache: &'a mut EndsCache,
    placed: Placed,
    walked: Walked,
    /// Edits and compactions since calls and results were last looked at: index in the list, and an edit's target.
    stretch: Vec<(usize, Option<u32>)>,
    /// The branch before the stretch.
    before: Option<Branch>,
    bytes: u64,
}

/// Why a draft is not taken.
enum Verdict {
    Refuse(Refusal),
    LeaveOut(Refusal),
}

impl From<Refusal> for Verdict {
    fn from(refusal: Refusal) -> Verdict {
        Verdict::Refuse(refusal)
    }
}

impl From<BranchError> for Verdict {
    fn from(error: BranchError) -> Verdict {
        Verdict::Refuse(unreadable(&error))
    }
}

fn unreadable(error: &BranchError) -> Refusal {
    Refusal::new(Rule::UNREADABLE, format!("the session cannot be read ({error}): try again later"))
}

impl Walk<'_> {
    /// Judges one draft, and puts it behind the branch if it may stand.
    fn step(&mut self, at: usize, draft: &Draft) {
        match self.try_step(at, draft) {
            Ok(()) => {}
            Err(Verdict::Refuse(refusal)) => self.walked.refusals.push((at, refusal)),
            Err(Verdict::LeaveOut(refusal)) => self.walked.left_out.push((at, refusal.message)),
        }
    }

    fn try_step(&mut self, at: usize, draft: &Draft) -> Result<(), Verdict> {
        place::appendable(&self.walked.branch)?;
        self.check_count()?;
        let draft = self.fit(draft)?;
        let is_compaction = matches!(draft, Draft::Compaction { .. });
        if is_compaction && self.rules.order == Order::Batch {
            self.look_at_pairs();
        }
        let count = Count::before(&draft, &self.walked.branch, SOME_TIME_MS)?;
        self.check_bytes(&draft, count.as_ref())?;
        self.note(at, &draft);
        push(&mut self.walked.branch, &draft, count.as_ref(), &self.rules.origin);
        self.walked.drafts.push(draft);
        if is_compaction && self.rules.order == Order::AsGiven {
            self.placed.look_again(&self.walked.branch);
        }
        Ok(())
    }

    /// The draft as it will be stored, if it may stand here.
    fn fit(&self, draft: &Draft) -> Result<Draft, Verdict> {
        match draft {
            Draft::Compaction { first_kept, .. } => {
                place::compaction(&self.walked.branch, &self.placed, first_kept.as_deref())?;
                Ok(draft.clone())
            }
            Draft::ContextEdit { target, replacement } => {
                match place::edit(&self.walked.branch, &self.placed, target, replacement.as_ref())? {
                    Edit::Fits(draft) => Ok(draft),
                    Edit::Hidden(refusal) if self.rules.delivering => Err(Verdict::LeaveOut(refusal)),
                    Edit::Hidden(refusal) => Err(refusal.into()),
                }
            }
            Draft::Custom { .. } | Draft::CustomMessage { .. } => Ok(draft.clone()),
        }
    }

    fn check_count(&self) -> Result<(), Refusal> {
        let most = self.rules.limits.entries;
        if self.walked.drafts.len() < most as usize {
            return Ok(());
        }
        let most = u64::from(most);
        let used = used(most.saturating_add(1), most, "drafts (limits.proposals)");
        Err(Refusal::new(Rule::LIMIT, format!("{used}: propose the rest on a later entry")))
    }

    /// Counts the line as it will be written; the plugin's part of it has a limit of its own (S12.7).
    fn check_bytes(&mut self, draft: &Draft, count: Option<&Count>) -> Result<(), Refusal> {
        let (own, whole) = line_bytes(self.walked.branch.leaf_id(), draft, count);
        let limits = self.rules.limits;
        if own > limits.entry_bytes {
            let used = used(own, limits.entry_bytes, "bytes of an entry (limits.entry-bytes)");
            return Err(Refusal::new(Rule::LINE, format!("{used}: make it shorter")));
        }
        self.bytes += whole;
        if self.bytes > limits.batch_bytes {
            let used = used(self.bytes, limits.batch_bytes, "bytes of a batch");
            self.bytes -= whole;
            return Err(Refusal::new(Rule::LIMIT, format!("{used}: propose less in one run")));
        }
        Ok(())
    }

    /// Notes what may part a call from its result, and with the first the branch before it.
    fn note(&mut self, at: usize, draft: &Draft) {
        let branch = &self.walked.branch;
        let target = match draft {
            Draft::Custom { .. } | Draft::CustomMessage { .. } => return,
            Draft::Compaction { .. } => None,
            Draft::ContextEdit { target, replacement } => {
                let place = branch.place_of(target);
                let may_part = place.is_some_and(|place| self.placed.may_part(place, replacement.as_ref()));
                if !may_part {
                    return;
                }
                place
            }
        };
        self.before.get_or_insert_with(|| branch.clone());
        self.stretch.push((at, target));
    }

    /// Refuses what of the stretch has parted a call from its result.
    fn look_at_pairs(&mut self) {
        let Some(before) = self.before.take() else { return };
        let stretch = std::mem::take(&mut self.stretch);
        match self.newly_loose(&before) {
            Ok(loose) => loose.iter().for_each(|(end, partners)| self.refuse_guilty(end, partners, &stretch)),
            Err(error) => self.walked.refusals.extend(stretch.iter().map(|(at, _)| (*at, unreadable(&error)))),
        }
    }

    /// What stands alone now and did not on the branch `before`, with what it belonged to there.
    fn newly_loose(&mut self, before: &Branch) -> Result<Vec<(Loose, Vec<u32>)>, BranchError> {
        let after = Pairs::of(&self.walked.branch, self.cache)?.loose();
        if after.is_empty() {
            return Ok(Vec::new());
        }
        let before = Pairs::of(before, self.cache)?;
        let new = after.difference(&before.loose()).map(|end| (end.clone(), before.partners(end))).collect();
        Ok(new)
    }

    /// Refuses the edits that took the partners away, else the one that made the loose end, else the cut.
    fn refuse_guilty(&mut self, loose: &Loose, partners: &[u32], stretch: &[(usize, Option<u32>)]) {
        let edits_of = |places: &[u32]| -> Vec<usize> {
            stretch
                .iter()
                .filter(|(_, target)| target.is_some_and(|place| places.contains(&place)))
                .map(|(at, _)| *at)
                .collect()
        };
        let guilty = [edits_of(partners), edits_of(&[loose.0])].into_iter().find(|edits| !edits.is_empty());
        let (guilty, refusal) = match guilty {
            Some(edits) => (edits, self.parted_by_edit(loose, partners)),
            None => (cuts_of(stretch), self.parted_by_cut(loose, partners)),
        };
        for at in guilty {
            if self.walked.refusals.iter().all(|(other, _)| *other != at) {
                self.walked.refusals.push((at, refusal.clone()));
            }
        }
    }

    fn parted_by_edit(&self, (place, call): &Loose, partners: &[u32]) -> Refusal {
        let message = match partners {
            [] => format!(
                "the call {call:?} in {} would have no result: keep to the calls that are there",
                self.names(&[*place])
            ),
            _ => format!(
                "the tool call {call:?} would be parted from its result ({} would stay without {}): \
                 edit the entries of a call and all its results in one list, or keep the call in the replacement",
                self.names(&[*place]),
                self.names(partners)
            ),
        };
        Refusal::new(Rule::EDIT, message)
    }

    fn parted_by_cut(&self, (place, call): &Loose, partners: &[u32]) -> Refusal {
        let message = format!(
            "the cut would part the tool call {call:?} from its result ({} would stay without {}): \
             begin the kept part at the entry with the call, or behind the result",
            self.names(&[*place]),
            self.names(partners)
        );
        Refusal::new(Rule::COMPACTION, message)
    }

    /// The ids of entries, for a message.
    fn names(&self, places: &[u32]) -> String {
        let name = |place: &u32| format!("{:?}", self.walked.branch.item(*place).id.unwrap_or("a pending entry"));
        places.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

/// The compactions of a stretch; all of it, should there be none.
fn cuts_of(stretch: &[(usize, Option<u32>)]) -> Vec<usize> {
    let cuts: Vec<_> = stretch.iter().filter(|(_, target)| target.is_none()).map(|(at, _)| *at).collect();
    if cuts.is_empty() { stretch.iter().map(|(at, _)| *at).collect() } else { cuts }
}

/// Any time of today's length, for counting bytes.
const SOME_TIME_MS: i64 = 1_700_000_000_000;

/// Bytes of the line: the plugin's part, and the whole with what the host adds.
fn line_bytes(leaf: Option<&str>, draft: &Draft, count: Option<&Count>) -> (u64, u64) {
    const ID: &str = "00000000";
    let stamp = Stamp { id: ID, parent: leaf.or(Some(ID)), timestamp: "1970-01-01T00:00:00.000Z" };
    let bytes = |count: Option<&Count>| draft.entry_json(Some(&stamp), count.map(Count::as_counted).as_ref()).len() + 1;
    (bytes(None) as u64, bytes(count) as u64)
}
