//! What is understood of one entry: small facts of a fixed size. The text itself stays in the file.

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
    pub(crate) fn of(text: &[u8]) -> EntryKind {
        match text {
            b"message" => EntryKind::Message,
            b"model_change" => EntryKind::ModelChange,
            b"thinking_level_change" => EntryKind::ThinkingLevelChange,
            b"usage" => EntryKind::Usage,
            b"compaction" => EntryKind::Compaction,
            b"context_edit" => EntryKind::ContextEdit,
            b"branch_summary" => EntryKind::BranchSummary,
            b"custom" => EntryKind::Custom,
            b"custom_message" => EntryKind::CustomMessage,
            b"label" => EntryKind::Label,
            b"session_info" => EntryKind::SessionInfo,
            _ => EntryKind::Other,
        }
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
    pub(crate) fn of(text: &[u8]) -> Role {
        match text {
            b"system" => Role::System,
            b"user" => Role::User,
            b"assistant" => Role::Assistant,
            b"toolResult" => Role::ToolResult,
            b"bashExecution" => Role::BashExecution,
            b"custom" => Role::Custom,
            b"branchSummary" => Role::BranchSummary,
            b"compactionSummary" => Role::CompactionSummary,
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
    pub(crate) fn of(text: &[u8]) -> Stop {
        match text {
            b"stop" => Stop::Stop,
            b"length" => Stop::Length,
            b"toolUse" => Stop::ToolUse,
            b"error" => Stop::Error,
            b"aborted" => Stop::Aborted,
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
    /// A message whose content is missing or `null`: it reads as empty (S5).
    pub no_content: bool,
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

impl Entry {
    /// Whether it says which model is in force from here on: a change of it, or an answer (S9.4).
    #[must_use]
    pub fn tells_model(&self) -> bool {
        match self.kind {
            EntryKind::ModelChange => true,
            EntryKind::Message => self.role == Role::Assistant,
            _ => false,
        }
    }

    /// An entry of this kind of which nothing else is known.
    pub(crate) fn blank(kind: EntryKind) -> Entry {
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
            no_content: false,
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
