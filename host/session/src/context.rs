//! What the model sees of a branch: which entries, after which edits, as which messages (S9).
//!
//! Finding the entries needs no text and costs the length of the context, not of the file. Messages are made from the
//! spans of the text as they stand; nothing is decoded and written again.

use std::collections::{HashMap, HashSet};

use crate::branch::{Branch, BranchError};
use crate::entry::{Entry, EntryKind, IdIx, Replacement, Role};
use crate::json::{Json, Kind};
use crate::settings::ModelId;
use crate::splice::{self, Member};

/// How an entry shows in the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It gives no message.
    Nothing,
    /// As it stands.
    AsIs,
    /// Left out by the edit at this place.
    Omitted {
        /// Place of the edit.
        by: u32,
    },
    /// With the content of the edit at this place.
    Replaced {
        /// Place of the edit.
        by: u32,
    },
}

/// One entry of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextEntry {
    /// Its place on the branch.
    pub place: u32,
    /// How it shows.
    pub shown: Shown,
}

impl ContextEntry {
    /// Whether it gives a message now.
    #[must_use]
    pub fn gives(&self) -> bool {
        matches!(self.shown, Shown::AsIs | Shown::Replaced { .. })
    }
}

/// The context of a branch, before its messages are read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Context {
    /// The entries in the order the model sees them: the compaction first, where there is one (S9.1).
    pub entries: Vec<ContextEntry>,
}

/// The provider and id of a model, as JSON values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// JSON of the provider's name; none where it is missing.
    pub provider: Option<String>,
    /// JSON of the model's id.
    pub model: Option<String>,
}

impl ModelName {
    /// The model that an entry tells, which [`Entry::tells_model`]; `line` is its JSON.
    #[must_use]
    pub fn told_by(entry: &Entry, line: Json<'_>) -> Option<ModelName> {
        let name = |of: Json<'_>, provider, model| ModelName {
            provider: of.get(provider).map(|p| p.to_text().into_owned()),
            model: of.get(model).map(|m| m.to_text().into_owned()),
        };
        match entry.kind {
            EntryKind::ModelChange => Some(name(line, "provider", "modelId")),
            _ => line.get("message").map(|m| name(m, "provider", "model")),
        }
    }

    /// The two names as text. None if one is missing, or is no text: Pi finds no such model.
    #[must_use]
    pub fn id(&self) -> Option<ModelId> {
        let text = |json: &Option<String>| Some(Json::parse(json.as_deref()?.as_bytes()).ok()?.as_str()?.into_owned());
        Some(ModelId { provider: text(&self.provider)?, id: text(&self.model)? })
    }
}

impl Branch {
    /// The context of this branch (S9.1, S9.2).
    #[must_use]
    pub fn context(&self) -> Context {
        self.context_but(|_| false)
    }

    /// The same as it would be if the edits and messages at these places were not on the branch.
    #[must_use]
    pub fn context_without(&self, out: &HashSet<u32>) -> Context {
        self.context_but(|place| out.contains(&place))
    }

    fn context_but(&self, is_out: impl Fn(u32) -> bool) -> Context {
        let places = self.context_places();
        let edits = self.edits_among(places.iter().copied().filter(|place| !is_out(*place)));
        let show = |(at, place): (usize, u32)| match is_out(place) {
            true => ContextEntry { place, shown: Shown::Nothing },
            false => ContextEntry { place, shown: self.shown(at, place, &edits) },
        };
        Context { entries: places.into_iter().enumerate().map(show).collect() }
    }

    /// The last compaction on the branch.
    #[must_use]
    pub fn last_compaction(&self) -> Option<u32> {
        (0..self.len()).rev().find(|place| self.facts(*place).kind == EntryKind::Compaction)
    }

    fn context_places(&self) -> Vec<u32> {
        let Some(compaction) = self.last_compaction() else {
            return (0..self.len()).collect();
        };
        let kept = self.facts(compaction).names.and_then(|id| self.place_of_ix(id));
        let kept = kept.filter(|place| *place < compaction).unwrap_or(compaction);
        let is_system = |place: &u32| {
            let facts = self.facts(*place);
            facts.kind == EntryKind::Message && facts.role == Role::System
        };
        let before = (kept..compaction).filter(|place| !is_system(place));
        std::iter::once(compaction).chain(before).chain(compaction + 1..self.len()).collect()
    }

    /// The last edit of each target among these entries (S7.3, S9.2).
    fn edits_among(&self, places: impl Iterator<Item = u32>) -> HashMap<IdIx, u32> {
        let edit = |place: u32| {
            let facts = self.facts(place);
            (facts.kind == EntryKind::ContextEdit).then_some((facts.names?, place))
        };
        places.filter_map(edit).collect()
    }

    fn shown(&self, at: usize, place: u32, edits: &HashMap<IdIx, u32>) -> Shown {
        let facts = self.facts(place);
        if !facts.gives || (facts.kind == EntryKind::Compaction && at > 0) {
            return Shown::Nothing;
        }
        let edit = (place < self.in_file()).then(|| edits.get(&facts.id)).flatten();
        let Some(by) = edit.copied() else {
            return Shown::AsIs;
        };
        match self.facts(by).replacement {
            Replacement::Omit => Shown::Omitted { by },
            Replacement::Content if facts.role.takes_replacement() => Shown::Replaced { by },
            _ => Shown::AsIs,
        }
    }

