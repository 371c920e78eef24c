//! Rows of the run log as they stand in the store, and the texts that they name by hash, between the command line and the
//! daemon. Both come in pages, so that neither side holds a whole log for the other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which rows are wanted; answered with [`Rows`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsWanted {
    /// Of the session with this id.
    pub session: String,
    /// About one of these entries or batches; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Vec<String>>,
    /// Behind this one: the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<(i64, u64)>,
}

/// A page of rows, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The rows, as the store has them.
    pub rows: Vec<Value>,
    /// How far the log was looked through; none if that is its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<(i64, u64)>,
    /// The batches that are pending for the session at this moment, by id.
    #[serde(default)]
    pub pending: Vec<String>,
}

/// Which texts are wanted, by hash; answered with [`Texts`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextsWanted {
    /// The hashes.
    pub hashes: Vec<String>,
}

/// Texts by hash, none for one that is not kept any more. What did not fit into the page is not there: to be asked for
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    /// The texts.
    pub texts: BTreeMap<String, Option<String>>,
}
