//! What is said when a draft is refused: the rule, and what its author can do about it.

use std::fmt;

/// The name of the rule that a draft broke: one of the format's (`S12.5`), or one of our own words.
///
/// It is text to whoever reads it, so rules may be added without a change of contract.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rule(&'static str);

impl Rule {
    /// The type of the draft is not one that may be appended, or not granted.
    pub const TYPE: Rule = Rule("S12.1");
    /// An id, time or parent cannot be given.
    pub const IDENTITY: Rule = Rule("S12.2");
    /// A field is missing or of the wrong type, a block malformed, a text not Unicode.
    pub const FIELDS: Rule = Rule("S12.3");
    /// `customType` is missing, empty or reserved.
    pub const CUSTOM_TYPE: Rule = Rule("S12.4");
    /// The compaction would not stand.
    pub const COMPACTION: Rule = Rule("S12.5");
    /// The context edit would not stand.
    pub const EDIT: Rule = Rule("S12.6");
    /// The entry cannot be one line.
    pub const LINE: Rule = Rule("S12.7");
    /// The session is of version 1 or 2 and has to be migrated before anything is written to it.
    pub const OLD_VERSION: Rule = Rule("S11.2");
    /// The session is of a version above 3, which is never written.
    pub const NEWER_VERSION: Rule = Rule("S3");
    /// The file is no session, or not begun.
    pub const NO_SESSION: Rule = Rule("S2.3");
    /// Pi has no leaf here, since the last entry has no id.
    pub const NO_LEAF: Rule = Rule("S2.2");
    /// A session's id is none that Pi would take.
    pub const SESSION_ID: Rule = Rule("S1.3");
    /// A tool's result without an open call.
    pub const PAIRING: Rule = Rule("S5");
    /// There is no entry of that id to go on from, or to name.
    pub const PARENT: Rule = Rule("S8.1");
    /// Another run has proposed something for the same target, and it is still pending.
    pub const PENDING: Rule = Rule("pending");
    /// The draft names an entry that is not in the file yet.
    pub const TARGET_PENDING: Rule = Rule("target is pending");
    /// A configured limit was reached.
    pub const LIMIT: Rule = Rule("limit");
    /// The text of the session could not be read.
    pub const UNREADABLE: Rule = Rule("unreadable");

    /// The name as text.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Why one draft was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{rule}: {message}")]
pub struct Refusal {
    /// Which draft of a list; `None` where only one was proposed.
    pub index: Option<u32>,
    /// The rule that it broke.
    pub rule: Rule,
    /// What is wrong with it and what to do next, for the plugin's author.
    pub message: String,
}

impl Refusal {
    /// A refusal of the only draft in question.
    pub fn new(rule: Rule, message: impl Into<String>) -> Refusal {
        Refusal { index: None, rule, message: message.into() }
    }

    /// The same refusal, of the draft at `index` of a list.
    pub fn at(self, index: usize) -> Refusal {
        Refusal { index: u32::try_from(index).ok(), ..self }
    }
}
