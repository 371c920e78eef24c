//! How far long work is: one line on the terminal, from the command's second second on, gone when the work is done.
//!
//! It is only for somebody who looks on. There is none where another program reads the answer and may paint on the same
//! terminal (a pipe to a pager), and none between lines of JSON. Whoever writes to the terminal erases it first.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use super::out::{bytes_text, terminal_width};
use super::text;

/// A command that takes less says nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// It is painted anew this often.
const PAUSE: Duration = Duration::from_millis(100);
/// Columns of the bar.
const WIDE: u64 = 24;

/// When the command began.
static BEGUN: OnceLock<Instant> = OnceLock::new();
/// Somebody looks on.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// A line is on the terminal.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// Some work tells how far it is; work within it says nothing of its own.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Allows progress, if there is somebody to see it and nothing that it would spoil.
pub fn allow(json: bool) {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let apart = if io::stdout().is_terminal() { !json } else { goes_to_a_file() };
    BEGUN.get_or_init(Instant::now);
    WATCHED.store(io::stderr().is_terminal() && !dumb && apart, Relaxed);
}

/// Standard output goes where nobody reads along: a file, or nowhere.
fn goes_to_a_file() -> bool {
    let kind = rustix::fs::fstat(io::stdout()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::RegularFile | FileType::CharacterDevice))
}

/// Takes the line from the terminal, if one is there: something else is to be written.
pub fn erase() {
    if SHOWN.swap(false, Relaxed) {
        let _ = io::stderr().write_all(b"\r\x1b[K");
    }
}

/// Work of a known size. Its line goes when it is dropped.
pub struct Progress {
    what: &'static str,
    total: u64,
    done: AtomicU64,
    start: Instant,
    /// Milliseconds after the start when it is to be painted next.
    next: AtomicU64,
    tells: bool,
}

impl Progress {
    /// Work on so many bytes, such as `reading`.
    #[must_use]
    pub fn of(what: &'static str, total: u64) -> Progress {
        let tells = WATCHED.load(Relaxed) && !TOLD.swap(true, Relaxed);
        let since = BEGUN.get().map_or(Duration::ZERO, Instant::elapsed);
        let next = AtomicU64::new(PATIENCE.saturating_sub(since).as_millis() as u64);
        Progress { what, total, done: AtomicU64::new(0), start: Instant::now(), next, tells }
    }

    /// So much more is done. Any thread may say so, as often as it likes.
    pub fn add(&self, bytes: u64) {
        if !self.tells {
            return;
        }
        let done = self.done.fetch_add(bytes, Relaxed) + bytes;
        let (now, due) = (self.start.elapsed().as_millis() as u64, self.next.load(Relaxed));
        let later = now + PAUSE.as_millis() as u64;
        // Of several threads one paints.
        if now >= due && self.next.compare_exchange(due, later, Relaxed, Relaxed).is_ok() {
            SHOWN.store(true, Relaxed);
            let line = line(self.what, done, self.total, terminal_width(io::stderr()));
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.tells {
            erase();
            TOLD.store(false, Relaxed);
        }
    }
}

/// As much of it as fits on one row, with a column left for the cursor: a row that goes on in the next cannot be painted over.
fn line(what: &str, done: u64, total: u64, columns: usize) -> String {
    let (done, total) = (done.min(total), total.max(1));
    let part = |of: u64| (u128::from(done) * u128::from(of) / u128::from(total)) as u64;
    let bar = |wide: u64| {
        let full = part(wide) as usize;
        format!("{what} {}{} {:>3} %", "━".repeat(full), "─".repeat(wide as usize - full), part(100))
    };
    let figures = format!("  {} of {}", bytes_text(done), bytes_text(total));
    let forms = [bar(WIDE) + &figures, bar(WIDE), bar(WIDE / 2), format!("{what} {:>3} %", part(100))];
    let fits = forms.iter().find(|form| text::columns(form) < columns);
    fits.cloned().unwrap_or_else(|| text::cut(what, columns.saturating_sub(1)).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_done_and_how_far() {
        assert_eq!(line("reading", 0, 0, 80), "reading ────────────────────────   0 %  0 B of 1 B");
        let half = |columns| line("reading", 650 << 20, 1300 << 20, columns);
        assert_eq!(half(80), "reading ━━━━━━━━━━━━────────────  50 %  650 MB of 1.3 GB");
        assert_eq!(line("reading", 9, 5, 80), "reading ━━━━━━━━━━━━━━━━━━━━━━━━ 100 %  5 B of 5 B");
        assert_eq!(half(57), half(80));
        assert_eq!(half(56), "reading ━━━━━━━━━━━━────────────  50 %");
        assert_eq!(half(30), "reading ━━━━━━──────  50 %");
        assert_eq!((half(14), half(13), half(5)), ("reading  50 %".into(), "reading".into(), "rea…".into()));
    }
}
