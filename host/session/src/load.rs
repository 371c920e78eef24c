//! Reading a whole file at once, on all cores.
//!
//! Where a line begins and ends, and what stands in it, can be found out without knowing what came before; only the tree
//! itself has to grow in order. So workers walk over blocks of the text, and one thread puts what they found together.
//! When it would have to wait for a block, it takes the next one itself. What lies ready is bounded.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::tree::{Status, Tree};
use crate::walk::{Line, read};

/// Bytes that a worker takes at a time.
const BLOCK: usize = 64 * 1024;
/// Files below this are read faster than threads are started.
const SMALL: usize = 256 * 1024;
/// Nobody reads further ahead of the tree than this many blocks, so that what lies ready is bounded.
const AHEAD: usize = 64;

/// The lines that begin in one block, with the offset of each.
type Lines<'a> = Vec<(usize, Line<'a>)>;

impl Tree {
    /// The tree of a whole file, as Pi has it on load: a whole JSON object on a last line without its `\n` counts (S2.4).
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Tree {
        let mut tree = Tree::new();
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let mut start = 0;
        // What a line means hangs on the header, so that comes first.
        while start < whole && (tree.status() == Status::NotBegun || whole - start < SMALL) {
            let end = start + memchr::memchr(b'\n', &bytes[start..]).unwrap_or(whole);
            tree.push(start as u64, &bytes[start..end]);
            start = end + 1;
        }
        if tree.status() == Status::NotASession {
            return tree;
        }
        if start < whole {
            tree.push_on_all_cores(&bytes[..whole], start);
        }
        if whole < bytes.len() {
            tree.push_last(whole as u64, &bytes[whole..]);
        }
        tree.find_path();
        tree
    }

    /// Reads all lines from `start` on; the last byte of `bytes` ends a line.
    fn push_on_all_cores(&mut self, bytes: &[u8], start: usize) {
        let work = Work::new(bytes, start);
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8) - 1;
        std::thread::scope(|scope| {
            for _ in 0..workers {
                // Without a thread the work is done here.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || work.serve());
            }
            for block in 0..work.blocks {
                let mut lines = work.wait_for(block);
                for (offset, line) in lines.drain(..) {
                    self.take(offset as u64, line);
                }
                work.lock().spare.push(lines);
            }
        });
    }
}

/// The blocks of a text, to be taken by whoever is free.
struct Work<'a> {
    bytes: &'a [u8],
    start: usize,
    blocks: usize,
    state: Mutex<State<'a>>,
    changed: Condvar,
}

#[derive(Default)]
struct State<'a> {
    /// The next block that nobody has taken.
    next: usize,
    /// Blocks that are in the tree.
    used: usize,
    ready: BTreeMap<usize, Lines<'a>>,
    /// Memory to be used again: giving it back to another thread's allocator is slow.
    spare: Vec<Lines<'a>>,
    /// A worker panicked: its block will never come.
    failed: bool,
}

impl State<'_> {
    fn take(&mut self, blocks: usize) -> Option<usize> {
        let free = self.next < blocks.min(self.used + AHEAD);
        free.then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl<'a> Work<'a> {
    fn new(bytes: &'a [u8], start: usize) -> Work<'a> {
        let blocks = (bytes.len() - start).div_ceil(BLOCK);
        Work { bytes, start, blocks, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<'a>>) -> MutexGuard<'s, State<'a>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker's life: reads blocks until all are taken.
    fn serve(&self) {
        let _alarm = Alarm(self);
        let mut state = self.lock();
        while state.next < self.blocks {
            state = match state.take(self.blocks) {
                Some(block) => {
                    drop(state);
                    self.read(block)
                }
                None => self.wait(state),
            };
        }
    }

    /// The lines of the block whose turn it is, read here if nobody has begun.
    fn wait_for(&self, block: usize) -> Lines<'a> {
        let mut state = self.lock();
        loop {
            if let Some(lines) = state.ready.remove(&block) {
                state.used = block + 1;
                self.changed.notify_all();
                return lines;
            }
            assert!(!state.failed, "a thread that read a part of the session panicked");
            state = match state.take(self.blocks) {
                Some(other) => {
                    drop(state);
                    self.read(other)
                }
                None => self.wait(state),
            };
        }
    }

    fn read(&self, block: usize) -> MutexGuard<'_, State<'a>> {
        let mut lines = self.lock().spare.pop().unwrap_or_default();
        self.lines(block, &mut lines);
        let mut state = self.lock();
        state.ready.insert(block, lines);
        self.changed.notify_all();
        state
    }

    /// Reads the lines that begin in a block. Only the block itself is searched for the first, so that one huge line is
    /// not searched again by every block that it spans.
    fn lines(&self, block: usize, lines: &mut Lines<'a>) {
        let from = self.start + block * BLOCK;
        let to = (from + BLOCK).min(self.bytes.len());
        let mut at = match block {
            0 => from,
            _ => match memchr::memchr(b'\n', &self.bytes[from - 1..to - 1]) {
                Some(found) => from + found,
                None => return,
            },
        };
        while at < to {
            let len = memchr::memchr(b'\n', &self.bytes[at..]).unwrap_or(self.bytes.len() - at);
            lines.push((at, read(&self.bytes[at..at + len])));
            at += len + 1;
        }
    }
}

/// Tells the others when a worker panics, so that nobody waits for what it had taken.
struct Alarm<'w, 'a>(&'w Work<'a>);

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().failed = true;
            self.0.changed.notify_all();
        }
    }
}
