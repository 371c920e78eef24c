//! How a file gets its name: whole, and never another one's.

#![expect(clippy::disallowed_methods, reason = "what is renamed was made by us a moment ago, and takes no file's name")]

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::FilesError;

/// Renames a file to a name that nothing has, and sees that to the disk.
///
/// # Errors
/// [`FilesError::Exists`] if something has that name; [`FilesError::Io`]: it may have the new name, which then may not last.
pub fn take_free_name(from: &Path, to: &Path) -> Result<(), FilesError> {
    let renamed = match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems know no such thing; those that do not know links either have to take it on trust.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match std::fs::hard_link(from, to) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => std::fs::rename(from, to),
            linked => linked.and_then(|()| std::fs::remove_file(from)),
        },
        renamed => renamed.map_err(io::Error::from),
    };
    renamed.and_then(|()| sync_dir(to)).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => FilesError::Exists { path: to.to_path_buf() },
        _ => FilesError::io(to)(source),
    })
}

/// A new name is on the disk once its directory is.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}
