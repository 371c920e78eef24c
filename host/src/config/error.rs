//! What is wrong with a config, said with file, line and column.

use std::fmt;
use std::path::PathBuf;

/// Something at one place of a config file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// The key, such as `watch.settle`; empty where the text is no TOML.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Fault {
    /// A fault at a byte offset of `text`.
    pub(super) fn at(text: &str, offset: usize, key: String, message: String) -> Fault {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Fault { line: line as u32, column: column as u32, key, message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The config file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It was read, and does not hold. Every fault is told, in the order of the file.
    #[error("{}", lines(path, faults))]
    Faults {
        /// The config file.
        path: PathBuf,
        /// What is wrong with it.
        faults: Vec<Fault>,
    },
    /// A default depends on the home directory, and there is none.
    #[error("the home directory is unknown: set HOME")]
    NoHome,
}

fn lines(path: &std::path::Path, faults: &[Fault]) -> String {
    let line = |fault: &Fault| format!("{}:{fault}", path.display());
    faults.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let fault = Fault::at("a = 1\né = ü x\n", "a = 1\né = ü ".len(), "é".into(), "odd".into());
        assert_eq!(fault.to_string(), "2:7: é: odd");
    }
}
