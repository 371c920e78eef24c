//! What Pi's own files say around a session: its settings, the models that it was told of, and those it knows by itself.
//!
//! A value may stand in several places. [`Around::facts`] is the one place where that is decided, the way Pi decides it,
//! and each value it gives says where it came from:
//!
//! | value | looked for in this order |
//! | --- | --- |
//! | `enabled`, `reserveTokens`, `keepRecentTokens` | what was [given](Given), `compaction.modelOverrides` of the exact `provider/id` (the two numbers), `compaction`, Pi's default; the project's `settings.json` merged over the agent directory's, key by key, where the project is [trusted](trust) |
//! | context window, most output, prices | what was given, `models.json`, newer lists that Pi has fetched (`models-store.json`), the [shipped table](table) |
//!
//! Reading never fails: a file that Pi cannot use counts as empty, as it does in Pi, and a [`Fault`] says line and column.
//! All of it is pure: texts come in, so that every test is exact.

mod compaction;
mod fault;
mod file;
mod loose;
mod merged;
pub mod models;
mod origin;
mod store;
pub mod table;
pub mod trust;

use std::sync::Arc;

pub use compaction::{KEEP_RECENT, RESERVE};
pub use fault::Fault;
pub use file::Settings;
pub use models::{Models, Prices, Tier};
pub use origin::{Known, Origin};
pub use store::Store;

use merged::Merged;

/// A model, by the names that a session has for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelId {
    /// Who serves it.
    pub provider: String,
    /// Its id there.
    pub id: String,
}

/// Values that somebody nearer to the user than Pi's files has said, with a word for who: they win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Tokens to keep free.
    pub reserve: Option<(u64, String)>,
    /// Tokens of the newest part to keep as they are.
    pub keep_recent: Option<(u64, String)>,
    /// The context window, tokens.
    pub window: Option<(u64, String)>,
}

/// Pi's files as they bear on one session.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// `settings.json` of the agent directory.
    pub global: Arc<Settings>,
    /// `.pi/settings.json` of the session's working directory; none where that is not known, or Pi does not trust it.
    pub project: Option<Arc<Settings>>,
    /// `models.json` of the agent directory.
    pub models: Arc<Models>,
    /// `models-store.json` there.
    pub store: Arc<Store>,
}

/// What holds for a session and its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Whether Pi compacts by itself.
    pub enabled: Known<bool>,
    /// What Pi keeps free of the window, tokens.
    pub reserve: Known<u64>,
    /// What Pi keeps of the newest entries as it is, tokens.
    pub keep_recent: Known<u64>,
    /// The context window, tokens.
    pub window: Option<Known<u64>>,
    /// The most that one answer may have, tokens.
    pub max_tokens: Option<Known<u64>>,
    /// What it costs.
    pub prices: Option<Known<Prices>>,
    /// Values that Pi would refuse to work with; the next in order stands in for them.
    pub faults: Vec<Fault>,
}

impl Facts {
    /// Above so many tokens Pi compacts (S10.1). None if it does not, or the window is not known.
    #[must_use]
    pub fn threshold(&self) -> Option<u64> {
        let window = self.window.as_ref().filter(|_| self.enabled.value)?;
        Some(window.value.saturating_sub(self.reserve.value))
    }
}

impl Around {
    /// What holds for a session whose branch has this model, each value with where it came from.
    #[must_use]
    pub fn facts(&self, model: Option<&ModelId>, given: &Given) -> Facts {
        let merged = Merged::new(&self.global, self.project.as_deref());
        let mut faults = Vec::new();
        let (reserve, keep) = (("reserveTokens", RESERVE), ("keepRecentTokens", KEEP_RECENT));
        let known = model.map(|model| self.models.find(model, &self.store)).unwrap_or_default();
        Facts {
            enabled: compaction::enabled(&merged),
            reserve: compaction::tokens(&merged, reserve, model, given.reserve.as_ref(), &mut faults),
            keep_recent: compaction::tokens(&merged, keep, model, given.keep_recent.as_ref(), &mut faults),
            window: given.window.clone().map(Known::given).or(known.window),
            max_tokens: known.max_tokens,
            prices: known.prices,
            faults,
        }
    }

    /// What is wrong with the files themselves.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        let project = self.project.as_ref().and_then(|settings| settings.fault());
        self.global.fault().into_iter().chain(project).chain(self.models.faults()).chain(self.store.fault())
    }

    /// The model that Pi begins a session with, where its settings name one (`defaultProvider`, `defaultModel`).
    #[must_use]
    pub fn default_model(&self) -> Option<ModelId> {
        let merged = Merged::new(&self.global, self.project.as_deref());
        let text = |name| Some(merged.find(&[name])?.0.as_str()?.into_owned());
        Some(ModelId { provider: text("defaultProvider")?, id: text("defaultModel")? })
    }

    /// The `sessionDir` in force, as it is written (S1.2). Pi reads the project's before it knows whether to trust it, so
    /// `project` is to be given whether or not it does.
    #[must_use]
    pub fn session_dir(global: &Settings, project: Option<&Settings>) -> Option<Known<String>> {
        let (value, origin) = Merged::new(global, project).find(&["sessionDir"])?;
        let dir = value.as_str().filter(|dir| !dir.is_empty())?;
        Some(Known { value: dir.into_owned(), origin })
    }
}

#[cfg(test)]
mod tests;
