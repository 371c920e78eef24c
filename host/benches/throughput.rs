//! How many new entries a second go through three plugins: the real daemon and its watcher, sixteen sessions that are
//! written to line by line at once, as fast as one writer can. Aim: 5,000 on two cores.
//!
//! `cargo bench --bench throughput`. The clock starts before the first line is written, and stops when the daemon says of
//! every session that all of its entries are handled. Each entry is an agent's call or its result, of about 1 KB, and wakes
//! all three plugins; each run is a row of the run log, and of what was proposed the store makes sure on the disk. When the
//! daemon has ended, its log must have every run there is, once. The writer takes one of the cores for a part of the time.
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pi_graft::daemon::world::now_ms;
use pi_graft::journal::{About, Journal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/prebuilt/scripted.wasm");
const SESSIONS: usize = 16;
const ENTRIES: usize = 2000;
/// Entries of a turn: ten calls and their results, and the user's next message.
const TURN: usize = 21;
/// Pause between two questions to the daemon.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Looks at its entry, and reads its text.
const LOOKS: &str = "[[plugin.config.entry]]\nread = \"$trigger\"\n";
/// Proposes on what a user says.
const PROPOSES: &str = "[[plugin.config.entry]]\nrole = \"user\"\ncustom = { type = \"seen\", data = 1 }\n";
/// Those of the shipped ones that see both calls and results.
const SHIPPED: &str = "[[plugin]]\nname = \"redact-secrets\"\ngrants = [\"append:context_edit\", \"append:custom_message\", \
    \"append:custom\", \"session:raw\"]\n[[plugin]]\nname = \"trim-tool-results\"\ngrants = [\"append:context_edit\"]\n\
    [[plugin]]\nname = \"auto-compact\"\ngrants = [\"append:compaction\"]\n";

fn main() {
    // `cargo test` runs benches too, to see whether they work.
    let entries = if std::env::args().any(|arg| arg == "--bench") { ENTRIES } else { 210 };
    println!("three plugins that             entries each   entries a second   processor time of an entry");
    for (what, plugins, entries) in [
        ("look at each entry", scripted(LOOKS), entries / 10),
        ("look at each entry", scripted(LOOKS), entries),
        ("propose on 1 of 21", scripted(PROPOSES), entries / 10),
        ("are shipped", SHIPPED.to_owned(), entries / 10),
    ] {
        let took = measure(&plugins, entries);
        let count = (SESSIONS * entries) as f64;
        let (each, of_one) = (count / took.wall.as_secs_f64(), took.processor.as_secs_f64() / count * 1e6);
        println!("{what:<30} {entries:>12} {each:>18.0} {of_one:>24.0} µs");
    }
}

/// Three of one guest, each with a name of its own.
fn scripted(config: &str) -> String {
    let plugin =
        |name| format!("[[plugin]]\nname = {name:?}\npath = {GUEST:?}\ngrants = [\"append:custom\"]\n{config}");
    ["one", "two", "three"].map(plugin).concat()
}

struct Took {
    wall: Duration,
    /// The daemon's.
    processor: Duration,
}

fn measure(plugins: &str, entries: usize) -> Took {
    let stage = Stage::new(plugins);
    let mut daemon = Daemon::start(&stage);
    let mut sessions: Vec<_> = (0..SESSIONS).map(|number| Session::new(&stage, number)).collect();
    daemon.wait_until_handled(1);
    let before = daemon.processor();
    let began = Instant::now();
    for _ in 0..entries {
        sessions.iter_mut().for_each(Session::line);
    }
    daemon.wait_until_handled(1 + entries);
    let took = Took { wall: began.elapsed(), processor: daemon.processor() - before };
    daemon.end();
    // A user's message is nothing to two of those that are shipped.
    let passed = if plugins == SHIPPED { 2 * ((1 + entries) / TURN) } else { 0 };
    assert_eq!(
        stage.runs(),
        SESSIONS * ((1 + entries) * 3 - passed),
        "each plugin ran once on each entry that wakes it"
    );
    took
}

/// A folder with a config and a root.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new(plugins: &str) -> Stage {
        let stage = Stage(tempfile::tempdir().expect("a folder"));
        let (root, state) = (stage.path("sessions"), stage.path("state"));
        std::fs::create_dir(&root).expect("a root");
        let head = format!("[watch]\nroots = [{root:?}]\nsettle = \"1h\"\n[state]\ndir = {state:?}\n");
        std::fs::write(stage.path("config.toml"), head + plugins).expect("a config");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs that the log has.
    fn runs(&self) -> usize {
        let store = Journal::open(&self.path("state"), now_ms()).expect("the store");
        store.runs(usize::MAX, |row| row.about == About::Run).expect("the log").len()
    }
}

