//! What the command line asks of the daemon, answered: how things stand, the log, a pause, a reload.
//!
//! The loop only says what it knows itself. Whatever reads the store or a file is done on a worker.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tracing::{info, warn};

use crate::journal::JournalError;
use crate::sandbox::Plugin;
use crate::wire::control::{DaemonStatus, LogFilter, PluginStatus, Reloaded, Reply, Request, Status};

use super::settings::Settings;
use super::socket::Conn;
use super::status::{self, Seen};
use super::world::World;
use super::{Daemon, Event};

/// Lines of the log that are told at once, at most.
const MOST_LINES: usize = 10_000;

/// What is said of the daemon, and how its config is read again.
pub struct Identity {
    /// What `status` says of it.
    pub about: DaemonStatus,
    /// Plugins that are not loaded, or of which an older one runs, and why.
    pub faults: Vec<(String, String)>,
    /// Reads config and plugins again. Takes what is loaded now, to keep of it what cannot be replaced.
    pub read_again: ReadAgain,
}

/// Reads config and plugins again, given the plugins that are loaded now; or says why that cannot be.
pub type ReadAgain = Arc<dyn Fn(&[Arc<Plugin>]) -> Result<Fresh, String> + Send + Sync>;

/// What a reload read.
pub struct Fresh {
    /// The plugins in the config's order.
    pub plugins: Vec<Arc<Plugin>>,
    /// What is to be done.
    pub settings: Settings,
    /// Plugins that could not be loaded, and why.
    pub faults: Vec<(String, String)>,
}

/// Answers, and ends the connection.
pub(super) fn answer(conn: &Conn, reply: Result<impl Serialize, String>) {
    conn.send(&said(reply));
    conn.close();
}

/// An answer that cannot be put into words is an error, never one without a word.
pub(super) fn said(reply: Result<impl Serialize, String>) -> Reply {
    match reply.and_then(|ok| serde_json::to_value(ok).map_err(|e| format!("a bug in pi-graft: {e}"))) {
        Ok(ok) => Reply::Ok { ok },
        Err(error) => Reply::Error { error },
    }
}

impl Daemon {
    /// The command line wants something.
    pub(super) fn control(&mut self, conn: Conn, request: Request) {
        match request {
            Request::Status { all } => self.status(conn, all),
            Request::Log { most, filter, follow } => self.log(conn, most, filter, follow),
            Request::Pause { session } => answer(&conn, self.pause(session.as_deref(), true)),
            Request::Resume { session } => answer(&conn, self.pause(session.as_deref(), false)),
            Request::Reload => self.reload(conn),
            Request::Compact(want) => self.wish(conn, want),
            Request::Quarantine => self.quarantine(conn),
            Request::Retry(which) => self.retry(conn, which),
            Request::Rows(wanted) => self.rows(conn, wanted),
            Request::Texts(wanted) => self.texts(conn, wanted),
        }
    }

