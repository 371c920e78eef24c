//! The run log, from the daemon while one runs, else from the store. Each request is a connection, or an opening, of its own: a
//! daemon can start and end meanwhile.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::config::Config;
use crate::daemon::rows;
use crate::journal::{Journal, JournalError};
use crate::replay::verify::Page;
use crate::wire::control::{Request, Status};
use crate::wire::rows::{Rows, RowsWanted, Texts, TextsWanted};

use super::Failure;
use super::control::status::of_store;
use super::control::{Client, open_store};

/// Where the log is looked for.
pub(super) struct RunLog<'c> {
    config: &'c Config,
}

impl<'c> RunLog<'c> {
    pub(super) fn new(config: &'c Config) -> RunLog<'c> {
        RunLog { config }
    }

    /// Who is asked: `daemon`, `store`, or, where there is neither, `file`.
    pub(super) fn source(&self) -> Result<&'static str, Failure> {
        Ok(match Client::connect(self.config)? {
            Some(_) => "daemon",
            None if Journal::is_in(&self.config.state.dir) => "store",
            None => "file",
        })
    }

    fn ask<T: for<'de> Deserialize<'de> + Default>(
        &self,
        request: &Request,
        of_store: impl FnOnce(&Journal) -> Result<T, JournalError>,
    ) -> Result<T, Failure> {
        match Client::connect(self.config)? {
            Some(mut daemon) => daemon.ask(request),
            None => {
                let found = open_store(self.config)?.map(|journal| of_store(&journal));
                Ok(found.transpose().map_err(Failure::problem)?.unwrap_or_default())
            }
        }
    }

    /// The session and the entry for which a batch waits whose id begins so; none if no batch does, or several.
    pub(super) fn waiting(&self, named: &str) -> Result<Option<(PathBuf, String)>, Failure> {
        let status: Status = self.ask(&Request::Status { all: false }, of_store)?;
        let all = status.sessions.iter().flat_map(|session| session.pending.iter().map(|batch| (&session.path, batch)));
        let mut meant = all.filter(|(_, batch)| batch.batch.starts_with(named));
        let only = meant.next().filter(|_| meant.next().is_none());
        Ok(only.map(|(path, batch)| (path.clone(), batch.trigger.clone())))
    }

    /// One page of the rows that are wanted.
    pub(super) fn page(&self, wanted: RowsWanted) -> Result<Page, Failure> {
        let Rows { rows, next, pending } =
            self.ask(&Request::Rows(wanted.clone()), |journal| rows::of_store(journal, &wanted))?;
        let rows = rows.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
        let newer =
            |e| Failure::problem(format!("a row of the log cannot be read ({e}); a newer pi-graft wrote it: use that"));
        Ok(Page { rows: rows.map_err(newer)?, next, pending })
    }

    /// All rows about these entries and batches of a session, oldest first, and what is pending in it.
    pub(super) fn about(&self, session: &str, about: Vec<String>) -> Result<Page, Failure> {
        let (mut all, about) = (Page::default(), Some(about));
        loop {
            let wanted = RowsWanted { session: session.to_owned(), about: about.clone(), after: all.next };
            let page = self.page(wanted)?;
            all.rows.extend(page.rows);
            (all.next, all.pending) = (page.next, page.pending);
            if all.next.is_none() {
                return Ok(all);
            }
        }
    }

    /// Texts by hash; none for one that is not kept any more.
    pub(super) fn texts(&self, mut hashes: Vec<String>) -> Result<BTreeMap<String, Option<String>>, Failure> {
        let mut all = BTreeMap::new();
        while !hashes.is_empty() {
            let wanted = TextsWanted { hashes };
            let page: Texts = self.ask(&Request::Texts(wanted.clone()), |journal| rows::texts(journal, &wanted))?;
            let before = all.len();
            all.extend(page.texts);
            hashes = wanted.hashes;
            hashes.retain(|hash| !all.contains_key(hash));
            if all.len() == before {
                break;
            }
        }
        Ok(all)
    }
}
