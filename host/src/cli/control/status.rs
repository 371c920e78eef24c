//! How things stand, for people or as JSON.

use std::collections::HashMap;
use std::time::Duration;

use crate::cli::when::Zone;
use crate::config::duration_text;
use crate::daemon::status::pending_of;
use crate::daemon::world::now_ms;
use crate::journal::{Journal, JournalError, Recorded};
use crate::wire::control::{PluginStatus, RootStatus, SessionStatus, Status};

use super::{Failure, Out};

/// What the store alone says: the sessions for which something is pending.
pub(in crate::cli) fn of_store(journal: &Journal) -> Result<Status, JournalError> {
    let sessions = journal.sessions()?;
    let records: HashMap<_, _> = sessions.iter().map(|(key, record)| (*key, record)).collect();
    let mut status = Status { known: sessions.len(), ..Status::default() };
    for key in journal.sessions_with_pending()? {
        let pending = journal.pending(key)?;
        let Some(record) = records.get(&key) else { continue };
        status.sessions.push(SessionStatus {
            path: record.path.clone(),
            id: record.session_id.clone(),
            entries: record.entries,
            state: "quiet".to_owned(),
            presence: "unknown".to_owned(),
            waiting: Some("no daemon runs".to_owned()),
            pending: pending.iter().map(Recorded::batch).map(pending_of).collect(),
            ..SessionStatus::default()
        });
    }
    Ok(status)
}

pub(super) fn write(status: &Status, out: &mut Out) -> Result<(), Failure> {
    if out.json {
        return Ok(out.line(serde_json::to_string(status).map_err(Failure::problem)?)?);
    }
    if let Some(daemon) = &status.daemon {
        let config = daemon.config.as_ref().map_or("the shipped config".into(), |path| path.display().to_string());
        let since = Zone::of_process().seconds(daemon.since_ms);
        out.line(format!("pi-graft {}, process {}, since {since}", daemon.version, daemon.pid))?;
        out.line(format!("config  {config}"))?;
        out.line(format!("state   {}", daemon.state_dir.display()))?;
        if daemon.paused {
            out.line("PAUSED: nothing runs and nothing is written; end it with `pi-graft resume`")?;
        }
    }
    write_plugins(&status.plugins, out)?;
    write_roots(&status.roots, out)?;
    write_sessions(status, out)?;
    write_failures(status, out)
}

pub(super) fn write_plugins(plugins: &[PluginStatus], out: &mut Out) -> Result<(), Failure> {
    for plugin in plugins {
        let version = plugin.version.as_deref().unwrap_or("not loaded");
        let digest: String = plugin.digest.iter().flat_map(|digest| digest.chars().take(12)).collect();
        out.line(format!("plugin  {} {version} {digest}", plugin.name).trim_end())?;
        if let Some(why) = &plugin.why {
            out.line(format!("        {why}"))?;
        }
        if let Some(failed) = failed(plugin) {
            out.line(format!("        {failed}; see `pi-graft quarantine list`"))?;
        }
    }
    Ok(())
}

/// What failed of a plugin, in words.
pub(in crate::cli) fn failed(plugin: &PluginStatus) -> Option<String> {
    let suspended = plugin.suspended.as_ref().map(|there| format!("SUSPENDED {there}"));
    let count = |n: usize, what: &str| (n > 0).then(|| format!("{n} runs {what}"));
    let retrying = count(plugin.retrying, "are tried again");
    let parts: Vec<_> =
        suspended.into_iter().chain(retrying).chain(count(plugin.quarantined, "in quarantine")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn write_roots(roots: &[RootStatus], out: &mut Out) -> Result<(), Failure> {
    for root in roots {
        let why = root.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        out.line(format!("root    {}: {}{why}", root.path.display(), root.state))?;
    }
    Ok(())
}

fn write_sessions(status: &Status, out: &mut Out) -> Result<(), Failure> {
    out.line(format!("\n{} sessions known", status.known))?;
    status.sessions.iter().try_for_each(|session| write_session(session, out))
}

fn write_session(session: &SessionStatus, out: &mut Out) -> Result<(), Failure> {
    let id: String = session.id.chars().take(8).collect();
    let quiet = session.quiet_ms.map_or_else(String::new, |ms| format!(", quiet for {}", ago(ms)));
    out.line(format!("{id:<8}  {:<10}  {} entries{quiet}", session.state, session.entries))?;
    out.line(format!("          {}", session.path.display()))?;
    if !session.presence_why.is_empty() {
        out.line(format!("          a Pi: {}: {}", session.presence, session.presence_why))?;
    }
    if let Some(why) = session.failure.as_ref().or(session.waiting.as_ref()) {
        out.line(format!("          waits: {why}"))?;
    }
    if let Some(why) = &session.history {
        out.line(format!("          {why}"))?;
    }
    for batch in &session.pending {
        let age = ago(u64::try_from(now_ms() - batch.made_ms).unwrap_or(0));
        let kinds = batch.kinds.join(", ");
        out.line(format!(
            "          pending {}: {} of {} on {}, {age} old",
            batch.batch, kinds, batch.plugin, batch.trigger
        ))?;
    }
    Ok(())
}

fn write_failures(status: &Status, out: &mut Out) -> Result<(), Failure> {
    if status.failures.is_empty() {
        return Ok(());
    }
    out.line("\nruns that failed last:")?;
    super::log::write(&status.failures, out)
}

/// A time span, to the second below an hour and to the minute above.
fn ago(ms: u64) -> String {
    let seconds = ms / 1000;
    duration_text(Duration::from_secs(if seconds < 3600 { seconds } else { seconds / 60 * 60 }))
}
