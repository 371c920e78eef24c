//! The table of states of `deliver::append`, walked through: every system call of a delivery fails, at every place, in
//! every way; and the process ends at every labelled step. Then the disk is well again, and what was proposed must be in
//! the file: all of it, once, and not one line torn.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use pi_graft::daemon::links::Bell;
use pi_graft::daemon::session::Session;
use pi_graft::daemon::settings::Settings;
use pi_graft::daemon::world::World;
use pi_graft::files::disk::{Disk, RealDisk};
use pi_graft::journal::{Batch, Journal, Moved};
use pi_graft::steps;
use pi_session::Tree;
use pi_session::branch::Branch;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}"#;
const USER: &str = r#"{"type":"message","id":"00000001","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"x"}}"#;
const ANSWER: &str = r#"{"type":"message","id":"00000002","parentId":"00000001","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"y"}],"stopReason":"stop"}}"#;
const NAME: &str = "{\"type\":\"session_info\",\"id\":\"00000003\",\"parentId\":\"00000002\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"name\":\"n\"}\n";
const DRAFTS: &str = r#"[{"type":"custom","customType":"one"},{"type":"custom","customType":"two"},{"type":"custom_message","customType":"three","content":"z","display":true}]"#;

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The call fails so.
    Fails(io::ErrorKind),
    /// The call fails, and so does every one behind it.
    AllFail(io::ErrorKind),
    /// So much of a write is done, in hundredths, and then the disk is dead.
    Short(usize),
    /// So much of a write is done, in hundredths, and then the process ends.
    ShortThenEnd(usize),
    /// The process ends before the call.
    Ends,
    /// What is read is not what is there.
    Misread,
}

impl Fault {
    /// The first call that it makes sense for: a write comes behind open, lock, stat, the last bytes, room.
    fn from(self) -> usize {
        if matches!(self, Fault::Short(_) | Fault::ShortThenEnd(_)) { 5 } else { 0 }
    }
}

struct Failing {
    fault: Fault,
    at: usize,
    calls: Arc<AtomicUsize>,
}

impl Failing {
    /// Counts a call. True if it is the one that goes wrong.
    fn is_due(&self) -> io::Result<bool> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::Fails(kind) if call == self.at => Err(kind.into()),
            Fault::AllFail(kind) if call >= self.at => Err(kind.into()),
            Fault::Short(_) if call > self.at => Err(io::ErrorKind::StorageFull.into()),
            Fault::Ends if call == self.at => resume_unwind(Box::new("the process ends")),
            _ => Ok(call == self.at),
        }
    }
}

impl Disk for Failing {
    fn open(&self, path: &Path) -> io::Result<File> {
        self.is_due()?;
        RealDisk.open(path)
    }

    fn lock(&self, file: &File) -> io::Result<()> {
        self.is_due()?;
        RealDisk.lock(file)
    }

    fn stat(&self, file: &File) -> io::Result<Metadata> {
        self.is_due()?;
        RealDisk.stat(file)
    }

    fn read(&self, file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let wrong = self.is_due()? && matches!(self.fault, Fault::Misread);
        let bytes = RealDisk.read(file, offset, len)?;
        Ok(if wrong { vec![b'?'; bytes.len()] } else { bytes })
    }

    fn allocate(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        self.is_due()?;
        RealDisk.allocate(file, offset, len)
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let due = self.is_due()?;
        match self.fault {
            Fault::Short(part) if due => RealDisk.write(file, &bytes[..(bytes.len() * part / 100).max(1)]),
            Fault::ShortThenEnd(part) if due => {
                RealDisk.write(file, &bytes[..(bytes.len() * part / 100).max(1)])?;
                resume_unwind(Box::new("the process ends"))
            }
            _ => RealDisk.write(file, bytes),
        }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.is_due()?;
        RealDisk.sync(file)
    }

    fn set_modified(&self, file: &File, time: SystemTime) -> io::Result<()> {
        self.is_due()?;
        RealDisk.set_modified(file, time)
    }
}

/// How the session stands before the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Ended,
    /// Its last line lacks the line end.
    Unended,
    /// It is not the newest of its directory.
    Old,
}

struct Scene {
    dir: tempfile::TempDir,
    before: String,
    stands: Stands,
}

