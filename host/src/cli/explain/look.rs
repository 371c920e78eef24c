//! The session that an entry is in, where nobody says which: all of them are looked through.

use std::path::{Path, PathBuf};

use memchr::memmem::Finder;
use pi_session::Tree;
use pi_session::json::{Json, quoted};
use pi_session::receipt::Receipt;
use pi_session::tree::Pushed;

use crate::cli::cores::on_all_cores;
use crate::cli::failure::Failure;
use crate::cli::find::{found_below, found_beside, say_trouble, some};
use crate::cli::progress::Progress;
use crate::config::Config;
use crate::files::shown;
use crate::files::tail::Reading;

/// Characters of an id without which it is not looked for everywhere: every session has some that begin with `a`.
const FEWEST: usize = 4;

/// The one session with an entry whose id is, else begins with, this.
///
/// # Errors
/// [`Failure::Usage`] if there is none, or more than one.
pub(super) fn session_with(entry: &str, config: &Config) -> Result<PathBuf, Failure> {
    if entry.chars().count() < FEWEST {
        let why = "is too little to look for in all sessions; give more of it, or name the session with --session";
        return Err(Failure::usage(format!("{entry:?} {why}")));
    }
    let roots = &config.watch.roots;
    let mut all = found_below(roots, &mut say_trouble);
    all.extend(found_beside(roots, &std::env::current_dir()?, &mut say_trouble)?);
    let paths: Vec<PathBuf> = all.into_iter().map(|found| found.path).collect();
    let bytes = paths.iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum();
    let progress = Progress::of("looking for it", bytes);
    let has = on_all_cores(&paths, |path| has_entry(path, entry, &progress));
    drop(progress);
    let found: Vec<(&PathBuf, bool)> =
        paths.iter().zip(has).filter_map(|(path, has)| Some((path, has.ok()??))).collect();
    let whole: Vec<_> = found.iter().filter(|(_, is_whole)| *is_whole).collect();
    let meant = if whole.is_empty() { found.iter().collect() } else { whole };
    match &meant[..] {
        [(only, _)] => Ok((*only).clone()),
        [] => {
            let roots: Vec<_> = roots.iter().map(|root| shown(root).to_string()).collect();
            let where_ = roots.join(", ");
            Err(Failure::usage(format!(
                "no session below {where_} has an entry whose id begins with {entry:?}; name another session with --session"
            )))
        }
        many => Err(Failure::usage(several(entry, many.iter().map(|(path, _)| path.as_path())))),
    }
}

/// Forks and copies have the entries of the session that they come from.
fn several<'p>(entry: &str, paths: impl ExactSizeIterator<Item = &'p Path>) -> String {
    let count = paths.len();
    let list = some(paths.map(shown));
    format!("{count} sessions have an entry whose id begins with {entry:?}; name one with --session:{list}")
}

/// Whether this is the id that is looked for, or one that merely begins so; none if neither.
fn fits(id: &str, named: &str) -> Option<bool> {
    id.starts_with(named).then_some(id.len() == named.len())
}

fn batch_of(line: &[u8]) -> Option<String> {
    Json::parse(line).ok().and_then(Receipt::of_entry).map(|receipt| receipt.batch)
}

/// Whether a session has an entry whose id begins so, and if so, whether one has just this id. Only lines in which the text
/// stands are looked at closer.
fn has_entry(path: &Path, entry: &str, progress: &Progress) -> std::io::Result<Option<bool>> {
    let quoted = quoted(entry);
    let finder = Finder::new(quoted.trim_end_matches('"'));
    let (mut tree, mut has) = (Tree::new(), None);
    let reading = Reading::open(path).map_err(std::io::Error::other)?;
    reading.lines(0, |offset, line| {
        progress.add(line.len() as u64 + 1);
        let is_head = tree.header().is_none();
        if (is_head || finder.find(line).is_some())
            && let Pushed::Entry(ix) = tree.push(offset, line)
        {
            has = has.max(fits(tree.id(ix), entry)).max(batch_of(line).and_then(|batch| fits(&batch, entry)));
        }
        has != Some(true)
    })?;
    Ok(has)
}
