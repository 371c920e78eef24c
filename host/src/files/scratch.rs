//! A session of our own making, for a replay: nobody else sees it, and it is gone with the process, however that ends.
//!
//! The file has no name any more when it is handed out. It is reached by its descriptor, so that whatever follows sessions
//! by their path follows this one too.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::FilesError;

/// Bytes that are gathered before they are written.
const GATHERED: usize = 256 << 10;
/// Names that are tried.
const TRIES: u32 = 1000;

/// A file without a name that is only appended to.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    path: PathBuf,
    held: Vec<u8>,
}

impl Scratch {
    /// A new one, in the system's directory for temporary files, for this user alone.
    ///
    /// # Errors
    /// [`FilesError::Io`]: there is no room, or no such directory.
    pub fn new() -> Result<Scratch, FilesError> {
        let dir = std::env::temp_dir();
        let file = nameless(&dir)?;
        let descriptors = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
        let path = Path::new(descriptors).join(file.as_raw_fd().to_string());
        Ok(Scratch { file, path, held: Vec::new() })
    }

    /// How this process reaches it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a line, without its `\n`, behind the others. Whoever reads sees it after [`Scratch::flush`].
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn line(&mut self, line: &[u8]) -> Result<(), FilesError> {
        self.held.extend_from_slice(line);
        self.held.push(b'\n');
        if self.held.len() < GATHERED { Ok(()) } else { self.flush() }
    }

    /// Writes what is gathered.
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn flush(&mut self) -> Result<(), FilesError> {
        self.file.write_all(&self.held).map_err(FilesError::io(&self.path))?;
        self.held.clear();
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the name of a file that we have just made goes at once")]
fn nameless(dir: &Path) -> Result<File, FilesError> {
    for number in 0..TRIES {
        let path = dir.join(format!("pi-graft-replay-{}-{number}", std::process::id()));
        match File::options().read(true).append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path).map_err(FilesError::io(&path))?;
                return Ok(file);
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(FilesError::io(&path)(e)),
        }
    }
    Err(FilesError::Exists { path: dir.join(format!("pi-graft-replay-{}-0", std::process::id())) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tail::Reading;

    #[test]
    fn it_is_read_by_its_path_and_leaves_nothing_behind() {
        let mut scratch = Scratch::new().expect("a file");
        scratch.line(b"{}").expect("room");
        scratch.flush().expect("room");
        let reading = Reading::open(scratch.path()).expect("it can be opened");
        let mut lines = Vec::new();
        let mut take = |line: &[u8]| lines.push(line.to_vec());
        let read = reading.lines(0, |_, line| {
            take(line);
            true
        });
        read.expect("it can be read");
        assert_eq!(lines, [b"{}"]);
        let own = format!("pi-graft-replay-{}", std::process::id());
        let left = std::fs::read_dir(std::env::temp_dir()).expect("the directory").flatten();
        assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(&own)));
    }
}
