//! Reading: the whole lines that arrived, and any span of a session by its offset.
//!
//! Watchers see half lines most of the time, so only what stands before the last `\n` has arrived (S2.4).

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use pi_session::tree::{Source, SourceError};

use super::{FileId, FilesError};

/// Bytes read at a time while looking for line ends; at most.
const PIECE: usize = 1 << 20;
/// Bytes read first, then doubled: many only want the header.
const FIRST_PIECE: usize = 16 << 10;

/// A session file opened for reading. Cheap to clone; the descriptor is shared.
#[derive(Clone, Debug)]
pub struct Reading {
    file: Arc<File>,
    id: FileId,
}

impl Reading {
    /// Opens `path` for reading. Never waits: a named pipe would have it wait for a writer, perhaps for ever.
    ///
    /// # Errors
    /// [`FilesError::NoFile`] if it is something else than a regular file; [`FilesError::Io`] with the system's words.
    pub fn open(path: &Path) -> Result<Reading, FilesError> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(path).map_err(FilesError::io(path))?;
        let meta = file.metadata().map_err(FilesError::io(path))?;
        if !meta.is_file() {
            return Err(FilesError::NoFile { path: path.to_path_buf() });
        }
        Ok(Reading { file: Arc::new(file), id: FileId::of(&meta) })
    }

    /// Which file this is, whatever happened to its name.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Size and times as they are now.
    ///
    /// # Errors
    /// What the system says.
    pub fn metadata(&self) -> std::io::Result<Metadata> {
        self.file.metadata()
    }

    /// Calls `each` with offset and text (without its `\n`) of every whole line from `from` on; stops early when it
    /// returns false. Gives the offset behind the last line handed out.
    ///
    /// # Errors
    /// What the system says; lines handed out before stand.
    pub fn lines(&self, from: u64, each: impl FnMut(u64, &[u8]) -> bool) -> std::io::Result<u64> {
        self.lines_within(from, usize::MAX, each)
    }

    /// The same up to the first line that is longer than `longest` bytes, about: a file that has none costs no more memory.
    ///
    /// # Errors
    /// What the system says; lines handed out before stand.
    pub fn lines_within(
        &self,
        from: u64,
        longest: usize,
        mut each: impl FnMut(u64, &[u8]) -> bool,
    ) -> std::io::Result<u64> {
        let there = usize::try_from(self.file.metadata()?.len().saturating_sub(from)).unwrap_or(PIECE);
        let mut piece = there.clamp(1, FIRST_PIECE);
        let (mut at, mut held) = (from, Vec::new());
        loop {
            let start = held.len();
            held.resize(start + piece, 0);
            let read = self.file.read_at(&mut held[start..], at + start as u64)?;
            held.truncate(start + read);
            if read == 0 {
                return Ok(at);
            }
            let mut used = 0;
            while let Some(end) = memchr::memchr(b'\n', &held[used.max(start)..]) {
                let end = used.max(start) + end;
                let go_on = each(at + used as u64, &held[used..end]);
                used = end + 1;
                if !go_on {
                    return Ok(at + used as u64);
                }
            }
            held.drain(..used);
            at += used as u64;
            piece = (2 * piece).min(PIECE);
            if held.len() > longest {
                return Ok(at);
            }
        }
    }

    /// Where a line ends from `from` on: the offset of the first `\n`, or else of the end of what was looked through.
    ///
    /// # Errors
    /// What the system says.
    pub fn find_end(&self, from: u64) -> std::io::Result<Result<u64, u64>> {
        let there = usize::try_from(self.file.metadata()?.len().saturating_sub(from)).unwrap_or(PIECE);
        let (mut at, mut piece) = (from, vec![0; there.clamp(1, PIECE)]);
        loop {
            let read = self.file.read_at(&mut piece, at)?;
            match memchr::memchr(b'\n', &piece[..read]) {
                Some(end) => return Ok(Ok(at + end as u64)),
                None if read == 0 => return Ok(Err(at)),
                None => at += read as u64,
            }
        }
    }
}

impl Source for Reading {
    fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError> {
        let mut bytes = vec![0; len];
        self.fill(offset, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    fn fill(&self, offset: u64, into: &mut [u8]) -> Result<(), SourceError> {
        let len = into.len();
        self.file.read_exact_at(into, offset).map_err(|e| SourceError::new(offset, len, e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset and length of each whole line, and the offset behind the last.
    fn lines(text: &[u8]) -> (Vec<(u64, usize)>, u64) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, text).expect("written");
        let mut found = Vec::new();
        let reading = Reading::open(&path).expect("opened");
        let end = reading.lines(0, |offset, line| {
            found.push((offset, line.len()));
            assert!(line.iter().all(|byte| *byte == b'x'));
            true
        });
        (found, end.expect("read"))
    }

    #[test]
    fn a_line_that_is_too_long_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, [b"x\n".as_slice(), &b"x".repeat(5 * PIECE), b"\nx\n"].concat()).expect("written");
        let reading = Reading::open(&path).expect("opened");
        let mut count = 0;
        let end = reading.lines_within(0, PIECE, |_, _| {
            count += 1;
            true
        });
        assert_eq!((end.expect("read"), count), (2, 1));
        let ends = [0, 2, 5 * PIECE as u64 + 3, 5 * PIECE as u64 + 5].map(|from| reading.find_end(from).expect("read"));
        let last = 5 * PIECE as u64 + 5;
        assert_eq!(ends, [Ok(1), Ok(last - 3), Ok(last - 1), Err(last)]);
    }

    #[test]
    fn lines_are_handed_out_whole_however_long_they_are() {
        for long in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 5 * PIECE + 3] {
            let text = [b"xx\n".as_slice(), &b"x".repeat(long), b"\n\nx\nxxx"].concat();
            let start = 4 + long as u64;
            assert_eq!(lines(&text), (vec![(0, 2), (3, long), (start, 0), (start + 1, 1)], start + 3), "{long}");
            assert_eq!(lines(&text[..3 + long]), (vec![(0, 2)], 3), "a line without its end has not arrived");
        }
        assert_eq!(lines(b""), (vec![], 0));
    }
}
