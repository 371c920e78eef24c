//! Installed plugins: copies in a directory of the user's, with a record of what was installed.
//!
//! The record (`installed.json`) pins each to its SHA-256 and to the grants that the user accepted for it: a file that is
//! not the one that was installed is not loaded, and a grant that was not accepted for it is not given, until `plugin
//! install` is called again.
//!
//! | the process died | the record says | the file is | what is loaded |
//! | --- | --- | --- | --- |
//! | before the record knows of the new one | old | old | old |
//! | before the copy is renamed over the old one | old, and that new comes | old | old |
//! | before the record forgets the old one | old, and that new comes | new | new, with the grants that were accepted for it |
//! | in a removal, before the copy is removed | nothing | there | nothing |
//!
//! One process at a time changes anything; whoever reads meanwhile sees one of these lines.
#![expect(clippy::disallowed_types, reason = "copies of plugins and their record; no session is near")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pi_session::figures::hex;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::put::{put, sweep, take_away};

/// The record's file.
const RECORD: &str = "installed.json";
/// How often a plugin is read again that is being installed at this moment.
const TRIES: u32 = 5;

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

/// A line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(flatten)]
    pin: Pin,
    /// The one that is about to take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Pin>,
}

impl Entry {
    /// The pin of the file with this digest.
    fn of(self, digest: &str) -> Result<Pin, String> {
        let expected = self.pin.sha256.clone();
        let known = [Some(self.pin), self.next].into_iter().flatten();
        known.into_iter().find(|pin| pin.sha256 == digest).ok_or(expected)
    }
}

type Record = BTreeMap<String, Entry>;

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
        Ok(self.read()?.into_iter().map(|(name, entry)| (name, entry.pin)).collect())
    }

    fn read(&self) -> Result<Record, InstalledError> {
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
        let entry = || self.read()?.remove(name).ok_or_else(|| InstalledError::Unknown(name.to_owned()));
        let (path, mut seen) = (self.file(name), entry()?);
        for _ in 0..TRIES {
            let read = component_at(&path);
            // It may have been installed anew, or removed, since the record was read.
            let now = entry()?;
            if now != std::mem::replace(&mut seen, now.clone()) {
                continue;
            }
            let bytes = read.map_err(|source| InstalledError::Io { path: path.clone(), source })?;
            let found = digest(&bytes);
            return match now.of(&found) {
                Ok(pin) => Ok((bytes, pin)),
                Err(expected) => Err(InstalledError::Changed { path, expected, found }),
            };
        }
        let source = io::Error::other("it is installed anew all the time; try again");
        Err(InstalledError::Io { path, source })
    }

    /// Installs a plugin, in place of the one of that name if there is one; gives that one's pin.
    ///
    /// # Errors
    /// If it cannot be written; then the one that was there is as it was.
    pub fn install(&self, name: &str, bytes: &[u8], pin: Pin) -> Result<Option<Pin>, InstalledError> {
        let _alone = self.alone()?;
        let mut record = self.read()?;
        let before = self.announce(&mut record, name, pin.clone())?;
        self.put(&self.file(name), bytes)?;
        record.insert(name.to_owned(), Entry { pin, next: None });
        self.write(&record)?;
        Ok(before)
    }

    /// Says in the record what is to take the place of the one that is there; gives that one's pin.
    fn announce(&self, record: &mut Record, name: &str, next: Pin) -> Result<Option<Pin>, InstalledError> {
        let Some(entry) = record.get(name).cloned() else { return Ok(None) };
        // Where another one was on its way, it is the file that tells which of them is there.
        let there = component_at(&self.file(name)).map(|bytes| digest(&bytes)).unwrap_or_default();
        let pin = entry.clone().of(&there).unwrap_or(entry.pin);
        record.insert(name.to_owned(), Entry { pin: pin.clone(), next: Some(next) });
        self.write(record)?;
        Ok(Some(pin))
    }

    /// Removes an installed plugin.
    ///
    /// # Errors
    /// [`InstalledError::Unknown`], or it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<Pin, InstalledError> {
        let unknown = || InstalledError::Unknown(name.to_owned());
        // Where nothing was ever installed, nothing is made to say so.
        self.read()?.get(name).ok_or_else(unknown)?;
        let _alone = self.alone()?;
        let mut record = self.read()?;
        let entry = record.remove(name).ok_or_else(unknown)?;
        self.write(&record)?;
        let path = self.file(name);
        match take_away(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(InstalledError::Io { path, source }),
            _ => Ok(entry.pin),
        }
    }

    /// Waits until no other process changes anything here, and keeps others off until this is dropped.
    fn alone(&self) -> Result<File, InstalledError> {
        let io = |source| InstalledError::Io { path: self.dir.clone(), source };
        std::fs::create_dir_all(&self.dir).map_err(io)?;
        let dir = File::open(&self.dir).map_err(io)?;
        flock(&dir, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
        sweep(&self.dir);
        Ok(dir)
    }

    fn write(&self, record: &Record) -> Result<(), InstalledError> {
        let path = self.dir.join(RECORD);
        let text = serde_json::to_string_pretty(record);
        let text = text.map_err(|source| InstalledError::Record { path: path.clone(), source })?;
        self.put(&path, (text + "\n").as_bytes())
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), InstalledError> {
        put(path, bytes).map_err(|source| InstalledError::Io { path: path.to_owned(), source })
    }
}

