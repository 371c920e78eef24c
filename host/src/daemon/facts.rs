//! What the host knows for a run from elsewhere: Pi's settings for the session's working directory, and the facts of the
//! model that is in force on the branch (S9.4).
//!
//! Pi's files are looked at once a step, not once an entry; the model is looked for from where it was last known.

use std::path::PathBuf;
use std::sync::Arc;

use pi_session::branch::Branch;
use pi_session::compaction::PlanSettings;
use pi_session::context::ModelName;
use pi_session::json::Json;
use pi_session::settings::{Facts, Given, ModelId};
use pi_session::tree::{EntryIx, Source};
use tracing::warn;

use crate::deliver::settle::{self, State};
use crate::journal::Text;
use crate::pi::Seen;
use crate::sandbox::HostFacts;

use super::session::{Session, StepError};
use super::world::World;

/// What a session remembers of it.
#[derive(Default)]
pub(super) struct Surroundings {
    seen: Arc<Seen>,
    /// The model in force at this entry.
    model: Option<(EntryIx, Option<ModelId>)>,
    /// The facts for this model, as long as Pi's files stay as they are.
    facts: Option<(Option<ModelId>, Arc<Facts>)>,
    /// The same in the sandbox's words, and as the log has them.
    told: Option<(Arc<Facts>, HostFacts, Text)>,
}

impl Session {
    /// Looks whether Pi's files have changed. What is wrong with them is told once.
    pub(super) fn look_around(&mut self, world: &World) {
        let seen = world.settings.pi.look(self.cwd().as_deref());
        if Arc::ptr_eq(&seen, &self.around.seen) {
            return;
        }
        tell(world, &seen.faults);
        self.around.seen = seen;
        self.around.facts = None;
    }

    fn cwd(&self) -> Option<PathBuf> {
        let header = Json::parse(self.header_json.as_bytes()).ok()?;
        Some(PathBuf::from(header.get("cwd")?.as_str()?.as_ref()))
    }

    /// What holds on the branch that ends in this entry.
    pub(super) fn facts(&mut self, world: &World, at: Option<EntryIx>) -> Result<Arc<Facts>, StepError> {
        let model = at.map(|at| self.model_at(at)).transpose()?.flatten();
        if let Some((of, facts)) = &self.around.facts
            && *of == model
        {
            return Ok(Arc::clone(facts));
        }
        let facts = Arc::new(self.around.seen.around.facts(model.as_ref(), &Given::default()));
        tell(world, &facts.faults);
        self.around.facts = Some((model, Arc::clone(&facts)));
        Ok(facts)
    }

    /// The same in the sandbox's words, and as the log has them.
    pub(super) fn host_facts(&mut self, world: &World, at: Option<EntryIx>) -> Result<(HostFacts, Text), StepError> {
        let facts = self.facts(world, at)?;
        if let Some((of, told, text)) = &self.around.told
            && Arc::ptr_eq(of, &facts)
        {
            return Ok((told.clone(), text.clone()));
        }
        let model = self.around.facts.as_ref().and_then(|(model, _)| model.as_ref());
        let told = HostFacts::of(&facts, model);
        let text = Text::new(serde_json::to_string(&told).unwrap_or_default());
        self.around.told = Some((facts, told.clone(), text.clone()));
        Ok((told, text))
    }

    /// Where the branch of the file's leaf stands, Pi's own threshold regarded.
    pub(super) fn state(&mut self, world: &World, branch: &Branch) -> Result<State, StepError> {
        let threshold = self.facts(world, self.leaf())?.threshold();
        Ok(settle::regarding(settle::state(branch)?, branch, threshold)?)
    }

    /// Whether Pi itself would have something to compact on the branch that ends in this entry.
    pub(super) fn pi_would_compact(
        &mut self,
        world: &World,
        leaf: Option<EntryIx>,
        branch: &Branch,
    ) -> Result<bool, StepError> {
        let facts = self.facts(world, leaf)?;
        let settings = PlanSettings { reserve: facts.reserve.value, keep_recent: facts.keep_recent.value };
        Ok(branch.plan(&settings)?.is_some())
    }

    /// The model in force at an entry. Looks back to the entry that tells it, or to the one it was asked for last.
    fn model_at(&mut self, ix: EntryIx) -> Result<Option<ModelId>, StepError> {
        let tells = |at: &EntryIx| self.tree.entry(*at).tells_model();
        let is_known = |at: &EntryIx| self.around.model.as_ref().is_some_and(|(known, _)| known == at);
        let path = std::iter::successors(Some(ix), |at| self.tree.parent(*at));
        // A branch with a circle has no runs; should one come here, it ends.
        let found = path.take(self.tree.entries().len()).find(|at| is_known(at) || tells(at));
        let model = match found {
            None => None,
            Some(at) if is_known(&at) => self.around.model.as_ref().and_then(|(_, model)| model.clone()),
            Some(at) => self.model_told_by(at)?,
        };
        self.around.model = Some((ix, model.clone()));
        Ok(model)
    }

    fn model_told_by(&self, ix: EntryIx) -> Result<Option<ModelId>, StepError> {
        let entry = self.tree.entry(ix);
        let line = self.reading.read(entry.offset, entry.len as usize)?;
        let name = Json::parse(&line).ok().and_then(|line| ModelName::told_by(entry, line));
        Ok(name.and_then(|name| name.id()))
    }
}

fn tell(world: &World, faults: &[pi_session::settings::Fault]) {
    for fault in world.settings.pi.news(faults.iter().cloned()) {
        warn!("{fault}");
    }
}
