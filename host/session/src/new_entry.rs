//! New entries of every type that Pi writes, well formed by themselves; whether one may stand where it is appended is for
//! [`crate::Session::append`] to say.

use crate::draft::{Draft, fields};
use crate::json::{Json, quoted};
use crate::message::check_message;
use crate::refusal::{Refusal, Rule};
use crate::shape::check_usage;
use crate::splice::{Member, object};
use crate::strict::RawJson;
use crate::walk::is_js_space;

/// An entry to be appended, without id, parent and time.
///
/// The four types that a plugin may propose come from a [`Draft`]:
///
/// ```
/// use pi_session::{NewEntry, draft::Draft};
///
/// let state: NewEntry = Draft::custom("my-tool.state", Some(r#"{"step":1}"#))?.into();
/// let level = NewEntry::thinking_level("high")?;
/// # Ok::<_, pi_session::refusal::Refusal>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewEntry(pub(crate) What);

/// What it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// One that has rules about where it stands (S12.5, S12.6).
    Draft(Draft),
    /// A message.
    Message(RawJson),
    /// A label, and the entry that it names.
    Label { target: String, label: Option<String> },
    /// Any other: its type and its fields as JSON, in Pi's order.
    Plain(&'static str, Vec<(&'static str, String)>),
}

impl From<Draft> for NewEntry {
    fn from(draft: Draft) -> NewEntry {
        NewEntry(What::Draft(draft))
    }
}

impl NewEntry {
    /// A `message`; `message` is JSON in Pi's own shape (S5).
    ///
    /// ```
    /// let hello = pi_session::NewEntry::message(r#"{"role":"user","content":"Hello","timestamp":1767225600000}"#)?;
    /// # Ok::<_, pi_session::refusal::Refusal>(())
    /// ```
    ///
    /// # Errors
    /// Rule S12.3: a field is missing or malformed.
    pub fn message(message: &str) -> Result<NewEntry, Refusal> {
        let message = raw(message, "the message")?;
        check_message(message.json()).map_err(|why| Refusal::new(Rule::FIELDS, format!("the message {why}")))?;
        Ok(NewEntry(What::Message(message)))
    }

    /// A user's message that is one text, at this time (Unix milliseconds).
    #[must_use]
    pub fn user(text: &str, now_ms: i64) -> NewEntry {
        let (text, time) = (quoted(text), now_ms.to_string());
        let members =
            [Member::text("role", "\"user\""), Member::text("content", &text), Member::text("timestamp", &time)];
        NewEntry(What::Message(RawJson::assembled(object(&members))))
    }

    /// A `model_change`: the model that answers from here on.
    ///
    /// # Errors
    /// Rule S12.3: a name is empty.
    pub fn model_change(provider: &str, model_id: &str) -> Result<NewEntry, Refusal> {
        plain("model_change", vec![name("provider", provider)?, name("modelId", model_id)?])
    }

    /// A `thinking_level_change`.
    ///
    /// # Errors
    /// Rule S12.3: the level is empty.
    pub fn thinking_level(level: &str) -> Result<NewEntry, Refusal> {
        plain("thinking_level_change", vec![name("thinkingLevel", level)?])
    }

    /// A `usage`: what was spent beside the messages. `usage` is JSON in Pi's shape (S4.5); a note may be empty.
    ///
    /// # Errors
    /// Rule S12.3: a name is empty, a number missing.
    pub fn usage(kind: &str, provider: &str, model: &str, usage: &str, note: &str) -> Result<NewEntry, Refusal> {
        let usage = raw(usage, "usage")?;
        fields(check_usage(usage.json()), "usage")?;
        let mut members = vec![name("kind", kind)?, name("provider", provider)?, name("model", model)?];
        members.push(("usage", usage.as_str().to_owned()));
        members.extend((!note.is_empty()).then(|| ("note", quoted(note))));
        plain("usage", members)
    }

    /// A `label` of an entry; none takes its label away (S4.6).
    #[must_use]
    pub fn label(target: &str, label: Option<&str>) -> NewEntry {
        NewEntry(What::Label { target: target.to_owned(), label: label.map(str::to_owned) })
    }

    /// A `session_info`: the session's name, on one line and trimmed as Pi does; an empty one takes it away (S4.6).
    #[must_use]
    pub fn session_name(name: &str) -> NewEntry {
        let lines = name.split(['\r', '\n']).filter(|line| !line.is_empty());
        let name = lines.collect::<Vec<_>>().join(" ");
        NewEntry(What::Plain("session_info", vec![("name", quoted(name.trim_matches(is_js_space)))]))
    }
}

/// What a branch that is left was about (S8.4).
///
/// It is marked as made by an extension (`fromHook`), so that Pi does not take `details` for its own file lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchSummary {
    summary: String,
    details: Option<RawJson>,
    usage: Option<RawJson>,
}

impl BranchSummary {
    /// A summary; `details` (any) and `usage` (what making it cost) are JSON.
    ///
    /// # Errors
    /// Rule S12.3: `details` or `usage` is malformed, or the summary is empty, so that Pi would show nothing of it.
    pub fn new(summary: &str, details: Option<&str>, usage: Option<&str>) -> Result<BranchSummary, Refusal> {
        if summary.trim().is_empty() {
            return Err(Refusal::new(Rule::FIELDS, "`summary` is empty: to leave a branch without one, branch"));
        }
        let details = details.map(|details| raw(details, "details")).transpose()?;
        let usage = usage.map(|usage| raw(usage, "usage")).transpose()?;
        usage.iter().try_for_each(|usage| fields(check_usage(usage.json()), "usage"))?;
        Ok(BranchSummary { summary: summary.to_owned(), details, usage })
    }

    /// Its fields as JSON, in Pi's order.
    pub(crate) fn members(&self, from: &str) -> Vec<(&'static str, String)> {
        let json = |name, json: &Option<RawJson>| json.as_ref().map(|json| (name, json.as_str().to_owned()));
        let mut members = vec![("fromId", quoted(from)), ("summary", quoted(&self.summary))];
        members.extend(json("details", &self.details));
        members.extend(json("usage", &self.usage));
        members.push(("fromHook", "true".to_owned()));
        members
    }
}

/// The call that a message answers, if it is a tool's result.
pub(crate) fn call_answered(message: &RawJson) -> Option<String> {
    let text = |field| message.json().get(field).and_then(Json::as_str);
    (text("role")? == "toolResult").then(|| text("toolCallId"))?.map(|id| id.into_owned())
}

fn plain(kind: &'static str, members: Vec<(&'static str, String)>) -> Result<NewEntry, Refusal> {
    Ok(NewEntry(What::Plain(kind, members)))
}

/// A field that must say something.
fn name(field: &'static str, text: &str) -> Result<(&'static str, String), Refusal> {
    match text.is_empty() {
        true => Err(Refusal::new(Rule::FIELDS, format!("`{field}` is empty"))),
        false => Ok((field, quoted(text))),
    }
}

fn raw(text: &str, field: &str) -> Result<RawJson, Refusal> {
    RawJson::parse(text).map_err(|fault| Refusal::new(Rule::FIELDS, format!("{field}: {fault}")))
}
