//! Whether what the daemon did to a session is what the plugins do again (product.md 4.6, `--verify`).
//!
//! A row of the run log names all that a run was given beside the session's lines. So each run is made again as the daemon
//! makes a failed one again: the file is read up to the entries that the run saw, what was pending is put behind its trigger,
//! and a model's answers are the recorded ones. What comes of it is held against the row, and what was proposed against the
//! grafts in the file.
//!
//! ```text
//! run log ─plan─> what is to be made again, by the entries that it saw
//! file ───read──> … made again, entry by entry ─> as the row says?
//!          └────> its grafts ───────────────────> as was proposed?
//! ```
//!
//! Nothing is written, nobody's clock is asked, and of the log only a page is in memory: two reports are equal to the byte.

mod again;
mod answers;
mod grafts;
mod plan;
pub mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pi_session::Tree;
use pi_session::tree::{Pushed, Source, Status};

use crate::files::FilesError;
use crate::files::tail::Reading;
use crate::journal::{RowKey, RunRecord};
use crate::sandbox::Plugin;

use super::ReplayError;
use again::Again;
use plan::Plan;
use report::Verified;

/// The run log: of the daemon, or of its store.
pub trait RunLog: Sync {
    /// A page of the rows of a session behind `after`, oldest first.
    ///
    /// # Errors
    /// Why it cannot be read, for the user.
    fn page(&self, session: &str, after: Option<RowKey>) -> Result<Page, String>;

    /// Texts that rows name by hash; none for one that is not kept any more.
    ///
    /// # Errors
    /// Why they cannot be read, for the user.
    fn texts(&self, hashes: Vec<String>) -> Result<BTreeMap<String, Option<String>>, String>;
}

/// A part of what the log has of a session.
#[derive(Default)]
pub struct Page {
    /// Rows, oldest first.
    pub rows: Vec<RunRecord>,
    /// Where the next page begins; none behind the last.
    pub next: Option<RowKey>,
    /// The batches that are pending, by id.
    pub pending: Vec<String>,
}

/// What verifications share.
pub struct Verify<'l> {
    /// The plugins that are loaded, without limits of wall clock.
    pub plugins: Vec<Arc<Plugin>>,
    /// The log.
    pub log: &'l dyn RunLog,
}

impl Verify<'_> {
    /// Verifies the session at `path`; `told` hears of the bytes that were gone through, the file's length in all.
    ///
    /// # Errors
    /// [`ReplayError`]: the file is no session, or file or log cannot be read.
    pub fn session(&self, path: &Path, told: &dyn Fn(u64)) -> Result<Verified, ReplayError> {
        let file = Reading::open(path)?;
        let (id, header) = header_of(&file, path)?;
        let plan = Plan::read(self.log, &id, &self.plugins)?;
        let mut again = Again::new(&self.plugins, self.log, Arc::new(file), header, &plan);
        let tree = again.read(path, told)?;
        let source: Arc<dyn Source> = again.file();
        let made = again.made;
        let mut verified = Verified::of(path, &id, &plan, &made);
        grafts::compare(&mut verified, &plan, &made, &tree, source.as_ref(), self.log)?;
        Ok(verified.finished())
    }
}

/// The session's id, and its header line.
fn header_of(file: &Reading, path: &Path) -> Result<(String, String), ReplayError> {
    let (mut tree, mut text) = (Tree::new(), String::new());
    let read = file.lines(0, |offset, line| {
        if tree.push(offset, line) == Pushed::Header {
            text = String::from_utf8_lossy(line).trim().to_owned();
        }
        tree.status() == Status::NotBegun
    });
    read.map_err(|source| FilesError::Io { path: path.to_path_buf(), source })?;
    let id = tree.header().map(|header| header.id.clone());
    Ok((id.ok_or_else(|| ReplayError::NoSession(path.to_path_buf()))?, text))
}
