//! `pi-graft explain`: why an entry is there, and what came of it.

mod look;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pi_session::tree::{EntryIx, Source};
use serde::Serialize;

use crate::config::Config;
use crate::explain::{Explained, InFile, Known};
use crate::files::shown;
use crate::wire::quarantine::Quarantine;

use super::failure::{Failure, Outcome};
use super::find::{session_file, some};
use super::open::Opened;
use super::out::Out;
use super::preview::{self, Preview, one_line};
use super::quarantine;
use super::runlog::RunLog;

/// Characters of an entry's id as Pi makes them: what is longer may be a batch's.
const LONGEST_ID: usize = 8;

/// Why an entry is there: whose graft it is, or what ran on it, what came of that, and who edited it.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// The entry's id, or a unique beginning of one; a batch's id means its receipt, or while it waits the entry that it is for
    #[arg(value_name = "ENTRY")]
    entry: String,
    /// Its session: a path, a session id, or a unique beginning of one; default: it is looked for in all sessions
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
}

/// All that is said.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'t> {
    path: String,
    session: &'t str,
    /// Who told beside the file: `daemon`, `store`; `file` where there is nothing else.
    source: &'static str,
    /// What the entry says, in one line.
    says: String,
    #[serde(flatten)]
    explained: Explained,
}

/// `pi-graft explain`.
///
/// # Errors
/// [`Failure`]: there is no such entry, or more than one.
pub(super) fn run(args: &ExplainArgs, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let found = Config::find(config)?;
    let log = RunLog::new(&found);
    let waiting = if args.entry.len() > LONGEST_ID { log.waiting(&args.entry)? } else { None };
    let (path, entry) = match (waiting, &args.session) {
        (Some(waiting), _) => waiting,
        (None, Some(session)) => (session_file(session, config)?, args.entry.clone()),
        (None, None) => (look::session_with(&args.entry, &found)?, args.entry.clone()),
    };
    let opened = Opened::session(&path)?;
    let session = opened.tree.header().map_or("", |header| header.id.as_str());
    let source = Arc::clone(&opened.reading) as Arc<dyn Source>;
    let file = InFile::new(Arc::clone(&opened.tree), source)?;
    let ix = only(&opened, &entry, &file.find(&entry))?;
    let source = log.source()?;
    let page = log.about(session, file.about(ix))?;
    let quarantine = of_session(quarantine::ask(&found)?, session);
    let known = Known { rows: page.rows, pending: page.pending, quarantine };
    let says = opened.read(opened.tree.entry(ix), preview::entry)?.said;
    let told = Told { path: shown(&path).to_string(), session, source, says, explained: file.explain(ix, &known)? };
    match out.json {
        true => out.line(serde_json::to_string(&told).map_err(Failure::problem)?)?,
        false => words::write(&told, out)?,
    }
    Ok(Outcome::Done)
}

/// What failed in one session.
fn of_session(mut all: Quarantine, session: &str) -> Quarantine {
    all.runs.retain(|run| run.session == session);
    all.suspended.retain(|row| row.session == session);
    all
}

/// The entry that is meant, if it is one.
fn only(opened: &Opened, named: &str, found: &[EntryIx]) -> Result<EntryIx, Failure> {
    let path = shown(&opened.path);
    let line = |ix: &EntryIx| {
        // An entry that cannot be read back has an id all the same.
        let Preview { what, said } = opened.read(opened.tree.entry(*ix), preview::entry).unwrap_or_default();
        one_line(&format!("{}  {what} {}", opened.tree.id(*ix), said.chars().take(60).collect::<String>()))
    };
    match found {
        [only] => Ok(*only),
        [] => Err(Failure::usage(format!(
            "{path}: no entry has an id that begins with {named:?}; `pi-graft session tree` shows the ids"
        ))),
        many => {
            let (count, list) = (many.len(), some(many.iter().map(line)));
            Err(Failure::usage(format!("{path}: {count} ids begin with {named:?}; give more of it:{list}")))
        }
    }
}
