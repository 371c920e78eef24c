//! From what was met on the walk over a line to the facts of its entry.
//!
//! Reading never fails: that Pi would stumble over it is noted with the entry (S12.9); what it is [`crate::marks`] says.

use crate::entry::{Entry, EntryKind, Role, Stop};
use crate::finding::Finding;
use crate::json::{Json, Kind as JsonKind};
use crate::marks;
use crate::walk::{Found, Msg, Reported, Shape};

/// The facts of a line, but for its place and the ids, which the tree gives; and what is wrong with it.
pub(crate) fn facts(f: &Found<'_>, old_roles: bool) -> (Entry, Vec<Finding>) {
    let kind = f.kind.and_then(Json::word).map_or(EntryKind::Other, |word| EntryKind::of(&word));
    let mut entry = Entry::blank(kind);
    entry.from_hook = f.from_hook;
    entry.time_ms = f.timestamp.and_then(time_of);
    match kind {
        EntryKind::Message => message_facts(&mut entry, f.message.unwrap_or_default(), old_roles),
        EntryKind::CustomMessage => custom_message_facts(&mut entry, f),
        EntryKind::Compaction => compaction_facts(&mut entry, f),
        EntryKind::BranchSummary => {
            entry.role = Role::BranchSummary;
            entry.gives = f.summary.is_some_and(Json::is_truthy);
            entry.tokens = tokens(f.summary_units);
        }
        EntryKind::ContextEdit => edit_facts(&mut entry, f),
        _ => {}
    }
    let marks = marks::of(&entry, f);
    entry.breaks = marks.iter().any(|mark| marks::stops_context(*mark));
    (entry, marks)
}

/// A timestamp as JavaScript's `new Date(…)` takes it.
fn time_of(timestamp: Json<'_>) -> Option<i64> {
    match timestamp.kind() {
        JsonKind::String => crate::time::parse_bytes(&timestamp.word()?),
        JsonKind::Null => Some(0),
        JsonKind::Bool => Some(i64::from(timestamp.as_bool()?)),
        JsonKind::Number => {
            timestamp.as_f64().filter(|ms| ms.abs() <= crate::time::LAST_DATE_MS as f64).map(|ms| ms as i64)
        }
        JsonKind::Array | JsonKind::Object => None,
    }
}

fn message_facts(entry: &mut Entry, m: Msg<'_>, old_roles: bool) {
    let role = m.role.and_then(Json::word).unwrap_or_default();
    entry.role = if old_roles && *role == *b"hookMessage" { Role::Custom } else { Role::of(&role) };
    entry.gives = true;
    entry.stop = m.stop.and_then(Json::word).map_or(Stop::None, |word| Stop::of(&word));
    entry.calls = (entry.role == Role::Assistant && m.content.has_calls) || m.nested.is_some_and(Json::is_truthy);
    entry.no_content = m.content.shape == Shape::Missing;
    entry.tokens = tokens(message_chars(entry.role, &m));
    if entry.role == Role::Assistant && !matches!(entry.stop, Stop::Aborted | Stop::Error) {
        entry.usage = m.usage.reported().and_then(Reported::context_tokens);
    }
}

fn message_chars(role: Role, m: &Msg<'_>) -> u64 {
    match role {
        Role::System => m.content.as_user() + m.sections + m.tools,
        Role::User | Role::ToolResult | Role::Custom => m.content.as_user(),
        Role::Assistant => m.content.as_assistants_own(),
        Role::BashExecution => m.command.unwrap_or(0) + m.output.unwrap_or(0),
        Role::BranchSummary | Role::CompactionSummary => m.summary.unwrap_or(0),
        Role::Other => 0,
    }
}

fn custom_message_facts(entry: &mut Entry, f: &Found<'_>) {
    let content = f.content.as_deref().copied().unwrap_or_default();
    entry.role = Role::Custom;
    entry.gives = true;
    entry.tokens = tokens(content.as_user());
}

fn compaction_facts(entry: &mut Entry, f: &Found<'_>) {
    entry.role = Role::CompactionSummary;
    entry.gives = true;
    entry.tokens = tokens(f.summary_units);
    if let Some(system) = f.system.as_deref().filter(|m| m.object) {
        let role = system.role.and_then(Json::word).map_or(Role::Other, |role| Role::of(&role));
        entry.has_system = role == Role::System;
        entry.more_tokens = tokens(message_chars(role, system));
    }
}

fn edit_facts(entry: &mut Entry, f: &Found<'_>) {
    let Some((replacement, content)) = f.edit.as_deref().copied() else { return };
    entry.replacement = replacement;
    entry.tokens = tokens(content.as_user());
    entry.more_tokens = tokens(content.as_assistant());
}

fn tokens(chars: u64) -> u32 {
    u32::try_from(chars.div_ceil(4)).unwrap_or(u32::MAX)
}
