//! Where a command's answer goes: standard output, written once, never `println!` (which panics when a pipe closes).

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

/// The answer of a command.
pub struct Out {
    to: Box<dyn Write>,
    /// One JSON document rather than text for people.
    pub json: bool,
    /// Columns that text for people may take.
    pub width: usize,
}

impl Out {
    /// Standard output.
    #[must_use]
    pub fn stdout(json: bool) -> Out {
        let stdout = io::stdout();
        let width = if stdout.is_terminal() { terminal_width() } else { usize::MAX };
        Out { to: Box::new(BufWriter::with_capacity(1 << 16, stdout)), json, width }
    }

    /// Writes text as it is.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn put(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(text.as_bytes())
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    /// Writes one line.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.to, "{text}")
    }

    /// Writes one line, cut to the width of the terminal.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn row(&mut self, text: &str) -> io::Result<()> {
        let text = cut(text.trim_end(), self.width);
        self.line(text)
    }

    /// Sends all of it on its way.
    ///
    /// # Errors
    /// What the system says; a closed pipe too.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// One line of the answer where there is no [`Out`] at hand; a reader that went away is no reason to panic.
pub fn answer(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// A word on standard error; nobody minds if it cannot be written.
pub fn say(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(100, |size| usize::from(size.ws_col)).max(40)
}

/// The first `width` characters of a text, the last of them `…` if there were more.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A number with its thousands apart: `12,345`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
    fn long_lines_are_cut_between_characters() {
        assert_eq!(cut("añb", 3), "añb");
        assert_eq!(cut("añbc", 3), "añ…");
        assert_eq!(cut("", 3), "");
    }

    #[test]
    fn numbers_are_easy_to_read() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (number, text) in [(1391.0, "1391"), (0.5, "0.5"), (f64::NAN, "null")] {
            assert_eq!(js_number(number), text);
        }
    }
}
