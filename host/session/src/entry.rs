//! What is understood of one line: small facts of a fixed size, gathered in a single walk over the text.
//!
//! The text itself stays in the file. Reading never fails: what Pi would stumble over becomes a flaw of the entry
//! (`S2.2`, `S12.9`), and the tree turns flaws into problems.

use std::collections::HashMap;

use crate::json::{Json, JsonError, Key, Kind as JsonKind};
use crate::scan::Scan;

/// The type of an entry (S4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// `message`
    Message,
    /// `model_change`
    ModelChange,
    /// `thinking_level_change`
    ThinkingLevelChange,
    /// `usage`
    Usage,
    /// `compaction`
    Compaction,
    /// `context_edit`
    ContextEdit,
    /// `branch_summary`
    BranchSummary,
    /// `custom`
    Custom,
    /// `custom_message`
    CustomMessage,
    /// `label`
    Label,
    /// `session_info`
    SessionInfo,
    /// Any other type, or none: carried in the tree, never in context (S2.5).
    Other,
}

impl EntryKind {
    fn of(text: &str) -> EntryKind {
        use EntryKind::*;
        [
            Message,
            ModelChange,
            ThinkingLevelChange,
            Usage,
            Compaction,
            ContextEdit,
            BranchSummary,
            Custom,
            CustomMessage,
            Label,
            SessionInfo,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .unwrap_or(Other)
    }

    /// The word in the file; `other` for what this version does not know.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::Message => "message",
            EntryKind::ModelChange => "model_change",
            EntryKind::ThinkingLevelChange => "thinking_level_change",
            EntryKind::Usage => "usage",
            EntryKind::Compaction => "compaction",
            EntryKind::ContextEdit => "context_edit",
            EntryKind::BranchSummary => "branch_summary",
            EntryKind::Custom => "custom",
            EntryKind::CustomMessage => "custom_message",
            EntryKind::Label => "label",
            EntryKind::SessionInfo => "session_info",
            EntryKind::Other => "other",
        }
    }
}

/// The role of a message (S5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `system`
    System,
    /// `user`
    User,
    /// `assistant`
    Assistant,
    /// `toolResult`
    ToolResult,
    /// `bashExecution`
    BashExecution,
    /// `custom` (and `hookMessage` before version 3)
    Custom,
    /// `branchSummary`
    BranchSummary,
    /// `compactionSummary`
    CompactionSummary,
    /// Any other role, or none.
    Other,
}

impl Role {
    fn of(text: &str) -> Role {
        match text {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "toolResult" => Role::ToolResult,
            "bashExecution" => Role::BashExecution,
            "custom" => Role::Custom,
            "branchSummary" => Role::BranchSummary,
            "compactionSummary" => Role::CompactionSummary,
            _ => Role::Other,
        }
    }

    /// The word in the file; `other` for what this version does not know.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::ToolResult => "toolResult",
            Role::BashExecution => "bashExecution",
            Role::Custom => "custom",
            Role::BranchSummary => "branchSummary",
            Role::CompactionSummary => "compactionSummary",
            Role::Other => "other",
        }
    }

    /// A message of this role is a place where a compaction may cut (S10.2).
    #[must_use]
    pub fn allows_cut(self) -> bool {
        self == Role::Assistant || self.starts_turn()
    }

    /// A message of this role starts a turn (S10.2).
    #[must_use]
    pub fn starts_turn(self) -> bool {
        use Role::*;
        matches!(self, User | BashExecution | Custom | BranchSummary | CompactionSummary)
    }

    /// A replacement is applied to a message of this role (S7.4).
    #[must_use]
    pub fn takes_replacement(self) -> bool {
        matches!(self, Role::User | Role::Assistant | Role::ToolResult | Role::Custom)
    }
}

/// Why an assistant stopped (S5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// No assistant message, or no stop reason.
    None,
    /// `stop`
    Stop,
    /// `length`
    Length,
    /// `toolUse`
    ToolUse,
    /// `error`
    Error,
    /// `aborted`
    Aborted,
    /// Any other.
    Other,
}

impl Stop {
    fn of(text: &str) -> Stop {
        match text {
            "stop" => Stop::Stop,
            "length" => Stop::Length,
            "toolUse" => Stop::ToolUse,
            "error" => Stop::Error,
            "aborted" => Stop::Aborted,
            _ => Stop::Other,
        }
    }
}

