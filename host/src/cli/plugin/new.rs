//! `plugin new`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::making::{self, Lang};

use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::Out;

/// Make a folder with a small plugin to begin with.
#[derive(Debug, Args)]
pub struct New {
    /// The language
    #[arg(long, value_name = "LANG", default_value = "rust")]
    lang: Language,
    /// The folder, which names the plugin
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    Rust,
    Typescript,
}

impl New {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        let lang = match self.lang {
            Language::Rust => Lang::Rust,
            Language::Typescript => Lang::TypeScript,
        };
        let name = making::create(&self.dir, lang).map_err(Failure::problem)?;
        if out.json {
            out.line(json!({ "name": name, "dir": self.dir }))?;
            return Ok(Outcome::Done);
        }
        let (dir, source, test) = match lang {
            Lang::Rust => (self.dir.display(), "src/lib.rs", "cargo test"),
            Lang::TypeScript => (self.dir.display(), "src/plugin.ts", "npm install --ignore-scripts && npm test"),
        };
        out.line(format!("{dir}: the plugin {name}; it begins in {source}, the SDK is in sdk/"))?;
        out.line(format!("\n  cd {}\n  {test}\n  pi-graft plugin build", for_shell(&dir.to_string())))?;
        Ok(Outcome::Done)
    }
}

/// A word as a shell takes it.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
