//! The step of a session that a Pi with a bridge has open (product.md section 5, *bridge*).
//!
//! Nothing is written: Pi is handed what is pending at its own boundaries, or pushed it while it is idle, and appends it
//! itself. Whether it did is read from the file. Each ask names Pi's leaf; the file was read up to it and the plugins run
//! on every entry before it is answered. An ask waits for `on-settled` runs that it began, as long as its time allows.

use std::time::{Duration, Instant};

use pi_session::branch::Branch;
use pi_session::tree::EntryIx;
use serde_json::value::RawValue;
use tracing::{debug, info, warn};

use crate::deliver::bridge::{self, List, Takes};
use crate::deliver::process;
use crate::deliver::settle::{self, State};
use crate::journal::{Process, Recorded};
use crate::wire::bridge::ToPi;

use super::links::{AskId, Asked, Bell, Bridge, Left};
use super::session::{Session, StepError};
use super::settled::{Wanted, WantedBy, was_paid};
use super::step::{Next, not_allowed};
use super::world::{World, random};

/// Why something waits in a session that a bridge serves.
const AT_BOUNDARY: &str = "a Pi with a bridge has this session, and takes it at its next boundary";
/// Why something waits where two Pis have one session.
const ELSEWHERE: &str = "two Pis have this session, and neither stands where the file ends";
/// How long a push that was not taken is not tried again on the same leaf.
const PUSH_AGAIN: Duration = Duration::from_secs(5);

/// What a bridged session remembers between its steps.
#[derive(Default)]
pub(super) struct Served {
    /// Asks that wait for `on-settled` runs.
    held: Vec<Held>,
    /// The leaf of the last push or compaction that Pi was asked to make, when, and the batch that a token stands for.
    pushed: Option<Pushed>,
}

struct Held {
    asked: Asked,
    /// For a wanted compaction: the plugins that were not asked yet, by their place in the config.
    next_plugin: usize,
}

struct Pushed {
    leaf: Option<String>,
    at: Instant,
    /// Of a compaction: the token, and the batch that it stands for.
    compaction: Option<(String, String)>,
}

impl Served {
    /// Whether Pi still waits for the answer to this ask.
    pub(super) fn waits_for(&self, ask: AskId) -> bool {
        self.held.iter().any(|held| held.asked.id() == ask && !held.asked.is_over())
    }
}

impl Held {
    /// When it must be answered: before Pi gives up waiting, so that no answer is made in vain.
    fn until(&self) -> Instant {
        let ms = self.asked.ask.ms;
        self.asked.at + Duration::from_millis(ms - ms / 5)
    }

    fn by(&self) -> WantedBy {
        WantedBy {
            ask: self.asked.id(),
            reason: self.asked.ask.reason.clone().unwrap_or_else(|| "manual".to_owned()),
            instructions: self.asked.ask.instructions.clone(),
            over: self.asked.over(),
            until: Some(self.until()),
            of_pi: true,
        }
    }
}

impl Session {
    /// Keeps who has the session open, before anything else is done: whatever ends us from now on, nothing is written behind
    /// the back of a Pi that has come. What is read in this step was written before.
    pub(super) fn note_arrivals(&mut self, world: &World, bell: &Bell) -> Result<(), StepError> {
        self.was_bridged = !self.record.bridged.is_empty();
        let mut bridged = self.record.bridged.clone();
        for bridge in &bell.bridges {
            let pi = process::of(bridge.pid);
            // Numbers are given out anew: one that started at another time has ended.
            let is_it = |known: &Process| known.pid == pi.pid && (known.start == pi.start || pi.start == 0);
            if !bridged.iter().any(is_it) {
                bridged.retain(|other| other.pid != pi.pid);
                bridged.push(pi);
            }
        }
        self.keep_bridged(world, bridged)
    }

    /// A Pi that says that it leaves has it no more.
    pub(super) fn note_departures(&mut self, world: &World, bell: &Bell) -> Result<(), StepError> {
        let leaves = |left: &Left| matches!(left.bye.as_deref(), Some("quit" | "new" | "resume" | "fork"));
        let has_it = |pid: u32| bell.bridges.iter().any(|bridge| bridge.pid == pid);
        let gone: Vec<u32> = bell.left.iter().filter(|left| leaves(left)).map(|left| left.pid).collect();
        let mut bridged = self.record.bridged.clone();
        bridged.retain(|pi| !gone.contains(&pi.pid) || has_it(pi.pid));
        self.keep_bridged(world, bridged)
    }

