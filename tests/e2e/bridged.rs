//! A session whose Pi has a bridge: what Pi is handed at its boundaries, and that what it took is known by the file alone.
//! Here the bridge is a script; `live` has the real one in the real Pi.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::peer::Peer;
use crate::stage::{Daemon, Stage, scripted, until};
use crate::talk::{Session, Talk, member};

/// A Pi with a bridge, written by hand.
pub struct Pi {
    talk: Talk,
    peer: Peer,
    asks: u64,
}

impl Pi {
    pub fn start(stage: &Stage, path: &std::path::Path) -> Pi {
        // As Pi does, which makes the file with its first message.
        let (mut peer, welcome) = Peer::bridge(stage, path, None);
        assert_eq!(welcome["serves"], true, "{welcome}");
        let talk = Talk::begin(path);
        peer.say(&json!({ "leaf": null, "idle": false, "on": "input" }));
        Pi { talk, peer, asks: 0 }
    }

    /// A turn: the user says something and the model answers.
    pub fn turn(&mut self, text: &str) -> String {
        self.talk.user(text);
        self.talk.assistant("ok")
    }

    fn ask(&mut self, leaf: &str, more: Value) -> Value {
        self.asks += 1;
        let mut ask = json!({ "ask": self.asks, "leaf": leaf, "ms": 20_000 });
        ask.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.peer.say(&ask);
        loop {
            let told = self.peer.hear().expect("an answer");
            if told["answer"] == self.asks {
                return told;
            }
        }
    }

    /// Asks at the end of a turn that ended well; what is to be taken in.
    fn boundary(&mut self, leaf: &str) -> Vec<Value> {
        let told =
            self.ask(leaf, json!({ "at": "turn_end", "outcome": "completed", "stopReason": "stop", "others": [] }));
        told["entries"].as_array().expect("entries").clone()
    }

    /// Appends drafts as Pi does, with ids and times of its own; the last one's id.
    fn take(&mut self, drafts: &[Value]) -> String {
        drafts.iter().map(|draft| self.take_one(draft)).last().expect("something")
    }

    fn take_one(&mut self, draft: &Value) -> String {
        let mut draft = draft.as_object().expect("a draft").clone();
        let kind = draft.remove("type").expect("a type");
        if kind == "compaction" {
            draft.insert("tokensBefore".into(), json!(9));
        }
        let members = Value::Object(draft).to_string();
        self.talk.entry(kind.as_str().expect("text"), members[1..members.len() - 1].trim())
    }
}

fn kinds(drafts: &[Value]) -> Vec<&str> {
    drafts.iter().map(|d| d["customType"].as_str().or(d["type"].as_str()).expect("a type")).collect()
}

pub const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

pub fn notes() -> Stage {
    Stage::new(20, &scripted("noter", &["append:custom"], NOTE))
}

fn log_of(daemon: &Daemon, text: &str) -> usize {
    daemon.log().matches(text).count()
}

/// A daemon, and a Pi with a bridge on a session that is not there yet.
fn begin(stage: Stage) -> (Stage, PathBuf, Daemon, Pi) {
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let pi = Pi::start(&stage, &path);
    (stage, path, daemon, pi)
}

#[test]
fn pi_takes_what_is_pending_at_its_boundary_and_the_file_says_so() {
    let (stage, path, mut daemon, mut pi) = begin(notes());
    let leaf = pi.turn("one");
    let drafts = pi.boundary(&leaf);
    assert_eq!(kinds(&drafts), ["pi-graft.run", "note"]);
    pi.take(&drafts);
    let leaf = pi.turn("two");
    let drafts = pi.boundary(&leaf);
    assert_eq!(kinds(&drafts), ["pi-graft.run", "note"], "the first is done, the second is new");
    let leaf = pi.take(&drafts);
    assert!(pi.boundary(&leaf).is_empty());
    daemon.wait_for("grafted: Pi has taken it");
    assert_eq!(log_of(&daemon, "grafted: Pi has taken it"), 2);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!((file.receipts(), file.customs("note").len()), (2, 2));
    daemon.end();
    stage.once(&["--closed"]);
    assert_eq!(Session::read(&path).receipts(), 2, "nothing was left to do");
}

