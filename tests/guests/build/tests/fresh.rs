//! Every committed `.wasm` is what its record says, and the record is of the sources as they are: nobody forgets to
//! build anew. Needs no wasm toolchain.
use std::fs;
use std::path::{Path, PathBuf};

use guest_build::{file_digest, source_digest};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The value behind a key in a record.
fn recorded(record: &str, key: &str) -> String {
    let line = record.lines().find_map(|line| line.strip_prefix(key)).expect("the record has the key");
    line.trim().to_owned()
}

fn check(crates: &str, prebuilt: &str) {
    let root = root();
    for file in fs::read_dir(root.join(prebuilt)).expect("there are prebuilt guests") {
        let wasm = file.expect("a directory entry").path();
        if wasm.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        let name = wasm.file_stem().expect("a file has a name").to_str().expect("a plain name");
        let record = fs::read_to_string(wasm.with_extension("sources")).expect("each .wasm has its record");
        let sources = source_digest(&root, &Path::new(crates).join(name)).expect("the sources are there");
        let stale = format!("{name}: its sources have changed; run .ci/guests and commit what it makes");
        assert_eq!(recorded(&record, "sources"), sources, "{stale}");
        assert_eq!(recorded(&record, "wasm"), file_digest(&wasm).expect("it was there"), "{name}: not what was built");
    }
}

#[test]
fn the_test_guests_are_of_these_sources() {
    check("tests/guests", "tests/guests/prebuilt");
}

#[test]
fn the_shipped_plugins_are_of_these_sources() {
    check("plugins", "plugins/prebuilt");
}
