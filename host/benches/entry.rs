//! From a line written to the plugin called and its batch on the disk: in a session of 1 MB and in one of 100 MB, in one
//! run. Aim: the same, within 1.5 times.
//!
//! `cargo bench --bench entry`. A step is what a worker does when the watcher has named the file: look at the file, read
//! what arrived, add it to the tree, run a plugin on it, record. The session is loaded, as it is after its first touch.
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use divan::{Bencher, black_box};
use pi_graft::daemon::links::Bell;
use pi_graft::daemon::session::Session;
use pi_graft::daemon::settings::Settings;
use pi_graft::daemon::world::{World, now_ms};
use pi_graft::deliver::settle::Times;
use pi_graft::files::append::RealDisk;
use pi_graft::journal::Journal;
use pi_graft::sandbox::{Limits, PluginSource, Sandbox, SandboxOptions};

const GUEST: &[u8] = include_bytes!("../../tests/guests/prebuilt/scripted.wasm");
const MB: usize = 1_000_000;

fn main() {
    divan::main();
}

/// A plugin that looks at its trigger and proposes nothing.
#[divan::bench(args = [1, 10, 100], sample_count = 200, sample_size = 1)]
fn nothing_proposed(bencher: Bencher<'_, '_>, megabytes: usize) {
    steps(bencher, megabytes, r#"{"entry":[{"read":"$trigger"}]}"#);
}

/// Opening the session first: its whole text is read once.
#[divan::bench(args = [1, 10, 100], sample_count = 5, sample_size = 1)]
fn first_touch(bencher: Bencher<'_, '_>, megabytes: usize) {
    let stage = Stage::new(megabytes, r#"{"entry":[]}"#);
    bencher.bench_local(|| black_box(stage.open()));
}

fn steps(bencher: Bencher<'_, '_>, megabytes: usize, script: &str) {
    let stage = Stage::new(megabytes, script);
    let mut session = stage.open();
    let mut count = 0;
    bencher
        .with_inputs(|| {
            count += 1;
            stage.write_entry(count);
        })
        .bench_local_refs(|()| session.step(&stage.world, Bell::default()).expect("a step"));
}

struct Stage {
    _dir: tempfile::TempDir,
    path: PathBuf,
    world: World,
}

impl Stage {
    fn new(megabytes: usize, script: &str) -> Stage {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s.jsonl");
        write_session(&path, megabytes * MB);
        let sandbox = Sandbox::new(&SandboxOptions::default()).expect("a sandbox");
        let source = PluginSource {
            name: "bench".into(),
            bytes: GUEST.into(),
            config_json: script.into(),
            grants: Vec::new(),
            limits: Limits::default(),
            on: None,
        };
        let plugin = sandbox.load(source).expect("it loads");
        // Started long after what the session holds: all of that is history.
        let journal = Journal::open(dir.path(), now_ms()).expect("a store");
        let world = World::new(journal, vec![Arc::new(plugin)], settings(), Box::new(RealDisk)).expect("a world");
        Stage { _dir: dir, path, world }
    }

    /// The session, read to its end.
    fn open(&self) -> Session {
        let mut session = Session::open(&self.world, &self.path).expect("it opens").expect("a session");
        let _ = session.step(&self.world, Bell::default()).expect("a step");
        session
    }

    fn write_entry(&self, count: usize) {
        let line = format!(
            "{{\"type\":\"message\",\"id\":\"n{count}\",\"parentId\":\"e0\",\"timestamp\":\"{}\",\"message\":{{\"role\":\"user\",\"content\":\"{}\"}}}}\n",
            pi_session::time::iso(now_ms()),
            "word ".repeat(200)
        );
        let line = if count == 1 { line } else { line.replace("\"e0\"", &format!("\"n{}\"", count - 1)) };
        let mut file = File::options().append(true).open(&self.path).expect("the session");
        file.write_all(line.as_bytes()).expect("written");
    }
}

fn settings() -> Settings {
    let times = Times { settle: Duration::from_secs(3600), live_hold: Duration::from_secs(3600) };
    Settings { times, closed: true, ..Settings::plain() }
}

/// Entries of about 3 KB, the last of which is `e0`.
fn write_session(path: &Path, bytes: usize) {
    let mut text =
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n"
            .to_owned();
    let words = "word ".repeat(600);
    let (mut number, mut parent) = (bytes / 3100, "null".to_owned());
    while number > 0 {
        number -= 1;
        text.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"e{number}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{words}\"}}}}\n"
        ));
        parent = format!("\"e{number}\"");
    }
    std::fs::write(path, text).expect("a session");
}