/// What a `context_edit` does with its target (S7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// No edit, or one without the key `replacement`: Pi cannot build a context (S7.4).
    Missing,
    /// `null`: the target is left out.
    Omit,
    /// An object: the target shows its `content`.
    Content,
}

/// An id of the file, by number: entries with one id share it (S8.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdIx(pub(crate) u32);

/// The facts of one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Offset of its line in the file, bytes.
    pub offset: u64,
    /// Length of its line without the `\n`, bytes.
    pub len: u32,
    /// Number of its line, from 1.
    pub line: u32,
    /// Its type.
    pub kind: EntryKind,
    /// The role of the message it gives; `Custom` for a `custom_message`; `Other` where it gives none.
    pub role: Role,
    /// An assistant's stop reason.
    pub stop: Stop,
    /// What a `context_edit` does.
    pub replacement: Replacement,
    /// It gives at least one message by itself, edits apart (S9.3).
    pub gives: bool,
    /// An assistant message with tool calls, or a tool result with `nestedCalls`.
    pub calls: bool,
    /// A compaction or branch summary that an extension made (S6.3).
    pub from_hook: bool,
    /// A compaction with a `systemMessage`.
    pub has_system: bool,
    /// Pi throws when it builds a context with this in it (S12.9).
    pub breaks: bool,
    /// Its id.
    pub id: IdIx,
    /// Its `parentId`, whether or not that is in the file; none makes it a root.
    pub parent: Option<IdIx>,
    /// What it names: a context edit's or label's target, a compaction's first kept entry, a branch summary's origin.
    pub names: Option<IdIx>,
    /// Its time, Unix milliseconds, where the text is a time.
    pub time_ms: Option<i64>,
    /// Estimated tokens (S9.5) of the message it gives, a compaction's `systemMessage` apart; of a context edit's content
    /// as a user, tool or custom message shows it.
    pub tokens: u32,
    /// Estimated tokens of a compaction's `systemMessage`; of a context edit's content as an assistant message shows it.
    pub more_tokens: u32,
    /// The usage an assistant message reports, if it is real (S9.6).
    pub usage: Option<f64>,
    /// The `customType`, the type or the role where the word is not one of those above; see [`crate::Tree::word`].
    pub word: u32,
}

/// Strings and spans met on the walk, to be interned or counted by the tree.
#[derive(Default)]
pub(crate) struct Found<'a> {
    pub kind: Option<Json<'a>>,
    pub id: Option<Json<'a>>,
    pub parent: Option<Json<'a>>,
    pub timestamp: Option<Json<'a>>,
    pub custom_type: Option<Json<'a>>,
    pub target: Option<Json<'a>>,
    pub first_kept: Option<Json<'a>>,
    pub first_kept_index: Option<Json<'a>>,
    pub from: Option<Json<'a>>,
    pub usage: Option<Reported>,
    pub label: Option<Json<'a>>,
    pub name: Option<Json<'a>>,
    pub provider: Option<Json<'a>>,
    pub model: Option<Json<'a>>,
    pub version: Option<Json<'a>>,
    pub cwd: Option<Json<'a>>,
    pub parent_session: Option<Json<'a>>,
    summary: Option<Json<'a>>,
    summary_units: u64,
    tokens_before: Option<Json<'a>>,
    system: Option<Msg<'a>>,
    from_hook: bool,
    content: Option<Content>,
    edit: Option<(Replacement, Content)>,
    pub message: Option<Msg<'a>>,
}

/// A message met on the walk.
#[derive(Clone, Copy, Default)]
pub(crate) struct Msg<'a> {
    pub object: bool,
    pub role: Option<Json<'a>>,
    content: Content,
    stop: Option<Json<'a>>,
    pub usage: Option<Reported>,
    pub provider: Option<Json<'a>>,
    pub model: Option<Json<'a>>,
    nested: bool,
    sections: u64,
    tools: u64,
    command: Option<u64>,
    output: Option<u64>,
    summary: Option<u64>,
}

/// The numbers of a `usage`, where they are numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reported {
    total: Option<f64>,
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    pub cost: Option<f64>,
}

impl Reported {
    /// `totalTokens`, or if that is nothing the sum of the four parts; only if it is more than nothing (S9.6).
    fn context_tokens(self) -> Option<f64> {
        let parts = || Some(self.input? + self.output? + self.cache_read? + self.cache_write?);
        let total = self.total.filter(|total| *total != 0.0).or_else(parts);
        total.filter(|total| *total > 0.0)
    }
}