/// The real program.
struct Daemon {
    child: Child,
    runtime: PathBuf,
}

impl Daemon {
    fn start(stage: &Stage) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
        let runtime = stage.path("runtime");
        command.arg("--config").arg(stage.path("config.toml")).arg("run").env("RUST_LOG", "warn");
        command.env("PI_GRAFT_RUNTIME_DIR", &runtime).env("XDG_CACHE_HOME", stage.path("cache"));
        command.env("PI_CODING_AGENT_DIR", stage.path("agent")).stdin(Stdio::null());
        Daemon { child: command.spawn().expect("it starts"), runtime }
    }

    /// Until as many entries are handled of each session.
    fn wait_until_handled(&mut self, entries: usize) {
        loop {
            std::thread::sleep(LOOK_AGAIN);
            let ended = self.child.try_wait().expect("a process");
            assert!(ended.is_none(), "it ended: {ended:?}");
            let status = ask(&self.runtime).unwrap_or_default();
            let sessions = status["ok"]["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_done = |session: &&Value| session["entries"].as_u64() == Some(entries as u64);
            if sessions.iter().filter(is_done).count() == SESSIONS {
                return;
            }
        }
    }

    /// Its processor time up to now; zero where the system does not tell.
    fn processor(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let behind_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks = behind_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        // Hundredths of a second on every Linux.
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    fn end(&mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it runs");
        assert!(self.child.wait().expect("a process").success(), "it ends well");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the daemon says of all its sessions; none while it cannot be reached.
fn ask(runtime: &Path) -> Option<Value> {
    let socket = std::fs::read_dir(runtime).ok()?.flatten().map(|file| file.path()).find(|path| is_socket(path))?;
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.write_all(b"{\"v\":1,\"control\":\"status\",\"all\":true}\n").ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    serde_json::from_str(&answer).ok()
}

fn is_socket(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sock")
}

/// A session that somebody writes to: a user's message, then ten calls and their results, and so on.
struct Session {
    file: File,
    lines: usize,
    words: String,
}

impl Session {
    fn new(stage: &Stage, number: usize) -> Session {
        let dir = stage.path(&format!("sessions/--work-{number}--"));
        std::fs::create_dir(&dir).expect("a directory");
        let (path, time) = (dir.join("s.jsonl"), now());
        let head = format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"01a0{number:04}-0000-7000-8000-000000000000\",\
             \"timestamp\":{time:?},\"cwd\":\"/work/{number}\"}}\n"
        );
        let mut file = File::options().append(true).create_new(true).open(path).expect("the session");
        file.write_all(head.as_bytes()).expect("written");
        let mut session = Session { file, lines: 0, words: "some words of it ".repeat(45) };
        session.line();
        session
    }

    /// Writes the next line, as Pi does: whole, in one write.
    fn line(&mut self) {
        let message = self.message();
        let (id, time) = (format!("{:08x}", self.lines), now());
        let parent = if self.lines == 0 { "null".to_owned() } else { format!("\"{:08x}\"", self.lines - 1) };
        let line = format!(
            "{{\"type\":\"message\",\"id\":{id:?},\"parentId\":{parent},\"timestamp\":{time:?},\"message\":{{{message}}}}}\n"
        );
        self.file.write_all(line.as_bytes()).expect("written");
        self.lines += 1;
    }

    fn message(&self) -> String {
        let of_turn = self.lines % TURN;
        let (words, call) = (&self.words, self.lines / TURN * 10 + of_turn / 2);
        match of_turn {
            20 => format!("\"role\":\"user\",\"content\":{words:?},\"timestamp\":1"),
            _ if of_turn.is_multiple_of(2) => format!(
                "\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":{words:?}}},{{\"type\":\"toolCall\",\"id\":\"call{call}\",\
                 \"name\":\"read\",\"arguments\":{{\"path\":\"src/{call}.rs\"}}}}],\"api\":\"openai-completions\",\"provider\":\"mock\",\
                 \"model\":\"mock-big\",\"usage\":{{\"input\":2000,\"output\":300,\"cacheRead\":20000,\"cacheWrite\":0,\"totalTokens\":22300,\
                 \"cost\":{{\"input\":0.001,\"output\":0.002,\"cacheRead\":0.0001,\"cacheWrite\":0,\"total\":0.0031}}}},\
                 \"stopReason\":\"toolUse\",\"timestamp\":1"
            ),
            _ => format!(
                "\"role\":\"toolResult\",\"toolCallId\":\"call{call}\",\"toolName\":\"read\",\
                 \"content\":[{{\"type\":\"text\",\"text\":{words:?}}}],\"isError\":false,\"timestamp\":1"
            ),
        }
    }
}

fn now() -> String {
    pi_session::time::iso(now_ms())
}
