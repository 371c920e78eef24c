//! Which entries were handled before: by their place while the file is what it was, else by their ids (product.md
//! section 6).
//!
//! The store keeps where the last handled line stands and its hash. While it stands there, all before it was handled and
//! what is behind it was not. Where it does not (a file that was shortened, rewritten, or put in the place of another), the
//! file is read anew, and an entry is new if no entry of its id was handled: from then on for good, since what is missing
//! now may come back. Version 1 has no ids that last, and Pi's migration of it gives new ones, so there their count decides.

use std::collections::HashSet;

use pi_session::tree::{EntryIx, Pushed, Source};
use tracing::info;

use crate::files::tail::Reading;
use crate::journal::{SessionRecord, fingerprint};

use super::session::{Session, StepError, line_hash};
use super::world::World;

/// What was handled before a session was loaded, and since it was saved last.
#[derive(Default)]
pub(super) struct Handled {
    /// Lines that begin before this were handled.
    pub(super) to: u64,
    /// As many entries were handled, whatever their ids.
    count: Option<u64>,
    /// What ids were handled, where they decide.
    ids: Option<HashSet<u64>>,
    /// Those handled since the last save.
    fresh: Vec<u64>,
}

impl Session {
    /// Finds out by what is to be judged which entries were handled.
    pub(super) fn know_handled(&mut self, world: &World) -> Result<(), StepError> {
        self.handled.to = self.record.offset;
        if !stands(&self.reading, &self.record) {
            info!(session = %self.path.display(), "not the file that it was: entries that were handled are known by their ids");
            self.handled.to = 0;
            let by_count = self.record.has_old_ids || self.record.ids < self.record.entries;
            self.handled.count = by_count.then_some(self.record.entries);
            self.record = SessionRecord {
                by_id: true,
                offset: 0,
                last_line_at: 0,
                last_line: String::new(),
                ..self.record.clone()
            };
        }
        if let (true, Some(key)) = (self.record.by_id, self.key) {
            self.handled.ids = Some(world.journal.handled(key, self.record.ids)?.into_iter().collect());
        }
        Ok(())
    }

    /// Whether the line that was just pushed was handled before this session was loaded.
    pub(super) fn was_handled(&self, offset: u64, pushed: Pushed) -> bool {
        let by_count = || self.handled.count.is_some_and(|count| self.tree.entries().len() as u64 <= count);
        let by_id = |ix| self.handled.ids.as_ref().is_some_and(|ids| ids.contains(&self.fingerprint(ix)));
        offset < self.handled.to || by_count() || matches!(pushed, Pushed::Entry(ix) if by_id(ix))
    }

    /// Whether it is by its place that a line counts as handled, and not because its entry is known.
    pub(super) fn is_before_cursor(&self, offset: u64) -> bool {
        offset < self.handled.to
    }

    /// Remembers an entry as handled.
    pub(super) fn note_handled(&mut self, ix: EntryIx) {
        let id = self.fingerprint(ix);
        if self.handled.ids.as_mut().is_none_or(|ids| ids.insert(id)) {
            self.handled.fresh.push(id);
        }
    }

    fn fingerprint(&self, ix: EntryIx) -> u64 {
        fingerprint(self.tree.id(ix))
    }

    /// What was handled since the last save, counted in the record: the place of the first, and all of them.
    pub(super) fn take_fresh(&mut self) -> (u64, Vec<u64>) {
        let (at, fresh) = (self.record.ids, std::mem::take(&mut self.handled.fresh));
        self.record.ids += fresh.len() as u64;
        (at, fresh)
    }

    /// Whether the cursor says all there is to say about the lines up to `end`, so that a restart may go on from there.
    pub(super) fn may_stop_behind(&self, end: u64) -> bool {
        let plain = self.handled.count.is_none() && self.copied_ms.is_none();
        plain && self.record.offset == end && end >= self.handled.to
    }
}

/// Whether the last handled line still is where it was.
fn stands(reading: &Reading, record: &SessionRecord) -> bool {
    let len = usize::try_from(record.offset.saturating_sub(record.last_line_at)).unwrap_or(usize::MAX);
    if record.last_line.is_empty() {
        return reading.metadata().is_ok_and(|meta| meta.len() >= record.offset);
    }
    let line = reading.read(record.last_line_at, len);
    line.is_ok_and(|line| line.strip_suffix(b"\n").is_some_and(|line| line_hash(line) == record.last_line))
}
