//! `pi-graft replay`: what plugins would have done in recorded sessions. Writes nothing.

mod compare;
pub(super) mod diff;
mod plugins;
mod verify;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use pi_session::branch::Branch;
use serde_json::{Value, json};

use crate::config::{Config, Env};
use crate::files::shown;
use crate::replay::report::Told;
use crate::replay::{Replay, ReplayError};
use crate::sandbox::{Plugin, Sandbox};

use super::cores::on_all_cores;
use super::failure::{Failure, Outcome};
use super::find::session_file;
use super::load::sandbox;
use super::out::{Out, say};
use super::progress::Progress;
use compare::Change;

/// Run plugins over recorded sessions, entry by entry, as if live.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// A plugin: a name of the config, or a .wasm; several run in the config's order. Default: all that the config enables
    #[arg(long = "plugin", value_name = "NAME-OR-WASM")]
    plugins: Vec<String>,
    /// The config of the plugins that are named, as JSON, in place of what the config says
    #[arg(long, value_name = "JSON")]
    plugin_config: Option<String>,
    /// Show the model's context at the end, without the plugins and with them, as a diff
    #[arg(long)]
    diff: bool,
    /// Replay once more with this config (.toml) or this version of a plugin (.wasm), and say what is different
    #[arg(long, value_name = "CONFIG-OR-WASM")]
    against: Option<PathBuf>,
    /// Compare with a report of before; exit with 1 if fuel or outcome changed
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Keep this report, for --baseline
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Verify that the grafts in these sessions are what the plugins propose again, given what the run log says that they were
    /// given; exit with 1 if not
    #[arg(long, conflicts_with_all = ["diff", "against", "baseline", "write_baseline", "time"])]
    verify: bool,
    /// Also say how long it took, which is not the same twice
    #[arg(long)]
    time: bool,
    /// The sessions: paths, session ids, or unique beginnings of one
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// What came of one round over all sessions.
struct Round {
    done: Vec<Done>,
    failed: Vec<(PathBuf, String)>,
    took: std::time::Duration,
}

/// One session.
struct Done {
    told: Told,
    /// Its branch without the plugins and with them, where they are to be shown.
    branches: Option<(Branch, Branch)>,
}

/// `pi-graft replay`.
///
/// # Errors
/// [`Failure`]: a plugin does not load, or a file of the arguments cannot be read or written.
pub(super) fn run(args: &ReplayArgs, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let files = args.files.iter().map(|file| session_file(file, config)).collect::<Result<Vec<_>, _>>()?;
    let baseline = args.baseline.as_deref().map(read_report).transpose()?;
    let config = Config::find(config)?;
    if args.verify {
        return verify::run(args, &config, &files, out);
    }
    let sandbox = sandbox()?;
    let round = args.round(&sandbox, &config, &args.plugins, &files)?;
    let against = args.against.as_deref().map(|other| args.other(&sandbox, &config, other, &files)).transpose()?;
    let report = round.to_json(args.diff)?;
    if let Some(path) = &args.write_baseline {
        write_report(path, &report)?;
    }
    let changes = baseline.map(|before| Ok::<_, Failure>(compare::compare(&before, &parsed(&report)?))).transpose()?;
    args.tell(&round, &report, against.as_ref(), changes.as_deref(), out)?;
    let well = round.failed.is_empty() && changes.is_none_or(|changes| changes.is_empty());
    Ok(if well { Outcome::Done } else { Outcome::Problems })
}

impl ReplayArgs {
    fn round(&self, sandbox: &Sandbox, config: &Config, named: &[String], files: &[PathBuf]) -> Result<Round, Failure> {
        let plugins = plugins::load(sandbox, config, named, self.plugin_config.as_deref())?;
        Ok(replay(plugins, files, self.diff))
    }

    /// The same with another config, or another version of a plugin.
    fn other(&self, sandbox: &Sandbox, config: &Config, other: &Path, files: &[PathBuf]) -> Result<Round, Failure> {
        if other.extension().is_some_and(|ext| ext == "toml") {
            return self.round(sandbox, &Config::load(other)?, &self.plugins, files);
        }
        let enabled =
            || config.plugins.iter().filter(|plugin| plugin.enabled).map(|plugin| plugin.name.clone()).collect();
        let named = if self.plugins.is_empty() { enabled() } else { self.plugins.clone() };
        self.round(sandbox, config, &plugins::with(&named, other), files)
    }

