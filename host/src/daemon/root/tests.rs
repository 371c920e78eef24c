//! A root under a system that gives no events, or too few, and beside another daemon.

use std::fs::{self, File};
use std::sync::Mutex;

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;
use tokio::sync::mpsc::unbounded_channel;

use super::*;

/// A system with so many watches.
#[derive(Clone, Default)]
struct System(Arc<Mutex<Limits>>);

#[derive(Default)]
struct Limits {
    /// There are no watchers at all.
    none: bool,
    left: usize,
    refused: BTreeSet<PathBuf>,
    /// What was watched, and tried in vain.
    watched: BTreeSet<PathBuf>,
    tries: usize,
}

impl Watchers for System {
    fn begin(&self, _hints: Hints) -> Result<Box<dyn Watcher>, WatchError> {
        if self.0.lock().expect("mine").none { Err(WatchError::UsedUp) } else { Ok(Box::new(self.clone())) }
    }
}

impl Watcher for System {
    fn add(&mut self, dir: &Path, _is_root: bool) -> Result<(), WatchError> {
        let mut limits = self.0.lock().expect("mine");
        limits.tries += 1;
        if limits.refused.contains(dir) {
            return Err(WatchError::NoEvents("Permission denied".to_owned()));
        }
        if limits.watched.contains(dir) {
            return Ok(());
        }
        limits.left = limits.left.checked_sub(1).ok_or(WatchError::UsedUp)?;
        limits.watched.insert(dir.to_path_buf());
        Ok(())
    }
}

/// A folder with a root in it, `root`, and the locks beside it.
struct Scene {
    dir: TempDir,
    system: System,
    /// What is a network mount.
    mount: Option<PathBuf>,
}

impl Scene {
    fn new(watches: usize) -> Scene {
        let dir = tempfile::tempdir().expect("a folder");
        let system = System::default();
        system.0.lock().expect("mine").left = watches;
        Scene { dir, system, mount: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("the folder").join(name)
    }

    /// Makes an empty session, and the directories on the way to it.
    fn session(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(&path, "").expect("written");
        path
    }

    fn root(&self, name: &str) -> Root {
        Root::new(&self.path(name))
    }

    fn limits(&self) -> std::sync::MutexGuard<'_, Limits> {
        self.system.0.lock().expect("mine")
    }

    /// Looks at all of a root; gives the names of the sessions that were found.
    fn look(&self, root: &mut Root) -> Vec<String> {
        self.ask(root, &Ask { whole: true, ..Ask::default() })
    }

    /// The same once a minute has passed.
    fn look_later(&self, root: &mut Root) -> Vec<String> {
        self.ask(root, &Ask { whole: true, watch: true, ..Ask::default() })
    }

