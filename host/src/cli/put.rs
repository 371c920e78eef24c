//! Small files that other programs read: an extension of Pi's, a unit of the system's service manager.

use std::fs::DirBuilder;
use std::io;
use std::path::Path;

/// Writes it beside and renames it over, so that who reads at this moment sees the old one or the new one.
///
/// # Errors
/// What the system says.
#[expect(clippy::disallowed_methods, reason = "no session: a file of ours that another program reads")]
pub(super) fn put(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).create(dir)?;
    let beside = path.with_extension("new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}

/// Removes it.
///
/// # Errors
/// What the system says.
#[expect(clippy::disallowed_methods, reason = "no session: a file of ours that another program reads")]
pub(super) fn take_away(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}
