//! Between the command line and the daemon. Times are Unix milliseconds.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::paths;

/// What the command line wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "lowercase")]
pub enum Request {
    /// How things stand; answered with a [`Status`].
    Status {
        /// Every session that is known, not only those with something to say.
        #[serde(default)]
        all: bool,
    },
    /// The newest lines of the log, oldest of them first; answered with lists of [`LogLine`].
    Log {
        /// How many, at most.
        most: usize,
        /// Which.
        #[serde(flatten)]
        filter: LogFilter,
        /// Also those that come yet, until the client goes.
        #[serde(default)]
        follow: bool,
    },
    /// Nothing runs and nothing is written until [`Request::Resume`].
    Pause {
        /// Only this session, by its id or the beginning of it.
        #[serde(default)]
        session: Option<String>,
    },
    /// The end of a pause.
    Resume {
        /// Only of this session's.
        #[serde(default)]
        session: Option<String>,
    },
    /// Config and plugins are read again.
    Reload,
    /// A compaction is wanted now; answered with [`super::compact::Compacted`].
    Compact(super::compact::Compact),
    /// Runs that failed and are not done with, and suspended plugins; answered with [`super::quarantine::Quarantine`].
    Quarantine,
    /// Failed runs are made again, and their plugins suspended no more; answered with [`super::quarantine::Retried`].
    Retry(super::quarantine::Retry),
    /// Rows of the run log; answered with [`super::rows::Rows`].
    Rows(super::rows::RowsWanted),
    /// Texts that rows name; answered with [`super::rows::Texts`].
    Texts(super::rows::TextsWanted),
}

/// Which lines of the log are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFilter {
    /// Of the session whose id begins so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Of this plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

impl LogFilter {
    /// Whether a line of this session and plugin is wanted.
    #[must_use]
    pub fn wants(&self, session: &str, plugin: &str) -> bool {
        self.session.as_deref().is_none_or(|id| session.starts_with(id))
            && self.plugin.as_deref().is_none_or(|name| plugin == name)
    }
}

/// The answer. The end of the connection is the end of several.
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

/// One line of the log: a plugin's run, or what became of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// When.
    pub at_ms: i64,
    /// The session's id.
    pub session: String,
    /// Where it is, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "paths::some")]
    pub path: Option<PathBuf>,
    /// `run`, or `batch`.
    pub about: String,
    /// The plugin.
    pub plugin: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// `on-entry` or `on-settled`.
    pub handler: String,
    /// The entry that it ran on.
    pub trigger: String,
    /// What came of the run (`nothing`, `proposed`, `later`, a failure's kind), or of the batch (`grafted`, `stale`, …).
    pub outcome: String,
    /// The batch, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Why, or what was refused; empty if there is nothing to say.
    #[serde(default)]
    pub message: String,
    /// Instructions used, about; 0 for a batch.
    pub fuel: u64,
    /// Wall clock, microseconds; 0 for a batch.
    pub micros: u64,
}

/// How things stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The daemon; none if it does not run.
    pub daemon: Option<DaemonStatus>,
    /// The plugins in the config's order.
    pub plugins: Vec<PluginStatus>,
    /// The watched directories.
    pub roots: Vec<RootStatus>,
    /// Sessions that the store knows.
    pub known: usize,
    /// Those with something to say, or all.
    pub sessions: Vec<SessionStatus>,
    /// The last runs that failed, newest last.
    pub failures: Vec<LogLine>,
}

/// The daemon itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started.
    pub since_ms: i64,
    /// Its config; none: the shipped one.
    #[serde(serialize_with = "paths::some")]
    pub config: Option<PathBuf>,
    /// Its state directory.
    #[serde(serialize_with = "paths::one")]
    pub state_dir: PathBuf,
    /// Whether it pauses.
    pub paused: bool,
}

/// A plugin of the config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginStatus {
    /// Its name in the config.
    pub name: String,
    /// Its version; none if it is not loaded.
    pub version: Option<String>,
    /// SHA-256 of its component; none if it is not loaded.
    pub digest: Option<String>,
    /// Why it is not loaded, or an older one still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Where it is suspended, in words; none: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<String>,
    /// Runs of it that are tried again.
    #[serde(default)]
    pub retrying: usize,
    /// Runs of it in quarantine.
    #[serde(default)]
    pub quarantined: usize,
}

/// A watched directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootStatus {
    /// Where.
    #[serde(serialize_with = "paths::one")]
    pub path: PathBuf,
    /// `watched`, `polled` (events cannot be relied on), `absent`, or `locked` (another daemon has it, so it is not followed).
    pub state: String,
    /// Why it is not `watched`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// Its file.
    #[serde(serialize_with = "paths::one")]
    pub path: PathBuf,
    /// Its id; empty before it was read.
    pub id: String,
    /// Its working directory, if it can be read.
    pub cwd: Option<String>,
    /// Entries handled.
    pub entries: u64,
    /// `working`, `bridged`, `paused`, `failing`, `gone`, `live`, `settled`, `open`, `unanswered` or `quiet`.
    pub state: String,
    /// Processes of the Pis that have it through a bridge; 0 is one that cannot be seen from here.
    #[serde(default)]
    pub bridged: Vec<u32>,
    /// Whether a Pi has it: `here`, `absent` or `unknown`.
    pub presence: String,
    /// What says so.
    pub presence_why: String,
    /// Time since its file was written last, milliseconds.
    pub quiet_ms: Option<u64>,
    /// Why something waits.
    pub waiting: Option<String>,
    /// Why nothing happens for entries that were there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// What waits.
    pub pending: Vec<PendingStatus>,
    /// `on-settled` runs under way.
    pub runs: usize,
    /// Why it could not be worked on.
    pub failure: Option<String>,
}

/// A batch that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingStatus {
    /// Its id.
    pub batch: String,
    /// Whose.
    pub plugin: String,
    /// What it holds: types of entries.
    pub kinds: Vec<String>,
    /// The entry it was proposed on.
    pub trigger: String,
    /// When.
    pub made_ms: i64,
}

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The plugins now.
    pub plugins: Vec<PluginStatus>,
    /// The watched directories now.
    #[serde(serialize_with = "paths::all")]
    pub roots: Vec<PathBuf>,
}
