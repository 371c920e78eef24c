//! `kill -9` at any moment, with several writers, while yesterday's store is put back, the store is deleted and two stores take
//! turns on one folder. `PI_GRAFT_KILLS` says how often (12 times unless it does), `PI_GRAFT_SEED` how the dice fall.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk, member, pi_reads};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A Pi that has one session in its memory all the time, and never reads its file again.
struct Writer {
    path: PathBuf,
    talk: Talk,
    /// What it has written.
    ids: Vec<String>,
    users: Vec<String>,
}

impl Writer {
    fn begin(path: PathBuf) -> Writer {
        Writer { talk: Talk::begin(&path), path, ids: Vec::new(), users: Vec::new() }
    }

    fn turns(&mut self, count: u64) {
        for _ in 0..count {
            let user = self.talk.user("go on");
            let answer = self.talk.assistant("ok");
            self.ids.extend([user.clone(), answer]);
            self.users.push(user);
        }
    }

    /// Nothing of it is lost, doubled or torn, and each of the user's messages has its note on the branch, once.
    fn assert_whole(&self) {
        let file = Session::read(&self.path);
        file.assert_sound();
        let there = file.ids();
        assert!(self.ids.iter().all(|id| there.contains(id)), "{}: a line is lost", self.path.display());
        assert!(self.ids.last().is_none_or(|last| file.is_live(last)), "{}: off its branch", self.path.display());
        let mut noted: Vec<String> =
            file.live_customs("note").iter().map(|note| member(note, &["data", "of"])).collect();
        noted.sort();
        let mut users = self.users.clone();
        users.sort();
        assert_eq!(noted, users, "{}", self.path.display());
        if let Some(answer) = pi_reads(&self.path) {
            assert_eq!((&answer["loadError"], &answer["fileChangedByOpen"]), (&serde_json::Value::Null, &false.into()));
        }
    }
}

/// What is done to the stores while no daemon runs. The other store is that of another machine with the same folder.
fn mix_up(stage: &Stage, dice: &mut Dice) {
    let [state, other, between] = ["state", "other", "between"].map(|name| stage.path(name));
    let (store, yesterday) = (state.join("state.redb"), stage.path("yesterday.redb"));
    let _ = match dice.roll(6) {
        0 => std::fs::copy(&store, &yesterday).map(drop),
        1 => std::fs::copy(&yesterday, &store).map(drop),
        2 => std::fs::remove_file(&store),
        3 => std::fs::rename(&state, &between)
            .and_then(|()| std::fs::rename(&other, &state).or(Ok(())))
            .and_then(|()| std::fs::rename(&between, &other)),
        _ => Ok(()),
    };
}

#[test]
fn killed_at_any_moment_beside_several_writers_by_whatever_store() {
    let stage = Stage::new(5, &scripted("noter", &["append:custom"], NOTE));
    let mut dice = Dice(number("PI_GRAFT_SEED", 1));
    let mut writers: Vec<Writer> =
        ["a.jsonl", "b.jsonl", "c.jsonl"].map(|name| Writer::begin(stage.session(name))).into();
    for kill in 0..number("PI_GRAFT_KILLS", 12) {
        mix_up(&stage, &mut dice);
        let daemon = stage.daemon(&["--closed", "--backfill"]);
        let turns: Vec<u64> = writers.iter().map(|_| 1 + dice.roll(3)).collect();
        // Of each of the user's messages it tells that a plugin ran, what was proposed and that it was grafted.
        let most = 3 * turns.iter().sum::<u64>();
        let lines = daemon.log().lines().count() + dice.roll(most) as usize;
        std::thread::scope(|scope| {
            writers.iter_mut().zip(&turns).for_each(|(writer, turns)| drop(scope.spawn(|| writer.turns(*turns))));
            until(&format!("the moment of kill {kill}"), || daemon.log().lines().count() >= lines);
            daemon.kill();
        });
    }
    ends_whole(&stage, writers);
}

/// As a laptop that is closed, or a machine that stalls: the daemon stands still at any moment, in the middle of a write too, and
/// goes on when others have written.
#[test]
fn stopped_at_any_moment_while_several_writers_go_on() {
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], NOTE));
    let mut dice = Dice(number("PI_GRAFT_SEED", 1));
    let mut writers: Vec<Writer> =
        ["a.jsonl", "b.jsonl", "c.jsonl"].map(|name| Writer::begin(stage.session(name))).into();
    let daemon = stage.daemon(&["--closed", "--backfill"]);
    for _ in 0..10 * number("PI_GRAFT_KILLS", 12) {
        writers.iter_mut().for_each(|writer| writer.turns(1));
        let lines = daemon.log().lines().count() + dice.roll(9) as usize;
        until("the moment to stop", || daemon.log().lines().count() >= lines);
        (0..dice.roll(2000)).for_each(|_| std::hint::spin_loop());
        daemon.signal(Signal::STOP);
        let goes_on = dice.roll(3) as usize;
        writers[goes_on].turns(1 + dice.roll(2));
        daemon.signal(Signal::CONT);
    }
    daemon.end();
    ends_whole(&stage, writers);
}

/// Whoever wrote all the time goes on for one turn more, and quits.
fn ends_whole(stage: &Stage, mut writers: Vec<Writer>) {
    writers.iter_mut().for_each(|writer| writer.turns(1));
    stage.once(&["--closed", "--backfill"]);
    writers.iter().for_each(Writer::assert_whole);
    let before: Vec<_> = writers.iter().map(|writer| std::fs::read(&writer.path).expect("a session")).collect();
    for store in ["other", "none at all"] {
        std::fs::rename(stage.path("state"), stage.path(&format!("before {store}"))).expect("put aside");
        let _ = std::fs::rename(stage.path(store), stage.path("state"));
        stage.once(&["--closed", "--backfill"]);
    }
    let after: Vec<_> = writers.iter().map(|writer| std::fs::read(&writer.path).expect("a session")).collect();
    assert_eq!(before, after, "no other store grafts anything once more");
}
