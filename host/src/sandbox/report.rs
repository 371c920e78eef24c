//! What a run is given, and what is known of it afterwards.
use std::fmt;
use std::time::Duration;

use pi_session::Branch;
use pi_session::refusal::Refusal;
use pi_session::settings::{Facts, ModelId, Prices};
use pi_session::validate::Accepted;
use serde::{Deserialize, Serialize};

/// One call of a plugin.
#[derive(Debug, Clone)]
pub struct Run {
    /// Which handler, and what it is told.
    pub handler: Handler,
    /// The branch up to the trigger, with what is pending behind it.
    pub branch: Branch,
    /// The entry that woke the run; for `on-settled` the leaf.
    pub trigger_id: String,
    /// What the host knows from elsewhere.
    pub facts: HostFacts,
    /// The session's header line.
    pub header_json: String,
}

/// The handlers of the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// `on-entry`
    OnEntry,
    /// `on-settled`
    OnSettled {
        /// `settled`, `boundary`, `manual`, `threshold` or `overflow`.
        reason: String,
        /// What `later` left, oldest first.
        notes: Vec<String>,
        /// The user's, for a wanted compaction.
        instructions: Option<String>,
    },
}

impl Handler {
    /// Its name in the contract, and in receipts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::OnEntry => "on-entry",
            Self::OnSettled { .. } => "on-settled",
        }
    }
}

/// What reaches a run through the host, and is recorded with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostFacts {
    /// Pi's compaction settings for this model.
    pub pi_compaction: PiCompaction,
    /// The model, as far as it is known.
    pub model: Option<ModelFacts>,
}

impl HostFacts {
    /// What Pi's files say, and what is known of the model of this name.
    #[must_use]
    pub fn of(facts: &Facts, model: Option<&ModelId>) -> HostFacts {
        let pi_compaction = PiCompaction {
            enabled: facts.enabled.value,
            reserve: facts.reserve.value,
            keep_recent: facts.keep_recent.value,
            makes_own: None,
        };
        let model = model.map(|model| ModelFacts {
            provider: model.provider.clone(),
            model_id: model.id.clone(),
            context_window: facts.window.as_ref().map(|known| known.value),
            max_tokens: facts.max_tokens.as_ref().map(|known| known.value),
            prices: facts.prices.as_ref().map(|known| prices(&known.value)),
        });
        HostFacts { pi_compaction, model }
    }
}

fn prices(prices: &Prices) -> serde_json::Value {
    let tiers = prices.tiers.iter().map(|tier| {
        serde_json::json!({
            "inputTokensAbove": tier.above, "input": tier.input, "output": tier.output,
            "cacheRead": tier.cache_read, "cacheWrite": tier.cache_write,
        })
    });
    let mut all = serde_json::json!({
        "input": prices.input, "output": prices.output, "cacheRead": prices.cache_read, "cacheWrite": prices.cache_write,
    });
    if !prices.tiers.is_empty() {
        all["tiers"] = tiers.collect();
    }
    all
}

/// Pi's compaction settings, tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PiCompaction {
    /// Whether Pi compacts by itself.
    pub enabled: bool,
    /// What it keeps free of the window.
    #[serde(rename = "reserveTokens")]
    pub reserve: u64,
    /// What it keeps of the newest entries.
    #[serde(rename = "keepRecentTokens")]
    pub keep_recent: u64,
    /// Where a compaction is wanted: whether a live Pi makes its own if no plugin does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub makes_own: Option<bool>,
}

impl Default for PiCompaction {
    fn default() -> Self {
        Self { enabled: true, reserve: 16_384, keep_recent: 20_000, makes_own: None }
    }
}

/// What is known of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFacts {
    /// Who serves it.
    pub provider: String,
    /// Its name there.
    pub model_id: String,
    /// Its window, tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most that one answer may have, tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Its prices in dollars for a million tokens: `input`, `output`, `cacheRead`, `cacheWrite`; `tiers` where more input
    /// costs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<serde_json::Value>,
}

/// What is known of a run afterwards.
#[derive(Debug)]
#[must_use = "what a run proposed is lost unless it is recorded"]
pub struct RunReport {
    /// How it ended.
    pub outcome: Result<Done, Failure>,
    /// What was refused, whether or not the plugin minded.
    pub refusals: Vec<Refusal>,
    /// What it logged, within its limit.
    pub logs: Vec<LogLine>,
    /// Lines that were over the limit.
    pub logs_dropped: u64,
    /// What it used: the same count on every machine.
    pub fuel: u64,
    /// How long it took, waiting for a place to run and for models not counted.
    pub wall: Duration,
}

/// What a run left that ended well.
#[derive(Debug)]
pub struct Done {
    /// What it proposed; none if nothing.
    pub accepted: Option<Accepted>,
    /// Its note, if it asked for `on-settled`.
    pub later: Option<String>,
}

/// How a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In which way.
    pub kind: FailureKind,
    /// What happened, with the figure of a limit.
    pub message: String,
}

/// The ways in which a run fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// It crashed.
    Trap,
    /// Its handler returned an error.
    Err,
    /// It used up its fuel.
    Fuel,
    /// It took too long. Another try may do.
    Deadline,
    /// It wanted more memory than it may have.
    Memory,
    /// It hit another limit: stack, tables, bytes in a call.
    Limit,
    /// The session's text could not be read. Not the plugin's fault; another try may do.
    Session,
    /// A model that it asked gave no answer, and it could not do without. Another try may do.
    Model,
    /// Nobody waits for it any more: an abort in Pi, a reload, the daemon's end. Nobody's fault.
    Over,
}

impl FailureKind {
    /// Its name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Err => "error",
            Self::Fuel => "fuel",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Limit => "limit",
            Self::Session => "session",
            Self::Model => "model",
            Self::Over => "over",
        }
    }

    /// Whether nobody is to blame, and nothing is to be done about it.
    #[must_use]
    pub const fn is_nobodys(self) -> bool {
        matches!(self, Self::Over)
    }

    /// Whether it would only come again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Deadline | Self::Session | Self::Model | Self::Over)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

/// A line that a plugin logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// `error`, `warn`, `info` or `debug`, or what the plugin called it.
    pub level: String,
    /// The line.
    pub text: String,
}
