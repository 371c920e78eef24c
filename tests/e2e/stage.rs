//! A folder with a config, sessions and a daemon.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::server::Server;

/// How long a scene waits for what must come. Reached only when it does not come.
const PATIENCE: Duration = Duration::from_secs(180);

/// Everything of one scene, gone at its end.
pub struct Stage {
    dir: TempDir,
    daemons: std::cell::Cell<u32>,
}

impl Stage {
    /// A folder with a config: `settle` in milliseconds, and the plugins as TOML.
    pub fn new(settle_ms: u64, plugins: &str) -> Stage {
        let stage = Stage { dir: tempfile::tempdir().expect("a temporary folder"), daemons: Default::default() };
        fs::create_dir_all(stage.root().join("--work--")).expect("a root");
        stage.configure(settle_ms, plugins);
        stage
    }

    /// Writes the config anew.
    pub fn configure(&self, settle_ms: u64, plugins: &str) {
        let (root, state) = (self.root(), self.path("state"));
        let text = format!(
            "[watch]\nroots = [{root:?}]\nsettle = \"{settle_ms}ms\"\nlive-hold = \"2s\"\n\n[bridge]\nturn-end = \"10s\"\n\n[state]\ndir = {state:?}\n\n{plugins}"
        );
        fs::write(self.path("config.toml"), text).expect("the config");
    }

    /// Writes the config anew with another `live-hold`, `2s` unless this is called.
    pub fn hold_for(&self, live_hold: &str) {
        let text = fs::read_to_string(self.path("config.toml")).expect("the config");
        let text = text.replacen("live-hold = \"2s\"", &format!("live-hold = {live_hold:?}"), 1);
        fs::write(self.path("config.toml"), text).expect("the config");
    }

    /// What the log says became of batches, oldest first.
    pub fn outcomes(&self) -> Vec<String> {
        let output = self.run(&["log", "--json", "-n", "1000"]);
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let of_batch = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            (line["about"] == "batch").then(|| line["outcome"].as_str().expect("text").to_owned())
        };
        lines.lines().filter_map(of_batch).collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("the folder").join(name)
    }

    pub fn root(&self) -> PathBuf {
        self.path("sessions")
    }

    pub fn session(&self, name: &str) -> PathBuf {
        self.root().join("--work--").join(name)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
        command.arg("--config").arg(self.path("config.toml")).args(args);
        command.env("XDG_RUNTIME_DIR", self.path("runtime")).env("RUST_LOG", "debug");
        // Nobody's own Pi gets in.
        command.env("PI_CODING_AGENT_DIR", self.path("agent")).env_remove("PI_CODING_AGENT_SESSION_DIR");
        // Compiled once for all scenes.
        command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary runs")
    }

    /// `run --once` with these further arguments; what it printed.
    pub fn once(&self, args: &[&str]) -> String {
        let output = self.run(&[&["run", "--once"], args].concat());
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}");
        text
    }

    /// Starts the daemon and waits until it follows.
    pub fn daemon(&self, args: &[&str]) -> Daemon {
        self.daemon_with(args, &[])
    }

    pub fn daemon_with(&self, args: &[&str], env: &[(&str, &str)]) -> Daemon {
        let mut command = self.command(&[&["run"], args].concat());
        command.envs(env.iter().copied());
        self.start(command)
    }

    /// Starts the daemon by another program, which gets its command line as its last arguments.
    pub fn daemon_by(&self, mut program: Command, args: &[&str]) -> Daemon {
        let command = self.command(&[&["run"], args].concat());
        program.arg(command.get_program()).args(command.get_args());
        program.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        self.start(program)
    }

    fn start(&self, mut command: Command) -> Daemon {
        let log = self.path(&format!("daemon-{}.log", self.daemons.replace(self.daemons.get() + 1)));
        let to = File::create_new(&log).expect("the log");
        let child = command.stdout(Stdio::null()).stderr(to).spawn().expect("it starts");
        let mut daemon = Daemon { child, log };
        daemon.wait_for("following");
        daemon
    }
}

