//! The direct way: compose on the leaf of this moment, write down the intent, append, mark done; and after a crash, find
//! out how far that came.
//!
//! | died | the store says | the file has | recovery |
//! | --- | --- | --- | --- |
//! | before `intend` | pending | nothing | pending: composed anew when it is time |
//! | between `intend` and the write | intended | nothing of it | withdrawn: pending again |
//! | in the write | intended | a prefix of the bytes | the rest is appended, then done |
//! | between the write and `finish` | intended | all ids | done |
//! | after `finish` | neither | all of it | nothing to do |

use std::path::Path;

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::compose::{Composed, Stale, compose};
use pi_session::receipt::{self, Receipt};
use pi_session::tree::Source;

use crate::files::FilesError;
use crate::files::append::{Disk, Landed, Mtime, Place, append, complete};
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
    let bytes = composed.bytes();
    let ids: Vec<String> = composed.entries().iter().map(|entry| entry.id.clone()).collect();
    let intent = Intent {
        batch: recorded.batch().clone(),
        path: path.to_path_buf(),
        place,
        ids: ids.clone(),
        bytes: String::from_utf8_lossy(&bytes).into_owned(),
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
        Err(e @ (FilesError::Changed { .. } | FilesError::Busy { .. } | FilesError::NoRoom { .. })) => {
            direct.journal.withdraw(&intent.batch.id)?;
            Ok(Outcome::Kept(e))
        }
        // Some of it may be in the file: the intent stays, and recovery looks.
        Err(e) => Err(e.into()),
    }
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
    let there = intent.ids.iter().filter(|id| tree.by_id(id).is_some()).count();
    if there == intent.ids.len() {
        return Ok(Recovery::Done);
    }
    let Some(offset) = begins_at(reading, intent, path)? else {
        return Ok(if there == 0 { Recovery::Withdrawn } else { Recovery::Partial });
    };
    match complete(disk, path, offset, intent.bytes.as_bytes())? {
        true => Ok(Recovery::Completed),
        false if there == 0 => Ok(Recovery::Withdrawn),
        false => Ok(Recovery::Partial),
    }
}

/// Where the bytes of an intent begin in the file: at the receipt's head, of which no other batch has one like it, or,
/// where even that was cut, at the file's last unfinished line.
fn begins_at(reading: &Reading, intent: &Intent, path: &Path) -> Result<Option<u64>, DeliverError> {
    let end = reading.metadata().map_err(|source| FilesError::Io { path: path.to_path_buf(), source })?.len();
    let from = intent.place.len.min(end);
    let tail = reading.read(from, (end - from) as usize)?;
    let ours = intent.bytes.as_bytes();
    let head = ours.split(|b| *b == b'\n').next().unwrap_or_default();
    if let Some(at) = memchr::memmem::find(&tail, head) {
        return Ok(Some(from + at as u64));
    }
    let last = memchr::memrchr(b'\n', &tail).map_or(0, |at| at + 1);
    let cut = &tail[last..];
    Ok((!cut.is_empty() && ours.starts_with(cut)).then_some(from + last as u64))
}
