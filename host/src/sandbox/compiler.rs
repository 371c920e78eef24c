//! From the bytes of a plugin to compiled code.
//!
//! A small component can keep a compiler busy for hours, or make it take all memory that there is, and nothing in the compiler
//! bounds that. So it works in a process of its own, which ends when it has used what [`Bounds`] allow for so large a component:
//! that costs the plugin its load, and nobody else anything. What compiling took is given back to the system too.
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread;

use pi_session::figures::used;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::LoadError;
use super::component::component_bytes;
use super::engine::{Memories, plain};
use super::limits::{MAX_CODE_BYTES, MAX_COMPONENT_BYTES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES};
use super::pieces::cut;

/// Threads that compile at one time, at most: each has its own work in memory.
const MOST_THREADS: usize = 4;
/// Bytes of what it says when it fails.
const MAX_WORDS: usize = 2 << 10;
/// How its process ends where what came in is no plugin.
const NO_PLUGIN: u8 = 10;
/// The same where it is over a limit.
const TOO_MUCH: u8 = 11;

/// The argument that makes this program the compiler of one plugin: it then calls [`serve`].
pub const COMPILE: &str = "compile-plugin";
/// The one behind it for [`Memories::Small`].
pub const SMALL: &str = "--small-memories";

/// What compiling a component may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    /// Bytes of address space, the program's own included.
    memory: u64,
    /// Seconds of processor time, on all cores together.
    seconds: u64,
}

impl Bounds {
    /// By the size of the component: a plugin in TypeScript brings its whole engine along.
    fn of(bytes: usize) -> Self {
        let (bytes, megabytes) = (bytes as u64, bytes as u64 >> 20);
        Self { memory: (1 << 30) + 128 * bytes, seconds: 20 + 10 * megabytes }
    }

    /// From here on this process, and all that it starts, keeps to them. Where the system has no such limit there is none.
    fn keep(self) {
        limit(Resource::As, self.memory, self.memory);
        // The first tells that it was the time; the second ends whatever goes on all the same.
        limit(Resource::Cpu, self.seconds, self.seconds + 2);
        limit(Resource::Core, 0, 0);
    }
}

/// What was limited to less before stays so.
fn limit(resource: Resource, current: u64, maximum: u64) {
    let before = getrlimit(resource);
    let least = |before: Option<u64>, now: u64| Some(before.map_or(now, |before| before.min(now)));
    let limits = Rlimit { current: least(before.current, current), maximum: least(before.maximum, maximum) };
    let _ = setrlimit(resource, limits);
}

/// Compiles a plugin in this process.
///
/// # Errors
/// If it is no plugin, or one that no run could hold.
pub(super) fn compile(memories: Memories, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    let none = |error: wasmtime::Error| LoadError::NotAPlugin(format!("{error:#}"));
    let engine = Engine::new(&plain(memories)).map_err(none)?;
    let component = Component::from_binary(&engine, &component_bytes(bytes)?).map_err(none)?;
    check_begins(&component)?;
    let code = component.serialize().map_err(none)?;
    within(code.len(), MAX_CODE_BYTES, "bytes of compiled code")?;
    Ok(code)
}

/// Refuses what is larger than any plugin.
pub(super) fn check_size(bytes: &[u8]) -> Result<(), LoadError> {
    within(bytes.len(), MAX_COMPONENT_BYTES, "bytes of a plugin's file")
}

/// What an instance would have from the start.
fn check_begins(component: &Component) -> Result<(), LoadError> {
    let Some(begins) = component.resources_required() else { return Ok(()) };
    let count = |n: Option<u64>| usize::try_from(n.unwrap_or(0)).unwrap_or(usize::MAX);
    within(begins.num_memories as usize, MAX_MEMORIES as usize, "memories")?;
    within(begins.num_tables as usize, MAX_TABLES as usize, "tables")?;
    within(count(begins.max_initial_table_size), MAX_TABLE_ELEMENTS, "table elements")
}

