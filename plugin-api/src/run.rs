//! One run: reading the session, and proposing.
use serde::Serialize;

use crate::host::Imports;
use crate::{Answer, Compaction, CustomMessage, Edit, Entries, Entry, Error, Host, Info, Json, Level};
use crate::{Plan, Random, Refusal, Result, Tokens, json};

/// Entries in a page: enough to make the calls few, little enough to throw away.
const PAGE: u32 = 64;
/// Bytes in a piece of text: the most that the host gives.
const PIECE: u32 = 65_536;

/// One run of a plugin: the session it runs on, and the place to put what it proposes.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    host: &'a dyn Host,
    /// The plugin's package, which keeps its randomness apart from other plugins'.
    plugin: &'static str,
}

/// Why `on_settled` is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The reason as the contract has it; more may come.
    pub reason: String,
    /// The notes that `on_entry` left with [`Run::later`], oldest first.
    pub notes: Vec<String>,
    /// The user's instructions for a compaction.
    pub instructions: Option<String>,
}

/// The reasons known today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The branch is at rest.
    Settled,
    /// Pi stands between two steps.
    Boundary,
    /// A compaction is wanted now: the user's, for the threshold, or because the context overflowed.
    CompactionWanted,
    /// One that this version does not know.
    Other,
}

impl Settled {
    /// The reason, if it is one of those known today.
    #[must_use]
    pub fn why(&self) -> Reason {
        match self.reason.as_str() {
            "settled" => Reason::Settled,
            "boundary" => Reason::Boundary,
            "manual" | "threshold" | "overflow" => Reason::CompactionWanted,
            _ => Reason::Other,
        }
    }
}

impl Run<'static> {
    /// The run that this component was called for.
    pub(crate) fn here(plugin: &'static str) -> Self {
        Self { host: &Imports, plugin }
    }
}

/// Reading. A text is as the context shows it: edits are applied, pending ones too.
impl<'a> Run<'a> {
    /// A run on another host, for a plugin's own tests.
    #[must_use]
    pub fn on(host: &'a dyn Host) -> Self {
        Self { host, plugin: "" }
    }

    /// The entry that woke this run; in `on_settled` the last entry in the file.
    #[must_use]
    pub fn trigger(&self) -> Info {
        self.host.trigger()
    }

    /// The time of this run, Unix milliseconds: its trigger's, or 0 if that has none. There is no other clock.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.trigger().time_ms.unwrap_or(0)
    }

    /// This run's randomness, from its beginning: the same for the same session, trigger and plugin.
    #[must_use]
    pub fn random(&self) -> Random {
        Random::of(&[&self.host.header(), self.trigger().id.as_deref().unwrap_or_default(), self.plugin])
    }

    /// The newest entry, be it pending.
    #[must_use]
    pub fn leaf(&self) -> Info {
        self.host.leaf()
    }

    /// The session's header.
    #[must_use]
    pub fn header(&self) -> Json {
        Json::from_text(self.host.header())
    }

    /// The branch from the leaf to the root.
    #[must_use]
    pub fn branch(&self) -> Entries<'a> {
        Entries::new(self.host, &|host, before| host.branch(before, PAGE))
    }

    /// Those entries of the branch that give messages to the context now, newest first.
    #[must_use]
    pub fn projection(&self) -> Entries<'a> {
        Entries::new(self.host, &|host, before| host.projection(before, PAGE))
    }

    /// The JSON of an entry, up to about so many bytes: a longer one ends early, and is then no whole JSON.
    ///
    /// # Errors
    /// If there is no such entry.
    pub fn text(&self, place: u32, max_bytes: usize) -> Result<String, Refusal> {
        gather(max_bytes, |offset| self.host.text(place, offset, PIECE))
    }

    /// The same without edits. For an edited entry this needs `session:raw`.
    ///
    /// # Errors
    /// If there is no such entry, or the grant is missing.
    pub fn raw(&self, place: u32, max_bytes: usize) -> Result<String, Refusal> {
        gather(max_bytes, |offset| self.host.raw(place, offset, PIECE))
    }

    /// An entry, read into types; none if its text is longer than this.
    ///
    /// # Errors
    /// If there is no such entry, or it is not what an entry should be.
    pub fn entry(&self, info: &Info, max_bytes: usize) -> Result<Option<Entry>> {
        if info.bytes > max_bytes as u64 {
            return Ok(None);
        }
        let text = self.text(info.place, usize::MAX)?;
        json::read(&text).map(Some).map_err(Error::from)
    }

    /// The entry with this id, if it is on the branch.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<Info> {
        self.host.by_id(id)
    }

    /// The last `custom` entry of this type on the branch, be it pending: the way to keep state.
    #[must_use]
    pub fn last_custom(&self, custom_type: &str) -> Option<Info> {
        self.host.last_custom(custom_type)
    }

    /// The context's tokens.
    #[must_use]
    pub fn context_tokens(&self) -> Tokens {
        self.host.context_tokens()
    }

    /// The usage of the whole file up to now: `total`, `byModel` and `byDay` (UTC, such as `2026-12-02`), each with
    /// `input`, `output`, `cacheRead`, `cacheWrite` and `cost`; and `trigger`, what this run's entry has added to it, with
    /// its `model` and `day`. The last is missing where more than that is counted already.
    #[must_use]
    pub fn usage_totals(&self) -> Json {
        Json::from_text(self.host.usage_totals())
    }

    /// What is known of the model: window, prices.
    #[must_use]
    pub fn model_facts(&self) -> Option<Json> {
        self.host.model_facts().map(Json::from_text)
    }

    /// Pi's compaction settings: `enabled`, `reserveTokens`, `keepRecentTokens`.
    #[must_use]
    pub fn pi_compaction(&self) -> Json {
        Json::from_text(self.host.pi_compaction())
    }

    /// What Pi would compact now, with its own settings or these.
    #[must_use]
    pub fn compaction_plan(&self, reserve: Option<u64>, keep: Option<u64>) -> Option<Plan> {
        self.host.compaction_plan(reserve, keep)
    }
}

