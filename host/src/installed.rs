//! Installed plugins: copies in a directory of the user's, with a record of what was installed.
//!
//! The record (`installed.json`) pins each to its SHA-256 and to the grants that the user accepted for it: a file that is
//! not the one that was installed is not loaded, and a grant that was not accepted for it is not given, until `plugin
//! install` is called again. A copy is written beside the old one and renamed over it, then the record: if the machine
//! stops in between, the plugin is refused as changed, and installing it again mends that.
#![expect(clippy::disallowed_methods, reason = "copies of plugins and their record; no session is near")]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The record's file.
const RECORD: &str = "installed.json";

/// What was installed under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The version that the plugin says it is.
    pub version: String,
    /// The SHA-256 of the file, hex.
    pub sha256: String,
    /// What the config may grant this very file.
    pub grants: Vec<String>,
    /// Where it was copied from.
    pub from: PathBuf,
}

/// Why an installed plugin cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum InstalledError {
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The record is damaged.
    #[error("{path}: {source}; remove it and install the plugins again", path = path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The file is not the one that was installed.
    #[error(
        "{path} was changed since it was installed (sha256 {found}, installed was {expected}): if you want the changed \
         one, accept it with `pi-graft plugin install {path}`",
        path = path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The digest that was installed.
        expected: String,
        /// What it is now.
        found: String,
    },
    /// There is none of this name.
    #[error("no plugin {0:?} is installed; `pi-graft plugin list` shows what is")]
    Unknown(String),
}

/// The directory of installed plugins.
#[derive(Debug, Clone)]
pub struct Installed {
    dir: PathBuf,
}

impl Installed {
    /// The plugins in this directory, which need not be there.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The file of a plugin, whether or not it is installed.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.wasm"))
    }

    /// What is installed, by name.
    ///
    /// # Errors
    /// [`InstalledError`] if the record cannot be read.
    pub fn list(&self) -> Result<BTreeMap<String, Pin>, InstalledError> {
        let path = self.dir.join(RECORD);
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|source| InstalledError::Record { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(source) => Err(InstalledError::Io { path, source }),
        }
    }

    /// An installed plugin: its bytes, which are those that were installed, and its pin.
    ///
    /// # Errors
    /// [`InstalledError::Unknown`], [`InstalledError::Changed`], or the file cannot be read.
    pub fn open(&self, name: &str) -> Result<(Vec<u8>, Pin), InstalledError> {
        let pin = self.list()?.remove(name).ok_or_else(|| InstalledError::Unknown(name.to_owned()))?;
        let path = self.file(name);
        let bytes = std::fs::read(&path).map_err(|source| InstalledError::Io { path: path.clone(), source })?;
        let found = digest(&bytes);
        if found == pin.sha256 {
            return Ok((bytes, pin));
        }
        Err(InstalledError::Changed { path, expected: pin.sha256, found })
    }

    /// Installs a plugin, in place of the one of that name if there is one; gives that one's pin.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn install(&self, name: &str, bytes: &[u8], pin: Pin) -> Result<Option<Pin>, InstalledError> {
        let mut all = self.list()?;
        let io = |source| InstalledError::Io { path: self.dir.clone(), source };
        std::fs::create_dir_all(&self.dir).map_err(io)?;
        self.replace(&self.file(name), bytes)?;
        let before = all.insert(name.to_owned(), pin);
        self.record(&all)?;
        Ok(before)
    }

    /// Removes an installed plugin.
    ///
    /// # Errors
    /// [`InstalledError::Unknown`], or it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<Pin, InstalledError> {
        let mut all = self.list()?;
        let pin = all.remove(name).ok_or_else(|| InstalledError::Unknown(name.to_owned()))?;
        self.record(&all)?;
        let path = self.file(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(InstalledError::Io { path, source }),
            _ => Ok(pin),
        }
    }

    fn record(&self, all: &BTreeMap<String, Pin>) -> Result<(), InstalledError> {
        let path = self.dir.join(RECORD);
        let record = |source| InstalledError::Record { path: path.clone(), source };
        let text = serde_json::to_string_pretty(all).map_err(record)?;
        self.replace(&path, (text + "\n").as_bytes())
    }

    /// Writes a file whole, or not at all.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), InstalledError> {
        let fresh = path.with_extension(format!("new-{}", std::process::id()));
        let done = std::fs::write(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, path));
        done.map_err(|source| {
            let _ = std::fs::remove_file(&fresh);
            InstalledError::Io { path: path.to_owned(), source }
        })
    }
}

/// The SHA-256 of bytes, hex.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(bytes: &[u8]) -> Pin {
        Pin { version: "1".into(), sha256: digest(bytes), grants: vec!["append:custom".into()], from: "/x".into() }
    }

    #[test]
    fn what_was_installed_is_what_is_loaded() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Installed::at(dir.path().join("plugins"));
        assert!(store.list().expect("nothing yet").is_empty());
        assert_eq!(store.install("p", b"one", pin(b"one")).expect("installed"), None);
        assert_eq!(store.open("p").expect("there").0, b"one");
        assert_eq!(store.install("p", b"two", pin(b"two")).expect("installed"), Some(pin(b"one")));
        assert_eq!(store.open("p").expect("there").0, b"two");
    }

    #[test]
    fn what_was_changed_since_is_refused_until_it_is_installed_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Installed::at(dir.path());
        store.install("p", b"good", pin(b"good")).expect("installed");
        std::fs::write(store.file("p"), b"evil").expect("written");
        let error = store.open("p").expect_err("it is another one");
        assert!(matches!(error, InstalledError::Changed { .. }) && error.to_string().contains("plugin install"));
        store.install("p", b"evil", pin(b"evil")).expect("accepted");
        assert_eq!(store.open("p").expect("there").0, b"evil");
    }

    #[test]
    fn what_is_removed_is_gone() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Installed::at(dir.path());
        store.install("p", b"x", pin(b"x")).expect("installed");
        store.remove("p").expect("removed");
        assert!(!store.file("p").exists());
        assert!(matches!(store.remove("p"), Err(InstalledError::Unknown(_))));
    }
}
