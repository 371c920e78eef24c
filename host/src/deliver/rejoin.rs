//! Leading back to a line that a misplaced graft has passed over (product.md section 5, *misplaced*).
//!
//! ```text
//! a1 ┬─ u2 ── J      Pi's u2 came between our check and our write: the graft would be the leaf at the next open, and u2
//!    └─ R1 n1        off the branch. J, a `custom` entry that gives nothing, makes u2's branch the one the file ends on
//! ```
//!
//! | died | the store says | the file has | recovery |
//! | --- | --- | --- | --- |
//! | before `intend_own` | that a graft was misplaced | the graft last | led back when it is quiet |
//! | between `intend_own` and the write | intended | the graft last | withdrawn; led back when it is quiet |
//! | in the write | intended | a prefix of the line | the rest is appended |
//! | after the write | intended, or nothing | the line | nothing to lead back: the file tells by itself |

use std::path::Path;

use pi_session::branch::Branch;
use pi_session::compose::{Stale, compose_note};
use pi_session::grafts::REJOIN_TYPE;
use pi_session::json::quoted;
use pi_session::strict::RawJson;

use crate::files::FilesError;
use crate::files::append::{Landed, Mtime, Place, append};
use crate::journal::{Batch, Intent, SessionKey};

use super::append::{DeliverError, Direct, led_in, time_to_keep};
use super::labelled::Labelled;

/// The reason of such a line in the journal.
const REASON: &str = "rejoin";

/// Whether it is the intent of such a line.
#[must_use]
pub fn is_rejoin(intent: &Intent) -> bool {
    intent.batch.reason == REASON
}

/// What became of it.
#[derive(Debug)]
pub enum Led {
    /// The line is in the file.
    Back(Landed),
    /// The file is not what was looked at, or cannot be written now: to be tried again.
    Kept(FilesError),
    /// Nothing can hang on that line.
    Impossible(Stale),
}

/// Where it is written.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The session.
    pub path: &'a Path,
    /// What was looked at.
    pub place: Place,
    /// Whether the file's time may move.
    pub mtime: Mtime,
}

/// Appends a line behind `branch`, which ends in the line that was passed over by the graft of `misplaced`. The file itself
/// ends in that graft. `id` is free for the journal.
///
/// # Errors
/// [`DeliverError`]; the write may have happened, and recovery looks.
pub fn rejoin(
    direct: &mut Direct<'_>,
    session: SessionKey,
    branch: &Branch,
    misplaced: &Batch,
    id: String,
    end: End<'_>,
) -> Result<Led, DeliverError> {
    let data = RawJson::parse(&format!("{{\"batch\":{}}}", quoted(&misplaced.id))).expect("an object with a text");
    let note = match compose_note(branch, REJOIN_TYPE, data, direct.now_ms, direct.random) {
        Ok(note) => note,
        Err(stale) => return Ok(Led::Impossible(stale)),
    };
    let bytes = led_in(end.place, note.bytes());
    let batch = Batch { id, reason: REASON.to_owned(), drafts: "[]".to_owned(), ..misplaced.clone() };
    let ids = note.entries().iter().map(|entry| entry.id.clone()).collect();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let intent = Intent {
        batch,
        path: end.path.to_path_buf(),
        place: end.place,
        ids,
        bytes: text,
        keep: time_to_keep(end.path, end.mtime),
    };
    direct.journal.intend_own(session, &intent)?;
    crate::steps::reached("rejoin-intended");
    let led = match append(&Labelled(direct.disk), end.path, end.place, &bytes, end.mtime) {
        Ok(landed) => Led::Back(landed),
        Err(e) if e.wrote_nothing() => Led::Kept(e),
        // Some of it may be in the file: the intent stays, and recovery looks.
        Err(e) => return Err(e.into()),
    };
    crate::steps::reached("rejoin-written");
    direct.journal.withdraw(&intent.batch.id)?;
    crate::steps::reached("rejoin-done");
    Ok(led)
}
