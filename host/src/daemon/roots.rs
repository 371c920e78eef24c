//! The roots in the loop: who looks at which, what is to be looked at when, and which sessions are below one.
//!
//! A root is in one place at a time: here, or with a worker that looks at it ([`super::root`]), so no two walks over one
//! root are ever under way, and one that hangs (a network that is gone) holds up no other. What happens meanwhile is noted
//! and makes the next look.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;

use crate::files::FilesError;
use crate::files::locate::Found;
use crate::wire::control::RootStatus;

use super::root::{Ask, Held, Means, Root, Standing};
use super::watch::{Hints, Watchers};
use super::world::{self, World};
use super::{Daemon, Event, session};

/// Pause between two looks at a root where events come; and between two tries to have them come.
const WALK_EVERY: Duration = Duration::from_secs(60);
/// The same where they do not, or the root cannot be followed.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Of the time, a walk that is made over and over may take one part in so many.
const POLL_SHARE: u32 = 20;
/// Pause before a look that an event asked for: many directories that come and go are one look.
const LOOK_SOON: Duration = Duration::from_millis(50);
/// More directories than these are looked at with all the others.
const MOST_DIRS: usize = 256;

/// The roots that are followed at one moment. Whoever has this keeps them locked.
#[derive(Clone, Debug, Default)]
pub struct Following(Arc<[Arc<Held>]>);

impl Following {
    /// Whether a session is really below one of them.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|held| path.starts_with(&held.path) && held.has(path))
    }

    /// Whether its path is below one of them, by name.
    fn names(&self, path: &Path) -> bool {
        self.0.iter().any(|held| path.starts_with(&held.path))
    }
}

/// What a worker saw of a root.
pub struct Looked {
    root: Root,
    /// Sessions that may have something to do.
    found: Vec<PathBuf>,
    took: Duration,
}

/// A root's place in the loop.
struct Spot {
    named: PathBuf,
    /// None: a worker has it.
    root: Option<Root>,
    held: Option<Arc<Held>>,
    standing: Standing,
    /// When all of it is to be looked at.
    next: Instant,
    /// When what events named is to be looked at.
    soon: Option<Instant>,
    dirs: BTreeSet<PathBuf>,
    /// When watching it was tried last.
    tried: Option<Instant>,
}

impl Spot {
    fn new(named: &Path) -> Spot {
        Spot {
            named: named.to_path_buf(),
            root: Some(Root::new(named)),
            held: None,
            standing: Standing::New,
            next: Instant::now(),
            soon: None,
            dirs: BTreeSet::new(),
            tried: None,
        }
    }

    fn hint(&mut self, dir: Option<&Path>) {
        let now = Instant::now();
        match dir {
            Some(dir) if self.dirs.len() < MOST_DIRS && self.is_below(dir) => {
                self.dirs.insert(dir.to_path_buf());
                self.soon.get_or_insert(now + LOOK_SOON);
            }
            // The root itself, or more than is worth keeping apart.
            _ => self.next = self.next.min(now + LOOK_SOON),
        }
    }

    fn has(&self, dir: &Path) -> bool {
        self.held.as_ref().is_some_and(|held| dir.starts_with(&held.path))
    }

    fn is_below(&self, dir: &Path) -> bool {
        self.has(dir) && self.held.as_ref().is_none_or(|held| dir != held.path)
    }

    /// A worker is finding out whether it is ours, and may have begun to watch it.
    fn begins(&self) -> bool {
        self.root.is_none() && self.held.is_none()
    }

    /// When a look is due; never while one is under way.
    fn due(&self) -> Option<Instant> {
        self.root.as_ref().map(|_| self.soon.map_or(self.next, |soon| soon.min(self.next)))
    }

    /// The root and what is to be looked at, if it is time.
    fn take(&mut self, now: Instant) -> Option<(Root, Ask)> {
        self.due().filter(|due| *due <= now)?;
        let watch = self.tried.is_none_or(|tried| now - tried >= WALK_EVERY);
        if watch {
            self.tried = Some(now);
        }
        self.soon = None;
        let ask = Ask { whole: self.next <= now, watch, dirs: std::mem::take(&mut self.dirs) };
        if ask.whole {
            self.next = now + WALK_EVERY;
        }
        Some((self.root.take()?, ask))
    }

    /// Takes the root back. True if it is followed from now on.
    fn put(&mut self, root: Root, took: Duration) -> bool {
        let begun = root.held.is_some() && !same(self.held.as_ref(), root.held.as_ref());
        let now = Instant::now();
        let pause = match &root.standing {
            Standing::Watched => WALK_EVERY,
            Standing::Polled(_) => POLL_EVERY.max(took * POLL_SHARE),
            Standing::New | Standing::Absent(_) | Standing::Locked(_) => POLL_EVERY,
        };
        self.next = self.next.min(now + pause);
        self.held.clone_from(&root.held);
        self.standing = root.standing.clone();
        self.root = Some(root);
        begun
    }
}

