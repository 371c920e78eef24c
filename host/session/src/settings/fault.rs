//! What is wrong with one of Pi's files, by file, line and column.

use std::fmt;

/// Something at one place of a file of Pi's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The file's name.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// What is wrong, and what Pi makes of it.
    pub message: String,
}

impl Fault {
    /// A fault at a byte offset of `text`.
    pub(super) fn at(file: &str, text: &[u8], offset: usize, message: String) -> Fault {
        let before = &text[..offset.min(text.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        let whole = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Fault { file: file.to_owned(), line: whole(line), column: whole(column), message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}
