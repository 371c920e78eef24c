//! One session as the daemon follows it: what was read, what is pending, and what the next step is.
//!
//! A step is a plain function on a worker: read the whole lines that arrived, run the plugins on each new entry, then see
//! whether something can be delivered. When a step fails, the session is dropped and read anew from the store's cursor, so
//! there is one way to recover, after an error as after a crash.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use memchr::memmem::Finder;
use pi_session::Tree;
use pi_session::branch::{Branch, Origin};
use pi_session::figures::hex;
use pi_session::header::Version;
use pi_session::json::Json;
use pi_session::receipt::{self, Receipt};
use pi_session::tree::{EntryIx, Leaf, Pushed, Source, Status};
use sha2::{Digest, Sha256};

use crate::deliver::append::DeliverError;
use crate::files::FilesError;
use crate::files::tail::Reading;
use crate::journal::{
    Batch, Change, FailedRun, Handler, Intent, JournalError, Moved, Recorded, RunRecord, SessionKey, SessionRecord,
};

use super::bridged::Served;
use super::cut::Cut;
use super::facts::Surroundings;
use super::handled::Handled;
use super::links::AskId;
use super::orphans::Lineage;
use super::quiet::{Quiet, past};
use super::step::Kept;
use super::turn::Turn;
use super::unended::Tail;
use super::wished::Wish;
use super::world::{Met, World};

/// Entries older than the first start of the store, less this, are history (product.md 4.3), milliseconds.
pub(super) const GRACE_MS: i64 = 60_000;
/// In how many bytes the header must stand.
const MOST_HEAD: usize = 1 << 20;

/// Why a step failed. The session is read anew after a pause; nothing is lost.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The store failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The session's text does not make a branch.
    #[error(transparent)]
    Branch(#[from] pi_session::branch::BranchError),
    /// The session's text cannot be read back.
    #[error(transparent)]
    Source(#[from] pi_session::tree::SourceError),
    /// Delivery failed.
    #[error(transparent)]
    Deliver(#[from] DeliverError),
    /// The file is not what was read before.
    #[error("{}: replaced or rewritten; read anew", .0.display())]
    Replaced(PathBuf),
}

impl StepError {
    /// A failure that nobody needs to hear of: the file is gone, or is read anew at once.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        match self {
            _ if self.is_looked_at_again() => true,
            StepError::Files(FilesError::Io { source, .. }) => source.kind() == std::io::ErrorKind::NotFound,
            StepError::Files(FilesError::NoFile { .. }) => true,
            _ => false,
        }
    }

    /// Whether the session is read anew without a pause: the file is another one, or is to be led back.
    #[must_use]
    pub fn is_looked_at_again(&self) -> bool {
        matches!(self, StepError::Replaced(_) | StepError::Deliver(DeliverError::Files(FilesError::Glued { .. })))
    }
}

/// A session that is followed.
pub struct Session {
    pub(super) path: PathBuf,
    pub(super) key: Option<SessionKey>,
    pub(super) record: SessionRecord,
    pub(super) reading: Reading,
    pub(super) tree: Arc<Tree>,
    /// The header line, for plugins.
    pub(super) header_json: String,
    /// Behind the last whole line that was read.
    pub(super) read_to: u64,
    /// What receipts in the file say was done already: plugin, handler, trigger.
    pub(super) receipts: HashSet<(String, String, String)>,
    /// Those of which something is missing.
    pub(super) cut: Cut,
    pub(super) pending: Vec<Recorded>,
    /// Lines for the run log that are not kept yet.
    pub(super) runs: Vec<RunRecord>,
    pub(super) intents: Vec<Intent>,
    /// Runs that failed and are not done with, and what is not kept yet of what became of them.
    pub(super) failed: Vec<FailedRun>,
    pub(super) changes: Vec<Change>,
    /// Plugins whose `on-settled` runs at this moment.
    pub(super) running: BTreeSet<String>,
    /// The ask of a bridge for which a plugin makes a compaction at this moment.
    pub(super) wants_running: Option<AskId>,
    /// The batch that was made for an ask that wants a compaction.
    pub(super) made_for: Option<(AskId, String)>,
    /// Compactions that somebody at the command line waits for.
    pub(super) wishes: Vec<Wish>,
    /// A bridge had it before this step: what is read is Pi's, also what was handed to it.
    pub(super) was_bridged: bool,
    /// What its bridge is owed.
    pub(super) served: Served,
    /// How often what is pending could not be written.
    pub(super) kept: Kept,
    /// Since when nobody else has written.
    pub(super) quiet: Quiet,
    /// What stands behind the last whole line.
    pub(super) tail: Tail,
    /// Which entries were handled before.
    pub(super) handled: Handled,
    /// What became of its grafts.
    pub(super) lineage: Lineage,
    /// Everything that is there now is inherited (a copy).
    skip_present: bool,
    /// When it was met as a copy, Unix milliseconds: what is older and arrives yet, since copying takes a while, too.
    pub(super) copied_ms: Option<i64>,
    pub(super) tally: Tally,
    pub(super) turn: Turn,
    /// Pi's own files, and the model.
    pub(super) around: Surroundings,
    /// Lines that plugins log go with those of the run log.
    pub(super) keeps_logged: bool,
}

