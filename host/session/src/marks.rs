//! What on one line Pi stumbles over, or takes in another way than its writer thought (S2.5, S4, S5, S12.9).
//!
//! What hangs on other lines (parents, targets, calls and results) is found in [`crate::check`].

use crate::entry::{Entry, EntryKind, Replacement, Role, Stop};
use crate::finding::Finding;
use crate::json::{Json, Kind};
use crate::walk::{Content, Found, Msg, Reported, Shape, Usage};

/// What is found on a line, in the order of the table; most lines have nothing, and cost no memory.
pub(crate) fn of(entry: &Entry, f: &Found<'_>) -> Vec<Finding> {
    let mut marks = Marks(Vec::new());
    marks.on(f.lossy, Finding::BadUtf8);
    let is_listed = matches!(entry.kind, EntryKind::Message | EntryKind::SessionInfo);
    marks.on(f.broken && is_listed, Finding::LineReturn);
    marks.on(!f.timestamp.is_some_and(|t| t.kind() == Kind::String) || entry.time_ms.is_none(), Finding::NoTime);
    match entry.kind {
        EntryKind::Message => marks.message(entry, &f.message.unwrap_or_default()),
        EntryKind::Compaction => marks.compaction(f),
        EntryKind::ContextEdit => marks.edit(f),
        EntryKind::Custom => marks.on(!is_filled(f.custom_type), Finding::NoCustomType),
        EntryKind::CustomMessage => marks.custom_message(f),
        EntryKind::BranchSummary => marks.branch_summary(f),
        EntryKind::ModelChange => marks.on(!(is_text(f.provider) && is_text(f.model)), Finding::ModelChange),
        EntryKind::ThinkingLevelChange => marks.on(!is_text(f.level), Finding::LevelChange),
        EntryKind::Usage => marks.usage(f.usage, true),
        EntryKind::Label => marks.on(f.label.is_some_and(|l| l.is_truthy() && !is_text(Some(l))), Finding::LabelText),
        EntryKind::SessionInfo => {
            marks.on(f.name.is_some_and(|n| !n.is_null() && !is_text(Some(n))), Finding::NameText)
        }
        EntryKind::Other if is_text(f.kind) => marks.on(true, Finding::UnknownType),
        EntryKind::Other => marks.on(true, Finding::NoType),
    }
    marks.0
}

/// Whether Pi fails to build or count a context with an entry in it of which this is found.
pub(crate) fn stops_context(finding: Finding) -> bool {
    use Finding::*;
    matches!(
        finding,
        NoMessage
            | ContentType
            | NullBlock
            | TextBlock
            | ThinkingBlock
            | CallBlock
            | AssistantText
            | BashFields
            | SummaryMessage
            | SystemTools
            | SystemSection
            | NestedCalls
            | NoSummary
            | CompactionSystem
            | CompactionRole
            | UsageNumber
            | BranchSummaryText
            | NoReplacement
            | ReplacementContent
    )
}

/// Whether Pi fails where it looks at every entry of a file (it lists the session, draws its footer, its tree), so that it
/// does not matter whether the entry is in the context.
pub(crate) fn stops_wherever_it_is(finding: Finding, entry: &Entry) -> bool {
    use Finding::*;
    match finding {
        LineReturn | NoMessage | NullContent | BadUsage | UsageNumber | UsagePart | NameText | LabelText
        | BranchSummaryText | NoCustomContent => true,
        ContentType | NullBlock => matches!(entry.role, Role::User | Role::Assistant),
        _ => false,
    }
}

struct Marks(Vec<Finding>);

impl Marks {
    #[inline]
    fn on(&mut self, found: bool, finding: Finding) {
        if found {
            self.0.push(finding);
        }
    }

    fn message(&mut self, entry: &Entry, m: &Msg<'_>) {
        if !m.object {
            return self.on(true, Finding::NoMessage);
        }
        self.on(!m.timestamp.is_some_and(|t| t.kind() == Kind::Number), Finding::MessageTime);
        match entry.role {
            Role::User => self.content(&m.content, false),
            Role::Assistant => self.assistant(entry, m),
            Role::ToolResult => self.tool_result(m),
            Role::System => self.system(m),
            Role::Custom => self.custom(m),
            Role::BashExecution => self.on(m.command.is_none() || m.output.is_none(), Finding::BashFields),
            Role::BranchSummary | Role::CompactionSummary => self.on(m.summary.is_none(), Finding::SummaryMessage),
            Role::Other if is_text(m.role) => self.on(true, Finding::UnknownRole),
            Role::Other => self.on(true, Finding::NoRole),
        }
    }

    /// A content that may be missing, text or blocks.
    fn content(&mut self, content: &Content, of_assistant: bool) {
        self.on(content.shape == Shape::Wrong, Finding::ContentType);
        self.on(content.null, Finding::NullContent);
        self.on(content.shape == Shape::Missing && !content.null, Finding::NoContent);
        self.blocks(content, of_assistant);
    }

    fn blocks(&mut self, content: &Content, of_assistant: bool) {
        let odd = content.odd;
        self.on(odd.null, Finding::NullBlock);
        self.on(odd.no_object, Finding::OddBlock);
        self.on(odd.text, Finding::TextBlock);
        self.on(odd.thinking && of_assistant, Finding::ThinkingBlock);
        self.on(odd.call && of_assistant, Finding::CallBlock);
        self.on(odd.unknown || (odd.assistants && !of_assistant), Finding::UnknownBlock);
    }

