//! The bridges that are connected: which session each has open, and what they ask of its next step.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tracing::{debug, info};

use crate::wire::VERSION;
use crate::wire::bridge::{Ask, FromPi, Hello, Moved, Pushed, ToPi, Welcome};

use super::Daemon;
use super::room::Held;
use super::settled::{SettledDone, SettledLost};
use super::socket::Conn;
use super::wished::Wish;

/// Milliseconds that Pi may wait for us where a compaction is wanted, which a model may have to make.
const COMPACT_MS: u64 = 120_000;

/// What has gathered for a session's next step.
#[derive(Default)]
pub struct Bell {
    /// `on-settled` runs that were made.
    pub settled: Vec<SettledDone>,
    /// Such runs that were lost.
    pub lost: Vec<SettledLost>,
    /// Failed runs that are to be made again now, by id.
    pub redo: Vec<String>,
    /// What Pi asks; it waits for the answers.
    pub asks: Vec<Asked>,
    /// Compactions that the command line wants.
    pub wishes: Vec<Wish>,
    /// What became of pushes.
    pub pushed: Vec<Pushed>,
    /// Bridges that left this session since the last step.
    pub left: Vec<Left>,
    /// Others may wait for a worker: the step is to end after a while, and the next goes on.
    pub yields: bool,
    /// The bridges that have this session at this moment, the one that came last at the end.
    pub bridges: Vec<Bridge>,
}

/// A bridge whose Pi has a session open.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// To speak to it.
    pub conn: Conn,
    /// Pi's process, by its number here.
    pub pid: u32,
    /// Where Pi goes on, as it said last.
    pub leaf: Option<String>,
    /// Whether Pi waits for its user, as it said last.
    pub idle: bool,
    /// When it came, or came back.
    pub since: Instant,
}

/// A bridge that left a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Pi's process.
    pub pid: u32,
    /// What it said on leaving: `quit`, `new`, `resume`, `fork`, `reload`; none if the connection merely ended.
    pub bye: Option<String>,
}

/// A connection, and the number of an ask on it.
pub type AskId = (u64, u64);

/// An ask that waits for its answer. Dropping it answers that there is nothing, so that no failure keeps Pi waiting.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub ask: Ask,
    /// When it came.
    pub at: Instant,
    /// The process of the Pi that asks.
    pub pid: u32,
    conn: Conn,
    over: Arc<AtomicBool>,
    answered: bool,
    /// The room that it takes until it is answered.
    _held: Option<Held>,
}

impl Asked {
    /// An ask of a Pi that never aborts.
    #[must_use]
    pub fn new(ask: Ask, pid: u32, conn: Conn) -> Asked {
        Asked { ask, at: Instant::now(), pid, conn, over: Arc::default(), answered: false, _held: None }
    }

    /// What tells it from every other ask: a bridge counts its own only.
    #[must_use]
    pub fn id(&self) -> AskId {
        (self.conn.id(), self.ask.ask)
    }

    /// Whether nobody waits for the answer any more: Pi aborted, or is gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.conn.is_closed()
    }

    /// The sign of [`Asked::is_over`], for a run that is to end with it.
    #[must_use]
    pub fn over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.over)
    }

    /// Answers with entries, which were checked against the leaf that the ask named; none: nothing to be taken in.
    pub fn answer(mut self, entries: Vec<Box<RawValue>>) {
        self.send(entries, None);
    }

    /// Answers with a compaction, or that there is none.
    pub fn compaction(mut self, compaction: Option<Box<RawValue>>) {
        self.send(Vec::new(), compaction);
    }

    fn send(&mut self, entries: Vec<Box<RawValue>>, compaction: Option<Box<RawValue>>) {
        self.answered = true;
        let (answer, leaf) = (self.ask.ask, self.ask.leaf.clone());
        match self.ask.wants_compaction() {
            true => self.conn.send(&ToPi::Compaction { answer, leaf, compaction }),
            false => self.conn.send(&ToPi::Answer { answer, leaf, entries }),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.answered && !self.is_over() {
            self.send(Vec::new(), None);
        }
    }
}

/// The bridges of one session.
#[derive(Default)]
pub(super) struct Links {
    bridges: Vec<Bridge>,
    /// Asks that a step has, or will have: bridge and number, and the sign that they are over.
    asks: Vec<(u64, u64, Arc<AtomicBool>)>,
}

impl Links {
    pub(super) fn is_empty(&self) -> bool {
        self.bridges.is_empty()
    }

    pub(super) fn view(&self) -> Vec<Bridge> {
        self.bridges.clone()
    }

    fn of(&mut self, conn: u64) -> Option<&mut Bridge> {
        self.bridges.iter_mut().find(|bridge| bridge.conn.id() == conn)
    }

    fn leave(&mut self, conn: u64, bye: Option<String>) -> Option<Left> {
        let at = self.bridges.iter().position(|bridge| bridge.conn.id() == conn)?;
        self.cancel(|of, _| of == conn);
        Some(Left { pid: self.bridges.remove(at).pid, bye })
    }

    fn cancel(&mut self, which: impl Fn(u64, u64) -> bool) {
        let over = self.asks.extract_if(.., |(conn, ask, _)| which(*conn, *ask));
        over.for_each(|(_, _, over)| over.store(true, Ordering::Relaxed));
    }