    /// The messages that an entry of the context gives, as JSON texts (S9.3).
    ///
    /// # Errors
    /// [`BranchError`] if the text cannot be read back.
    pub fn messages(&self, entry: &ContextEntry) -> Result<Vec<String>, BranchError> {
        if !entry.gives() {
            return Ok(Vec::new());
        }
        let own = self.own_messages(entry.place)?;
        let Shown::Replaced { by } = entry.shown else {
            return Ok(own);
        };
        let as_blocks = matches!(self.facts(entry.place).role, Role::Assistant | Role::ToolResult);
        let content = self.read(by, |edit| edited_content(edit, as_blocks))?;
        Ok(own.iter().map(|message| with_content(message, content.as_deref())).collect())
    }

    fn own_messages(&self, place: u32) -> Result<Vec<String>, BranchError> {
        let facts = self.facts(place);
        let time = facts.time_ms.map_or_else(|| "null".to_owned(), |ms| ms.to_string());
        match facts.kind {
            EntryKind::Message => self.pick(place, ["message"], |[message]| {
                message.map(|message| self.plain_message(facts, message)).into_iter().collect()
            }),
            EntryKind::CustomMessage => {
                let names = ["customType", "content", "display", "details"];
                self.pick(place, names, |members| vec![custom_message(members, &time)])
            }
            EntryKind::BranchSummary => {
                self.pick(place, ["summary", "fromId"], |members| vec![branch_summary(members, &time)])
            }
            EntryKind::Compaction => {
                let names = ["systemMessage", "summary", "tokensBefore"];
                self.pick(place, names, |members| compaction_messages(members, &time))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// A message as it stands, but that missing content reads as empty (S5) and an old role as the new one (S11.1).
    fn plain_message(&self, facts: &Entry, message: Json<'_>) -> String {
        let text = message.to_text();
        match facts.role {
            Role::System if facts.no_content => splice::set(&text, "content", "\"\""),
            Role::User | Role::Assistant | Role::ToolResult if facts.no_content => splice::set(&text, "content", "[]"),
            Role::Custom if self.old_roles() => splice::set(&text, "role", "\"custom\""),
            _ => text.into_owned(),
        }
    }

    /// The thinking level in force, as JSON: the last change on the whole path, else `"off"` (S9.4).
    ///
    /// # Errors
    /// [`BranchError`] if the text cannot be read back.
    pub fn thinking_level(&self) -> Result<String, BranchError> {
        let Some(place) = self.last_level() else {
            return Ok("\"off\"".to_owned());
        };
        let level = self.read(place, |line| line.get("thinkingLevel").map(|l| l.to_text().into_owned()))?;
        Ok(level.unwrap_or_else(|| "null".to_owned()))
    }

    /// The place of the last change of the level. No draft is one, so none is pending.
    fn last_level(&self) -> Option<u32> {
        match self.tree().in_order() {
            true => self.tree().levels().iter().rev().find_map(|ix| self.place_of_entry(*ix)),
            false => {
                self.items().rfind(|item| item.facts.kind == EntryKind::ThinkingLevelChange).map(|item| item.place)
            }
        }
    }

    /// The model in force: the last of model changes and assistant messages on the whole path (S9.4).
    ///
    /// # Errors
    /// [`BranchError`] if the text cannot be read back.
    pub fn model(&self) -> Result<Option<ModelName>, BranchError> {
        let Some(item) = self.items().rev().find(|item| item.facts.tells_model()) else {
            return Ok(None);
        };
        self.read(item.place, |line| ModelName::told_by(item.facts, line))
    }
}

fn custom_message([custom_type, content, display, details]: [Option<Json<'_>>; 4], time: &str) -> String {
    splice::object(&[
        Member::text("role", "\"custom\""),
        Member::json("customType", custom_type),
        Member::json_or("content", content.filter(|c| !c.is_null()), "[]"),
        Member::json("display", display),
        Member::json("details", details),
        Member::text("timestamp", time),
    ])
}

fn branch_summary([summary, from]: [Option<Json<'_>>; 2], time: &str) -> String {
    splice::object(&[
        Member::text("role", "\"branchSummary\""),
        Member::json("summary", summary),
        Member::json("fromId", from),
        Member::text("timestamp", time),
    ])
}

fn compaction_messages([system, summary, before]: [Option<Json<'_>>; 3], time: &str) -> Vec<String> {
    let system = system.filter(|s| s.is_truthy()).map(|s| s.to_text().into_owned());
    let summary = splice::object(&[
        Member::text("role", "\"compactionSummary\""),
        Member::json("summary", summary),
        Member::json("tokensBefore", before),
        Member::text("timestamp", time),
    ]);
    system.into_iter().chain([summary]).collect()
}

/// What an edit's content shows as: text for an assistant or tool result as one block (S7.2). None where there is none.
fn edited_content(edit: Json<'_>, as_blocks: bool) -> Option<String> {
    let content = edit.get("replacement")?.get("content")?;
    let text = content.to_text();
    Some(match content.kind() {
        Kind::String if as_blocks => format!("[{{\"type\":\"text\",\"text\":{text}}}]"),
        _ => text.into_owned(),
    })
}

fn with_content(message: &str, content: Option<&str>) -> String {
    match content {
        Some(content) => splice::set(message, "content", content),
        None => splice::without(message, "content"),
    }
}
