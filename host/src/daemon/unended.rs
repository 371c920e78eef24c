//! A last line without its `\n` (S2.4).
//!
//! Mostly it is being written, so it is waited for. If nobody writes for `live-hold`, nobody is going to: it is taken as Pi
//! takes it on load. A whole entry counts, is handed to the plugins, and is what the next graft hangs on; anything else is
//! skipped. The graft then begins with the missing `\n`. The cursor stays before the line, whose end may still come, alone
//! or behind more text: what the store keeps is that the entry that began there was handled.

use std::sync::Arc;

use pi_session::tree::{Pushed, Source};
use tracing::debug;

use crate::files::FilesError;
use crate::files::append::{LastLine, Place};
use crate::files::tail::Reading;
use crate::journal::Unended;

use super::session::{Session, StepError};
use super::step::{Next, WROTE};
use super::world::World;

/// Why something waits behind such a line.
const UNENDED: &str = "the last line is not finished; it is waited for until nobody has written for live-hold";

/// What is known of the bytes behind the last whole line.
#[derive(Default)]
pub(super) struct Tail {
    /// How many there were when they were last looked at.
    len: u64,
    /// They were taken in.
    taken: Option<LastLine>,
    /// How far they have no `\n`.
    looked: Looked,
}

/// How far no line ends, and what stood right before that place: who rewrites what was looked through changes that too.
#[derive(Default)]
struct Looked {
    to: u64,
    last: Vec<u8>,
}

/// Bytes behind the last whole line that are looked through anew each time.
const FEW: u64 = 64 << 10;
/// What is kept of the bytes before the place up to which no line ends.
const MARK: u64 = 64;

impl Session {
    /// Whether a whole line has arrived. A long one that is still being written is not read from its beginning each time
    /// that it has grown.
    pub(super) fn has_whole_line(&mut self, reading: &Reading) -> Result<bool, StepError> {
        let io = |source| FilesError::Io { path: self.path.clone(), source };
        let from = if self.was_looked_through(reading) { self.tail.looked.to } else { self.read_to };
        let ended = reading.find_end(from).map_err(io)?;
        let Err(to) = ended else { return Ok(true) };
        self.tail.looked = Looked::default();
        if to - self.read_to > FEW {
            let last = reading.read(to - MARK, MARK as usize)?.into_owned();
            self.tail.looked = Looked { to, last };
        }
        Ok(false)
    }

    fn was_looked_through(&self, reading: &Reading) -> bool {
        let looked = &self.tail.looked;
        let stands = || reading.read(looked.to - MARK, MARK as usize).is_ok_and(|last| *last == looked.last);
        looked.to > self.read_to && stands()
    }

    /// Whether there are other bytes behind the last whole line than before.
    pub(super) fn tail_changed(&mut self) -> bool {
        let len = self.unended_bytes();
        std::mem::replace(&mut self.tail.len, len) != len && len > 0
    }

    /// Bytes behind the last whole line: a line that is being written, or was torn.
    fn unended_bytes(&self) -> u64 {
        self.reading.metadata().map_or(0, |meta| meta.len().saturating_sub(self.read_to))
    }

    /// What is to be waited for because the last line has no end; nothing once it has been taken in.
    pub(super) fn wait_for_end(&mut self, world: &World) -> Result<Option<Next>, StepError> {
        if self.tail.taken.is_some() || self.unended_bytes() == 0 || world.stops().is_some() {
            return Ok(None);
        }
        let rest = world.settings.times.live_hold.saturating_sub(self.quiet.lasts());
        if rest.is_zero() {
            return Ok(self.take_last_line(world)?.then(|| Next::soon(WROTE)));
        }
        let waits = self.has_work();
        Ok(Some(Next { after: Some(rest), waiting: waits.then_some(UNENDED), ..Next::default() }))
    }

    /// Takes the last line in. True if it is not what it was a moment ago.
    fn take_last_line(&mut self, world: &World) -> Result<bool, StepError> {
        let (at, len) = (self.read_to, self.unended_bytes());
        let text = self.reading.read(at, usize::try_from(len).unwrap_or(usize::MAX))?.into_owned();
        if text.contains(&b'\n') {
            return Ok(true);
        }
        debug!(session = %self.path.display(), "the last line has had no end for live-hold; taken as it is");
        self.note_receipt(&text);
        self.tail = Tail { len: text.len() as u64, taken: Some(LastLine::new(at, &text)), ..Tail::default() };
        let pushed = Arc::make_mut(&mut self.tree).push(at, &text);
        let Pushed::Entry(ix) = pushed else { return Ok(false) };
        self.lineage.note(&self.tree, ix, &text, &self.record.grafts.seen);
        if self.was_handled(at, pushed) || self.was_taken(at, pushed) {
            return Ok(false);
        }
        self.record.unended = Some(Unended { at, id: self.tree.id(ix).to_owned() });
        self.take_entry(world, ix, &mut |session: &mut Session, ix| session.dispatch(world, ix))?;
        self.save(world, Vec::new())?;
        Ok(false)
    }

    /// Whether this is the line that was handed to the plugins before it had its end.
    pub(super) fn was_taken(&self, offset: u64, pushed: Pushed) -> bool {
        let Pushed::Entry(ix) = pushed else { return false };
        self.record.unended.as_ref().is_some_and(|line| line.at == offset && line.id == self.tree.id(ix))
    }

    /// Whether this line is in the tree already, since it was taken in before it had its end.
    ///
    /// # Errors
    /// [`StepError::Replaced`] if it is another one by now: the tree is to be built anew.
    pub(super) fn is_in_tree(&mut self, offset: u64, line: &[u8]) -> Result<bool, StepError> {
        let Some(taken) = self.tail.taken.filter(|taken| taken.at == offset) else { return Ok(false) };
        self.tail.taken = None;
        if LastLine::new(offset, line) == taken { Ok(true) } else { Err(StepError::Replaced(self.path.clone())) }
    }

    /// Whether what was taken in still stands there.
    pub(super) fn tail_stands(&self) -> Result<bool, StepError> {
        let Some(taken) = self.tail.taken else { return Ok(true) };
        let io = |source| FilesError::Io { path: self.path.clone(), source };
        let len = self.reading.metadata().map_err(io)?.len().saturating_sub(taken.at);
        let text = self.reading.read(taken.at, usize::try_from(len).unwrap_or(usize::MAX))?;
        let end = memchr::memchr(b'\n', &text).unwrap_or(text.len());
        Ok(LastLine::new(taken.at, &text[..end]) == taken)
    }

    /// What the file is to be when something is appended to it.
    pub(super) fn place(&self) -> Place {
        let place = Place::new(self.reading.id(), self.read_to);
        match self.tail.taken {
            Some(taken) => Place { len: self.read_to + self.tail.len, last: Some(taken), ..place },
            None => place,
        }
    }
}