    fn ask(&self, root: &mut Root, ask: &Ask) -> Vec<String> {
        let network = |dir: &Path| self.mount.as_ref().filter(|mount| dir.starts_with(mount)).map(|_| "NFS");
        let (to, _from) = unbounded_channel();
        let (runtime, hints) = (self.path("runtime"), Hints::new(to));
        let means = Means { runtime: Some(&runtime), watchers: &self.system, hints: &hints, network: &network };
        let found = root.look(&means, ask);
        found.iter().map(|f| f.path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
    }
}

fn why(root: &Root) -> String {
    root.standing.status(&root.named).why.unwrap_or_default()
}

fn state(root: &Root) -> String {
    root.standing.status(&root.named).state
}

#[test]
fn a_root_that_appears_later_is_locked_and_watched() {
    let scene = Scene::new(100);
    let mut root = scene.root("root");
    assert_eq!(scene.look(&mut root), [""; 0]);
    assert_eq!(state(&root), "absent");
    scene.session("root/--a--/s.jsonl");
    assert_eq!(scene.look(&mut root), ["s"]);
    assert_eq!(state(&root), "watched");
    assert_eq!(scene.limits().watched, [scene.path("root"), scene.path("root/--a--")].into());
    assert!(lock_root(&scene.path("runtime"), &scene.path("root")).is_err(), "another one stays off");
}

#[test]
fn a_root_is_kept_from_daemons_with_other_runtime_directories_and_so_is_what_is_in_it_and_above_it() {
    let scene = Scene::new(100);
    scene.session("around/root/--a--/s.jsonl");
    let mut root = scene.root("around/root");
    scene.look(&mut root);
    let theirs = |name: &str| lock_root(&scene.path("theirs"), &scene.path(name));
    for name in ["around/root", "around/root/--a--", "around", "around/root/--a--/s.jsonl"] {
        assert!(matches!(theirs(name), Err(FilesError::Busy { .. })), "{name}");
    }
    scene.session("around/beside/t.jsonl");
    let beside = theirs("around/beside").expect("free");
    drop((root, beside));
    assert!(theirs("around").is_ok(), "nobody is there any more");
}

/// A step has it as long as it is under way.
#[test]
fn a_lock_that_was_cleaned_away_is_taken_anew_also_while_a_step_has_the_root() {
    let scene = Scene::new(100);
    scene.session("root/--a--/s.jsonl");
    let mut root = scene.root("root");
    scene.look(&mut root);
    let step = root.held.clone().expect("held");
    let lock = fs::read_dir(scene.path("runtime")).expect("locks").next().expect("one").expect("read").path();
    fs::remove_file(lock).expect("cleaned away");
    assert!(!step.is_locked());
    scene.look(&mut root);
    assert!(state(&root) == "watched" && root.held.as_ref().is_some_and(|held| held.is_locked()), "{}", why(&root));
}

#[test]
fn what_is_no_directory_is_not_followed() {
    let scene = Scene::new(100);
    let mut root = scene.root("root");
    fs::write(scene.path("root"), "").expect("a file");
    scene.look(&mut root);
    assert_eq!((state(&root).as_str(), why(&root).as_str()), ("absent", "it is not a directory"));
}

#[test]
fn a_root_of_another_daemon_is_left_to_it_until_it_goes() {
    let scene = Scene::new(100);
    scene.session("root/--a--/s.jsonl");
    let (mut ours, mut theirs) = (scene.root("root"), scene.root("root"));
    assert_eq!(scene.look(&mut theirs), ["s"]);
    assert_eq!(scene.look(&mut ours), [""; 0]);
    assert_eq!(state(&ours), "locked");
    assert!(why(&ours).contains("stop that one"), "{}", why(&ours));
    drop(theirs);
    assert_eq!(scene.look(&mut ours), ["s"]);
}

/// The same sessions by another way: a root inside the other's, one around it, and a link to it.
#[test]
fn a_session_is_never_reached_by_two_roots_of_two_daemons() {
    let scene = Scene::new(100);
    scene.session("root/--a--/s.jsonl");
    std::os::unix::fs::symlink(scene.path("root"), scene.path("link")).expect("a link");
    let ways = ["root/--a--", "", "link", "link/--a--"];
    for first in ways {
        let mut theirs = scene.root(first);
        scene.look(&mut theirs);
        assert_eq!(state(&theirs), "watched", "{first:?}");
        for second in ways {
            let mut ours = scene.root(second);
            scene.look(&mut ours);
            assert_eq!(state(&ours), "locked", "{second:?} beside {first:?}");
        }
    }
    // What lies beside it is free.
    scene.session("other/t.jsonl");
    let (mut theirs, mut ours) = (scene.root("root"), scene.root("other"));
    assert_eq!((scene.look(&mut theirs).len(), scene.look(&mut ours).len()), (1, 1));
}

#[test]
fn a_root_that_was_replaced_is_begun_anew() {
    let scene = Scene::new(100);
    scene.session("root/s.jsonl");
    let mut root = scene.root("root");
    scene.look(&mut root);
    let held = root.held.clone().expect("held");
    fs::rename(scene.path("root"), scene.path("old")).expect("moved");
    let session = scene.session("root/t.jsonl");
    assert!(!held.has(&session), "it is another directory");
    drop(held);
    assert_eq!(scene.look(&mut root), ["t"]);
    assert!(root.held.as_ref().is_some_and(|held| held.has(&session)));
    assert!(lock_root(&scene.path("runtime"), &scene.path("old")).is_ok(), "the old one is anybody's");
    fs::remove_dir_all(scene.path("root")).expect("gone");
    scene.look(&mut root);
    assert_eq!((state(&root).as_str(), root.held.is_none()), ("absent", true));
}

#[test]
fn a_link_that_comes_to_lead_elsewhere_is_followed_there() {
    let scene = Scene::new(100);
    let (a, b) = (scene.session("a/s.jsonl"), scene.session("b/t.jsonl"));
    let lead = |name: &str| std::os::unix::fs::symlink(scene.path(name), scene.path("root")).expect("a link");
    lead("a");
    let mut root = scene.root("root");
    assert_eq!(scene.look(&mut root), ["s"]);
    fs::remove_file(scene.path("root")).expect("gone");
    lead("b");
    assert_eq!(scene.look_later(&mut root), ["t"]);
    let held = root.held.as_ref().expect("held");
    assert!(held.has(&b) && !held.has(&a));
}

#[test]
fn what_is_as_it_was_is_not_tried_each_second() {
    let scene = Scene::new(0);
    let path = scene.session("root/s.jsonl");
    let mut root = scene.root("root");
    let found = || locate::walk(&scene.path("root"), &mut |_, _| {});
    let (second, minute) = (Ask { whole: true, ..Ask::default() }, Ask { whole: true, watch: true, ..Ask::default() });
    let mut news = |ask: &Ask| root.news(ask, found()).len();
    assert_eq!([&second, &second, &second].map(&mut news), [1, 0, 0]);
    fs::write(&path, "half a line").expect("written");
    assert_eq!([&second, &second, &minute, &second].map(&mut news), [1, 0, 1, 0]);
    assert_eq!(news(&Ask::default()), 1, "what an event named");
}

/// As programs that tidy up temporary directories do.
#[test]
fn a_lock_whose_file_was_cleaned_away_is_taken_again_or_lost() {
    let scene = Scene::new(100);
    scene.session("root/s.jsonl");
    let mut root = scene.root("root");
    scene.look(&mut root);
    fs::remove_dir_all(scene.path("runtime")).expect("cleaned");
    assert_eq!((scene.look(&mut root).len(), state(&root).as_str()), (1, "watched"));
    assert!(lock_root(&scene.path("runtime"), &scene.path("root")).is_err(), "it is locked again");
    let lock = root.held.as_ref().and_then(|held| held.lock.as_ref()).expect("a lock").file().to_path_buf();
    fs::remove_dir_all(scene.path("runtime")).expect("cleaned");
    let theirs = lock_root(&scene.path("runtime"), &scene.path("root"));
    assert!(theirs.is_err(), "the directory itself is locked still");
    // Where a file system has no such locks, the file alone counts.
    fs::remove_dir_all(scene.path("runtime")).expect("cleaned");
    fs::create_dir(scene.path("runtime")).expect("made");
    let theirs = File::create(lock).expect("made");
    flock(&theirs, FlockOperation::NonBlockingLockExclusive).expect("free for them");
    scene.look(&mut root);
    assert_eq!((state(&root).as_str(), root.held.is_none()), ("locked", true));
}

#[test]
fn when_watches_are_used_up_all_is_still_found_and_they_are_tried_again() {
    let scene = Scene::new(2);
    for n in 0..5 {
        scene.session(&format!("root/d{n}/s{n}.jsonl"));
    }
    let mut root = scene.root("root");
    assert_eq!(scene.look(&mut root).len(), 5);
    assert_eq!(state(&root), "polled");
    assert!(why(&root).contains("max_user_watches"), "{}", why(&root));
    // Not at each look, but once a minute.
    let tries = scene.limits().tries;
    assert_eq!((scene.look(&mut root).len(), scene.limits().tries), (5, tries));
    scene.look_later(&mut root);
    assert_eq!(state(&root), "polled");
    assert!(scene.limits().tries > tries);
    scene.limits().left = 100;
    scene.look_later(&mut root);
    assert_eq!((state(&root).as_str(), scene.limits().watched.len()), ("watched", 6));
}

#[test]
fn where_there_are_no_watchers_at_all_it_is_polled_until_there_are() {
    let scene = Scene::new(100);
    scene.session("root/s.jsonl");
    scene.limits().none = true;
    let mut root = scene.root("root");
    assert_eq!((scene.look(&mut root).len(), state(&root).as_str()), (1, "polled"));
    scene.limits().none = false;
    scene.look_later(&mut root);
    assert_eq!(state(&root), "watched");
}

#[test]
fn a_directory_that_cannot_be_watched_costs_only_itself() {
    let scene = Scene::new(100);
    for name in ["a", "b", "c"] {
        scene.session(&format!("root/{name}/{name}.jsonl"));
    }
    scene.limits().refused.insert(scene.path("root/b"));
    let mut root = scene.root("root");
    assert_eq!(scene.look(&mut root), ["a", "b", "c"]);
    assert_eq!((state(&root).as_str(), scene.limits().watched.len()), ("watched", 3));
    // The root itself is another matter.
    scene.limits().refused.insert(scene.path("root"));
    scene.look(&mut root);
    assert_eq!(state(&root), "polled");
}

#[test]
fn a_root_on_a_network_file_system_is_polled() {
    let mut scene = Scene::new(100);
    scene.session("root/a/s.jsonl");
    scene.mount = Some(scene.path("root"));
    let mut root = scene.root("root");
    assert_eq!((scene.look(&mut root).len(), state(&root).as_str()), (1, "polled"));
    assert!(why(&root).contains("it is on NFS"), "{}", why(&root));
    assert!(scene.limits().watched.is_empty(), "events would say nothing");
}

#[test]
fn only_what_an_event_named_is_looked_at_and_no_link_is_followed() {
    let scene = Scene::new(100);
    scene.session("root/a/old.jsonl");
    let mut root = scene.root("root");
    scene.look(&mut root);
    scene.session("root/b/deep/new.jsonl");
    scene.session("outside/other.jsonl");
    std::os::unix::fs::symlink(scene.path("outside"), scene.path("root/link")).expect("a link");
    let named = |name: &str| Ask { dirs: [scene.path(name)].into(), ..Ask::default() };
    assert_eq!(scene.ask(&mut root, &named("root/b")), ["new"]);
    assert_eq!(scene.ask(&mut root, &named("root/link")), [""; 0]);
    assert_eq!(scene.ask(&mut root, &named("root/gone")), [""; 0]);
    assert!(scene.limits().watched.contains(&scene.path("root/b/deep")));
}

#[test]
fn thousands_of_directories_and_a_deep_one_are_walked() {
    let scene = Scene::new(10_000);
    for n in 0..2_000 {
        scene.session(&format!("root/d{n}/s{n}.jsonl"));
    }
    scene.session(&format!("root/{}s.jsonl", "d/".repeat(500)));
    let mut root = scene.root("root");
    assert_eq!(scene.look(&mut root).len(), 2_001);
    assert_eq!((state(&root).as_str(), scene.limits().watched.len()), ("watched", 2_501));
}