    fn keep_bridged(&mut self, world: &World, bridged: Vec<Process>) -> Result<(), StepError> {
        if bridged != self.record.bridged {
            self.record.bridged = bridged;
            self.save(world, Vec::new())?;
            // Not to be lost with a crash: it is what keeps us from writing behind that Pi's back.
            world.journal.flush()?;
        }
        Ok(())
    }

    /// Nobody has it open any more: what is written from now on is ours.
    pub(super) fn forget_bridges(&mut self) {
        self.record.bridged.clear();
        self.was_bridged = false;
    }

    /// Whether a bridge had it and may come back: its Pi runs, or the daemon has only just started. A Pi that cannot be seen
    /// counts as running until `live-hold` of quiet.
    pub(super) fn may_be_bridged(&self, world: &World) -> bool {
        let bridged = &self.record.bridged;
        let runs = |pi: &Process| process::may_run(pi, self.quiet.lasts(), world.settings.times.live_hold);
        !world.settings.closed && !bridged.is_empty() && (world.is_young() || bridged.iter().any(runs))
    }

    /// Whether a Pi waits for an answer.
    pub(super) fn is_asked(&self) -> bool {
        !self.served.held.is_empty()
    }

    /// Answers what can be answered now, and says what the rest waits for.
    pub(super) fn serve(&mut self, world: &World, bell: Bell) -> Result<Next, StepError> {
        if bell.pushed.iter().any(|pushed| !pushed.ok) {
            debug!(session = %self.path.display(), "a push was not taken");
        }
        if let waiting @ Some(_) = world.stops() {
            // Whoever asks is answered that there is nothing.
            self.served.held.clear();
            return Ok(Next { waiting, ..Next::default() });
        }
        let held = bell.asks.into_iter().map(|asked| Held { asked, next_plugin: 0 });
        self.served.held.extend(held);
        let mut next = Next::default();
        for held in std::mem::take(&mut self.served.held) {
            self.serve_ask(world, held, &bell.bridges, &mut next)?;
        }
        if self.served.held.is_empty() {
            self.serve_idle(world, &bell.bridges, &mut next)?;
        }
        next.after = self.served.held.iter().map(|held| held.until().saturating_duration_since(Instant::now())).min();
        if next.waiting.is_none() && !self.pending.is_empty() {
            next.waiting = Some(AT_BOUNDARY);
        }
        Ok(next)
    }

    /// The branch that ends in Pi's leaf, as the file has it. `None` if the file does not hold that leaf (yet).
    ///
    /// # Errors
    /// [`StepError`] if its parents lead in a circle (S8.5).
    pub fn branch_of_pi(&self, leaf: Option<&str>) -> Result<Option<(Option<EntryIx>, Branch)>, StepError> {
        let at = match leaf {
            None => None,
            Some(id) => match self.tree.by_id(id) {
                None => return Ok(None),
                at => at,
            },
        };
        Ok(Some((at, Branch::at(&self.tree, self.source(), at)?)))
    }

    /// Of two Pis on one session only the one that stands where the file ends is served.
    fn is_served(&self, leaf: Option<EntryIx>, bridges: &[Bridge]) -> bool {
        bridges.len() < 2 || leaf == self.leaf()
    }

