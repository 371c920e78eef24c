//! `session migrate`: an old session as version 3 (S11).

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::header::Version;
use pi_session::migrate::{MigrateError, Migration};
use pi_session::tree::Source;
use serde_json::json;

use super::validate::version;
use super::{File, quiet};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::Opened;
use crate::cli::out::Out;
use crate::cli::progress::Progress;
use crate::daemon::world::random;
use crate::files::{shown, whole};

/// Arguments of `session migrate`.
#[derive(Debug, Args)]
pub struct Migrate {
    #[command(flatten)]
    file: File,
    /// Write it to this file, which must not be there yet.
    #[arg(short, long, value_name = "OUT", conflicts_with = "in_place")]
    output: Option<PathBuf>,
    /// Put it in the session's place; the old one is kept beside it, as `….jsonl.bak`.
    #[arg(long)]
    in_place: bool,
    /// In place even if somebody wrote to the session within live-hold.
    #[arg(long, requires = "in_place")]
    force: bool,
}

impl Migrate {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        match &self.output {
            None if !self.in_place => write(&opened, &told(&opened), out.raw()?)?,
            None if is_current(&opened) => tell(&opened, &opened.path, None, out)?,
            None => {
                let backup = self.replace(&opened, config)?;
                tell(&opened, &opened.path, Some(&backup), out)?;
            }
            Some(path) => {
                let progress = told(&opened);
                whole::create_like(path, &opened.reading.metadata()?, |to| write(&opened, &progress, to))?;
                drop(progress);
                tell(&opened, path, None, out)?;
            }
        }
        Ok(Outcome::Done)
    }

    fn replace(&self, opened: &Opened, config: Option<&Path>) -> Result<PathBuf, Failure> {
        quiet::check(&opened.path, &opened.reading, config, self.force)?;
        let progress = told(opened);
        whole::replace(&opened.path, opened.place, |to| write(opened, &progress, to))
    }
}

/// How far the writing is, until it is on the disk.
fn told(opened: &Opened) -> Progress {
    Progress::of("writing", opened.place.len)
}

/// Writes the session as version 3, a line at a time.
pub(super) fn write(opened: &Opened, progress: &Progress, to: &mut dyn Write) -> Result<(), Failure> {
    let (reading, len) = (&opened.reading, opened.place.len);
    let problem = |error| Failure::problem(format!("{}: {error}", shown(&opened.path)));
    let version = opened.tree.header().map(|header| header.version).ok_or(MigrateError::NotASession);
    let mut random = random;
    let Some(mut migration) = Migration::of(version.map_err(problem)?, &mut random).map_err(problem)? else {
        return Ok(whole::copy(reading, 0, len, to, |more| progress.add(more))?);
    };
    let mut line = |line: &[u8]| {
        progress.add(line.len() as u64 + 1);
        to.write_all(&migration.line(line)).and_then(|()| to.write_all(b"\n"))
    };
    let mut written = Ok(());
    // What came behind the part that was read is no part of it.
    let end = reading.lines(0, |offset, text| {
        written = if offset + (text.len() as u64) < len { line(text) } else { Ok(()) };
        written.is_ok()
    })?;
    written?;
    if end < len {
        line(&reading.read(end, (len - end) as usize).map_err(Failure::problem)?)?;
    }
    Ok(())
}

fn is_current(opened: &Opened) -> bool {
    opened.tree.header().is_some_and(|header| header.version == Version::V3)
}

fn tell(opened: &Opened, written: &Path, backup: Option<&Path>, out: &mut Out) -> Result<(), Failure> {
    let (from, entries) = (version(&opened.tree), opened.tree.entries().len());
    let text = |path: &Path| path.display().to_string();
    if out.json {
        let backup = backup.map(text);
        let json =
            json!({ "path": text(written), "fromVersion": from, "version": 3, "entries": entries, "backup": backup });
        return Ok(out.line(json)?);
    }
    match (from, backup) {
        (Some(3), _) => out.line(format!("{}: version 3 already, {entries} entries", text(written)))?,
        _ => out.line(format!("{}: version 3, {entries} entries", text(written)))?,
    }
    if let Some(backup) = backup {
        out.line(format!("the old one is kept as {}", text(backup)))?;
    }
    Ok(())
}
