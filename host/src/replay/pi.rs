//! The Pi that stands in for the one that was recorded: it asks the daemon's session at its boundaries, as a bridge does,
//! and appends what it is handed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::compose::compose;
use pi_session::draft::Draft;
use pi_session::figures::hex;
use pi_session::json::Json;
use pi_session::receipt::Receipt;
use pi_session::validate::Accepted;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::Receiver;

use crate::daemon::links::{Asked, Bell, Bridge};
use crate::daemon::session::Session;
use crate::daemon::socket::Conn;
use crate::daemon::step::Next;
use crate::daemon::world::World;
use crate::files::scratch::Scratch;
use crate::wire::bridge::Ask;

use super::ReplayError;

/// This Pi waits as long as it takes: no wall clock counts.
const PATIENCE: Duration = Duration::from_hours(24);

/// Where Pi stands when it asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Boundary {
    /// `turn_end`, `agent_before_settle` or `session_before_compact`.
    pub at: &'static str,
    /// How the turn ended.
    pub outcome: &'static str,
    /// Why the model stopped.
    pub stop: Option<&'static str>,
    /// Why a compaction is wanted.
    pub reason: Option<String>,
    /// What the user says to it.
    pub instructions: Option<String>,
    /// Of a compaction that the daemon began.
    pub token: Option<String>,
}

/// A message of the daemon's, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
struct Heard {
    answer: Option<u64>,
    #[serde(default)]
    entries: Vec<Box<RawValue>>,
    compaction: Option<Box<RawValue>>,
    push: Option<u64>,
    compact: Option<u64>,
    token: Option<String>,
}

/// What Pi is handed.
pub(super) enum Handed {
    /// Receipts and drafts, to be appended one after the other.
    Entries(Vec<Box<RawValue>>),
    /// A compaction, in place of Pi's own.
    Compaction(Box<RawValue>),
    /// Nothing.
    Nothing,
}

/// What an idle Pi is asked to do.
pub(super) enum Pushed {
    Entries(Vec<Box<RawValue>>),
    /// To compact, with this token.
    Compact(String),
}

/// The daemon's session, and the Pi that has it open.
pub(super) struct Pi {
    world: World,
    session: Session,
    scratch: Scratch,
    conn: Conn,
    from: Receiver<Vec<u8>>,
    asks: u64,
    ids: Ids,
}

/// Ids for what this Pi appends: the same in each replay of a session, and none that was recorded.
pub(super) struct Ids {
    recorded: Arc<Tree>,
    count: u64,
}

impl Ids {
    pub(super) fn new(recorded: &Arc<Tree>) -> Ids {
        Ids { recorded: Arc::clone(recorded), count: 0 }
    }

    fn next(&mut self) -> [u8; 16] {
        let seed = self.recorded.header().map_or("", |header| &header.id);
        loop {
            self.count += 1;
            let digest = Sha256::digest(format!("{seed} {}", self.count));
            if self.recorded.by_id(&hex(&digest[..4])).is_none() {
                return std::array::from_fn(|at| digest[at]);
            }
        }
    }
}

impl Pi {
    /// Opens a session that has its header so far.
    pub(super) fn open(world: World, mut scratch: Scratch, header: &str, ids: Ids) -> Result<Pi, ReplayError> {
        scratch.line(header.as_bytes())?;
        scratch.flush()?;
        let session = Session::open(&world, scratch.path())?.ok_or(ReplayError::NotFollowed)?;
        let (conn, from) = Conn::within(1);
        Ok(Pi { world, session, scratch, conn, from, asks: 0, ids })
    }

    /// Writes a line that was recorded. The daemon reads it at the next step.
    pub(super) fn write(&mut self, line: &[u8]) -> Result<(), ReplayError> {
        Ok(self.scratch.line(line)?)
    }

    /// Whether something is pending, or an `on-settled` run is asked for.
    pub(super) fn has_left(&self) -> bool {
        self.session.has_left()
    }

    /// The branch that ends in `leaf`, as far as the daemon has read. Not to be held over a step.
    pub(super) fn branch(&self, leaf: Option<&str>) -> Result<Branch, ReplayError> {
        let found = self.session.branch_of_pi(leaf)?;
        found.map(|(_, branch)| branch).ok_or_else(|| ReplayError::Leaf(leaf.unwrap_or_default().to_owned()))
    }

    fn bridge(&self, leaf: Option<&str>, idle: bool) -> Bridge {
        let (conn, leaf) = (self.conn.clone(), leaf.map(str::to_owned));
        Bridge { conn, pid: std::process::id(), leaf, idle, since: Instant::now() }
    }

    /// The daemon reads what was written, and runs the plugins on it.
    pub(super) fn read(&mut self, leaf: Option<&str>) -> Result<(), ReplayError> {
        self.step(leaf, false, Vec::new())
    }

    /// Makes steps until no run is left to be made.
    fn step(&mut self, leaf: Option<&str>, idle: bool, asks: Vec<Asked>) -> Result<(), ReplayError> {
        self.scratch.flush()?;
        let bell = Bell { asks, bridges: vec![self.bridge(leaf, idle)], ..Bell::default() };
        let mut next: Next = self.session.step(&self.world, bell)?;
        while !next.jobs.is_empty() {
            let settled = next.jobs.into_iter().map(|job| job.work()).collect();
            let bell = Bell { settled, bridges: vec![self.bridge(leaf, idle)], ..Bell::default() };
            next = self.session.step(&self.world, bell)?;
        }
        Ok(())
    }

