//! The log of a run, on standard error: one line an event, whatever stands in it.

use std::io::{self, IsTerminal, Stderr, Write};

/// Begins it; `RUST_LOG` says how much of it, unless that is not set: `usual`.
pub(super) fn log_to_stderr(usual: &str) {
    let level = tracing_subscriber::EnvFilter::try_from_default_env();
    let level = level.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(usual));
    let ansi = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(level).with_target(false).with_ansi(ansi);
    log.with_writer(|| OneLine(io::stderr())).init();
}

/// Writes each event, which comes in one piece, as one line: a path, or what a plugin says, may hold line ends, and is not to
/// pass for events of its own.
struct OneLine(Stderr);

impl Write for OneLine {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(&one_line(event))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The event with the line ends within it as escapes.
fn one_line(event: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(event.len());
    for byte in event.strip_suffix(b"\n").unwrap_or(event) {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            other => line.push(*other),
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_stands_in_it() {
        assert_eq!(one_line(b"grafted session=/a\nb/c.jsonl\r\n"), b"grafted session=/a\\nb/c.jsonl\\r\n");
        assert_eq!(one_line(b"plain\n"), b"plain\n");
    }
}
