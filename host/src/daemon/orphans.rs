//! What becomes of grafts that Pi passes over, and of edits when the user branches off (product.md section 5, *orphaned* and
//! *known*).
//!
//! ```text
//! a1 ┬─ R1 n1          orphaned: Pi never loaded it, so all of it is pending again, for the branch of u2
//!    └─ u2
//! a1 ─ R1 e1 ─ u2 …    known: u3 branches off before it, which is the user's will; what was edited on the way to u3 is
//!   └─ u3              edited there too, and nothing else is offered again
//! ```
//!
//! What is offered again comes from the file, so also after a lost store, and is kept in one transaction with the cursor
//! behind the entry that told. That it is grafted once on a branch is left to the receipts: pending it is once only, and one
//! whose branch holds its receipt already is done.

use pi_session::branch::{Branch, BranchError};
use pi_session::grafts::{Fate, Graft, Grafts, News};
use pi_session::json::Json;
use pi_session::receipt::{self, Passing, Receipt};
use pi_session::tree::{EntryIx, Source, Tree};
use tracing::{info, warn};

use super::dispatch::batch_id;
use super::links::Bridge;
use super::session::{Session, StepError};
use super::undone::is_undone;
use super::world::{World, now_ms};
use crate::journal::{Batch, Handler, Intent, RunRecord};

/// Bytes of a graft that is offered again, at most: twice those of the largest batch, since Pi's lines are longer.
const MOST_BYTES: u64 = 1 << 20;
/// What the log says of a batch that is pending again.
const OFFERED: &str = "offered again";
/// No drafts, as JSON.
const NONE: &str = "[]";

/// The grafts of a session, and what its newest entry told of them.
#[derive(Default)]
pub(super) struct Lineage {
    pub(super) grafts: Grafts,
    news: News,
    passing: Passing,
    /// The receipt of the batch that is whole with the newest entry.
    whole: Option<Receipt>,
}

impl Lineage {
    /// Takes in the newest entry of `tree`. A bridge's Pi stood on those that are `seen`.
    pub(super) fn note(&mut self, tree: &Tree, ix: EntryIx, line: &[u8], seen: &[String]) {
        self.news = self.grafts.note(tree, ix, line);
        self.whole = self.passing.pass(line);
        if seen.iter().any(|id| id == tree.id(ix)) {
            self.grafts.seen_from(tree, ix);
        }
    }

    /// A line that is no entry.
    pub(super) fn note_bad(&mut self, line: &[u8]) {
        self.grafts.note_bad(line);
    }

    /// Whether an entry is of a graft that hangs on nothing.
    pub(super) fn is_loose(&self, tree: &Tree, ix: EntryIx) -> bool {
        self.grafts.of(ix).is_some_and(|graft| graft.is_loose(tree))
    }

    /// The line that the grafts at the file's end have passed over, if they have.
    pub(super) fn passed_over(&self, tree: &Tree) -> Option<EntryIx> {
        self.grafts.passed_over(tree)
    }

    /// The newest graft that is no mere rejoin.
    pub(super) fn newest(&self, tree: &Tree) -> Option<Graft> {
        self.grafts.all().iter().rev().find(|graft| !graft.is_rejoin(tree)).copied()
    }
}

impl Session {
    /// What the newest entry tells of the grafts before it. Gives the batches that are pending again because of it; they are
    /// to be kept together with the cursor behind the entry.
    pub(super) fn note_grafts(&mut self, world: &World, ix: EntryIx) -> Result<Vec<Batch>, StepError> {
        self.take_whole(world)?;
        let news = std::mem::take(&mut self.lineage.news);
        if self.lineage.grafts.ends_in(ix) {
            self.note_own_line(world, ix)?;
        } else {
            (self.record.grafts.misplaced, _) = (false, self.record.grafts.seen.clear());
            self.note_loaded(world, &news);
        }
        for graft in &news.known {
            self.tell(graft, "known", "Pi has gone on from it")?;
        }
        if news.orphaned.is_empty() && !news.branched {
            return Ok(Vec::new());
        }
        let here = Branch::at(&self.tree, self.source(), Some(ix))?;
        let mut again = Vec::new();
        for graft in &news.orphaned {
            self.pass_over(&here, graft, &mut again)?;
        }
        if news.branched {
            self.edit_again(&here, &news, &mut again)?;
        }
        self.log_drafts(&again);
        Ok(again)
    }

