//! The toolbox: one session, looked at, checked or appended to (product.md section 3).

mod append;
mod context;
mod export;
mod fork;
mod list;
mod migrate;
mod plan;
pub(super) mod quiet;
mod remove;
mod shape;
mod show;
mod stats;
mod tree;
mod validate;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::failure::{Failure, Outcome};
use super::file_limit;
use super::find;
use super::open::Opened;
use super::out::Out;

/// What to do with a session.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the sessions below the configured roots, the newest first.
    Ls(list::Ls),
    /// Show the entries of a branch, or one entry as it stands.
    Show(show::Show),
    /// Show the tree of entries with its branches, labels and leaf.
    Tree(tree::Tree),
    /// Show what the model sees: the messages of a leaf after compactions and edits.
    Context(context::Context),
    /// Check a session against the rules of the format.
    Validate(validate::Validate),
    /// Count entries, tokens and cost.
    Stats(stats::Stats),
    /// Show the compaction that Pi would make now.
    PlanCompaction(plan::PlanCompaction),
    /// Append entries, each checked first, all or none.
    Append(append::Append),
    /// Write a session of version 1 or 2 as version 3; without -o or --in-place to standard output.
    Migrate(migrate::Migrate),
    /// Make a new session that goes on from a branch of this one.
    Fork(fork::Fork),
    /// Write a branch as a page to read, or as its lines.
    Export(export::Export),
    /// Move sessions to the desktop's trash, or delete them.
    Rm(remove::Rm),
}

/// A session, named on the command line.
#[derive(Debug, Args)]
pub struct File {
    /// The session: a path, a session id, or a unique beginning of one.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl File {
    /// The path that it means.
    fn path(&self, config: Option<&Path>) -> Result<PathBuf, Failure> {
        find::session_file(&self.file, config)
    }

    /// The session there.
    fn session(&self, config: Option<&Path>) -> Result<Opened, Failure> {
        Opened::session(&self.path(config)?)
    }
}

pub(super) fn run(command: &Command, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    if matches!(command, Command::Append(_) | Command::Migrate(_) | Command::Fork(_) | Command::Export(_)) {
        file_limit::outlast_without_runtime();
    }
    match command {
        Command::Ls(command) => command.run(config, out),
        Command::Show(command) => command.run(config, out),
        Command::Tree(command) => command.run(config, out),
        Command::Context(command) => command.run(config, out),
        Command::Validate(command) => command.run(config, out),
        Command::Stats(command) => command.run(config, out),
        Command::PlanCompaction(command) => command.run(config, out),
        Command::Append(command) => command.run(config, out),
        Command::Migrate(command) => command.run(config, out),
        Command::Fork(command) => command.run(config, out),
        Command::Export(command) => command.run(config, out),
        Command::Rm(command) => command.run(config, out),
    }
}
