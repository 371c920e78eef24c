//! How a handler fails.
use std::fmt;

use crate::Refusal;

/// Why a handler gave up: a text for the user's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

/// What a handler returns.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self([refusal.rule.as_str(), ": ", &refusal.message].concat())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Error {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}
