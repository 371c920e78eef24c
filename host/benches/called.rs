//! From a line written to the plugin called, as a user has it: the real daemon, its watcher, and a session of 1 MB beside one
//! of 100 MB, in turns. Aim: a median under 5 ms, and the same for both.
//!
//! `cargo bench --bench called`. The clock starts before the `write` of a line, and stops when the plugin's own word about
//! that line has been read from the daemon's log. So the run itself and the way of the word to here are in it; what was
//! proposed would be recorded behind it. The sessions have been read before: the first touch after a start is another thing.
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[path = "../session/tests/common/typical.rs"]
mod typical;

const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/prebuilt/scripted.wasm");
const MEGABYTES: [usize; 2] = [1, 100];
const LINES: usize = 300;
/// Between two lines, so that each finds the daemon idle.
const PAUSE: Duration = Duration::from_millis(10);

fn main() {
    // `cargo test` runs benches too, to see whether they work.
    let lines = if std::env::args().any(|arg| arg == "--bench") { LINES } else { 3 };
    let stage = Stage::new();
    let mut daemon = Daemon::start(&stage);
    let mut sessions = MEGABYTES.map(|megabytes| Session::new(&stage, megabytes));
    sessions.iter_mut().for_each(|session| {
        session.line(&mut daemon);
    });
    for _ in 0..lines {
        for session in &mut sessions {
            std::thread::sleep(PAUSE);
            let took = session.line(&mut daemon);
            session.took.push(took);
        }
    }
    println!("session      median      90 %   slowest   from a line written to the plugin called, {lines} lines");
    sessions.iter_mut().for_each(Session::tell);
}

/// A folder with a config and a root.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new() -> Stage {
        let stage = Stage(tempfile::tempdir().expect("a folder"));
        let (root, state) = (stage.path("sessions"), stage.path("state"));
        let config = format!(
            "[watch]\nroots = [{root:?}]\n[state]\ndir = {state:?}\n[[plugin]]\nname = \"bench\"\npath = {GUEST:?}\n\
             [plugin.config]\non = [\"message:user\"]\n[[plugin.config.entry]]\nread = \"$trigger\"\nlog = {{ text = \"called\" }}\n"
        );
        std::fs::create_dir(&root).expect("a root");
        std::fs::write(stage.path("config.toml"), config).expect("a config");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The real program.
struct Daemon {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Daemon {
    fn start(stage: &Stage) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
        command.arg("--config").arg(stage.path("config.toml")).arg("run").env("RUST_LOG", "info");
        command.env("XDG_RUNTIME_DIR", stage.path("runtime")).env("XDG_CACHE_HOME", stage.path("cache"));
        command.env("PI_CODING_AGENT_DIR", stage.path("agent")).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let log = BufReader::new(child.stderr.take().expect("its log"));
        let mut daemon = Daemon { child, log };
        daemon.wait_for("following");
        daemon
    }

    fn wait_for(&mut self, text: &str) {
        let mut said = String::new();
        loop {
            let from = said.len();
            let read = self.log.read_line(&mut said).expect("its log");
            assert!(read > 0, "it ended: {said}");
            if said[from..].contains(text) {
                return;
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A session that somebody writes to.
struct Session {
    file: File,
    megabytes: usize,
    lines: usize,
    leaf: String,
    took: Vec<Duration>,
}

impl Session {
    fn new(stage: &Stage, megabytes: usize) -> Session {
        let text = String::from_utf8(typical::session(7, megabytes * 1_000_000)).expect("text");
        let dir = stage.path(&format!("sessions/--of-{megabytes}--"));
        std::fs::create_dir(&dir).expect("a directory");
        let path = dir.join("s.jsonl");
        write_whole(&path, &text.replacen("01a00000", &format!("01a0{megabytes:04}"), 1));
        let file = File::options().append(true).open(path).expect("the session");
        Session { file, megabytes, lines: 0, leaf: leaf_of(&text), took: Vec::new() }
    }

    /// Writes one line, and gives how long it took until the plugin has said its word about it.
    fn line(&mut self, daemon: &mut Daemon) -> Duration {
        self.lines += 1;
        let id = format!("of-{}-{}", self.megabytes, self.lines);
        let parent = std::mem::replace(&mut self.leaf, id.clone());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis();
        let time = pi_session::time::iso(i64::try_from(now).expect("a time"));
        let words = "word ".repeat(200);
        let line = format!(
            "{{\"type\":\"message\",\"id\":{id:?},\"parentId\":{parent:?},\"timestamp\":{time:?},\
             \"message\":{{\"role\":\"user\",\"content\":{words:?}}}}}\n"
        );
        let began = Instant::now();
        self.file.write_all(line.as_bytes()).expect("written");
        daemon.wait_for(&format!("trigger={id:?}"));
        began.elapsed()
    }

    fn tell(&mut self) {
        self.took.sort_unstable();
        let at = |part: f64| self.took[((self.took.len() - 1) as f64 * part) as usize];
        let [median, most, slowest] = [0.5, 0.9, 1.0].map(|part| format!("{:.3} ms", at(part).as_secs_f64() * 1e3));
        println!("{:>4} MB    {median}  {most}  {slowest}", self.megabytes);
    }
}

/// The entry that a session ends in.
fn leaf_of(text: &str) -> String {
    let line = text.lines().last().expect("entries");
    let (_, from_id) = line.rsplit_once("\"id\":\"").expect("an id");
    from_id[..8].to_owned()
}

/// In one piece, so that no half of it is met.
fn write_whole(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    std::fs::write(&aside, text).expect("a session");
    std::fs::rename(aside, path).expect("a session");
}
