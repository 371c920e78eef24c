//! What is known of a session's grafts beyond what its file tells (product.md section 5).

use serde::{Deserialize, Serialize};

/// Kept with the session's cursor, in one transaction with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraftRecord {
    /// Where the Pis of bridges stood since the last line of Pi's: grafts on the way there are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// The file may end in a graft of ours that passed over somebody's line.
    #[serde(skip_serializing_if = "is_default")]
    pub misplaced: bool,
    /// Until then a Pi counts as there, because a graft was misplaced; Unix milliseconds.
    #[serde(skip_serializing_if = "is_default")]
    pub live_until_ms: i64,
    /// That Pi has passed over grafts, as long as it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Of a fork: how many entries it had when edits of the session it comes from were looked for.
    #[serde(skip_serializing_if = "is_default")]
    pub inherited: u64,
}

/// A Pi counts as there although it cannot be seen, for it has passed over a graft that it had not loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// How often in a row: the quiet that is waited for doubles each time.
    pub orphans: u32,
    /// It was quiet for long enough, and counts as gone.
    #[serde(default)]
    pub over: bool,
    /// The system showed no Pi when it happened: that it shows none proves nothing here.
    #[serde(default)]
    pub unseen: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
