//! A `FILE` of the command line: a path, a session id, or a unique prefix of one (product.md section 3).

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use pi_session::Tree;
use pi_session::tree::Status;

use crate::config::{Config, Env};
use crate::files::locate::{self, Found};
use crate::files::shown;
use crate::files::tail::Reading;

use super::failure::Failure;
use super::out::say;
use super::place;

/// Sessions that are named at most where an id fits several.
const MOST: usize = 10;

/// The session file that `named` means. Ids are looked for below the roots of the config: in the names of files, and if
/// none has it there, in their headers.
///
/// # Errors
/// [`Failure::Usage`] if there is none, or more than one.
pub fn session_file(named: &Path, config: Option<&Path>) -> Result<PathBuf, Failure> {
    if (named.exists() && !named.is_dir()) || looks_like_path(named) {
        return there(named);
    }
    let id = named.to_string_lossy();
    let config = Config::find(config)?;
    let (roots, trouble) = (&config.watch.roots, &mut say_trouble);
    let found = match with_id(&found_below(roots, trouble), &id) {
        found if found.is_empty() => with_id(&found_beside(roots, &std::env::current_dir()?, trouble)?, &id),
        found => found,
    };
    match found.as_slice() {
        [only] => Ok(only.clone()),
        // What is to be said of a directory is said where it is opened.
        [] if named.is_dir() => Ok(named.to_path_buf()),
        [] => Err(Failure::Usage(none_found(&id, roots))),
        many => Err(Failure::Usage(many_found(&id, many))),
    }
}

/// A path that leads to nothing is wrong usage, as an id that is none is; what else is wrong with one shows when it is read.
fn there(named: &Path) -> Result<PathBuf, Failure> {
    match named.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = "no such file; `pi-graft session ls` lists what is there";
            Err(Failure::Usage(format!("{}: {why}", shown(named))))
        }
        _ => Ok(named.to_path_buf()),
    }
}

fn looks_like_path(named: &Path) -> bool {
    named.components().count() > 1 || named.is_absolute() || locate::is_session_name(named)
}

/// Those whose id is, else begins with, this. Nothing is no beginning.
fn with_id(all: &[Found], id: &str) -> Vec<PathBuf> {
    if id.is_empty() {
        return Vec::new();
    }
    let named = with_this_id(all, id, |path| id_of_name(path).map(str::to_owned));
    if named.is_empty() { with_this_id(all, id, id_of_header) } else { named }
}

fn with_this_id(all: &[Found], id: &str, id_of: impl Fn(&Path) -> Option<String>) -> Vec<PathBuf> {
    let paths = all.iter().map(|found| &found.path);
    let begins = paths.filter_map(|path| Some((path, id_of(path).filter(|other| other.starts_with(id))?)));
    let (exact, longer): (Vec<_>, Vec<_>) = begins.partition(|(_, other)| other == id);
    let found = if exact.is_empty() { longer } else { exact };
    found.into_iter().map(|(path, _)| path.clone()).collect()
}

/// The session id in a file's header, if it is a session.
fn id_of_header(path: &Path) -> Option<String> {
    let (reading, mut tree) = (Reading::open(path).ok()?, Tree::new());
    let to_header = |offset, line: &[u8]| {
        tree.push(offset, line);
        tree.status() == Status::NotBegun
    };
    reading.lines(0, to_header).ok()?;
    tree.header().map(|header| header.id.clone())
}

/// Hears of what cannot be read.
pub(super) type Trouble<'t> = &'t mut dyn FnMut(&Path, io::Error);

/// Every session below the roots, each once; what cannot be read is passed over and told.
pub(super) fn found_below(roots: &[PathBuf], trouble: Trouble<'_>) -> Vec<Found> {
    apart(roots).into_iter().flat_map(|root| locate::walk(root, trouble)).collect()
}

/// Sessions of a working directory that Pi keeps elsewhere than below the roots (S1.2), none below that place.
pub(super) fn found_beside(roots: &[PathBuf], cwd: &Path, trouble: Trouble<'_>) -> Result<Vec<Found>, Failure> {
    let dir = Env::of_process().pi_sessions_of(cwd)?;
    let dir_is = place::real_or_same(&dir);
    let is_below = roots.iter().any(|root| dir_is.starts_with(place::real_or_same(root)));
    Ok(if is_below { Vec::new() } else { locate::list(&dir, trouble) })
}

/// Says so.
pub(super) fn say_trouble(path: &Path, error: io::Error) {
    say(format!("{}: {error}", shown(path)));
}