/// What is counted of a `content`: UTF-16 units by what they are.
#[derive(Clone, Copy, Default)]
struct Content {
    shape: Shape,
    text: u64,
    thinking: u64,
    calls: u64,
    images: u64,
    has_calls: bool,
    /// A block that Pi stumbles over when it estimates or sends it: `null`, or text that is no text.
    bad: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Missing,
    Text,
    Blocks,
    Wrong,
}

/// Characters an image counts for (S9.5).
const IMAGE_CHARS: u64 = 4800;

impl Content {
    fn as_user(&self) -> u64 {
        self.text + self.images * IMAGE_CHARS
    }

    fn as_assistant(&self) -> u64 {
        self.text + self.thinking + self.calls
    }

    /// An assistant's content that stands as text counts for nothing: Pi looks for blocks in it.
    fn as_assistants_own(&self) -> u64 {
        if self.shape == Shape::Text { 0 } else { self.as_assistant() }
    }
}

fn tokens(chars: u64) -> u32 {
    u32::try_from(chars.div_ceil(4)).unwrap_or(u32::MAX)
}

/// Walks one line.
pub(crate) fn walk(line: &[u8]) -> Result<Walked<'_>, JsonError> {
    let mut scan = Scan::new(line);
    if scan.peek() != Some(b'{') {
        let value = scan.value()?;
        scan.end()?;
        return Ok(Walked::Value(value));
    }
    let mut found = Found::default();
    scan.object(|key, scan| top(&mut found, key, scan))?;
    scan.end()?;
    Ok(Walked::Object(Box::new(found)))
}

/// What a line turned out to be.
pub(crate) enum Walked<'a> {
    Object(Box<Found<'a>>),
    Value(Json<'a>),
}

fn top<'a>(f: &mut Found<'a>, key: Key<'a>, scan: &mut Scan<'a>) -> Result<(), JsonError> {
    match &*key.name() {
        b"message" => f.message = Some(message(scan)?),
        b"systemMessage" => f.system = Some(message(scan)?),
        b"content" => f.content = Some(content(scan)?),
        b"replacement" => f.edit = Some(replacement(scan)?),
        b"usage" => f.usage = usage(scan)?,
        b"fromHook" => f.from_hook = scan.value()?.is_truthy(),
        b"summary" => {
            let value = scan.value()?;
            f.summary = Some(value);
            f.summary_units = if value.kind() == JsonKind::String { scan.units() } else { 0 };
        }
        name => {
            let value = scan.value()?;
            if let Some(slot) = top_slot(f, name) {
                *slot = Some(value);
            }
        }
    }
    Ok(())
}

fn top_slot<'f, 'a>(f: &'f mut Found<'a>, name: &[u8]) -> Option<&'f mut Option<Json<'a>>> {
    Some(match name {
        b"type" => &mut f.kind,
        b"id" => &mut f.id,
        b"parentId" => &mut f.parent,
        b"timestamp" => &mut f.timestamp,
        b"customType" => &mut f.custom_type,
        b"targetId" => &mut f.target,
        b"firstKeptEntryId" => &mut f.first_kept,
        b"firstKeptEntryIndex" => &mut f.first_kept_index,
        b"fromId" => &mut f.from,
        b"label" => &mut f.label,
        b"name" => &mut f.name,
        b"provider" => &mut f.provider,
        b"modelId" | b"model" => &mut f.model,
        b"version" => &mut f.version,
        b"cwd" => &mut f.cwd,
        b"parentSession" => &mut f.parent_session,
        b"tokensBefore" => &mut f.tokens_before,
        _ => return None,
    })
}

fn message<'a>(scan: &mut Scan<'a>) -> Result<Msg<'a>, JsonError> {
    let mut m = Msg::default();
    if scan.peek() != Some(b'{') {
        scan.value()?;
        return Ok(m);
    }
    m.object = true;
    scan.object(|key, scan| {
        match &*key.name() {
            b"content" => m.content = content(scan)?,
            b"sections" => m.sections = sections(scan.value()?),
            b"usage" => m.usage = usage(scan)?,
            b"toolsAdded" => {
                let (tools, written) = scan.value_and_written()?;
                m.tools = if tools.is_truthy() { written } else { 0 };
            }
            name => {
                let value = scan.value()?;
                message_member(&mut m, name, value, scan.units());
            }
        }
        Ok(())
    })?;
    Ok(m)
}

