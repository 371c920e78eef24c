//! The one place that touches session files.
//!
//! Small rooms: [`locate`] finds them (S1), [`network`] says where other hosts write too, [`tail`] reads the whole lines
//! that arrived (S2.4), [`append`] holds the only function that writes to one, by the system calls of [`disk`]; [`whole`]
//! makes, replaces and removes whole ones for the user's own commands, [`trash`] is where they go, [`scratch`] is a session
//! that nobody else sees, [`named`] gives a whole file its name, `backup` keeps what was there before, [`lock`] keeps two daemons apart. Everything else in the program asks these.
//!
//! A session file is only ever opened for reading, with `O_APPEND`, or as a new one: nothing here can truncate one.

#![expect(clippy::disallowed_types, reason = "this is the room that opens session files, for reading or with O_APPEND")]

pub mod append;
mod backup;
pub mod disk;
pub mod locate;
pub mod lock;
pub mod named;
pub mod network;
pub mod scratch;
pub mod tail;
pub mod trash;
pub mod whole;

use std::io;
use std::path::{Path, PathBuf};

/// Which file a path named at one moment: its device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileId {
    /// Device number.
    pub dev: u64,
    /// Inode number on it.
    pub ino: u64,
}

impl FileId {
    /// The identity in a file's metadata.
    #[must_use]
    pub fn of(meta: &std::fs::Metadata) -> FileId {
        use std::os::unix::fs::MetadataExt;
        FileId { dev: meta.dev(), ino: meta.ino() }
    }
}

/// Why a session file could not be read, watched or written.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The system refused; the path says where.
    #[error("{}: {source}{}", shown(path), remedy(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, a pipe or a device: no session can be in it.
    #[error("{}: not a regular file, so no session; name the session's .jsonl file", shown(path))]
    NoFile {
        /// What was named.
        path: PathBuf,
    },
    /// Something has the name that was to be a new file's.
    #[error("{}: there is such a file already; name another, or move it away", shown(path))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Somebody wrote, replaced or shortened the file since it was checked (S12.8). Nothing was written.
    #[error("{}: the file changed since it was checked; nothing was written", shown(path))]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another pi-graft holds the file or the root at this moment.
    #[error("{}: another pi-graft works here; stop it, or give this one other roots", shown(path))]
    Busy {
        /// The locked thing.
        path: PathBuf,
    },
    /// There is no room for the whole batch. Nothing was written.
    #[error("{}: no room for {bytes} bytes; free some disk space, the graft is kept", shown(path))]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Bytes that were to be written.
        bytes: usize,
    },
    /// The file cannot be opened, looked at or written: rights, a read-only file system, a failing disk. Nothing was written.
    #[error("{}: cannot be written: {source}{}; nothing was written", shown(path), remedy(source))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A link. It is not followed to write, since what it leads to may be another file at any time. Nothing was written.
    #[error("{}: a link; name the session that it leads to", shown(path))]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Half a line of somebody's came in the moment before the write: the first line that was written is glued to it, and is
    /// no entry; the lines behind it are there, and hang on nothing.
    #[error(
        "{}: somebody wrote half a line at the same moment, and the first line of ours is glued to it; see `pi-graft session validate`",
        shown(path)
    )]
    Glued {
        /// The file.
        path: PathBuf,
    },
    /// The write stopped half way and could not be completed; recovery completes it (product.md section 6).
    #[error(
        "{}: only {written} of {bytes} bytes could be written at {offset}: {source}{}",
        shown(path),
        remedy(source)
    )]
    Torn {
        /// The file.
        path: PathBuf,
        /// Where the bytes begin.
        offset: u64,
        /// Bytes that were to be written.
        bytes: usize,
        /// Bytes that are there.
        written: usize,
        /// What the system said.
        source: io::Error,
    },
}

/// A path for people: a control character in it, a line end too, stands as an escape.
#[must_use]
pub fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(plain).collect()
}

/// What the user can do about what the system said, to stand behind it; nothing where nobody can tell.
fn remedy(said: &io::Error) -> &'static str {
    match said.kind() {
        io::ErrorKind::PermissionDenied => "; see whose it is and its mode, and those of its folder (`ls -ld`)",
        io::ErrorKind::ReadOnlyFilesystem => "; mount the file system for writing, or copy the file elsewhere",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some disk space",
        io::ErrorKind::NotADirectory => "; a part of this path is a file",
        _ => "",
    }
}

impl FilesError {
    /// Whether it is certain that not one byte was written.
    #[must_use]
    pub fn wrote_nothing(&self) -> bool {
        !matches!(self, FilesError::Torn { .. } | FilesError::Glued { .. } | FilesError::Io { .. })
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> FilesError + '_ {
        move |source| FilesError::Io { path: path.to_path_buf(), source }
    }
}
