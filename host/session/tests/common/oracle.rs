//! The real Pi, asked over `oracle.mjs serve`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::js::Js;

/// A running oracle.
pub struct Oracle {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts it, if `PI_DIR` and `ORACLE_NODE` say where Pi and its Node are (`tests/oracle/setup.sh` installs both).
    pub fn start() -> Option<Oracle> {
        let (Some(node), Some(_)) = (std::env::var_os("ORACLE_NODE"), std::env::var_os("PI_DIR")) else {
            eprintln!("skipped: set PI_DIR and ORACLE_NODE (see tests/oracle/setup.sh) to compare with the real Pi");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/oracle.mjs");
        let mut child = Command::new(node)
            .arg(script)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ORACLE_NODE must be a Node that runs");
        let asks = child.stdin.take().expect("it was asked to be piped");
        let answers = BufReader::new(child.stdout.take().expect("it was asked to be piped"));
        Some(Oracle { child, asks, answers })
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
        writeln!(self.asks, r#"{{"cmd":"{command}","file":"{file}",{more}}}"#).expect("the oracle runs");
        let mut answer = Vec::new();
        self.answers.read_until(b'\n', &mut answer).expect("the oracle answers");
        Js::parse(&answer)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
