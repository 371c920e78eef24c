//! Drafts: what may be proposed for a session, in the shapes of the toolbox and of Pi's own boundaries.
//!
//! A [`Draft`] is well formed by itself: every constructor here checks the fields (S12.1, S12.3, S12.4, and of
//! S12.5 what needs no session). Whether it may stand on a branch is for [`crate::validate`] to say.

mod read;
mod write;

use crate::json::{Json, Kind};
use crate::refusal::{Refusal, Rule};
use crate::shape::{Owner, check_content, check_usage, kind_name};
use crate::strict::RawJson;

pub(crate) use write::{Counted, Stamp};

/// The `customType` of the entry that a batch begins with (product 4.5).
pub const RECEIPT_TYPE: &str = "pi-graft.run";

/// Beginnings of `customType` that plugins may not use (S12.4).
const RESERVED: [&str; 2] = ["pi.", "pi-graft."];

/// One proposed entry, without what the host adds to it: id, parent, time, tokens, system message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Draft {
    /// State of a plugin; never in the model's context.
    Custom {
        /// The plugin's own name for it (S12.4).
        custom_type: String,
        /// Any JSON.
        data: Option<RawJson>,
    },
    /// A message that goes into the model's context.
    CustomMessage {
        /// The plugin's own name for it (S12.4).
        custom_type: String,
        /// JSON string or list of text and image blocks.
        content: RawJson,
        /// Whether Pi shows it to the user.
        display: bool,
        /// Any JSON; never reaches a model.
        details: Option<RawJson>,
    },
    /// A summary in place of what was before the first kept entry (S6).
    Compaction {
        /// The summary; not empty.
        summary: String,
        /// Id of the first kept entry; `None` keeps none (the entry then names itself, S6.1).
        first_kept: Option<String>,
        /// Any JSON; never reaches a model.
        details: Option<RawJson>,
        /// What making the summary cost, in Pi's shape.
        usage: Option<RawJson>,
    },
    /// A change of what an earlier entry shows to the model (S7).
    ContextEdit {
        /// Id of the entry.
        target: String,
        /// JSON of `{content}`; `None` omits the entry.
        replacement: Option<RawJson>,
    },
}

impl Draft {
    /// A `custom` entry; `data` is JSON.
    pub fn custom(custom_type: &str, data: Option<&str>) -> Result<Draft, Refusal> {
        Draft::checked(Draft::Custom { custom_type: custom_type.to_owned(), data: raw_option(data, "data")? })
    }

    /// A `custom_message` entry; `content` and `details` are JSON.
    pub fn custom_message(
        custom_type: &str,
        content: &str,
        display: bool,
        details: Option<&str>,
    ) -> Result<Draft, Refusal> {
        let content = raw(content, "content")?;
        let details = raw_option(details, "details")?;
        Draft::checked(Draft::CustomMessage { custom_type: custom_type.to_owned(), content, display, details })
    }

    /// A `compaction` entry; `details` and `usage` are JSON, `first_kept` an entry's id or none to keep none.
    pub fn compaction(
        summary: &str,
        first_kept: Option<&str>,
        details: Option<&str>,
        usage: Option<&str>,
    ) -> Result<Draft, Refusal> {
        Draft::checked(Draft::Compaction {
            summary: summary.to_owned(),
            first_kept: first_kept.map(str::to_owned),
            details: raw_option(details, "details")?,
            usage: raw_option(usage, "usage")?,
        })
    }

    /// A `context_edit` entry; `replacement` is JSON of `{content}`, or none to omit the target.
    pub fn context_edit(target: &str, replacement: Option<&str>) -> Result<Draft, Refusal> {
        let replacement = raw_option(replacement, "replacement")?;
        Draft::checked(Draft::ContextEdit { target: target.to_owned(), replacement })
    }

    /// The draft of one JSON object, such as `{"type":"custom","customType":"x","data":1}` (product 3).
    pub fn from_json(text: &str) -> Result<Draft, Refusal> {
        let raw = raw(text, "the draft")?;
        Draft::checked(read::draft(raw.json())?)
    }

    /// The drafts of a JSON list; all that is wrong with any of them, if something is.
    pub fn list_from_json(text: &str) -> Result<Vec<Draft>, Vec<Refusal>> {
        let list = raw(text, "the list of drafts").map_err(|refusal| vec![refusal])?;
        if list.json().kind() != Kind::Array {
            let message = format!("the drafts are {}: give a JSON list of them", kind_name(list.json()));
            return Err(vec![Refusal::new(Rule::FIELDS, message)]);
        }
        let read = |json| Draft::checked(read::draft(json)?);
        all_or_refusals(list.json().items().map(read))
    }

