//! Every case file means to us what it means to the real Pi: the answers were written down with the oracle.

mod common;

use std::path::{Path, PathBuf};

use common::js::Js;
use common::report::compare;

#[test]
fn the_sessions_a_real_pi_wrote_mean_what_pi_makes_of_them() {
    let compared = common::deep(|| compare_all("real", 20_000));
    assert!(compared >= 7, "the case files must be there");
}

#[test]
fn the_odd_files_mean_what_pi_makes_of_them() {
    let compared = common::deep(|| compare_all("odd", 5));
    assert!(compared >= 90, "the case files must be there");
}

/// Compares every file of a directory; the number of files.
fn compare_all(directory: &str, keep: u64) -> usize {
    let files = sessions(directory);
    let differing: Vec<_> = files.iter().filter_map(|file| differs(file, keep)).collect();
    assert!(differing.is_empty(), "{} files differ:\n{}", differing.len(), differing.join("\n"));
    files.len()
}

fn sessions(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(directory);
    let entries = std::fs::read_dir(directory).expect("the case files are in the repository");
    let files = entries.map(|entry| entry.expect("the directory can be read").path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|ext| ext == "jsonl")).collect();
    files.sort();
    files
}

fn differs(file: &Path, keep: u64) -> Option<String> {
    let session = std::fs::read(file).expect("a case file can be read");
    let pi = std::fs::read(file.with_extension("expected.json")).expect("each case has its answer");
    let difference = compare(&session, &Js::parse(&pi), keep).err()?;
    Some(format!("{}: {difference}", file.display()))
}
