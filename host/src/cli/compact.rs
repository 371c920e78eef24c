//! `pi-graft compact`: one session now, with the compaction plugin of the config. A daemon that runs does it; where none
//! runs, this process is the daemon for so long.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi_session::Branch;
use pi_session::json::Json;
use pi_session::receipt;
use pi_session::settings::Given;
use pi_session::tree::Source;
use serde_json::json;

use crate::config::Config;
use crate::daemon::Daemon;
use crate::files::lock::{private_dir, runtime_dir};
use crate::wire::compact::{Compact, Compacted};
use crate::wire::control::Request;

use super::control::{Client, understood};
use super::find::session_file;
use super::log::log_to_stderr;
use super::open::Opened;
use super::out::{Out, grouped, json_number, quoted, say};
use super::replay::diff;
use super::run::{self, RunArgs};
use super::{Failure, Outcome, around, file_limit};

/// Compact one session now: its older part becomes a summary, by the compaction plugin of the config.
#[derive(Clone, Debug, clap::Args)]
pub struct CompactArgs {
    /// The session, its id or the beginning of it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What the summary is to look at above all
    #[arg(long, value_name = "TEXT")]
    pub instructions: Option<String>,
    /// Show what it would be and keep nothing of it; a model is asked all the same
    #[arg(long)]
    pub dry_run: bool,
    /// No Pi runs, as in a CI job after `pi -p`; only where no daemon runs
    #[arg(long)]
    pub closed: bool,
}

/// Runs `compact`.
///
/// # Errors
/// [`Failure`] if there is no such session, or the daemon cannot do it.
pub fn run(args: &CompactArgs, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let path = session_file(&args.file, config)?;
    // What is no session is told before anything is begun.
    Opened::session(&path)?;
    let path = path.canonicalize()?;
    let want = Compact { session: path.clone(), instructions: args.instructions.clone(), dry_run: args.dry_run };
    let found = Config::find(config)?;
    let told: Compacted = match Client::connect(&found)? {
        Some(mut daemon) => daemon.ask(&Request::Compact(want))?,
        None => alone(args, want, &found)?,
    };
    tell(&path, &told, out)
}

/// Where no daemon runs.
fn alone(args: &CompactArgs, want: Compact, config: &Config) -> Result<Compacted, Failure> {
    log_to_stderr("warn");
    let as_run = RunArgs { closed: args.closed, dry_run: args.dry_run, ..RunArgs::default() };
    let world = Arc::new(run::world_of_one(config, &want.session, &as_run)?);
    private_dir(&runtime_dir())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::problem)?;
    let reply = runtime.block_on(async {
        file_limit::outlast();
        Daemon::new(world).with_locks(runtime_dir()).compact(want, run::stop_on_signal()).await
    });
    let nothing = || Err(Failure::problem("given up; nothing was compacted"));
    reply.map_err(Failure::problem)?.map_or_else(nothing, understood)
}

/// The branch before a compaction and behind it.
struct Sides {
    before: Branch,
    after: Branch,
    summary: String,
    opened: Opened,
}

impl Sides {
    fn of(path: &Path, told: &Compacted) -> Result<Option<Sides>, Failure> {
        let opened = Opened::session(path)?;
        let (before, after) = match (&told.entry, &told.drafts) {
            (Some(entry), _) => grafted(&opened, entry)?,
            (None, Some(drafts)) => made(&opened, told.leaf.as_deref(), drafts)?,
            (None, None) => return Ok(None),
        };
        let summary = |line: Json<'_>| line.get("summary").and_then(Json::as_str).map(|text| text.into_owned());
        let summary = after.read(after.len() - 1, summary)?.unwrap_or_default();
        Ok(Some(Sides { before, after, summary, opened }))
    }
}

