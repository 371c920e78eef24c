//! Compiled code on disk, so that a plugin is compiled once.
//!
//! Loading compiled code runs it: who can write it can do anything. So it lies in a directory of its own that only
//! this user can enter, in files that only this user can write, and whatever is not so is not touched. The name of a
//! file holds the digest of the component and a hash of the engine's version and settings, so that nothing is loaded
//! by an engine it was not made for (wasmtime checks that once more).
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the cache's own files; no session is near")]
#![expect(unsafe_code, reason = "loading compiled code; why it is safe stands where it is done")]

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::{LoadError, SandboxError};

/// Bits of a mode that let others in to write.
const OTHERS_WRITE: u32 = 0o022;

/// How the name of a file with compiled code ends.
const CODE: &str = "cwasm";
/// The same where there is none, and the file says why.
const WHY_NOT: &str = "failed";

/// A directory of compiled components.
pub(super) struct Cache {
    dir: PathBuf,
    compatible: u64,
    max_bytes: u64,
}

impl Cache {
    /// Opens the directory, or makes it.
    ///
    /// # Errors
    /// If it cannot be made, or others could write in it.
    pub(super) fn open(dir: &Path, engine: &Engine, max_bytes: u64) -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::Cache { dir: dir.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let metadata = fs::symlink_metadata(dir).map_err(failed)?;
        if !metadata.is_dir() || !is_private(&metadata) {
            return Err(SandboxError::CacheNotPrivate { dir: dir.to_owned() });
        }
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Ok(Self { dir: dir.to_owned(), compatible: hasher.finish(), max_bytes })
    }

    /// The compiled component of this digest, if it is there and can be trusted.
    pub(super) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let path = own_file(self.path(digest, CODE))?;
        // SAFETY: only this user could write the file or anything in its directory (checked here and on opening), and
        // this program writes there only what it compiled for the same engine, whole, under its final name.
        let component = unsafe { Component::deserialize_file(engine, &path) }.ok()?;
        // Only to know which are old; one that looks older than it is costs a compilation.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(component)
    }

    /// Why compiling this component came to nothing, if it is kept.
    pub(super) fn why_not(&self, digest: &str) -> Option<String> {
        fs::read_to_string(own_file(self.path(digest, WHY_NOT))?).ok()
    }

    /// Keeps why compiling a component came to nothing.
    ///
    /// # Errors
    /// If the disk does not take it. Nothing is lost but time.
    pub(super) fn store_why_not(&self, digest: &str, why: &str) -> io::Result<()> {
        self.put(&self.path(digest, WHY_NOT), why.as_bytes())
    }

    /// Puts compiled code there, and makes room by removing the ones that were not used for longest.
    ///
    /// # Errors
    /// If the disk does not take it. Nothing is lost but time.
    pub(super) fn store(&self, digest: &str, code: &[u8]) -> io::Result<()> {
        self.put(&self.path(digest, CODE), code)
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // A name that no other thread, process or container has, so that what is renamed is whole.
        let name = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let temporary = self.dir.join(format!(".{name:016x}"));
        let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            // What is left over is removed as old one day.
            let _ = fs::remove_file(&temporary);
        }
        written.and_then(|()| self.make_room())
    }

    fn path(&self, digest: &str, what: &str) -> PathBuf {
        self.dir.join(format!("{digest}-{:016x}.{what}", self.compatible))
    }

    /// What is no file is not ours and stays; what is gone meanwhile, another process has removed.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if let Some(metadata) = unless_gone(entry.metadata())?.filter(Metadata::is_file) {
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
        let mut total = 0;
        for (_, bytes, path) in files {
            total += bytes;
            if total > self.max_bytes {
                unless_gone(fs::remove_file(path))?;
            }
        }
        Ok(())
    }
}

fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// The component in compiled code that was just made.
///
/// # Errors
/// If it is not for this engine.
pub(super) fn compiled(engine: &Engine, code: &[u8]) -> Result<Component, LoadError> {
    // SAFETY: the code comes from this program, here or as the compiler that it started itself, and from nowhere else.
    let component = unsafe { Component::deserialize(engine, code) };
    component.map_err(|error| LoadError::NotAPlugin(format!("{error:#}")))
}

/// A path that is a file which nobody but this user could have written.
fn own_file(path: PathBuf) -> Option<PathBuf> {
    let metadata = fs::symlink_metadata(&path).ok()?;
    (metadata.is_file() && is_private(&metadata)).then_some(path)
}

/// Whether nobody but this user could have written it.
fn is_private(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & OTHERS_WRITE == 0
}

/// A file that did not exist before, on disk when this returns.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