    fn tell(
        &self,
        round: &Round,
        report: &str,
        against: Option<&Round>,
        changes: Option<&[Change]>,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let other = against.map(|other| other.to_json(false)).transpose()?;
        let differs = match &other {
            Some(other) => Some(compare::compare(&parsed(report)?, &parsed(other)?)),
            None => None,
        };
        if !out.json {
            words::round(round, out)?;
            differs.iter().try_for_each(|differs| words::differences("against the other", differs, out))?;
            return changes.iter().try_for_each(|changes| words::differences("against the baseline", changes, out));
        }
        let list = |changes: &[Change]| Value::from(changes.iter().map(Change::to_json).collect::<Vec<_>>());
        let mut text = report.strip_suffix('}').unwrap_or(report).to_owned();
        if let (Some(other), Some(differs)) = (other, &differs) {
            text.push_str(&format!(",\"against\":{other},\"differences\":{}", list(differs)));
        }
        if let Some(changes) = changes {
            text.push_str(&format!(",\"changed\":{}", list(changes)));
        }
        if self.time {
            text.push_str(&format!(",\"time\":{}", round.time()));
        }
        out.line(text + "}")?;
        Ok(())
    }
}

/// Replays each session; as many at a time as there are cores.
fn replay(plugins: Vec<Arc<Plugin>>, files: &[PathBuf], keep: bool) -> Round {
    let begun = Instant::now();
    let replay = Replay { plugins, agent_dir: Env::of_process().agent_dir().ok() };
    let bytes: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum();
    let progress = Progress::of("replaying", 4 * bytes);
    let one = |file: &PathBuf| -> Result<Done, ReplayError> {
        let replayed = replay.session(file, &|bytes| progress.add(bytes))?;
        Ok(Done { told: replayed.told, branches: keep.then_some((replayed.before, replayed.after)) })
    };
    let mut round = Round { done: Vec::new(), failed: Vec::new(), took: std::time::Duration::ZERO };
    for (file, done) in files.iter().zip(on_all_cores(files, one)) {
        match done {
            Ok(done) => round.done.push(done),
            Err(e) => round.failed.push((file.clone(), e.to_string())),
        }
    }
    drop(progress);
    round.failed.iter().for_each(|(file, why)| say(about(file, why)));
    round.took = begun.elapsed();
    round
}

/// Some errors name their file themselves.
fn about(file: &Path, why: &str) -> String {
    let name = shown(file).to_string();
    if why.contains(&name) { why.to_owned() } else { format!("{name}: {why}") }
}

impl Round {
    /// The report, which is the same each time.
    fn to_json(&self, with_diff: bool) -> Result<String, Failure> {
        let mut sessions = Vec::new();
        for done in &self.done {
            let mut told = serde_json::to_string(&done.told).map_err(Failure::problem)?;
            if let Some((before, after)) = done.branches.as_ref().filter(|_| with_diff) {
                told.truncate(told.len() - 1);
                told.push_str(&format!(",\"diff\":{}}}", diff::to_json(before, after)?));
            }
            sessions.push(told);
        }
        let failed: Vec<_> = self.failed.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
        Ok(format!("{{\"sessions\":[{}],\"failed\":{}}}", sessions.join(","), Value::from(failed)))
    }

    /// How long it took.
    fn time(&self) -> Value {
        let plugins =
            self.done.iter().flat_map(|done| done.told.plugins.iter().map(|plugin| (&done.told.session, plugin)));
        let runs = plugins
            .map(|(session, plugin)| json!({ "session": session, "plugin": plugin.plugin, "micros": plugin.micros }));
        json!({ "millis": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX), "plugins": runs.collect::<Vec<_>>() })
    }
}

fn parsed(report: &str) -> Result<Value, Failure> {
    serde_json::from_str(report).map_err(Failure::problem)
}

fn read_report(path: &Path) -> Result<Value, Failure> {
    let said = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| said(&e))?;
    serde_json::from_str(&text).map_err(|e| said(&format!("no report of a replay: {e}")))
}

#[expect(clippy::disallowed_methods, reason = "a report of ours, where the user wants it; no session is near")]
fn write_report(path: &Path, report: &str) -> Result<(), Failure> {
    let written = std::fs::write(path, format!("{report}\n"));
    written.map_err(|e| Failure::problem(format!("{}: {e}", path.display())))
}
