//! What is said of a plugin that was tried on a scene: each run with all that came of it, and the context at the end. The
//! same each time, and to be relied on: `plugin-api/TESTING.md` describes it for those who read it by program.

use std::collections::HashMap;

use pi_session::branch::Branch;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::journal::{About, Batch, Logged, Refused, RunRecord};
use crate::models::{Asked, Models};

use super::ReplayError;
use super::recorded::Recorded;

/// Runs of one plugin over one scene.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// The runs, in order.
    pub runs: Vec<RunTold>,
    /// What models were asked, those of one model in order.
    pub asked: Vec<AskedTold>,
    /// The model's context at the end, as it is sent.
    pub context: Vec<Shown>,
    /// Its tokens (S9.6).
    pub tokens: u64,
}

/// One run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunTold {
    /// The number of the entry that it ran on, from 0; none if that is a graft's.
    pub entry: Option<usize>,
    /// That entry's id.
    pub trigger: String,
    /// `on-entry` or `on-settled`.
    pub handler: &'static str,
    /// `entry`, or the reason of `on-settled`.
    pub reason: String,
    /// The drafts that it proposed and that were accepted, as `session append` takes them, in the host's order.
    pub proposed: Vec<Box<RawValue>>,
    /// What became of them: `grafted`, `stale`, `dropped`, `left out`, `waiting`; none if there are none.
    pub outcome: Option<String>,
    /// Why, where there is something to say.
    pub why: String,
    /// Drafts that were refused, whether or not the plugin minded.
    pub refused: Vec<Refused>,
    /// What it logged, within its limit.
    pub log: Vec<Logged>,
    /// How it failed; what it proposed is dropped then.
    pub failed: Option<Failed>,
    /// What it used: the same count on every machine.
    pub fuel: u64,
}

/// How a run failed.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// `trap`, `error`, `fuel`, `memory`, `limit`, `model`, `session`; `suspended` after too many failures.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// A question to a model.
#[derive(Debug, Serialize)]
pub struct AskedTold {
    /// The model's name.
    pub model: String,
    /// The question, and its answer.
    #[serde(flatten)]
    pub asked: Asked,
}

/// A message of the context.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The entry that gives it.
    pub id: String,
    /// Tokens, estimated (S9.5).
    pub tokens: u64,
    /// The message.
    pub message: Box<RawValue>,
}

/// What was heard of the run log.
#[derive(Debug, Default)]
pub(super) struct Heard {
    runs: Vec<RunTold>,
    /// The run of a batch, by its place.
    of_batch: HashMap<String, usize>,
}

impl Heard {
    pub(super) fn note(&mut self, runs: &[RunRecord], batches: &[Batch]) {
        for run in runs {
            match run.about {
                About::Run | About::Plugin => self.note_run(run),
                About::Batch => self.note_batch(run),
            }
        }
        for batch in batches {
            if let Some(at) = self.of_batch.get(&batch.id) {
                self.runs[*at].proposed = serde_json::from_str(&batch.drafts).unwrap_or_default();
            }
        }
    }

    fn note_run(&mut self, run: &RunRecord) {
        if let Some(batch) = &run.batch {
            self.of_batch.insert(batch.clone(), self.runs.len());
        }
        let fails = run.is_failure() || run.about == About::Plugin;
        self.runs.push(RunTold {
            entry: None,
            trigger: run.trigger.clone(),
            handler: run.handler.as_str(),
            reason: run.given.as_ref().map_or_else(String::new, |given| given.reason.clone()),
            proposed: Vec::new(),
            outcome: run.batch.as_ref().map(|_| "waiting".to_owned()),
            why: String::new(),
            refused: run.refused.clone(),
            log: run.logged.clone(),
            failed: fails.then(|| Failed { kind: run.outcome.clone(), message: said(&run.message) }),
            fuel: run.fuel,
        });
    }

    /// What became of a batch. The Pi of a scene takes all that it is handed.
    fn note_batch(&mut self, line: &RunRecord) {
        let Some(at) = line.batch.as_ref().and_then(|batch| self.of_batch.get(batch)) else { return };
        let run = &mut self.runs[*at];
        match line.outcome.as_str() {
            "handed over" | "pushed" | "grafted" => run.outcome = Some("grafted".to_owned()),
            outcome @ ("stale" | "dropped" | "left out") => run.outcome = Some(outcome.to_owned()),
            _ => return,
        }
        if line.outcome != "grafted" {
            run.why.clone_from(&line.message);
        }
    }
}

/// What happened, without what a daemon does about it, which names a run by a number of chance.
fn said(message: &str) -> String {
    message.split("; in quarantine as ").next().unwrap_or_default().to_owned()
}

/// Puts together what is said of a scene that was told.
pub(super) fn tried(
    recorded: &Recorded,
    mut heard: Heard,
    models: &Models,
    branch: &Branch,
) -> Result<Tried, ReplayError> {
    for run in &mut heard.runs {
        run.entry = recorded.tree.by_id(&run.trigger).map(|ix| ix.index());
    }
    let context = branch.context();
    let mut shown = Vec::new();
    for entry in &context.entries {
        let id = branch.item(entry.place).id.unwrap_or_default();
        let tokens = branch.shown_tokens(entry);
        for message in branch.messages(entry)? {
            let message = RawValue::from_string(message).map_err(|error| ReplayError::Unfit(error.to_string()))?;
            shown.push(Shown { id: id.to_owned(), tokens, message });
        }
    }
    let asked = models.asked().into_iter().map(|(model, asked)| AskedTold { model, asked }).collect();
    Ok(Tried { runs: heard.runs, asked, context: shown, tokens: branch.tokens(&context)?.total as u64 })
}
