//! `pi-graft undo`: a plugin's edits and messages in one session are taken back, by further edits (product.md 4.5).

mod rest;
mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pi_session::Branch;
use pi_session::compose::{Composed, compose_parts};
use pi_session::receipt::Receipt;
use pi_session::settings::Given;
use pi_session::tree::Leaf;
use pi_session::undo::{self, HANDLER, Undo};

use crate::config::{Config, duration_text};
use crate::daemon::dispatch::batch_id;
use crate::daemon::hold::newer_there;
use crate::daemon::world::{now_ms, random};
use crate::deliver::presence::Processes;
use crate::deliver::settle::{self, Times, Verdict};
use crate::files::append::Landed;
use crate::files::network::network;
use crate::files::shown;

use super::direct::{self, Attempt};
use super::find::session_file;
use super::open::Opened;
use super::out::{Out, say};
use super::session::quiet;
use super::{Failure, Outcome, around, file_limit};
use rest::Rest;

/// Edits behind one receipt, at most: as many as a plugin's batch may hold.
const MOST: usize = 32;

/// Take back what a plugin did in a session: what it edited shows as if it had not, its messages are left out.
#[derive(Clone, Debug, clap::Args)]
pub struct UndoArgs {
    /// The plugin, by its name in the config
    #[arg(long, value_name = "NAME")]
    pub plugin: String,
    /// The session, its id or the beginning of it
    #[arg(value_name = "SESSION")]
    pub session: PathBuf,
    /// The entry that the branch ends in; default: where Pi would go on
    #[arg(long, value_name = "ID")]
    pub leaf: Option<String>,
    /// Show what it would be and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// No Pi runs, as in a CI job after `pi -p`
    #[arg(long)]
    pub closed: bool,
}

/// What came of it.
struct Done {
    opened: Opened,
    before: Branch,
    undo: Undo,
    rest: Rest,
    composed: Option<Composed>,
    landed: Option<Landed>,
}

/// Runs `undo`.
///
/// # Errors
/// [`Failure`] if there is no such session, or it cannot be written at this moment.
pub fn run(args: &UndoArgs, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    file_limit::outlast_without_runtime();
    let path = session_file(&args.session, config)?;
    let found = Config::find(config)?;
    let done = direct::retried(&path, || attempt(args, &path, &found, config))?;
    words::tell(args, &done, out)
}

/// Reads the session as it is now, judges, and writes if it still is so (S12.8).
fn attempt(args: &UndoArgs, path: &Path, config: &Config, named: Option<&Path>) -> Result<Done, Attempt> {
    let opened = direct::open(path)?;
    let before = opened.branch(args.leaf.as_deref())?;
    let undo = undo::undo(&before, &args.plugin).map_err(Failure::from)?;
    let rest = Rest::of(args, &opened, &before, config)?;
    let mut done = Done { opened, before, undo, rest, composed: None, landed: None };
    // What waits is given up once it is written that it is undone.
    if done.undo.accepted.is_empty() && !done.undo.is_news && done.rest.pending == 0 {
        return Ok(done);
    }
    let composed = compose(args, &done)?;
    if !args.dry_run {
        quiet::not_bridged(path, done.opened.reading.id(), named)?;
        wait_for_rest(args, &done.opened, &done.rest, config)?;
        warn_of_leaf(&done.opened, &composed);
        done.landed = Some(direct::write(&done.opened, composed.bytes())?);
    }
    done.composed = Some(composed);
    Ok(done)
}

fn compose(args: &UndoArgs, done: &Done) -> Result<Composed, Failure> {
    let mut first: Option<String> = None;
    let trigger = done.before.leaf_id().unwrap_or_default();
    let mut receipt = || {
        let (batch, continues) = (batch_id(), first.clone());
        first.get_or_insert_with(|| batch.clone());
        Receipt {
            batch,
            continues,
            plugin: args.plugin.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            handler: HANDLER.to_owned(),
            reason: "manual".to_owned(),
            trigger: trigger.to_owned(),
            ..Receipt::default()
        }
    };
    compose_parts(&done.before, &done.undo.accepted, &mut receipt, MOST, now_ms(), &mut random)
        .map_err(|stale| Failure::problem(format!("{}: {}", shown(&done.opened.path), stale.refusal)))
}

/// The last entry is where Pi goes on (S8.2): an append elsewhere moves it.
fn warn_of_leaf(opened: &Opened, composed: &Composed) {
    let Leaf::At(leaf) = opened.tree.leaf() else { return };
    let (last, parent) = (opened.tree.id(leaf), composed.leaf_before());
    if parent != Some(last) {
        let parent = parent.unwrap_or("the root");
        say(format!("note: Pi would go on from {last}; behind this, it goes on from what is appended to {parent}"));
    }
}

/// Nothing is written behind a Pi's back (product.md section 5): a moment is waited for in which the daemon would write too.
fn wait_for_rest(args: &UndoArgs, opened: &Opened, rest: &Rest, config: &Config) -> Result<(), Attempt> {
    let times = Times { settle: config.watch.settle, live_hold: config.watch.live_hold };
    let refused = |why: String| Failure::Problem(format!("{}: {why}; nothing was written", shown(&opened.path)));
    let dir = opened.path.parent().filter(|_| !config.watch.append_on_network);
    if let Some(system) = dir.and_then(network) {
        let why = format!("it is on a network file system ({system}), where an append is not safe; see watch.network");
        return Err(refused(why).into());
    }
    if let Some(why) = rest.here.as_ref().filter(|_| !args.closed) {
        return Err(
            refused(format!("a Pi has it open ({why}); end that Pi first, or say --closed if none runs")).into()
        );
    }
    match verdict(args, opened, &times)? {
        Verdict::Settled => Ok(()),
        Verdict::Held(why) => Err(refused(format!("{why}; end that Pi first, or say --closed if none runs")).into()),
        Verdict::Wait(rest, _) if rest <= times.settle => {
            std::thread::sleep(rest);
            Err(Attempt::Changed)
        }
        Verdict::Wait(rest, why) => {
            let rest = duration_text(Duration::from_secs(rest.as_secs() + 1));
            Err(refused(format!("{why}; try again in {rest}, or say --closed if no Pi runs")).into())
        }
    }
}

fn verdict(args: &UndoArgs, opened: &Opened, times: &Times) -> Result<Verdict, Failure> {
    let branch = opened.branch(None)?;
    let threshold = around::facts(opened, &branch, &Given::default())?.0.threshold();
    let state = settle::regarding(settle::state(&branch)?, &branch, threshold)?;
    let processes = if args.closed { Processes::none() } else { Processes::look() };
    let cwd = opened.tree.header().and_then(|header| header.cwd.clone());
    let cwd = cwd.as_deref().map(Path::new);
    let newer = cwd.map_or(0, |cwd| newer_there(&processes, &opened.path, cwd));
    let modified = opened.reading.metadata()?.modified()?;
    // A time in the future is no reason to think that nobody writes.
    let quiet = modified.elapsed().unwrap_or_default();
    Ok(settle::verdict(state, processes.presence(cwd, newer), quiet, times))
}
