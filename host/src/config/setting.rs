//! Where each value of the effective config came from.

use std::fmt;
use std::path::PathBuf;

/// What said a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is the default.
    Default,
    /// The config file, on this line.
    File {
        /// Line, from 1.
        line: u32,
    },
    /// The key of the same name in `[limits]`, for a plugin's limit.
    Limits,
    /// An environment variable of Pi's.
    Variable(&'static str),
    /// Pi's own settings in this file.
    Pi(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { line } => write!(f, "line {line}"),
            Origin::Limits => f.write_str("[limits]"),
            Origin::Variable(name) => write!(f, "${name}"),
            Origin::Pi(path) => f.write_str(&path.display().to_string()),
        }
    }
}

/// One value of the effective config.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its key, such as `watch.settle` or `plugin.auto-compact.limits.time`.
    pub key: String,
    /// The value, as it would be written in the config.
    pub value: serde_json::Value,
    /// What said it.
    pub origin: Origin,
}