/// Bytes of a component, at most.
const MOST_BYTES: u64 = 256 << 20;

/// Reads a component. A pipe or a device is none, and would keep whoever reads it for ever.
///
/// # Errors
/// What the system says, or that this can be no component.
pub fn component_at(path: &Path) -> io::Result<Vec<u8>> {
    let meta = std::fs::metadata(path)?;
    match meta.len() {
        _ if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ if !meta.is_file() => Err(io::Error::other("not a regular file, so no plugin")),
        len if len > MOST_BYTES => Err(io::Error::other(format!("{len} bytes: no plugin is so large"))),
        _ => std::fs::read(path),
    }
}

/// The SHA-256 of bytes, hex.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
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
    fn killed_at_each_step_the_old_one_or_the_new_one_is_there() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Installed::at(dir.path());
        store.install("p", b"old", pin(b"old")).expect("installed");
        let wider = |bytes: &[u8]| Pin { grants: vec!["session:raw".into()], ..pin(bytes) };
        let opened = || store.open("p").map(|(bytes, pin)| (bytes, pin.grants)).expect("one of them");
        let mut record = store.read().expect("the record");
        store.announce(&mut record, "p", wider(b"new")).expect("the first step");
        assert_eq!(opened(), (b"old".to_vec(), pin(b"old").grants), "as if nothing had happened");
        store.put(&store.file("p"), b"new").expect("the second step");
        assert_eq!(opened(), (b"new".to_vec(), wider(b"new").grants), "what was accepted for it, and no other");
        std::fs::write(store.file("p"), b"evil").expect("written");
        assert!(matches!(store.open("p"), Err(InstalledError::Changed { .. })));
        store.put(&store.file("p"), b"new").expect("as it was");
        std::fs::write(dir.path().join("p.wasm.new-0123"), b"ne").expect("half of a copy");
        assert_eq!(store.install("p", b"newer", pin(b"newer")).expect("installed"), Some(wider(b"new")));
        assert_eq!(opened().0, b"newer");
        let names = std::fs::read_dir(dir.path()).expect("the folder").map(|entry| entry.expect("a file").file_name());
        assert_eq!(names.count(), 2, "the copy and the record");
        // A removal that was killed before the copy went.
        store.remove("p").expect("removed");
        std::fs::write(store.file("p"), b"newer").expect("still there");
        assert!(matches!(store.open("p"), Err(InstalledError::Unknown(_))));
        store.install("p", b"again", pin(b"again")).expect("installed");
        assert_eq!(opened().0, b"again");
    }

    #[test]
    fn two_at_once_both_stay_and_whoever_reads_sees_a_whole_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Installed::at(dir.path());
        store.install("same", b"0", pin(b"0")).expect("installed");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..10 {
                        let bytes = format!("{writer} {n}").into_bytes();
                        store.install(&format!("own-{writer}"), &bytes, pin(&bytes)).expect("installed");
                        store.install("same", &bytes, pin(&bytes)).expect("installed");
                    }
                });
            }
            for _ in 0..100 {
                match store.open("same") {
                    Ok((bytes, of)) => assert_eq!(digest(&bytes), of.sha256),
                    Err(error) => assert!(error.to_string().contains("try again"), "{error}"),
                }
            }
        });
        assert_eq!(store.list().expect("the record").len(), 5);
        (0..4).for_each(|writer| assert_eq!(store.open(&format!("own-{writer}")).expect("there").0.len(), 3));
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