    /// The draft as JSON, as [`Draft::from_json`] reads it and as Pi takes it at a boundary.
    pub fn to_json(&self) -> String {
        self.entry_json(None, None)
    }

    /// The `type` of the entry that it becomes.
    pub fn type_name(&self) -> &'static str {
        match self {
            Draft::Custom { .. } => "custom",
            Draft::CustomMessage { .. } => "custom_message",
            Draft::Compaction { .. } => "compaction",
            Draft::ContextEdit { .. } => "context_edit",
        }
    }

    /// Its place in the one order of a batch: `custom`, edits, `custom_message`, compaction (product 4.2).
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Draft::Custom { .. } => 0,
            Draft::ContextEdit { .. } => 1,
            Draft::CustomMessage { .. } => 2,
            Draft::Compaction { .. } => 3,
        }
    }

    /// Passes on a draft whose fields are right.
    fn checked(draft: Draft) -> Result<Draft, Refusal> {
        match &draft {
            Draft::Custom { custom_type, .. } => check_custom_type(custom_type)?,
            Draft::CustomMessage { custom_type, content, .. } => {
                check_custom_type(custom_type)?;
                fields(check_content(content.json(), Owner::Plain), "content")?;
            }
            Draft::Compaction { summary, usage, .. } => check_compaction(summary, usage.as_ref())?,
            Draft::ContextEdit { replacement, .. } => {
                replacement.iter().try_for_each(|replacement| check_replacement(replacement.json()))?;
            }
        }
        Ok(draft)
    }
}

/// Everything that is right, or all that is wrong with the place of each.
fn all_or_refusals(results: impl Iterator<Item = Result<Draft, Refusal>>) -> Result<Vec<Draft>, Vec<Refusal>> {
    let (mut drafts, mut refusals) = (Vec::new(), Vec::new());
    for (at, result) in results.enumerate() {
        match result {
            Ok(draft) => drafts.push(draft),
            Err(refusal) => refusals.push(refusal.at(at)),
        }
    }
    if refusals.is_empty() { Ok(drafts) } else { Err(refusals) }
}

/// S12.4: a name that is neither empty nor the host's own.
fn check_custom_type(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        let message = "`customType` is empty: name it after your plugin, such as \"my-plugin.state\"";
        return Err(Refusal::new(Rule::CUSTOM_TYPE, message));
    }
    match RESERVED.iter().find(|prefix| name.starts_with(**prefix)) {
        Some(prefix) => {
            let message = format!("`customType` {name:?} begins with the reserved {prefix:?}: use your plugin's name");
            Err(Refusal::new(Rule::CUSTOM_TYPE, message))
        }
        None => Ok(()),
    }
}

/// What of S12.5 shows without a session.
fn check_compaction(summary: &str, usage: Option<&RawJson>) -> Result<(), Refusal> {
    if summary.trim().is_empty() {
        let message = "`summary` is empty: it takes the place of all earlier context, so say what was in it";
        return Err(Refusal::new(Rule::COMPACTION, message));
    }
    usage.map_or(Ok(()), |usage| fields(check_usage(usage.json()), "usage"))
}

/// S7: a replacement is an object of `content` alone.
fn check_replacement(replacement: Json<'_>) -> Result<(), Refusal> {
    let shape = "give null to omit the target, or {\"content\":…} with a string or a list of blocks";
    let wrong = |what: String| Err(Refusal::new(Rule::FIELDS, format!("`replacement` {what}: {shape}")));
    if replacement.kind() != Kind::Object {
        return wrong(format!("is {}", kind_name(replacement)));
    }
    if let Some((other, _)) = replacement.members().find(|(key, _)| !key.is("content")) {
        return wrong(format!("has the field {:?}, but may only change `content`", other.text()));
    }
    match replacement.get("content") {
        Some(content) => fields(check_content(content, Owner::Any), "replacement.content"),
        None => wrong("has no `content`".into()),
    }
}

/// Makes a refusal of what a shape check says about `field`.
pub(crate) fn fields(result: Result<(), String>, field: &str) -> Result<(), Refusal> {
    result.map_err(|why| Refusal::new(Rule::FIELDS, format!("`{field}` {why}")))
}

/// `text` as strict JSON.
fn raw(text: &str, field: &str) -> Result<RawJson, Refusal> {
    RawJson::parse(text).map_err(|fault| Refusal::new(Rule::FIELDS, format!("{field}: {fault}")))
}

/// The same for a field that may be left out.
fn raw_option(text: Option<&str>, field: &str) -> Result<Option<RawJson>, Refusal> {
    text.map(|text| raw(text, field)).transpose()
}
