//! The command line: arguments in, text or JSON out. No logic of its own.
//!
//! Each command is one file here, with its arguments, their help and what it prints in one place. Answers go to standard
//! output, one JSON document with `--json`; whatever else is to be said goes to standard error. Exit codes: 0 done, 1
//! problems, 2 wrong usage or config.

mod around;
mod bridge;
mod compact;
mod config;
mod control;
mod cores;
mod demo;
mod direct;
mod explain;
mod failure;
mod file_limit;
mod find;
mod load;
mod log;
mod memory;
mod open;
mod out;
mod paint;
mod place;
mod plugin;
mod preview;
mod progress;
mod quarantine;
mod replay;
mod run;
mod runlog;
mod service;
mod session;
mod shell;
mod text;
mod undo;
mod when;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::sandbox::{COMPILE, SMALL, serve_compiler};

pub use failure::{Failure, Outcome};
pub use out::{Out, answer, say};

/// Sandboxed WebAssembly plugins for the sessions of the Pi coding agent.
///
/// pi-graft watches Pi's session files, runs plugins on every new entry, and appends what they propose, each entry checked
/// against the format first. Nothing that a session holds is ever changed.
#[derive(Debug, Parser)]
#[command(name = "pi-graft", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// The config; default: ~/.config/pi-graft/config.toml if there is one, else the shipped one.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One JSON document on standard output (a line each, where there are many).
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See it work: a sample session, the real daemon, the shipped plugin; nothing of yours is touched.
    Demo(demo::DemoArgs),
    /// Follow Pi sessions, run the plugins on every new entry, and graft what they propose.
    Run(run::RunArgs),
    /// Run plugins over recorded sessions, entry by entry, as if live; writes nothing.
    Replay(replay::ReplayArgs),
    /// Compact one session now, with the compaction plugin of the config.
    Compact(compact::CompactArgs),
    /// What the running daemon follows, what waits and why, what failed last.
    Status(control::StatusArgs),
    /// What ran, and what became of each graft.
    Log(control::LogArgs),
    /// Run nothing and write nothing until `resume`; nothing is lost meanwhile. A restart ends it too.
    Pause(control::PauseArgs),
    /// End a pause.
    Resume(control::PauseArgs),
    /// Read config and plugins again, without losing an entry.
    Reload,
    /// Why an entry is there: whose graft it is, or what ran on it and what came of that.
    Explain(explain::ExplainArgs),
    /// Runs that failed, and plugins that are suspended: look at them, make them again.
    #[command(subcommand)]
    Quarantine(quarantine::Command),
    /// Take back what a plugin did in a session, by further edits.
    Undo(undo::UndoArgs),
    /// Look at a session, check it, or append to it; no daemon is needed.
    #[command(subcommand)]
    Session(session::Command),
    /// Make a plugin, build it, look at it, try it, install it.
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Write a config to begin with, check one, or show what is in effect.
    #[command(subcommand)]
    Config(config::Command),
    /// Connect running Pis with the daemon: install, remove or look for the extension that does it.
    #[command(subcommand)]
    Bridge(bridge::Command),
    /// Have the daemon started at login, and again after a failure.
    #[command(subcommand)]
    Service(service::Command),
    /// Print completions for a shell.
    Completions(shell::Completions),
    /// Print the manual page, or write a page for each command into a directory.
    Man(shell::Man),
}

/// Runs the command that the arguments of this process name.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    // No command of the user's: this program calls itself.
    if args.first().is_some_and(|first| first == COMPILE) {
        return serve_compiler(args.iter().any(|arg| arg == SMALL));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(&cli) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Problems) => ExitCode::from(1),
        Err(failure) => {
            if let Failure::Usage(message) | Failure::Problem(message) = &failure {
                say(format!("pi-graft: {message}"));
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run(cli: &Cli) -> Result<Outcome, Failure> {
    progress::allow(cli.json);
    let mut out = Out::stdout(cli.json);
    let outcome = match &cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Run(args) => run::run(args, cli.config.as_deref(), cli.json),
        Command::Replay(args) => replay::run(args, cli.config.as_deref(), &mut out),
        Command::Compact(args) => compact::run(args, cli.config.as_deref(), &mut out),
        Command::Status(args) => control::status(args, cli.config.as_deref(), &mut out),
        Command::Log(args) => control::log(args, cli.config.as_deref(), &mut out),
        Command::Pause(args) => control::pause(args, true, cli.config.as_deref(), &mut out),
        Command::Resume(args) => control::pause(args, false, cli.config.as_deref(), &mut out),
        Command::Reload => control::reload(cli.config.as_deref(), &mut out),
        Command::Explain(args) => explain::run(args, cli.config.as_deref(), &mut out),
        Command::Quarantine(command) => quarantine::run(command, cli.config.as_deref(), &mut out),
        Command::Undo(args) => undo::run(args, cli.config.as_deref(), &mut out),
        Command::Session(command) => session::run(command, cli.config.as_deref(), &mut out),
        Command::Plugin(command) => plugin::run(command, cli.config.as_deref(), &mut out),
        Command::Config(command) => config::run(command, cli.config.as_deref(), &mut out),
        Command::Bridge(command) => bridge::run(command, &mut out),
        Command::Service(command) => service::run(command, cli.config.as_deref(), &mut out),
        Command::Completions(command) => command.run(&mut out),
        Command::Man(command) => command.run(&mut out),
    }?;
    out.finish()?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_make_sense() {
        super::Cli::command().debug_assert();
    }
}