/// The roots by the names that the config gives them, since a link may come to lead elsewhere; of those that are or lead to
/// the same directory, or into another one, the outermost.
pub(super) fn apart(roots: &[PathBuf]) -> Vec<&PathBuf> {
    let real: Vec<PathBuf> = roots.iter().map(|root| place::real_or_same(root)).collect();
    let within =
        |of: usize, other: usize| real[of].starts_with(&real[other]) && (real[of] != real[other] || other < of);
    let is_apart = |of: &usize| !(0..real.len()).any(|other| other != *of && within(*of, other));
    (0..roots.len()).filter(is_apart).map(|at| &roots[at]).collect()
}

/// The session id in a file's name, `<timestamp>_<id>.jsonl` (S1.1); the whole stem where it has no timestamp.
fn id_of_name(path: &Path) -> Option<&str> {
    let stem = path.file_stem()?.to_str()?;
    let is_time = |text: &str| text.contains('T') && text.starts_with(|c: char| c.is_ascii_digit());
    Some(stem.split_once('_').filter(|(time, _)| is_time(time)).map_or(stem, |(_, id)| id))
}

fn none_found(id: &str, roots: &[PathBuf]) -> String {
    let roots: Vec<_> = roots.iter().map(|root| shown(root)).collect();
    let roots = roots.join(", ");
    format!(
        "{}: no such file, and no session whose id begins so below {roots}; `pi-graft session ls` lists what is there",
        shown(Path::new(id))
    )
}

fn many_found(id: &str, many: &[PathBuf]) -> String {
    let (count, paths) = (many.len(), some(many.iter().map(|path| shown(path))));
    let id = shown(Path::new(id));
    format!("{id}: {count} sessions have an id that begins so; give more of it, or the path:{paths}")
}

/// Some of what is meant perhaps, a line each, and how many more there are.
pub(super) fn some(all: impl ExactSizeIterator<Item: Display>) -> String {
    let more = all.len().saturating_sub(MOST);
    let list: String = all.take(MOST).map(|one| format!("\n  {one}")).collect();
    if more > 0 { format!("{list}\n  and {more} more") } else { list }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(names: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let below = dir.path().join("--work--");
        std::fs::create_dir(&below).expect("made");
        names.iter().for_each(|name| std::fs::write(below.join(name), "").expect("written"));
        dir
    }

    fn found(dir: &tempfile::TempDir, id: &str) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        with_id(&found_below(&[dir.path().to_path_buf()], &mut say_trouble), id).iter().map(name).collect()
    }

    #[test]
    fn a_session_below_several_roots_is_found_once() {
        let dir = sessions(&["a.jsonl"]);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("--work--"), &link).expect("linked");
        let roots = [link, dir.path().join("--work--"), dir.path().to_path_buf(), dir.path().to_path_buf()];
        for roots in [&roots[..], &roots[..2], &roots[1..3], &roots[2..]] {
            assert_eq!(found_below(roots, &mut say_trouble).len(), 1, "{roots:?}");
        }
        let roots = [dir.path().join("--work--"), dir.path().join("none")];
        assert_eq!(found_below(&roots, &mut say_trouble).len(), 1);
    }

    #[test]
    fn an_id_or_the_beginning_of_one_finds_a_session() {
        let dir = sessions(&["2026-12-01T16-19-01-469Z_01aa.jsonl", "2026-12-01T16-19-02-469Z_01ab_c.jsonl", "x.txt"]);
        assert_eq!(found(&dir, "01aa"), ["2026-12-01T16-19-01-469Z_01aa.jsonl"]);
        assert_eq!(found(&dir, "01ab"), ["2026-12-01T16-19-02-469Z_01ab_c.jsonl"]);
        assert_eq!(found(&dir, "01").len(), 2);
        assert!(found(&dir, "2026").is_empty());
        assert!(found(&dir, "").is_empty());
    }

    #[test]
    fn a_whole_id_is_not_ambiguous_though_another_begins_with_it() {
        let dir = sessions(&["2026-12-01T16-19-01-469Z_a.jsonl", "2026-12-01T16-19-01-469Z_ab.jsonl"]);
        assert_eq!(found(&dir, "a"), ["2026-12-01T16-19-01-469Z_a.jsonl"]);
    }

    #[test]
    fn the_id_in_the_header_is_looked_for_where_no_name_has_it() {
        let dir = sessions(&["copied.jsonl", "other.jsonl", "none.jsonl"]);
        let header = |id| format!("\n{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\"}}\n");
        std::fs::write(dir.path().join("--work--/copied.jsonl"), header("01aa")).expect("written");
        std::fs::write(dir.path().join("--work--/other.jsonl"), header("copy")).expect("written");
        assert_eq!(found(&dir, "01a"), ["copied.jsonl"]);
        assert_eq!(found(&dir, "cop"), ["copied.jsonl"], "names come first");
    }

    #[test]
    fn a_file_of_another_name_goes_by_it() {
        assert_eq!(found(&sessions(&["my_notes.jsonl"]), "my_n"), ["my_notes.jsonl"]);
    }
}
