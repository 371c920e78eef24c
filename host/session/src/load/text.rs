//! A text in blocks, each with the lines that begin in it.

use memchr::{memchr, memchr_iter};

use crate::source::{Source, SourceError};

/// Bytes that a worker takes at a time: they stay near its core, and are worth a wait.
pub(super) const BLOCK: u64 = 256 * 1024;
/// Bytes that are read at a time of a block's last line, where it goes on behind the block; at least.
const PIECE: usize = 16 * 1024;

/// A text in memory, or where so many bytes of one can be read.
#[derive(Clone, Copy)]
pub(super) enum Text<'t> {
    Here(&'t [u8]),
    There(&'t dyn Source, u64),
}

/// The lines that begin in one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found<'a> {
    /// Where they begin.
    pub(super) offset: u64,
    /// All of them, each with its `\n`; the text's last may have none.
    pub(super) text: &'a [u8],
}

impl<'t> Text<'t> {
    pub(super) fn len(self) -> u64 {
        match self {
            Text::Here(bytes) => bytes.len() as u64,
            Text::There(_, len) => len,
        }
    }

    /// The lines that begin in a block. Only the block itself is searched for the first, so that a huge line is not
    /// searched again by every block that it spans.
    pub(super) fn block<'a>(self, number: u64, room: &'a mut Vec<u8>) -> Result<Found<'a>, SourceError>
    where
        't: 'a,
    {
        // A line begins where the byte before is a line end.
        let begin = (number * BLOCK).saturating_sub(1);
        let end = ((number + 1) * BLOCK).min(self.len());
        match self {
            Text::Here(bytes) => Ok(found_in(bytes, begin as usize, end as usize)),
            Text::There(source, len) => Window { source, len, begin, room, used: 0 }.block((end - begin) as usize),
        }
    }
}

/// The lines that begin in a part of a text in memory.
fn found_in(bytes: &[u8], begin: usize, end: usize) -> Found<'_> {
    let Some(first) = first_line(&bytes[begin..end], begin == 0) else { return Found::default() };
    let rest = memchr(b'\n', &bytes[end - 1..]).map_or(bytes.len(), |found| end + found);
    Found { offset: (begin + first) as u64, text: &bytes[begin + first..rest] }
}

/// Where the first line begins behind the first byte; or with it, if that is the text's first.
fn first_line(window: &[u8], at_start: bool) -> Option<usize> {
    let last = window.len().checked_sub(1)?;
    if at_start { Some(0) } else { memchr(b'\n', &window[..last]).map(|found| found + 1) }
}

/// A part of a source that is in memory.
struct Window<'s, 'r> {
    source: &'s dyn Source,
    /// Bytes of the source.
    len: u64,
    /// Where in it the part begins.
    begin: u64,
    /// It, and what was there before.
    room: &'r mut Vec<u8>,
    /// Bytes of it.
    used: usize,
}

impl<'r> Window<'_, 'r> {
    fn block(mut self, size: usize) -> Result<Found<'r>, SourceError> {
        self.read(size)?;
        let Some(first) = first_line(&self.room[..size], self.begin == 0) else { return Ok(Found::default()) };
        while !self.is_whole() {
            self.read_line((self.used / 16).clamp(PIECE, 4 * BLOCK as usize))?;
        }
        let text = &self.room.as_slice()[first..self.used];
        Ok(Found { offset: self.begin + first as u64, text })
    }

    /// It ends with a line.
    fn is_whole(&self) -> bool {
        self.room[..self.used].last() == Some(&b'\n') || self.begin + self.used as u64 == self.len
    }

    /// Reads more bytes, but none behind the first line end.
    fn read_line(&mut self, size: usize) -> Result<(), SourceError> {
        let from = self.used;
        self.read(size)?;
        if let Some(end) = memchr(b'\n', &self.room[from..self.used]) {
            self.used = from + end + 1;
        }
        Ok(())
    }

    fn read(&mut self, size: usize) -> Result<(), SourceError> {
        let at = self.begin + self.used as u64;
        let end = self.used + (self.len - at).min(size as u64) as usize;
        if self.room.len() < end {
            self.room.resize(end, 0);
        }
        self.source.fill(at, &mut self.room[self.used..end])?;
        self.used = end;
        Ok(())
    }
}

/// Each line of a text that begins at `offset`: where it stands, what it says, and whether it has its `\n`.
pub(super) fn lines(offset: u64, text: &[u8]) -> impl Iterator<Item = (u64, &[u8], bool)> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', text).map(|end| (end, true));
    let open = (text.last().is_some_and(|byte| *byte != b'\n')).then_some((text.len(), false));
    ends.chain(open).map(move |(end, ended)| {
        let line = (offset + start as u64, &text[start..end], ended);
        start = end + 1;
        line
    })
}
