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

/// Checks every guest among these crates; says how many there are.
fn check(crates: &str, prebuilt: &str) -> usize {
    let root = root();
    let dirs = fs::read_dir(root.join(crates)).expect("there are guests");
    let names = dirs.map(|dir| dir.expect("a directory entry").file_name().into_string().expect("a plain name"));
    let is_guest = |name: &String| name != "build" && root.join(crates).join(name).join("Cargo.toml").exists();
    let names: Vec<_> = names.filter(is_guest).collect();
    for name in &names {
        let stale = format!("{name}: its sources have changed; run .ci/guests and commit what it makes");
        let wasm = root.join(prebuilt).join(name).with_extension("wasm");
        let record = fs::read_to_string(wasm.with_extension("sources")).unwrap_or_else(|_| panic!("{stale}"));
        let sources = source_digest(&root, &Path::new(crates).join(name)).expect("the sources are there");
        assert_eq!(recorded(&record, "sources"), sources, "{stale}");
        assert_eq!(recorded(&record, "wasm"), file_digest(&wasm).expect("it is there"), "{name}: not what was built");
    }
    names.len()
}

#[test]
fn the_test_guests_are_of_these_sources() {
    assert!(check("tests/guests", "tests/guests/prebuilt") > 0);
}

#[test]
fn the_shipped_plugins_are_of_these_sources() {
    check("plugins", "plugins/prebuilt");
}
