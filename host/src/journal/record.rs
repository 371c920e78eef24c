//! The rows of the store. All are JSON, so that a row written by an older version can be read by a newer one: fields are
//! only ever added, with a default.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use pi_session::figures::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files::FileId;
use crate::files::append::Place;

use super::failed::Standing;
use super::grafted::GraftRecord;

/// The store's own number of a session file; it survives renames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey(pub u64);

/// How far one session file is handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Where it was last seen.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// The session's id, from its header.
    pub session_id: String,
    /// Which file it was.
    pub file: FileId,
    /// Bytes handled: always just behind a `\n`.
    pub offset: u64,
    /// Entries handled, so that the place is known again after Pi's migration in place.
    pub entries: u64,
    /// SHA-256 of the last line handled (without its `\n`), hex; empty before the first.
    pub last_line: String,
    /// Offset of that line.
    pub last_line_at: u64,
    /// Entries that were passed over as history; `--backfill` begins anew where there are any.
    #[serde(default)]
    pub skipped: u64,
    /// The `on-settled` runs that are asked for.
    #[serde(default)]
    pub later: Vec<Note>,
    /// The Pis whose bridges have it open: each until it says that it leaves, or has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bridged: Vec<Process>,
    /// How plugins stand in it that do not simply run: what failed last, what they have yet to see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<Standing>,
    /// Since when its file is not there although something is left to do, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_ms: Option<i64>,
    /// What is known of its grafts beyond what the file tells.
    #[serde(default)]
    pub grafts: Box<GraftRecord>,
    /// How many ids of entries that were handled are kept, in the order in which they were.
    #[serde(default)]
    pub ids: u64,
    /// The file was shortened or rewritten once: from then on it is by their ids that entries are known as handled.
    #[serde(default)]
    pub by_id: bool,
    /// The file is of version 1, whose ids do not last.
    #[serde(default)]
    pub has_old_ids: bool,
    /// The entry that was handled although its line had no end yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unended: Option<Unended>,
    /// Since when something is pending for entries that are not in the file any more, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ms: Option<i64>,
    /// When it was met as a copy of a session that is elsewhere, Unix milliseconds: what was in it then wakes nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_ms: Option<i64>,
}

/// An entry that was handled although its line, the last one, had no `\n` (S2.4). The cursor stands before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unended {
    /// Where its line begins.
    pub at: u64,
    /// Its id.
    pub id: String,
}

/// A process, known again by its number and when it started, since numbers are given out anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number; 0 if it cannot be seen from here.
    pub pid: u32,
    /// When it started, in the system's ticks since it came up; 0 where that cannot be seen.
    pub start: u64,
}

/// A plugin's wish for its `on-settled` handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The plugin's name in the config.
    pub plugin: String,
    /// The entry whose run asked.
    pub trigger: String,
    /// What it said.
    pub note: String,
    /// How often the run that it asked for has failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// It is not granted before, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<i64>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Which of a plugin's two handlers ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handler {
    /// `on-entry`.
    OnEntry,
    /// `on-settled`.
    OnSettled,
}

impl Handler {
    /// The word in receipts and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Handler::OnEntry => "on-entry",
            Handler::OnSettled => "on-settled",
        }
    }
}

/// What one run proposed, waiting to be grafted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The batch's id: 16 hex digits, the same in its receipt.
    pub id: String,
    /// The plugin's name in the config.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// The handler that proposed it.
    pub handler: Handler,
    /// Why it ran: `entry`, or the reason of `on-settled`.
    pub reason: String,
    /// The entry it ran on.
    pub trigger: String,
    /// The drafts, as the JSON array of `session append`.
    pub drafts: String,
    /// When it was proposed, Unix milliseconds.
    pub made_ms: i64,
    /// The batch of which this one holds what was missing in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// A write that was about to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The batch.
    pub batch: Batch,
    /// The session file, and what it was checked against.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// The checked place.
    pub place: Place,
    /// Ids of the entries to be written, the receipt's first.
    pub ids: Vec<String>,
    /// The very bytes.
    pub bytes: String,
    /// The modification time that is put back afterwards (S13.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<SystemTime>,
}

/// What a line of the run log is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// A plugin's run.
    #[default]
    Run,
    /// What became of a batch.
    Batch,
    /// A plugin is suspended in a session.
    Plugin,
}

impl About {
    /// The word in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            About::Run => "run",
            About::Batch => "batch",
            About::Plugin => "plugin",
        }
    }
}

