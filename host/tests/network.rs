//! The daemon's loop on a file system that is said to be a network one: no events are waited for, and only a bridge delivers,
//! unless the config says otherwise.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pi_graft::daemon::Daemon;
use pi_graft::daemon::control::Identity;
use pi_graft::daemon::settings::Settings;
use pi_graft::daemon::watch::{Hints, WatchError, Watcher, Watchers};
use pi_graft::daemon::world::{World, now_ms};
use pi_graft::deliver::settle::Times;
use pi_graft::files::append::RealDisk;
use pi_graft::journal::Journal;
use pi_graft::sandbox::{Limits, PluginSource, Sandbox, SandboxOptions};
use pi_graft::wire::control::DaemonStatus;
use pi_session::time;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const GUEST: &[u8] = include_bytes!("../../tests/guests/prebuilt/scripted.wasm");
/// Notes each user message in a `custom` entry.
const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;

#[test]
fn on_a_network_only_the_bridge_delivers() {
    let stage = Stage::new();
    let daemon = stage.daemon(false);
    stage.turn();
    until("the proposal", || daemon.outcomes() == ["proposed"]);

    let root = daemon.root();
    assert_eq!(root["state"], "polled", "{root}");
    assert_eq!(root["why"], "it is on NFS, which gives no events of what other hosts write");
    let waits = || daemon.status()["sessions"][0]["waiting"].as_str().unwrap_or_default().to_owned();
    until("it is said what is waited for", || waits().contains("where only the bridge delivers; see watch.network"));
    assert!(!stage.text().contains("note"), "nothing was appended");

    // A Pi with a bridge comes, and is handed it at its next boundary.
    let mut pi = daemon.connect();
    let session = json!({ "id": "s", "file": stage.session(), "cwd": "/nowhere" });
    let pid = std::process::id();
    pi.say(&json!({ "v": 1, "bridge": "hello", "pid": pid, "leaf": "e1", "idle": false, "why": "startup", "session": session }));
    assert_eq!(pi.hear()["welcome"]["serves"], true);
    let ask =
        json!({ "ask": 1, "at": "turn_end", "leaf": "e1", "outcome": "completed", "stopReason": "stop", "ms": 60_000 });
    pi.say(&ask);
    let answer = pi.hear();
    assert_eq!(answer["entries"][1]["customType"], "note", "{answer}");
    daemon.end();
}

#[test]
fn where_the_config_says_so_it_is_appended_to_a_network_too() {
    let stage = Stage::new();
    let daemon = stage.daemon(false);
    stage.turn();
    until("the proposal", || daemon.outcomes() == ["proposed"]);
    daemon.end();
    assert!(!stage.text().contains("note"), "it waits");

    // watch.network = "append"
    let daemon = stage.daemon(true);
    until("what waited is grafted", || daemon.outcomes() == ["proposed", "grafted"]);
    assert!(stage.text().contains("\"note\""));
    assert_eq!(daemon.root()["state"], "polled", "what other hosts write gives no events all the same");
    daemon.end();
}

/// A system whose events must not be relied on: to ask for any would be in vain.
struct NoEvents;

impl Watchers for NoEvents {
    fn begin(&self, _hints: Hints) -> Result<Box<dyn Watcher>, WatchError> {
        Ok(Box::new(NoEvents))
    }
}

impl Watcher for NoEvents {
    fn add(&mut self, dir: &Path, _is_root: bool) -> Result<(), WatchError> {
        panic!("{}: a directory on a network is watched", dir.display())
    }
}