    /// Asks at a boundary.
    pub(super) fn ask(&mut self, leaf: Option<&str>, boundary: Boundary) -> Result<Handed, ReplayError> {
        self.asks += 1;
        let Boundary { at, outcome, stop, reason, instructions, token } = boundary;
        let ask = Ask {
            ask: self.asks,
            at: at.to_owned(),
            leaf: leaf.map(str::to_owned),
            outcome: Some(outcome.to_owned()),
            stop_reason: stop.map(str::to_owned),
            others: Vec::new(),
            reason,
            instructions,
            token,
            ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
        };
        let (asked, conn) = (self.asks, self.conn.clone());
        self.step(leaf, false, vec![Asked::new(ask, std::process::id(), conn)])?;
        let answer = self.heard().into_iter().find(|heard| heard.answer == Some(asked)).unwrap_or_default();
        Ok(match (answer.compaction, answer.entries) {
            (Some(compaction), _) => Handed::Compaction(compaction),
            (None, entries) if entries.is_empty() => Handed::Nothing,
            (None, entries) => Handed::Entries(entries),
        })
    }

    /// Says that Pi is idle; what it is asked to do then.
    pub(super) fn idle(&mut self, leaf: Option<&str>) -> Result<Option<Pushed>, ReplayError> {
        self.step(leaf, true, Vec::new())?;
        let pushed = |heard: Heard| match (heard.push, heard.compact, heard.token) {
            (Some(_), ..) => Some(Pushed::Entries(heard.entries)),
            (None, Some(_), Some(token)) => Some(Pushed::Compact(token)),
            _ => None,
        };
        Ok(self.heard().into_iter().find_map(pushed))
    }

    fn heard(&mut self) -> Vec<Heard> {
        let lines = std::iter::from_fn(|| self.from.try_recv().ok());
        lines.filter_map(|line| serde_json::from_slice(&line).ok()).collect()
    }

    /// Appends what Pi was handed behind `leaf`; the new leaf, and whether the context is another one now.
    pub(super) fn append(&mut self, leaf: Option<&str>, handed: &Handed) -> Result<Appended, ReplayError> {
        let mut at = Appended { leaf: leaf.map(str::to_owned), shows: false, changes: false };
        let batches = match handed {
            Handed::Nothing => Vec::new(),
            Handed::Compaction(compaction) => vec![(None, vec![as_draft(compaction)])],
            Handed::Entries(entries) => batches(entries),
        };
        for (receipt, drafts) in batches {
            self.append_batch(&mut at, receipt.as_ref(), &drafts)?;
        }
        Ok(at)
    }

    fn append_batch(
        &mut self,
        at: &mut Appended,
        receipt: Option<&Receipt>,
        drafts: &[String],
    ) -> Result<(), ReplayError> {
        let branch = self.branch(at.leaf.as_deref())?;
        let unfit = |why: String| ReplayError::Unfit(why);
        let accepted = Accepted::from_store(&format!("[{}]", drafts.join(",")));
        let accepted =
            accepted.map_err(|refusals| unfit(refusals.first().map_or_else(String::new, ToString::to_string)))?;
        // The time is the leaf's, which no entry comes before.
        let composed = compose(&branch, &accepted, receipt, 0, &mut || self.ids.next());
        let composed = composed.map_err(|stale| unfit(stale.to_string()))?;
        drop(branch);
        for entry in composed.entries() {
            self.scratch.line(entry.line.strip_suffix(b"\n").unwrap_or(&entry.line))?;
        }
        at.note(composed.drafts());
        at.leaf = composed.entries().last().map(|entry| entry.id.clone()).or(at.leaf.take());
        self.read(at.leaf.clone().as_deref())
    }
}

/// Where Pi stands after it has appended something.
#[derive(Debug)]
pub(super) struct Appended {
    pub leaf: Option<String>,
    /// It gives messages, or changes some: what follows has another context.
    pub shows: bool,
    /// What the context held before is another now: the provider's cache holds up to there only.
    pub changes: bool,
}

impl Appended {
    fn note(&mut self, drafts: &[Draft]) {
        self.changes |= drafts.iter().any(|d| matches!(d, Draft::Compaction { .. } | Draft::ContextEdit { .. }));
        self.shows |= drafts.iter().any(|d| !matches!(d, Draft::Custom { .. }));
    }
}

/// Receipts, each with the drafts behind it.
fn batches(entries: &[Box<RawValue>]) -> Vec<(Option<Receipt>, Vec<String>)> {
    let mut batches: Vec<(Option<Receipt>, Vec<String>)> = Vec::new();
    for entry in entries {
        let receipt = Json::parse(entry.get().as_bytes()).ok().and_then(Receipt::of_entry);
        match (receipt, batches.last_mut()) {
            (None, Some((_, drafts))) => drafts.push(entry.get().to_owned()),
            (None, None) => batches.push((None, vec![entry.get().to_owned()])),
            (receipt, _) => batches.push((receipt, Vec::new())),
        }
    }
    batches
}

/// What stands in for Pi's compaction, as the draft of it.
fn as_draft(compaction: &RawValue) -> String {
    let Ok(of) = Json::parse(compaction.get().as_bytes()) else { return compaction.get().to_owned() };
    let members = ["summary", "firstKeptEntryId", "details", "usage"];
    let given = members.iter().filter_map(|name| Some(format!(",\"{name}\":{}", of.get(name)?.to_text())));
    format!("{{\"type\":\"compaction\"{}}}", given.collect::<String>())
}