impl Scene {
    /// A session with one batch of three drafts that is pending.
    fn new(stands: Stands) -> Scene {
        let dir = tempfile::tempdir().expect("a folder");
        let end = if stands == Stands::Unended { "" } else { "\n" };
        let before = format!("{HEADER}\n{USER}\n{ANSWER}{end}");
        let scene = Scene { dir, before, stands };
        fs::write(scene.session(), &scene.before).expect("a session");
        if stands == Stands::Old {
            fs::write(scene.dir.path().join("newer.jsonl"), "").expect("a newer one");
        }
        File::options().append(true).open(scene.session()).and_then(|f| f.set_modified(old())).expect("its time");
        scene.propose("state", "aaaaaaaaaaaaaaaa");
        fs::copy(scene.store("state"), scene.dir.path().join("yesterday")).expect("yesterday's store");
        scene
    }

    fn session(&self) -> PathBuf {
        self.dir.path().join("s.jsonl")
    }

    fn store(&self, state: &str) -> PathBuf {
        self.dir.path().join(state).join("state.redb")
    }

    fn world(&self, state: &str, disk: Box<dyn Disk>) -> World {
        let dir = self.dir.path().join(state);
        fs::create_dir_all(&dir).expect("a state directory");
        let journal = Journal::open(&dir, 0).expect("the store");
        let settings = Settings {
            roots: vec![self.dir.path().to_path_buf()],
            closed: true,
            // Nobody loads a plugin here; what it has pending is delivered all the same.
            unloaded: vec!["noter".to_owned()],
            ..Settings::plain()
        };
        World::new(journal, Vec::new(), settings, disk).expect("a world")
    }

    /// Puts the batch into a store, as a run on the user's message would.
    fn propose(&self, state: &str, id: &str) {
        let world = self.world(state, Box::new(RealDisk));
        step(&world, &self.session()).expect("read");
        let (key, record) = world.journal.sessions().expect("the sessions").remove(0);
        let batch: Batch = serde_json::from_value(serde_json::json!({
            "id": id, "plugin": "noter", "version": "1", "digest": "d", "handler": "on-entry", "reason": "entry",
            "trigger": "00000001", "drafts": DRAFTS, "made_ms": 0,
        }))
        .expect("a batch");
        let _ =
            world.journal.record(Some(key), &record, Moved { batches: vec![batch], ..Moved::default() }).expect("kept");
    }

    /// Steps until nothing is pending any more.
    fn recover(&self, state: &str) {
        let world = self.world(state, Box::new(RealDisk));
        for _ in 0..8 {
            step(&world, &self.session()).expect("a disk that is well");
        }
        assert_eq!(world.journal.sessions_with_pending().expect("readable"), [], "nothing waits any more");
        assert_eq!(world.journal.intents().expect("readable").len(), 0);
    }

    /// All of it is there, once, behind what was there before.
    fn assert_grafted(&self, what: &str, torn_lines: usize) {
        let text = fs::read_to_string(self.session()).expect("text");
        assert!(text.starts_with(&self.before), "{what}: {text}");
        let tree = Arc::new(Tree::from_bytes(text.as_bytes()));
        // The first two entries are as short as can be; what is looked at is what came behind them.
        let there = self.before.len() as u64;
        let problems = tree.problems().iter().filter(|problem| problem.offset >= there);
        let problems: Vec<_> = problems.map(|problem| problem.rule()).collect();
        assert!(
            problems.len() <= torn_lines && problems.iter().all(|rule| *rule == "S2.2"),
            "{what}: {problems:?} {text}"
        );
        let branch = Branch::of_leaf(&tree, Arc::new(text.clone().into_bytes())).expect("a branch");
        assert_eq!(branch.len() as usize, tree.entries().len(), "{what}: all on one branch: {text}");
        for kind in ["one", "two", "three"] {
            let there = tree.entries().iter().filter(|entry| tree.word(entry) == kind).count();
            assert_eq!(there, 1, "{what}: {kind}: {text}");
        }
    }

    /// What was there is there, the file ends on its branch, and all of the batch is on it, once.
    fn assert_led_back(&self, what: &str, before: &str) {
        let text = fs::read_to_string(self.session()).expect("text");
        assert!(text.starts_with(before), "{what}: {text}");
        let tree = Arc::new(Tree::from_bytes(text.as_bytes()));
        let branch = Branch::of_leaf(&tree, Arc::new(text.clone().into_bytes())).expect("a branch");
        let on = |word: &str| branch.items().filter(|item| item.word == word).count();
        // Where the last line had no end, it is that one which the half was glued to.
        assert!(
            branch.place_of(if self.stands == Stands::Unended { "00000001" } else { "00000002" }).is_some(),
            "{what}: {text}"
        );
        assert_eq!(["one", "two", "three", "pi-graft.rejoin"].map(on), [1; 4], "{what}: {text}");
    }

