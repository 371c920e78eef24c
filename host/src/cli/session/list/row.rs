//! What is listed of a session.

use std::path::Path;

use pi_session::entry::{Entry, EntryKind, Role};
use pi_session::time::iso;
use pi_session::tree::Status;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::open::Opened;
use crate::cli::out::json_number;
use crate::cli::preview;
use crate::cli::progress::Progress;

/// What a session holds: all that has to be read for a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub id: String,
    pub cwd: Option<String>,
    pub title: String,
    pub entries: usize,
    pub tokens: Option<f64>,
}

impl Row {
    /// Reads the session there, piece by piece; none if it is no session.
    ///
    /// # Errors
    /// [`Failure::Problem`] if it cannot be read.
    pub fn read(path: &Path, progress: &Progress) -> Result<Option<Row>, Failure> {
        // The others are read at the same time.
        let opened = Opened::of_many(path, progress, 1)?;
        let Some(header) = opened.tree.header().filter(|_| opened.tree.status() == Status::Session) else {
            return Ok(None);
        };
        let branch = opened.branch(None).ok();
        let tokens = branch.map(|branch| branch.tokens(&branch.context()).map(|tokens| tokens.total)).transpose()?;
        Ok(Some(Row {
            id: header.id.clone(),
            cwd: header.cwd.clone(),
            title: title(&opened)?,
            entries: opened.tree.entries().len(),
            tokens: tokens.filter(|tokens| tokens.is_finite()),
        }))
    }

    /// For programs.
    pub fn json(&self, path: &Path, modified_ms: i64, bytes: u64) -> serde_json::Value {
        json!({
            "path": path.display().to_string(),
            "id": self.id,
            "title": self.title,
            "cwd": self.cwd,
            "modified": iso(modified_ms),
            "bytes": bytes,
            "entries": self.entries,
            "contextTokens": self.tokens.map(json_number),
        })
    }
}

/// Its name, else the first thing the user said.
pub fn title(opened: &Opened) -> Result<String, Failure> {
    if let Some(name) = opened.tree.name() {
        return Ok(preview::one_line(name));
    }
    let of_user = |entry: &&Entry| entry.kind == EntryKind::Message && entry.role == Role::User;
    let first = opened.tree.entries().iter().find(of_user);
    let said = first.map(|entry| opened.read(entry, |line| line.get("message").map(preview::message))).transpose()?;
    Ok(preview::one_line(&said.flatten().unwrap_or_default()))
}