/// What happened in a step, for the log and for `--once`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries that plugins saw.
    pub handled: u64,
    /// Entries passed over as history.
    pub history: u64,
    /// Batches proposed.
    pub proposed: u64,
    /// Batches grafted.
    pub grafted: u64,
    /// Batches dropped as stale.
    pub stale: u64,
    /// Runs that failed.
    pub failed: u64,
}

impl Tally {
    /// Takes in another one.
    pub fn add(&mut self, other: &Tally) {
        self.handled += other.handled;
        self.history += other.history;
        self.proposed += other.proposed;
        self.grafted += other.grafted;
        self.stale += other.stale;
        self.failed += other.failed;
    }
}

impl Session {
    /// Opens the session at `path` and finds out what is known of it. `None` if it is no session (yet), or not followed.
    ///
    /// # Errors
    /// [`StepError`] if file or store cannot be read.
    pub fn open(world: &World, path: &Path) -> Result<Option<Session>, StepError> {
        let reading = Reading::open(path)?;
        let Some((header, header_json)) = peek_header(&reading, path)? else { return Ok(None) };
        if !(world.settings.by_cwd)(Path::new(header.cwd.as_deref().unwrap_or_default())) {
            return Ok(None);
        }
        let met = world.meet(path, &header.id, reading.id());
        let (key, record) = match &met {
            Met::Known(key, record) if record.skipped > 0 && world.settings.is_fresh(path) => {
                (Some(*key), begun_anew(record, blank_record(path, &header.id, &reading)))
            }
            Met::Known(key, record) => {
                (Some(*key), SessionRecord { path: path.into(), file: reading.id(), ..(**record).clone() })
            }
            Met::New | Met::Copy => (None, blank_record(path, &header.id, &reading)),
        };
        let is_copy = met == Met::Copy && !world.settings.is_fresh(path);
        let mut session = Session {
            path: path.into(),
            key,
            record,
            reading,
            tree: Arc::default(),
            header_json,
            read_to: 0,
            receipts: HashSet::new(),
            cut: Cut::default(),
            pending: Vec::new(),
            runs: Vec::new(),
            intents: Vec::new(),
            failed: Vec::new(),
            changes: Vec::new(),
            running: BTreeSet::new(),
            wants_running: None,
            made_for: None,
            wishes: Vec::new(),
            was_bridged: false,
            served: Served::default(),
            kept: Kept::default(),
            quiet: Quiet::begin(),
            tail: Tail::default(),
            handled: Handled::default(),
            lineage: Lineage::default(),
            skip_present: is_copy,
            copied_ms: is_copy.then(super::world::now_ms),
            tally: Tally::default(),
            turn: Turn::default(),
            around: Surroundings::default(),
            keeps_logged: world.is_observed(),
        };
        if is_copy {
            tracing::info!(session = %path.display(), "a copy of a session that is elsewhere: followed from its end");
            session.record.copied_ms = session.copied_ms;
        }
        super::hold::restart(&mut session.record.grafts, world.steady_ms(), &world.settings.times);
        session.know_handled(world)?;
        session.restore(world)?;
        Ok(Some(session))
    }

    /// What the store holds for this session.
    fn restore(&mut self, world: &World) -> Result<(), StepError> {
        let Some(key) = self.key else { return Ok(()) };
        self.pending = world.journal.pending(key)?;
        self.failed = world.journal.failed(key)?;
        self.restart_pauses(world);
        let intents = world.journal.intents()?;
        self.intents = intents.into_iter().filter(|(of, _)| *of == key).map(|(_, intent)| intent).collect();
        Ok(())
    }

