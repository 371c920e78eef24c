//! A session with something left to do that cannot be done now is not looked at over and over.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pi_graft::daemon::links::Bell;
use pi_graft::daemon::session::Session;
use pi_graft::daemon::settings::Settings;
use pi_graft::daemon::step::Next;
use pi_graft::daemon::world::{Met, World, now_ms};
use pi_graft::deliver::settle::Times;
use pi_graft::files::append::RealDisk;
use pi_graft::journal::Journal;
use pi_graft::sandbox::{Limits, PluginSource, Sandbox, SandboxOptions};
use pi_session::time;

const GUEST: &[u8] = include_bytes!("../../tests/guests/prebuilt/scripted.wasm");
const LONG: Duration = Duration::from_secs(3600);

/// A session file in a folder of its own.
struct Scene {
    dir: tempfile::TempDir,
    entries: usize,
}

impl Scene {
    fn new() -> Scene {
        let scene = Scene { dir: tempfile::tempdir().expect("a folder"), entries: 0 };
        let iso = time::iso(now_ms());
        let header = format!(r#"{{"type":"session","version":3,"id":"s","timestamp":"{iso}","cwd":"/nowhere"}}"#);
        std::fs::write(scene.path(), format!("{header}\n")).expect("a session");
        scene
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s.jsonl")
    }

    /// Appends a message with these members.
    fn message(&mut self, members: &str) {
        let parent = self.entries.checked_sub(1).map_or("null".to_owned(), |before| format!("\"e{before}\""));
        let (id, iso) = (self.entries, time::iso(now_ms()));
        let line = format!(
            r#"{{"type":"message","id":"e{id}","parentId":{parent},"timestamp":"{iso}","message":{{{members},"timestamp":{}}}}}"#,
            now_ms()
        );
        let mut file = File::options().append(true).open(self.path()).expect("the session");
        file.write_all(format!("{line}\n").as_bytes()).expect("written");
        self.entries += 1;
    }

    fn user(&mut self) {
        self.message(r#""role":"user","content":"go on""#);
    }

    fn answer(&mut self, block: &str, stop: &str) {
        self.message(&format!(
            r#""role":"assistant","content":[{block}],"api":"x","provider":"p","model":"m","usage":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{{"total":0}}}},"stopReason":"{stop}""#
        ));
    }
}

/// A world with one plugin that does this and has little time for it; what is put off is due at once.
fn world(script: &str) -> World {
    let sandbox = Sandbox::new(&SandboxOptions::default()).expect("a sandbox");
    let (time, retry) = (Duration::from_millis(20), Duration::ZERO);
    let limits = Limits { time, retry, fuel: u64::MAX, ..Limits::default() };
    let (bytes, config_json) = (GUEST.into(), script.into());
    let source = PluginSource { name: "slow".into(), bytes, config_json, grants: Vec::new(), limits, on: None };
    let plugin = Arc::new(sandbox.load(source).expect("it loads"));
    let times = Times { settle: Duration::ZERO, live_hold: LONG };
    let settings = Settings { times, ..Settings::plain() };
    let journal = Journal::in_memory(now_ms()).expect("a store");
    World::new(journal, vec![plugin], settings, Box::new(RealDisk)).expect("a world")
}

fn open(world: &World, path: &Path) -> Session {
    Session::open(world, path).expect("readable").expect("a session")
}

fn step(world: &World, session: &mut Session, bell: Bell) -> Next {
    session.step(world, bell).expect("a step")
}

/// A copy of a session is met that was moved: its file is looked for below the roots, which may take long.
#[test]
fn while_a_session_is_looked_for_that_was_moved_nobody_waits_for_what_is_known() {
    static WORLD: OnceLock<World> = OnceLock::new();
    let mut scene = Scene::new();
    scene.user();
    let (asked, answer) = std::sync::mpsc::channel();
    let by_path = move |_: &Path| {
        let asked = asked.clone();
        std::thread::spawn(move || asked.send(WORLD.get().expect("a world").count()));
        true
    };
    let answer = std::sync::Mutex::new(answer);
    let dir = scene.dir.path().canonicalize().expect("there");
    let settings = Settings {
        roots: vec![dir.clone()],
        by_path: Box::new(move |path| by_path(path) && answer.lock().expect("mine").recv_timeout(LONG / 60).is_ok()),
        ..Settings::plain()
    };
    let journal = Journal::in_memory(now_ms()).expect("a store");
    WORLD.set(World::new(journal, Vec::new(), settings, Box::new(RealDisk)).expect("a world")).ok().expect("once");
    let world = WORLD.get().expect("a world");
    step(world, &mut open(world, &dir.join("s.jsonl")), Bell::default());
    std::fs::rename(dir.join("s.jsonl"), dir.join("moved.jsonl")).expect("moved");
    std::fs::copy(dir.join("moved.jsonl"), dir.join("copy.jsonl")).expect("copied");
    let copy = pi_graft::files::FileId::of(&std::fs::metadata(dir.join("copy.jsonl")).expect("there"));
    assert_eq!(world.meet(&dir.join("copy.jsonl"), "s", copy), Met::Copy);
}

#[test]
fn the_retries_of_a_suspended_plugin_keep_nobody_awake() {
    let mut scene = Scene::new();
    (0..5).for_each(|_| scene.user());
    let world = world(r#"{"on":["message:user"],"entry":[{"loop":true}]}"#);
    let mut session = open(&world, &scene.path());
    step(&world, &mut session, Bell::default());
    let next = step(&world, &mut session, Bell::default());
    assert_eq!((next.after, next.tally.failed), (None, 0), "five in a row: there is nothing to wait for by the clock");
}

#[test]
fn a_wish_that_waits_for_a_settled_branch_keeps_nobody_awake() {
    let mut scene = Scene::new();
    scene.user();
    scene.answer(r#"{"type":"text","text":"ok"}"#, "stop");
    let world = world(r#"{"on":["message:user"],"entry":[{"later":"soon"}],"settled":[{"loop":true}]}"#);
    let mut session = open(&world, &scene.path());
    let job = step(&world, &mut session, Bell::default()).jobs.pop().expect("it is asked for");
    // Pi goes on meanwhile, and the run fails.
    scene.answer(r#"{"type":"toolCall","id":"c","name":"bash","arguments":{}}"#, "toolUse");
    step(&world, &mut session, Bell { settled: vec![job.work()], ..Bell::default() });
    let next = step(&world, &mut session, Bell::default());
    assert!(next.after.is_none_or(|after| after > LONG / 2), "{:?}: {:?}", next.after, next.waiting);
    assert!(next.jobs.is_empty());
}

/// How much this process has read so far, bytes.
#[cfg(target_os = "linux")]
fn has_read() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").expect("what it did");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("what it read");
    line.parse().expect("a number")
}

/// Appends this as it is.
fn append(path: &Path, text: &[u8]) {
    let mut file = File::options().append(true).open(path).expect("the session");
    file.write_all(text).expect("written");
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_line_that_is_still_being_written_is_not_read_anew_each_time_that_it_grows() {
    let mut scene = Scene::new();
    scene.user();
    let world = world(r#"{"on":["message:toolResult"]}"#);
    let mut session = open(&world, &scene.path());
    append(&scene.path(), br#"{"type":"custom","id":"long","parentId":"e0","customType":"x","data":""#);
    append(&scene.path(), &vec![b'x'; 32 << 20]);
    step(&world, &mut session, Bell::default());
    let before = has_read();
    for _ in 0..20 {
        append(&scene.path(), b"x");
        step(&world, &mut session, Bell::default());
    }
    assert!(has_read() - before < 64 << 20, "{} bytes read for 20 that came", has_read() - before);
    append(&scene.path(), b"\"}\n");
    let next = step(&world, &mut session, Bell::default());
    assert_eq!(next.tally.handled, 1, "the line has arrived");
}

/// Whoever wrote what was looked through wrote something else there meanwhile.
#[test]
fn a_long_half_line_that_was_written_anew_is_read_anew() {
    let mut scene = Scene::new();
    scene.user();
    let world = world(r#"{"on":["message:toolResult"]}"#);
    let mut session = open(&world, &scene.path());
    let len = std::fs::metadata(scene.path()).expect("the session").len();
    append(&scene.path(), &vec![b'x'; 1 << 20]);
    step(&world, &mut session, Bell::default());
    File::options().write(true).open(scene.path()).and_then(|file| file.set_len(len)).expect("shortened");
    append(&scene.path(), br#"{"type":"custom","id":"whole","parentId":"e0","customType":"x"}"#);
    append(&scene.path(), b"\n");
    append(&scene.path(), &vec![b'y'; 2 << 20]);
    assert_eq!(step(&world, &mut session, Bell::default()).tally.handled, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_huge_file_without_a_header_is_not_read_as_a_whole() {
    let scene = Scene::new();
    std::fs::write(scene.path(), vec![b'x'; 64 << 20]).expect("written");
    let world = world(r#"{"on":["message:toolResult"]}"#);
    let before = has_read();
    assert!(Session::open(&world, &scene.path()).expect("no failure").is_none());
    assert!(has_read() - before < 32 << 20);
}
