//! What is wrong with a session file, said so that a person can find the place and knows what Pi will do.

use std::fmt;

use crate::finding::Finding;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing suffers.
    Info,
    /// Pi puts up with it; it is probably not what was meant.
    Warning,
    /// Pi fails, hangs, loses context, or shows something else than the file means.
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
    /// What kind of problem it is: its severity, its rule, and what Pi does.
    pub finding: Finding,
    /// Its line, from 1; 0 for the file as a whole.
    pub line: u32,
    /// Offset of the line in the file, bytes.
    pub offset: u64,
    /// Where in the file exactly, bytes, where that is another place than the line's beginning.
    pub at: Option<u64>,
    /// The entry, where it has an id.
    pub entry_id: Option<String>,
    /// What is wrong, in words of its own where the kind does not say it all.
    pub message: String,
}

impl Problem {
    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.finding.severity()
    }

    /// The rule of the format it goes against.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        self.finding.rule()
    }

    /// What Pi does with it.
    #[must_use]
    pub fn pi(&self) -> &'static str {
        self.finding.pi()
    }
}

/// Problems that are told one by one; a file of garbage has one on every line.
const MOST: usize = 10_000;

/// The problems of a file: the first are kept, of the others their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems {
    pub kept: Vec<Problem>,
    /// How many there are beyond those.
    pub more: u64,
    /// How many of those are errors.
    pub more_errors: u64,
}

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        if self.kept.len() < MOST {
            return self.kept.push(problem);
        }
        self.more += 1;
        self.more_errors += u64::from(problem.severity() == Severity::Error);
    }
}
