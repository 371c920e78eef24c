//! Where the text of a session is read back from.

use std::borrow::Cow;

/// The text of a session could not be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session's text at byte {offset} ({len} bytes) cannot be read: {reason}")]
pub struct SourceError {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes wanted.
    pub len: usize,
    /// What the reader said.
    pub reason: String,
}

impl SourceError {
    /// An error of a reader.
    #[must_use]
    pub fn new(offset: u64, len: usize, reason: impl Into<String>) -> SourceError {
        SourceError { offset, len, reason: reason.into() }
    }
}

/// Where the bytes of the lines are: a file, or memory.
pub trait Source: Send + Sync {
    /// Exactly `len` bytes from `offset` on.
    ///
    /// # Errors
    /// [`SourceError`] if they are not there.
    fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError>;

    /// The same bytes, into memory that is there already.
    ///
    /// # Errors
    /// [`SourceError`] if they are not there.
    fn fill(&self, offset: u64, into: &mut [u8]) -> Result<(), SourceError> {
        into.copy_from_slice(&self.read(offset, into.len())?);
        Ok(())
    }
}

impl Source for [u8] {
    fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let span = start.checked_add(len).and_then(|end| self.get(start..end));
        span.map(Cow::Borrowed).ok_or_else(|| SourceError::new(offset, len, "behind the end of the text"))
    }
}

impl Source for Vec<u8> {
    fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError> {
        self.as_slice().read(offset, len)
    }
}

impl Source for &'static [u8] {
    fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError> {
        (**self).read(offset, len)
    }
}
