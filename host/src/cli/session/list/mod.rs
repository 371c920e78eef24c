//! `session ls`: the sessions that there are.

mod cache;
mod row;
mod table;

use std::path::{Path, PathBuf};

use clap::Args;

use self::cache::{Cache, Known, Listing, State};
use self::row::Row;
pub(super) use self::row::title;
use self::table::Table;
use crate::cli::cores::on_all_cores;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::find::{found_below, found_beside, say_trouble};
use crate::cli::out::{Out, say};
use crate::cli::place;
use crate::cli::progress::Progress;
use crate::config::{Config, Env};
use crate::daemon::world::now_ms;
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
        let cwd = self.cwd.as_deref().map(place::real).transpose()?;
        // A listing from which something is missing is not the listing that was asked for.
        let mut outcome = Outcome::Done;
        let mut trouble = |path: &Path, error| {
            outcome = Outcome::Problems;
            say_trouble(path, error);
        };
        let mut found = found_below(&config.watch.roots, &mut trouble);
        if let Some(cwd) = &cwd {
            found.extend(found_beside(&config.watch.roots, cwd, &mut trouble)?);
        }
        let modified = |found: &Found| found.meta.modified().ok();
        found.sort_by(|a, b| modified(b).cmp(&modified(a)).then_with(|| a.path.cmp(&b.path)));
        let rows = rows(&found, &mut outcome);
        let of_cwd = |row: &Row| cwd.as_deref().is_none_or(|cwd| row.cwd.as_deref().map(Path::new) == Some(cwd));
        let listed: Vec<(&Found, &Row)> =
            found.iter().zip(&rows).filter_map(|(found, row)| Some((found, row.as_ref()?))).collect();
        let shown: Vec<_> = listed.iter().copied().filter(|(_, row)| of_cwd(row)).collect();
        if out.json {
            write_json(&shown, out)?;
        } else if shown.is_empty() {
            let roots: Vec<_> = config.watch.roots.iter().map(|root| root.display().to_string()).collect();
            let whose = cwd.as_deref().map_or_else(String::new, |cwd| format!(" of {}", cwd.display()));
            say(format!("no sessions{whose} below {}", roots.join(", ")));
        } else {
            write_text(&listed, &shown, out)?;
        }
        Ok(outcome)
    }
}

fn write_json(shown: &[(&Found, &Row)], out: &mut Out) -> Result<(), Failure> {
    for (found, row) in shown {
        out.line(row.json(&found.path, modified_ms(found)?, found.meta.len()))?;
    }
    Ok(())
}

/// An id is cut to what names one of all sessions, not only of those that are shown.
fn write_text(listed: &[(&Found, &Row)], shown: &[(&Found, &Row)], out: &mut Out) -> Result<(), Failure> {
    let rows: Vec<&Row> = listed.iter().map(|(_, row)| *row).collect();
    let home = Env::of_process().home;
    let table = Table::of(&rows, now_ms(), home.as_deref(), out.width);
    if out.width < usize::MAX {
        out.paint(&table.head())?;
    }
    for (found, row) in shown {
        out.paint(&table.row(row, modified_ms(found)?, found.meta.len()))?;
    }
    Ok(())
}

fn modified_ms(found: &Found) -> Result<i64, Failure> {
    let since = found.meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(since.as_millis() as i64)
}

/// The row of each file; none for what is no session, or cannot be read. Only what changed since the last listing is read.
fn rows(found: &[Found], outcome: &mut Outcome) -> Vec<Option<Row>> {
    let cache = Cache::of_user();
    let mut listing = cache.as_ref().map(Cache::load).unwrap_or_default();
    let new: Vec<&Found> = found.iter().filter(|found| known(&listing, found).is_none()).collect();
    let progress = Progress::of("reading", new.iter().map(|found| found.meta.len()).sum());
    let read = on_all_cores(&new, |found| read(found, &progress));
    drop(progress);
    if new.iter().zip(&read).any(|(found, row)| row.is_none() && found.path.exists()) {
        *outcome = Outcome::Problems;
    }
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
fn read(found: &Found, progress: &Progress) -> Option<Option<Row>> {
    let row = Row::read(&found.path, progress);
    row.map_err(|failure| {
        if let Failure::Problem(message) | Failure::Usage(message) = failure {
            say(message);
        }
    })
    .ok()
}
