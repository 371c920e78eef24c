//! Locks that keep two daemons apart, whatever their state directories (product.md section 5).
//!
//! A root is locked for one daemon alone, and each directory above it for whoever follows something below: so neither the
//! same root, nor one inside another, nor one that a link leads to is ever followed by two.
//!
//! | what is locked | keeps apart |
//! | --- | --- |
//! | a file in the runtime directory, named after the directory's device and inode | daemons with one runtime directory, whatever the file system and whoever may read the directory |
//! | the directory itself (`flock`; nothing is written) | daemons with different runtime directories, of different users, or in containers that share the directory |
//!
//! The second is left out where it cannot be had: a directory that may be passed through and not read, a file system without such
//! locks. It holds on this machine only; what writes from another host is for `watch.network` to allow.

use std::fs::{DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use super::{FileId, FilesError};

/// A root that this process holds until it ends or drops this.
#[derive(Debug, Default)]
pub struct RootLock {
    files: Vec<Arc<LockFile>>,
    dirs: Vec<Arc<LockedDir>>,
}

impl RootLock {
    /// Whether it still keeps others out: a lock file that was cleaned away keeps nobody.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.files.iter().all(|file| file.stands())
    }

    /// The lock file of the root itself.
    #[cfg(test)]
    pub(crate) fn file(&self) -> &Path {
        &self.files[0].path
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

/// A directory that is locked itself.
#[derive(Debug)]
struct LockedDir {
    id: FileId,
    /// Its lock ends with this.
    _open: File,
}

/// Locks one watched root, known by device and inode, in the user's runtime directory. A single session may be locked so too.
///
/// # Errors
/// [`FilesError::Busy`] if another daemon has it, or follows something in it or above it; [`FilesError::Io`] if the root or
/// the runtime directory cannot be used.
pub fn lock_root(runtime: &Path, root: &Path) -> Result<RootLock, FilesError> {
    lock_again(runtime, root, &RootLock::default())
}

/// The same for whoever has it already, and may have lost some of its lock files: what still stands is kept and not asked for
/// once more, which would be refused.
///
/// # Errors
/// As [`lock_root`].
pub fn lock_again(runtime: &Path, root: &Path, had: &RootLock) -> Result<RootLock, FilesError> {
    private_dir(runtime)?;
    let real = root.canonicalize().map_err(FilesError::io(root))?;
    let busy = || FilesError::Busy { path: root.to_path_buf() };
    let mut lock = RootLock::default();
    for dir in real.ancestors() {
        let meta = std::fs::metadata(dir).map_err(FilesError::io(dir))?;
        let how = match dir == real {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        lock.files.push(lock_file(runtime, FileId::of(&meta), how, had)?.ok_or_else(busy)?);
        if meta.is_dir() && (dir == real || is_of_a_user(&meta)) {
            lock.dirs.extend(lock_itself(dir, how, had).ok_or_else(busy)?);
        }
    }
    Ok(lock)
}

/// None if another process has it.
fn lock_file(
    runtime: &Path,
    FileId { dev, ino }: FileId,
    how: FlockOperation,
    had: &RootLock,
) -> Result<Option<Arc<LockFile>>, FilesError> {
    let path = runtime.join(format!("root-{dev:x}-{ino:x}.lock"));
    if let Some(held) = had.files.iter().find(|held| held.path == path && held.stands()) {
        return Ok(Some(Arc::clone(held)));
    }
    loop {
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let file = open.map_err(FilesError::io(&path))?;
        let id = FileId::of(&file.metadata().map_err(FilesError::io(&path))?);
        let held = LockFile { path: path.clone(), id, file };
        match flock(&held.file, how) {
            // Somebody may have cleaned it away in between.
            Ok(()) if !held.stands() => {}
            Ok(()) => return Ok(Some(Arc::new(held))),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(FilesError::Io { path, source: e.into() }),
        }
    }
}

/// Whether a directory above a root is one that somebody may follow, and not the system's (`/`, `/home`, `/tmp`): there anybody
/// could keep us out, and we keep out whatever else locks directories, as programs that tidy up do.
fn is_of_a_user(dir: &Metadata) -> bool {
    let is_of_the_system = dir.uid() == 0 && !rustix::process::geteuid().is_root();
    !is_of_the_system && dir.mode() & 0o002 == 0
}

/// The lock on a directory itself: none if another process has it, and nothing in it if there is no such lock here.
fn lock_itself(dir: &Path, how: FlockOperation, had: &RootLock) -> Option<Option<Arc<LockedDir>>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(open) = rustix::fs::open(dir, flags, Mode::empty()).map(File::from) else { return Some(None) };
    let Ok(meta) = open.metadata() else { return Some(None) };
    let id = FileId::of(&meta);
    if let Some(held) = had.dirs.iter().find(|held| held.id == id) {
        return Some(Some(Arc::clone(held)));
    }
    match flock(&open, how) {
        Ok(()) => Some(Some(Arc::new(LockedDir { id, _open: open }))),
        Err(rustix::io::Errno::WOULDBLOCK) => None,
        Err(_) => Some(None),
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
