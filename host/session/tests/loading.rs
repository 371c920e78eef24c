//! A whole session, read from where its text lies: the tree is the same whoever reads which part of it, and what is in
//! memory of the text is bounded.

mod common;

use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::grown::{grown, same};
use common::{generate, typical};
use pi_session::Tree;
use pi_session::tree::{Source, SourceError, Status};

/// A file's text, and what was read of it.
struct Disk<'t> {
    text: &'t [u8],
    /// Bytes that can be read; what stands behind them cannot.
    good: usize,
    read: AtomicU64,
    /// Where each read began.
    places: Mutex<Vec<u64>>,
}

impl<'t> Disk<'t> {
    fn of(text: &'t [u8]) -> Disk<'t> {
        Disk { text, good: text.len(), read: AtomicU64::new(0), places: Mutex::default() }
    }

    fn load(&self, threads: usize) -> Result<Tree, SourceError> {
        Tree::from_source(self, self.text.len() as u64, threads, &|_| {})
    }
}

impl Source for Disk<'_> {
    fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError> {
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        self.places.lock().expect("no thread panicked").push(offset);
        if offset as usize + len > self.good {
            return Err(SourceError::new(offset, len, "a bad disk"));
        }
        self.text.read(offset, len)
    }
}

fn read_in_every_way(text: &[u8]) {
    let expected = grown(text);
    same(&Tree::from_bytes(text), &expected);
    for threads in [1, 2, 5] {
        same(&Disk::of(text).load(threads).expect("it can be read"), &expected);
    }
}

const HEADER: &str =
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n";

/// A line of exactly so many bytes, its line end included.
fn line(number: usize, bytes: usize) -> String {
    let bare = format!("{{\"type\":\"custom\",\"customType\":\"x\",\"id\":\"{number}\",\"data\":\"\"}}\n").len();
    let data = "x".repeat(bytes.saturating_sub(bare));
    format!("{{\"type\":\"custom\",\"customType\":\"x\",\"id\":\"{number}\",\"data\":\"{data}\"}}\n")
}

#[test]
fn the_tree_is_the_same_whoever_reads_which_part() {
    read_in_every_way(b"");
    (0..100).for_each(|seed| read_in_every_way(&generate::session(seed)));
    let mut text = typical::session(2, 5_000_000);
    read_in_every_way(&text);
    text.extend_from_slice(b"{\"type\":\"custom\",\"id\":\"torn");
    read_in_every_way(&text);
}

#[test]
fn lines_may_end_anywhere_and_be_of_any_length() {
    const BLOCK: usize = 256 * 1024;
    for around in 0..5 {
        let mut text = HEADER.to_owned();
        text += &line(0, BLOCK - HEADER.len() - 2 + around);
        for (number, bytes) in [(1, BLOCK), (2, 3 * BLOCK), (3, 80), (4, 9 * BLOCK + 7), (5, 2 * BLOCK)] {
            text += &line(number, bytes);
        }
        text += &"\n".repeat(2 * BLOCK);
        text += &line(6, 5 * BLOCK);
        read_in_every_way(text.as_bytes());
        read_in_every_way(text.trim_end().as_bytes());
    }
}

#[test]
fn of_lines_that_are_long_one_is_read_at_a_time() {
    const LONG: usize = 3_000_000;
    let mut text = HEADER.to_owned();
    (0..8).for_each(|number| text += &line(number, LONG));
    let disk = Disk::of(text.as_bytes());
    disk.load(4).expect("it can be read");
    let far_into_a_line = |place: &u64| (*place as usize - HEADER.len() % LONG) % LONG > LONG / 2;
    let line_of = |place: u64| (place as usize - HEADER.len()) / LONG;
    // Beyond a block, from which its first line is looked for, reads of 256 KiB belong to the line itself.
    let places = disk.places.into_inner().expect("no thread panicked");
    let unaligned = places.into_iter().filter(|place| *place > 0 && (*place + 1) % (256 * 1024) != 0);
    let lines: Vec<_> = unaligned.filter(far_into_a_line).map(line_of).collect();
    assert!(lines.len() >= 8 && lines.is_sorted(), "{lines:?}");
}

#[test]
fn little_is_read_twice() {
    let text = typical::session(3, 5_000_000);
    let disk = Disk::of(&text);
    disk.load(2).expect("it can be read");
    let read = disk.read.into_inner() as usize;
    assert!(read >= text.len() && read < text.len() + text.len() / 10, "{read} of {}", text.len());
}

#[test]
fn of_what_is_no_session_only_the_beginning_is_read() {
    let text = [b"{\"no\":\"session\"}\n".to_vec(), typical::session(4, 9_000_000)].concat();
    let disk = Disk::of(&text);
    let tree = disk.load(2).expect("it can be read");
    assert_eq!((tree.status(), tree.entries().len()), (Status::NotASession, 0));
    let read = disk.read.into_inner();
    assert!(read < 4_000_000, "{read}");
}

#[test]
fn text_that_cannot_be_read_is_an_error_and_nobody_waits_for_it() {
    let text = typical::session(5, 5_000_000);
    for (good, threads) in [(0, 1), (100_000, 2), (2_000_000, 1), (2_000_000, 2), (4_990_000, 5)] {
        let error = Disk { good, ..Disk::of(&text) }.load(threads).expect_err("a part of it cannot be read");
        assert_eq!(error.reason, "a bad disk");
    }
}

#[test]
fn a_reader_that_panics_takes_the_others_with_it() {
    struct Broken<'t>(Disk<'t>);
    impl Source for Broken<'_> {
        fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError> {
            assert!(offset < 2_000_000, "as if there were a fault in it");
            self.0.read(offset, len)
        }
    }
    let text = typical::session(6, 5_000_000);
    for threads in [1, 4] {
        let broken = Broken(Disk::of(&text));
        let load = || Tree::from_source(&broken, text.len() as u64, threads, &|_| {});
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).expect_err("it goes on to who asked");
    }
}