/// A running daemon, killed at the end of the scene if it still runs.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log")
    }

    pub fn wait_for(&mut self, text: &str) {
        let (log, child) = (self.log.clone(), &mut self.child);
        until(&format!("{text:?} in the log"), || {
            let there = fs::read_to_string(&log).expect("the log").contains(text);
            let ended = child.try_wait().expect("its state");
            assert!(there || ended.is_none(), "it ended: {}", fs::read_to_string(&log).expect("the log"));
            there
        });
    }

    /// The files that it has open.
    #[cfg(target_os = "linux")]
    pub fn open_files(&self) -> Vec<PathBuf> {
        let links = fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("its files");
        links.flatten().filter_map(|link| fs::read_link(link.path()).ok()).collect()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).expect("a pid");
        rustix::process::kill_process(pid, signal).expect("a signal");
    }

    /// Ends it in order and gives its log.
    pub fn end(mut self) -> String {
        self.signal(rustix::process::Signal::TERM);
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {}", self.log());
        self.log()
    }

    /// As the power does.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_some()
    }

    /// Waits until it has ended by itself, and looks for its last words and its exit code, 1.
    pub fn wait_for_end_with(mut self, text: &str) {
        let status = self.child.wait().expect("it ends");
        assert!(status.code() == Some(1) && self.log().contains(text), "{status}: {}", self.log());
    }

    /// Waits until it has ended by itself.
    pub fn wait_for_end(mut self) {
        let child = &mut self.child;
        until("its end", || child.try_wait().expect("its state").is_some());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// Waits for what must come.
pub fn until(what: &str, mut there: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn append(path: &Path, text: &str) {
    let mut file = File::options().create(true).append(true).open(path).expect("the session");
    file.write_all(text.as_bytes()).expect("written");
}

/// A model that plugins know as `summary`, at this server; members may follow.
pub fn model_at(server: &Server) -> String {
    format!("[models.summary]\nkind = \"openai\"\nbase-url = \"{}\"\nmodel = \"small\"\n", server.url())
}

/// `auto-compact` by that model, due after two turns; members of its config may follow.
pub const COMPACTS_SOON: &str = r#"
[[plugin]]
name = "auto-compact"
grants = ["append:compaction", "model:summary"]
[plugin.config]
context-window = 400
reserve-tokens = 100
keep-recent-tokens = 20
min-saving = 1
summary = "model"
"#;

/// The four shipped plugins in the order that their pages advise, with what the config says to three of them (TOML).
pub fn shipped(compact: &str, trim: &str, budget: &str) -> String {
    let plugin = |name: &str, grants: &str, config: &str| {
        format!("[[plugin]]\nname = \"{name}\"\ngrants = [{grants}]\n[plugin.config]\n{config}\n")
    };
    [
        plugin("redact-secrets", r#""append:context_edit", "append:custom""#, ""),
        plugin("auto-compact", r#""append:compaction""#, compact),
        plugin("trim-tool-results", r#""append:context_edit""#, trim),
        plugin("budget-guard", r#""append:custom_message""#, budget),
    ]
    .concat()
}

/// A `[[plugin]]` that is the scripted guest with this script (JSON) and these grants.
pub fn scripted(name: &str, grants: &[&str], script: &str) -> String {
    let wasm = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/prebuilt/scripted.wasm");
    let config: toml::Value = serde_json::from_str(script).expect("a script");
    let config = toml::to_string(&Wrapped { plugin: vec![Config { config }] }).expect("TOML");
    let config = config.replacen("[[plugin]]", "", 1);
    format!("[[plugin]]\nname = {name:?}\npath = {wasm:?}\ngrants = {grants:?}\n{config}\n")
}

#[derive(serde::Serialize)]
struct Wrapped {
    plugin: Vec<Config>,
}

#[derive(serde::Serialize)]
struct Config {
    config: toml::Value,
}