    /// What a batch that is offered again holds by now is kept with the line that says so: it may be less than was proposed,
    /// or more, and a run that sees it pending can be made again by it.
    pub(super) fn log_drafts(&mut self, again: &[Batch]) {
        for batch in again {
            let is_it = |row: &&mut RunRecord| row.outcome == OFFERED && row.batch.as_deref() == Some(&*batch.id);
            if let Some(row) = self.runs.iter_mut().rev().find(is_it) {
                *row = row.clone().with_drafts(&batch.drafts);
            }
        }
    }

    /// A line of a graft: Pi wrote it if a bridge has the session, else we did.
    fn note_own_line(&mut self, world: &World, ix: EntryIx) -> Result<(), StepError> {
        if self.was_bridged {
            self.lineage.grafts.seen_from(&self.tree, ix);
            self.note_seen(ix);
            return Ok(());
        }
        let was = std::mem::replace(&mut self.record.grafts.misplaced, self.lineage.passed_over(&self.tree).is_some());
        if self.record.grafts.misplaced && !was && !self.is_live(world) {
            self.note_misplaced(world);
            if let Some(graft) = self.lineage.newest(&self.tree) {
                self.tell(&graft, "misplaced", "somebody wrote at the same moment")?;
            }
        }
        Ok(())
    }

    /// A Pi with a bridge has been seen to stand on an entry.
    fn note_seen(&mut self, ix: EntryIx) {
        let (id, parent) = (self.tree.id(ix).to_owned(), self.tree.parent(ix).map(|parent| self.tree.id(parent)));
        let seen = &mut self.record.grafts.seen;
        match seen.last_mut() {
            // Whoever stands on it stands on what is before it.
            Some(last) if Some(last.as_str()) == parent => *last = id,
            _ => seen.push(id),
        }
    }

    /// Bridges say where their Pis stand: what is on the way there is known, and nobody has to be guessed at any more.
    pub(super) fn note_leaves(&mut self, world: &World, bridges: &[Bridge]) -> Result<(), StepError> {
        let mut is_news = !bridges.is_empty() && self.forget_holds();
        let leaf_of = |bridge: &Bridge| self.tree.by_id(bridge.leaf.as_deref()?);
        for leaf in bridges.iter().filter_map(leaf_of).collect::<Vec<_>>() {
            let known = self.lineage.grafts.seen_from(&self.tree, leaf);
            for graft in &known {
                self.tell(graft, "known", "the Pi of a bridge has it")?;
            }
            if !known.is_empty() {
                is_news = true;
                self.note_seen(leaf);
            }
        }
        if is_news { self.save(world, Vec::new()) } else { Ok(()) }
    }

    /// Pi went on beside a graft that it had not loaded.
    fn pass_over(&mut self, here: &Branch, graft: &Graft, again: &mut Vec<Batch>) -> Result<(), StepError> {
        let Some(batch) = self.batch_of(graft)? else { return self.pass_over_undo(here, graft) };
        // Else it is not known yet that it was written: recovery finds it passed over.
        if !self.is_pending(&batch) && !is_undone(&self.lineage.grafts, &self.tree, graft, &batch) {
            self.offer_again(here, batch, again)?;
        }
        Ok(())
    }

    /// What was made for an entry of a graft that Pi passed over has no branch to land on any more.
    pub(super) fn drop_made_for_orphans(&mut self, world: &World) -> Result<(), StepError> {
        let of = |trigger: &str| self.lineage.grafts.of(self.tree.by_id(trigger)?);
        let is_lost = |batch: &&Batch| of(&batch.trigger).is_some_and(|graft| graft.fate == Fate::Orphaned);
        let lost: Vec<Batch> = self.pending.iter().map(|recorded| recorded.batch()).filter(is_lost).cloned().collect();
        for batch in lost {
            warn!(session = %self.path.display(), batch = batch.id, "stale: it was made for a graft that Pi passed over");
            self.tally.stale += 1;
            self.drop_pending(world, &batch.id)?;
            self.note(&batch, "stale", "it was made for a graft that Pi passed over");
        }
        Ok(())
    }

    /// What is handed to Pi and has arrived whole is done, wherever Pi stands by now.
    fn take_whole(&mut self, world: &World) -> Result<(), StepError> {
        let Some(receipt) = self.lineage.whole.take().filter(|_| self.was_bridged) else {
            return Ok(());
        };
        let is_it = |batch: &&Batch| batch.id == receipt.batch;
        match self.pending.iter().map(|recorded| recorded.batch()).find(is_it).cloned() {
            Some(batch) => self.taken(world, &batch),
            None => Ok(()),
        }
    }

