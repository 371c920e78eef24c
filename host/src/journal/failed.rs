//! Runs that failed and are not done with: those that are tried again, and those in quarantine; and how a plugin stands in
//! a session where it is suspended, or has yet to see what passed without it (product.md 4.3).

use redb::{ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};

use super::record::{Handler, Note, SessionKey};
use super::store::{Journal, JournalError, Result, decode, encode};

/// By session and the run's id.
const FAILED: TableDefinition<'_, (u64, &str), &str> = TableDefinition::new("failed");
/// By plugin: suspensions from before this time are lifted, Unix milliseconds.
const LIFTED: TableDefinition<'_, &str, i64> = TableDefinition::new("lifted");

/// A run that failed: it is tried again, or stands in quarantine until a new version of its plugin comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// Its id, to name it by: 8 hex digits.
    pub id: String,
    /// The plugin's name in the config.
    pub plugin: String,
    /// SHA-256 of the component that failed.
    pub digest: String,
    /// The handler.
    pub handler: Handler,
    /// The entry it ran on.
    pub trigger: String,
    /// Entries of the file that had been read.
    pub entries: u64,
    /// The batches that were pending then, by id.
    #[serde(default)]
    pub pending: Vec<String>,
    /// Of `on-settled`: the wishes that it was to grant.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// How it failed last: `deadline`, `trap`, …
    pub kind: String,
    /// What happened, with the figure of a limit.
    pub message: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried again, Unix milliseconds; none: it is in quarantine.
    #[serde(default)]
    pub retry_ms: Option<i64>,
    /// When it failed first, Unix milliseconds.
    pub first_ms: i64,
    /// When it failed last, Unix milliseconds.
    pub last_ms: i64,
}

/// A plugin in one session, as long as it does not simply run there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The plugin's name in the config.
    pub plugin: String,
    /// SHA-256 of the component that failed; empty if none did.
    #[serde(default)]
    pub digest: String,
    /// Entries in a row whose first run failed.
    #[serde(default)]
    pub failed: u32,
    /// When it was suspended here, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_ms: Option<i64>,
    /// What passed without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owes: Option<Passed>,
}

/// Entries that passed without a plugin: those behind the first `from` of the file, up to the `to`-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Entries before the first.
    pub from: u64,
    /// Entries up to the last.
    pub to: u64,
}

/// What becomes of a failed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is kept, as it stands now.
    Put(Box<FailedRun>),
    /// It is done with: the run with this id.
    Gone(String),
}

impl Journal {
    /// The failed runs of one session.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn failed(&self, session: SessionKey) -> Result<Vec<FailedRun>> {
        self.db.read(|read| {
            let table = read.open_table(FAILED).map_err(JournalError::failed)?;
            let rows = table.range((session.0, "")..(session.0 + 1, "")).map_err(JournalError::failed)?;
            rows.map(|row| decode(row.map_err(JournalError::failed)?.1.value())).collect()
        })
    }

    /// All failed runs.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn all_failed(&self) -> Result<Vec<(SessionKey, FailedRun)>> {
        self.db.read(|read| {
            let table = read.open_table(FAILED).map_err(JournalError::failed)?;
            let rows = table.iter().map_err(JournalError::failed)?;
            rows.map(|row| {
                let (key, value) = row.map_err(JournalError::failed)?;
                Ok((SessionKey(key.value().0), decode(value.value())?))
            })
            .collect()
        })
    }

    /// Keeps what becomes of failed runs of a session that nobody works on.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn change_failed(&self, session: SessionKey, changes: &[Change]) -> Result<()> {
        self.write(redb::Durability::Immediate, |txn| put(txn, session, changes))
    }

    /// Drops failed runs for which `stays` is false.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn forget_failed(&self, stays: impl Fn(SessionKey, &FailedRun) -> bool) -> Result<()> {
        let gone: Vec<_> = self.all_failed()?.into_iter().filter(|(session, run)| !stays(*session, run)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.write(redb::Durability::Immediate, |txn| {
            gone.iter().try_for_each(|(session, run)| put(txn, *session, &[Change::Gone(run.id.clone())]))
        })
    }

    /// Since when no suspension counts, by plugin.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn lifted(&self) -> Result<Vec<(String, i64)>> {
        self.db.read(|read| {
            let table = read.open_table(LIFTED).map_err(JournalError::failed)?;
            let rows = table.iter().map_err(JournalError::failed)?;
            rows.map(|row| row.map(|(key, at)| (key.value().to_owned(), at.value())).map_err(JournalError::failed))
                .collect()
        })
    }

    /// Lifts the suspensions of a plugin that were made up to this time.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn lift(&self, plugin: &str, at_ms: i64) -> Result<()> {
        self.write(redb::Durability::Immediate, |txn| {
            txn.open_table(LIFTED)
                .map_err(JournalError::failed)?
                .insert(plugin, at_ms)
                .map_err(JournalError::failed)?;
            Ok(())
        })
    }
}

/// Makes the tables.
pub(super) fn prepare(txn: &WriteTransaction) -> Result<()> {
    txn.open_table(FAILED).map_err(JournalError::failed)?;
    txn.open_table(LIFTED).map_err(JournalError::failed)?;
    Ok(())
}

/// Keeps changes of a session's failed runs.
pub(super) fn put(txn: &WriteTransaction, session: SessionKey, changes: &[Change]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(FAILED).map_err(JournalError::failed)?;
    for change in changes {
        match change {
            Change::Put(run) => {
                table.insert((session.0, run.id.as_str()), encode(run)?.as_str()).map_err(JournalError::failed)?;
            }
            Change::Gone(id) => {
                table.remove((session.0, id.as_str())).map_err(JournalError::failed)?;
            }
        }
    }
    Ok(())
}
