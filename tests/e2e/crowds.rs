//! Many at once, and such as take more than their share: sessions are followed all the same, with few open files and little
//! memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::peer::Peer;
use crate::stage::{Daemon, Stage, scripted, until};
use crate::talk::{Session, Talk};

/// Notes each user message in a `custom` entry.
const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;
/// The longest line of a peer.
const LONGEST: usize = pi_graft::wire::MOST_LINE;

fn stage() -> Stage {
    Stage::new(20, &scripted("noter", &["append:custom"], NOTE))
}

/// A daemon that may have so many files open.
fn with_files(stage: &Stage, most: u32) -> Daemon {
    let mut program = Command::new("sh");
    program.args(["-c", &format!("ulimit -n {most}; exec \"$@\""), "sh"]);
    stage.daemon_by(program, &["--closed"])
}

fn turn(path: &Path) {
    let mut pi = Talk::begin(path);
    pi.user("hello");
    pi.assistant("hi");
}

fn has_note(path: &Path) -> bool {
    Session::read(path).customs("note").len() == 1
}

#[test]
fn hundreds_of_sessions_at_once_need_few_open_files() {
    let stage = stage();
    let daemon = with_files(&stage, 200);
    let paths: Vec<PathBuf> = (0..600).map(|n| stage.session(&format!("s{n}.jsonl"))).collect();
    paths.iter().for_each(|path| turn(path));
    until("all grafts", || paths.iter().all(|path| has_note(path)));
    let log = daemon.end();
    assert!(!log.contains("Too many open files"), "{log}");
}

/// Deleted, it still takes its room on the disk as long as somebody has it open.
#[cfg(target_os = "linux")]
#[test]
fn a_session_that_was_deleted_is_not_kept_open() {
    let stage = stage();
    let daemon = stage.daemon(&["--closed"]);
    let paths = ["a.jsonl", "b.jsonl"].map(|name| stage.session(name));
    paths.iter().for_each(|path| turn(path));
    until("the grafts", || paths.iter().all(|path| has_note(path)));
    let open = |name: &str| daemon.open_files().iter().filter(|file| file.to_string_lossy().contains(name)).count();
    until("it is open", || open("a.jsonl") > 0 && open("b.jsonl") > 0);
    fs::remove_file(&paths[0]).expect("gone");
    until("it is let go", || open("a.jsonl") == 0);
    fs::remove_dir_all(stage.session("")).expect("gone");
    until("it is let go", || open("b.jsonl") == 0);
    daemon.end();
}

#[test]
fn peers_that_say_nothing_take_no_files_from_sessions_and_are_let_go() {
    let stage = stage();
    let daemon = with_files(&stage, 200);
    let mut peers: Vec<Peer> = (0..300).map(|_| Peer::connect(&stage)).collect();
    let told = peers.last_mut().and_then(Peer::hear).expect("a word");
    assert!(told["error"].as_str().expect("text").contains("too many connections"), "{told}");
    let path = stage.session("a.jsonl");
    turn(&path);
    until("the graft", || has_note(&path));
    let told = peers[0].hear().expect("a word");
    assert_eq!(told["error"], "nothing was said");
    until("the others are let go too", || stage.run(&["status"]).status.success());
    daemon.end();
}

#[test]
fn peers_that_never_end_their_lines_get_no_more_than_a_share_of_memory() {
    let stage = stage();
    let daemon = stage.daemon(&[]);
    let half = format!("{{\"v\":1,\"control\":\"{}", "x".repeat(LONGEST - 100));
    let mut peers: Vec<Peer> = (0..8).map(|_| Peer::connect(&stage)).collect();
    peers.iter_mut().for_each(|peer| peer.say_text(&half));
    // What the first ones said is there, or else this one is still within the share of all.
    until("one too many", || {
        let mut peer = Peer::connect(&stage);
        peer.say_text(&format!("{half}\"}}\n"));
        let told = peer.hear().expect("a word");
        told["error"].as_str().expect("text").contains("too much that is said at once")
    });
    drop(peers);
    until("there is room again", || stage.run(&["status"]).status.success());
    daemon.end();
}

#[test]
fn a_bridge_that_does_not_read_is_let_go_before_its_answers_fill_the_memory() {
    let script = format!(
        r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{{"custom":{{"type":"note","data":"{}"}}}}]}}"#,
        "x".repeat(200_000)
    );
    let stage = Stage::new(20, &scripted("noter", &["append:custom"], &script));
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let leaf = pi.user("hello");
    let (mut bridge, _) = Peer::bridge(&stage, &path, Some(&leaf));
    bridge.say(&json!({ "leaf": leaf, "idle": false, "on": "turn_start" }));
    let asks = 400;
    for ask in 0..asks {
        bridge.say(&json!({
            "ask": ask, "at": "turn_end", "leaf": leaf, "outcome": "completed", "stopReason": "stop", "ms": 60_000,
        }));
    }
    until("it is let go", || daemon.log().contains("its bridge has left"));
    let heard = std::iter::from_fn(|| bridge.hear()).take(asks).count();
    assert!(heard < asks / 2, "{heard} answers were kept");
    daemon.end();
}
