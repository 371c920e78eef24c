//! Why there is no answer.

use std::time::Duration;

/// Why a model gave no answer. None of these holds a word of the session, or the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The plugin's request cannot be read.
    #[error("the request is not one: {0}")]
    Request(String),
    /// The variable of `api-key-env` is not set, or is no key.
    #[error("the environment variable {0} holds no key; set it for pi-graft, and start it again")]
    NoKey(String),
    /// The certificates of `ca-file` cannot be read.
    #[error("ca-file: {0}")]
    Certificates(String),
    /// The server refused.
    #[error("the server answered {status}{}", of_code(.code))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The server's own word for it, if it is a word.
        code: Option<String>,
    },
    /// The server is not there, or went away.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It answered nothing in time.
    #[error("no answer within {} s (timeout)", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection ended before the answer did.
    #[error("the answer was broken off")]
    BrokenOff,
    /// What came is no answer.
    #[error("the answer is not one of a chat completion; is base-url right?")]
    Garbage,
    /// It was redirected.
    #[error("the server sends elsewhere ({0}); put the address that it means into base-url")]
    Redirect(u16),
    /// It answered without a word.
    #[error("the answer is empty")]
    Empty,
    /// It wants a tool instead of answering.
    #[error("it called a tool instead of answering")]
    ToolCall,
    /// It stopped for a reason that is no end.
    #[error("it stopped because of {0:?}")]
    Stopped(String),
    /// More than is taken.
    #[error("the answer is longer than {} KiB", super::MOST_TEXT >> 10)]
    TooLong,
    /// The program cannot be started.
    #[error("{program:?} cannot be started: {why}")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system says.
        why: String,
    },
    /// The program failed.
    #[error("the program ended with {0}; try it by hand")]
    Exit(String),
    /// All answers that were given beforehand are used up.
    #[error("no answer is left of those that were given; give one more")]
    NoneLeft,
    /// Nobody waits for the answer any more.
    #[error("nobody waits for the answer any more")]
    Over,
}

fn of_code(code: &Option<String>) -> String {
    code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default()
}

impl AskError {
    /// The same, with the time that there was.
    pub(super) fn within(self, timeout: Duration) -> AskError {
        if matches!(self, AskError::Timeout(_)) { AskError::Timeout(timeout) } else { self }
    }

    /// Whether what was asked may have been paid for all the same.
    #[must_use]
    pub fn may_have_cost(&self) -> bool {
        match self {
            AskError::Timeout(_) | AskError::BrokenOff | AskError::Garbage | AskError::Over => true,
            AskError::Empty | AskError::ToolCall | AskError::Stopped(_) | AskError::TooLong | AskError::Exit(_) => true,
            AskError::Status { .. } | AskError::Redirect(_) | AskError::Unreachable(_) => false,
            AskError::Request(_) | AskError::NoKey(_) | AskError::Certificates(_) => false,
            AskError::NotStarted { .. } | AskError::NoneLeft => false,
        }
    }
}
