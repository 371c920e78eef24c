//! The lines of a branch, byte for byte.

use std::io::{self, Write};

use pi_session::tree::Pushed;
use pi_session::{Branch, Tree};

use crate::cli::failure::Failure;
use crate::cli::open::Opened;
use crate::cli::progress::Progress;
use crate::files::whole;

/// Writes the header's line and those of the branch. Lines that stand behind each other are copied as one.
pub(super) fn write(opened: &Opened, branch: &Branch, progress: &Progress, to: &mut dyn Write) -> Result<(), Failure> {
    let entries = branch.items().map(|item| (item.facts.offset, u64::from(item.facts.len)));
    let (mut offset, mut len) = header(opened)?;
    for (next, long) in entries {
        if offset + len + 1 == next {
            len += 1 + long;
            continue;
        }
        line(opened, offset, len, progress, to)?;
        (offset, len) = (next, long);
    }
    Ok(line(opened, offset, len, progress, to)?)
}

fn line(opened: &Opened, offset: u64, len: u64, progress: &Progress, to: &mut dyn Write) -> io::Result<()> {
    whole::copy(&opened.reading, offset, len, to, |more| progress.add(more))?;
    to.write_all(b"\n")
}

/// Where the header's line stands.
fn header(opened: &Opened) -> io::Result<(u64, u64)> {
    // In a file without a line end it is all there is.
    let (mut tree, mut found) = (Tree::new(), (0, opened.place.len));
    opened.reading.lines(0, |offset, line| {
        let is_header = tree.push(offset, line) == Pushed::Header;
        if is_header {
            found = (offset, line.len() as u64);
        }
        !is_header
    })?;
    Ok(found)
}
