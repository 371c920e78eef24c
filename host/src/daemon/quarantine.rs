//! Failed runs and suspended plugins: what there is, and making them again when the user says so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use tracing::{info, warn};

use crate::journal::{Change, FailedRun, Journal, JournalError, SessionKey, SessionRecord};
use crate::wire::quarantine::{FailedLine, Quarantine, Retried, Retry, SuspendedLine};

use super::control::answer;
use super::socket::Conn;
use super::suspended::Suspended;
use super::world::{World, now_ms};
use super::{Daemon, Event};

impl Daemon {
    pub(super) fn quarantine(&self, conn: Conn) {
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || answer(&conn, of_world(&world).map_err(|e| e.to_string())));
    }

    /// Finds the runs that are meant, and lets their sessions make them again.
    pub(super) fn retry(&self, conn: Conn, which: Retry) {
        let (world, to) = (Arc::clone(&self.world), self.to.clone());
        tokio::task::spawn_blocking(move || {
            let found = begin_retry(&world, &which);
            let found = found.map(|(retried, runs)| {
                // The receiver is gone only when the daemon has ended.
                let _ = to.send(Event::Redo(runs));
                retried
            });
            answer(&conn, found.map_err(|e| e.to_string()));
        });
    }

    /// A reload ends every suspension; what waited for that, or for another version, is made again.
    pub(super) fn lift_all(&self) {
        let (world, to) = (Arc::clone(&self.world), self.to.clone());
        tokio::task::spawn_blocking(move || {
            let names = world.suspended().plugins();
            let lifted = names.iter().try_for_each(|name| world.lift(name)).and_then(|()| world.to_redo());
            match lifted {
                Ok(paths) => drop(to.send(Event::Redo(paths.into_iter().map(|path| (path, Vec::new())).collect()))),
                Err(e) => warn!("suspended plugins stay so: {e}"),
            }
        });
    }

    /// Lets sessions make failed runs again.
    pub(super) fn redo(&mut self, runs: BTreeMap<PathBuf, Vec<String>>) {
        for (path, ids) in runs {
            if self.is_followed(&path) {
                self.slot(&path).bell.redo.extend(ids);
                self.touch(&path);
            }
        }
    }
}

fn begin_retry(world: &World, which: &Retry) -> Result<(Retried, BTreeMap<PathBuf, Vec<String>>), JournalError> {
    let failed = world.journal.all_failed()?;
    let meant: Vec<_> = failed.into_iter().filter(|(_, run)| which.means(&run.id, &run.plugin)).collect();
    let suspended = world.suspended().plugins();
    let plugins = plugins_meant(&meant, suspended, which);
    plugins.iter().try_for_each(|plugin| world.lift(plugin))?;
    let mut runs: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for (key, run) in &meant {
        if let Some(path) = world.path_with(*key) {
            runs.entry(path).or_default().push(run.id.clone());
        }
    }
    for path in world.to_redo()? {
        runs.entry(path).or_default();
    }
    info!(runs = meant.len(), ?plugins, "made again, since the user wants it");
    Ok((Retried { runs: meant.into_iter().map(|(_, run)| run.id).collect(), plugins }, runs))
}

/// The plugins whose suspensions end: those of the runs that are meant, and those that are meant by name.
fn plugins_meant(meant: &[(SessionKey, FailedRun)], suspended: Vec<String>, which: &Retry) -> Vec<String> {
    let named = suspended.into_iter().filter(|name| which.all || which.plugin.as_ref() == Some(name));
    let plugins: BTreeSet<String> = meant.iter().map(|(_, run)| run.plugin.clone()).chain(named).collect();
    plugins.into_iter().collect()
}

/// What there is, as the daemon knows it.
pub(super) fn of_world(world: &World) -> Result<Quarantine, JournalError> {
    let failed = world.journal.all_failed()?;
    let sessions = world.troubled(&failed.iter().map(|(key, _)| *key).collect());
    let suspended = world.suspended();
    Ok(gather(failed, &sessions, &suspended))
}

/// The same of a store that no daemon has open.
///
/// # Errors
/// [`JournalError`] if it cannot be read.
pub fn of_store(journal: &Journal) -> Result<Quarantine, JournalError> {
    let sessions = journal.sessions()?;
    let suspended = Suspended::new(&sessions, journal.lifted()?);
    Ok(gather(journal.all_failed()?, &sessions.into_iter().collect(), &suspended))
}

/// Makes runs again, at the next start of the daemon.
///
/// # Errors
/// [`JournalError`] if the store cannot be read or written.
pub fn retry_in_store(journal: &Journal, which: &Retry) -> Result<Retried, JournalError> {
    let failed = journal.all_failed()?;
    let meant: Vec<_> = failed.into_iter().filter(|(_, run)| which.means(&run.id, &run.plugin)).collect();
    let suspended = Suspended::new(&journal.sessions()?, journal.lifted()?);
    let plugins = plugins_meant(&meant, suspended.plugins(), which);
    plugins.iter().try_for_each(|plugin| journal.lift(plugin, suspended.so_far(plugin, now_ms())))?;
    for (key, run) in &meant {
        let run = FailedRun { retry_ms: Some(0), tries: 0, ..run.clone() };
        journal.change_failed(*key, &[Change::Put(Box::new(run))])?;
    }
    Ok(Retried { runs: meant.into_iter().map(|(_, run)| run.id).collect(), plugins })
}

fn gather(
    mut failed: Vec<(SessionKey, FailedRun)>,
    sessions: &BTreeMap<SessionKey, SessionRecord>,
    suspended: &Suspended,
) -> Quarantine {
    failed.sort_by_key(|(_, run)| (run.last_ms, run.entries));
    let runs = failed.into_iter().map(|(key, run)| failed_line(run, sessions.get(&key))).collect();
    let rows = sessions.values().flat_map(|record| suspended_lines(record, suspended));
    Quarantine { runs, suspended: rows.collect() }
}

fn failed_line(run: FailedRun, of: Option<&SessionRecord>) -> FailedLine {
    FailedLine {
        state: if run.retry_ms.is_some() { "retry" } else { "quarantine" }.to_owned(),
        session: of.map_or_else(String::new, |record| record.session_id.clone()),
        path: of.map(|record| record.path.clone()),
        id: run.id,
        plugin: run.plugin,
        digest: run.digest,
        handler: run.handler.as_str().to_owned(),
        trigger: run.trigger,
        kind: run.kind,
        message: run.message,
        tries: run.tries,
        retry_ms: run.retry_ms,
        first_ms: run.first_ms,
        last_ms: run.last_ms,
    }
}

fn suspended_lines(record: &SessionRecord, suspended: &Suspended) -> Vec<SuspendedLine> {
    let rows = record.standing.iter().map(|standing| SuspendedLine {
        plugin: standing.plugin.clone(),
        digest: standing.digest.clone(),
        session: record.session_id.clone(),
        path: record.path.clone(),
        since_ms: standing.suspended_ms.filter(|_| suspended.holds(standing, &standing.digest)),
        everywhere: suspended.everywhere(&standing.plugin, &standing.digest),
        passed: standing.owes.map_or(0, |passed| passed.to - passed.from),
    });
    rows.filter(|row| row.since_ms.is_some() || row.passed > 0).collect()
}