/// A root on a network, with a store beside it.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new() -> Stage {
        let stage = Stage(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir_all(stage.path("sessions/--nowhere--")).expect("a root");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().expect("the folder").join(name)
    }

    fn session(&self) -> PathBuf {
        self.path("sessions/--nowhere--/s.jsonl")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.session()).expect("the session")
    }

    /// A Pi without a bridge, on this host or another one, makes a turn.
    fn turn(&self) {
        let now = time::iso(now_ms());
        let lines = [
            format!(r#"{{"type":"session","version":3,"id":"s","timestamp":"{now}","cwd":"/nowhere"}}"#),
            format!(
                r#"{{"type":"message","id":"e0","parentId":null,"timestamp":"{now}","message":{{"role":"user","content":"go on"}}}}"#
            ),
            format!(
                r#"{{"type":"message","id":"e1","parentId":"e0","timestamp":"{now}","message":{{"role":"assistant","content":[{{"type":"text","text":"done"}}],"api":"x","provider":"p","model":"m","usage":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{{"total":0}}}},"stopReason":"stop"}}}}"#
            ),
        ];
        let mut file = File::create(self.session()).expect("the session");
        file.write_all(format!("{}\n", lines.join("\n")).as_bytes()).expect("written");
    }

    fn daemon(&self, append_on_network: bool) -> Running {
        let world = Arc::new(self.world(append_on_network));
        let (stop, socket) = (CancellationToken::new(), self.path("s.sock"));
        let daemon_stop = stop.clone();
        let (runtime_dir, at) = (self.path("runtime"), socket.clone());
        std::fs::create_dir_all(&runtime_dir).expect("a directory for locks");
        let thread = std::thread::spawn(move || {
            let daemon = Daemon::new(world).with_locks(runtime_dir).with_watchers(Arc::new(NoEvents));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a loop");
            runtime.block_on(daemon.with_socket(at, identity()).run(daemon_stop)).expect("it follows");
        });
        until("the socket", || UnixStream::connect(&socket).is_ok());
        Running { stop, socket, thread }
    }

    fn world(&self, append_on_network: bool) -> World {
        let sandbox = Sandbox::new(&SandboxOptions::default()).expect("a sandbox");
        let (limits, grants) = (Limits::default(), vec!["append:custom".to_owned()]);
        let (bytes, config_json) = (GUEST.into(), NOTE.into());
        let source = PluginSource { name: "noter".into(), bytes, config_json, grants, limits, on: None };
        let plugin = Arc::new(sandbox.load(source).expect("it loads"));
        let times = Times { settle: Duration::ZERO, live_hold: Duration::ZERO };
        let (roots, network) = (vec![self.path("sessions")], Box::new(|_: &Path| Some("NFS")));
        let settings = Settings { roots, network, append_on_network, times, closed: true, ..Settings::plain() };
        let journal = Journal::open(self.0.path(), now_ms()).expect("a store");
        World::new(journal, vec![plugin], settings, Box::new(RealDisk)).expect("a world")
    }
}

fn identity() -> Identity {
    let about = DaemonStatus {
        version: String::new(),
        pid: std::process::id(),
        since_ms: now_ms(),
        config: None,
        state_dir: PathBuf::new(),
        paused: false,
    };
    Identity { about, faults: Vec::new(), read_again: Arc::new(|_| Err("not here".to_owned())) }
}

/// A daemon on a thread of its own.
struct Running {
    stop: CancellationToken,
    socket: PathBuf,
    thread: JoinHandle<()>,
}

impl Running {
    fn connect(&self) -> Peer {
        let to = UnixStream::connect(&self.socket).expect("a daemon listens");
        Peer(BufReader::new(to))
    }

    fn ask(&self, request: Value) -> Value {
        let mut peer = self.connect();
        peer.say(&request);
        peer.hear()["ok"].clone()
    }

    fn status(&self) -> Value {
        self.ask(json!({ "v": 1, "control": "status" }))
    }

    fn root(&self) -> Value {
        self.status()["roots"][0].clone()
    }

    /// What the log says became of runs and batches, oldest first.
    fn outcomes(&self) -> Vec<String> {
        let lines = self.ask(json!({ "v": 1, "control": "log", "most": 100 }));
        let lines = lines.as_array().cloned().unwrap_or_default();
        lines.iter().map(|line| line["outcome"].as_str().expect("text").to_owned()).collect()
    }

    fn end(self) {
        self.stop.cancel();
        self.thread.join().expect("it ends in order");
    }
}

/// The other side of its socket.
struct Peer(BufReader<UnixStream>);

impl Peer {
    fn say(&mut self, message: &Value) {
        self.0.get_mut().write_all(format!("{message}\n").as_bytes()).expect("said");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }
}

fn until(what: &str, mut there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
