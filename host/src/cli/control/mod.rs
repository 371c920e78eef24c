//! `pi-graft status`, `log`, `pause`, `resume`, `reload`: talking to the running daemon over its socket.

mod client;
mod log;
pub(super) mod status;
pub(super) mod store;

use std::io::Write;
use std::path::Path;

use crate::config::Config;
use crate::journal::Journal;
use crate::wire::control::{LogFilter, LogLine, Reloaded, Request, Status};

use super::{Failure, Out, Outcome, say};
pub(super) use client::{Client, understood};

/// What the running daemon follows, what waits and why, what failed last.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusArgs {
    /// Every session that is known, not only those with something to say
    #[arg(long)]
    pub all: bool,
}

/// What ran, and what became of each graft, newest last.
#[derive(Clone, Debug, clap::Args)]
pub struct LogArgs {
    /// How many lines, at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub most: usize,
    /// Only of the session whose id begins so
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only of this plugin
    #[arg(long, value_name = "NAME")]
    pub plugin: Option<String>,
    /// Go on with each new line
    #[arg(short, long)]
    pub follow: bool,
}

/// Pause or resume.
#[derive(Clone, Debug, clap::Args)]
pub struct PauseArgs {
    /// Only the session whose id begins so
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

/// `pi-graft status`.
///
/// # Errors
/// [`Failure`] if neither daemon nor store can be asked.
pub fn status(args: &StatusArgs, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let config = Config::find(config)?;
    let Some(mut daemon) = Client::connect(&config)? else { return without_daemon(&config, out) };
    let status: Status = daemon.ask(&Request::Status { all: args.all })?;
    status::write(&status, out)?;
    Ok(Outcome::Done)
}

/// What the store alone says. That no daemon runs is a problem, to whoever asks for its status.
fn without_daemon(config: &Config, out: &mut Out) -> Result<Outcome, Failure> {
    say("no daemon runs for this config; start one with `pi-graft run`");
    let journal = open_store(config)?;
    let status = journal.map_or_else(|| Ok(Status::default()), |journal| status::of_store(&journal));
    status::write(&status.map_err(Failure::problem)?, out)?;
    Ok(Outcome::Problems)
}

/// The store, if there is one. Looking never makes one.
pub(super) fn open_store(config: &Config) -> Result<Option<Journal>, Failure> {
    Journal::is_in(&config.state.dir).then(|| store::open(config, "a `pi-graft run --once`")).transpose()
}

/// `pi-graft log`; without a daemon the store is read.
///
/// # Errors
/// [`Failure`] if neither can be asked.
pub fn log(args: &LogArgs, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let config = Config::find(config)?;
    let filter = LogFilter { session: args.session.clone(), plugin: args.plugin.clone() };
    let Some(mut daemon) = Client::connect(&config)? else {
        if args.follow {
            return Err(Failure::problem("no daemon runs for this config; start one with `pi-graft run`"));
        }
        let lines = open_store(&config)?.map(|journal| log::of_store(&journal, args.most, &filter));
        log::write(&lines.transpose().map_err(Failure::problem)?.unwrap_or_default(), out)?;
        return Ok(Outcome::Done);
    };
    daemon.say(&Request::Log { most: args.most, filter, follow: args.follow })?;
    while let Some(lines) = daemon.hear::<Vec<LogLine>>()? {
        log::write(&lines, out)?;
        out.flush()?;
    }
    Ok(Outcome::Done)
}

/// `pi-graft pause` and `pi-graft resume`.
///
/// # Errors
/// [`Failure`] if no daemon runs, or it does not know the session.
pub fn pause(args: &PauseArgs, paused: bool, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let mut daemon = Client::needed(&Config::find(config)?)?;
    let session = args.session.clone();
    let request = if paused { Request::Pause { session } } else { Request::Resume { session } };
    let path: Option<std::path::PathBuf> = daemon.ask(&request)?;
    if out.json {
        out.line(serde_json::json!({ "paused": paused, "session": path }))?;
    } else {
        let what = path.map_or_else(|| "everything".to_owned(), |path| path.display().to_string());
        out.line(format!("{}: {what}", if paused { "paused" } else { "resumed" }))?;
    }
    Ok(Outcome::Done)
}

/// `pi-graft reload`.
///
/// # Errors
/// [`Failure`] if no daemon runs, or the new config does not hold.
pub fn reload(config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let unchanged = |e| Failure::usage(format!("{e}\nnothing is changed: the daemon goes on as before"));
    let mut daemon = Client::needed(&Config::find(config).map_err(unchanged)?)?;
    let done: Reloaded = daemon.ask(&Request::Reload)?;
    let faults = done.plugins.iter().any(|plugin| plugin.why.is_some());
    if out.json {
        out.line(serde_json::to_string(&done).map_err(Failure::problem)?)?;
    } else {
        out.line("reloaded")?;
        status::write_plugins(&done.plugins, out)?;
    }
    Ok(if faults { Outcome::Problems } else { Outcome::Done })
}