    fn ask(&mut self, conn: Conn, ask: Ask, held: Held) -> Option<Asked> {
        // What only its answer holds is answered.
        self.asks.retain(|(_, _, over)| Arc::strong_count(over) > 1);
        let pid = self.of(conn.id())?.pid;
        let over = Arc::new(AtomicBool::new(false));
        self.asks.push((conn.id(), ask.ask, Arc::clone(&over)));
        Some(Asked { ask, at: Instant::now(), pid, conn, over, answered: false, _held: Some(held) })
    }
}

impl Daemon {
    /// A bridge has said something.
    pub(super) fn hear_pi(&mut self, conn: Conn, message: FromPi, held: Held) {
        if let FromPi::Hello(hello) = message {
            return self.hello(conn, hello);
        }
        let Some(path) = self.linked.get(&conn.id()).cloned() else { return };
        match message {
            FromPi::Hello(_) => {}
            FromPi::Moved(moved) => self.moved(&conn, &path, moved),
            FromPi::Ask(ask) => self.asked(conn, &path, ask, held),
            FromPi::Cancel(ask) => self.slot(&path).links.cancel(|of, n| of == conn.id() && n == ask),
            FromPi::Pushed(pushed) => {
                self.slot(&path).bell.pushed.push(pushed);
                self.touch(&path);
            }
            FromPi::Bye(why) => self.left(conn.id(), Some(why)),
        }
    }

    /// A bridge says which session its Pi has open, for the first time or because it is another one now.
    fn hello(&mut self, conn: Conn, hello: Hello) {
        let path = hello.session.file.as_deref().map(real_path);
        if self.linked.get(&conn.id()) != path.as_ref() {
            self.left(conn.id(), Some(hello.why.clone()));
        }
        let refusal = match &path {
            None => Some("this session is kept in memory only".to_owned()),
            Some(path) => self.refusal(path, &hello.session.cwd),
        };
        conn.send(&ToPi::Welcome { welcome: welcome(refusal.as_deref(), self.world.settings.turn_end) });
        if let (Some(path), None) = (path, refusal) {
            self.link(conn, path, hello);
        }
    }

    fn link(&mut self, conn: Conn, path: PathBuf, hello: Hello) {
        let pid = conn.process(hello.pid);
        info!(session = %path.display(), pid, says = hello.pid, "a Pi with a bridge has it open");
        self.linked.insert(conn.id(), path.clone());
        self.world.note_bridge(&path, true);
        let bridge = Bridge { conn, pid, leaf: hello.leaf, idle: hello.idle, since: Instant::now() };
        let links = &mut self.slot(&path).links;
        links.bridges.retain(|known| known.conn.id() != bridge.conn.id());
        links.bridges.push(bridge);
        self.touch(&path);
    }

    fn moved(&mut self, conn: &Conn, path: &Path, moved: Moved) {
        let Some(bridge) = self.slot(path).links.of(conn.id()) else { return };
        (bridge.leaf, bridge.idle) = (moved.leaf, moved.idle);
        self.touch(path);
    }

    fn asked(&mut self, conn: Conn, path: &Path, ask: Ask, held: Held) {
        debug!(session = %path.display(), ask = ask.ask, at = ask.at, "Pi asks");
        let slot = self.slot(path);
        if let Some(bridge) = slot.links.of(conn.id()) {
            bridge.leaf.clone_from(&ask.leaf);
        }
        let asked = slot.links.ask(conn, ask, held);
        slot.bell.asks.extend(asked);
        self.wake(path);
        if !self.slot(path).working {
            // It failed just now and is left alone for a while: Pi must not wait for that.
            self.slot(path).bell.asks.clear();
        }
    }

    /// A bridge leaves its session, or is gone.
    pub(super) fn left(&mut self, conn: u64, bye: Option<String>) {
        let Some(path) = self.linked.remove(&conn) else { return };
        let slot = self.slot(&path);
        if let Some(left) = slot.links.leave(conn, bye) {
            info!(session = %path.display(), pid = left.pid, bye = left.bye.as_deref(), "its bridge has left");
            slot.bell.left.push(left);
        }
        if slot.links.is_empty() {
            self.world.note_bridge(&path, false);
        }
        self.touch(&path);
    }

    /// Why a session would not be followed if it stood at this path: Pi writes the file with the first answer only.
    fn refusal(&self, path: &Path, cwd: &str) -> Option<String> {
        if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
            return Some("the path of this session is not absolute, or leads up by `..`".to_owned());
        }
        let is_there = match std::fs::symlink_metadata(path) {
            Ok(_) => true,
            Err(e) if e.kind() == ErrorKind::NotFound => false,
            Err(e) => return Some(format!("no session can be at the path of this one: {e}")),
        };
        let settings = &self.world.settings;
        let named = crate::files::locate::is_session_name(path) && (settings.by_path)(path);
        let followed = named
            && (settings.by_cwd)(Path::new(cwd))
            && if is_there { self.is_followed(path) || self.roots.begins(path) } else { self.roots.awaits(path) };
        (!followed).then(|| "this session is not followed here".to_owned())
    }
}

fn welcome(refusal: Option<&str>, turn_end: Duration) -> Welcome {
    let turn_end_ms = u64::try_from(turn_end.as_millis()).unwrap_or(u64::MAX);
    Welcome {
        v: VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        serves: refusal.is_none(),
        why: refusal.map(str::to_owned),
        turn_end_ms,
        settle_ms: turn_end_ms,
        compact_ms: COMPACT_MS,
    }
}

/// The path by which the daemon knows a file: that of its real directory, which alone must be there.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
    match (dir, path.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => path.to_path_buf(),
    }
}