fn within(is: usize, most: usize, what: &str) -> Result<(), LoadError> {
    if is <= most { Ok(()) } else { Err(LoadError::TooMuch(used(is as u64, most as u64, what))) }
}

/// The compiler's process: compiles what comes on standard input, within its bounds, and puts what comes of it on standard
/// output, or on standard error why nothing does. `small` is for [`Memories::Small`].
#[must_use]
pub fn serve(small: bool) -> ExitCode {
    let answered = answer(if small { Memories::Small } else { Memories::Roomy });
    answered.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn answer(memories: Memories) -> io::Result<u8> {
    let mut bytes = Vec::new();
    io::stdin().take(MAX_COMPONENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    go_first();
    Bounds::of(bytes.len()).keep();
    let (code, why) = match compile(memories, &bytes) {
        Ok(code) => return io::stdout().write_all(&code).map(|()| 0),
        Err(LoadError::TooMuch(why)) => (TOO_MUCH, why),
        Err(LoadError::NotAPlugin(why)) => (NO_PLUGIN, why),
        Err(other) => (NO_PLUGIN, other.to_string()),
    };
    io::stderr().write_all(why.as_bytes())?;
    Ok(code)
}

/// Where memory runs out, this process goes, and none that serves anybody.
#[expect(clippy::disallowed_methods, reason = "a setting of this process's own, which is a file on Linux")]
fn go_first() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Nothing came of compiling.
pub(super) struct NotCompiled {
    /// Why.
    pub(super) error: LoadError,
    /// It took much, and would take as much and come to the same each time.
    pub(super) is_lasting: bool,
}

/// Has `program` compile a plugin, in a process of its own.
///
/// # Errors
/// If it is no plugin, or its compiler used up its bounds.
pub(super) fn compile_beside(program: &Path, memories: Memories, bytes: &[u8]) -> Result<Vec<u8>, NotCompiled> {
    let none = |error: io::Error| NotCompiled { error: LoadError::Compiler(error.to_string()), is_lasting: false };
    let mut child = start(program, memories).map_err(none)?;
    // It says nothing before it has read all. If it ends before that, its end says why.
    let _ = child.stdin.take().map(|mut to| to.write_all(bytes));
    let output = child.wait_with_output().map_err(none)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let error = why(&output, Bounds::of(bytes.len()));
    // Which process goes when the machine's memory runs out is no fault of the plugin.
    let was_killed = output.status.signal() == Some(Signal::KILL.as_raw());
    Err(NotCompiled { is_lasting: matches!(error, LoadError::TooMuch(_)) && !was_killed, error })
}

fn start(program: &Path, memories: Memories) -> io::Result<Child> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let mut command = Command::new(program);
    command.arg(COMPILE).env("RAYON_NUM_THREADS", threads.to_string());
    if memories == Memories::Small {
        command.arg(SMALL);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// Why a compiler's process gave nothing.
fn why(output: &Output, bounds: Bounds) -> LoadError {
    let words = String::from_utf8_lossy(&output.stderr);
    let words = cut(words.trim(), MAX_WORDS);
    let all = |most: u64, what: &str| LoadError::TooMuch(used(most, most, what));
    let is = |signal: Signal| output.status.signal() == Some(signal.as_raw());
    match output.status.code() {
        Some(code) if code == i32::from(TOO_MUCH) => LoadError::TooMuch(words.to_owned()),
        Some(code) if code == i32::from(NO_PLUGIN) => LoadError::NotAPlugin(words.to_owned()),
        _ if is(Signal::XCPU) => all(bounds.seconds, "seconds of processor time to compile it"),
        // Either this process ran into its limit, or the system chose it when memory ran out.
        _ if is(Signal::KILL) || words.contains("memory allocation of") => {
            all(bounds.memory, "bytes of memory to compile it")
        }
        _ => LoadError::Compiler(format!("it ended with {}: {words}", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_component_may_take_longer() {
        assert_eq!(Bounds::of(100), Bounds { memory: (1 << 30) + 12_800, seconds: 20 });
        assert_eq!(Bounds::of(12 << 20).seconds, 140);
    }
}
