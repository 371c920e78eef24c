//! The story of one entry: whose graft it is and how it came here, what ran on it and what came of that, who edited it.
//!
//! Two sources are put together. The file tells by its receipts which graft came from whom, in a clone and after a lost store
//! too; the run log, where there is one, adds what each run took, what was refused, and what became of each batch.

mod entry;
mod graft;
mod run;

use std::sync::Arc;

use pi_session::branch::BranchError;
use pi_session::grafted::{self, Grafted};
use pi_session::tree::{EntryIx, Leaf, Source, Tree};
use serde::Serialize;

use crate::journal::RunRecord;
use crate::wire::quarantine::{FailedLine, Quarantine, SuspendedLine};

pub use entry::{Brief, EditTold, EntryTold};
pub use graft::{Delivered, GraftBrief, GraftTold};
pub use run::{Became, RunTold};

/// A session, as its file has it.
pub struct InFile {
    tree: Arc<Tree>,
    source: Arc<dyn Source>,
    grafts: Vec<Grafted>,
    /// By the number of an entry: whether it is on the branch that Pi would go on from.
    active: Vec<bool>,
}

/// What is known beside the file.
#[derive(Default)]
pub struct Known {
    /// Rows of the run log, oldest first: those about [`InFile::about`], or more.
    pub rows: Vec<RunRecord>,
    /// The batches that are pending in the session, by id.
    pub pending: Vec<String>,
    /// Runs that failed and are not done with, and suspended plugins.
    pub quarantine: Quarantine,
}

/// What is said of an entry.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// The entry itself.
    pub entry: EntryTold,
    /// The graft that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graft: Option<GraftTold>,
    /// It merely leads back to Pi's branch, behind a graft that was misplaced: that one's batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejoins: Option<String>,
    /// What ran on it, as the log has it, oldest first.
    pub runs: Vec<RunTold>,
    /// The grafts that were made for it and are in the file.
    pub grafts: Vec<GraftBrief>,
    /// Who edited it, in the file's order.
    pub edits: Vec<EditTold>,
    /// Runs on it that failed and are not done with.
    pub failed: Vec<FailedLine>,
    /// Plugins that are suspended in its session, or have yet to see what passed without them.
    pub suspended: Vec<SuspendedLine>,
}

impl InFile {
    /// Reads the receipts of a session.
    ///
    /// # Errors
    /// [`BranchError`] if the text is not what was indexed.
    pub fn new(tree: Arc<Tree>, source: Arc<dyn Source>) -> Result<InFile, BranchError> {
        let grafts = grafted::all(&tree, source.as_ref())?;
        let mut active = vec![false; tree.entries().len()];
        let mut at = match tree.leaf() {
            Leaf::At(ix) => Some(ix),
            Leaf::None | Leaf::NoId => None,
        };
        // A circle of parents ends too.
        while let Some(ix) = at.filter(|ix| !active[ix.index()]) {
            active[ix.index()] = true;
            at = tree.parent(ix);
        }
        Ok(InFile { tree, source, grafts, active })
    }

    /// The entries that `named` may mean: the one with this id, else those whose ids begin so; else the receipts of the
    /// batches whose ids do.
    #[must_use]
    pub fn find(&self, named: &str) -> Vec<EntryIx> {
        if let Some(ix) = self.tree.by_id(named) {
            return vec![ix];
        }
        let stands = |ix: &EntryIx| self.tree.by_id(self.tree.id(*ix)) == Some(*ix);
        let begins = |ix: &EntryIx| self.tree.id(*ix).starts_with(named);
        let found: Vec<_> = self.tree.all().filter(begins).filter(stands).collect();
        if !found.is_empty() {
            return found;
        }
        let of_batch = self.grafts.iter().filter(|graft| graft.receipt.batch.starts_with(named));
        of_batch.map(|graft| graft.first).collect()
    }

    /// The ids of entries and batches of which the run log may have something to say.
    #[must_use]
    pub fn about(&self, ix: EntryIx) -> Vec<String> {
        let mut about = vec![self.tree.id(ix).to_owned()];
        if let Some(graft) = self.graft_of(ix) {
            about.extend([graft.receipt.batch.clone(), graft.receipt.trigger.clone()]);
        }
        about
    }

    fn graft_of(&self, ix: EntryIx) -> Option<&Grafted> {
        self.grafts.iter().find(|graft| graft.holds(ix))
    }

    fn is_active(&self, ix: EntryIx) -> bool {
        self.active[ix.index()]
    }

    /// Puts together what is known of an entry.
    ///
    /// # Errors
    /// [`BranchError`] if the text is not what was indexed.
    pub fn explain(&self, ix: EntryIx, known: &Known) -> Result<Explained, BranchError> {
        let id = self.tree.id(ix);
        let made_for = self.grafts.iter().filter(|graft| graft.receipt.trigger == id);
        let ran_on = known.rows.iter().filter(|row| row.trigger == id && run::is_run(row));
        let Quarantine { runs, suspended } = &known.quarantine;
        Ok(Explained {
            entry: self.entry_told(ix)?,
            graft: self.graft_of(ix).map(|graft| self.graft_told(graft, ix, known)).transpose()?,
            rejoins: self.rejoins(ix)?,
            runs: ran_on.map(|row| self.run_told(row, known)).collect(),
            grafts: made_for.map(|graft| self.graft_brief(graft)).collect(),
            edits: self.edits_of(ix),
            failed: runs.iter().filter(|run| run.trigger == id).cloned().collect(),
            suspended: suspended.clone(),
        })
    }
}
