//! What a guest is made of, as one digest: its crate, the SDK with the contract, the script that builds it, and the
//! packages of `Cargo.lock` that it depends on. If any of these changes, its `.wasm` is to be built anew. Beside that, what
//! is made of the contract itself: [`contract`].
pub mod contract;
pub mod reference;
pub mod typescript;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What all guests are made of.
const SHARED: [&str; 4] = ["plugin-api/Cargo.toml", "plugin-api/src", "plugin-api/wit", ".ci/guests"];

/// The digest of what the guest in `dir` is made of; `root` is the workspace.
///
/// # Errors
/// Names the file that cannot be read.
pub fn source_digest(root: &Path, dir: &Path) -> Result<String, String> {
    let mut files = BTreeSet::new();
    for part in SHARED.iter().map(Path::new).chain([dir]) {
        gather(root, part, &mut files)?;
    }
    let mut digest = Sha256::new();
    for file in files {
        let name = file.to_str().ok_or("a name that is not UTF-8")?;
        digest.update(format!("{name} {}\n", file_digest(&root.join(&file))?));
    }
    let manifest = read_toml(&root.join(dir).join("Cargo.toml"))?;
    let name = manifest["package"]["name"].as_str().ok_or("the package has no name")?;
    for package in locked(&read_toml(&root.join("Cargo.lock"))?, name)? {
        digest.update(package + "\n");
    }
    Ok(hex(&digest.finalize()))
}

/// The SHA-256 of a file, in hex.
///
/// # Errors
/// Names the file if it cannot be read.
pub fn file_digest(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(hex(&Sha256::digest(bytes)))
}

/// The files below a part of the workspace, or the part itself if it is a file. Tests do not get into the `.wasm`.
fn gather(root: &Path, part: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let path = root.join(part);
    if !path.is_dir() {
        files.insert(part.to_owned());
        return Ok(());
    }
    let failed = |error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(&path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != "tests" {
            gather(root, &part.join(name), files)?;
        }
    }
    Ok(())
}

/// The packages of the lock file that this one depends on, each with version and checksum.
fn locked(lock: &toml::Table, name: &str) -> Result<BTreeSet<String>, String> {
    let packages = lock["package"].as_array().ok_or("Cargo.lock has no packages")?;
    let text =
        |package: &toml::Value, key: &str| package.get(key).and_then(toml::Value::as_str).unwrap_or("").to_owned();
    let mut by_name: BTreeMap<String, Vec<&toml::Value>> = BTreeMap::new();
    for package in packages {
        by_name.entry(text(package, "name")).or_default().push(package);
    }
    let (mut found, mut open) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(wanted) = open.pop() {
        let (name, version) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        for package in by_name.get(name).into_iter().flatten().filter(|p| text(p, "version").starts_with(version)) {
            let line = format!("{name} {} {}", text(package, "version"), text(package, "checksum"));
            if found.insert(line) {
                let dependencies = package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten();
                open.extend(dependencies.filter_map(|dependency| dependency.as_str().map(str::to_owned)));
            }
        }
    }
    Ok(found)
}

fn read_toml(path: &Path) -> Result<toml::Table, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