/// What a line of the log says of a batch that a Pi with a bridge has appended.
pub const PI_HAS_IT: &str = "Pi has taken it";

/// One line of the run log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// What it is about.
    #[serde(default)]
    pub about: About,
    /// When it ended, Unix milliseconds.
    pub at_ms: i64,
    /// The session's id.
    pub session: String,
    /// The plugin's name.
    pub plugin: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// The handler.
    pub handler: Handler,
    /// The trigger's id.
    pub trigger: String,
    /// What came of the run: `nothing`, `proposed`, `later`, or the failure's kind; or of the batch: `grafted`, `stale`, …
    pub outcome: String,
    /// The batch, if something was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Why it failed, or what was refused; empty if neither.
    #[serde(default)]
    pub message: String,
    /// Instructions used, about.
    pub fuel: u64,
    /// Wall clock, microseconds.
    pub micros: u64,
    /// What the run was given beside the lines of the session; none for a batch, and in rows of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,
    /// The hash of the drafts that the run proposed, or that became the batch's, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafts: Option<String>,
    /// The texts that its hashes stand for. They are kept beside the rows, each once, and are not read back with it.
    #[serde(skip)]
    pub texts: Vec<Text>,
    /// The drafts of it that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// What the run logged, where somebody else keeps the log: the store has no room for it.
    #[serde(skip)]
    pub logged: Vec<Logged>,
}

/// What a run was given beside the lines of the session: with these and the same component it can be made again, and does
/// the same. Whatever is long stands here by its hash; [`super::Journal::text`] has the text.
///
/// To make a run again: take the first `entries` entries of the file, the branch up to the row's `trigger`, and put behind
/// it the drafts of the batches in `pending`, in this order. A batch's drafts are named by the row of the run that proposed
/// it (`batch`, `drafts`), also if it was dropped since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Why it ran: `entry`, or the reason of `on-settled`.
    pub reason: String,
    /// Entries of the file that had been read: it sees none behind them.
    pub entries: u64,
    /// The batches that were pending behind the trigger, in order, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Hash of Pi's settings and what is known of the model: the sandbox's `HostFacts` as JSON.
    pub facts: String,
    /// Hash of the plugin's part of the config that decides what it does: the sandbox's `Plugin::settings`.
    pub config: String,
    /// Of `on-settled`: hash of `{"notes":[…],"instructions":…}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// Which try it was: 1, and one more at each retry.
    pub attempt: u32,
    /// Hashes of the models' answers, in the order in which they were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
}

/// A text that rows of the log name by its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    hash: Arc<str>,
    text: Arc<str>,
}

impl Text {
    /// The text with its hash: the first 16 bytes of its SHA-256, hex.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Text {
        let text = text.into();
        let digest = Sha256::digest(text.as_bytes());
        Text { hash: hex(&digest[..16]).into(), text }
    }

    /// What rows say in its place.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A draft that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The rule.
    pub rule: String,
    /// Why.
    pub message: String,
}

/// A line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Logged {
    /// `error`, `warn`, `info` or `debug`, or what the plugin called it.
    pub level: String,
    /// The line.
    pub text: String,
}

impl RunRecord {
    /// A line that says what became of a batch.
    #[must_use]
    pub fn of_batch(at_ms: i64, session: &str, batch: &Batch, outcome: &str, message: String) -> RunRecord {
        RunRecord {
            about: About::Batch,
            at_ms,
            session: session.to_owned(),
            plugin: batch.plugin.clone(),
            digest: batch.digest.clone(),
            handler: batch.handler,
            trigger: batch.trigger.clone(),
            outcome: outcome.to_owned(),
            batch: Some(batch.id.clone()),
            message,
            fuel: 0,
            micros: 0,
            given: None,
            drafts: None,
            texts: Vec::new(),
            refused: Vec::new(),
            logged: Vec::new(),
        }
    }

    /// The same with the drafts of a batch.
    #[must_use]
    pub fn with_drafts(mut self, drafts: &str) -> RunRecord {
        let drafts = Text::new(drafts);
        self.drafts = Some(drafts.hash().to_owned());
        self.texts.push(drafts);
        self
    }

    /// Whether it is a run that failed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.about == About::Run && !matches!(self.outcome.as_str(), "nothing" | "proposed" | "later")
    }
}

/// A path as text, or as its bytes where it is not UTF-8.
mod any_path {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Row {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let path: &OsStr = path.as_os_str();
        match path.to_str() {
            Some(text) => text.serialize(to),
            None => path.as_bytes().serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Row::deserialize(from)? {
            Row::Text(path) => path,
            Row::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}
