//! `session rm`: sessions to the trash, or gone (S1.4).

use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::time::iso;
use serde_json::json;

use super::quiet;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::find;
use crate::cli::open::Opened;
use crate::cli::out::{Out, say};
use crate::config::Env;
use crate::daemon::world::now_ms;
use crate::files::whole;

/// Arguments of `session rm`.
#[derive(Debug, Args)]
pub struct Rm {
    /// The sessions: paths, session ids, or unique beginnings of them.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Delete them, rather than move them to the trash.
    #[arg(long)]
    permanently: bool,
    /// Also those that somebody wrote to within live-hold.
    #[arg(long)]
    force: bool,
}

impl Rm {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let paths = self.files.iter().map(|file| find::session_file(file, config));
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let trash = if self.permanently { None } else { Some(desktop_trash()?) };
        let mut outcome = Outcome::Done;
        for path in &paths {
            match self.remove(path, trash.as_deref(), config) {
                Ok(to) => tell(path, to.as_deref(), out)?,
                Err(Failure::Problem(message)) => {
                    say(message);
                    outcome = Outcome::Problems;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(outcome)
    }

    /// Removes one; gives its place in the trash.
    fn remove(&self, path: &Path, trash: Option<&Path>, config: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        let opened = Opened::session(path)?;
        if !self.force {
            quiet::check(&opened, config)?;
        }
        let Some(trash) = trash else {
            whole::delete(path, opened.place)?;
            return Ok(None);
        };
        // The time zone is not known here: the date in the trash is UTC's.
        let deleted = &iso(now_ms())[..19];
        let to = whole::trash(path, opened.place, trash, deleted);
        Ok(Some(to.map_err(|error| Failure::problem(format!("{error}; --permanently deletes without the trash")))?))
    }
}

/// The desktop's trash. Without a desktop there is nobody who would ever look into one.
fn desktop_trash() -> Result<PathBuf, Failure> {
    let trash = Env::of_process().trash_dir()?;
    if trash.is_dir() {
        return Ok(trash);
    }
    let message = format!("there is no trash at {}; --permanently deletes without one", trash.display());
    Err(Failure::Usage(message))
}

fn tell(path: &Path, to: Option<&Path>, out: &mut Out) -> Result<(), Failure> {
    let (path, to) = (path.display().to_string(), to.map(|to| to.display().to_string()));
    if out.json {
        return Ok(out.line(json!({ "removed": path, "trash": to }))?);
    }
    let where_to = to.map_or_else(|| "deleted".to_owned(), |to| format!("moved to {to}"));
    Ok(out.line(format!("{path}: {where_to}"))?)
}
