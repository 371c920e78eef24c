//! A home of its own for Pi, with a model that is a mock, and the daemon's folder beside it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::pi::Pi;
use crate::stage::Stage;

/// Small enough that a few long answers are worth a compaction.
const SETTINGS: &str = r#"{"compaction":{"keepRecentTokens":300,"reserveTokens":4000}}"#;

/// Where Pi lives in one scene.
pub struct Home {
    /// The daemon's side: its config, state and runtime directory, and the sessions.
    pub stage: Stage,
    node: OsString,
    pi: PathBuf,
    model: Child,
}

impl Home {
    /// None where Pi is not at hand; that is said.
    pub fn new() -> Option<Home> {
        Home::with("")
    }

    /// The same, with these plugins for a daemon.
    pub fn with(plugins: &str) -> Option<Home> {
        let (Some(pi), Some(node)) = (std::env::var_os("PI_DIR"), std::env::var_os("ORACLE_NODE")) else {
            eprintln!("skipped: set PI_DIR and ORACLE_NODE (see tests/oracle/setup.sh) to run beside the real Pi");
            return None;
        };
        let stage = Stage::new(100, plugins);
        let model = start_model(&node, &stage.path("requests.jsonl"));
        let mut home = Home { stage, node, pi: pi.into(), model };
        home.furnish();
        Some(home)
    }

    fn furnish(&mut self) {
        for dir in ["agent", "work", "runtime/pi-graft"] {
            fs::create_dir_all(self.stage.path(dir)).expect("a directory");
        }
        self.open_runtime_to(0o700);
        let notes: String = (0..60).map(|line| format!("line {line} of the notes\n")).collect();
        fs::write(self.stage.path("work/notes.txt"), notes).expect("a file to read");
        fs::write(self.stage.path("agent/settings.json"), SETTINGS).expect("settings");
        let mut port = String::new();
        let stdout = self.model.stdout.take().expect("it was asked to be piped");
        BufReader::new(stdout).read_line(&mut port).expect("the model's port");
        fs::write(self.stage.path("agent/models.json"), models(port.trim()).to_string()).expect("models");
    }

    /// The mode of the directory in which the daemon's socket stands.
    pub fn open_runtime_to(&self, mode: u32) {
        let dir = self.stage.path("runtime/pi-graft");
        fs::set_permissions(dir, fs::Permissions::from_mode(mode)).expect("its mode");
    }

    /// Writes an extension of somebody else.
    pub fn extension(&self, name: &str, source: &str) -> PathBuf {
        let path = self.stage.path(name);
        fs::write(&path, source).expect("an extension");
        path
    }

    /// Pi with the bridge, in rpc mode, and a context window that is never full.
    pub fn pi(&self) -> Pi {
        self.pi_with(&[bridge()], &[])
    }

    /// Pi with these extensions in this order, and further arguments.
    pub fn pi_with(&self, extensions: &[PathBuf], args: &[&str]) -> Pi {
        let mut command = self.command(extensions);
        command.args(["--mode", "rpc", "--session-dir"]).arg(self.stage.root()).args(args);
        Pi::start(command)
    }

    /// `pi -p`: one prompt, and an end.
    pub fn print_command(&self, prompt: &str) -> Command {
        let mut command = self.command(&[bridge()]);
        command.args(["-p", "--session-dir"]).arg(self.stage.root()).arg(prompt).stdin(Stdio::null());
        command
    }

    /// Node, with Pi's surroundings.
    pub fn node(&self) -> Command {
        let mut command = Command::new(&self.node);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.stage.path("")).current_dir(self.stage.path("work"));
        command.env("PI_CODING_AGENT_DIR", self.stage.path("agent")).env("XDG_RUNTIME_DIR", self.stage.path("runtime"));
        command.envs([("PI_OFFLINE", "1"), ("PI_TELEMETRY", "0"), ("PI_SKIP_VERSION_CHECK", "1"), ("TERM", "dumb")]);
        command
    }

    fn command(&self, extensions: &[PathBuf]) -> Command {
        let mut command = self.node();
        command.arg(self.pi.join("dist/bundle/cli.js")).args(["--model", "mock/big"]);
        for extension in extensions {
            command.arg("-e").arg(extension);
        }
        command
    }

    /// The one session there is.
    pub fn session(&self) -> PathBuf {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions.into_iter().next().expect("one")
    }

    /// All sessions, by name.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.stage.root()).expect("the sessions");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut found: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect();
        found.sort();
        found
    }

    /// The entries of the one session.
    pub fn entries(&self) -> Vec<Value> {
        lines(&self.session())
    }

    /// What the model was asked so far.
    pub fn requests(&self) -> Vec<Value> {
        lines(&self.stage.path("requests.jsonl"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}

/// The extension, as it stands in the repository.
pub fn bridge() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bridge/pi-graft.ts")
}

/// The lines of a JSONL file.
pub fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn start_model(node: &OsString, requests: &Path) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/oracle/live/mock-server.mjs");
    let mut command = Command::new(node);
    command.arg(script).arg("0").arg(requests).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().expect("ORACLE_NODE must be a Node that runs")
}

fn models(port: &str) -> Value {
    let model = |id: &str, window: u32| {
        let cost = json!({ "input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0 });
        json!({ "id": id, "name": id, "contextWindow": window, "maxTokens": 4000, "input": ["text"], "cost": cost })
    };
    let models = [model("small", 30_000), model("big", 200_000)];
    let url = format!("http://127.0.0.1:{port}/v1");
    json!({ "providers": { "mock": { "baseUrl": url, "apiKey": "dummy", "api": "openai-completions", "models": models } } })
}
