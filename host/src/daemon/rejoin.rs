//! Leading back to the line that a misplaced graft has passed over, so that nothing of Pi's is off the branch at the next open
//! (product.md section 5).
//!
//! It gives nothing to a context and hangs on Pi's own line, so it does no harm beside a Pi that writes on; that Pi merely
//! passes over it. So it is written as soon as it is quiet, long before the next graft; at once where the graft hangs on
//! nothing, since half a line of somebody's came right before it.

use pi_session::branch::Branch;
use tracing::{info, warn};

use crate::deliver::append::Direct;
use crate::deliver::presence::Presence;
use crate::deliver::rejoin::{End, Led, rejoin};
use crate::files::append::Mtime;
use crate::files::locate;
use crate::journal::{Batch, SessionKey};

use super::dispatch::batch_id;
use super::session::{Session, StepError};
use super::step::{BRIDGED, HELD_PAUSE, KEPT_PAUSE, Next, WROTE};
use super::world::{World, now_ms, random};

/// Why something waits before that.
const MISPLACED: &str = "a graft was misplaced; the file is led back to Pi's branch when it is quiet";
/// The same where a Pi is seen.
const LIVE: &str = "a graft was misplaced, and a Pi has this session open; the file is led back when it quits";

impl Session {
    /// Leads back, if there is something to lead back to. Gives what is to be waited for.
    pub(super) fn lead_back(&mut self, world: &World) -> Result<Option<Next>, StepError> {
        let (Some(key), true) = (self.key, self.record.grafts.misplaced) else { return Ok(None) };
        let graft = self.lineage.newest(&self.tree).map(|graft| self.batch_of(&graft)).transpose()?.flatten();
        let Some((batch, over)) = graft.zip(self.lineage.passed_over(&self.tree)) else {
            self.record.grafts.misplaced = false;
            return Ok(None);
        };
        let is_loose = self.leaf().is_some_and(|leaf| self.lineage.is_loose(&self.tree, leaf));
        if let Some(next) = self.not_yet(world, is_loose) {
            return Ok(Some(next));
        }
        let branch = Branch::at(&self.tree, self.source(), Some(over))?;
        self.write_rejoin(world, key, &branch, &batch)
    }

    /// What it waits for. Where the file ends in what hangs on nothing, whoever opens it begins with an empty context: that is
    /// no time to wait for quiet, and a Pi that has it open passes over the way back.
    fn not_yet(&self, world: &World, is_loose: bool) -> Option<Next> {
        if world.has_bridge(&self.path) {
            return Some(Next { after: Some(KEPT_PAUSE), waiting: Some(BRIDGED), ..Next::default() });
        }
        if is_loose {
            return None;
        }
        let rest = world.settings.times.settle.saturating_sub(self.quiet.lasts());
        match self.look(world) {
            Presence::Here => Some(Next { after: Some(HELD_PAUSE), waiting: Some(LIVE), ..Next::default() }),
            _ if !rest.is_zero() => Some(Next { after: Some(rest), waiting: Some(MISPLACED), ..Next::default() }),
            _ => None,
        }
    }

    fn write_rejoin(
        &mut self,
        world: &World,
        key: SessionKey,
        branch: &Branch,
        batch: &Batch,
    ) -> Result<Option<Next>, StepError> {
        self.forget_bridges();
        let place = self.place();
        let mtime = if locate::is_newest(&self.path) { Mtime::Move } else { Mtime::Keep };
        let mut direct =
            Direct { disk: world.disk.as_ref(), journal: &world.journal, now_ms: now_ms(), random: &mut random };
        let end = End { path: &self.path, place, mtime };
        let again = || Some(Next { after: Some(KEPT_PAUSE), waiting: Some(WROTE), ..Next::default() });
        match rejoin(&mut direct, key, branch, batch, batch_id(), end)? {
            Led::Kept(_) => return Ok(again()),
            Led::Impossible(stale) => {
                warn!(session = %self.path.display(), "cannot be led back: {stale}");
                self.record.grafts.misplaced = false;
                return Ok(None);
            }
            Led::Back(landed) => {
                self.note_rejoined(batch, branch.leaf_id().unwrap_or_default());
                if landed.between > 0 {
                    self.note_misplaced(world);
                }
            }
        }
        self.read_own(world)?;
        Ok(if self.record.grafts.misplaced { again() } else { None })
    }

    /// The file ends on Pi's branch again.
    pub(super) fn note_rejoined(&mut self, batch: &Batch, over: &str) {
        info!(session = %self.path.display(), batch = batch.id, over, "rejoined: the file ends on Pi's branch again");
        self.note(batch, "rejoined", format!("the file ends on the branch of {over} again"));
    }
}
