//! What is wrong with a session file, said so that a person can find the place and knows what Pi will do.

use std::fmt;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing suffers.
    Info,
    /// Something is lost or means less than its author thought.
    Warning,
    /// Pi breaks, hangs or silently loses context.
    Error,
}

impl Severity {
    /// The word in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The rule of the format it goes against.
    pub rule: &'static str,
    /// Its line, from 1; 0 for the file as a whole.
    pub line: u32,
    /// Offset of the line in the file, bytes.
    pub offset: u64,
    /// The entry, where it has an id.
    pub entry_id: Option<String>,
    /// What is wrong, and what Pi makes of it.
    pub message: String,
}
