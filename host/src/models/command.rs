//! A program that reads the prompt on its standard input and writes the answer to its standard output, such as `pi -p`.
//!
//! It runs with the user's rights and environment, in a directory of ours, and in a process group of its own, so that
//! whatever it started ends with it. What it writes to its standard error is thrown away: it may hold the session's text.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::AskError;
use super::retry::LOOK;
use super::{MOST_TEXT, Raw};

/// How long the rest of its output may take to arrive once it has ended.
const REST: Duration = Duration::from_secs(2);

/// A program that runs; unless it has ended by itself, it ends with this, and all that it started.
struct Running {
    child: Child,
    ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may be ending at this moment.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Runs the program until it ends, it is late, or nobody waits.
pub(super) fn ask(
    argv: &[String],
    dir: &Path,
    prompt: &str,
    late: &dyn Fn() -> bool,
    over: &dyn Fn() -> bool,
) -> Result<Raw, AskError> {
    let mut running = Running { child: start(argv, dir)?, ended: false };
    feed(&mut running.child, prompt.to_owned());
    let mut output = Output::of(&mut running.child);
    let status = wait(&mut running.child, &mut output, late, over)?;
    let said = output.rest()?;
    running.ended = true;
    if !status.success() {
        return Err(AskError::Exit(how(status)));
    }
    let text = String::from_utf8(said).map_err(|_| AskError::Garbage)?;
    Ok(Raw { text: text.trim().to_owned(), cut_off: false, usage: None })
}

fn start(argv: &[String], dir: &Path) -> Result<Child, AskError> {
    let (program, arguments) = argv.split_first().ok_or_else(|| AskError::Request("argv is empty".to_owned()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    if dir.is_dir() {
        command.current_dir(dir);
    }
    let failed =
        |error: std::io::Error| AskError::NotStarted { program: program.clone(), why: error.kind().to_string() };
    command.spawn().map_err(failed)
}

/// Hands over the prompt on a thread of its own: a program may write before it has read all.
fn feed(child: &mut Child, prompt: String) {
    let Some(mut stdin) = child.stdin.take() else { return };
    // A program that does not read its prompt is none of ours to judge.
    thread::spawn(move || drop(stdin.write_all(prompt.as_bytes())));
}

/// What the program writes.
struct Output {
    from: Receiver<Vec<u8>>,
    said: Option<Vec<u8>>,
}

impl Output {
    fn of(child: &mut Child) -> Output {
        let (to, from) = channel();
        let stdout = child.stdout.take();
        thread::spawn(move || {
            let mut said = Vec::new();
            let most = MOST_TEXT as u64 + 1;
            let _ = stdout.map(|stdout| stdout.take(most).read_to_end(&mut said));
            let _ = to.send(said);
        });
        Output { from, said: None }
    }

    /// Whether there is more of it than is taken.
    fn is_too_much(&mut self) -> bool {
        self.said = self.said.take().or_else(|| self.from.try_recv().ok());
        self.said.as_ref().is_some_and(|said| said.len() > MOST_TEXT)
    }

    /// All of it, which is there soon: the program has ended.
    fn rest(mut self) -> Result<Vec<u8>, AskError> {
        let said = self.said.take().or_else(|| self.from.recv_timeout(REST).ok());
        // If something that it started still holds the other end, this is not all.
        let said = said.ok_or(AskError::BrokenOff)?;
        if said.len() > MOST_TEXT { Err(AskError::TooLong) } else { Ok(said) }
    }
}

fn wait(
    child: &mut Child,
    output: &mut Output,
    late: &dyn Fn() -> bool,
    over: &dyn Fn() -> bool,
) -> Result<ExitStatus, AskError> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(AskError::Exit(error.kind().to_string())),
        }
        match (output.is_too_much(), over(), late()) {
            (true, ..) => return Err(AskError::TooLong),
            (_, true, _) => return Err(AskError::Over),
            (.., true) => return Err(AskError::Timeout(Duration::ZERO)),
            _ => thread::sleep(LOOK),
        }
    }
}

fn how(status: ExitStatus) -> String {
    status.code().map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"))
}
