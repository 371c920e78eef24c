//! A draft given as JSON: every field of its type there, of the right type, and no other (S12.3).

use super::Draft;
use crate::json::{Json, Kind};
use crate::refusal::{Refusal, Rule};
use crate::shape::kind_name;
use crate::strict::RawJson;

/// The draft that `object` describes. What is in its fields is not looked at yet.
pub(super) fn draft(object: Json<'_>) -> Result<Draft, Refusal> {
    Fields::of(object)?.read()
}

/// The members of a draft given as JSON, taken by name; none may be of a name that nobody takes.
struct Fields<'a> {
    kind: &'static str,
    object: Json<'a>,
}

impl<'a> Fields<'a> {
    /// Looks at the `type`, and refuses members that this type does not have.
    fn of(object: Json<'a>) -> Result<Fields<'a>, Refusal> {
        let known = ["custom", "custom_message", "compaction", "context_edit"];
        let name = object.get("type").and_then(|name| name.as_str()).unwrap_or_default();
        let Some(kind) = known.into_iter().find(|kind| *kind == name) else {
            let message = format!("the draft's `type` is {name:?}: it must be one of {}", known.join(", "));
            return Err(Refusal::new(Rule::TYPE, message));
        };
        let fields = Fields { kind, object };
        fields.check_names()?;
        Ok(fields)
    }

    /// Only the fields of its type. A compaction may also say `tokensBefore`, which the host replaces (S12.5).
    fn check_names(&self) -> Result<(), Refusal> {
        let allowed: &[&str] = match self.kind {
            "custom" => &["customType", "data"],
            "custom_message" => &["customType", "content", "display", "details"],
            "compaction" => &["summary", "firstKeptEntryId", "details", "usage", "tokensBefore"],
            _ => &["targetId", "replacement"],
        };
        let is_odd = |key: &str| key != "type" && !allowed.contains(&key);
        match self.object.members().map(|(key, _)| key.text()).find(|key| is_odd(key)) {
            Some(key) => Err(self.wrong(format!("has no field {key:?}: it has {}", allowed.join(", ")))),
            None => Ok(()),
        }
    }

    /// The draft that these fields make.
    fn read(&self) -> Result<Draft, Refusal> {
        match self.kind {
            "custom" => Ok(Draft::Custom { custom_type: self.custom_type()?, data: self.any("data") }),
            "custom_message" => self.read_message(),
            "compaction" => self.read_compaction(),
            _ => self.read_edit(),
        }
    }

    fn read_message(&self) -> Result<Draft, Refusal> {
        let display = self.needed("display")?;
        let Some(display) = display.as_bool() else {
            return Err(self.wrong(format!("has a `display` that is {}: give true or false", kind_name(display))));
        };
        Ok(Draft::CustomMessage {
            custom_type: self.custom_type()?,
            content: take(self.needed("content")?),
            display,
            details: self.any("details"),
        })
    }

    fn read_compaction(&self) -> Result<Draft, Refusal> {
        if let Some(tokens) = self.object.get("tokensBefore").filter(|tokens| tokens.kind() != Kind::Number) {
            let message = format!("`tokensBefore` is {}: leave it out, the host counts them", kind_name(tokens));
            return Err(Refusal::new(Rule::COMPACTION, message));
        }
        if self.object.get("summary").is_none() {
            return Err(Refusal::new(Rule::COMPACTION, "the compaction has no `summary`: give the text of one"));
        }
        Ok(Draft::Compaction {
            summary: self.text("summary")?,
            first_kept: self.first_kept()?,
            details: self.any("details"),
            usage: self.any("usage").filter(|usage| !usage.json().is_null()),
        })
    }

    /// The id of the first kept entry; only an outspoken null keeps none.
    fn first_kept(&self) -> Result<Option<String>, Refusal> {
        let Some(id) = self.object.get("firstKeptEntryId") else {
            return Err(self.wrong("has no `firstKeptEntryId`: give an entry's id, or null to keep none".into()));
        };
        if id.is_null() { Ok(None) } else { self.text("firstKeptEntryId").map(Some) }
    }

    fn read_edit(&self) -> Result<Draft, Refusal> {
        let target = self.text("targetId")?;
        let Some(replacement) = self.object.get("replacement") else {
            let what = "has no `replacement`, and Pi could build no context: give null to omit, or {\"content\":…}";
            return Err(self.wrong(what.into()));
        };
        let replacement = (!replacement.is_null()).then(|| take(replacement));
        Ok(Draft::ContextEdit { target, replacement })
    }

    /// S12.4 speaks of a missing name too.
    fn custom_type(&self) -> Result<String, Refusal> {
        match self.object.get("customType") {
            Some(_) => self.text("customType"),
            None => Err(Refusal::new(Rule::CUSTOM_TYPE, "there is no `customType`: name it after your plugin")),
        }
    }

    fn text(&self, field: &str) -> Result<String, Refusal> {
        let value = self.needed(field)?;
        match value.as_str() {
            Some(text) => Ok(text.into_owned()),
            None => Err(self.wrong(format!("has a `{field}` that is {}: give a string", kind_name(value)))),
        }
    }

    fn needed(&self, field: &str) -> Result<Json<'a>, Refusal> {
        self.object.get(field).ok_or_else(|| self.wrong(format!("has no `{field}`")))
    }

    fn any(&self, field: &str) -> Option<RawJson> {
        self.object.get(field).map(take)
    }

    fn wrong(&self, what: String) -> Refusal {
        Refusal::new(Rule::FIELDS, format!("a {} draft {what}", self.kind))
    }
}

/// A part of JSON that was checked as a whole.
fn take(part: Json<'_>) -> RawJson {
    RawJson::assembled(part.to_text().into_owned())
}