    /// An old session does not become the newest of its directory by a graft (S13.3).
    fn assert_old(&self, what: &str) {
        if self.stands == Stands::Old {
            let time = fs::metadata(self.session()).and_then(|meta| meta.modified()).expect("its time");
            assert_eq!(time, old(), "{what}: an old session is not the newest now");
        }
    }
}

fn old() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_700)
}

/// One step of a session that is read anew, as after a failure.
fn step(world: &World, path: &Path) -> Result<(), String> {
    let session = Session::open(world, path).map_err(|e| e.to_string())?;
    session.expect("a session").step(world, Bell::default()).map(drop).map_err(|e| e.to_string())
}

/// A step that may unwind; what was in memory is gone then.
fn step_to_the_end(scene: &Scene, disk: Box<dyn Disk>) {
    let world = scene.world("state", disk);
    let _ = catch_unwind(AssertUnwindSafe(|| step(&world, &scene.session())));
}

#[test]
fn every_call_of_a_delivery_may_fail_in_every_way() {
    use io::ErrorKind::{Other, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let mut faults = vec![Fault::Ends, Fault::Misread, Fault::AllFail(Other), Fault::AllFail(StorageFull)];
    faults.extend([Other, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull].map(Fault::Fails));
    faults.extend([0, 20, 50, 75, 99].map(Fault::Short));
    faults.extend([0, 20, 50, 75, 99].map(Fault::ShortThenEnd));
    for stands in [Stands::Ended, Stands::Unended, Stands::Old] {
        for fault in &faults {
            let mut walked = 0;
            for at in fault.from().. {
                let scene = Scene::new(stands);
                let calls = Arc::new(AtomicUsize::new(0));
                step_to_the_end(&scene, Box::new(Failing { fault: *fault, at, calls: Arc::clone(&calls) }));
                scene.recover("state");
                let what = format!("{stands:?}, {fault:?} at call {at}");
                scene.assert_grafted(&what, 0);
                if matches!(fault, Fault::Ends | Fault::ShortThenEnd(_)) {
                    scene.assert_old(&what);
                }
                if calls.load(Ordering::SeqCst) <= at {
                    break;
                }
                walked = at;
            }
            assert!(walked >= 6, "{fault:?}: only {walked} calls");
        }
    }
}

/// A file that stays read-only, or a disk that stays full for as long as you like, costs a try now and then, and is told as
/// what waits.
#[test]
fn what_cannot_be_written_is_tried_again_ever_less_often_and_then_grafted() {
    let disks: [(Box<dyn Disk>, &str); 2] = [(Box::new(ReadOnly), "cannot be written"), (Box::new(Full), "no room")];
    for (disk, why) in disks {
        let scene = Scene::new(Stands::Old);
        let world = scene.world("state", disk);
        let mut session = Session::open(&world, &scene.session()).expect("readable").expect("a session");
        let mut look = || session.step(&world, Bell::default()).expect("a step");
        let pauses: Vec<_> = (0..60).map(|_| look()).map(|next| (next.after, next.waiting)).collect();
        let expected = [5, 10, 20, 40].into_iter().chain([60; 56]).map(Duration::from_secs);
        assert_eq!(
            pauses.iter().map(|(after, _)| after.expect("a pause")).collect::<Vec<_>>(),
            expected.collect::<Vec<_>>()
        );
        assert!(pauses.iter().all(|(_, told)| told.is_some_and(|told| told.contains(why))), "{why}: {pauses:?}");
        assert_eq!(fs::read_to_string(scene.session()).expect("text"), scene.before, "{why}: not one byte");
        scene.assert_old(why);
        drop(world);
        scene.recover("state");
        scene.assert_grafted(why, 0);
    }
}

/// A disk without room.
struct Full;

impl Disk for Full {
    fn allocate(&self, _: &File, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }
}

/// A disk that may be read, and not opened for writing.
struct ReadOnly;

impl Disk for ReadOnly {
    fn open(&self, _: &Path) -> io::Result<File> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// What stands in the store when the process comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Same,
    /// A copy from before the delivery was put back.
    Yesterdays,
    /// Another pi-graft comes first, with a store of its own that holds the same proposal; then this one.
    TwoOfThem,
}

fn comes_back(scene: &Scene, store: Store) {
    match store {
        Store::Same => {}
        Store::Yesterdays => {
            fs::copy(scene.dir.path().join("yesterday"), scene.store("state")).expect("put back");
        }
        Store::TwoOfThem => {
            scene.propose("second", "bbbbbbbbbbbbbbbb");
            scene.recover("second");
        }
    }
    scene.recover("state");
}

#[test]
fn the_process_may_end_at_every_labelled_step_and_come_back_to_any_store() {
    for stands in [Stands::Ended, Stands::Unended, Stands::Old] {
        for store in [Store::Same, Store::Yesterdays, Store::TwoOfThem] {
            for label in ["intended", "written", "done"] {
                let scene = Scene::new(stands);
                steps::unwind_at(Some(label));
                step_to_the_end(&scene, Box::new(RealDisk));
                steps::unwind_at(None);
                comes_back(&scene, store);
                scene.assert_grafted(&format!("{stands:?}, {label}, {store:?}"), 0);
                if store == Store::Same {
                    scene.assert_old(label);
                }
            }
        }
    }
}

/// A write that was cut short at any place, and then a store that knows nothing of it: a line that was cut is ended and
/// left behind, and whatever stands whole is not written again.
#[test]
fn a_write_that_was_cut_short_is_made_good_by_any_store() {
    for store in [Store::Same, Store::Yesterdays, Store::TwoOfThem] {
        for part in 0..100 {
            let scene = Scene::new(Stands::Ended);
            // The sixth call is the write: open, lock, stat, the last byte, room.
            step_to_the_end(
                &scene,
                Box::new(Failing { fault: Fault::ShortThenEnd(part), at: 5, calls: Arc::default() }),
            );
            comes_back(&scene, store);
            let torn = usize::from(store != Store::Same);
            scene.assert_grafted(&format!("{part} of 100, {store:?}"), torn);
        }
    }
}

/// The recovery itself is interrupted at its own steps.
#[test]
fn a_recovery_may_be_cut_off_too() {
    for (label, store) in [("completed", Store::Same), ("replaced", Store::Yesterdays)] {
        let scene = Scene::new(Stands::Ended);
        step_to_the_end(&scene, Box::new(Failing { fault: Fault::ShortThenEnd(75), at: 5, calls: Arc::default() }));
        if store == Store::Yesterdays {
            fs::copy(scene.dir.path().join("yesterday"), scene.store("state")).expect("put back");
        }
        for _ in 0..3 {
            steps::unwind_at(Some(label));
            step_to_the_end(&scene, Box::new(RealDisk));
            steps::unwind_at(None);
        }
        scene.recover("state");
        scene.assert_grafted(label, usize::from(store != Store::Same));
    }
}

/// Between the check and the write somebody writes this to the session, once.
struct Meanwhile(PathBuf, &'static str, AtomicUsize);

impl Meanwhile {
    fn writes(scene: &Scene, what: &'static str) -> Box<Meanwhile> {
        Box::new(Meanwhile(scene.session(), what, AtomicUsize::new(0)))
    }
}

impl Disk for Meanwhile {
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        if self.2.fetch_add(1, Ordering::SeqCst) == 0 {
            File::options().append(true).open(&self.0)?.write_all(self.1.as_bytes())?;
        }
        RealDisk.write(file, bytes)
    }
}

/// Whose line it was loses it, and our receipt with it, which it is glued to. What is left of ours hangs on nothing, and who
/// opens the file then begins with an empty context: so it is led back, by any store, whatever ends the process meanwhile.
#[test]
fn behind_half_a_line_that_came_in_that_moment_the_file_is_led_back() {
    for stands in [Stands::Ended, Stands::Unended, Stands::Old] {
        for store in [Store::Same, Store::Yesterdays, Store::TwoOfThem] {
            for label in [None, Some("rejoin-intended"), Some("rejoin-written"), Some("rejoin-done")] {
                let what = format!("{stands:?}, {label:?}, {store:?}");
                let scene = Scene::new(stands);
                step_to_the_end(&scene, Meanwhile::writes(&scene, r#"{"type":"message","id":"half"#));
                let glued = fs::read_to_string(scene.session()).expect("text");
                assert!(glued.starts_with(&scene.before) && glued.len() > scene.before.len(), "{what}: written");
                steps::unwind_at(label);
                step_to_the_end(&scene, Box::new(RealDisk));
                steps::unwind_at(None);
                comes_back(&scene, store);
                scene.assert_led_back(&what, &glued);
            }
        }
    }
}

/// It is the newest by now, whatever its time was when the graft was begun (S13.3).
#[test]
fn an_old_session_that_somebody_wrote_to_before_the_process_ended_is_not_old_any_more() {
    for label in ["written", "done"] {
        let scene = Scene::new(Stands::Old);
        steps::unwind_at(Some(label));
        step_to_the_end(&scene, Meanwhile::writes(&scene, NAME));
        steps::unwind_at(None);
        step_to_the_end(&scene, Box::new(RealDisk));
        let time = fs::metadata(scene.session()).and_then(|meta| meta.modified()).expect("its time");
        assert!(time > old(), "{label}");
    }
}