    /// Whether the file is still the one that was read, and its last handled line still there.
    pub(super) fn check_file(&self) -> Result<(), StepError> {
        let io = |source| FilesError::Io { path: self.path.clone(), source };
        let meta = std::fs::metadata(&self.path).map_err(io)?;
        let same = crate::files::FileId::of(&meta) == self.reading.id() && meta.len() >= self.read_to;
        let whole = same && (self.read_to == 0 || self.last_line_stands()?) && self.tail_stands()?;
        if whole { Ok(()) } else { Err(StepError::Replaced(self.path.clone())) }
    }

    fn last_line_stands(&self) -> Result<bool, StepError> {
        let (at, end) = (self.record.last_line_at, self.record.offset);
        if self.record.last_line.is_empty() || end != self.read_to {
            return Ok(true);
        }
        let line = self.reading.read(at, (end - at) as usize)?;
        Ok(line.split_last().is_some_and(|(nl, line)| *nl == b'\n' && line_hash(line) == self.record.last_line))
    }

    /// Reads the whole lines that arrived and hands each new entry to `each`. True if there were any.
    pub(super) fn read_lines(
        &mut self,
        world: &World,
        mut each: impl FnMut(&mut Session, EntryIx) -> Result<(), StepError>,
    ) -> Result<bool, StepError> {
        let (reading, from) = (self.reading.clone(), self.read_to);
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |source| StepError::Files(FilesError::Io { path, source })
        };
        if self.skip_present {
            self.handled.to = reading.metadata().map_err(io(&self.path))?.len();
            self.skip_present = false;
        }
        if !self.has_whole_line(&reading)? {
            return Ok(false);
        }
        self.look_ahead(&reading).map_err(io(&self.path))?;
        let mut failure = None;
        let ended = reading.lines(from, |offset, line| match self.take_line(world, offset, line, &mut each) {
            Ok(()) => {
                let stops = world.stops().is_some() || self.turn.is_over();
                !(stops && self.may_stop_behind(offset + line.len() as u64 + 1))
            }
            Err(e) => {
                failure = Some(e);
                false
            }
        });
        self.read_to = ended.map_err(io(&self.path))?;
        match failure {
            Some(e) => Err(e),
            None => Ok(self.read_to > from),
        }
    }

    fn take_line(
        &mut self,
        world: &World,
        offset: u64,
        line: &[u8],
        each: &mut impl FnMut(&mut Session, EntryIx) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        if self.is_in_tree(offset, line)? {
            self.move_cursor(offset, line);
            return Ok(());
        }
        let pushed = Arc::make_mut(&mut self.tree).push(offset, line);
        match pushed {
            Pushed::Entry(ix) => self.lineage.note(&self.tree, ix, line, &self.record.grafts.seen),
            Pushed::Skipped => self.lineage.note_bad(line),
            _ => {}
        }
        if self.was_handled(offset, pushed) {
            if offset + line.len() as u64 + 1 > self.record.offset {
                self.pass_by(offset, pushed);
                self.move_cursor(offset, line);
            }
            return Ok(());
        }
        let was_taken = self.was_taken(offset, pushed);
        self.move_cursor(offset, line);
        match pushed {
            Pushed::Entry(ix) if !was_taken => self.take_entry(world, ix, each),
            _ => Ok(()),
        }
    }

    /// An entry behind the cursor that counts as handled: because this is a copy, or because it is known.
    fn pass_by(&mut self, offset: u64, pushed: Pushed) {
        let Pushed::Entry(ix) = pushed else { return };
        self.record.skipped += u64::from(self.is_before_cursor(offset));
        self.note_handled(ix);
    }

    /// An entry that was never handled.
    pub(super) fn take_entry(
        &mut self,
        world: &World,
        ix: EntryIx,
        each: &mut impl FnMut(&mut Session, EntryIx) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        self.note_handled(ix);
        if self.is_history(world, ix) && !self.is_cut_at(ix) {
            self.tally.history += 1;
            self.record.skipped += 1;
            return Ok(());
        }
        each(self, ix)
    }

    fn move_cursor(&mut self, offset: u64, line: &[u8]) {
        self.record.offset = offset + line.len() as u64 + 1;
        self.record.entries = self.record.entries.max(self.tree.entries().len() as u64);
        self.record.last_line = line_hash(line);
        self.record.last_line_at = offset;
        self.record.unended = self.record.unended.take().filter(|line| line.at > offset);
    }

    pub(super) fn is_history(&self, world: &World, ix: EntryIx) -> bool {
        if world.settings.is_fresh(&self.path) {
            return false;
        }
        let Some(time) = self.tree.entry(ix).time_ms else { return false };
        // A clock that was set back behind the first start makes nothing that is written now a thing of the past.
        let first = world.journal.first_start_ms().min(super::world::now_ms());
        time < first - GRACE_MS || self.is_inherited(ix)
    }

    /// Whether an entry came with a file that was made from another one: a fork, or a copy.
    pub(super) fn is_inherited(&self, ix: EntryIx) -> bool {
        let Some(time) = self.tree.entry(ix).time_ms else { return false };
        let header = self.tree.header().filter(|header| header.parent_session.is_some());
        let inherited = header.and_then(|header| header.time_ms()).is_some_and(|made| time < past(made));
        inherited || self.copied_ms.is_some_and(|met| time < past(met))
    }

    /// Collects the receipts among the lines that are about to be read, so that nothing they speak of is run again.
    fn look_ahead(&mut self, reading: &Reading) -> std::io::Result<()> {
        reading.lines(self.read_to, |_, line| {
            self.note_receipt(line);
            true
        })?;
        Ok(())
    }

    /// Remembers what a line says was done, if it is a receipt.
    pub(super) fn note_receipt(&mut self, line: &[u8]) {
        static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"pi-graft.run"));
        let receipt = FINDER.find(line).and_then(|_| receipt_in(line));
        if receipt.is_some() || self.cut.is_open() {
            let key = |r: &Receipt| (r.plugin.clone(), r.handler.clone(), r.trigger.clone());
            let is_first = |r: &Receipt| self.receipts.insert(key(r));
            self.cut.pass(line, receipt.filter(is_first));
        }
    }

    /// Whether the file, whole, or the store already holds what this run would propose.
    pub(super) fn is_done(&self, plugin: &str, handler: Handler, trigger: &str) -> bool {
        let key = (plugin.to_owned(), handler.as_str().to_owned(), trigger.to_owned());
        let pending = |r: &Recorded| {
            let batch = r.batch();
            batch.plugin == plugin && batch.handler == handler && batch.trigger == trigger
        };
        let in_file = self.receipts.contains(&key) && !self.cut.has(plugin, handler, trigger);
        in_file || self.pending.iter().any(pending)
    }

    /// The branch that ends in `leaf`, with what is pending on it.
    pub(super) fn branch_with_pending(&self, leaf: Option<EntryIx>, fresh: &[Batch]) -> Result<Branch, StepError> {
        self.branch_with(leaf, self.pending.iter().map(Recorded::batch).chain(fresh))
    }

    /// The branch that ends in `leaf`, with those of `pending` that stand on it.
    pub(super) fn branch_with<'b>(
        &self,
        leaf: Option<EntryIx>,
        pending: impl Iterator<Item = &'b Batch>,
    ) -> Result<Branch, StepError> {
        let mut branch = Branch::at(&self.tree, self.source(), leaf)?;
        let mut here = Vec::new();
        for batch in pending.filter(|batch| branch.place_of(&batch.trigger).is_some()) {
            if !self.stands_on(&branch, batch)? {
                here.push(batch);
            }
        }
        for batch in here {
            let origin = Arc::new(Origin { plugin: batch.plugin.clone(), batch: batch.id.clone() });
            branch.push_all(&batch.drafts, &origin);
        }
        Ok(branch)
    }

    /// Whether the branch holds a batch that the store has as pending: it lags behind the file after a crash, or because
    /// an old copy of it was put back.
    fn stands_on(&self, branch: &Branch, batch: &Batch) -> Result<bool, StepError> {
        let (plugin, handler, trigger) = (&batch.plugin, batch.handler.as_str(), &batch.trigger);
        let said = self.receipts.contains(&(plugin.clone(), handler.to_owned(), trigger.clone()));
        let found = if said { receipt::receipts_of(branch, plugin, handler, trigger)? } else { Vec::new() };
        Ok(found.iter().any(|found| found.complete || found.receipt.batch == batch.id))
    }

    pub(super) fn source(&self) -> Arc<dyn Source> {
        Arc::new(self.reading.clone())
    }

    /// The entry that Pi would continue from.
    pub(super) fn leaf(&self) -> Option<EntryIx> {
        match self.tree.leaf() {
            Leaf::At(ix) => Some(ix),
            Leaf::None | Leaf::NoId => None,
        }
    }

    /// Keeps the cursor, and what was run and proposed on the way to it, in one transaction.
    pub(super) fn save(&mut self, world: &World, batches: Vec<Batch>) -> Result<(), StepError> {
        self.record.has_old_ids = self.tree.header().is_some_and(|header| header.version == Version::V1);
        let (at, fresh) = self.take_fresh();
        let runs = world.to_keep(&self.runs, &batches);
        let moved = Moved { batches, runs, failed: &self.changes, handled: (at, &fresh) };
        let keep = || world.journal.record(self.key, &self.record, moved);
        let (key, recorded) = world.feed().keep(runs, |id| world.path_of(id), keep)?;
        self.runs.clear();
        self.changes.clear();
        self.key = Some(key);
        self.pending.extend(recorded);
        world.remember(key, &self.record);
        Ok(())
    }

    /// Whether something is pending, or an `on-settled` run is asked for.
    #[must_use]
    pub fn has_left(&self) -> bool {
        !self.pending.is_empty() || !self.record.later.is_empty()
    }

    /// The same, or whether somebody waits for a compaction.
    pub(super) fn has_work(&self) -> bool {
        self.has_left() || !self.wishes.is_empty()
    }

    /// Somebody else wrote: the quiet begins with the file's time.
    pub(super) fn note_writing(&mut self, world: &World) {
        let written = self.reading.metadata().and_then(|meta| meta.modified());
        self.quiet.broken(written.map_or(Duration::ZERO, |time| world.age(time)));
    }
}

