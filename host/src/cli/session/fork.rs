//! `session fork`: a new session that goes on from a branch of another (S8.6).

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::fork::{ForkError, NewSession, Piece, Pieces, fork, fork_branch};
use pi_session::header::Version;
use pi_session::time::{iso, uuid_of_time};
use serde_json::json;

use super::{File, migrate};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::Opened;
use crate::cli::out::Out;
use crate::cli::place;
use crate::cli::progress::Progress;
use crate::config::Env;
use crate::daemon::world::{now_ms, random};
use crate::files::{shown, whole};

/// Arguments of `session fork`.
#[derive(Debug, Args)]
pub struct Fork {
    #[command(flatten)]
    file: File,
    /// The entry that the branch ends in; default: where Pi would go on.
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    /// The new session's working directory, which also says where it is put; default: as this one, beside it.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

impl Fork {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        let (dir, cwd) = self.place(&opened)?;
        let (now, parent) = (now_ms(), place::real(&opened.path)?);
        let (id, parent) = (uuid_of_time(now, random()), parent.display().to_string());
        let new = NewSession { id: &id, now_ms: now, cwd: &cwd, parent_session: Some(&parent) };
        let forked = self.pieces(&opened, &new)?;
        let path = dir.join(format!("{}_{id}.jsonl", iso(now).replace([':', '.'], "-")));
        std::fs::create_dir_all(&dir)?;
        // Until it is on the disk.
        let progress = Progress::of("writing", forked.pieces.iter().map(len_of).sum());
        whole::create_like(&path, &opened.reading.metadata()?, |to| write(&opened, &forked, &progress, to))?;
        drop(progress);
        let (path, entries) = (path.display().to_string(), forked.entries);
        if out.json {
            out.line(json!({ "path": path, "id": id, "cwd": cwd, "parentSession": parent, "entries": entries }))?;
        } else {
            out.line(format!("{path}: {entries} entries"))?;
        }
        Ok(Outcome::Done)
    }

    /// The new session's text. One of version 1 or 2 is migrated first, in memory: such sessions are old and small.
    fn pieces(&self, opened: &Opened, new: &NewSession<'_>) -> Result<Pieces, Failure> {
        let problem = |error: ForkError| failure(opened, &error);
        if opened.tree.header().is_none_or(|header| header.version >= Version::V3) {
            let branch = opened.branch(self.leaf.as_deref())?;
            return fork_branch(&branch, new, &mut random).map_err(problem);
        }
        let mut session = Vec::new();
        migrate::write(opened, &Progress::of("migrating", opened.place.len), &mut session)?;
        let forked = fork(&session, self.leaf.as_deref(), new, &mut random).map_err(problem)?;
        Ok(Pieces { pieces: vec![Piece::Text(forked.text)], entries: forked.entries })
    }

    /// Where the new session is put, and its working directory.
    fn place(&self, opened: &Opened) -> Result<(PathBuf, String), Failure> {
        if let Some(cwd) = &self.cwd {
            let cwd = place::real(cwd)?;
            return Ok((Env::of_process().pi_sessions_of(&cwd)?, cwd.display().to_string()));
        }
        let dir = place::real(&opened.path)?.parent().map(Path::to_path_buf).unwrap_or_default();
        let cwd = opened.tree.header().and_then(|header| header.cwd.clone());
        let cwd = cwd.map_or_else(|| std::env::current_dir().map(|dir| dir.display().to_string()), Ok)?;
        Ok((dir, cwd))
    }
}

fn len_of(piece: &Piece) -> u64 {
    match piece {
        Piece::Text(text) => text.len() as u64,
        Piece::Span { len, .. } => *len,
    }
}

fn write(opened: &Opened, forked: &Pieces, progress: &Progress, to: &mut dyn Write) -> Result<(), Failure> {
    for piece in &forked.pieces {
        match piece {
            Piece::Text(text) => {
                to.write_all(text)?;
                progress.add(text.len() as u64);
            }
            Piece::Span { offset, len } => whole::copy(&opened.reading, *offset, *len, to, |more| progress.add(more))?,
        }
    }
    Ok(())
}

fn failure(opened: &Opened, error: &ForkError) -> Failure {
    let message = format!("{}: {error}", shown(&opened.path));
    if matches!(error, ForkError::NoEntry(_)) { Failure::Usage(message) } else { Failure::Problem(message) }
}