#[test]
fn what_was_not_taken_is_handed_over_again() {
    let (_stage, _path, daemon, mut pi) = begin(notes());
    let leaf = pi.turn("one");
    let first = pi.boundary(&leaf);
    assert_eq!(first.len(), 2);
    let leaf = pi.turn("two");
    let again = pi.boundary(&leaf);
    assert_eq!(kinds(&again), ["pi-graft.run", "note", "pi-graft.run", "note"]);
    assert_eq!(again[0]["data"]["batch"], first[0]["data"]["batch"]);
    let leaf = pi.take(&again);
    assert!(pi.boundary(&leaf).is_empty());
    daemon.end();
}

/// The answer had reached Pi when the daemon was killed: whether Pi took it stands in the file, and nowhere else.
#[test]
fn killed_behind_an_answer_nothing_is_handed_over_twice_or_lost() {
    for taken in [true, false] {
        let (stage, path, daemon, mut pi) = begin(notes());
        let leaf = pi.turn("one");
        let drafts = pi.boundary(&leaf);
        daemon.kill();
        let leaf = if taken { pi.take(&drafts) } else { leaf };
        let mut daemon = stage.daemon(&[]);
        let seen = if taken { "grafted: Pi has taken it" } else { "which is not connected at this moment" };
        daemon.wait_for(seen);
        let (peer, _) = Peer::bridge(&stage, &path, Some(&leaf));
        pi.peer = peer;
        let drafts = pi.boundary(&leaf);
        assert_eq!(drafts.is_empty(), taken);
        if !taken {
            pi.take(&drafts);
        }
        pi.peer.say(&json!({ "bye": "quit" }));
        daemon.end();
        stage.once(&["--closed"]);
        let file = Session::read(&path);
        file.assert_sound();
        assert_eq!((file.receipts(), file.customs("note").len()), (1, 1), "taken: {taken}");
    }
}

#[test]
fn an_idle_pi_is_pushed_state_and_messages() {
    let (_stage, path, mut daemon, mut pi) = begin(notes());
    let leaf = pi.turn("one");
    pi.peer.say(&json!({ "leaf": leaf, "idle": true, "on": "agent_settled" }));
    let told = pi.peer.hear().expect("a push");
    assert_eq!(told["leaf"], leaf);
    let leaf = pi.take(told["entries"].as_array().expect("entries"));
    pi.peer.say(&json!({ "pushed": told["push"], "ok": true, "leaf": leaf }));
    pi.peer.say(&json!({ "leaf": leaf, "idle": true, "on": "pushed" }));
    daemon.wait_for("grafted: Pi has taken it");
    assert!(pi.boundary(&leaf).is_empty());
    daemon.end();
    assert_eq!(Session::read(&path).customs("note").len(), 1);
}

const COMPACT: &str = r#"{"needs":["append:compaction"],"on":["message:user"],"entry":[{"later":"due"}],
    "settled":[{"compaction":{"summary":"made for $reason","first_kept":"$leaf"}}]}"#;

fn compactor() -> Stage {
    Stage::new(20, &scripted("compactor", &["append:compaction"], COMPACT))
}

#[test]
fn what_is_asked_for_is_made_at_the_boundary_and_handed_over_there() {
    let (_stage, _path, daemon, mut pi) = begin(compactor());
    pi.turn("one");
    let leaf = pi.turn("two");
    let drafts = pi.boundary(&leaf);
    assert_eq!(kinds(&drafts), ["pi-graft.run", "compaction"]);
    assert_eq!(drafts[1]["summary"], "made for boundary");
    let leaf = pi.take(&drafts);
    assert!(pi.boundary(&leaf).is_empty());
    daemon.end();
}

#[test]
fn after_a_failed_turn_no_compaction_is_handed_over() {
    let (_stage, _path, daemon, mut pi) = begin(compactor());
    let leaf = pi.turn("one");
    let failed = json!({ "at": "turn_end", "outcome": "failed", "stopReason": "error", "others": [] });
    assert_eq!(pi.ask(&leaf, failed)["entries"], json!([]));
    assert_eq!(kinds(&pi.boundary(&leaf)), ["pi-graft.run", "compaction"]);
    daemon.end();
}

