//! What is said of a replay, per session and plugin. All of it but the time is the same in each replay.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use pi_session::branch::{Branch, BranchError};
use pi_session::json::Json;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::journal::{About, Batch, Handler, RunRecord};
use crate::sandbox::Plugin;

use super::account::{Account, Balance};
use super::cache::Break;
use super::recorded::Recorded;

/// The rule by which a later plugin's draft gives way to an earlier one's that is still pending.
const CONFLICT: &str = "pending";

/// One session, told anew.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub session: String,
    /// Entries that were recorded.
    pub entries: usize,
    /// Those of them that were grafts and receipts, and were left out.
    pub left_out: u64,
    /// Tokens of the recorded context, its grafts included (S9.6).
    pub recorded_tokens: u64,
    /// Without the plugins.
    pub before: Side,
    /// With them.
    pub after: Side,
    /// What the plugins save or cost, the provider's cache reckoned with.
    pub balance: Balance,
    /// The plugins in order.
    pub plugins: Vec<PluginTold>,
    /// Every batch, in the order in which they were proposed.
    pub grafts: Vec<GraftTold>,
    /// What was refused, the same of one plugin together.
    pub refusals: Vec<Several>,
    /// Runs that failed, likewise.
    pub failures: Vec<Several>,
}

/// The context at the end, and what was sent to get there.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// Tokens of the context (S9.6).
    pub tokens: u64,
    /// Whether they are as reported by the model, estimated behind its report.
    pub reported: bool,
    /// The same, estimated throughout (S9.5).
    pub estimated: u64,
    /// Messages of it.
    pub messages: usize,
    /// Tokens that the provider's cache lost, over all breaks.
    pub sent_anew: u64,
    /// Where what had been sent before was changed.
    pub breaks: Vec<Break>,
    /// What all requests sent, and what of it the cache had.
    pub account: Account,
}

/// What one plugin did in one session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginTold {
    /// Its name.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// `on-entry` runs.
    pub runs: u64,
    /// `on-settled` runs.
    pub settled_runs: u64,
    /// Batches that it proposed.
    pub proposed: u64,
    /// Drafts in them, by type.
    pub drafts: BTreeMap<String, u64>,
    /// Batches that became grafts.
    pub grafted: u64,
    /// Drafts that were refused.
    pub refused: u64,
    /// Those of them that gave way to what another run had proposed.
    pub conflicts: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Fuel of all runs.
    pub fuel: u64,
    /// The most that one run took.
    pub most_fuel: u64,
    /// Wall clock of all runs, microseconds: not the same twice.
    #[serde(skip)]
    pub micros: u64,
}

/// One batch.
#[derive(Clone, Debug, Serialize)]
pub struct GraftTold {
    /// Whose.
    pub plugin: String,
    /// `on-entry` or `on-settled`.
    pub handler: &'static str,
    /// Why it ran.
    pub reason: String,
    /// The entry that it ran on.
    pub trigger: String,
    /// `grafted`, `stale`, `dropped`, `left out`; `waiting`: no boundary came on its branch.
    pub outcome: String,
    /// Why, where there is something to say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The drafts, as `session append` takes them.
    pub drafts: Vec<Box<RawValue>>,
}

/// The same thing several times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Several {
    /// Whose.
    pub plugin: String,
    /// The rule, or the failure's kind.
    pub rule: String,
    /// Why.
    pub message: String,
    /// How often.
    pub times: u64,
    /// The entry of the first time.
    pub first: String,
}

/// What was heard of the run log.
#[derive(Debug, Default)]
pub struct Seen {
    plugins: HashMap<String, PluginTold>,
    grafts: Vec<GraftTold>,
    /// By batch.
    places: HashMap<String, usize>,
    refusals: Vec<Several>,
    failures: Vec<Several>,
}

impl Seen {
    /// Takes in lines of the run log, and the batches that come with them.
    pub fn note(&mut self, runs: &[RunRecord], batches: &[Batch]) {
        for run in runs {
            match run.about {
                About::Run => self.note_run(run),
                About::Batch => self.note_batch(run),
                // Such as that it is suspended after too many failures.
                About::Plugin => add(&mut self.failures, run, &run.outcome, &run.message),
            }
        }
        for batch in batches {
            if let Some(at) = self.places.get(&batch.id) {
                self.fill(*at, batch);
            }
        }
    }

