//! `session rm`: sessions to the trash, or gone (S1.4).

use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::Tree;
use pi_session::tree::Status;
use serde_json::json;

use super::quiet;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::find;
use crate::cli::out::{Out, say};
use crate::cli::when::Zone;
use crate::config::Env;
use crate::daemon::world::now_ms;
use crate::files::append::Place;
use crate::files::tail::Reading;
use crate::files::trash::Trash;
use crate::files::{shown, whole};

/// Arguments of `session rm`.
#[derive(Debug, Args)]
pub struct Rm {
    /// The sessions: paths, session ids, or unique beginnings of them.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Delete them, rather than move them to the trash.
    #[arg(long)]
    permanently: bool,
    /// Also those that somebody wrote to within live-hold; never one that a bridged Pi has open.
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
        let place = self.look_at(path, config)?;
        let Some(home) = trash else {
            whole::delete(path, place)?;
            return Ok(None);
        };
        let deleted = Zone::of_process().date_time(now_ms());
        let to = Trash::of(path, home).and_then(|trash| trash.take(path, place, &deleted));
        Ok(Some(to.map_err(|error| Failure::problem(format!("{error}; --permanently deletes without the trash")))?))
    }

    /// What is to be removed, if it is a session that nobody writes to. Only its header is read.
    fn look_at(&self, path: &Path, config: Option<&Path>) -> Result<Place, Failure> {
        // What cannot be looked at is said when it is opened.
        if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
            let message = format!("{}: a link; name the session that it leads to", shown(path));
            return Err(Failure::Problem(message));
        }
        let reading = Reading::open(path)?;
        let place = Place::new(reading.id(), reading.metadata()?.len());
        if place.len > 0 && status(&reading)? != Status::Session {
            let message = format!("{}: S2.3: no Pi session, so it is left alone: it has no header", shown(path));
            return Err(Failure::Problem(message));
        }
        quiet::check(path, &reading, config, self.force)?;
        Ok(place)
    }
}

/// What kind of file it is, by the first line that means something.
fn status(reading: &Reading) -> Result<Status, Failure> {
    let mut tree = Tree::new();
    reading.lines(0, |offset, line| {
        tree.push(offset, line);
        tree.status() == Status::NotBegun
    })?;
    Ok(tree.status())
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
    if out.json {
        let (path, to) = (path.display().to_string(), to.map(|to| to.display().to_string()));
        return Ok(out.line(json!({ "removed": path, "trash": to }))?);
    }
    let where_to = to.map_or_else(|| "deleted".to_owned(), |to| format!("moved to {}", shown(to)));
    Ok(out.line(format!("{}: {where_to}", shown(path)))?)
}
