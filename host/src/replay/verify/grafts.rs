//! The grafts in the file, held against what is proposed now; and what is proposed, against what the file has of it.

use std::collections::{BTreeMap, HashMap};

use pi_session::grafted::{self, Grafted};
use pi_session::json::Json;
use pi_session::tree::{Source, Tree};
use pi_session::undo;

use crate::replay::ReplayError;

use super::RunLog;
use super::again::{Made, MadeBatch, Sum, sum};
use super::plan::{Place, Plan, Why};
use super::report::{Difference, GraftVerified, Said, Verified, raw};

/// Why a graft is not verified of which the log has no run.
const NOT_LOGGED: &str =
    "its run is not in the log, or not any more (state.keep): also of a graft that came with a fork";

/// Whose a graft is: plugin, handler, trigger.
type Key<'a> = (&'a str, &'a str, &'a str);

/// What is compared.
struct Compare<'c> {
    plan: &'c Plan,
    tree: &'c Tree,
    source: &'c dyn Source,
    log: &'c dyn RunLog,
    /// The batches that were proposed again.
    made: HashMap<Key<'c>, Vec<&'c MadeBatch>>,
    /// Runs that were not made again, and why.
    others: HashMap<Key<'c>, Why>,
    /// What the file has of each run, over all its grafts.
    found: BTreeMap<(String, String, String), Vec<Sum>>,
}

/// Compares the file's grafts with what was made again.
pub(super) fn compare(
    verified: &mut Verified,
    plan: &Plan,
    made: &Made,
    tree: &Tree,
    source: &dyn Source,
    log: &dyn RunLog,
) -> Result<(), ReplayError> {
    let others = plan.others.iter().chain(&made.others).map(|(place, _, why)| (key(place), *why)).collect();
    let mut by_key: HashMap<Key<'_>, Vec<&MadeBatch>> = HashMap::new();
    made.batches.iter().for_each(|batch| by_key.entry(key(&batch.place)).or_default().push(batch));
    let mut compare = Compare { plan, tree, source, log, made: by_key, others, found: BTreeMap::new() };
    let mut grafts = grafted::all(tree, source)?;
    // That is the user's own, and no plugin proposed it.
    grafts.retain(|graft| graft.receipt.handler != undo::HANDLER);
    for graft in &grafts {
        compare.graft(graft, verified)?;
    }
    for batch in &made.batches {
        compare.batch(batch, &grafts, verified)?;
    }
    Ok(())
}

fn key(place: &Place) -> Key<'_> {
    (&place.plugin, place.handler, &place.trigger)
}

fn key_of(graft: &Grafted) -> Key<'_> {
    (&graft.receipt.plugin, &graft.receipt.handler, &graft.receipt.trigger)
}