#[test]
fn in_place_of_pis_own_compaction() {
    let (stage, path, mut daemon, mut pi) = begin(compactor());
    pi.turn("one");
    let leaf = pi.turn("two");
    let told = pi.ask(&leaf, json!({ "at": "session_before_compact", "reason": "threshold" }));
    let mut made = told["compaction"].clone();
    assert_eq!((&made["summary"], &made["firstKeptEntryId"]), (&json!("made for threshold"), &json!(leaf)));
    made["type"] = json!("compaction");
    let leaf = pi.take(&[made]);
    assert!(pi.boundary(&leaf).is_empty(), "it is known by its details; what was asked for is not made a second time");
    daemon.wait_for("grafted: Pi has taken it");
    daemon.end();
    stage.once(&["--closed"]);
    assert_eq!(Session::read(&path).compactions(), 1);
}

#[test]
fn a_compaction_that_lost_against_another_one_is_stale() {
    let (_stage, _path, mut daemon, mut pi) = begin(compactor());
    pi.turn("one");
    let leaf = pi.turn("two");
    let told = pi.ask(&leaf, json!({ "at": "session_before_compact", "reason": "manual", "instructions": "short" }));
    assert_eq!(told["compaction"]["summary"], "made for manual");
    // Another extension's was taken.
    pi.take(&[json!({ "type": "compaction", "summary": "theirs", "firstKeptEntryId": leaf })]);
    let leaf = pi.talk.assistant("going on");
    let drafts = pi.boundary(&leaf);
    assert!(drafts.iter().all(|draft| draft["summary"] != "made for manual"), "{drafts:?}");
    daemon.wait_for("stale, dropped whole");
    daemon.end();
}

#[test]
fn what_others_hand_over_at_the_same_boundary_comes_first() {
    let (_stage, _path, daemon, mut pi) = begin(compactor());
    let leaf = pi.turn("one");
    let theirs = json!({ "type": "compaction", "summary": "theirs", "firstKeptEntryId": leaf });
    let well = json!({ "at": "turn_end", "outcome": "completed", "stopReason": "stop", "others": [theirs] });
    assert_eq!(pi.ask(&leaf, well)["entries"], json!([]));
    daemon.end();
}

/// After `/tree` Pi may stand on any entry; what is pending for another branch waits.
#[test]
fn pi_is_handed_what_belongs_to_the_branch_it_stands_on() {
    let (_stage, path, daemon, mut pi) = begin(notes());
    let first = pi.turn("one");
    let drafts = pi.boundary(&first);
    let first = pi.take(&drafts);
    let second = pi.turn("two");
    assert!(pi.boundary(&first).is_empty());
    let drafts = pi.boundary(&second);
    assert_eq!(kinds(&drafts), ["pi-graft.run", "note"]);
    let of = Session::read(&path).customs("note");
    assert_eq!(of.len(), 1);
    assert_ne!(member(&of[0], &["data", "of"]), drafts[1]["data"]["of"].as_str().expect("an id"));
    daemon.end();
}

#[test]
fn of_two_pis_only_the_one_at_the_end_of_the_file_is_served() {
    let (stage, path, daemon, mut pi) = begin(notes());
    let leaf = pi.turn("one");
    let (_other, welcome) = Peer::bridge(&stage, &path, None);
    assert_eq!(welcome["serves"], true);
    assert_eq!(kinds(&pi.boundary(&leaf)), ["pi-graft.run", "note"]);
    Talk::reopen(&path).user("by the other Pi");
    assert!(pi.boundary(&leaf).is_empty());
    daemon.end();
}

/// Whoever connects and says what nobody expects, or nothing at all, and never reads: hundreds of them.
#[test]
fn a_pi_is_served_while_strangers_crowd_the_socket() {
    use std::io::Write;
    let (stage, path, daemon, mut pi) = begin(notes());
    let socket = crate::peer::socket_of(&stage);
    let half = format!("{{\"v\":1,\"bridge\":\"hello\",\"x\":\"{}", "x".repeat(100_000));
    let says = [
        "",
        "not JSON at all\n",
        "{\"v\":99,\"bridge\":\"hello\"}\n",
        "{\"v\":1,\"control\":\"no such thing\"}\n",
        "[[[[[[[[[[[[[[[[\n\n\n\u{0}\u{1}\n",
        half.as_str(),
    ];
    for round in 1..=3 {
        let crowd: Vec<_> = (0..300)
            .filter_map(|n| {
                let mut stranger = std::os::unix::net::UnixStream::connect(&socket).ok()?;
                stranger.set_nonblocking(true).ok()?;
                let _ = stranger.write_all(says[n % says.len()].as_bytes());
                Some(stranger)
            })
            .collect();
        assert!(crowd.len() > 100, "they get in");
        let leaf = pi.turn("hello");
        let drafts = pi.boundary(&leaf);
        assert_eq!(kinds(&drafts), ["pi-graft.run", "note"]);
        pi.take(&drafts);
        drop(crowd);
        until("there is room again", || stage.run(&["status"]).status.success());
        assert_eq!(Session::read(&path).live_customs("note").len(), round);
    }
    Session::read(&path).assert_sound();
    daemon.end();
}

