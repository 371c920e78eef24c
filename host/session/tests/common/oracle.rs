//! The real Pi, asked over `oracle.mjs serve`.

use std::path::Path;

use super::beside::Beside;
use super::js::Js;

/// A running oracle.
pub struct Oracle(Beside);

impl Oracle {
    /// Starts it, if there is a real Pi.
    pub fn start() -> Option<Oracle> {
        Beside::start("oracle.mjs", &["serve"]).map(Oracle)
    }

    /// What Pi makes of the session in `file`, with this many tokens to keep in a compaction plan.
    pub fn dump(&mut self, file: &Path, keep: u64) -> Js {
        self.ask("dump", file, &format!(r#""opts":{{"keep":{keep},"normalizeIds":true}}"#))
    }

    /// What Pi writes when it appends these drafts, a JSON array, to a copy of the session in `file`.
    pub fn append(&mut self, file: &Path, drafts: &str) -> Js {
        self.ask("append", file, &format!(r#""drafts":{drafts}"#))
    }

    /// The session that Pi makes by these calls, a JSON array, at a time that stands still.
    pub fn make(&mut self, calls: &str, now_ms: i64) -> Js {
        self.ask("make", Path::new(""), &format!(r#""calls":{calls},"opts":{{"now":{now_ms}}}"#))
    }

    /// The file that Pi makes of the branch that ends in `leaf`.
    pub fn branched(&mut self, file: &Path, leaf: &str, now_ms: i64) -> Js {
        let leaf = pi_session::json::quoted(leaf);
        self.ask("branched", file, &format!(r#""leaf":{leaf},"opts":{{"now":{now_ms}}}"#))
    }

    /// The file that Pi makes of the whole session.
    pub fn forked(&mut self, file: &Path, now_ms: i64) -> Js {
        self.ask("forked", file, &format!(r#""opts":{{"now":{now_ms}}}"#))
    }

    fn ask(&mut self, command: &str, file: &Path, more: &str) -> Js {
        let file = file.to_str().expect("temporary paths are UTF-8");
        self.0.ask(&format!(r#"{{"cmd":"{command}","file":"{file}",{more}}}"#))
    }
}
