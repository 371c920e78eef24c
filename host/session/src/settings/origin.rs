//! Where a value came from.

use std::fmt;

/// What said a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A flag or a config of ours, by its name.
    Given(String),
    /// A key in one of Pi's files.
    File {
        /// The file's name.
        file: String,
        /// The key, such as `compaction.reserveTokens`.
        key: String,
    },
    /// The shipped table of models.
    Table {
        /// The day on which its facts were true.
        date: &'static str,
    },
    /// Nobody: Pi's own default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Given(name) => f.write_str(name),
            Origin::File { file, key } => write!(f, "{file}: {key}"),
            Origin::Table { date } => write!(f, "the shipped table of {date}"),
            Origin::Default => f.write_str("Pi's default"),
        }
    }
}

/// A value and what said it.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// What said it.
    pub origin: Origin,
}

impl<T> Known<T> {
    /// One that somebody nearer to the user has said.
    pub(super) fn given((value, name): (T, String)) -> Known<T> {
        Known { value, origin: Origin::Given(name) }
    }
}
