//! Rows of the run log, and the texts that they name, for whoever explains or verifies: page by page, so that a log of
//! 256 MB is nowhere in memory.

use std::sync::Arc;

use crate::journal::{Journal, JournalError, Recorded, RunRecord, SessionKey};
use crate::wire::rows::{Rows, RowsWanted, Texts, TextsWanted};

use super::Daemon;
use super::control::answer;
use super::socket::Conn;

/// Rows that are looked at for one page.
const MOST_LOOKED: usize = 20_000;
/// Bytes of rows or texts in one page, about.
const MOST_BYTES: usize = 2 << 20;

impl Daemon {
    pub(super) fn rows(&self, conn: Conn, wanted: RowsWanted) {
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || {
            let sessions = world.keys_of(&wanted.session);
            answer(&conn, rows(&world.journal, &wanted, &sessions).map_err(|e| e.to_string()));
        });
    }

    pub(super) fn texts(&self, conn: Conn, wanted: TextsWanted) {
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || answer(&conn, texts(&world.journal, &wanted).map_err(|e| e.to_string())));
    }
}

/// A page of rows of a store that no daemon has open.
///
/// # Errors
/// [`JournalError`] if it cannot be read.
pub fn of_store(journal: &Journal, wanted: &RowsWanted) -> Result<Rows, JournalError> {
    let sessions = journal.sessions()?.into_iter().filter(|(_, record)| record.session_id == wanted.session);
    rows(journal, wanted, &sessions.map(|(key, _)| key).collect::<Vec<_>>())
}

fn rows(journal: &Journal, wanted: &RowsWanted, sessions: &[SessionKey]) -> Result<Rows, JournalError> {
    let (mut page, mut looked, mut bytes) = (Rows::default(), 0, 0);
    journal.rows(wanted.after, |key, row| {
        looked += 1;
        if is_wanted(wanted, &row) {
            let row = serde_json::to_value(&row).unwrap_or_default();
            bytes += row.to_string().len();
            page.rows.push(row);
        }
        page.next = (looked >= MOST_LOOKED || bytes >= MOST_BYTES).then_some(key);
        page.next.is_none()
    })?;
    for session in sessions {
        page.pending.extend(journal.pending(*session)?.iter().map(Recorded::batch).map(|batch| batch.id.clone()));
    }
    Ok(page)
}

fn is_wanted(wanted: &RowsWanted, row: &RunRecord) -> bool {
    let about = |about: &Vec<String>| {
        let names = |id: &String| *id == row.trigger || Some(id) == row.batch.as_ref();
        about.iter().any(names)
    };
    row.session == wanted.session && wanted.about.as_ref().is_none_or(about)
}

/// Texts of the log: as many of those that are wanted as a page takes, one at least.
///
/// # Errors
/// [`JournalError`] if the store cannot be read.
pub fn texts(journal: &Journal, wanted: &TextsWanted) -> Result<Texts, JournalError> {
    let (mut page, mut bytes) = (Texts::default(), 0);
    for hash in &wanted.hashes {
        let text = journal.text(hash)?;
        bytes += text.as_ref().map_or(0, String::len);
        page.texts.insert(hash.clone(), text);
        if bytes >= MOST_BYTES {
            break;
        }
    }
    Ok(page)
}