/// What Pi went on from before: the receipt stands between, where there is one.
fn grafted(opened: &Opened, entry: &str) -> Result<(Branch, Branch), Failure> {
    let after = opened.branch(Some(entry))?;
    let is_receipt = |place: &u32| receipt::is_receipt(&after.item(*place));
    let before = (0..after.len() - 1).rev().find(|place| !is_receipt(place));
    let leaf = before.and_then(|place| opened.tree.by_id(after.item(place).id?));
    let source = Arc::clone(&opened.reading) as Arc<dyn Source>;
    Ok((Branch::at(&opened.tree, source, leaf)?, after))
}

/// What a dry run made, put behind the leaf.
fn made(opened: &Opened, leaf: Option<&str>, drafts: &str) -> Result<(Branch, Branch), Failure> {
    let before = opened.branch(leaf)?;
    let mut after = before.clone();
    let drafts = Json::parse(drafts.as_bytes()).map_err(Failure::problem)?;
    let origin = Arc::new(pi_session::branch::Origin { plugin: String::new(), batch: String::new() });
    for draft in drafts.items() {
        after.push(&draft.to_text(), &origin).map_err(Failure::problem)?;
    }
    Ok((before, after))
}

fn tell(path: &Path, told: &Compacted, out: &mut Out) -> Result<Outcome, Failure> {
    let sides = Sides::of(path, told)?;
    if out.json {
        in_json(path, told, sides.as_ref(), out)?;
    } else {
        in_words(told, sides.as_ref(), out)?;
    }
    Ok(if sides.is_some() { Outcome::Done } else { Outcome::Problems })
}

fn in_json(path: &Path, told: &Compacted, sides: Option<&Sides>, out: &mut Out) -> Result<(), Failure> {
    let mut head = json!({ "path": path.to_string_lossy(), "outcome": told.outcome, "why": told.why });
    for (name, value) in [("plugin", &told.plugin), ("batch", &told.batch), ("entry", &told.entry)] {
        head[name] = json!(value);
    }
    let Some(Sides { before, after, summary, .. }) = sides else { return Ok(out.line(head)?) };
    (head["before"], head["after"]) = (side_json(before)?, side_json(after)?);
    let head = head.to_string();
    let head = head.strip_suffix('}').unwrap_or(&head);
    out.line(format!("{head},\"summary\":{},\"diff\":{}}}", quoted(summary), diff::to_json(before, after)?))?;
    Ok(())
}

pub(super) fn side_json(branch: &Branch) -> Result<serde_json::Value, Failure> {
    let context = branch.context();
    let tokens = json_number(branch.tokens(&context)?.total);
    Ok(json!({ "tokens": tokens, "messages": messages(branch)? }))
}

pub(super) fn messages(branch: &Branch) -> Result<usize, Failure> {
    let counts = branch.context().entries.iter().map(|entry| branch.messages(entry).map(|m| m.len())).collect();
    let counts: Result<Vec<usize>, _> = counts;
    Ok(counts?.into_iter().sum())
}

fn in_words(told: &Compacted, sides: Option<&Sides>, out: &mut Out) -> Result<(), Failure> {
    let Some(Sides { before, after, summary, opened }) = sides else {
        let what = if told.outcome == "pending" {
            "made, and not in the session yet; it lands when it can (`pi-graft status`)"
        } else {
            "nothing is compacted"
        };
        told.why.iter().for_each(say);
        return Ok(out.line(what)?);
    };
    let (plugin, entry) = (told.plugin.as_deref().unwrap_or("a plugin"), told.entry.as_deref());
    let done = entry.map_or_else(|| "a dry run: nothing is written".to_owned(), |entry| format!("grafted as {entry}"));
    out.line(format!("{plugin} made a compaction; {done}"))?;
    let window = around::facts(opened, before, &Given::default())?.0.window;
    for (name, branch) in [("before", before), ("after", after)] {
        let tokens = branch.tokens(&branch.context())?.total;
        let tokens = around::of_window(tokens, window.as_ref());
        out.line(format!("{name:<7} {tokens}, {} messages", grouped(messages(branch)? as u64)))?;
    }
    out.line("")?;
    diff::write_short(before, after, out)?;
    out.line("")?;
    out.line(summary)?;
    Ok(())
}