fn same(a: Option<&Arc<Held>>, b: Option<&Arc<Held>>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
}

/// All roots of the config.
pub(super) struct Roots {
    spots: Vec<Spot>,
    following: Following,
    /// Where locks are kept; none: nothing is locked, since nothing is written.
    pub(super) runtime: Option<PathBuf>,
    pub(super) watchers: Arc<dyn Watchers>,
}

impl Roots {
    pub(super) fn new(watchers: Arc<dyn Watchers>) -> Roots {
        Roots { spots: Vec::new(), following: Following::default(), runtime: None, watchers }
    }

    /// Follows these from now on, instead of those before. What goes is not followed any more, and its lock is released as
    /// soon as no step is at work below it.
    pub(super) fn set(&mut self, named: &[PathBuf]) {
        let mut old = std::mem::take(&mut self.spots);
        let mut keep = |path: &Path| {
            let at = old.iter().position(|spot| spot.named == path)?;
            let spot = old.swap_remove(at);
            Some(Spot { next: Instant::now(), tried: None, ..spot })
        };
        let spots = outermost(named).into_iter().map(|path| keep(path).unwrap_or_else(|| Spot::new(path)));
        self.spots = spots.collect();
        self.publish();
    }

    fn publish(&mut self) {
        self.following = Following(self.spots.iter().filter_map(|spot| spot.held.clone()).collect());
    }

    /// Those that are followed at this moment.
    pub(super) fn following(&self) -> Following {
        self.following.clone()
    }

    /// Whether a session that is not there yet would be followed: its directory, or the root, may come with it.
    pub(super) fn awaits(&self, path: &Path) -> bool {
        let is_there = path.parent().is_some_and(|dir| std::fs::symlink_metadata(dir).is_ok());
        self.begins(path) || if is_there { self.following.has(path) } else { self.following.names(path) }
    }

    /// Whether a session is below a root that may yet turn out to be ours.
    pub(super) fn begins(&self, path: &Path) -> bool {
        let begins = |spot: &Spot| matches!(spot.standing, Standing::Absent(_) | Standing::New);
        self.spots.iter().any(|spot| begins(spot) && path.starts_with(&spot.named))
    }

    /// Whether a path is below a root that is followed, by name alone.
    pub(super) fn names(&self, path: &Path) -> bool {
        self.following.names(path)
    }

    /// Something may have changed in a directory; none: anywhere.
    pub(super) fn hint(&mut self, dir: Option<&Path>) {
        let concerned = |spot: &&mut Spot| dir.is_none_or(|dir| spot.has(dir) || spot.begins());
        self.spots.iter_mut().filter(concerned).for_each(|spot| spot.hint(dir));
    }

    /// Looks again at those whose lock was lost, to lock them anew or to let them go; meanwhile no step is made below them.
    pub(super) fn guard(&mut self) {
        let lost = |spot: &&mut Spot| spot.held.as_ref().is_some_and(|held| !held.is_locked());
        self.spots.iter_mut().filter(lost).for_each(|spot| spot.hint(None));
    }

    /// An event came that is below none of them. If a worker finds out at this moment whether a root is ours, or still is, it
    /// may be from there: then that one is looked at once more.
    pub(super) fn hint_early(&mut self, path: &Path) {
        let looks = |spot: &&mut Spot| spot.begins() || (spot.root.is_none() && spot.has(path));
        self.spots.iter_mut().filter(looks).for_each(|spot| spot.hint(None));
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.spots.iter().filter_map(Spot::due).min()
    }

    /// Whether each was looked at, at least once.
    pub(super) fn are_seen(&self) -> bool {
        self.spots.iter().all(|spot| spot.standing != Standing::New)
    }

    /// The roots that another daemon has, and why they are not followed.
    pub(super) fn locked(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.spots.iter().filter_map(|spot| match &spot.standing {
            Standing::Locked(why) => Some((spot.named.as_path(), why.as_str())),
            _ => None,
        })
    }

    /// There is nothing to do for this daemon: of the roots that are there, another one has each.
    pub(super) fn refusal(&self) -> Option<FilesError> {
        let (path, why) = self.locked().next()?;
        let source = || std::io::Error::other(why.to_owned());
        self.following.0.is_empty().then(|| FilesError::Io { path: path.to_path_buf(), source: source() })
    }

    /// How each stands.
    pub(super) fn status(&self) -> Vec<RootStatus> {
        self.spots.iter().map(|spot| spot.standing.status(&spot.named)).collect()
    }

