//! A run that is about to be made: what the sandbox is given, and what the log is to say of it.

use std::sync::Arc;

use pi_session::branch::Branch;
use pi_session::tree::EntryIx;

use crate::journal::{Given, Handler, Text};
use crate::sandbox::{self, Plugin, Run};

use super::session::{Session, StepError};
use super::world::World;

/// A run, and the facts of it for the log.
pub(super) struct Call {
    pub(super) run: Run,
    pub(super) asked: CallFacts,
}

impl Call {
    /// The same in place of a compaction that a live Pi would make itself, if it has a model for that.
    pub(super) fn in_place_of_pi(mut self) -> Call {
        let facts = &mut self.run.facts;
        facts.pi_compaction.makes_own = Some(facts.model.is_some());
        let text = Text::new(serde_json::to_string(facts).unwrap_or_default());
        self.asked.given.facts = text.hash().to_owned();
        self.asked.texts.push(text);
        self
    }
}

/// What the log is to say of a run.
#[derive(Clone, Debug)]
pub(super) struct CallFacts {
    pub(super) handler: Handler,
    pub(super) given: Given,
    /// What the hashes in `given` stand for.
    pub(super) texts: Vec<Text>,
}

impl CallFacts {
    /// The same, with what models answered.
    pub(super) fn with_answers(mut self, answers: Vec<Text>) -> CallFacts {
        self.given.answers = answers.iter().map(|answer| answer.hash().to_owned()).collect();
        self.texts.extend(answers);
        self
    }
}

impl Session {
    /// A first run on an entry that has just been read, or on the leaf of this moment.
    pub(super) fn call(
        &mut self,
        world: &World,
        plugin: &Plugin,
        handler: sandbox::Handler,
        branch: Branch,
        trigger: EntryIx,
    ) -> Result<Call, StepError> {
        let (facts, facts_text) = self.host_facts(world, Some(trigger))?;
        let asked = facts_of(plugin, &handler, &branch, facts_text);
        let (trigger_id, header_json) = (self.tree.id(trigger).to_owned(), self.header_json.clone());
        Ok(Call { run: Run { handler, branch, trigger_id, facts, header_json }, asked })
    }
}

/// What is to be known of a run, so that it can be made again.
fn facts_of(plugin: &Plugin, handler: &sandbox::Handler, branch: &Branch, facts: Text) -> CallFacts {
    let config = Text::new(Arc::clone(plugin.settings()));
    let (of, reason, told) = match handler {
        sandbox::Handler::OnEntry => (Handler::OnEntry, "entry", None),
        sandbox::Handler::OnSettled { reason, notes, instructions } => {
            let told = serde_json::json!({ "notes": notes, "instructions": instructions });
            (Handler::OnSettled, reason.as_str(), Some(Text::new(told.to_string())))
        }
    };
    let given = Given {
        reason: reason.to_owned(),
        entries: branch.tree().entries().len() as u64,
        pending: pending_on(branch),
        facts: facts.hash().to_owned(),
        config: config.hash().to_owned(),
        told: told.as_ref().map(|told| told.hash().to_owned()),
        attempt: 1,
        answers: Vec::new(),
    };
    CallFacts { handler: of, given, texts: [facts, config].into_iter().chain(told).collect() }
}

/// The batches that stand behind the newest entry in the file, in order.
fn pending_on(branch: &Branch) -> Vec<String> {
    let origins = (branch.in_file()..branch.len()).filter_map(|place| branch.item(place).pending);
    let mut batches: Vec<String> = origins.map(|origin| origin.batch.clone()).collect();
    batches.dedup();
    batches
}
