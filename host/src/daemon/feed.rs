//! Who follows the log: each new line goes to them as soon as it is kept.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::journal::{JournalError, RunRecord};
use crate::wire::control::{LogFilter, LogLine};

use super::control::said;
use super::socket::Conn;

/// Failed runs that are known by heart, for `status`.
const FAILURES: usize = 5;

/// Those who follow, and the failed runs that `status` shows.
#[derive(Default)]
pub(super) struct Feed {
    followers: Mutex<Vec<(Conn, LogFilter)>>,
    /// The last ones, oldest first; none before somebody asked. Looking for them costs a walk over the whole log.
    failed: Mutex<Option<VecDeque<RunRecord>>>,
}

impl Feed {
    fn followers(&self) -> MutexGuard<'_, Vec<(Conn, LogFilter)>> {
        // A panic while it was held leaves whole followers.
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, Option<VecDeque<RunRecord>>> {
        // A panic while it was held leaves whole lines.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last runs that failed, oldest first; `look` finds so many in the log, newest first.
    pub(super) fn failures(
        &self,
        look: impl FnOnce(usize) -> Result<Vec<RunRecord>, JournalError>,
    ) -> Result<Vec<RunRecord>, JournalError> {
        // Nothing is kept meanwhile, so that no line is missed between the look and the next one.
        let _followers = self.followers();
        let mut failed = self.failed();
        let known = match failed.take() {
            Some(known) => known,
            None => look(FAILURES)?.into_iter().rev().collect(),
        };
        Ok(failed.insert(known).iter().cloned().collect())
    }

    fn note_failures(&self, lines: &[RunRecord]) {
        let mut failed = self.failed();
        let Some(known) = failed.as_mut() else { return };
        known.extend(lines.iter().filter(|line| line.is_failure()).cloned());
        let most = known.len().saturating_sub(FAILURES);
        known.drain(..most);
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
        self.note_failures(lines);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;

    fn row(trigger: usize, outcome: &str) -> RunRecord {
        let row = format!(
            r#"{{"at_ms":1,"session":"a","plugin":"p","digest":"d","handler":"on-entry","trigger":"{trigger}","outcome":{outcome:?},"fuel":1,"micros":1}}"#
        );
        serde_json::from_str(&row).expect("a row")
    }

    #[test]
    fn the_log_is_looked_through_once_for_failures_and_later_ones_are_heard_of() {
        let (feed, journal) = (Feed::default(), Journal::in_memory(0).expect("a store"));
        let known = |look: &mut dyn FnMut(usize) -> Vec<RunRecord>| {
            let failed = feed.failures(|most| Ok(look(most))).expect("failures");
            failed.into_iter().map(|row| row.trigger).collect::<Vec<_>>()
        };
        assert_eq!(known(&mut |_| vec![row(2, "trap"), row(1, "fuel")]), ["1", "2"]);
        let lines: Vec<_> = (3..9).map(|n| row(n, if n == 5 { "nothing" } else { "deadline" })).collect();
        feed.keep(&lines, |_| None, || journal.flush()).expect("kept");
        assert_eq!(known(&mut |_| panic!("looked for again")), ["3", "4", "6", "7", "8"]);
    }
}
