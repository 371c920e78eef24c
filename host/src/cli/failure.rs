//! Why a command ends without doing what it was asked: the message for the user, and the exit code.

use std::fmt;
use std::io;

use pi_session::branch::BranchError;

use crate::config::ConfigError;
use crate::files::FilesError;

/// How a command ended (product.md section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 0: done.
    Done,
    /// 1: done, and there are problems: an invalid session, refused drafts, a failed delivery.
    Problems,
}

/// Why a command could not go on.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 2: wrong usage or config.
    Usage(String),
    /// Exit code 1: the thing itself failed.
    Problem(String),
    /// The reader of our output went away: nothing to say to anybody.
    Closed,
}

impl Failure {
    /// A failure of usage.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure::Usage(message.to_string())
    }

    /// A failure of the thing itself.
    pub fn problem(message: impl fmt::Display) -> Failure {
        Failure::Problem(message.to_string())
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Problem(_) => 1,
            Failure::Closed => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Problem(message) => f.write_str(message),
            Failure::Closed => f.write_str("the reader went away"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::problem(error),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error)
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Failure {
        Failure::problem(error)
    }
}

impl From<BranchError> for Failure {
    fn from(error: BranchError) -> Failure {
        Failure::problem(error)
    }
}
