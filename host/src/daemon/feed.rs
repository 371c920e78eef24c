//! Who follows the log: each new line goes to them as soon as it is kept.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::journal::{JournalError, RunRecord};
use crate::wire::control::{LogFilter, LogLine};

use super::control::said;
use super::socket::Conn;

/// Those who follow.
#[derive(Default)]
pub(super) struct Feed {
    followers: Mutex<Vec<(Conn, LogFilter)>>,
}

impl Feed {
    fn followers(&self) -> MutexGuard<'_, Vec<(Conn, LogFilter)>> {
        // A panic while it was held leaves whole followers.
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps lines and tells them. `keep` is made while nobody can begin to follow, so that no line is told twice or not
    /// at all; nobody waits for it but other lines, which wait for the store anyway.
    pub(super) fn keep<T>(
        &self,
        lines: &[RunRecord],
        path_of: impl Fn(&str) -> Option<PathBuf>,
        keep: impl FnOnce() -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        if lines.is_empty() {
            return keep();
        }
        let mut followers = self.followers();
        let kept = keep()?;
        followers.retain(|(conn, _)| !conn.is_closed());
        for (conn, filter) in followers.iter() {
            let wanted = lines.iter().filter(|line| filter.wants(&line.session, &line.plugin));
            let wanted: Vec<_> = wanted.map(|line| log_line(line, path_of(&line.session))).collect();
            if !wanted.is_empty() {
                send(conn, &wanted);
            }
        }
        Ok(kept)
    }

    /// Tells the lines that there are, and from then on each new one if it is to `follow`.
    pub(super) fn tell(
        &self,
        conn: &Conn,
        follow: Option<LogFilter>,
        path_of: impl Fn(&str) -> Option<PathBuf>,
        lines: impl FnOnce() -> Result<Vec<RunRecord>, JournalError>,
    ) -> Result<(), JournalError> {
        let mut followers = self.followers();
        let lines: Vec<_> = lines()?.iter().map(|line| log_line(line, path_of(&line.session))).collect();
        send(conn, &lines);
        followers.extend(follow.map(|filter| (conn.clone(), filter)));
        Ok(())
    }
}

fn send(conn: &Conn, lines: &[LogLine]) {
    conn.send(&said(Ok(lines)));
}

/// A line of the log as the command line sees it.
#[must_use]
pub fn log_line(line: &RunRecord, path: Option<PathBuf>) -> LogLine {
    LogLine {
        at_ms: line.at_ms,
        session: line.session.clone(),
        path,
        about: line.about.as_str().to_owned(),
        plugin: line.plugin.clone(),
        digest: line.digest.clone(),
        handler: line.handler.as_str().to_owned(),
        trigger: line.trigger.clone(),
        outcome: line.outcome.clone(),
        batch: line.batch.clone(),
        message: line.message.clone(),
        fuel: line.fuel,
        micros: line.micros,
    }
}