    /// Takes a root back from its worker. Gives it if it is followed from now on; a root that the config does not name any
    /// more is dropped.
    fn put(&mut self, root: Root, took: Duration) -> Option<Arc<Held>> {
        let spot = self.spots.iter_mut().find(|spot| spot.named == root.named && spot.root.is_none())?;
        let begun = spot.put(root, took).then(|| spot.held.clone()).flatten();
        self.publish();
        begun
    }
}

/// The roots without those that are below another: one walk does for both.
fn outermost(named: &[PathBuf]) -> Vec<&Path> {
    let mut kept: Vec<&Path> = Vec::new();
    for path in named {
        let inside = named.iter().any(|other| path != other && path.starts_with(other));
        if !inside && !kept.contains(&path.as_path()) {
            kept.push(path);
        }
    }
    kept
}

impl Daemon {
    /// Sends workers to the roots that are to be looked at.
    pub(super) fn look_due(&mut self) {
        let now = Instant::now();
        let due: Vec<(Root, Ask)> = self.roots.spots.iter_mut().filter_map(|spot| spot.take(now)).collect();
        due.into_iter().for_each(|(root, ask)| self.look(root, ask));
    }

    fn look(&self, root: Root, ask: Ask) {
        let (world, to, named) = (Arc::clone(&self.world), self.to.clone(), root.named.clone());
        let (runtime, watchers) = (self.roots.runtime.clone(), Arc::clone(&self.roots.watchers));
        tokio::spawn(async move {
            let hints = Hints::new(to.clone());
            let work = move || look_at(&world, root, &ask, runtime.as_deref(), watchers.as_ref(), &hints);
            let looked = tokio::task::spawn_blocking(work).await;
            // A bug of ours costs the root this look, and nothing else: it is begun anew.
            let looked =
                looked.unwrap_or_else(|_| Looked { root: Root::new(&named), found: Vec::new(), took: WALK_EVERY });
            let _ = to.send(Event::Looked(Box::new(looked)));
        });
    }

    /// A worker has looked at a root.
    pub(super) fn looked(&mut self, looked: Looked) {
        let Looked { root, found, took } = looked;
        if let Some(held) = self.roots.put(root, took) {
            self.resume(&held);
        }
        for path in found {
            // The config may not name its root any more.
            if self.roots.names(&path) {
                self.wake(&path);
            }
        }
    }

    /// Sessions below a root that has just become ours: what a former run left unfinished, and what a bridge has open.
    fn resume(&mut self, held: &Held) {
        let redo = |paths: Vec<PathBuf>| Ok([paths, self.world.to_redo()?].concat());
        let unfinished = self.world.unfinished().and_then(redo).unwrap_or_else(|e| {
            warn!("{e}");
            Vec::new()
        });
        // One may be a link or a pipe by now.
        let plain = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
        let paths = unfinished.into_iter().chain(self.slots.keys().cloned()).collect::<BTreeSet<_>>();
        for path in paths.into_iter().filter(|path| path.starts_with(&held.path)) {
            if plain(&path) && held.has(&path) && (self.world.settings.by_path)(&path) {
                self.touch(&path);
            }
        }
    }
}

fn look_at(
    world: &World,
    mut root: Root,
    ask: &Ask,
    runtime: Option<&Path>,
    watchers: &dyn Watchers,
    hints: &Hints,
) -> Looked {
    let began = Instant::now();
    let means = Means { runtime, watchers, hints, network: &*world.settings.network };
    let found = root.look(&means, ask);
    let wanted = |found: &Found| (world.settings.by_path)(&found.path) && may_be_new(world, found);
    let found = root.news(ask, found.into_iter().filter(wanted).collect());
    let found = found.into_iter().map(|found| found.path).collect();
    Looked { root, found, took: began.elapsed() }
}

/// Whether there may be something to do for a file, told without opening it.
fn may_be_new(world: &World, found: &Found) -> bool {
    let fresh = world.settings.is_fresh(&found.path);
    let changed = world.at(&found.path, |_, record| {
        let other = record.file != crate::files::FileId::of(&found.meta) || record.offset != found.meta.len();
        other || (fresh && record.skipped > 0)
    });
    match changed {
        Some(changed) => changed,
        None => found.meta.len() > 0 && (fresh || !is_old(world, found)),
    }
}

/// Written last before the store's first start: all of it is history, and nobody has to open it.
fn is_old(world: &World, found: &Found) -> bool {
    let written = found.meta.modified().map_or(i64::MAX, world::unix_ms);
    // As in a session: a clock that was set back behind the first start makes nothing old that is written now.
    written < world.journal.first_start_ms().min(world::now_ms()) - session::GRACE_MS
}
