//! What the host offers, as a trait: the real imports in a component, something else in a plugin's own tests.
use crate::bindings::pi_graft::plugin::{append, log, model, session};
use crate::{Answer, Compaction, CustomMessage, Edit, Info, Json, Page, Piece, Plan, Refusal, Tokens};

/// How much a line in the log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is not as it should be.
    Warn,
    /// Worth knowing.
    Info,
    /// For who looks for a mistake.
    Debug,
}

impl Level {
    /// Its name in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// The imports of the contract, one method each: see the WIT for what each does and which grant it needs.
#[allow(missing_docs, reason = "the WIT has the documentation, and only tests implement this")]
#[allow(clippy::missing_errors_doc, reason = "likewise")]
pub trait Host {
    fn header(&self) -> String;
    fn trigger(&self) -> Info;
    fn leaf(&self) -> Info;
    fn branch(&self, before: Option<u32>, max: u32) -> Page;
    fn projection(&self, before: Option<u32>, max: u32) -> Page;
    fn text(&self, place: u32, offset: u64, max: u32) -> Result<Piece, Refusal>;
    fn raw(&self, place: u32, offset: u64, max: u32) -> Result<Piece, Refusal>;
    fn by_id(&self, id: &str) -> Option<Info>;
    fn last_custom(&self, custom_type: &str) -> Option<Info>;
    fn context_tokens(&self) -> Tokens;
    fn usage_totals(&self) -> String;
    fn model_facts(&self) -> Option<String>;
    fn pi_compaction(&self) -> String;
    fn compaction_plan(&self, reserve: Option<u64>, keep: Option<u64>) -> Option<Plan>;
    fn custom(&self, custom_type: &str, data: Option<&Json>) -> Result<(), Refusal>;
    fn custom_message(&self, message: &CustomMessage) -> Result<(), Refusal>;
    fn compaction(&self, compaction: &Compaction) -> Result<(), Refusal>;
    fn context_edits(&self, edits: &[Edit]) -> Vec<Result<(), Refusal>>;
    fn later(&self, note: &str) -> Result<(), Refusal>;
    fn complete(&self, name: &str, request: &str) -> Result<Answer, Refusal>;
    fn log(&self, level: Level, text: &str);
}

/// The host of a real run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Imports;

impl Host for Imports {
    fn header(&self) -> String {
        session::header()
    }
    fn trigger(&self) -> Info {
        session::trigger()
    }
    fn leaf(&self) -> Info {
        session::leaf()
    }
    fn branch(&self, before: Option<u32>, max: u32) -> Page {
        session::branch(before, max)
    }
    fn projection(&self, before: Option<u32>, max: u32) -> Page {
        session::projection(before, max)
    }
    fn text(&self, place: u32, offset: u64, max: u32) -> Result<Piece, Refusal> {
        session::text(place, offset, max)
    }
    fn raw(&self, place: u32, offset: u64, max: u32) -> Result<Piece, Refusal> {
        session::raw(place, offset, max)
    }
    fn by_id(&self, id: &str) -> Option<Info> {
        session::by_id(id)
    }
    fn last_custom(&self, custom_type: &str) -> Option<Info> {
        session::last_custom(custom_type)
    }
    fn context_tokens(&self) -> Tokens {
        session::context_tokens()
    }
    fn usage_totals(&self) -> String {
        session::usage_totals()
    }
    fn model_facts(&self) -> Option<String> {
        session::model_facts()
    }
    fn pi_compaction(&self) -> String {
        session::pi_compaction()
    }
    fn compaction_plan(&self, reserve: Option<u64>, keep: Option<u64>) -> Option<Plan> {
        session::compaction_plan(reserve, keep)
    }
    fn custom(&self, custom_type: &str, data: Option<&Json>) -> Result<(), Refusal> {
        append::custom(custom_type, data.map(Json::as_str))
    }
    fn custom_message(&self, message: &CustomMessage) -> Result<(), Refusal> {
        let details = message.details.as_ref().map(Json::as_str);
        append::custom_message(&message.custom_type, message.content.as_str(), message.display, details)
    }
    fn compaction(&self, compaction: &Compaction) -> Result<(), Refusal> {
        let (details, usage) = (compaction.details.as_ref(), compaction.usage.as_ref());
        let first_kept = compaction.first_kept.as_deref();
        append::compaction(&compaction.summary, first_kept, details.map(Json::as_str), usage.map(Json::as_str))
    }
    fn context_edits(&self, edits: &[Edit]) -> Vec<Result<(), Refusal>> {
        append::context_edits(edits)
    }
    fn later(&self, note: &str) -> Result<(), Refusal> {
        append::later(note)
    }
    fn complete(&self, name: &str, request: &str) -> Result<Answer, Refusal> {
        model::complete(name, request)
    }
    fn log(&self, level: Level, text: &str) {
        log::log(level.name(), text);
    }
}
