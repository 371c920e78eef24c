//! What was listed before, so that a session that did not change is not read again.
//!
//! One file in the user's cache directory: a head with a digest, and behind it JSON. It is for listings only, and may be
//! lost at any time: what is damaged, of another version or open to others is not believed, and is written anew whole.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the cache's own file; no session is near")]

use std::collections::HashMap;
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pi_session::figures::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::row::Row;

/// Bits of a mode that let others in to write.
const OTHERS_WRITE: u32 = 0o022;
/// A larger file is not ours: ten thousand sessions have some 5 MB.
const MAX_BYTES: u64 = 64 << 20;

/// What a file was like when it was read: while that is so, it holds the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    dev: u64,
    ino: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl State {
    pub fn of(meta: &Metadata) -> State {
        State {
            dev: meta.dev(),
            ino: meta.ino(),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// What was read of a file; no row if it was no session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Known {
    pub state: State,
    pub row: Option<Row>,
}

/// What is known, by path. A path that is no text is not kept.
pub(super) type Listing = HashMap<String, Known>;

/// The file that keeps it.
pub(super) struct Cache(PathBuf);

impl Cache {
    /// Its place; none for a user without a home.
    pub fn of_user() -> Option<Cache> {
        let set = |name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let base = set("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
        let base = base.or_else(|| set("HOME").map(|home| home.join(".cache")))?;
        Some(Cache(base.join("pi-graft/listing")))
    }

    /// What was kept, if it can be believed; else nothing.
    pub fn load(&self) -> Listing {
        let bytes = read_private(&self.0).unwrap_or_default();
        let end = memchr::memchr(b'\n', &bytes).unwrap_or(bytes.len());
        let (head, body) = bytes.split_at(end);
        if head != self::head(body).as_bytes() {
            return Listing::new();
        }
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Keeps this instead. It appears whole or not at all.
    ///
    /// # Errors
    /// If the disk does not take it. Nothing is lost but time.
    pub fn store(&self, listing: &Listing) -> io::Result<()> {
        let dir = self.0.parent().ok_or(io::ErrorKind::NotFound)?;
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        if !is_private(&fs::symlink_metadata(dir)?) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut body = b"\n".to_vec();
        serde_json::to_writer(&mut body, listing)?;
        // A name that no other process has, so that what is renamed is whole.
        let name = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let temporary = dir.join(format!(".listing-{name:016x}"));
        let written = write_new(&temporary, &body).and_then(|()| fs::rename(&temporary, &self.0));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

/// The first line: whose file this is, of which version, and the digest of what follows.
fn head(body: &[u8]) -> String {
    format!("pi-graft listing 1 {} {}", env!("CARGO_PKG_VERSION"), hex(&Sha256::digest(body)))
}

fn read_private(path: &Path) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || !is_private(&meta) || meta.len() > MAX_BYTES {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether nobody but this user could have written it.
fn is_private(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & OTHERS_WRITE == 0
}

/// Not synced: half a file has another digest.
fn write_new(path: &Path, body: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(head(body).as_bytes())?;
    file.write_all(body)
}
