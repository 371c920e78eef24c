//! A home of its own for each test, so that nobody's config or sessions get in.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

/// Somebody's home directory.
pub struct Home(tempfile::TempDir);

impl Home {
    /// An empty one.
    pub fn new() -> Home {
        Home(tempfile::tempdir().expect("a temporary directory"))
    }

    /// A place in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A session of these lines, last written a day ago.
    pub fn session(&self, id: &str, lines: &[Value]) -> PathBuf {
        let header = json!({"type":"session","version":3,"id":id,"timestamp":"2026-12-01T16:19:01.469Z","cwd":"/work"});
        let lines: String = [&header].into_iter().chain(lines).map(|line| format!("{line}\n")).collect();
        self.file(id, lines.as_bytes())
    }

    /// A session file with these bytes, last written a day ago.
    pub fn file(&self, id: &str, bytes: &[u8]) -> PathBuf {
        let dir = self.path(".pi/agent/sessions/--work--");
        fs::create_dir_all(&dir).expect("made");
        let path = dir.join(format!("2026-12-01T16-19-01-469Z_{id}.jsonl"));
        fs::write(&path, bytes).expect("written");
        let day_ago = SystemTime::now() - Duration::from_secs(86_400);
        fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(day_ago)).expect("an old time");
        path
    }

    /// A copy of a case, where Pi keeps sessions, last written a day ago.
    pub fn case(&self, case: &str, id: &str) -> PathBuf {
        self.file(id, &fs::read(cases().join(case)).expect("a case"))
    }

    /// The program with these arguments; `PATH` is empty, so that no tool of this machine is found.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env_clear()
            .env("HOME", self.0.path())
            .env("PATH", "")
            .stdin(Stdio::null());
        command
    }

    /// What it says.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary runs")
    }

    /// Runs it with this on its standard input.
    pub fn feed(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command(args);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the binary runs");
        child.stdin.take().expect("it was piped").write_all(input.as_bytes()).expect("it reads");
        child.wait_with_output().expect("it ends")
    }

    /// Fails with this code; gives what it says.
    pub fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
        said(&output)
    }

    /// The text that it prints when all is well.
    pub fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The JSON that it prints when all is well.
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(args)).expect("one JSON document")
    }

    /// What it prints when all is well, painted for a terminal of so many columns.
    pub fn painted(&self, columns: u16, args: &[&str]) -> String {
        let mut command = self.command(args);
        command.env("CLICOLOR_FORCE", "1").env("COLUMNS", columns.to_string());
        let output = command.output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("text")
    }
}

/// The case files.
pub fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases")
}

/// What it said, on both.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(output)
}

/// What it said on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A message of a user.
pub fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type":"message","id":id,"parentId":parent,"timestamp":"2026-12-01T16:19:02.000Z",
        "message":{"role":"user","content":text,"timestamp":1_796_142_000_000_u64}})
}