const TWO: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[
    {"custom":{"type":"first","data":"$trigger"}},{"custom":{"type":"second","data":"$trigger"}}]}"#;

/// Pi's disk was full behind the first draft.
#[test]
fn what_pi_did_not_take_of_a_batch_is_handed_over_alone() {
    let stage = Stage::new(20, &scripted("two", &["append:custom"], TWO));
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut pi = Pi::start(&stage, &path);
    let leaf = pi.turn("one");
    let drafts = pi.boundary(&leaf);
    assert_eq!(kinds(&drafts), ["pi-graft.run", "first", "second"]);
    let leaf = pi.take(&drafts[..2]);
    let rest = pi.boundary(&leaf);
    assert_eq!(kinds(&rest), ["pi-graft.run", "second"]);
    assert_eq!(rest[0]["data"]["continues"], drafts[0]["data"]["batch"]);
    let leaf = pi.take(&rest);
    assert!(pi.boundary(&leaf).is_empty());
    pi.peer.say(&json!({ "bye": "quit" }));
    daemon.end();
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!((file.live_customs("first").len(), file.live_customs("second").len()), (1, 1));
    assert_eq!((file.customs("first").len(), file.customs("second").len()), (1, 1));
}

/// A write of ours was cut off behind the first draft, or in the middle of the second; Pi was opened on that and went on.
#[test]
fn a_torn_graft_that_somebody_wrote_behind_is_made_whole() {
    for cut_in_line in [false, true] {
        let stage = Stage::new(20, &scripted("two", &["append:custom"], TWO));
        let path = stage.session("a.jsonl");
        let daemon = stage.daemon_with(&["--closed"], &[("PI_GRAFT_TEST_DIE_AT", "written")]);
        let mut talk = Talk::begin(&path);
        talk.user("one");
        talk.assistant("ok");
        daemon.wait_for_end();
        let text = std::fs::read_to_string(&path).expect("the session");
        let second = text.trim_end().rfind('\n').expect("a line before") + 1;
        let end = if cut_in_line { second + 20 } else { second };
        std::fs::write(&path, &text[..end]).expect("as the power left it");
        if cut_in_line {
            crate::stage::append(&path, "\n");
        }
        let mut pi = Talk::reopen(&path);
        pi.user("two");
        pi.assistant("ok");
        for _ in 0..2 {
            stage.once(&["--closed"]);
            let file = Session::read(&path);
            let (first, second) = (file.live_customs("first"), file.live_customs("second"));
            assert_eq!((first.len(), second.len()), (2, 2), "cut in a line: {cut_in_line}\n{first:#?}{second:#?}");
            assert_ne!(member(&second[0], &["data"]), member(&second[1], &["data"]));
            assert_eq!(file.receipts(), 3, "that of the second continues the first");
        }
    }
}

#[test]
fn a_wanted_compaction_that_was_aborted_is_not_handed_over_later() {
    let slow = r#"{"needs":["append:compaction"],"on":["label"],
        "settled":[{"calls":30000},{"compaction":{"summary":"made for $reason","first_kept":"$leaf"}}]}"#;
    let stage = Stage::new(20, &scripted("compactor", &["append:compaction"], slow));
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Pi::start(&stage, &path);
    pi.turn("one");
    let leaf = pi.turn("two");
    pi.peer.say(
        &json!({ "ask": 77, "leaf": leaf, "ms": 20_000, "at": "session_before_compact", "reason": "manual", "others": [] }),
    );
    daemon.wait_for("an on-settled run begins");
    pi.peer.say(&json!({ "cancel": 77 }));
    daemon.wait_for("nobody waits for it");
    assert!(pi.boundary(&leaf).is_empty());
    pi.peer.say(&json!({ "leaf": leaf, "idle": true, "on": "agent_settled" }));
    assert!(pi.boundary(&leaf).is_empty());
    daemon.end();
    stage.once(&["--closed"]);
    assert_eq!(Session::read(&path).compactions(), 0);
}