    fn serve_ask(
        &mut self,
        world: &World,
        mut held: Held,
        bridges: &[Bridge],
        next: &mut Next,
    ) -> Result<(), StepError> {
        if held.asked.is_over() {
            return Ok(());
        }
        let Some((leaf, branch)) = self.branch_of_pi(held.asked.ask.leaf.as_deref())? else {
            debug!(session = %self.path.display(), leaf = ?held.asked.ask.leaf, "Pi stands on an entry that is not here");
            return Ok(());
        };
        if !self.is_served(leaf, bridges) {
            next.waiting = Some(ELSEWHERE);
            return Ok(());
        }
        // Pi has appended what it took before it asks again.
        self.make_good(world, &branch)?;
        let is_late = Instant::now() >= held.until();
        if held.asked.ask.wants_compaction() {
            return self.serve_compaction(world, held, leaf, &branch, is_late, next);
        }
        if !is_late && held.next_plugin == 0 {
            held.next_plugin = 1;
            next.jobs.extend(self.settled_jobs(world, leaf, "boundary")?);
        }
        if !is_late && !self.running.is_empty() {
            self.served.held.push(held);
            return Ok(());
        }
        let takes = takes_of(&held.asked);
        let others: Vec<String> = held.asked.ask.others.iter().map(|draft| draft.get().to_owned()).collect();
        let list = self.list(world, &branch, &others, takes)?;
        self.tell_list(&list, "handed over");
        held.asked.answer(raw(list.drafts));
        Ok(())
    }

    /// A compaction is wanted: the first plugin in order that proposes one serves it.
    fn serve_compaction(
        &mut self,
        world: &World,
        mut held: Held,
        leaf: Option<EntryIx>,
        branch: &Branch,
        is_late: bool,
        next: &mut Next,
    ) -> Result<(), StepError> {
        let (ask, token) = (held.asked.id(), held.asked.ask.token.clone());
        let joins = held.asked.ask.instructions.is_none();
        if let Some((json, recorded)) = bridge::compaction(branch, &self.wanted(ask, token.as_deref(), joins)) {
            let batch = recorded.batch();
            info!(session = %self.path.display(), batch = batch.id, "handed over in place of Pi's own compaction");
            self.note(batch, "handed over", "in place of Pi's own compaction");
            held.asked.compaction(RawValue::from_string(json).ok());
            return Ok(());
        }
        let wanted = match is_late || token.is_some() {
            true => Wanted::Nobody,
            false if self.wants_running == Some(ask) => Wanted::Busy,
            false => self.wanted_job(world, leaf, held.by(), &mut held.next_plugin)?,
        };
        match wanted {
            Wanted::Run(job) => {
                self.wants_running = Some(ask);
                next.jobs.push(*job);
                self.served.held.push(held);
            }
            Wanted::Busy => self.served.held.push(held),
            Wanted::Nobody => held.asked.compaction(None),
        }
        Ok(())
    }

    /// The batches that may stand in for Pi's compaction: the one that a token stands for, what was made for this ask, or,
    /// where the user says nothing of it, one that was paid for already: nobody pays for a second summary.
    fn wanted(&self, ask: AskId, token: Option<&str>, joins: bool) -> Vec<Recorded> {
        let pushed = self.served.pushed.as_ref().and_then(|pushed| pushed.compaction.as_ref());
        let of_token = pushed.filter(|(known, _)| token == Some(known)).map(|(_, batch)| batch);
        let is_it = |r: &&Recorded| match token {
            Some(_) => of_token == Some(&r.batch().id),
            None => self.made_for.as_ref() == Some(&(ask, r.batch().id.clone())) || joins && was_paid(r.batch()),
        };
        self.pending.iter().filter(is_it).cloned().collect()
    }

    /// While Pi is idle it can be pushed messages and state, and asked to compact.
    fn serve_idle(&mut self, world: &World, bridges: &[Bridge], next: &mut Next) -> Result<(), StepError> {
        if !self.has_work() {
            return Ok(());
        }
        let Some(bridge) = bridges.iter().rev().find(|bridge| bridge.idle) else { return Ok(()) };
        let Some((leaf, branch)) = self.branch_of_pi(bridge.leaf.as_deref())? else { return Ok(()) };
        if !self.is_served(leaf, bridges) {
            next.waiting = Some(ELSEWHERE);
            return Ok(());
        }
        self.take_in(world, &branch)?;
        if settle::state(&branch)? == State::Finished {
            self.join_wishes(&branch);
            next.jobs.extend(self.grant_wishes(world, leaf)?);
            next.jobs.extend(self.settled_jobs(world, leaf, "settled")?);
        }
        if self.was_pushed(bridge.leaf.as_deref()) {
            return Ok(());
        }
        let list = self.list(world, &branch, &[], Takes::Messages)?;
        if !list.drafts.is_empty() {
            self.tell_list(&list, "pushed");
            self.note_push(bridge, None);
            let (push, leaf) = (number(), bridge.leaf.clone());
            bridge.conn.send(&ToPi::Push { push, leaf, entries: raw(list.drafts) });
        } else if self.running.is_empty() {
            self.push_compaction(world, bridge, leaf, &branch)?;
        }
        Ok(())
    }