    fn assistant(&mut self, entry: &Entry, m: &Msg<'_>) {
        self.content(&m.content, true);
        self.on(m.content.shape == Shape::Text, Finding::AssistantText);
        self.usage(m.usage, true);
        self.on(![m.api, m.provider, m.model].into_iter().all(is_filled), Finding::AssistantModel);
        let deferred = || m.stop.and_then(Json::as_str).as_deref() == Some("deferred");
        self.on(matches!(entry.stop, Stop::None | Stop::Other) && !deferred(), Finding::OddStop);
    }

    /// A usage that is to be added up; on a message of an assistant there must be one.
    fn usage(&mut self, usage: Usage, must_be: bool) {
        let reported = usage.reported();
        self.on(usage.is_bad() || (must_be && reported.is_none()), Finding::BadUsage);
        self.on(reported.is_some_and(Reported::is_odd), Finding::UsageNumber);
        self.on(!usage.is_bad() && reported.is_some_and(Reported::is_partial), Finding::UsagePart);
    }

    fn tool_result(&mut self, m: &Msg<'_>) {
        // Lists of sessions look at what users and assistants say only.
        self.on(m.content.shape == Shape::Wrong, Finding::ContentType);
        self.on(m.content.shape == Shape::Missing, Finding::NoContent);
        self.blocks(&m.content, false);
        self.on(m.content.shape == Shape::Text, Finding::ResultText);
        self.usage(m.usage, false);
        let calls = m.nested.filter(|nested| nested.is_truthy()).and_then(|nested| nested.get("calls"));
        self.on(calls.is_some_and(|calls| !is_list_of_things(calls)), Finding::NestedCalls);
    }

    fn system(&mut self, m: &Msg<'_>) {
        self.on(m.content.shape == Shape::Wrong, Finding::ContentType);
        self.on(m.content.shape == Shape::Missing, Finding::NoContent);
        self.blocks(&m.content, false);
        self.system_state(m);
        self.on(m.replace, Finding::SystemReplace);
    }

    fn system_state(&mut self, m: &Msg<'_>) {
        self.on(!m.tool_lists.into_iter().flatten().all(is_list_of_things), Finding::SystemTools);
        self.on(m.odd_section, Finding::SystemSection);
    }

    /// A message of an extension, as a message: Pi looks into its content without asking whether there is one.
    fn custom(&mut self, m: &Msg<'_>) {
        self.on(matches!(m.content.shape, Shape::Wrong | Shape::Missing), Finding::ContentType);
        self.blocks(&m.content, false);
    }

    fn custom_message(&mut self, f: &Found<'_>) {
        let content = f.content.as_deref().copied().unwrap_or_default();
        self.on(content.shape == Shape::Wrong, Finding::ContentType);
        self.blocks(&content, false);
        self.on(!is_filled(f.custom_type), Finding::NoCustomType);
        self.on(content.shape == Shape::Missing, Finding::NoCustomContent);
        self.on(!f.display.is_some_and(|d| d.kind() == Kind::Bool), Finding::NoDisplay);
    }

    fn compaction(&mut self, f: &Found<'_>) {
        self.usage(f.usage, false);
        self.on(!is_text(f.summary), Finding::NoSummary);
        self.on(is_text(f.summary) && f.summary_units == 0, Finding::EmptySummary);
        self.on(!f.tokens_before.is_some_and(|t| t.kind() == Kind::Number), Finding::TokensBefore);
        if let Some(system) = f.system.as_deref() {
            self.checkpoint(system);
        }
    }

    /// The `systemMessage` of a compaction, which Pi takes for whatever it says it is.
    fn checkpoint(&mut self, system: &Msg<'_>) {
        let is_system = system.role.and_then(Json::as_str).as_deref() == Some("system");
        self.on(system.other || (system.object && !is_system), Finding::CompactionRole);
        let content = system.content;
        let bad = matches!(content.shape, Shape::Wrong | Shape::Missing) || content.odd.null || content.odd.text;
        self.on(system.object && bad, Finding::CompactionSystem);
        self.system_state(system);
    }

    fn branch_summary(&mut self, f: &Found<'_>) {
        self.usage(f.usage, false);
        self.on(!is_text(f.summary), Finding::BranchSummaryText);
        self.on(is_text(f.summary) && f.summary_units == 0, Finding::EmptyBranchSummary);
    }

    fn edit(&mut self, f: &Found<'_>) {
        let Some((replacement, content)) = f.edit.as_deref().copied() else {
            return self.on(true, Finding::NoReplacement);
        };
        if replacement == Replacement::Content {
            let is_content = matches!(content.shape, Shape::Text | Shape::Blocks);
            self.on(!is_content, Finding::ReplacementContent);
            // Whose content it becomes hangs on the target: a call is known in any.
            self.blocks(&content, true);
        }
    }
}

/// A list, as JavaScript walks it, of things that have members: not a number, an object, a text, `true`, nor one with
/// `null` in it.
fn is_list_of_things(value: Json<'_>) -> bool {
    match value.kind() {
        Kind::Array => !value.items().any(Json::is_null),
        Kind::String => value.utf16_len() == 0,
        kind => kind == Kind::Null,
    }
}

fn is_text(value: Option<Json<'_>>) -> bool {
    value.is_some_and(|value| value.kind() == Kind::String)
}

/// A text that is not empty.
fn is_filled(value: Option<Json<'_>>) -> bool {
    value.is_some_and(|value| value.kind() == Kind::String && value.raw().len() > 2)
}