    /// Makes a batch pending again for the branch `here`, if it still means something there.
    fn offer_again(&mut self, here: &Branch, batch: Batch, again: &mut Vec<Batch>) -> Result<(), StepError> {
        let (session, leaf) = (self.path.display(), here.leaf_id().unwrap_or_default());
        warn!(%session, batch = batch.id, beside = leaf, "orphaned: Pi went on beside it and had not loaded it");
        self.note(&batch, "orphaned", format!("Pi had not loaded it, and went on beside it with {leaf}"));
        let lost = match here.place_of(&batch.trigger) {
            None => Some("its trigger is not on the branch that Pi went on with"),
            Some(_) if batch.drafts == NONE => Some("none of its drafts is in the file"),
            Some(_) => None,
        };
        if let Some(why) = lost {
            self.tally.stale += 1;
            self.note(&batch, "stale", why);
        } else if !is_on(here, &batch)? {
            self.note(&batch, OFFERED, "for the branch that Pi went on with");
            let continues = batch.continues.is_some();
            put(again, batch, continues);
        }
        Ok(())
    }

    /// A write that was intended is found in the file, and Pi has gone on beside it: what is pending stays so. False if that
    /// is not what happened to it.
    pub(super) fn recover_orphan(&mut self, world: &World, intent: &Intent) -> Result<bool, StepError> {
        let first = intent.ids.first().and_then(|id| self.tree.by_id(id));
        let fate = first.and_then(|ix| self.lineage.grafts.of(ix)).map(|graft| graft.fate);
        if fate != Some(Fate::Orphaned) || !self.is_pending(&intent.batch) {
            return Ok(false);
        }
        let (here, mut again) = (Branch::at(&self.tree, self.source(), self.leaf())?, Vec::new());
        self.offer_again(&here, intent.batch.clone(), &mut again)?;
        match again.is_empty() {
            true => self.drop_pending(world, &intent.batch.id)?,
            false => world.journal.withdraw(&intent.batch.id)?,
        }
        Ok(true)
    }

    /// The user went to another branch: edits of what is shown there hold there too.
    fn edit_again(&mut self, here: &Branch, news: &News, again: &mut Vec<Batch>) -> Result<(), StepError> {
        let all = self.lineage.grafts.all().iter().filter(|graft| !news.orphaned.contains(graft));
        let there = |graft: &&Graft| edits_what_is_on(here, &self.tree, graft);
        for graft in all.filter(there).copied().collect::<Vec<_>>() {
            let Some(batch) = self.batch_of(&graft)? else { continue };
            if is_undone(&self.lineage.grafts, &self.tree, &graft, &batch) {
                continue;
            }
            self.offer_edits(here, &batch, "on the branch that Pi went to", again)?;
        }
        Ok(())
    }

    /// Makes the edits of a batch pending for the branch `here`, if its trigger and their targets are there and they are not.
    pub(super) fn offer_edits(
        &mut self,
        here: &Branch,
        batch: &Batch,
        r#where: &str,
        again: &mut Vec<Batch>,
    ) -> Result<(), StepError> {
        let known_here = here.place_of(&batch.trigger).is_some() && !has_receipt(here, batch)?;
        let Some(edits) = edits_of(here, batch).filter(|edits| known_here && !self.is_pending(edits)) else {
            return Ok(());
        };
        let session = self.path.display();
        info!(%session, batch = batch.id, again = edits.id, "its edits are offered again {where}");
        self.note(&edits, OFFERED, format!("the edits of {}, {where}", batch.id));
        put(again, edits, batch.continues.is_some());
        Ok(())
    }

    fn tell(&mut self, graft: &Graft, outcome: &str, why: &str) -> Result<(), StepError> {
        if let Some(batch) = self.batch_of(graft)? {
            self.note(&batch, outcome, why);
        }
        Ok(())
    }

    /// A graft as the batch that it was.
    pub(super) fn batch_of(&self, graft: &Graft) -> Result<Option<Batch>, StepError> {
        made_of_told(graft, &self.tree, || self.lineage.grafts.told(graft, &self.tree, self.source().as_ref()))
    }

    fn is_pending(&self, batch: &Batch) -> bool {
        self.pending.iter().any(|recorded| is_same(recorded.batch(), batch))
    }
}

