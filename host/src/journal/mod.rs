//! What was handled, what is pending, what was intended, what is done: one embedded transactional store, one owner.
//!
//! A batch goes through three states here, and each step is one transaction:
//!
//! ```text
//! (proposed) --record--> pending --intend--> intended --done--> done
//!                           ^                    |
//!                           +----- withdraw -----+      pending --drop_batch--> dropped (stale, disabled)
//! ```
//!
//! `record` moves the cursor past the entry in the same transaction, so a run is either remembered with what it proposed or
//! not at all. `intend` is on the disk before the first byte of the graft is; `done` may be lost, since recovery finds the
//! graft's ids in the file. Losing the whole store forgets what was pending and harms no session: a receipt in the file
//! outranks it (product.md 4.5).

mod failed;
mod grafted;
mod held;
mod ids;
mod log;
mod place;
mod record;
mod store;
mod used;

pub use failed::{Change, FailedRun, Passed, Standing};
pub use grafted::{GraftRecord, Hold};
pub use ids::fingerprint;
pub use log::{Keep, RowKey};
pub use record::{
    About, Batch, Given, Handler, Intent, Logged, Note, PI_HAS_IT, Process, Refused, RunRecord, SessionKey,
    SessionRecord, Text, Unended,
};
pub use store::{Journal, JournalError, Moved, Recorded};
