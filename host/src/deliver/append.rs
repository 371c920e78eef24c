//! The direct way: compose on the leaf of this moment, write down the intent, append, mark done; and after a crash, find
//! out how far that came.
//!
//! | died | the store says | the file has | recovery |
//! | --- | --- | --- | --- |
//! | before `intend` | pending | nothing | pending: composed anew when it is time |
//! | between `intend` and the write | intended | nothing of it | withdrawn: pending again |
//! | in the write, and nobody wrote since | intended | a prefix of the bytes, at its end | the rest is appended, then done |
//! | in the write, and somebody wrote behind it | intended | some of the lines, or none | its torn line is ended; withdrawn: pending again; the drafts that are not behind the receipt become a batch that continues it |
//! | behind the write, and half a line of somebody's had come right before it | intended | all but the first line, which is glued to that half and no entry | the file is led back to what stands before it; withdrawn: pending again |
//! | between the write and `finish` | intended | all ids | synced, its time put back, done |
//! | after `finish` | neither | all of it | nothing to do |
//! | between `replace` and the write of what continues a batch | the rest is pending | the receipt and some drafts | as any pending batch |
//!
//! Where the file's last line had no `\n`, the bytes begin with one (S2.4). A lone `\n` is nobody's: nothing of ours is there.

use std::path::Path;
use std::time::SystemTime;

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::compose::{Composed, Stale, compose};
use pi_session::receipt::{self, Receipt};
use pi_session::tree::{EntryIx, Source};

use crate::files::FilesError;
use crate::files::append::{Disk, Landed, Mtime, Place, append, complete, settle_down};
use crate::files::tail::Reading;
use crate::journal::{Batch, Intent, Journal, JournalError, Recorded};

use super::bridge::holds;
use super::labelled::Labelled;

/// What delivery works with.
pub struct Direct<'a> {
    /// The system calls of a write.
    pub disk: &'a dyn Disk,
    /// Where intents are written down.
    pub journal: &'a Journal,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
    /// 16 random bytes at each call.
    pub random: &'a mut dyn FnMut() -> [u8; 16],
}

/// What became of a batch.
#[derive(Debug)]
pub enum Outcome {
    /// It is in the file.
    Delivered {
        /// Where.
        landed: Landed,
        /// Ids of its entries, the receipt's first.
        ids: Vec<String>,
        /// Edits that had nothing to do any more, and why.
        left_out: Vec<String>,
    },
    /// The branch already holds its receipt, or all its edits had nothing to do any more: nothing was written.
    Nothing(String),
    /// It no longer holds on this branch, and was dropped whole.
    Stale(Stale),
    /// The file is not what it was checked against, or cannot be written now: it stays pending.
    Kept(FilesError),
}