/// The working directory of the session at `path`, if it can be read.
pub(super) fn cwd_of(path: &Path) -> Option<String> {
    peek_header(&Reading::open(path).ok()?, path).ok()??.0.cwd
}

/// Whether `path` holds the session with this id. What cannot be read, or has no header at this moment, may be it.
pub(super) fn is_at(path: &Path, id: &str) -> bool {
    match Reading::open(path).map_err(StepError::from).and_then(|reading| peek_header(&reading, path)) {
        Ok(header) => header.is_none_or(|(header, _)| header.id == id),
        Err(e) => !e.is_quiet(),
    }
}

fn blank_record(path: &Path, id: &str, reading: &Reading) -> SessionRecord {
    SessionRecord {
        path: path.into(),
        session_id: id.to_owned(),
        file: reading.id(),
        offset: 0,
        entries: 0,
        last_line: String::new(),
        last_line_at: 0,
        skipped: 0,
        later: Vec::new(),
        standing: Vec::new(),
        bridged: Vec::new(),
        gone_ms: None,
        grafts: Default::default(),
        ids: 0,
        by_id: false,
        has_old_ids: false,
        unended: None,
        lost_ms: None,
        copied_ms: None,
    }
}

/// A record that is read anew from its first line: who has the session open and how its grafts fared stays known, and what
/// passed without a plugin comes by again.
fn begun_anew(record: &SessionRecord, blank: SessionRecord) -> SessionRecord {
    let mut standing = record.standing.clone();
    standing.iter_mut().for_each(|standing| standing.owes = None);
    let (later, bridged) = (record.later.clone(), record.bridged.clone());
    SessionRecord { later, bridged, standing, grafts: record.grafts.clone(), lost_ms: record.lost_ms, ..blank }
}

/// Reads up to the header, and gives it with its line. `None` if the file is no session, or none yet: also one that goes on
/// and on without a header, which is not to be read as a whole each time that something happens to it.
fn peek_header(reading: &Reading, path: &Path) -> Result<Option<(pi_session::header::Header, String)>, StepError> {
    let mut tree = Tree::new();
    let mut text = String::new();
    let read = reading.lines_within(0, MOST_HEAD, |offset, line| {
        if tree.push(offset, line) == Pushed::Header {
            text = String::from_utf8_lossy(line).trim().to_owned();
        }
        tree.status() == Status::NotBegun && offset < MOST_HEAD as u64
    });
    read.map_err(|source| FilesError::Io { path: path.into(), source })?;
    Ok(tree.header().cloned().map(|header| (header, text)))
}

fn receipt_in(line: &[u8]) -> Option<Receipt> {
    let entry = Json::parse(line).ok()?;
    let is_receipt = entry.get("customType").and_then(Json::as_str).as_deref() == Some("pi-graft.run");
    is_receipt.then(|| Receipt::parse(entry.get("data")?)).flatten()
}

pub(super) fn line_hash(line: &[u8]) -> String {
    hex(&Sha256::digest(line))
}
