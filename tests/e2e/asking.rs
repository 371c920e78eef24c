//! `auto-compact` with a model behind a real server: what it says lands with what it cost; what it does not say leaves the
//! session as it is.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::peer::Peer;
use crate::server::{Reply, Server, completion};
use crate::stage::{COMPACTS_SOON, Daemon, Stage, model_at, scripted, until};
use crate::talk::{Session, Talk};

const KEY: &str = "sk-SECRET-KEY";

/// A config whose `auto-compact` is due after two turns of [`Talk::two_turns`], with a model at this server.
fn config(server: &Server, more: &str) -> String {
    let model = model_at(server);
    format!("{model}api-key-env = \"SCENE_KEY\"\nmax-tokens-per-day = 100000\n{COMPACTS_SOON}{more}\n")
}

fn stage(server: &Server, more: &str) -> Stage {
    Stage::new(50, &config(server, more))
}

fn daemon(stage: &Stage) -> Daemon {
    stage.daemon_with(&["--closed"], &[("SCENE_KEY", KEY)])
}

fn summary() -> Reply {
    completion("## Goal\n- Change src/first.rs", "stop")
}

fn compaction_of(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("the session");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.into_iter().find(|line| line["type"] == "compaction").expect("a compaction")
}

#[test]
fn what_a_model_says_is_grafted_with_what_it_cost() {
    let server = Server::new([summary()]);
    let stage = stage(&server, "");
    let daemon = daemon(&stage);
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    until("the graft", || Session::read(&path).receipts() == 1);
    Session::read(&path).assert_sound();
    let made = compaction_of(&path);
    assert!(made["summary"].as_str().expect("text").starts_with("## Goal\n- Change src/first.rs"), "{made}");
    assert_eq!(made["usage"]["totalTokens"], 150);
    let (head, body) = server.requests().remove(0);
    assert!(head.to_lowercase().contains(&format!("authorization: bearer {}", KEY.to_lowercase())), "{head}");
    assert!(body.contains("Please look at src/first.rs"), "{body}");
    let log = daemon.end();
    let store = fs::read(stage.path("state/state.redb")).expect("the store");
    assert!(!log.contains(KEY) && memchr::memmem::find(&store, KEY.as_bytes()).is_none(), "no key anywhere");
    let told: Vec<_> = log.lines().filter(|line| !line.contains("DEBUG")).collect();
    assert!(!told.iter().any(|line| line.contains("Please look")), "no session text above debug: {told:?}");
}

