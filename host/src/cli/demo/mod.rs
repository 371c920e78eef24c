//! `pi-graft demo`: the first look. A session grows in a temporary folder as Pi would write it, the real daemon follows it
//! with the shipped plugins, and one sees what is grafted and what the model sees without and with it.

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
use pi_session::json::Json;

use crate::daemon::world::now_ms;

use super::{Failure, Outcome, answer};
use script::Script;

/// How long the demo waits for grafts. They come about half a second after the last line.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two lines of the writer.
const BEAT: Duration = Duration::from_millis(60);

/// See it work: a sample session, the real daemon, the shipped plugins; nothing of yours is touched.
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
name = "redact-secrets"
grants = ["append:context_edit"]

[[plugin]]
name = "trim-tool-results"
grants = ["append:context_edit"]
[plugin.config]
older-than-turns = 2
larger-than = 600
min-saving = 500
cache = false

[[plugin]]
name = "budget-guard"
grants = ["append:custom_message"]
[plugin.config]
session = [0.05]

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
    let began = Script::begin(now_ms());
    write_session(&stage.session, &began, 0).map_err(Failure::problem)?;
    show::quiet();
    let worked_on = wait_for(&stage.session, &mut daemon, |tree| {
        count(tree, EntryKind::ContextEdit) > 2 && count(tree, EntryKind::CustomMessage) > 0
    })?;
    show_grafts(&worked_on, began.len())?;

    show::again();
    let (now, there) = (now_ms(), worked_on.tree().lines() as usize);
    let tokens = show::Side::of(&worked_on)?.tokens;
    let leaf = worked_on.leaf_id().unwrap_or_default();
    let behind = Script::go_on(now, there, leaf, tokens);
    write_session(&stage.session, &behind, there).map_err(Failure::problem)?;
    show::quiet_again();
    let compacted = wait_for(&stage.session, &mut daemon, |tree| count(tree, EntryKind::Compaction) > 0)?;
    daemon.end();
    show_grafts(&compacted, there + behind.len())?;

    // What Pi wrote, and nothing else.
    let own_leaf = branch_of(text_of(&began))?.leaf_id().unwrap_or_default().to_owned();
    let alone = [began, Script::go_on(now, there, &own_leaf, tokens)].concat();
    compare(&branch_of(text_of(&alone))?, &compacted)
}

fn text_of(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

fn branch_of(text: Vec<u8>) -> Result<Branch, Failure> {
    let tree = Arc::new(Tree::from_bytes(&text));
    Branch::of_leaf(&tree, Arc::new(text)).map_err(Failure::from)
}

/// Writes as Pi does: each line with one write, the last one in two halves. The file has `there` lines before.
fn write_session(path: &Path, lines: &[String], there: usize) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    for (number, line) in lines.iter().enumerate() {
        show::line(there + number, line);
        let bytes = format!("{line}\n");
        let half = if number + 1 == lines.len() { bytes.len() / 2 } else { bytes.len() };
        file.write_all(&bytes.as_bytes()[..half])?;
        std::thread::sleep(BEAT);
        file.write_all(&bytes.as_bytes()[half..])?;
    }
    Ok(())
}

/// The session as soon as it has what is waited for.
fn wait_for(path: &Path, daemon: &mut Running, is_there: impl Fn(&Tree) -> bool) -> Result<Branch, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        let bytes = std::fs::read(path).map_err(Failure::problem)?;
        if bytes.ends_with(b"\n") && is_there(&Tree::from_bytes(&bytes)) {
            return branch_of(bytes);
        }
        if Instant::now() > until || daemon.has_ended() {
            let text = "not all was grafted; the daemon's log, in the folder named below, says why";
            return Err(Failure::problem(text));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn count(tree: &Tree, kind: EntryKind) -> usize {
    tree.entries().iter().filter(|entry| entry.kind == kind).count()
}

/// What stands behind so many lines of the file.
fn show_grafts(branch: &Branch, lines: usize) -> Result<(), Failure> {
    // The header is a line, and no entry.
    for entry in &branch.tree().entries()[lines - 1..] {
        show::graft(branch.tree(), entry, &branch.line(entry).map_err(Failure::from)?);
    }
    Ok(())
}

/// The model's context without the grafts and with them.
fn compare(without: &Branch, with: &Branch) -> Result<(), Failure> {
    show::contexts(&show::Side::of(without)?, &show::Side::of(with)?);
    if let Some(place) = with.last_compaction() {
        let summary = with.read(place, |line| line.get("summary").and_then(Json::as_str).map(|s| s.into_owned()));
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
