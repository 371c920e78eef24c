//! Entries that are too large to be read whole. No model can take such a text, so a note stands in its place if it holds a
//! secret; what is too large even to be gone over is told.
use pi_graft_plugin::{Info, Json, Level, Result, Run};

use crate::config::Config;
use crate::find::{self, Found};
use crate::{PIECE, told};

/// Bytes that are gone over: fuel is limited.
const MOST: usize = 8 << 20;
/// Bytes that are looked at at once, and of these what is only looked at to see where a secret ends.
const WINDOW: usize = 1 << 20;
const MARGIN: usize = 64 << 10;

/// Puts a note in place of the entry's content if there is a secret in it.
pub(crate) fn redact(config: &Config, run: &Run, entry: &Info) -> Result {
    let (found, read) = gone_over(config, run, entry)?;
    let id = entry.id.as_deref().unwrap_or("?");
    if (read as u64) < entry.bytes {
        run.log(Level::Warn, &format!("{id} has {} bytes; only the first {read} were looked through", entry.bytes));
    }
    if found.is_empty() {
        return Ok(());
    }
    if entry.role.as_deref() == Some("assistant") {
        let text = format!(
            "{} in {id}, which is too large ({} bytes) to be written anew with its tool calls",
            told::count(&found),
            entry.bytes
        );
        run.log(Level::Warn, &text);
        return Ok(());
    }
    let text = format!(
        "[redact-secrets left out {} bytes: there were secrets among them ({}), and they are too many to be written anew]",
        entry.bytes,
        told::count(&found)
    );
    crate::propose(run, entry, &Json::text(&text), &found)
}

/// The secrets in an entry's line, and how much of it was gone over. Memory stays bounded.
fn gone_over(config: &Config, run: &Run, entry: &Info) -> Result<(Vec<Found>, usize)> {
    let (mut found, mut window, mut read, mut next) = (Vec::new(), String::new(), 0, Some(0));
    while let Some(offset) = next.filter(|_| read < MOST) {
        let piece = run.host().text(entry.place, offset, PIECE)?;
        window.push_str(&piece.text);
        read += piece.text.len();
        next = piece.next;
        let is_last = next.is_none() || read >= MOST;
        if window.len() >= WINDOW || is_last {
            let until = if is_last { window.len() } else { window.len() - MARGIN };
            let new = find::find(window.as_bytes(), 0, until, config);
            let gone = new.last().map_or(until, |last| last.end.max(until));
            found.extend(new);
            window.drain(..window.ceil_char_boundary(gone));
        }
    }
    Ok((found, read))
}
