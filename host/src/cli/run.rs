//! `pi-graft run`: the daemon in the foreground, or once over what is new.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{Config, Env};
use crate::daemon::control::{Fresh, Identity, ReadAgain};
use crate::daemon::settings::Settings;
use crate::daemon::world::{World, now_ms};
use crate::daemon::{Daemon, Summary};
use crate::deliver::settle::Times;
use crate::files::append::RealDisk;
use crate::files::lock::{private_dir, runtime_dir, socket_path};
use crate::files::network::network;
use crate::files::{FilesError, locate};
use crate::journal::Journal;
use crate::models::Models;
use crate::pi::PiFiles;
use crate::wire::control::DaemonStatus;

use super::control::{Client, store};
use super::file_limit;
use super::find::{apart, session_file};
use super::load::{Loaded, Loader};
use super::log::log_to_stderr;
use super::memory::share_heaps;
use super::{Failure, Outcome, answer};

/// How long what writes nothing to sessions is waited for at the end.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Follow Pi sessions, run the plugins on every new entry, and graft what they propose.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RunArgs {
    /// Handle what is new and exit; files named here are new from their first line
    #[arg(long)]
    pub once: bool,
    /// With --once: sessions to handle instead of those below the roots
    #[arg(value_name = "FILE", requires = "once")]
    pub files: Vec<PathBuf>,
    /// With --once: sessions changed within this time (such as 2h) are new from their first line
    #[arg(long, value_name = "DUR", requires = "once", value_parser = crate::config::parse_duration)]
    pub since: Option<Duration>,
    /// No Pi runs, as in a CI job after `pi -p`
    #[arg(long)]
    pub closed: bool,
    /// Write nothing: neither to sessions nor to the store
    #[arg(long)]
    pub dry_run: bool,
    /// Also run on what was there before the first start
    #[arg(long)]
    pub backfill: bool,
    /// With --once: exit with 1 if something still has to wait
    #[arg(long, requires = "once")]
    pub fail_pending: bool,
}

/// Runs the daemon.
///
/// # Errors
/// [`Failure`] if it cannot start, or its store fails.
pub fn run(args: &RunArgs, config: Option<&Path>, json: bool) -> Result<Outcome, Failure> {
    log_to_stderr("info");
    share_heaps();
    let named = config;
    let config = Config::find(named)?;
    let args = &with_paths(args, named)?;
    let (world, identity) = world(&config, named, args)?;
    let world = Arc::new(world);
    if !args.dry_run {
        private_dir(&runtime_dir())?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::problem)?;
    let summary = runtime.block_on(follow(Arc::clone(&world), args, identity))?;
    // A look at a file system that hangs must not keep the process.
    runtime.shutdown_timeout(END_WITHIN);
    crate::daemon::tell(&summary);
    if args.once {
        let outcome = report(&summary, args, json);
        return Ok(if world.settings.unloaded.is_empty() { outcome } else { Outcome::Problems });
    }
    Ok(Outcome::Done)
}

async fn follow(world: Arc<World>, args: &RunArgs, identity: Identity) -> Result<Summary, Failure> {
    let stop = stop_on_signal();
    file_limit::outlast();
    // A dry run writes nothing, so it may stand beside a daemon.
    let daemon = match args.dry_run {
        true => Daemon::new(world),
        false => Daemon::new(world).with_locks(runtime_dir()),
    };
    let summary = match args.once {
        true => {
            let files = args.files.iter().map(|file| plain_path(file)).collect::<Result<Vec<_>, _>>()?;
            daemon.once(&files, stop).await
        }
        false => {
            // A dry run has no store, so it is not the one that may speak for it.
            let daemon = match args.dry_run {
                true => daemon,
                false => daemon.with_socket(socket_path(&runtime_dir(), &identity.about.state_dir)?, identity),
            };
            daemon.run(stop).await
        }
    };
    summary.map_err(Failure::problem)
}

