//! What an undo cannot take back, or has yet to: what waits in the store, and a plugin that goes on.

use std::path::Path;

use pi_session::Branch;
use pi_session::receipt::receipts;
use pi_session::undo::HANDLER;

use crate::config::Config;
use crate::deliver::process;
use crate::files::FileId;
use crate::journal::{Journal, JournalError};
use crate::wire::control::{Request, Status};

use super::UndoArgs;
use crate::cli::Failure;
use crate::cli::control::{Client, open_store};
use crate::cli::open::Opened;

/// What stands beside the plugin's work in the file.
pub(super) struct Rest {
    /// Its batches that wait for this session.
    pub pending: usize,
    /// It is enabled in the config.
    pub enabled: bool,
    /// The plugins that did something on this branch.
    pub others: Vec<String>,
    /// What says that a Pi has the session open, if it has.
    pub here: Option<String>,
}

impl Rest {
    pub fn of(args: &UndoArgs, opened: &Opened, branch: &Branch, config: &Config) -> Result<Rest, Failure> {
        let of = receipts(branch, None)?.into_iter().filter(|found| found.receipt.handler != HANDLER);
        let mut others: Vec<String> =
            of.map(|found| found.receipt.plugin).filter(|name| *name != args.plugin).collect();
        others.sort();
        others.dedup();
        let enabled = config.plugins.iter().any(|plugin| plugin.name == args.plugin && plugin.enabled);
        let (pending, here) = waiting(args, opened, branch, config)?;
        Ok(Rest { pending, enabled, others, here })
    }
}

/// How many of its batches wait, from the daemon, or from the store if none runs; what waits for another branch is not meant.
/// And what is known there of a Pi.
fn waiting(
    args: &UndoArgs,
    opened: &Opened,
    branch: &Branch,
    config: &Config,
) -> Result<(usize, Option<String>), Failure> {
    let is_it = |path: &Path| std::fs::metadata(path).is_ok_and(|meta| FileId::of(&meta) == opened.reading.id());
    let counts = |plugin: &str, trigger: &str| plugin == args.plugin && branch.place_of(trigger).is_some();
    if let Some(mut daemon) = Client::connect(config)? {
        let status: Status = daemon.ask(&Request::Status { all: false })?;
        let session = status.sessions.into_iter().find(|session| is_it(&session.path));
        let Some(session) = session else { return Ok((0, None)) };
        let waits = session.pending.iter().filter(|batch| counts(&batch.plugin, &batch.trigger)).count();
        return Ok((waits, (session.presence == "here").then_some(session.presence_why)));
    }
    let Some(journal) = open_store(config)? else { return Ok((0, None)) };
    let known = |journal: &Journal| -> Result<_, JournalError> {
        let found = journal.sessions()?.into_iter().find(|(_, record)| is_it(&record.path));
        let Some((key, record)) = found else { return Ok((0, None)) };
        let waits = journal.pending(key)?;
        let waits = waits.iter().filter(|r| counts(&r.batch().plugin, &r.batch().trigger)).count();
        // It had it through a bridge when the daemon ended, and cannot say any more that it has left.
        let bridged = record.bridged.iter().find(|pi| process::runs(pi));
        Ok((waits, bridged.map(|pi| format!("process {}, which had a bridge", pi.pid))))
    };
    known(&journal).map_err(Failure::problem)
}
