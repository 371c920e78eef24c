//! How things stand, gathered for `pi-graft status`: what the loop has seen of each session, and what store and files say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pi_session::json::Json;

use crate::deliver::presence::Presence;
use crate::deliver::process::UNSEEN;
use crate::deliver::settle::State;
use crate::journal::{Batch, JournalError, Recorded, RunRecord};
use crate::sandbox::Plugin;
use crate::wire::control::{LogLine, PendingStatus, PluginStatus, SessionStatus, Status};
use crate::wire::quarantine::Quarantine;

use super::feed::log_line;
use super::hold;
use super::quarantine;
use super::session::cwd_of;
use super::world::{World, now_ms, unix_ms};

/// What the loop knows of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub working: bool,
    pub bridged: Vec<u32>,
    pub paused: bool,
    pub failing: bool,
    pub failure: Option<String>,
    pub branch: Option<(State, Presence)>,
    pub waiting: Option<&'static str>,
    pub runs: usize,
}

/// Adds the sessions and the last failures to `status`: those with something to say, or `all` that are known.
pub(super) fn gather(
    world: &World,
    status: Status,
    seen: Vec<(PathBuf, Seen)>,
    all: bool,
) -> Result<Status, JournalError> {
    let mut sessions: BTreeMap<PathBuf, Seen> = seen.into_iter().collect();
    let further = if all { world.paths() } else { world.unfinished()? };
    for path in further {
        sessions.entry(path).or_default();
    }
    let rows = sessions.iter().map(|(path, seen)| session(world, path, seen)).collect::<Result<Vec<_>, _>>()?;
    let plugins = with_failures(status.plugins, &quarantine::of_world(world)?);
    Ok(Status { sessions: rows, failures: failures(world)?, plugins, ..status })
}

/// The plugins, with those that are not loaded.
pub(super) fn plugins(loaded: &[Arc<Plugin>], faults: &[(String, String)]) -> Vec<PluginStatus> {
    let why = |name: &str| faults.iter().find(|(of, _)| of == name).map(|(_, why)| why.clone());
    let there = loaded.iter().map(|plugin| PluginStatus {
        name: plugin.name().to_owned(),
        version: Some(plugin.version().to_owned()),
        digest: Some(plugin.digest().to_owned()),
        why: why(plugin.name()),
        ..PluginStatus::default()
    });
    let lacking = faults.iter().filter(|(name, _)| !loaded.iter().any(|plugin| plugin.name() == name));
    let lacking = lacking.map(|(name, why)| PluginStatus {
        name: name.clone(),
        version: None,
        digest: None,
        why: Some(why.clone()),
        ..PluginStatus::default()
    });
    there.chain(lacking).collect()
}

/// The same with what failed of each.
fn with_failures(mut plugins: Vec<PluginStatus>, failed: &Quarantine) -> Vec<PluginStatus> {
    for plugin in &mut plugins {
        plugin.suspended = failed.suspended_where(&plugin.name);
        (plugin.retrying, plugin.quarantined) = failed.counts(&plugin.name);
    }
    plugins
}

fn failures(world: &World) -> Result<Vec<LogLine>, JournalError> {
    let failed = world.feed().failures(|most| world.journal.runs(most, RunRecord::is_failure))?;
    Ok(failed.iter().map(|line| log_line(line, world.path_of(&line.session))).collect())
}

/// Why nothing happens for what a copy came with.
const COPY: &str = "a copy of a session that is elsewhere: what was in it when it came is history and wakes nobody";