/// Why delivery itself failed. What was to be delivered stays pending.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// The store failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The session's text cannot be read back.
    #[error(transparent)]
    Branch(#[from] pi_session::branch::BranchError),
    /// As [`DeliverError::Branch`].
    #[error(transparent)]
    Source(#[from] pi_session::tree::SourceError),
    /// The file cannot be read or mended.
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// Delivers one recorded batch onto `branch`, which is what the file at `path` holds, with nothing pending.
///
/// # Errors
/// [`DeliverError`]; the batch is then still pending or, if the write may have happened, intended.
pub fn deliver(
    direct: &mut Direct<'_>,
    recorded: Recorded,
    branch: &Branch,
    path: &Path,
    place: Place,
    mtime: Mtime,
) -> Result<Outcome, DeliverError> {
    let batch = recorded.batch().clone();
    if has_receipt(branch, &batch)? {
        direct.journal.finish(recorded)?;
        return Ok(Outcome::Nothing("the branch already holds its receipt".to_owned()));
    }
    let composed = match ready(direct, branch, &batch) {
        Ok(composed) => composed,
        Err(stale) => {
            direct.journal.finish(recorded)?;
            return Ok(Outcome::Stale(stale));
        }
    };
    let left_out = composed.left_out().iter().map(|(index, why)| format!("draft {index}: {why}")).collect::<Vec<_>>();
    if composed.entries().is_empty() {
        direct.journal.finish(recorded)?;
        return Ok(Outcome::Nothing(left_out.join("; ")));
    }
    write(direct, recorded, composed, path, place, mtime, left_out)
}

fn has_receipt(branch: &Branch, batch: &Batch) -> Result<bool, DeliverError> {
    let found = receipt::receipts_of(branch, &batch.plugin, batch.handler.as_str(), &batch.trigger)?;
    Ok(found.iter().any(|found| found.complete))
}

fn ready(direct: &mut Direct<'_>, branch: &Branch, batch: &Batch) -> Result<Composed, Stale> {
    let accepted = holds(branch, batch)?;
    compose(branch, &accepted, Some(&receipt_of(batch)), direct.now_ms, direct.random)
}

/// What a batch says of itself in the file.
pub(super) fn receipt_of(batch: &Batch) -> Receipt {
    Receipt {
        batch: batch.id.clone(),
        plugin: batch.plugin.clone(),
        version: batch.version.clone(),
        digest: batch.digest.clone(),
        handler: batch.handler.as_str().to_owned(),
        reason: batch.reason.clone(),
        trigger: batch.trigger.clone(),
        continues: batch.continues.clone(),
        ..Receipt::default()
    }
}

fn write(
    direct: &mut Direct<'_>,
    recorded: Recorded,
    composed: Composed,
    path: &Path,
    place: Place,
    mtime: Mtime,
    left_out: Vec<String>,
) -> Result<Outcome, DeliverError> {
    let bytes = led_in(place, composed.bytes());
    let ids: Vec<String> = composed.entries().iter().map(|entry| entry.id.clone()).collect();
    let intent = Intent {
        batch: recorded.batch().clone(),
        path: path.to_path_buf(),
        place,
        ids: ids.clone(),
        bytes: String::from_utf8_lossy(&bytes).into_owned(),
        keep: time_to_keep(path, mtime),
    };
    direct.journal.intend(&recorded, &intent)?;
    crate::steps::reached("intended");
    match append(&Labelled(direct.disk), path, place, &bytes, mtime) {
        Ok(landed) => {
            crate::steps::reached("written");
            direct.journal.finish(recorded)?;
            crate::steps::reached("done");
            Ok(Outcome::Delivered { landed, ids, left_out })
        }
        Err(e) if e.wrote_nothing() => {
            direct.journal.withdraw(&intent.batch.id)?;
            Ok(Outcome::Kept(e))
        }
        // Some of it may be in the file: the intent stays, and recovery looks.
        Err(e) => Err(e.into()),
    }
}

/// The lines that are to be written, behind the `\n` that the file lacks.
pub(super) fn led_in(place: Place, mut lines: Vec<u8>) -> Vec<u8> {
    if place.lacks_end() {
        lines.insert(0, b'\n');
    }
    lines
}

/// The time that is put back, should this process not live to do it.
pub(super) fn time_to_keep(path: &Path, mtime: Mtime) -> Option<SystemTime> {
    let keep = mtime == Mtime::Keep;
    keep.then(|| Reading::open(path).ok()?.metadata().ok()?.modified().ok()).flatten()
}

/// What recovery found of a write that was intended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// All of it is in the file.
    Done,
    /// Nothing of it is: it is pending again.
    Withdrawn,
    /// It had been cut short and was completed: read the file's new lines, then ask again.
    Completed,
    /// Some lines of it are in the file and the rest can no longer follow them: what is missing becomes a batch of its own.
    Partial,
}

/// Finds out what became of an intended write, by its ids in the tree and its bytes in the file.
///
/// # Errors
/// [`DeliverError`] if the file cannot be read or mended; ask again later.
pub fn recover(
    disk: &dyn Disk,
    tree: &Tree,
    reading: &Reading,
    path: &Path,
    intent: &Intent,
) -> Result<Recovery, DeliverError> {
    let found: Vec<EntryIx> = intent.ids.iter().filter_map(|id| tree.by_id(id)).collect();
    // Where the file ends if nobody but us wrote; else its time is theirs (S13.3).
    let end = intent.place.len + intent.bytes.len() as u64;
    if found.len() == intent.ids.len() {
        settle_down(disk, path, end, intent.keep)?;
        return Ok(Recovery::Done);
    }
    let none_or_some = if found.is_empty() { Recovery::Withdrawn } else { Recovery::Partial };
    let Some(offset) = begins_at(reading, intent, path)? else {
        // Making room may have moved the time.
        settle_down(disk, path, intent.place.len, intent.keep)?;
        return Ok(none_or_some);
    };
    let lines = lines_of(intent);
    if !complete(disk, path, offset, lines)? {
        return Ok(none_or_some);
    }
    settle_down(disk, path, end, intent.keep)?;
    crate::steps::reached("completed");
    Ok(Recovery::Completed)
}

/// The lines of an intent, without the `\n` that ends somebody else's.
fn lines_of(intent: &Intent) -> &[u8] {
    let bytes = intent.bytes.as_bytes();
    bytes.strip_prefix(b"\n").unwrap_or(bytes)
}

/// Where the lines of an intent begin in the file, if anything of them is there that can be gone on with.
///
/// A whole receipt is known by the batch's id, and stands at the beginning of a line: behind somebody's unfinished line it
/// is no entry, and nothing can be. A receipt that was cut is of use only as the file's last line.
fn begins_at(reading: &Reading, intent: &Intent, path: &Path) -> Result<Option<u64>, DeliverError> {
    let end = reading.metadata().map_err(|source| FilesError::Io { path: path.to_path_buf(), source })?.len();
    let from = intent.place.len.min(end);
    let tail = reading.read(from, usize::try_from(end - from).unwrap_or(usize::MAX))?;
    // Where the last line had no end, what stands there at once is not the beginning of one.
    let begins = |at: usize| if at == 0 { !intent.bytes.starts_with('\n') } else { tail[at - 1] == b'\n' };
    let head = lines_of(intent).split(|b| *b == b'\n').next().unwrap_or_default();
    let whole = memchr::memmem::find(&tail, head).filter(|at| begins(*at));
    let at = whole.or_else(|| {
        let last = memchr::memrchr(b'\n', &tail).map_or(0, |at| at + 1);
        let in_place = intent.place.file == reading.id() && last == usize::from(intent.bytes.starts_with('\n'));
        (begins(last) && is_ours(&tail[last..], head, in_place, &intent.batch.id)).then_some(last)
    });
    Ok(at.map(|at| from + at as u64))
}

/// Whether an unfinished last line is the beginning of ours. The first bytes of many lines are the same: unless the batch
/// is named in them they are ours only if they stand where we meant to write, so that Pi's own half line, behind its other
/// lines, is not gone on with.
fn is_ours(cut: &[u8], head: &[u8], in_place: bool, batch: &str) -> bool {
    let named = || memchr::memmem::find(cut, batch.as_bytes()).is_some();
    !cut.is_empty() && head.starts_with(cut) && (in_place || named())
}
