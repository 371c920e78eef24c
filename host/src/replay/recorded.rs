//! What was recorded: the session as it stands in its file, and which of its lines are grafts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::entry::EntryKind;
use pi_session::grafts::Grafts;
use pi_session::header::Version;
use pi_session::json::Json;
use pi_session::receipt::Receipt;
use pi_session::tree::{EntryIx, Pushed, Source, Status};

use crate::files::FilesError;
use crate::files::tail::Reading;

use super::ReplayError;

/// A session that was read to its end. Its texts stay in the file.
pub struct Recorded {
    /// Where it is.
    pub path: PathBuf,
    /// Its index.
    pub tree: Arc<Tree>,
    /// Its header line.
    pub header: String,
    reading: Arc<Reading>,
}

/// What a recorded line is to a replay.
pub(super) enum Part {
    /// Pi's own, or the user's.
    Own,
    /// A graft's, or its receipt: left out.
    Graft,
    /// A graft that stood in for a compaction that Pi wanted, and for what reason: left out, and wanted again.
    Wanted(String),
}

impl Recorded {
    /// Reads a session; `told` hears of the bytes that were read.
    ///
    /// # Errors
    /// [`ReplayError`]: it cannot be read, is no session, or of an old version.
    pub fn open(path: &Path, told: &dyn Fn(u64)) -> Result<Recorded, ReplayError> {
        let io = |source| FilesError::Io { path: path.to_path_buf(), source };
        let reading = Reading::open(path)?;
        let (mut tree, mut header) = (Tree::new(), String::new());
        let mut take = |pushed, line: &[u8]| {
            if pushed == Pushed::Header {
                header = String::from_utf8_lossy(line).trim().to_owned();
            }
        };
        let whole = reading.lines(0, |offset, line| {
            take(tree.push(offset, line), line);
            told(line.len() as u64 + 1);
            true
        });
        let whole = whole.map_err(io)?;
        let len = reading.metadata().map_err(io)?.len();
        if whole < len {
            let last = reading.read(whole, (len - whole) as usize)?;
            take(tree.push_last(whole, &last), &last);
        }
        let recorded = Recorded { path: path.into(), tree: Arc::new(tree), header, reading: Arc::new(reading) };
        recorded.if_session()
    }

    fn if_session(self) -> Result<Recorded, ReplayError> {
        match self.tree.status() {
            Status::Session if self.version() < Version::V3 => Err(ReplayError::Old(self.path)),
            Status::Session => Ok(self),
            Status::NotBegun | Status::NotASession => Err(ReplayError::NoSession(self.path)),
        }
    }

    fn version(&self) -> Version {
        self.tree.header().map_or(Version::V3, |header| header.version)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.tree.header().map_or("", |header| &header.id)
    }

    /// The branch that ends in an entry, as it was recorded.
    ///
    /// # Errors
    /// [`ReplayError::Branch`] if its parents lead in a circle (S8.5).
    pub fn branch(&self, leaf: Option<EntryIx>) -> Result<Branch, ReplayError> {
        Ok(Branch::at(&self.tree, Arc::clone(&self.reading) as Arc<dyn Source>, leaf)?)
    }

    /// The line of an entry.
    pub(super) fn line(&self, ix: EntryIx) -> Result<Vec<u8>, ReplayError> {
        let entry = self.tree.entry(ix);
        Ok(self.reading.read(entry.offset, entry.len as usize)?.into_owned())
    }

    /// What the next entry is. To be asked for each in the file's order, with the same `grafts`.
    pub(super) fn part(&self, grafts: &mut Grafts, ix: EntryIx, line: &[u8]) -> Part {
        grafts.note(&self.tree, ix, line);
        if grafts.all().last().is_some_and(|graft| graft.first <= ix && ix <= graft.last) {
            return Part::Graft;
        }
        let may_be = self.tree.entry(ix).kind == EntryKind::Compaction;
        let receipt = may_be.then(|| Json::parse(line).ok().and_then(Receipt::of_entry)).flatten();
        match receipt {
            // One that Pi was asked to make, or that a boundary took, comes again by itself.
            Some(receipt) if matches!(receipt.reason.as_str(), "manual" | "threshold" | "overflow") => {
                Part::Wanted(receipt.reason)
            }
            Some(_) => Part::Graft,
            None => Part::Own,
        }
    }
}
