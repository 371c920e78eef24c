//! A fork shows what its session showed: edits that hold there, and were made behind the place where it was forked, hold in
//! the fork too (product.md section 5, *known*).
//!
//! The fork has copies of the entries up to that place, ids kept. So the grafts of the session it comes from are looked
//! through once, as soon as the fork has arrived; what is pending there for it counts as well.

use std::path::{Path, PathBuf};

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::grafts::Grafts;
use pi_session::tree::Pushed;

use crate::files::locate;
use crate::files::tail::Reading;
use crate::journal::Batch;

use super::links::real_path;
use super::orphans::{edits_what_is_on, read_batch};
use super::session::{Session, StepError};
use super::undone::is_undone;
use super::world::{World, now_ms};

/// How long a fork may take to arrive, milliseconds.
const ARRIVES_MS: i64 = 60_000;
/// Nothing is looked for any more.
const DONE: u64 = u64::MAX;

impl Session {
    /// Makes pending what this fork inherits; once, and again only while more of what it was forked with arrives.
    pub(super) fn inherit(&mut self, world: &World) -> Result<(), StepError> {
        let count = self.tree.entries().len() as u64;
        let Some(origin) = self.origin(world).filter(|_| self.record.grafts.inherited < count) else { return Ok(()) };
        let here = Branch::at(&self.tree, self.source(), self.leaf())?;
        let mut again = Vec::new();
        for batch in edits_in(&here, &origin, world)? {
            self.offer_edits(&here, &batch, "in the fork", &mut again)?;
        }
        self.log_drafts(&again);
        self.record.grafts.inherited = if self.has_arrived() { DONE } else { count };
        self.save(world, again)
    }

    /// The session that this one was forked from, if it is one that is followed.
    fn origin(&self, world: &World) -> Option<PathBuf> {
        if self.record.grafts.inherited == DONE {
            return None;
        }
        let parent = self.tree.header()?.parent_session.as_deref()?;
        let path = real_path(Path::new(parent));
        let is_file = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
        let settings = &world.settings;
        let is_followed = is_file && locate::is_session_name(&path) && (settings.by_path)(&path);
        (is_followed && path != self.path && settings.is_inside(&path)).then_some(path)
    }

    /// Whether all of what it was forked with is there: something was written into it since, or time enough has passed.
    fn has_arrived(&self) -> bool {
        let made = self.tree.header().and_then(|header| header.time_ms());
        let last = self.leaf().and_then(|leaf| self.tree.entry(leaf).time_ms);
        made.zip(last).is_none_or(|(made, last)| last >= made || now_ms().saturating_sub(made) > ARRIVES_MS)
    }
}

/// The batches of the session at `path` that edit what is on `here`: those in the file, and those that wait there.
fn edits_in(here: &Branch, path: &Path, world: &World) -> Result<Vec<Batch>, StepError> {
    let reading = Reading::open(path)?;
    let (mut tree, mut grafts) = (Tree::new(), Grafts::default());
    let read = reading.lines(0, |offset, line| {
        if let Pushed::Entry(ix) = tree.push(offset, line) {
            grafts.note(&tree, ix, line);
        }
        true
    });
    read.map_err(|source| crate::files::FilesError::Io { path: path.into(), source })?;
    let mut found = Vec::new();
    for graft in grafts.all().iter().filter(|graft| edits_what_is_on(here, &tree, graft)) {
        let batch = read_batch(graft, &tree, &reading)?;
        found.extend(batch.filter(|batch| !is_undone(&grafts, &tree, graft, batch)));
    }
    if let Some(key) = world.at(path, |key, _| key) {
        found.extend(world.journal.pending(key)?.iter().map(|recorded| recorded.batch().clone()));
    }
    Ok(found)
}
