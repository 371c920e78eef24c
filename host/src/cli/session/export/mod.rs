//! `session export`: a branch as a page to read, or as its lines.

mod article;
mod html;
mod lines;
mod message;
mod page;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::Branch;
use pi_session::tree::Status;
use serde_json::json;

use super::File;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::Opened;
use crate::cli::out::{Out, grouped};
use crate::cli::progress::Progress;
use crate::files::{shown, whole};

/// Arguments of `session export`.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    file: File,
    /// A page to read: one file that needs no network and runs no scripts.
    ///
    /// It has the branch with its messages, thinking, tool calls and results, compactions, context edits, labels and
    /// totals, and says of each message whether the model still sees it. What other branches hold is counted only.
    #[arg(long, required_unless_present = "jsonl", conflicts_with = "jsonl")]
    html: bool,
    /// The lines of the branch, byte for byte: a session of its own, which Pi can open.
    ///
    /// That is the header's line and those of the entries from the root to the leaf, labels and all, each as it stands and
    /// ended by a line end; nothing is migrated. What is not on the branch is left out: other branches, lines that are no
    /// entries, and the labels that other branches give.
    #[arg(long)]
    jsonl: bool,
    /// The entry that the branch ends in; default: where Pi would go on.
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    /// Write it to this file, which must not be there yet; default: standard output.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl Export {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        if opened.tree.status() == Status::NotBegun {
            let message =
                format!("{}: S2.3: the session has not begun; there is nothing to export", shown(&opened.path));
            return Err(Failure::Problem(message));
        }
        let branch = opened.branch(self.leaf.as_deref())?;
        // Until it is on the disk.
        let progress = Progress::of("writing", branch.items().map(|item| u64::from(item.facts.len)).sum());
        let Some(path) = &self.output else {
            self.write(&opened, &branch, &progress, out.raw()?)?;
            return Ok(Outcome::Done);
        };
        whole::create_like(path, &opened.reading.metadata()?, |to| self.write(&opened, &branch, &progress, to))?;
        drop(progress);
        let entries = branch.len();
        match out.json {
            true => out.line(json!({ "path": path.display().to_string(), "entries": entries }))?,
            false => out.line(format!("{}: {} entries", shown(path), grouped(u64::from(entries))))?,
        }
        Ok(Outcome::Done)
    }

    fn write(&self, opened: &Opened, branch: &Branch, progress: &Progress, to: &mut dyn Write) -> Result<(), Failure> {
        let write = if self.html { page::write } else { lines::write };
        write(opened, branch, progress, to)
    }
}