    fn note_run(&mut self, run: &RunRecord) {
        let plugin = self.plugins.entry(run.plugin.clone()).or_default();
        match run.handler {
            Handler::OnEntry => plugin.runs += 1,
            Handler::OnSettled => plugin.settled_runs += 1,
        }
        plugin.refused += run.refused.len() as u64;
        plugin.conflicts += run.refused.iter().filter(|refused| refused.rule == CONFLICT).count() as u64;
        plugin.failed += u64::from(run.is_failure());
        plugin.fuel += run.fuel;
        plugin.most_fuel = plugin.most_fuel.max(run.fuel);
        plugin.micros += run.micros;
        plugin.proposed += u64::from(run.batch.is_some());
        for refused in &run.refused {
            add(&mut self.refusals, run, &refused.rule, &refused.message);
        }
        if run.is_failure() {
            add(&mut self.failures, run, &run.outcome, &run.message);
        }
        if let Some(batch) = &run.batch {
            self.places.insert(batch.clone(), self.grafts.len());
            self.grafts.push(GraftTold {
                plugin: run.plugin.clone(),
                handler: run.handler.as_str(),
                reason: String::new(),
                trigger: run.trigger.clone(),
                outcome: "waiting".to_owned(),
                why: String::new(),
                drafts: Vec::new(),
            });
        }
    }

    fn fill(&mut self, at: usize, batch: &Batch) {
        let graft = &mut self.grafts[at];
        graft.reason.clone_from(&batch.reason);
        graft.drafts = serde_json::from_str(&batch.drafts).unwrap_or_default();
        let plugin = self.plugins.entry(batch.plugin.clone()).or_default();
        let drafts = Json::parse(batch.drafts.as_bytes()).ok();
        for kind in drafts.into_iter().flat_map(Json::items).filter_map(|draft| draft.get("type")?.as_str()) {
            *plugin.drafts.entry(kind.into_owned()).or_default() += 1;
        }
    }

    /// What became of a batch. The Pi of a replay takes all that it is handed.
    fn note_batch(&mut self, line: &RunRecord) {
        let Some(at) = line.batch.as_ref().and_then(|batch| self.places.get(batch)) else { return };
        let graft = &mut self.grafts[*at];
        let taken = matches!(line.outcome.as_str(), "handed over" | "pushed" | "grafted");
        if taken && graft.outcome == "waiting" {
            self.plugins.entry(line.plugin.clone()).or_default().grafted += 1;
        }
        let says = matches!(line.outcome.as_str(), "stale" | "dropped" | "left out");
        if taken {
            "grafted".clone_into(&mut graft.outcome);
        } else if says {
            graft.outcome.clone_from(&line.outcome);
        }
        if says || line.outcome == "handed over" {
            graft.why.clone_from(&line.message);
        }
    }
}

fn add(list: &mut Vec<Several>, run: &RunRecord, rule: &str, message: &str) {
    let same = |one: &&mut Several| one.plugin == run.plugin && one.rule == rule && one.message == message;
    match list.iter_mut().find(same) {
        Some(one) => one.times += 1,
        None => list.push(Several {
            plugin: run.plugin.clone(),
            rule: rule.to_owned(),
            message: message.to_owned(),
            times: 1,
            first: run.trigger.clone(),
        }),
    }
}

impl Side {
    pub(super) fn of(branch: &Branch, account: Account, breaks: Vec<Break>) -> Result<Side, BranchError> {
        let context = branch.context();
        let tokens = branch.tokens(&context)?;
        Ok(Side {
            tokens: tokens.total as u64,
            reported: tokens.usage_at.is_some(),
            estimated: context.entries.iter().map(|entry| branch.shown_tokens(entry)).sum(),
            messages: context.entries.iter().filter(|entry| entry.gives()).count(),
            sent_anew: breaks.iter().map(|one| one.sent_anew).sum(),
            breaks,
            account,
        })
    }
}

/// Puts together what is said of a session.
pub(super) fn told(
    recorded: &Recorded,
    plugins: &[Arc<Plugin>],
    mut seen: Seen,
    (before, after): (Side, Side),
    left_out: u64,
) -> Result<Told, super::ReplayError> {
    let branch = recorded.branch(recorded.tree.all().next_back())?;
    let named = |plugin: &Arc<Plugin>| PluginTold {
        plugin: plugin.name().to_owned(),
        version: plugin.version().to_owned(),
        digest: plugin.digest().to_owned(),
        ..seen.plugins.remove(plugin.name()).unwrap_or_default()
    };
    let plugins = plugins.iter().map(named).collect();
    Ok(Told {
        path: recorded.path.clone(),
        session: recorded.id().to_owned(),
        entries: recorded.tree.entries().len(),
        left_out,
        balance: after.account.against(&before.account),
        recorded_tokens: branch.tokens(&branch.context())?.total as u64,
        before,
        after,
        plugins,
        grafts: seen.grafts,
        refusals: seen.refusals,
        failures: seen.failures,
    })
}