/// Whether a graft of this tree edits something that is on `here`, and is not there itself.
pub(super) fn edits_what_is_on(here: &Branch, tree: &Tree, graft: &Graft) -> bool {
    let is_here = |ix: EntryIx| here.place_of(tree.id(ix)).is_some();
    graft.targets(tree).any(is_here) && !is_here(graft.first)
}

/// A graft as the batch that it was; none of what is no batch, or too large to be one.
pub(super) fn read_batch(graft: &Graft, tree: &Tree, source: &dyn Source) -> Result<Option<Batch>, StepError> {
    made_of_told(graft, tree, || graft.told(tree, source))
}

/// What a graft tells of itself.
type Told = Result<Option<(Receipt, Vec<String>)>, BranchError>;

fn made_of_told(graft: &Graft, tree: &Tree, told: impl FnOnce() -> Told) -> Result<Option<Batch>, StepError> {
    let told = if graft.bytes(tree) > MOST_BYTES { None } else { told()? };
    Ok(told.and_then(|(receipt, drafts)| made_of(receipt, &drafts)))
}

/// What a receipt and drafts say of a batch; none where its handler is one that nobody knows.
pub(super) fn made_of(receipt: Receipt, drafts: &[String]) -> Option<Batch> {
    let handlers = [Handler::OnEntry, Handler::OnSettled];
    Some(Batch {
        handler: handlers.into_iter().find(|handler| handler.as_str() == receipt.handler)?,
        id: receipt.batch,
        plugin: receipt.plugin,
        version: receipt.version,
        digest: receipt.digest,
        reason: receipt.reason,
        trigger: receipt.trigger,
        drafts: format!("[{}]", drafts.join(",")),
        made_ms: now_ms(),
        continues: receipt.continues,
    })
}

/// Whether both are what one run proposed.
fn is_same(a: &Batch, b: &Batch) -> bool {
    (&a.plugin, a.handler, &a.trigger) == (&b.plugin, b.handler, &b.trigger)
}

/// Puts a batch among those that are offered again. What continued another one is offered as a part of that; any other copy
/// of what is offered already is left out.
fn put(again: &mut Vec<Batch>, batch: Batch, continues: bool) {
    match again.iter_mut().find(|known| is_same(known, &batch)) {
        None => again.push(batch),
        Some(known) if continues => known.drafts = joined(&known.drafts, &batch.drafts),
        Some(_) => {}
    }
}

/// Two lists of drafts as one; an edit that is in both stands once.
fn joined(first: &str, rest: &str) -> String {
    let texts = |list: &str| -> Vec<String> {
        let list = Json::parse(list.as_bytes()).ok();
        list.into_iter().flat_map(Json::items).map(|draft| draft.to_text().into_owned()).collect()
    };
    let mut drafts = texts(first);
    let is_edit = |draft: &String| draft.contains("\"context_edit\"");
    let rest: Vec<String> =
        texts(rest).into_iter().filter(|draft| !(is_edit(draft) && drafts.contains(draft))).collect();
    drafts.extend(rest);
    format!("[{}]", drafts.join(","))
}

/// Whether the branch holds all of it.
fn is_on(here: &Branch, batch: &Batch) -> Result<bool, StepError> {
    let found = receipt::receipts_of(here, &batch.plugin, batch.handler.as_str(), &batch.trigger)?;
    Ok(found.iter().any(|found| found.complete))
}

/// Whether the branch holds any of it.
fn has_receipt(here: &Branch, batch: &Batch) -> Result<bool, StepError> {
    Ok(!receipt::receipts_of(here, &batch.plugin, batch.handler.as_str(), &batch.trigger)?.is_empty())
}

/// The edits of a batch whose targets are on the branch, as a batch of its own.
fn edits_of(here: &Branch, batch: &Batch) -> Option<Batch> {
    let is_here = |draft: &Json<'_>| {
        let target = draft.get("targetId").and_then(Json::as_str);
        draft.get("type").and_then(Json::as_str).as_deref() == Some("context_edit")
            && target.is_some_and(|target| here.place_of(&target).is_some())
    };
    let drafts = Json::parse(batch.drafts.as_bytes()).ok()?;
    let edits: Vec<String> = drafts.items().filter(is_here).map(|draft| draft.to_text().into_owned()).collect();
    let made_of = || Batch {
        id: batch_id(),
        drafts: format!("[{}]", edits.join(",")),
        made_ms: now_ms(),
        continues: None,
        ..batch.clone()
    };
    (!edits.is_empty()).then(made_of)
}
