//! 10,000 appends, Pi's way of writing and ours, Pi's aimed into the gap between our check and our write: none is damaged,
//! lost or doubled, and after each quiet the file ends on Pi's own branch, with every graft on it once (product.md section 5).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pi_graft::daemon::links::Bell;
use pi_graft::daemon::session::Session;
use pi_graft::daemon::settings::Settings;
use pi_graft::daemon::world::{World, now_ms};
use pi_graft::files::append::{Disk, RealDisk};
use pi_graft::journal::Journal;
use pi_graft::sandbox::{Limits, PluginSource, Sandbox, SandboxOptions};
use pi_session::branch::Branch;
use pi_session::tree::Leaf;
use pi_session::{Tree, time};

const GUEST: &[u8] = include_bytes!("../../tests/guests/prebuilt/scripted.wasm");
const NOTE: &str =
    r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":"$trigger"}}]}"#;
/// Appends of both.
const APPENDS: usize = 10_000;

/// A Pi that keeps its leaf in memory, and looks at the file only when it is opened anew.
struct Pi {
    path: PathBuf,
    leaf: Option<String>,
    /// Every line it wrote, by id.
    lines: BTreeMap<String, String>,
    /// What the dice show next.
    dice: u64,
    /// Whether it writes while we do.
    writes_on: bool,
}

impl Pi {
    /// The same numbers in every run.
    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    fn write(&mut self) {
        let is_user = self.roll(2) == 0;
        let (role, more) = if is_user { ("user", "") } else { ("assistant", ANSWER) };
        let id = format!("pi-{}", self.lines.len());
        let parent = self.leaf.replace(id.clone()).map_or("null".to_owned(), |leaf| format!("{leaf:?}"));
        let (iso, text) = (time::iso(now_ms()), r#"{"type":"text","text":"hi"}"#);
        let line = format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{iso}","message":{{"role":"{role}","content":[{text}],"timestamp":{}{more}}}}}"#,
            now_ms()
        );
        append(&self.path, &line);
        self.lines.insert(id, line);
    }

    /// Quits and is opened on what the file ends with.
    fn reopen(&mut self) {
        let tree = Tree::from_bytes(&std::fs::read(&self.path).expect("the session"));
        if let Leaf::At(ix) = tree.leaf() {
            self.leaf = Some(tree.id(ix).to_owned());
        }
    }
}

fn append(path: &Path, line: &str) {
    let mut file = File::options().append(true).open(path).expect("the session");
    file.write_all(format!("{line}\n").as_bytes()).expect("written");
}

/// The disk with a Pi that writes between the check and the write, as often as not. It keeps nothing past the power's end.
struct Gap(Arc<Mutex<Pi>>);

impl Disk for Gap {
    fn allocate(&self, _: &File, _: u64, _: u64) -> io::Result<()> {
        let mut pi = self.0.lock().expect("no panic");
        if pi.writes_on && pi.roll(2) == 0 {
            (0..=pi.roll(2)).for_each(|_| pi.write());
        }
        Ok(())
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        RealDisk.write(file, bytes)
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// What an answer has beside its text.
const ANSWER: &str = r#","api":"x","provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0}},"stopReason":"stop""#;

fn world(pi: &Arc<Mutex<Pi>>) -> World {
    let sandbox = Sandbox::new(&SandboxOptions::default()).expect("a sandbox");
    let (limits, grants) = (Limits::default(), vec!["append:custom".to_owned()]);
    let source =
        PluginSource { name: "noter".into(), bytes: GUEST.into(), config_json: NOTE.into(), grants, limits, on: None };
    let plugin = Arc::new(sandbox.load(source).expect("it loads"));
    let journal = Journal::in_memory(now_ms()).expect("a store");
    World::new(journal, vec![plugin], Settings::plain(), Box::new(Gap(Arc::clone(pi)))).expect("a world")
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the session").len()
}

/// Steps until nothing happens any more.
fn quiet(world: &World, session: &mut Session, path: &Path) {
    loop {
        let before = len(path);
        let next = session.step(world, Bell::default()).expect("a step");
        if len(path) == before && next.waiting.is_none() {
            return;
        }
    }
}

/// The file as it stands: sound, with every line of Pi's as it was written, Pi's last one on the branch that it ends on, and
/// one note for each of the user's messages there. Gives how many entries there are.
fn assert_whole(pi: &Pi) -> usize {
    let bytes = std::fs::read(&pi.path).expect("the session");
    let tree = Arc::new(Tree::from_bytes(&bytes));
    assert_eq!(tree.problems(), [], "no line torn, glued, doubled or without its parent");
    for (id, line) in &pi.lines {
        let entry = tree.entry(tree.by_id(id).unwrap_or_else(|| panic!("{id} is lost")));
        let at = entry.offset as usize;
        assert_eq!(&bytes[at..at + entry.len as usize], line.as_bytes());
    }
    let branch = Branch::of_leaf(&tree, Arc::new(bytes)).expect("a branch");
    let leaf = pi.leaf.as_deref().expect("Pi stands somewhere");
    assert!(branch.place_of(leaf).is_some(), "{leaf} is not on the branch that the file ends on");
    let notes = branch.items().filter(|item| item.word == "note").count();
    let users = branch.items().filter(|item| item.facts.role == pi_session::entry::Role::User).count();
    assert_eq!(notes, users, "each once");
    tree.entries().len()
}

#[test]
fn ten_thousand_appends_of_pi_and_of_ours_into_each_others_gaps() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.jsonl");
    let iso = time::iso(now_ms());
    let header = format!(r#"{{"type":"session","version":3,"id":"s","timestamp":"{iso}","cwd":"/nowhere"}}"#);
    std::fs::write(&path, format!("{header}\n")).expect("a session");
    let pi = Pi { path: path.clone(), leaf: None, lines: BTreeMap::new(), dice: 1, writes_on: true };
    let pi = Arc::new(Mutex::new(pi));
    let world = world(&pi);
    pi.lock().expect("no panic").write();
    let mut session = Session::open(&world, &path).expect("readable").expect("a session");
    let mut entries = 0;
    while entries < APPENDS {
        for _ in 0..6 {
            pi.lock().expect("no panic").write();
            let _ = session.step(&world, Bell::default()).expect("a step");
        }
        pi.lock().expect("no panic").writes_on = false;
        quiet(&world, &mut session, &path);
        let mut pi = pi.lock().expect("no panic");
        entries = assert_whole(&pi);
        pi.writes_on = true;
        if pi.roll(2) == 0 {
            pi.reopen();
        }
    }
    let text = std::fs::read_to_string(&path).expect("the session");
    let count = |word: &str| text.matches(word).count();
    let (rejoins, receipts, lines) =
        (count("pi-graft.rejoin"), count("pi-graft.run"), pi.lock().expect("no panic").lines.len());
    println!("{entries} entries: {lines} of Pi's, {receipts} grafts, {rejoins} ways back");
    assert!(rejoins > 50 && lines > 2000, "the gap was hit: {rejoins} of {receipts}");
}
