//! `session ls`: the sessions that there are.

mod cache;
mod row;

use std::path::{Path, PathBuf};

use clap::Args;

use self::cache::{Cache, Known, Listing, State};
use self::row::Row;
use crate::cli::cores::on_all_cores;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::find::found_below;
use crate::cli::out::{Out, say};
use crate::config::Config;
use crate::files::locate::Found;

/// Arguments of `session ls`.
#[derive(Debug, Args)]
pub struct Ls {
    /// Only sessions of this working directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

impl Ls {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let config = Config::find(config)?;
        let cwd = self.cwd.as_deref().map(std::path::absolute).transpose()?;
        let mut found: Vec<Found> = config.watch.roots.iter().flat_map(|root| found_below(root)).collect();
        let modified = |found: &Found| found.meta.modified().ok();
        found.sort_by(|a, b| modified(b).cmp(&modified(a)).then_with(|| a.path.cmp(&b.path)));
        found.dedup_by(|a, b| a.path == b.path);
        let rows = rows(&found);
        let of_cwd = |row: &&Row| cwd.as_deref().is_none_or(|cwd| row.cwd.as_deref().map(Path::new) == Some(cwd));
        let mut none = true;
        for (found, row) in found.iter().zip(&rows) {
            let Some(row) = row.as_ref().filter(of_cwd) else { continue };
            none = false;
            write(found, row, out)?;
        }
        if none && !out.json {
            let roots: Vec<_> = config.watch.roots.iter().map(|root| root.display().to_string()).collect();
            say(format!("no sessions below {}", roots.join(", ")));
        }
        Ok(Outcome::Done)
    }
}

fn write(found: &Found, row: &Row, out: &mut Out) -> Result<(), Failure> {
    let modified = found.meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (modified_ms, bytes) = (modified.as_millis() as i64, found.meta.len());
    if out.json {
        out.line(row.json(&found.path, modified_ms, bytes))?;
    } else {
        out.row(&row.text(modified_ms, bytes))?;
    }
    Ok(())
}

/// The row of each file; none for what is no session. Only what changed since the last listing is read.
fn rows(found: &[Found]) -> Vec<Option<Row>> {
    let cache = Cache::of_user();
    let mut listing = cache.as_ref().map(Cache::load).unwrap_or_default();
    let new: Vec<&Found> = found.iter().filter(|found| known(&listing, found).is_none()).collect();
    let read = on_all_cores(&new, |found| read(found));
    let mut rows = read.iter();
    let of = |found: &Found| match known(&listing, found) {
        Some(known) => known.row.clone(),
        None => rows.next().cloned().flatten().flatten(),
    };
    let all = found.iter().map(of).collect();
    if !new.is_empty() {
        listing.retain(|path, _| Path::new(path).exists());
        listing.extend(new.iter().zip(read).filter_map(|(found, row)| keep(found, row?)));
        // Without a cache the next listing takes longer, no more.
        let _ = cache.map(|cache| cache.store(&listing));
    }
    all
}

fn known<'l>(listing: &'l Listing, found: &Found) -> Option<&'l Known> {
    listing.get(found.path.to_str()?).filter(|known| known.state == State::of(&found.meta))
}

/// The state is that from before the file was read, so what came since is seen the next time.
fn keep(found: &Found, row: Option<Row>) -> Option<(String, Known)> {
    Some((found.path.to_str()?.to_owned(), Known { state: State::of(&found.meta), row }))
}

/// What cannot be read is said, passed over, and read again the next time.
fn read(found: &Found) -> Option<Option<Row>> {
    let row = Row::read(&found.path);
    row.map_err(|failure| {
        if let Failure::Problem(message) | Failure::Usage(message) = failure {
            say(message);
        }
    })
    .ok()
}