fn message_member<'a>(m: &mut Msg<'a>, name: &[u8], value: Json<'a>, units: u64) {
    let text = (value.kind() == JsonKind::String).then_some(units);
    match name {
        b"role" => m.role = Some(value),
        b"stopReason" => m.stop = Some(value),
        b"provider" => m.provider = Some(value),
        b"model" => m.model = Some(value),
        b"nestedCalls" => m.nested = value.is_truthy(),
        b"command" => m.command = text,
        b"output" => m.output = text,
        b"summary" => m.summary = text,
        _ => {}
    }
}

/// Of two sections with one name the last counts.
fn sections(value: Json<'_>) -> u64 {
    let named: HashMap<_, _> = value.members().map(|(key, text)| (key.units(), text.utf16_len())).collect();
    named.values().sum()
}

fn usage(scan: &mut Scan<'_>) -> Result<Option<Reported>, JsonError> {
    if scan.peek() != Some(b'{') {
        scan.value()?;
        return Ok(None);
    }
    let mut r = Reported::default();
    scan.object(|key, scan| {
        match &*key.name() {
            b"totalTokens" => r.total = number(scan)?,
            b"input" => r.input = number(scan)?,
            b"output" => r.output = number(scan)?,
            b"cacheRead" => r.cache_read = number(scan)?,
            b"cacheWrite" => r.cache_write = number(scan)?,
            b"cost" => r.cost = scan.value()?.get("total").and_then(Json::as_f64),
            _ => drop(scan.value()?),
        }
        Ok(())
    })?;
    Ok(Some(r))
}

/// A number as JavaScript adds it up: `null` is nothing.
fn number(scan: &mut Scan<'_>) -> Result<Option<f64>, JsonError> {
    let value = scan.value()?;
    Ok(if value.is_null() { Some(0.0) } else { value.as_f64() })
}

fn content(scan: &mut Scan<'_>) -> Result<Content, JsonError> {
    let mut c = Content::default();
    match scan.peek() {
        Some(b'[') => {
            c.shape = Shape::Blocks;
            scan.array(|scan| block(&mut c, scan))?;
        }
        Some(b'n') => drop(scan.value()?),
        _ => {
            let value = scan.value()?;
            (c.shape, c.text) = match value.kind() {
                JsonKind::String => (Shape::Text, scan.units()),
                _ => (Shape::Wrong, 0),
            };
        }
    }
    Ok(c)
}

fn block(c: &mut Content, scan: &mut Scan<'_>) -> Result<(), JsonError> {
    if scan.peek() != Some(b'{') {
        c.bad |= !scan.value()?.is_truthy();
        return Ok(());
    }
    let mut kind = None;
    let [mut text, mut thinking, mut name, mut arguments] = [None; 4];
    scan.object(|key, scan| {
        match &*key.name() {
            b"type" => kind = Some(scan.value()?),
            b"text" => text = string(scan)?,
            b"thinking" => thinking = string(scan)?,
            b"name" => name = string(scan)?,
            b"arguments" => arguments = Some(scan.value_and_written()?.1),
            _ => drop(scan.value()?),
        }
        Ok(())
    })?;
    match kind.and_then(Json::as_str).unwrap_or_default().as_ref() {
        "text" => {
            c.bad |= text.is_none();
            c.text += text.unwrap_or(0);
        }
        "thinking" => c.thinking += thinking.unwrap_or(0),
        "image" => c.images += 1,
        "toolCall" => {
            c.has_calls = true;
            c.calls += name.unwrap_or(0) + arguments.unwrap_or(0);
        }
        _ => {}
    }
    Ok(())
}

/// The units of a string; none of anything else.
fn string(scan: &mut Scan<'_>) -> Result<Option<u64>, JsonError> {
    let value = scan.value()?;
    Ok((value.kind() == JsonKind::String).then(|| scan.units()))
}

fn replacement(scan: &mut Scan<'_>) -> Result<(Replacement, Content), JsonError> {
    match scan.peek() {
        Some(b'n') => {
            scan.value()?;
            Ok((Replacement::Omit, Content::default()))
        }
        Some(b'{') => {
            let mut inner = Content::default();
            scan.object(|key, scan| {
                match &*key.name() {
                    b"content" => inner = content(scan)?,
                    _ => drop(scan.value()?),
                }
                Ok(())
            })?;
            Ok((Replacement::Content, inner))
        }
        _ => {
            scan.value()?;
            Ok((Replacement::Content, Content::default()))
        }
    }
}

