//! `pi-graft quarantine`: runs that failed, and plugins that are suspended. Asks the daemon, or the store if none runs.

use std::path::Path;

use clap::Subcommand;

use crate::config::Config;
use crate::daemon::quarantine;
use crate::journal::Journal;
use crate::wire::control::Request;
use crate::wire::quarantine::{FailedLine, Quarantine, Retried, Retry, SuspendedLine};

use super::control::{Client, open_store};
use super::paint::{Ink, Row};
use super::when::Zone;
use super::{Failure, Out, Outcome};

/// What to do with failed runs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The runs that failed and are not done with, and the plugins that are suspended.
    List {
        /// Only of this plugin
        #[arg(long, value_name = "NAME")]
        plugin: Option<String>,
    },
    /// One of them, with all that is known of it.
    Show {
        /// Its id
        id: String,
    },
    /// Make runs again now, and end the suspension of their plugins.
    #[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
    Retry {
        /// Those with these ids
        #[arg(group = "which")]
        ids: Vec<String>,
        /// All of this plugin
        #[arg(long, value_name = "NAME", group = "which")]
        plugin: Option<String>,
        /// All
        #[arg(long, group = "which")]
        all: bool,
    },
}

pub(super) fn run(command: &Command, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let config = Config::find(config)?;
    match command {
        Command::List { plugin } => list(&ask(&config)?.of(plugin.as_deref()), out),
        Command::Show { id } => show(ask(&config)?, id, out),
        Command::Retry { ids, plugin, all } => {
            retry(&config, Retry { ids: ids.clone(), plugin: plugin.clone(), all: *all }, out)
        }
    }
}

/// What there is, from the daemon or the store.
pub(super) fn ask(config: &Config) -> Result<Quarantine, Failure> {
    match Client::connect(config)? {
        Some(mut daemon) => daemon.ask(&Request::Quarantine),
        None => {
            let found = open_store(config)?.map(|journal| quarantine::of_store(&journal));
            Ok(found.transpose().map_err(Failure::problem)?.unwrap_or_default())
        }
    }
}

fn list(found: &Quarantine, out: &mut Out) -> Result<Outcome, Failure> {
    if out.json {
        out.line(serde_json::to_string(found).map_err(Failure::problem)?)?;
        return Ok(Outcome::Done);
    }
    if found.runs.is_empty() && found.suspended.is_empty() {
        out.line("nothing has failed that is not done with")?;
    }
    let zone = Zone::of_process();
    found.suspended.iter().try_for_each(|row| out.line(suspended(row, &zone)))?;
    found.runs.iter().try_for_each(|run| out.paint(&row(run, &zone)))?;
    Ok(Outcome::Done)
}

fn suspended(row: &SuspendedLine, zone: &Zone) -> String {
    let (plugin, session) = (&row.plugin, row.path.display());
    let passed = match row.passed {
        0 => String::new(),
        1 => "; 1 entry passed without it".to_owned(),
        more => format!("; {more} entries passed without it"),
    };
    let since = row.since_ms.map(|at| zone.seconds(at));
    match (since, row.everywhere) {
        (Some(since), true) => format!("{plugin} is suspended everywhere, here since {since}: {session}{passed}"),
        (Some(since), false) => format!("{plugin} is suspended since {since}: {session}{passed}"),
        (None, _) => format!("{plugin} waits: {session}{passed}"),
    }
}

fn row(run: &FailedLine, zone: &Zone) -> Row {
    let ink = if run.retry_ms.is_some() { Ink::Plain } else { Ink::Yellow };
    let session: String = run.session.chars().take(8).collect();
    Row::new()
        .column(Ink::Plain, 9, &run.id)
        .column(Ink::Dim, 20, &zone.seconds(run.last_ms))
        .column(Ink::Plain, 9, &session)
        .column(Ink::Plain, 16, &run.plugin)
        .column(ink, 11, &run.state)
        .column(Ink::Plain, 9, &run.kind)
        .and(Ink::Dim, &format!("on {} ", run.trigger))
        .and(Ink::Plain, &run.message)
}

fn show(found: Quarantine, id: &str, out: &mut Out) -> Result<Outcome, Failure> {
    let none = || Failure::problem(format!("no failed run is called {id:?}; see `pi-graft quarantine list`"));
    let run = found.runs.into_iter().find(|run| run.id == id).ok_or_else(none)?;
    if out.json {
        out.line(serde_json::to_string(&run).map_err(Failure::problem)?)?;
        return Ok(Outcome::Done);
    }
    let zone = Zone::of_process();
    out.line(format!("{} of {} on {}: {}", run.handler, run.plugin, run.trigger, run.kind))?;
    out.line(format!("  {}", run.message))?;
    out.line(format!("  session  {} {}", run.session, run.path.unwrap_or_default().display()))?;
    out.line(format!("  digest   {}", run.digest))?;
    let (first, last) = (zone.seconds(run.first_ms), zone.seconds(run.last_ms));
    out.line(format!("  tried    {} times, first {first}, last {last}", run.tries))?;
    match run.retry_ms {
        Some(at) => out.line(format!("  again    {}", zone.seconds(at)))?,
        None => out.line(format!("  again    when a new version comes, or on `pi-graft quarantine retry {id}`"))?,
    }
    Ok(Outcome::Done)
}

fn retry(config: &Config, which: Retry, out: &mut Out) -> Result<Outcome, Failure> {
    let ids = which.ids.clone();
    let (done, when) = match Client::connect(config)? {
        Some(mut daemon) => (daemon.ask::<Retried>(&Request::Retry(which))?, "now"),
        None => (in_store(open_store(config)?, &which)?, "by the next `pi-graft run`, or `run --once`"),
    };
    let unknown: Vec<_> = ids.iter().filter(|id| !done.runs.contains(id)).collect();
    if out.json {
        out.line(serde_json::to_string(&done).map_err(Failure::problem)?)?;
    } else {
        match done.runs.len() {
            0 => out.line("no run that failed is meant, so none is made again")?,
            1 => out.line(format!("1 run is made again {when}"))?,
            more => out.line(format!("{more} runs are made again {when}"))?,
        }
        done.plugins.iter().try_for_each(|plugin| out.line(format!("{plugin} is not suspended any more")))?;
    }
    match unknown.first() {
        Some(id) => Err(Failure::problem(format!("no failed run is called {id:?}; see `pi-graft quarantine list`"))),
        None => Ok(Outcome::Done),
    }
}

fn in_store(journal: Option<Journal>, which: &Retry) -> Result<Retried, Failure> {
    let done = journal.map(|journal| quarantine::retry_in_store(&journal, which));
    Ok(done.transpose().map_err(Failure::problem)?.unwrap_or_default())
}