/// The first SIGINT or SIGTERM ends the loop in order; a second one does what it always does.
pub(super) fn stop_on_signal() -> CancellationToken {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        warn!("signals cannot be handled here; ending is not in order, and nothing is lost by it");
        return stop;
    };
    let heard = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        info!("ending: waiting for what is under way");
        heard.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        #[expect(clippy::disallowed_methods, reason = "a second signal: the user does not want to wait")]
        std::process::exit(130);
    });
    stop
}

fn world(config: &Config, named: Option<&Path>, args: &RunArgs) -> Result<(World, Identity), Failure> {
    let (loader, loaded) = load(config)?;
    let journal = match args.dry_run {
        true => Journal::in_memory(now_ms()).map_err(Failure::problem)?,
        false => open_store(config)?,
    };
    let settings = Settings { unloaded: loaded.lacking(config), ..settings(config, args)? };
    let Loaded { plugins, faults } = loaded;
    info!(roots = ?settings.roots, plugins = plugins.len(), state = %config.state.dir.display(), "starting");
    let world = World::new(journal, plugins, settings, Box::new(RealDisk)).map_err(Failure::problem)?;
    let read_again = read_again(loader, config, named, args);
    Ok((world, Identity { about: about(config), faults, read_again }))
}

fn load(config: &Config) -> Result<(Loader, Loaded), Failure> {
    let loader = Loader::new()?;
    let loaded = loader.load(config);
    match loaded.faults.first() {
        Some((_, fault)) if loaded.plugins.is_empty() => Err(Failure::usage(fault)),
        _ => Ok((loader, loaded)),
    }
}

fn open_store(config: &Config) -> Result<Journal, Failure> {
    private_dir(&config.state.dir)?;
    // A socket that cannot be tried (its path may be too long for one) is no daemon.
    if Client::connect(config).is_ok_and(|daemon| daemon.is_some()) {
        return Err(Failure::problem("another pi-graft runs for this config; see `pi-graft status`"));
    }
    store::open(config, "another pi-graft")
}

/// The world of a command that does the daemon's work on one session where none runs. The store is the real one, also
/// where the session is not to be written: what a model used counts.
pub(super) fn world_of_one(config: &Config, session: &Path, args: &RunArgs) -> Result<World, Failure> {
    let (_, loaded) = load(config)?;
    let (unloaded, named) = (loaded.lacking(config), vec![session.to_path_buf()]);
    let settings = Settings { unloaded, named, ..settings(config, args)? };
    World::new(open_store(config)?, loaded.plugins, settings, Box::new(RealDisk)).map_err(Failure::problem)
}

fn about(config: &Config) -> DaemonStatus {
    DaemonStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        since_ms: now_ms(),
        config: config.path.clone(),
        state_dir: config.state.dir.clone(),
        paused: false,
    }
}

/// Reads config and plugins once more, as `reload` wants it.
fn read_again(loader: Loader, config: &Config, named: Option<&Path>, args: &RunArgs) -> ReadAgain {
    let (state, named, args) = (config.state.dir.clone(), named.map(Path::to_path_buf), args.clone());
    Arc::new(move |loaded| {
        let config = Config::find(named.as_deref()).map_err(|e| e.to_string())?;
        if config.state.dir != state {
            return Err("[state] dir is another one; that takes a restart".to_owned());
        }
        let fresh = loader.load(&config).or_keep(loaded, &config);
        let settings = settings(&config, &args).map_err(|e| e.to_string())?;
        let settings = Settings { unloaded: fresh.lacking(&config), ..settings };
        Ok(Fresh { plugins: fresh.plugins, settings, faults: fresh.faults })
    })
}