    fn status(&self, conn: Conn, all: bool) {
        let paused = self.world.is_paused();
        let about = self.identity.as_ref().map(|identity| DaemonStatus { paused, ..identity.about.clone() });
        let status = Status {
            daemon: about,
            plugins: self.plugins(),
            roots: self.roots.status(),
            known: self.world.count(),
            ..Status::default()
        };
        let seen: Vec<(PathBuf, Seen)> = self.slots.keys().map(|path| (path.clone(), self.seen(path))).collect();
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || {
            answer(&conn, status::gather(&world, status, seen, all).map_err(|e| e.to_string()));
        });
    }

    fn seen(&self, path: &Path) -> Seen {
        let slot = &self.slots[path];
        Seen {
            working: slot.working,
            bridged: slot.links.view().iter().map(|bridge| bridge.pid).collect(),
            paused: slot.paused,
            failing: slot.failures > 0,
            failure: self.summary.failed.get(path).cloned(),
            branch: slot.seen,
            waiting: slot.waiting,
            runs: slot.jobs,
        }
    }

    fn plugins(&self) -> Vec<PluginStatus> {
        let faults = self.identity.as_ref().map_or(&[][..], |identity| &identity.faults);
        status::plugins(&self.world.plugins, faults)
    }

    fn log(&self, conn: Conn, most: usize, filter: LogFilter, follow: bool) {
        let world = Arc::clone(&self.world);
        tokio::task::spawn_blocking(move || {
            let told = tell_log(&world, &conn, most.min(MOST_LINES), &filter, follow);
            match told {
                Err(e) => answer(&conn, Err::<(), _>(e.to_string())),
                Ok(()) if !follow => conn.close(),
                Ok(()) => {}
            }
        });
    }

    /// Begins or ends a pause, of everything or of one session. Gives the session's path.
    fn pause(&mut self, session: Option<&str>, paused: bool) -> Result<Option<String>, String> {
        let word = if paused { "paused" } else { "resumed" };
        let Some(session) = session else {
            self.world.pause(paused);
            info!("{word}");
            self.go_on();
            return Ok(None);
        };
        let mut found = self.world.with_prefix(session);
        let path = match (found.pop(), found.len()) {
            (Some(path), 0) => path,
            (None, _) => return Err(format!("no session whose id begins with {session:?} is known here")),
            (Some(_), more) => {
                return Err(format!("{session:?} begins the ids of {} sessions; say more of it", more + 1));
            }
        };
        info!(session = %path.display(), "{word}");
        self.slot(&path).paused = paused;
        self.go_on();
        Ok(Some(path.to_string_lossy().into_owned()))
    }

    /// Whatever happened during a pause is looked at now.
    fn go_on(&mut self) {
        let waits = self
            .slots
            .iter()
            .filter(|(_, slot)| !slot.working && !slot.paused && (slot.again || slot.waiting.is_some()));
        let waits: Vec<PathBuf> = waits.map(|(path, _)| path.clone()).collect();
        for path in waits {
            self.slot(&path).again = false;
            self.touch(&path);
        }
    }

    fn reload(&self, conn: Conn) {
        let Some(identity) = &self.identity else {
            return answer(&conn, Err::<(), _>("this daemon cannot read its config again".to_owned()));
        };
        let (read, world, to) = (Arc::clone(&identity.read_again), Arc::clone(&self.world), self.to.clone());
        tokio::task::spawn_blocking(move || {
            let fresh = read(&world.plugins);
            let _ = to.send(Event::Reloaded(conn, Box::new(fresh)));
        });
    }

    /// Config and plugins were read again: from now on each step works with them. What is wrong with the new ones is told,
    /// and the old ones stay.
    pub(super) fn reloaded(&mut self, conn: &Conn, fresh: Result<Fresh, String>) {
        let fresh = match fresh {
            Ok(fresh) => fresh,
            Err(why) => {
                warn!("the config is not reloaded: {why}");
                return answer(conn, Err::<(), _>(format!("nothing is changed: {why}")));
            }
        };
        self.world = Arc::new(self.world.with(fresh.plugins, fresh.settings));
        if let Some(identity) = &mut self.identity {
            identity.faults = fresh.faults;
        }
        info!(roots = ?self.world.settings.roots, plugins = self.world.plugins.len(), "reloaded");
        self.roots.set(&self.world.settings.roots);
        self.forget_unfollowed();
        self.lift_all();
        let paths: Vec<PathBuf> = self.slots.keys().cloned().collect();
        // An entry that is written behind the answer is for the new plugins: no older step may still be reading then.
        let old = self.slots.iter().filter(|(_, slot)| slot.working).map(|(path, _)| path.clone()).collect();
        paths.iter().for_each(|path| self.touch(path));
        self.reloading.push((conn.clone(), old));
        self.answer_reloads(None);
    }

    /// A step has ended: whoever waits for the last one that began before a reload is answered.
    pub(super) fn answer_reloads(&mut self, ended: Option<&Path>) {
        if self.reloading.is_empty() {
            return;
        }
        let done = Reloaded { plugins: self.plugins(), roots: self.world.settings.roots.clone() };
        self.reloading.retain_mut(|(conn, old)| {
            ended.map(|path| old.remove(path));
            if old.is_empty() {
                answer(conn, Ok(done.clone()));
            }
            !old.is_empty()
        });
    }
}

fn tell_log(world: &World, conn: &Conn, most: usize, filter: &LogFilter, follow: bool) -> Result<(), JournalError> {
    let lines = || {
        let mut lines = world.journal.runs(most, |line| filter.wants(&line.session, &line.plugin))?;
        lines.reverse();
        Ok(lines)
    };
    world.feed().tell(conn, follow.then(|| filter.clone()), |id| world.path_of(id), lines)
}
