//! Locks that keep two daemons apart, whatever their state directories (product.md section 5).
//!
//! A root is locked for one daemon alone, and each directory above it for whoever follows something below: so neither the
//! same root, nor one inside another, nor one that a link leads to is ever followed by two.

use std::fs::{DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{FileId, FilesError};

/// A root that this process holds until it ends or drops this.
#[derive(Debug)]
pub struct RootLock {
    files: Vec<LockFile>,
}

impl RootLock {
    /// Whether it still keeps others out: a lock file that was cleaned away keeps nobody.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.files.iter().all(LockFile::stands)
    }
}

/// A file that is locked: where it was made, and which one it is.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    id: FileId,
    /// Its lock ends with this.
    file: File,
}

impl LockFile {
    fn stands(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|meta| FileId::of(&meta) == self.id)
    }
}

/// Locks one watched root, known by device and inode, in the user's runtime directory. A single session may be locked so too.
///
/// # Errors
/// [`FilesError::Busy`] if another daemon has it, or follows something in it or above it; [`FilesError::Io`] if the root or
/// the runtime directory cannot be used.
pub fn lock_root(runtime: &Path, root: &Path) -> Result<RootLock, FilesError> {
    private_dir(runtime)?;
    let real = root.canonicalize().map_err(FilesError::io(root))?;
    let mut files = Vec::new();
    for dir in real.ancestors() {
        let how = match files.is_empty() {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        let held = lock(runtime, dir, how)?;
        files.push(held.ok_or_else(|| FilesError::Busy { path: root.to_path_buf() })?);
    }
    Ok(RootLock { files })
}

/// None if another process has it.
fn lock(runtime: &Path, dir: &Path, how: FlockOperation) -> Result<Option<LockFile>, FilesError> {
    let meta = std::fs::metadata(dir).map_err(FilesError::io(dir))?;
    let FileId { dev, ino } = FileId::of(&meta);
    let path = runtime.join(format!("root-{dev:x}-{ino:x}.lock"));
    loop {
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let file = open.map_err(FilesError::io(&path))?;
        let id = FileId::of(&file.metadata().map_err(FilesError::io(&path))?);
        let held = LockFile { path: path.clone(), id, file };
        match flock(&held.file, how) {
            // Somebody may have cleaned it away in between.
            Ok(()) if !held.stands() => {}
            Ok(()) => return Ok(Some(held)),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(FilesError::Io { path, source: e.into() }),
        }
    }
}

/// Makes `dir` for this user alone, or checks that nobody else can write to it.
///
/// # Errors
/// [`FilesError::Io`] if it cannot be made, or belongs to or is open to others.
pub fn private_dir(dir: &Path) -> Result<(), FilesError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(FilesError::io(dir))?;
    is_private(dir)
}

/// Checks that nobody else can write to `dir`.
///
/// # Errors
/// [`FilesError::Io`] if it is not there, or belongs to or is open to others.
pub fn is_private(dir: &Path) -> Result<(), FilesError> {
    let meta = std::fs::metadata(dir).map_err(FilesError::io(dir))?;
    if others_can_write(&meta) {
        let text = "others can write here; make it yours alone (chmod go-w), or name another directory";
        let source = std::io::Error::new(std::io::ErrorKind::PermissionDenied, text);
        return Err(FilesError::Io { path: dir.to_path_buf(), source });
    }
    Ok(())
}

fn others_can_write(meta: &Metadata) -> bool {
    meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0
}

/// The user's runtime directory for sockets and locks: `$PI_GRAFT_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/pi-graft`, else one
/// in the temporary directory.
#[must_use]
pub fn runtime_dir() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let of_user = || std::env::temp_dir().join(format!("pi-graft-{}", rustix::process::geteuid().as_raw()));
    set("PI_GRAFT_RUNTIME_DIR")
        .or_else(|| set("XDG_RUNTIME_DIR").map(|dir| dir.join("pi-graft")))
        .unwrap_or_else(of_user)
}

/// Where the socket of the daemon with this state directory is: one daemon has a state directory, so the name is its own.
///
/// # Errors
/// [`FilesError::Io`] if the state directory is not there.
pub fn socket_path(runtime: &Path, state: &Path) -> Result<PathBuf, FilesError> {
    let meta = std::fs::metadata(state).map_err(FilesError::io(state))?;
    let FileId { dev, ino } = FileId::of(&meta);
    Ok(runtime.join(format!("state-{dev:x}-{ino:x}.sock")))
}