    /// A compaction that is pending can land now if Pi would compact here at all; its hook then asks with our token.
    fn push_compaction(
        &mut self,
        world: &World,
        bridge: &Bridge,
        leaf: Option<EntryIx>,
        branch: &Branch,
    ) -> Result<(), StepError> {
        let due = self.due(world, branch);
        let Some((_, recorded)) = bridge::compaction(branch, &due) else { return Ok(()) };
        if !self.pi_would_compact(world, leaf, branch)? {
            return Ok(());
        }
        let (token, batch) = (format!("{:016x}", number()), recorded.batch().id.clone());
        info!(session = %self.path.display(), batch, "Pi is idle: asked to compact");
        self.note_push(bridge, Some((token.clone(), batch)));
        bridge.conn.send(&ToPi::Compact { compact: number(), leaf: bridge.leaf.clone(), token });
        Ok(())
    }

    fn note_push(&mut self, bridge: &Bridge, compaction: Option<(String, String)>) {
        self.served.pushed = Some(Pushed { leaf: bridge.leaf.clone(), at: Instant::now(), compaction });
    }

    fn was_pushed(&self, leaf: Option<&str>) -> bool {
        let pushed = self.served.pushed.as_ref();
        pushed.is_some_and(|pushed| pushed.leaf.as_deref() == leaf && pushed.at.elapsed() < PUSH_AGAIN)
    }

    /// The pending batches whose trigger is on this branch and whose plugin still may.
    fn due(&self, world: &World, branch: &Branch) -> Vec<Recorded> {
        let here = |r: &&Recorded| branch.place_of(&r.batch().trigger).is_some();
        let allowed = |r: &&Recorded| not_allowed(world, r.batch()).is_none();
        self.pending.iter().filter(here).filter(allowed).cloned().collect()
    }

    /// What is handed over now; what does not hold any more is dropped.
    fn list(&mut self, world: &World, branch: &Branch, others: &[String], takes: Takes) -> Result<List, StepError> {
        let list = bridge::hand_over(branch, &self.due(world, branch), others, takes);
        let session = self.path.display().to_string();
        for (recorded, stale) in &list.stale {
            let (batch, draft) = (recorded.batch(), stale.index);
            warn!(session, batch = batch.id, draft, "stale, dropped whole: {}", stale.refusal);
            self.tally.stale += 1;
            self.drop_pending(world, &batch.id)?;
            self.note(batch, "stale", format!("draft {draft}: {}", stale.refusal));
        }
        for (recorded, why) in &list.nothing {
            info!(session, batch = recorded.batch().id, "nothing to do: {why}");
            self.drop_pending(world, &recorded.batch().id)?;
            self.note(recorded.batch(), "left out", why.as_str());
        }
        Ok(list)
    }

    fn tell_list(&mut self, list: &List, how: &str) {
        for (recorded, left_out) in &list.handed {
            let batch = recorded.batch();
            info!(session = %self.path.display(), batch = batch.id, "{how}");
            left_out.iter().for_each(|why| info!(batch = batch.id, "left out: {why}"));
            self.note(batch, how, left_out.join("; "));
        }
    }
}

/// A compaction only where a turn ended well: elsewhere it would make Pi skip its own recovery.
fn takes_of(asked: &Asked) -> Takes {
    let ask = &asked.ask;
    let completed = ask.outcome.as_deref() == Some("completed");
    let well = matches!(ask.stop_reason.as_deref(), Some("stop" | "toolUse"));
    if completed && (well || ask.at == "agent_before_settle") { Takes::All } else { Takes::NoCompaction }
}

fn raw(drafts: Vec<String>) -> Vec<Box<RawValue>> {
    drafts.into_iter().filter_map(|draft| RawValue::from_string(draft).ok()).collect()
}

/// A number that no other message has.
fn number() -> u64 {
    // Within what JavaScript counts exactly.
    u64::from_be_bytes(random()[..8].try_into().expect("eight bytes")) >> 11
}