fn settings(config: &Config, args: &RunArgs) -> Result<Settings, Failure> {
    let roots: Vec<PathBuf> = apart(&config.watch.roots).into_iter().cloned().collect();
    let mut fresh = args.files.iter().map(|file| plain_path(file)).collect::<Result<Vec<_>, _>>()?;
    fresh.extend(args.since.map(|since| changed_since(&roots, since)).unwrap_or_default());
    let (by_path, by_cwd) = (config.watch.clone(), config.watch.clone());
    Ok(Settings {
        roots,
        by_path: Box::new(move |path| by_path.wants_path(path)),
        by_cwd: Box::new(move |cwd| by_cwd.wants_cwd(cwd.to_str())),
        network: Box::new(network),
        append_on_network: config.watch.append_on_network,
        times: Times { settle: config.watch.settle, live_hold: config.watch.live_hold },
        turn_end: config.bridge.turn_end,
        backfill: args.backfill,
        fresh,
        named: Vec::new(),
        dry_run: args.dry_run,
        closed: args.closed,
        unloaded: Vec::new(),
        keep_runs: config.state.keep,
        pi: PiFiles::new(Env::of_process().agent_dir().ok()),
        models: Arc::new(Models::of(&config.models, &config.state.dir)),
    })
}

/// The same with the path of each file: an id names one too.
fn with_paths(args: &RunArgs, config: Option<&Path>) -> Result<RunArgs, Failure> {
    let files = args.files.iter().map(|file| session_file(file, config)).collect::<Result<_, _>>()?;
    Ok(RunArgs { files, ..args.clone() })
}

/// A named file by its real path, so that it is known again.
fn plain_path(file: &Path) -> Result<PathBuf, FilesError> {
    let path = file.canonicalize().map_err(|source| FilesError::Io { path: file.into(), source })?;
    if path.is_file() { Ok(path) } else { Err(FilesError::NoFile { path }) }
}

fn changed_since(roots: &[PathBuf], since: Duration) -> Vec<PathBuf> {
    let from = SystemTime::now().checked_sub(since).unwrap_or(SystemTime::UNIX_EPOCH);
    let real = roots.iter().filter_map(|root| root.canonicalize().ok());
    let found = real.flat_map(|root| locate::walk(&root, &mut |_, _| {}));
    found.filter(|f| f.meta.modified().is_ok_and(|time| time >= from)).map(|f| f.path).collect()
}

/// What `--once` did: words for a person or JSON for a program, and the exit code.
fn report(summary: &Summary, args: &RunArgs, json: bool) -> Outcome {
    if json {
        answer(in_json(summary))
    } else {
        in_words(summary)
    }
    let problems = !summary.failed.is_empty() || (args.fail_pending && !summary.waiting.is_empty());
    if problems { Outcome::Problems } else { Outcome::Done }
}

fn in_json(summary: &Summary) -> serde_json::Value {
    let crate::daemon::session::Tally { handled, history, proposed, grafted, stale, failed } = summary.tally;
    let row = |path: &Path, why: &str| serde_json::json!({ "path": path.to_string_lossy(), "why": why });
    let waiting: Vec<_> = summary.waiting.iter().map(|(path, why)| row(path, why)).collect();
    let broken: Vec<_> = summary.failed.iter().map(|(path, why)| row(path, why)).collect();
    serde_json::json!({
        "sessions": summary.sessions,
        "entries": { "handled": handled, "history": history },
        "batches": { "proposed": proposed, "grafted": grafted, "stale": stale },
        "failedRuns": failed,
        "waiting": waiting,
        "failed": broken,
    })
}

fn in_words(summary: &Summary) {
    let tally = &summary.tally;
    let (handled, history) = (tally.handled, tally.history);
    answer(format!("{handled} entries handled in {} sessions, {history} were history", summary.sessions));
    answer(format!("{} batches proposed, {} grafted, {} stale", tally.proposed, tally.grafted, tally.stale));
    for (path, why) in &summary.waiting {
        answer(format!("waiting: {}: {why}", path.display()));
    }
    for (path, why) in &summary.failed {
        let named = why.starts_with(&path.display().to_string());
        answer(if named { format!("failed: {why}") } else { format!("failed: {}: {why}", path.display()) });
    }
}