fn session(world: &World, path: &Path, seen: &Seen) -> Result<SessionStatus, JournalError> {
    let record = world.at(path, |key, record| (key, record.session_id.clone(), record.entries));
    let is_copy = world.at(path, |_, record| record.copied_ms.is_some()).unwrap_or_default();
    let pending = record.as_ref().map_or_else(|| Ok(Vec::new()), |(key, ..)| world.journal.pending(*key))?;
    let (_, id, entries) = record.map_or((None, String::new(), 0), |(key, id, entries)| (Some(key), id, entries));
    let written = std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let cwd = cwd_of(path);
    let quiet_ms = written.and_then(|time| u64::try_from(now_ms() - unix_ms(time)).ok());
    let (presence, presence_why) = presence(world, path, cwd.as_deref(), seen, quiet_ms);
    Ok(SessionStatus {
        path: path.to_path_buf(),
        id,
        entries,
        state: state(seen, written.is_some()).to_owned(),
        bridged: seen.bridged.clone(),
        presence: presence.to_owned(),
        presence_why,
        quiet_ms,
        waiting: waiting(seen, written.is_some(), !pending.is_empty()),
        pending: pending.iter().map(Recorded::batch).map(pending_of).collect(),
        history: is_copy.then(|| COPY.to_owned()),
        runs: seen.runs,
        failure: seen.failure.clone(),
        cwd,
    })
}

fn waiting(seen: &Seen, is_there: bool, pends: bool) -> Option<String> {
    match seen.waiting {
        _ if pends && !is_there => Some("its file is not there; kept for 30 days, in case it comes back".to_owned()),
        why => why.map(str::to_owned),
    }
}

fn state(seen: &Seen, is_there: bool) -> &'static str {
    match seen {
        Seen { paused: true, .. } => "paused",
        Seen { failing: true, .. } => "failing",
        Seen { working: true, .. } => "working",
        Seen { bridged, .. } if !bridged.is_empty() => "bridged",
        _ if !is_there => "gone",
        Seen { branch: Some((_, Presence::Here)), .. } => "live",
        Seen { branch: Some((State::Finished, _)), .. } => "settled",
        Seen { branch: Some((State::Full, _)), .. } => "full",
        Seen { branch: Some((State::Open, _)), .. } => "open",
        Seen { branch: Some((State::Unanswered, _)), .. } => "unanswered",
        Seen { branch: None, .. } => "quiet",
    }
}

fn presence(
    world: &World,
    path: &Path,
    cwd: Option<&str>,
    seen: &Seen,
    quiet_ms: Option<u64>,
) -> (&'static str, String) {
    if !seen.bridged.is_empty() {
        let number =
            |pid: &u32| if *pid == UNSEEN { "that cannot be seen from here".to_owned() } else { pid.to_string() };
        let pids: Vec<String> = seen.bridged.iter().map(number).collect();
        return ("here", format!("a bridge says so (process {})", pids.join(", ")));
    }
    if world.settings.closed {
        return ("absent", "the user says so (--closed)".to_owned());
    }
    let quiet = Duration::from_millis(quiet_ms.unwrap_or(0));
    let held =
        world.at(path, |_, record| hold::why_here(&record.grafts, quiet, world.steady_ms(), &world.settings.times));
    if let Some(why) = held.flatten() {
        return ("here", why);
    }
    let processes = world.processes();
    let cwd = cwd.map(Path::new);
    let there = cwd.map_or(0, |cwd| processes.in_dir(cwd));
    let newer = cwd.map_or(0, |cwd| hold::newer_there(&processes, path, cwd));
    match processes.presence(cwd, newer) {
        Presence::Here => ("here", format!("{there} Pi in its directory, {newer} newer sessions there")),
        Presence::Absent => ("absent", "no Pi is seen in its directory".to_owned()),
        Presence::Unknown => ("unknown", "not all processes can be seen from here".to_owned()),
    }
}

/// A batch that waits, as the command line sees it.
#[must_use]
pub fn pending_of(batch: &Batch) -> PendingStatus {
    let drafts = Json::parse(batch.drafts.as_bytes()).ok();
    let kinds = drafts.into_iter().flat_map(Json::items).filter_map(|draft| draft.get("type")?.as_str());
    PendingStatus {
        batch: batch.id.clone(),
        plugin: batch.plugin.clone(),
        kinds: kinds.map(|kind| kind.into_owned()).collect(),
        trigger: batch.trigger.clone(),
        made_ms: batch.made_ms,
    }
}
