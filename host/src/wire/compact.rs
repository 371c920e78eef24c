//! A compaction that the command line wants now (`pi-graft compact`).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which session is to be compacted. Whoever asks stays connected: if it goes, the compaction is given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compact {
    /// Its real path.
    pub session: PathBuf,
    /// What the summary is to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Make it and keep nothing of it.
    #[serde(default)]
    pub dry_run: bool,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// `grafted`; `made`, of a dry run; `pending`, made and not in the file yet; `nothing`.
    pub outcome: String,
    /// The plugin that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Its batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Where it stands in the file, once it is grafted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Of a dry run: the entry that it would go behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
    /// Of a dry run: the drafts, a JSON list as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafts: Option<String>,
    /// Why there is nothing, or why it waits; what each plugin said.
    #[serde(default)]
    pub why: Vec<String>,
}
