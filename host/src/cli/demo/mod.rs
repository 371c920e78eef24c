//! `pi-graft demo`: the first look. A session grows in a temporary folder as Pi would write it, the real daemon follows it
//! with the shipped plugin, and one sees what is grafted and what the model sees before and after.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the demo plays Pi in a temporary folder of its own"
)]

mod script;
mod show;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::entry::EntryKind;
use pi_session::figures::hex;

use crate::daemon::world::now_ms;

use super::{Failure, Outcome, answer};
use script::Script;

/// How long the demo waits for the graft. It comes about half a second after the last line.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two lines of the writer.
const BEAT: Duration = Duration::from_millis(60);

/// See it work: a sample session, the real daemon, the shipped plugin; nothing of yours is touched.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DemoArgs {
    /// Keep the folder with the session, the config and the daemon's log
    #[arg(long)]
    pub keep: bool,
}

/// Plays the demo.
///
/// # Errors
/// [`Failure`] if the daemon does not start or nothing is grafted in time.
pub fn run(args: &DemoArgs) -> Result<Outcome, Failure> {
    let stage = Stage::new().map_err(Failure::problem)?;
    let result = play(&stage);
    match (&result, args.keep) {
        (Ok(_), false) => drop(std::fs::remove_dir_all(&stage.dir)),
        _ => answer(format_args!("\nThe session, the config and the daemon's log are in {}", stage.dir.display())),
    }
    result.map(|()| Outcome::Done)
}

/// The folder it plays in.
struct Stage {
    dir: PathBuf,
    session: PathBuf,
}

impl Stage {
    fn new() -> std::io::Result<Stage> {
        let tag = hex(&crate::daemon::world::random()[..4]);
        let dir = std::env::temp_dir().canonicalize()?.join(format!("pi-graft-demo-{tag}"));
        let sessions = dir.join("sessions/--demo-api-server--");
        std::fs::create_dir_all(&sessions)?;
        let stage = Stage { session: sessions.join("demo.jsonl"), dir };
        std::fs::write(stage.dir.join("config.toml"), stage.config())?;
        Ok(stage)
    }

    fn config(&self) -> String {
        format!(
            r#"[watch]
roots = ["{dir}/sessions"]
settle = "400ms"

[state]
dir = "{dir}/state"

[[plugin]]
name = "auto-compact"
grants = ["append:compaction"]
[plugin.config]
context-window = 6000
at = "80%"
reserve-tokens = 1000
keep-recent-tokens = 400
"#,
            dir = self.dir.display()
        )
    }

    /// The real daemon: this very program.
    fn daemon(&self) -> std::io::Result<Child> {
        let log = File::create(self.dir.join("daemon.log"))?;
        Command::new(std::env::current_exe()?)
            .args(["run", "--config"])
            .arg(self.dir.join("config.toml"))
            .env("XDG_RUNTIME_DIR", self.dir.join("runtime"))
            // What the user has set in Pi is no part of the play.
            .env("PI_CODING_AGENT_DIR", self.dir.join("agent"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }
}

fn play(stage: &Stage) -> Result<(), Failure> {
    show::opening(&stage.dir);
    let mut daemon = Running(stage.daemon().map_err(Failure::problem)?);
    let lines = Script::lines(now_ms());
    write_session(&stage.session, &lines).map_err(Failure::problem)?;
    show::quiet();
    let grown = wait_for_graft(&stage.session, lines.len(), &mut daemon)?;
    daemon.end();
    let tree = Arc::new(Tree::from_bytes(&grown));
    show_grafts(&tree, &grown, lines.len() - 1);
    compare(&tree, &grown, lines.len() - 1)
}

/// Writes as Pi does: each line with one write, the last one in two halves.
fn write_session(path: &Path, lines: &[String]) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    for (number, line) in lines.iter().enumerate() {
        show::line(number, line);
        let bytes = format!("{line}\n");
        let half = if number + 1 == lines.len() { bytes.len() / 2 } else { bytes.len() };
        file.write_all(&bytes.as_bytes()[..half])?;
        std::thread::sleep(BEAT);
        file.write_all(&bytes.as_bytes()[half..])?;
    }
    Ok(())
}

fn wait_for_graft(path: &Path, written: usize, daemon: &mut Running) -> Result<Vec<u8>, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        let bytes = std::fs::read(path).map_err(Failure::problem)?;
        let whole = bytes.ends_with(b"\n") && bytes.iter().filter(|b| **b == b'\n').count() > written;
        if whole {
            return Ok(bytes);
        }
        if Instant::now() > until || daemon.has_ended() {
            let text = "the daemon grafted nothing; its log, in the folder named below, says why";
            return Err(Failure::problem(text));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn show_grafts(tree: &Tree, bytes: &[u8], own: usize) {
    for entry in &tree.entries()[own..] {
        let at = entry.offset as usize;
        show::graft(tree, entry, &bytes[at..at + entry.len as usize]);
    }
}

/// The model's context before the grafts and after.
fn compare(tree: &Arc<Tree>, bytes: &[u8], own: usize) -> Result<(), Failure> {
    let source: Arc<dyn pi_session::tree::Source> = Arc::new(bytes.to_vec());
    let before = Arc::new(Tree::from_bytes(&bytes[..tree.entries()[own].offset as usize]));
    let then = Branch::of_leaf(&before, Arc::clone(&source)).map_err(Failure::from)?;
    let now = Branch::of_leaf(tree, source).map_err(Failure::from)?;
    show::contexts(&show::Side::of(&then)?, &show::Side::of(&now)?);
    let compaction = now.last_compaction().filter(|p| now.facts(*p).kind == EntryKind::Compaction);
    if let Some(place) = compaction {
        let summary = now
            .read(place, |line| line.get("summary").and_then(pi_session::json::Json::as_str).map(|s| s.into_owned()));
        show::summary(&summary.map_err(Failure::from)?.unwrap_or_default());
    }
    show::closing();
    Ok(())
}

/// The daemon, ended with the demo whatever happens.
struct Running(Child);

impl Running {
    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// As a user would end it.
    fn end(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
