//! Roots that come, go, are another daemon's, or give no events.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{Daemon, Stage, append, scripted, until};
use crate::talk::{Session, Talk};

/// Notes each user message in a `custom` entry.
const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;

fn stage() -> Stage {
    Stage::new(20, &scripted("noter", &["append:custom"], NOTE))
}

/// Writes other roots into the config.
fn set_roots(stage: &Stage, roots: &[PathBuf]) {
    let path = stage.path("config.toml");
    let text = fs::read_to_string(&path).expect("the config");
    let line = text.lines().find(|line| line.starts_with("roots = ")).expect("roots");
    fs::write(&path, text.replace(line, &format!("roots = {roots:?}"))).expect("the config");
}

/// A turn in a new session, and its graft.
fn is_followed(path: &std::path::Path) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    let mut pi = Talk::begin(path);
    pi.user("hello");
    pi.assistant("hi");
    until("the graft", || notes(path) == 1);
}

fn notes(path: &std::path::Path) -> usize {
    Session::read(path).customs("note").len()
}

/// How each root stands: its state, and why.
fn states(stage: &Stage) -> Vec<(String, String)> {
    let output = stage.run(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let roots = status["roots"].as_array().expect("roots").clone();
    roots.iter().map(|root| (text(&root["state"]), text(&root["why"]))).collect()
}

fn state(stage: &Stage) -> String {
    states(stage).remove(0).0
}

/// Another daemon's stage: its own state directory and config, and the roots of the first.
struct Beside {
    stage: Stage,
    runtime: PathBuf,
}

impl Beside {
    /// With the first one's runtime directory.
    fn new(first: &Stage, roots: &[PathBuf]) -> Beside {
        Beside { runtime: first.path("runtime"), ..Beside::apart(roots) }
    }

    /// With a runtime directory of its own, as another user has.
    fn apart(roots: &[PathBuf]) -> Beside {
        let stage = stage();
        set_roots(&stage, roots);
        Beside { runtime: stage.path("runtime"), stage }
    }

    fn runtime(&self) -> String {
        self.runtime.to_str().expect("text").to_owned()
    }

    fn daemon(&self) -> Daemon {
        self.stage.daemon_with(&["--closed"], &[("XDG_RUNTIME_DIR", &self.runtime())])
    }

    fn run(&self, args: &[&str]) -> Output {
        self.stage.command(args).env("XDG_RUNTIME_DIR", self.runtime()).output().expect("the binary runs")
    }

    /// That it does not start, and says why and what to do.
    fn is_refused(&self, args: &[&str]) {
        let mut command = self.stage.command(args);
        command.env("XDG_RUNTIME_DIR", self.runtime()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        // One that is not refused would follow for ever.
        let ends = Instant::now() + Duration::from_secs(60);
        while child.try_wait().expect("its state").is_none() && Instant::now() < ends {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("another pi-graft"), "{said}");
    }
}

#[test]
fn a_root_that_appears_goes_and_comes_again_is_followed_each_time() {
    let stage = stage();
    fs::remove_dir_all(stage.root()).expect("gone");
    let mut daemon = stage.daemon(&["--closed"]);
    assert_eq!(state(&stage), "absent");
    is_followed(&stage.session("a.jsonl"));
    assert_eq!(state(&stage), "watched");
    fs::remove_dir_all(stage.root()).expect("gone");
    until("it is seen to be gone", || state(&stage) == "absent");
    is_followed(&stage.session("b.jsonl"));
    // Another directory in its place, within one moment.
    fs::create_dir_all(stage.path("new/--work--")).expect("made");
    fs::rename(stage.root(), stage.path("old")).expect("moved");
    fs::rename(stage.path("new"), stage.root()).expect("moved");
    is_followed(&stage.session("c.jsonl"));
    daemon.wait_for("watched");
    daemon.end();
}

#[test]
fn a_root_of_another_daemon_is_refused_at_the_start_whatever_leads_to_it() {
    let stage = stage();
    is_refused_beside(&stage, &|roots| Beside::new(&stage, roots));
}

#[test]
fn a_root_of_another_daemon_is_refused_whatever_their_runtime_directories() {
    is_refused_beside(&stage(), &Beside::apart);
}

/// A directory that stands at a second place too, until the end of the scene.
struct Bound(PathBuf);

impl Bound {
    fn at(dir: &std::path::Path, place: &std::path::Path) -> Option<Bound> {
        fs::create_dir(place).expect("a place");
        let mount = Command::new("mount").arg("--bind").args([dir, place]).output();
        let there = mount.is_ok_and(|output| output.status.success());
        if !there {
            eprintln!("left out: this user may not mount");
        }
        there.then(|| Bound(place.to_path_buf()))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

fn is_refused_beside(stage: &Stage, beside: &dyn Fn(&[PathBuf]) -> Beside) {
    let daemon = stage.daemon(&["--closed"]);
    std::os::unix::fs::symlink(stage.root(), stage.path("link")).expect("a link");
    let bound = Bound::at(&stage.root(), &stage.path("bound"));
    let mut ways = vec!["sessions", "link", "sessions/--work--", "."];
    ways.extend(bound.iter().flat_map(|_| ["bound", "bound/--work--"]));
    for way in ways {
        let beside = beside(&[stage.path(way)]);
        beside.is_refused(&["run"]);
        beside.is_refused(&["run", "--once"]);
    }
    // A session that is named is as much the other's.
    is_followed(&stage.session("a.jsonl"));
    let beside = beside(&[]);
    beside.is_refused(&["run", "--once", stage.session("a.jsonl").to_str().expect("text")]);
    daemon.end();
    assert!(beside.run(&["run", "--once", stage.session("a.jsonl").to_str().expect("text")]).status.success());
}

/// Each has a root of its own. What leads out of one is not followed; a file that has a name in both is, by both, and what the one
/// grafted the other finds in it.
#[test]
fn a_session_that_two_roots_lead_to_gets_each_graft_once() {
    let stage = stage();
    let own = stage.path("own");
    fs::create_dir(&own).expect("made");
    let beside = Beside::apart(std::slice::from_ref(&own));
    let (first, second) = (stage.daemon(&["--closed"]), beside.daemon());
    let (linked, shared) = (stage.session("linked.jsonl"), stage.session("shared.jsonl"));
    let (linked_there, shared_there) = (own.join("linked.jsonl"), own.join("shared.jsonl"));
    [&linked, &shared].iter().for_each(|path| drop(Talk::begin(path)));
    std::os::unix::fs::symlink(&linked, &linked_there).expect("a link");
    fs::hard_link(&shared, &shared_there).expect("a second name");
    for (turn, paths) in
        [[&linked, &shared], [&linked_there, &shared_there], [&linked, &shared]].into_iter().enumerate()
    {
        for path in paths {
            let mut pi = Talk::reopen(path);
            pi.user("hello");
            pi.assistant("hi");
            until("the graft", || notes(path) == turn + 1);
            Session::read(path).assert_sound();
        }
    }
    let logs = [first.end(), second.end()];
    assert!(logs[0].contains("linked.jsonl") && !logs[1].contains("linked.jsonl"), "{logs:?}");
    assert!(logs[1].contains("shared.jsonl"), "{logs:?}");
    assert_eq!([notes(&linked), notes(&shared)], [3, 3]);
}

/// Resolved once and for all, a link that comes to lead elsewhere would never be noticed.
#[test]
fn a_root_keeps_the_name_that_the_config_gives_it_and_two_names_for_one_are_one() {
    let stage = stage();
    let (link, inside) = (stage.path("link"), stage.session(""));
    std::os::unix::fs::symlink(stage.root(), &link).expect("a link");
    set_roots(&stage, &[inside, link.clone(), stage.root()]);
    let mut daemon = stage.daemon(&["--closed"]);
    daemon.wait_for("link: watched");
    assert_eq!(states(&stage).len(), 1);
    is_followed(&stage.session("a.jsonl"));
    is_followed(&link.join("--work--/b.jsonl"));
    let output = stage.run(&["run", "--once", "--since", "1h", "--dry-run", "--json"]);
    let done: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(done["sessions"], 2, "what was changed lately is found by the names that sessions are known by");
    daemon.end();
}

#[test]
fn of_several_roots_those_that_are_free_are_followed_and_the_others_when_they_are() {
    let stage = stage();
    let theirs = stage.daemon(&["--closed"]);
    let own = stage.path("own");
    let beside = Beside::new(&stage, &[stage.root(), own.clone()]);
    fs::create_dir(&own).expect("made");
    let mut ours = beside.daemon();
    ours.wait_for("not followed: another pi-graft");
    is_followed(&own.join("a.jsonl"));
    let output = beside.run(&["status"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("sessions: locked (another pi-graft follows it") && said.contains("own: watched"), "{said}");
    is_followed(&stage.session("theirs.jsonl"));
    assert!(!ours.log().contains("theirs.jsonl"), "{}", ours.log());
    let once = beside.run(&["run", "--once"]);
    assert!(!once.status.success(), "its own state directory is taken");
    theirs.end();
    is_followed(&stage.session("ours.jsonl"));
    assert!(ours.log().contains("ours.jsonl"));
    ours.end();
}

#[test]
fn a_reload_locks_the_roots_that_come_and_releases_those_that_go() {
    let stage = stage();
    let mut first = stage.daemon(&["--closed"]);
    is_followed(&stage.session("a.jsonl"));
    let other = stage.path("other");
    fs::create_dir(&other).expect("made");
    let beside = Beside::new(&stage, std::slice::from_ref(&other));
    let mut second = beside.daemon();
    is_followed(&other.join("b.jsonl"));

    // The first one wants both, and gets what is free.
    set_roots(&stage, &[stage.root(), other.clone()]);
    assert!(stage.run(&["reload"]).status.success());
    first.wait_for("not followed: another pi-graft");
    is_followed(&stage.session("c.jsonl"));

    // The second one goes elsewhere: now the first has it, and the second not any more.
    set_roots(&beside.stage, &[stage.path("elsewhere")]);
    assert!(beside.run(&["reload"]).status.success());
    second.wait_for("reloaded");
    until("it is the first one's", || states(&stage)[1].0 == "watched");
    is_followed(&other.join("d.jsonl"));
    assert!(first.log().contains("d.jsonl") && !second.log().contains("d.jsonl"));
    second.end();
    first.end();
}

/// In a namespace of its own, where root may say how many watches there are; without one this says that it was skipped.
fn with_watches(stage: &Stage, setup: &str) -> Option<Daemon> {
    let there = Command::new("unshare").args(["-Ur", "true"]).output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("skipped: no user namespaces here");
        return None;
    }
    let mut program = Command::new("unshare");
    program.args(["-Ur", "sh", "-c", &format!("{setup}; exec \"$@\""), "sh"]);
    Some(stage.daemon_by(program, &["--closed"]))
}

#[test]
fn when_the_systems_watches_are_used_up_it_polls_and_says_so_once() {
    let stage = stage();
    for name in ["a", "b", "c", "d"] {
        fs::create_dir(stage.root().join(name)).expect("made");
    }
    let Some(daemon) = with_watches(&stage, "echo 2 > /proc/sys/user/max_inotify_watches") else { return };
    is_followed(&stage.root().join("d/s.jsonl"));
    is_followed(&stage.root().join("later/t.jsonl"));
    let (state, why) = states(&stage).remove(0);
    assert_eq!(state, "polled");
    assert!(why.contains("watches are used up") && why.contains("max_user_watches"), "{why}");
    let log = daemon.end();
    assert_eq!(log.matches("watches are used up").count(), 1, "{log}");
}

#[test]
fn without_any_watcher_it_polls() {
    let stage = stage();
    let Some(daemon) = with_watches(&stage, "echo 0 > /proc/sys/user/max_inotify_instances") else { return };
    is_followed(&stage.session("a.jsonl"));
    assert_eq!(state(&stage), "polled");
    daemon.end();
}

/// More happens than the system keeps events for, while the daemon cannot look.
#[test]
fn events_that_were_lost_are_made_good_by_a_walk() {
    let Ok(kept) = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events") else { return };
    let kept: usize = kept.trim().parse().expect("a number");
    let stage = stage();
    let mut daemon = stage.daemon(&["--closed"]);
    daemon.signal(Signal::STOP);
    let noise = ["x", "y"].map(|name| stage.root().join(name));
    // Two files in turn, since the same event twice is kept once. Each time gives two events: twice as many as are kept, since
    // some may yet be read before the signal is heeded.
    (0..kept).for_each(|n| append(&noise[n % 2], ""));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    daemon.signal(Signal::CONT);
    daemon.wait_for("file events were lost");
    until("the graft", || notes(&path) == 1);
    daemon.end();
}

/// As a program that tidies up does. The next daemon, with a state directory of its own, stays off as ever.
#[test]
fn a_lock_that_was_cleaned_away_is_taken_again_within_seconds() {
    let stage = stage();
    let daemon = stage.daemon(&["--closed"]);
    let locks = || {
        let dir = fs::read_dir(stage.path("runtime/pi-graft")).into_iter().flatten().flatten();
        dir.filter(|entry| entry.path().extension().is_some_and(|ext| ext == "lock")).count()
    };
    assert!(locks() > 0);
    fs::remove_dir_all(stage.path("runtime/pi-graft")).expect("cleaned away");
    is_followed(&stage.session("one.jsonl"));
    assert!(locks() > 0, "nothing is written below a root that is not locked");
    let config = fs::read_to_string(stage.path("config.toml")).expect("the config");
    fs::write(stage.path("config.toml"), config.replace("/state\"", "/other\"")).expect("another state directory");
    let second = stage.run(&["run", "--once", "--closed"]);
    let said = format!("{}{}", String::from_utf8_lossy(&second.stdout), String::from_utf8_lossy(&second.stderr));
    assert!(second.status.code() == Some(1) && said.contains("another pi-graft follows it"), "{said}");
    daemon.end();
}