#[test]
fn a_model_that_fails_leaves_the_session_as_it_is() {
    let wrong = [
        Reply::Say(401, "", r#"{"error":{"message":"sk-SECRET-KEY Please look","code":"invalid_api_key"}}"#.into()),
        completion("## Goal\n- half of", "length"),
        completion("", "stop"),
        Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>".to_vec()),
    ];
    for reply in wrong {
        let server = Server::new([reply.clone()]);
        let stage = stage(&server, "");
        let mut daemon = daemon(&stage);
        let path = stage.session("a.jsonl");
        Talk::begin(&path).two_turns();
        let before = fs::read(&path).expect("the session");
        daemon.wait_for("model \"summary\": ");
        let log = daemon.end();
        assert_eq!(fs::read(&path).expect("the session"), before, "{reply:?}");
        assert!(!log.contains(KEY), "{log}");
    }
}

#[test]
fn the_config_may_want_an_extract_then() {
    let server = Server::new([Reply::Say(404, "", String::new())]);
    let stage = stage(&server, "on-failure = \"extractive\"");
    let _daemon = daemon(&stage);
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    until("the graft", || Session::read(&path).receipts() == 1);
    let made = compaction_of(&path);
    assert!(made["summary"].as_str().expect("text").contains("src/first.rs"), "{made}");
    assert_eq!(made["usage"], Value::Null);
}

#[test]
fn a_budget_that_is_used_up_is_told_and_nothing_is_asked() {
    let server = Server::new([summary()]);
    let stage = stage(&server, "");
    let text = config(&server, "").replace("max-tokens-per-day = 100000", "max-tokens-per-day = 100");
    stage.configure(50, &text);
    let mut daemon = daemon(&stage);
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    daemon.wait_for("0 of 100 tokens of model \"summary\" are used today");
    daemon.end();
    assert_eq!((server.requests().len(), Session::read(&path).receipts()), (0, 0));
}

#[test]
fn an_end_in_the_middle_of_a_call_is_no_loss() {
    let server = Server::new([Reply::Nothing, summary()]);
    let stage = stage(&server, "");
    let first = daemon(&stage);
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    server.wait_for_requests(1);
    first.end();
    server.wait_for_leaving();
    assert_eq!(Session::read(&path).receipts(), 0);
    let _second = daemon(&stage);
    until("the graft", || Session::read(&path).receipts() == 1);
    assert_eq!(compaction_of(&path)["usage"]["totalTokens"], 150);
}

#[test]
fn a_reload_ends_the_call_and_asks_anew() {
    let server = Server::new([Reply::Nothing, summary()]);
    let stage = stage(&server, "");
    let _daemon = daemon(&stage);
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    server.wait_for_requests(1);
    assert!(stage.run(&["reload"]).status.success());
    server.wait_for_leaving();
    until("the graft", || Session::read(&path).receipts() == 1);
}

/// A Pi with a bridge, after two turns; and its leaf.
fn bridged(stage: &Stage, path: &Path) -> (Peer, String) {
    let (mut peer, _) = Peer::bridge(stage, path, None);
    let leaf = Talk::begin(path).two_turns();
    peer.say(&json!({ "leaf": leaf, "idle": false, "on": "agent_end" }));
    (peer, leaf)
}

fn wants(peer: &mut Peer, ask: u64, leaf: &str) {
    let (at, reason) = ("session_before_compact", "threshold");
    peer.say(&json!({ "ask": ask, "leaf": leaf, "ms": 60_000, "at": at, "reason": reason }));
}

fn told(peer: &mut Peer, ask: u64) -> Value {
    loop {
        let told = peer.hear().expect("an answer");
        if told["answer"] == ask {
            return told["compaction"].clone();
        }
    }
}

#[test]
fn in_place_of_pis_own_stands_what_the_model_made_and_it_is_paid_for_once() {
    let server = Server::new([summary()]);
    let stage = stage(&server, "");
    let _daemon = daemon(&stage);
    let path = stage.session("a.jsonl");
    let (mut peer, leaf) = bridged(&stage, &path);
    for ask in [1, 2] {
        wants(&mut peer, ask, &leaf);
        let made = told(&mut peer, ask);
        assert!(made["summary"].as_str().is_some_and(|text| text.starts_with("## Goal")), "{made}");
        assert_eq!(made["usage"]["totalTokens"], 150, "{made}");
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_abort_in_pi_ends_the_call() {
    let server = Server::new([Reply::Nothing]);
    let stage = stage(&server, "");
    let mut daemon = daemon(&stage);
    let path = stage.session("a.jsonl");
    let (mut peer, leaf) = bridged(&stage, &path);
    wants(&mut peer, 1, &leaf);
    server.wait_for_requests(1);
    peer.say(&json!({ "cancel": 1 }));
    server.wait_for_leaving();
    daemon.wait_for("nobody waits for its compaction any more");
    daemon.end();
    assert_eq!(Session::read(&path).receipts(), 0);
}

#[test]
fn pi_makes_its_own_where_the_model_fails_or_the_config_says_so() {
    for more in ["", "take-over = \"never\"", "on-failure = \"extractive\""] {
        let server = Server::new([Reply::Say(400, "", String::new())]);
        let stage = stage(&server, more);
        let _daemon = daemon(&stage);
        let (mut peer, leaf) = bridged(&stage, &stage.session("a.jsonl"));
        wants(&mut peer, 1, &leaf);
        assert_eq!(told(&mut peer, 1), Value::Null, "{more}");
        assert_eq!(server.requests().len(), usize::from(!more.contains("never")), "{more}");
    }
}

/// More sessions than there are runs at once, and not one answer: what does not need the model goes on in all of them.
#[test]
fn a_server_that_does_not_answer_holds_up_neither_entries_nor_other_sessions() {
    let server = Server::new([Reply::Nothing]);
    let note = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;
    let model = format!("{}timeout = \"1h\"\n", model_at(&server));
    let stage =
        Stage::new(20, &[model, scripted("noter", &["append:custom"], note), COMPACTS_SOON.to_owned()].concat());
    let daemon = stage.daemon(&["--closed"]);
    let paths: Vec<_> = (0..8).map(|at| stage.session(&format!("s{at}.jsonl"))).collect();
    let mut talks: Vec<Talk> = paths.iter().map(|path| Talk::begin(path)).collect();
    talks.iter_mut().for_each(|talk| drop(talk.two_turns()));
    server.wait_for_requests(1);
    let all_have = |notes| paths.iter().all(|path| Session::read(path).live_customs("note").len() == notes);
    until("the notes of all sessions", || all_have(2));
    for talk in &mut talks {
        talk.user("and on");
        talk.assistant("ok");
    }
    until("those of the next turn", || all_have(3));
    daemon.end();
    server.wait_for_leaving();
    assert!(paths.iter().all(|path| Session::read(path).compactions() == 0), "nobody answered");
}