impl Compare<'_> {
    fn graft(&mut self, graft: &Grafted, verified: &mut Verified) -> Result<(), ReplayError> {
        let drafts = graft.drafts(self.tree, self.source)?;
        let sums: Vec<Sum> = drafts.iter().filter_map(|draft| sum(Json::parse(draft.as_bytes()).ok()?)).collect();
        let receipt = &graft.receipt;
        let place = (receipt.plugin.clone(), receipt.handler.clone(), receipt.trigger.clone());
        self.found.entry(place).or_default().extend(&sums);
        let (outcome, why) = match self.batch_of(graft) {
            Some(batch) => {
                let different = self.difference(graft, batch, &sums, &drafts)?;
                let is_other = different.is_some();
                verified.differences.extend(different);
                (if is_other || !batch.same { "different" } else { "verified" }, None)
            }
            None => {
                let why = self.others.get(&key_of(graft)).map_or(NOT_LOGGED, |why| why.text());
                verified.add_other(&receipt.plugin, &receipt.digest, why);
                ("not verified", Some(why))
            }
        };
        verified.grafts.push(GraftVerified {
            entry: self.tree.id(graft.first).to_owned(),
            batch: receipt.batch.clone(),
            plugin: receipt.plugin.clone(),
            handler: receipt.handler.clone(),
            trigger: receipt.trigger.clone(),
            outcome,
            why,
        });
        Ok(())
    }

    /// What was proposed again in the place of a graft: by its batch, or, where that one continues another or follows to
    /// another branch, by its run.
    fn batch_of(&self, graft: &Grafted) -> Option<&MadeBatch> {
        let all = self.made.get(&key_of(graft))?;
        let exact = all.iter().find(|batch| *batch.batch == *graft.receipt.batch);
        exact.or(all.last()).copied()
    }

    /// How the file's graft is something else than what is proposed, if it is.
    fn difference(
        &self,
        graft: &Grafted,
        batch: &MadeBatch,
        sums: &[Sum],
        drafts: &[String],
    ) -> Result<Option<Difference>, ReplayError> {
        let mut left = batch.sums.clone();
        let is_there = |sum: &Sum| left.iter().position(|other| other == sum).map(|at| left.swap_remove(at)).is_some();
        let all_there = sums.len() == drafts.len() && sums.iter().all(is_there);
        let what = match () {
            () if *graft.receipt.digest != *batch.digest => "the receipt in the file names another version",
            () if !all_there => "the file has something else than is proposed",
            () => return Ok(None),
        };
        let id = Some(graft.receipt.batch.as_str());
        let mut different = Difference::of(&batch.place, id, what.to_owned());
        different.entry = Some(self.tree.id(graft.first).to_owned());
        different.then = self.then(batch)?;
        different.file = Some(raw(&format!("[{}]", drafts.join(","))));
        Ok(Some(different))
    }

    fn then(&self, batch: &MadeBatch) -> Result<Option<Said>, ReplayError> {
        let Some(hash) = batch.drafts.as_ref().map(ToString::to_string) else { return Ok(None) };
        let mut texts = self.log.texts(vec![hash.clone()]).map_err(ReplayError::Log)?;
        let text = texts.remove(&hash).flatten();
        Ok(text.map(|text| Said::of("proposed", Some(&text), &[])))
    }

    /// Whether all of what is proposed is in the file, or it is known why not.
    fn batch(&self, batch: &MadeBatch, grafts: &[Grafted], verified: &mut Verified) -> Result<(), ReplayError> {
        let Place { plugin, handler, trigger } = &batch.place;
        let place = (plugin.to_string(), (*handler).to_owned(), trigger.to_string());
        let mut found = self.found.get(&place).cloned().unwrap_or_default();
        let lacks = |sum: &&Sum| found.iter().position(|other| other == *sum).map(|at| found.swap_remove(at)).is_none();
        let lacking = batch.sums.iter().filter(lacks).count();
        // What is different is told already.
        if lacking == 0 || !batch.same || self.is_explained(batch, grafts) {
            return Ok(());
        }
        let of = batch.sums.len();
        let what = match lacking == of {
            true => "the file has nothing of it, and the log says that it was grafted".to_owned(),
            false => format!("{lacking} of {of} drafts are not in the file, and the log does not say why"),
        };
        let then = self.then(batch)?;
        verified.differences.push(Difference::of(&batch.place, Some(&batch.batch), what).between(then, None));
        Ok(())
    }

    /// Whether the log tells why something is not in the file: it waits, was left out or is stale, or never landed.
    fn is_explained(&self, batch: &MadeBatch, grafts: &[Grafted]) -> bool {
        let own = grafts.iter().filter(|graft| key_of(graft) == key(&batch.place));
        let mut ids = own.map(|graft| graft.receipt.batch.as_str()).chain([&*batch.batch]);
        let fate = |id: &str| self.plan.fates.get(id).copied().unwrap_or_default();
        let mut landed = false;
        let explained = ids.any(|id| {
            landed |= fate(id).landed;
            fate(id).told || self.plan.pending.contains(id)
        });
        explained || !landed && !grafts.iter().any(|graft| key_of(graft) == key(&batch.place))
    }
}