/// The facts of a line, but for its place and the ids, which the tree gives.
pub(crate) fn facts(f: &Found<'_>, old_roles: bool) -> Entry {
    let kind = f.kind.and_then(Json::as_str).map_or(EntryKind::Other, |t| EntryKind::of(&t));
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
    entry
}

/// A timestamp as JavaScript's `new Date(…)` takes it.
fn time_of(timestamp: Json<'_>) -> Option<i64> {
    match timestamp.kind() {
        JsonKind::String => crate::time::parse_iso(&timestamp.as_str()?),
        JsonKind::Null => Some(0),
        JsonKind::Bool => Some(i64::from(timestamp.as_bool()?)),
        JsonKind::Number => {
            timestamp.as_f64().filter(|ms| ms.abs() <= crate::time::LAST_DATE_MS as f64).map(|ms| ms as i64)
        }
        JsonKind::Array | JsonKind::Object => None,
    }
}

impl Entry {
    fn blank(kind: EntryKind) -> Entry {
        Entry {
            offset: 0,
            len: 0,
            line: 0,
            kind,
            role: Role::Other,
            stop: Stop::None,
            replacement: Replacement::Missing,
            gives: false,
            calls: false,
            from_hook: false,
            has_system: false,
            breaks: false,
            id: IdIx(0),
            parent: None,
            names: None,
            time_ms: None,
            tokens: 0,
            more_tokens: 0,
            usage: None,
            word: 0,
        }
    }
}

fn message_facts(entry: &mut Entry, m: Msg<'_>, old_roles: bool) {
    let role = m.role.and_then(Json::as_str).unwrap_or_default();
    entry.role = if old_roles && role == "hookMessage" { Role::Custom } else { Role::of(&role) };
    entry.gives = true;
    entry.stop = m.stop.and_then(Json::as_str).map_or(Stop::None, |t| Stop::of(&t));
    entry.calls = (entry.role == Role::Assistant && m.content.has_calls) || m.nested;
    entry.tokens = tokens(message_chars(entry.role, &m));
    entry.breaks = !m.object || message_breaks(entry.role, &m);
    if entry.role == Role::Assistant && !matches!(entry.stop, Stop::Aborted | Stop::Error) {
        entry.usage = m.usage.and_then(Reported::context_tokens);
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

fn message_breaks(role: Role, m: &Msg<'_>) -> bool {
    match role {
        Role::System | Role::User | Role::ToolResult => m.content.shape == Shape::Wrong || m.content.bad,
        Role::Assistant => matches!(m.content.shape, Shape::Wrong | Shape::Text) || m.content.bad,
        Role::Custom => matches!(m.content.shape, Shape::Wrong | Shape::Missing) || m.content.bad,
        Role::BashExecution => m.command.is_none() || m.output.is_none(),
        Role::BranchSummary | Role::CompactionSummary => m.summary.is_none(),
        Role::Other => false,
    }
}

fn custom_message_facts(entry: &mut Entry, f: &Found<'_>) {
    let content = f.content.unwrap_or_default();
    entry.role = Role::Custom;
    entry.gives = true;
    entry.tokens = tokens(content.as_user());
    entry.breaks = content.shape == Shape::Wrong || content.bad;
}

fn compaction_facts(entry: &mut Entry, f: &Found<'_>) {
    entry.role = Role::CompactionSummary;
    entry.gives = true;
    entry.tokens = tokens(f.summary_units);
    entry.breaks = !f.summary.is_some_and(|s| s.kind() == JsonKind::String);
    if let Some(system) = f.system.filter(|m| m.object) {
        entry.has_system = true;
        entry.breaks |= matches!(system.content.shape, Shape::Wrong | Shape::Missing) || system.content.bad;
        entry.more_tokens = tokens(message_chars(Role::System, &system));
    }
}

fn edit_facts(entry: &mut Entry, f: &Found<'_>) {
    let Some((replacement, content)) = f.edit else {
        entry.breaks = true;
        return;
    };
    entry.replacement = replacement;
    entry.tokens = tokens(content.as_user());
    entry.more_tokens = tokens(content.as_assistant());
    entry.breaks =
        replacement == Replacement::Content && (matches!(content.shape, Shape::Wrong | Shape::Missing) || content.bad);
}
