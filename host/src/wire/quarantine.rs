//! Runs that failed, between the command line and the daemon. Times are Unix milliseconds.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::paths;

/// Runs that failed and are not done with, and suspended plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quarantine {
    /// The runs, those that failed last at the end.
    pub runs: Vec<FailedLine>,
    /// Plugins that are suspended in a session, or have yet to see what passed without them.
    pub suspended: Vec<SuspendedLine>,
}

impl Quarantine {
    /// The same with what concerns this plugin only.
    #[must_use]
    pub fn of(mut self, plugin: Option<&str>) -> Quarantine {
        let wanted = |name: &str| plugin.is_none_or(|plugin| plugin == name);
        self.runs.retain(|run| wanted(&run.plugin));
        self.suspended.retain(|suspended| wanted(&suspended.plugin));
        self
    }

    /// Where a plugin is suspended, in words.
    #[must_use]
    pub fn suspended_where(&self, plugin: &str) -> Option<String> {
        let there: Vec<_> =
            self.suspended.iter().filter(|row| row.plugin == plugin && row.since_ms.is_some()).collect();
        match there.len() {
            0 => None,
            _ if there.iter().any(|row| row.everywhere) => Some("everywhere".to_owned()),
            1 => Some("in 1 session".to_owned()),
            more => Some(format!("in {more} sessions")),
        }
    }

    /// How many runs of a plugin are tried again, and how many are in quarantine.
    #[must_use]
    pub fn counts(&self, plugin: &str) -> (usize, usize) {
        let of_plugin = self.runs.iter().filter(|run| run.plugin == plugin);
        let (retrying, quarantined): (Vec<_>, Vec<_>) = of_plugin.partition(|run| run.retry_ms.is_some());
        (retrying.len(), quarantined.len())
    }
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedLine {
    /// What it is named by.
    pub id: String,
    /// `retry` (it is tried again) or `quarantine` (when a new version of the plugin comes).
    pub state: String,
    /// The session's id.
    pub session: String,
    /// Where it is, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "paths::some")]
    pub path: Option<PathBuf>,
    /// The plugin.
    pub plugin: String,
    /// SHA-256 of the component that failed.
    pub digest: String,
    /// `on-entry` or `on-settled`.
    pub handler: String,
    /// The entry that it ran on.
    pub trigger: String,
    /// How it failed last: `deadline`, `trap`, …
    pub kind: String,
    /// What happened, with the figure of a limit.
    pub message: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<i64>,
    /// When it failed first.
    pub first_ms: i64,
    /// When it failed last.
    pub last_ms: i64,
}

/// A plugin that does not run in a session, or has something to make up for there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspendedLine {
    /// The plugin.
    pub plugin: String,
    /// SHA-256 of the component that failed; empty if it could not be loaded.
    pub digest: String,
    /// The session's id.
    pub session: String,
    /// Where it is.
    #[serde(serialize_with = "paths::one")]
    pub path: PathBuf,
    /// When it was suspended; none if it merely has something to make up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// Whether it is suspended in so many sessions that it runs nowhere.
    pub everywhere: bool,
    /// Entries that passed without it.
    pub passed: u64,
}

/// Which failed runs are to be made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Those with these ids.
    #[serde(default)]
    pub ids: Vec<String>,
    /// Those of this plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// All.
    #[serde(default)]
    pub all: bool,
}

impl Retry {
    /// Whether a run is meant.
    #[must_use]
    pub fn means(&self, id: &str, plugin: &str) -> bool {
        self.all || self.ids.iter().any(|named| named == id) || self.plugin.as_deref() == Some(plugin)
    }
}

/// What is made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// The runs, by id.
    pub runs: Vec<String>,
    /// The plugins that are suspended no more.
    pub plugins: Vec<String>,
}