/// Proposing, and the rest.
impl Run<'_> {
    /// Proposes a `custom` entry. Needs `append:custom`.
    ///
    /// # Errors
    /// If it is refused, or the data cannot be JSON.
    pub fn append_custom<T: Serialize + ?Sized>(&self, custom_type: &str, data: &T) -> Result<(), Refusal> {
        let data = Json::of(data).map_err(|error| Refusal { rule: "S12.3".into(), message: error.to_string() })?;
        self.host.custom(custom_type, Some(&data))
    }

    /// Proposes a message to the model. Needs `append:custom_message`.
    ///
    /// # Errors
    /// If it is refused.
    pub fn append_message(&self, message: &CustomMessage) -> Result<(), Refusal> {
        self.host.custom_message(message)
    }

    /// Proposes a compaction. Needs `append:compaction`.
    ///
    /// # Errors
    /// If it is refused.
    pub fn append_compaction(&self, compaction: &Compaction) -> Result<(), Refusal> {
        self.host.compaction(compaction)
    }

    /// Proposes edits, judged as one so that a call and its results can go together, with an answer for each.
    /// Needs `append:context_edit`.
    #[must_use = "an edit that was refused is not made"]
    pub fn append_edits(&self, edits: &[Edit]) -> Vec<Result<(), Refusal>> {
        self.host.context_edits(edits)
    }

    /// In `on_entry`: asks for `on_settled`, with a note of at most 4 KiB. Of several the last counts.
    ///
    /// # Errors
    /// If the note is too long, or this is not `on_entry`.
    pub fn later(&self, note: &str) -> Result<(), Refusal> {
        self.host.later(note)
    }

    /// In `on_settled`: asks a model that the config names. Needs `model:NAME`. The request is JSON: `system`,
    /// `messages`, `maxTokens`.
    ///
    /// # Errors
    /// If it is refused or the model failed.
    pub fn complete(&self, name: &str, request: &Json) -> Result<Answer, Refusal> {
        self.host.complete(name, request.as_str())
    }

    /// A line for the user's log.
    pub fn log(&self, level: Level, text: &str) {
        self.host.log(level, text);
    }

    /// The host itself, for what has no method here.
    #[must_use]
    pub fn host(&self) -> &dyn Host {
        self.host
    }
}

/// Puts pieces together until there is enough.
fn gather(max_bytes: usize, piece: impl Fn(u64) -> Result<crate::Piece, Refusal>) -> Result<String, Refusal> {
    let mut first = piece(0)?;
    let mut text = std::mem::take(&mut first.text);
    let mut next = first.next;
    while let Some(offset) = next.filter(|_| text.len() < max_bytes) {
        let more = piece(offset)?;
        text.push_str(&more.text);
        next = more.next;
    }
    Ok(text)
}
