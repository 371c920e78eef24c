//! What is said of a verification. Nothing in it but what file, log and plugins are: the same each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi_session::json::Json;
use serde::Serialize;
use serde_json::value::RawValue;

use super::again::Made;
use super::plan::{Place, Plan, Why};

/// One session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub session: String,
    /// `verified`; `different`; `unverifiable` (there are grafts, and none could be verified); `nothing` (neither
    /// grafts nor runs that could be made again).
    pub outcome: &'static str,
    /// Rows that the log has of it.
    pub rows: usize,
    /// What was made again.
    pub plugins: Vec<PluginVerified>,
    /// Every graft in the file, in its order.
    pub grafts: Vec<GraftVerified>,
    /// What is not as it was.
    pub differences: Vec<Difference>,
    /// What could not be verified, and why.
    pub others: Vec<Other>,
}

/// The runs of one plugin that were made again.
#[derive(Clone, Debug, Serialize)]
pub struct PluginVerified {
    /// Its name.
    pub plugin: String,
    /// How many.
    pub runs: u64,
    /// Those that came out as then.
    pub same: u64,
}

/// A graft in the file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraftVerified {
    /// Its first entry.
    pub entry: String,
    /// Its batch.
    pub batch: String,
    /// The plugin.
    pub plugin: String,
    /// `on-entry` or `on-settled`.
    pub handler: String,
    /// The entry that its run was made on.
    pub trigger: String,
    /// `verified`, `different`, or `not verified`.
    pub outcome: &'static str,
    /// Why it could not be verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

/// Something that is not as it was.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The plugin.
    pub plugin: String,
    /// `on-entry` or `on-settled`.
    pub handler: String,
    /// The entry that the run was made on.
    pub trigger: String,
    /// The batch, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// The graft's first entry, where the file differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// What is different.
    pub what: String,
    /// As the log has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<Said>,
    /// As it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Said>,
    /// The drafts that the file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Vec<Box<RawValue>>>,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Said {
    /// `nothing`, `proposed`, `later`, or how it failed.
    pub outcome: String,
    /// What it proposed.
    pub drafts: Vec<Box<RawValue>>,
    /// The rules by which drafts were refused.
    pub refused: Vec<String>,
}

/// Runs and grafts that could not be verified, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    /// The plugin.
    pub plugin: String,
    /// SHA-256 of the component that made them.
    pub digest: String,
    /// Why.
    pub why: &'static str,
    /// Runs.
    pub runs: u64,
    /// Grafts in the file.
    pub grafts: u64,
}

impl Said {
    pub(super) fn of(outcome: &str, drafts: Option<&str>, refused: &[Arc<str>]) -> Said {
        let (outcome, refused) = (outcome.to_owned(), refused.iter().map(ToString::to_string).collect());
        Said { outcome, drafts: drafts.map(raw).unwrap_or_default(), refused }
    }
}

/// A list of drafts, each as it stands.
pub(super) fn raw(drafts: &str) -> Vec<Box<RawValue>> {
    let list = Json::parse(drafts.as_bytes()).ok();
    let texts = list.into_iter().flat_map(Json::items).map(|draft| draft.to_text().into_owned());
    texts.filter_map(|text| RawValue::from_string(text).ok()).collect()
}

impl Difference {
    pub(super) fn of(place: &Place, batch: Option<&str>, what: String) -> Difference {
        Difference {
            plugin: place.plugin.to_string(),
            handler: place.handler.to_owned(),
            trigger: place.trigger.to_string(),
            batch: batch.map(str::to_owned),
            entry: None,
            what,
            then: None,
            now: None,
            file: None,
        }
    }

    pub(super) fn between(self, then: Option<Said>, now: Option<Said>) -> Difference {
        Difference { then, now, ..self }
    }
}

impl Verified {
    pub(super) fn of(path: &Path, session: &str, plan: &Plan, made: &Made) -> Verified {
        let plugins = made.runs.iter();
        let plugins = plugins.map(|(plugin, (runs, same))| PluginVerified {
            plugin: plugin.to_string(),
            runs: *runs,
            same: *same,
        });
        let mut others = BTreeMap::new();
        for (place, digest, why) in plan.others.iter().chain(&made.others) {
            others.entry((place.plugin.to_string(), digest.to_string(), *why)).or_insert((0, 0)).0 += 1;
        }
        Verified {
            path: path.into(),
            session: session.to_owned(),
            outcome: "",
            rows: plan.rows,
            plugins: plugins.collect(),
            grafts: Vec::new(),
            differences: made.differences.clone(),
            others: others.into_iter().map(other).collect(),
        }
    }

    /// One more graft that could not be verified.
    pub(super) fn add_other(&mut self, plugin: &str, digest: &str, why: &'static str) {
        let same = |other: &&mut Other| other.plugin == plugin && other.digest == digest && other.why == why;
        match self.others.iter_mut().find(same) {
            Some(other) => other.grafts += 1,
            None => self.others.push(Other {
                plugin: plugin.to_owned(),
                digest: digest.to_owned(),
                why,
                runs: 0,
                grafts: 1,
            }),
        }
    }

    /// With what is to be said in one word.
    pub(super) fn finished(mut self) -> Verified {
        let is_verified = self.grafts.iter().any(|graft| graft.outcome == "verified");
        let runs = self.plugins.iter().map(|plugin| plugin.runs).sum::<u64>();
        self.outcome = match () {
            () if !self.differences.is_empty() => "different",
            () if self.grafts.is_empty() && runs == 0 => "nothing",
            () if self.grafts.is_empty() || is_verified => "verified",
            () => "unverifiable",
        };
        self
    }
}

fn other(((plugin, digest, why), (runs, grafts)): ((String, String, Why), (u64, u64))) -> Other {
    Other { plugin, digest, why: why.text(), runs, grafts }
}
