//! Between the command line and the daemon.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the command line wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "lowercase")]
pub enum Request {
    /// How things stand.
    Status,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// Done, or what was asked for.
    Ok {
        /// The answer itself.
        ok: Value,
    },
    /// It could not be done.
    Error {
        /// Why, in words for the user.
        error: String,
    },
}
