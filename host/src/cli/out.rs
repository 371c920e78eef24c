//! Where a command's answer goes: standard output, written once, never `println!` (which panics when a pipe closes).

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

pub use pi_session::figures::grouped;

use super::failure::Failure;
use super::paint::{Ink, Row};
use super::{progress, text};

/// The answer of a command.
pub struct Out {
    to: Box<dyn Write>,
    /// One JSON document rather than text for people.
    pub json: bool,
    /// Columns that text for people may take.
    pub width: usize,
    /// It goes to a terminal.
    terminal: bool,
    colours: bool,
}

impl Out {
    /// Standard output.
    #[must_use]
    pub fn stdout(json: bool) -> Out {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let width = columns().unwrap_or(if terminal { terminal_width(&stdout) } else { usize::MAX });
        let to = Box::new(BufWriter::with_capacity(1 << 16, Clean(stdout)));
        Out { to, json, width, terminal, colours: wants_colours(terminal) }
    }

    /// Writes text as it is; on a terminal without what would paint on it.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn put(&mut self, text: &str) -> io::Result<()> {
        let text = if self.terminal { text::seen_json(text) } else { text.into() };
        self.to.write_all(text.as_bytes())
    }

    /// Writes bytes as they are; on a terminal likewise.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.terminal { self.put(&String::from_utf8_lossy(bytes)) } else { self.to.write_all(bytes) }
    }

    /// Writes one line of JSON, or lines for people.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn line(&mut self, text: impl Display) -> io::Result<()> {
        let text = text.to_string();
        match self.json {
            true => self.put(&text)?,
            false => self.to.write_all(text::seen_lines(&text).as_bytes())?,
        }
        self.to.write_all(b"\n")
    }

    /// Writes one line for people, cut to the width of the terminal.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn row(&mut self, text: &str) -> io::Result<()> {
        self.paint(&Row::new().and(Ink::Plain, text))
    }

    /// The same in colours, where they are wanted.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn paint(&mut self, row: &Row) -> io::Result<()> {
        writeln!(self.to, "{}", row.render(self.width, self.colours))
    }

    /// For what is no JSON: a page, or the lines of a session.
    ///
    /// # Errors
    /// [`Failure::Usage`] where only JSON may go to standard output.
    pub fn raw(&mut self) -> Result<&mut Out, Failure> {
        let message = "with --json nothing but JSON goes to standard output; name a file to write to, with -o";
        if self.json { Err(Failure::usage(message)) } else { Ok(self) }
    }

    /// Whether it goes to a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Sends all of it on its way.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A writer to write files and pages with: bytes as they are.
impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Standard output, clear of progress.
struct Clean(io::Stdout);

impl Write for Clean {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        progress::erase();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// One line of the answer where there is no [`Out`] at hand; a reader that went away is no reason to panic.
pub fn answer(text: impl Display) {
    let _ = writeln!(Clean(io::stdout()), "{text}");
}

/// A word on standard error; nobody minds if it cannot be written.
pub fn say(text: impl Display) {
    progress::erase();
    let _ = writeln!(io::stderr(), "{}", text::seen_lines(&text.to_string()));
}

/// Columns of a terminal; one that does not say has some.
#[must_use]
pub fn terminal_width(terminal: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
    if size == 0 { 80 } else { size }
}

/// The width that the user gives, also where there is no terminal.
fn columns() -> Option<usize> {
    let columns: Option<usize> = std::env::var("COLUMNS").ok()?.parse().ok();
    columns.filter(|columns| *columns > 0)
}

/// As the user says (`NO_COLOR`, `CLICOLOR_FORCE`) and the terminal can.
fn wants_colours(terminal: bool) -> bool {
    let is = |name, no: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != no);
    !is("NO_COLOR", "") && (is("CLICOLOR_FORCE", "0") || terminal && is("TERM", "dumb"))
}

/// A size in bytes, in two or three digits: `950 B`, `1.2 MB`.
#[must_use]
pub fn bytes_text(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, [" B", " KB", " MB", " GB", " TB"])
}

/// A count in two or three digits: `950`, `1.2k`.
#[must_use]
pub fn short(count: f64) -> String {
    scaled(count, 1000.0, ["", "k", "M", "G", "T"])
}

fn scaled(mut number: f64, base: f64, units: [&str; 5]) -> String {
    let mut unit = 0;
    // What would be written with four digits goes on.
    while number >= base.min(999.5) && unit + 1 < units.len() {
        number /= base;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && number < 9.95);
    format!("{number:.digits$}{}", units[unit])
}

/// A number as JavaScript would print it in JSON.
#[must_use]
pub fn js_number(number: f64) -> String {
    match number {
        n if !n.is_finite() => "null".to_owned(),
        n if n.fract() == 0.0 && n.abs() < 1e15 => format!("{n:.0}"),
        n => n.to_string(),
    }
}

/// The same as a JSON value.
#[must_use]
pub fn json_number(number: f64) -> serde_json::Value {
    serde_json::from_str(&js_number(number)).unwrap_or_default()
}

/// A string in JSON.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        for (number, text) in [(1391.0, "1391"), (0.5, "0.5"), (f64::NAN, "null")] {
            assert_eq!(js_number(number), text);
        }
    }

    #[test]
    fn sizes_take_little_room() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1023, "1.0 KB"),
            (1536, "1.5 KB"),
            (10_200, "10 KB"),
            (2_600_000_000, "2.4 GB"),
        ] {
            assert_eq!(bytes_text(bytes), text);
        }
        for (count, text) in [(0.0, "0"), (999.0, "999"), (1000.0, "1.0k"), (45_200.0, "45k"), (999_900.0, "1.0M")] {
            assert_eq!(short(count), text);
        }
    }
}
