//! Who has a session open with a bridge, and until when: by the process that the system tells of, in containers too, and after
//! a kill.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bridged::{NOTE, Pi, notes};
use crate::peer::{Peer, socket_of};
use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

#[test]
fn once_its_process_has_ended_a_session_is_one_without_a_pi() {
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Elsewhere::start(&stage, &path, std::process::id(), Command::new(Elsewhere::program()));
    let mut talk = Talk::begin(&path);
    talk.user("hello");
    talk.assistant("hi");
    daemon.wait_for("proposed");
    pi.hang_up();
    daemon.wait_for("which is not connected at this moment");
    assert_eq!(Session::read(&path).customs("note").len(), 0);
    // The number that it said of itself is that of a process which lives: this one.
    pi.kill();
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    daemon.end();
}

/// In there it has the number 1, which is another process here, and one that never ends.
#[cfg(target_os = "linux")]
#[test]
fn a_pi_in_a_container_is_known_by_its_number_here() {
    let Some(unshare) = container() else { return };
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Elsewhere::start(&stage, &path, 1, unshare);
    let mut talk = Talk::begin(&path);
    talk.user("hello");
    talk.assistant("hi");
    daemon.wait_for("proposed");
    let status: Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).expect("JSON");
    assert_ne!(status["sessions"][0]["bridged"][0], 1, "{status}");
    pi.hang_up();
    daemon.wait_for("which is not connected at this moment");
    pi.kill();
    until("the graft", || Session::read(&path).customs("note").len() == 1);
    daemon.end();
}

/// The daemon is in a container, and Pi outside of it: nobody can say whether that Pi still runs.
#[cfg(target_os = "linux")]
#[test]
fn a_pi_that_cannot_be_seen_counts_as_running_until_live_hold() {
    let Some(unshare) = container() else { return };
    let stage = notes();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon_by(unshare, &[]);
    let mut pi = Pi::start(&stage, &path);
    pi.turn("one");
    daemon.wait_for("proposed");
    let status = String::from_utf8(stage.run(&["status"]).stdout).expect("text");
    assert!(status.contains("a bridge says so (process that cannot be seen from here)"), "{status}");
    drop(pi);
    daemon.wait_for("which is not connected at this moment");
    until("the graft, once it was quiet for live-hold", || Session::read(&path).customs("note").len() == 1);
    daemon.kill();
}

/// What begins another program in a container of its own; none where this user may not make one.
#[cfg(target_os = "linux")]
fn container() -> Option<Command> {
    const ARGS: [&str; 5] = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    let works = Command::new("unshare").args(ARGS).arg("true").output().is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("skipped: no containers for this user (unshare {})", ARGS.join(" "));
        return None;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(ARGS);
    Some(unshare)
}

/// A Pi with a bridge in a process of its own.
struct Elsewhere(std::process::Child);

impl Elsewhere {
    fn program() -> PathBuf {
        std::env::current_exe().expect("these tests")
    }

    /// Started by this command, which runs this program or the one that it is given. It says of itself that it is `pid`.
    fn start(stage: &Stage, session: &Path, pid: u32, mut by: Command) -> Elsewhere {
        if by.get_program() != Elsewhere::program() {
            by.arg(Elsewhere::program());
        }
        by.args(["--exact", "holding::a_pi_in_a_process_of_its_own", "--nocapture"]).stdout(Stdio::piped());
        by.env("SCENE_SOCKET", socket_of(stage)).env("SCENE_SESSION", session).env("SCENE_PID", pid.to_string());
        let mut child = by.stdin(Stdio::piped()).spawn().expect("it starts");
        let told = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        assert!(told.into_iter().any(|line| line.contains("serves")), "it is served");
        Elsewhere(child)
    }

    /// Its connection ends, and it lives on.
    fn hang_up(&mut self) {
        drop(self.0.stdin.take());
    }

    fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// No scene: the other process of those above.
#[test]
fn a_pi_in_a_process_of_its_own() {
    let Some(socket) = std::env::var_os("SCENE_SOCKET") else { return };
    let text = |name: &str| std::env::var(name).expect("it is told what to say");
    let mut peer = Peer::at(socket.as_ref());
    let pid: u32 = text("SCENE_PID").parse().expect("a number");
    let session = json!({ "id": "a", "file": text("SCENE_SESSION"), "cwd": "/work" });
    peer.say(&json!({
        "v": 1, "bridge": "hello", "pid": pid, "leaf": null, "idle": false, "why": "startup", "session": session,
    }));
    let welcome = peer.hear().expect("a welcome");
    assert_eq!(welcome["welcome"]["serves"], true, "{welcome}");
    println!("serves");
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(peer);
    // It is killed here.
    loop {
        std::thread::park();
    }
}

/// Whoever has it open has it also where its history is handled anew.
#[test]
fn a_session_that_is_begun_anew_is_still_the_bridges() {
    let stage = notes();
    let path = stage.session("old.jsonl");
    std::fs::write(&path, include_str!("../cases/real/01_plain_chat.jsonl").replace("2026-", "2025-"))
        .expect("written");
    let mut daemon = stage.daemon(&[]);
    let (peer, _) = Peer::bridge(&stage, &path, None);
    let mut talk = Talk::reopen(&path);
    talk.user("hello");
    talk.assistant("hi");
    daemon.wait_for("proposed");
    daemon.kill();
    drop(peer);
    let mut daemon = stage.daemon(&["--backfill"]);
    daemon.wait_for("which is not connected at this moment");
    assert_eq!(Session::read(&path).receipts(), 0, "nothing behind its back");
    daemon.end();
}

/// It was killed while a plugin ran on what it read as the bridge came.
#[test]
fn who_came_with_a_bridge_is_known_after_a_kill_at_any_moment() {
    let slow = r#"{"on":["message:assistant"],"entry":[{"calls":1000000}]}"#;
    let plugins = [scripted("noter", &["append:custom"], NOTE), scripted("slow", &[], slow)].concat();
    let stage = Stage::new(20, &plugins);
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    assert!(stage.run(&["pause"]).status.success());
    let mut talk = Talk::begin(&path);
    talk.user("hello");
    talk.assistant("hi");
    let (peer, _) = Peer::bridge(&stage, &path, None);
    assert!(stage.run(&["resume"]).status.success());
    daemon.wait_for("proposed");
    daemon.kill();
    drop(peer);
    let mut daemon = stage.daemon(&[]);
    daemon.wait_for("which is not connected at this moment");
    assert_eq!(Session::read(&path).receipts(), 0, "nothing behind its back");
    daemon.end();
}