#[test]
fn the_log_says_what_was_handed_over_and_what_was_taken() {
    let (stage, _path, daemon, mut pi) = begin(notes());
    let leaf = pi.turn("one");
    let drafts = pi.boundary(&leaf);
    until("what is told of it", || stage.outcomes() == ["handed over"]);
    let leaf = pi.take(&drafts);
    assert!(pi.boundary(&leaf).is_empty());
    until("what is known of it", || stage.outcomes() == ["handed over", "grafted"]);
    daemon.end();
}

/// Pi had it, so that it goes elsewhere is its user's will, though nothing of Pi's hangs on it yet; across a restart too.
#[test]
fn what_pi_took_and_its_user_left_behind_is_not_offered_again() {
    for restart in [false, true] {
        let (stage, path, mut daemon, mut pi) = begin(notes());
        let before = pi.turn("one");
        let drafts = pi.boundary(&before);
        let leaf = pi.take(&drafts);
        assert!(pi.boundary(&leaf).is_empty());
        daemon.wait_for("grafted: Pi has taken it");
        if restart {
            daemon.end();
            daemon = stage.daemon(&[]);
            (pi.peer, _) = Peer::bridge(&stage, &path, Some(&before));
            pi.peer.say(&json!({ "leaf": before, "idle": false, "on": "input" }));
        }
        pi.talk.go_to(&before);
        let leaf = pi.turn("elsewhere");
        let drafts = pi.boundary(&leaf);
        assert_eq!(kinds(&drafts), ["pi-graft.run", "note"], "restart: {restart}");
        assert_ne!(drafts[0]["data"]["trigger"], json!(first_user(&path)));
        assert!(!daemon.log().contains("orphaned"));
        daemon.end();
    }
}

#[test]
fn what_a_bridge_holds_is_neither_removed_nor_written_by_hand_whatever_is_forced() {
    let (stage, path, daemon, mut pi) = begin(notes());
    pi.turn("one");
    let text = std::fs::read(&path).expect("the session");
    let file = path.to_str().expect("a plain path");
    let drafts = stage.path("drafts.json");
    std::fs::write(&drafts, r#"[{"type":"custom","customType":"by-hand"}]"#).expect("drafts");
    let drafts = drafts.to_str().expect("a plain path");
    let commands =
        [&["session", "rm", file, "--permanently", "--force"][..], &["session", "append", file, "--drafts", drafts]];
    for command in commands {
        let output = stage.run(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("a Pi has it open (a bridge says so"), "{said}");
        assert_eq!(std::fs::read(&path).expect("the session"), text);
    }
    drop(daemon);
    for command in commands.iter().rev() {
        let output = stage.run(command);
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(!path.exists());
}

fn first_user(path: &std::path::Path) -> String {
    Session::read(path).ids()[0].clone()
}

#[test]
fn the_edits_of_what_pi_took_follow_its_user_to_another_branch() {
    let script = r#"{"needs":["append:context_edit","append:custom"],"on":["message:user"],"entry":[
        {"edits":[{"target":"$trigger","text":"REDACTED"}]},{"custom":{"type":"told"}}]}"#;
    let stage = Stage::new(20, &scripted("redactor", &["append:context_edit", "append:custom"], script));
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let mut pi = Pi::start(&stage, &path);
    let before = pi.turn("secret");
    let drafts = pi.boundary(&before);
    assert_eq!(kinds(&drafts), ["pi-graft.run", "told", "context_edit"]);
    pi.take(&drafts);
    pi.talk.assistant("going on");
    pi.talk.go_to(&before);
    let leaf = pi.talk.assistant("elsewhere");
    let drafts = pi.boundary(&leaf);
    assert_eq!(kinds(&drafts), ["pi-graft.run", "context_edit"]);
    let leaf = pi.take(&drafts);
    assert!(pi.boundary(&leaf).is_empty());
    daemon.end();
}
