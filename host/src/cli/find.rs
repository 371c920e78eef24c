//! A `FILE` of the command line: a path, a session id, or a unique prefix of one (product.md section 3).

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::files::locate::{self, Found};

use super::failure::Failure;
use super::out::say;

/// The session file that `named` means. Ids are looked for below the roots of the config.
///
/// # Errors
/// [`Failure::Usage`] if there is none, or more than one.
pub fn session_file(named: &Path, config: Option<&Path>) -> Result<PathBuf, Failure> {
    if named.exists() || looks_like_path(named) {
        return Ok(named.to_path_buf());
    }
    let id = named.to_string_lossy();
    let config = Config::find(config)?;
    let found = with_id(&config.watch.roots, &id);
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::Usage(none_found(&id, &config.watch.roots))),
        many => Err(Failure::Usage(many_found(&id, many))),
    }
}

fn looks_like_path(named: &Path) -> bool {
    named.components().count() > 1 || named.is_absolute() || locate::is_session_name(named)
}

/// Sessions whose id is, else begins with, this.
fn with_id(roots: &[PathBuf], id: &str) -> Vec<PathBuf> {
    let all: Vec<PathBuf> = roots.iter().flat_map(|root| found_below(root)).map(|found| found.path).collect();
    let that = |fits: &dyn Fn(&str) -> bool| -> Vec<PathBuf> {
        all.iter().filter(|path| id_of_name(path).is_some_and(fits)).cloned().collect()
    };
    let exact = that(&|other| other == id);
    if exact.is_empty() { that(&|other| other.starts_with(id)) } else { exact }
}

/// Every session below a root; what cannot be read is said and passed over.
pub(super) fn found_below(root: &Path) -> Vec<Found> {
    let mut trouble = |path: &Path, error: std::io::Error| say(format!("{}: {error}", path.display()));
    locate::walk(root, &mut trouble)
}

/// Every session in a directory, none below it; what cannot be read is said and passed over.
pub(super) fn found_in(dir: &Path) -> Vec<Found> {
    let mut trouble = |path: &Path, error: std::io::Error| say(format!("{}: {error}", path.display()));
    locate::list(dir, &mut trouble)
}

/// The session id in a file's name, `<timestamp>_<id>.jsonl` (S1.1); the whole stem where it has no timestamp.
fn id_of_name(path: &Path) -> Option<&str> {
    let stem = path.file_stem()?.to_str()?;
    let is_time = |text: &str| text.contains('T') && text.starts_with(|c: char| c.is_ascii_digit());
    Some(stem.split_once('_').filter(|(time, _)| is_time(time)).map_or(stem, |(_, id)| id))
}

fn none_found(id: &str, roots: &[PathBuf]) -> String {
    let roots: Vec<_> = roots.iter().map(|root| root.display().to_string()).collect();
    format!("{id}: no such file, and no session whose id begins so below {}", roots.join(", "))
}

fn many_found(id: &str, many: &[PathBuf]) -> String {
    let shown: Vec<_> = many.iter().take(10).map(|path| format!("\n  {}", path.display())).collect();
    format!("{id}: {} sessions have an id that begins so; give more of it:{}", many.len(), shown.concat())
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
        with_id(&[dir.path().to_path_buf()], id).iter().map(name).collect()
    }

    #[test]
    fn an_id_or_the_beginning_of_one_finds_a_session() {
        let dir = sessions(&["2026-12-01T16-19-01-469Z_01aa.jsonl", "2026-12-01T16-19-02-469Z_01ab_c.jsonl", "x.txt"]);
        assert_eq!(found(&dir, "01aa"), ["2026-12-01T16-19-01-469Z_01aa.jsonl"]);
        assert_eq!(found(&dir, "01ab"), ["2026-12-01T16-19-02-469Z_01ab_c.jsonl"]);
        assert_eq!(found(&dir, "01").len(), 2);
        assert!(found(&dir, "2026").is_empty());
    }

    #[test]
    fn a_whole_id_is_not_ambiguous_though_another_begins_with_it() {
        let dir = sessions(&["2026-12-01T16-19-01-469Z_a.jsonl", "2026-12-01T16-19-01-469Z_ab.jsonl"]);
        assert_eq!(found(&dir, "a"), ["2026-12-01T16-19-01-469Z_a.jsonl"]);
    }

    #[test]
    fn a_file_of_another_name_goes_by_it() {
        assert_eq!(found(&sessions(&["my_notes.jsonl"]), "my_n"), ["my_notes.jsonl"]);
    }
}
