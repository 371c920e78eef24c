//! Reading a whole session at once, on all cores.
//!
//! Where a line begins and ends, and what stands in it, can be found out without knowing what came before; only the tree
//! itself has to grow in order. So a worker takes a block of the text, walks over the lines that begin in it, waits for its
//! turn, and puts them into the tree. Nothing is handed from one worker to another, and what is in memory is bounded: for
//! each worker a block, the rest of its last line, and what was found on [`AT_ONCE`] lines. Since nobody goes on before
//! its turn, all are near each other, and of lines that are longer than their blocks together there is only one.

mod text;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::source::{Source, SourceError};
use crate::tree::{Status, Tree};
use crate::walk::{Line, read};

use text::{BLOCK, Text, lines};

/// Lines that a worker looks at before it waits for its turn: what is found on one takes more memory than a short line.
const AT_ONCE: usize = 128;
/// Workers at most: the tree grows on one, and a few keep it busy.
const MOST: usize = 8;

impl Tree {
    /// The tree of a whole file, as Pi has it on load: a whole JSON object on a last line without its `\n` counts (S2.4).
    /// All cores read.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Tree {
        // Asking the system for it takes as long as reading some ten thousand bytes.
        static CORES: OnceLock<usize> = OnceLock::new();
        let cores = CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
        let read = Work::new(Text::Here(bytes), &|_| {}).on(*cores);
        read.unwrap_or_else(|error| unreachable!("text in memory can be read: {error}"))
    }

    /// The same of the first `len` bytes of a source, which are not kept: in memory are the longest line, and a megabyte
    /// or two a thread. Of a file that is no session only the beginning is read. `done` is told how many bytes more were
    /// read, by any of the threads.
    ///
    /// # Errors
    /// [`SourceError`] if the text cannot be read.
    pub fn from_source(
        source: &dyn Source,
        len: u64,
        threads: usize,
        done: &(dyn Fn(u64) + Sync),
    ) -> Result<Tree, SourceError> {
        Work::new(Text::There(source, len), done).on(threads)
    }
}

/// The blocks of a text, to be taken by whoever is free.
struct Work<'w> {
    text: Text<'w>,
    blocks: u64,
    done: &'w (dyn Fn(u64) + Sync),
    /// The next block that nobody has taken.
    next: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    tree: Tree,
    /// The block whose lines come next.
    turn: u64,
    /// Nothing more is taken in.
    stopped: bool,
    failed: Option<SourceError>,
}

impl<'w> Work<'w> {
    fn new(text: Text<'w>, done: &'w (dyn Fn(u64) + Sync)) -> Work<'w> {
        let state = State { tree: Tree::new(), turn: 0, stopped: false, failed: None };
        let (state, blocks) = (Mutex::new(state), text.len().div_ceil(BLOCK));
        Work { text, blocks, done, next: AtomicU64::new(0), state, changed: Condvar::new() }
    }

    fn on(self, threads: usize) -> Result<Tree, SourceError> {
        let more = (threads.min(MOST) as u64).min(self.blocks).saturating_sub(1);
        std::thread::scope(|scope| {
            for _ in 0..more {
                // Without a thread the work is done here.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || self.serve());
            }
            self.serve();
        });
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.tree.find_path();
        state.failed.map_or(Ok(state.tree), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker's life: reads blocks until all are taken.
    fn serve(&self) {
        let _alarm = Alarm(self);
        let mut room = Vec::new();
        loop {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            if block >= self.blocks {
                return;
            }
            if let Err(error) = self.read(block, &mut room) {
                self.stop(Some(error));
            }
            (self.done)(BLOCK.min(self.text.len() - block * BLOCK));
        }
    }

    /// Puts the lines of a block into the tree.
    fn read(&self, block: u64, room: &mut Vec<u8>) -> Result<(), SourceError> {
        let mut turn = Turn { work: self, block, state: None };
        let found = self.text.block(block, room)?;
        turn.put(found.offset, found.text);
        if room.len() as u64 > 2 * BLOCK {
            *room = Vec::new();
        }
        turn.pass();
        Ok(())
    }

    /// Ends the work of all, whatever they wait for.
    fn stop(&self, failed: Option<SourceError>) {
        let mut state = self.lock();
        state.failed = state.failed.take().or(failed);
        self.stop_at(&mut state);
    }

    fn stop_at(&self, state: &mut State) {
        state.stopped = true;
        self.next.store(self.blocks, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// A block's turn to be put into the tree: once it has come, nobody else's comes before it is over.
struct Turn<'w> {
    work: &'w Work<'w>,
    block: u64,
    state: Option<MutexGuard<'w, State>>,
}

impl Turn<'_> {
    /// Puts in the lines of a text that begins at `offset`.
    fn put(&mut self, offset: u64, text: &[u8]) {
        let mut found = Vec::with_capacity(AT_ONCE);
        for (offset, line, ended) in lines(offset, text) {
            found.push((offset, read(line), ended));
            if found.len() == AT_ONCE {
                self.take(&mut found);
            }
        }
        self.take(&mut found);
    }

    fn take(&mut self, found: &mut Vec<(u64, Line<'_>, bool)>) {
        let work = self.work;
        let state = self.wait();
        for (offset, line, ended) in found.drain(..) {
            if state.stopped {
                return;
            }
            if ended {
                state.tree.take(offset, line);
            } else {
                state.tree.take_last(offset, line);
            }
            if state.tree.status() == Status::NotASession {
                work.stop_at(state);
            }
        }
    }

    fn wait(&mut self) -> &mut State {
        let (work, block) = (self.work, self.block);
        self.state.get_or_insert_with(|| {
            let before = |state: &mut State| state.turn != block && !state.stopped;
            work.changed.wait_while(work.lock(), before).unwrap_or_else(PoisonError::into_inner)
        })
    }

    fn pass(mut self) {
        self.wait().turn += 1;
        self.work.changed.notify_all();
    }
}

/// Tells the others when a worker panics, so that nobody waits for what it had taken.
struct Alarm<'w>(&'w Work<'w>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(None);
        }
    }
}
