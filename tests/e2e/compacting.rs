//! `pi-graft compact`: one session now, through the daemon or in its place.

use serde_json::{Value, json};

use crate::peer::Peer;
use crate::server::{Reply, Server, completion};
use crate::stage::{Stage, model_at, scripted, until};
use crate::talk::{Session, Talk};

/// Never due by itself.
const EXTRACTIVE: &str = r#"[[plugin]]
name = "auto-compact"
grants = ["append:compaction"]
[plugin.config]
at = 1000000
context-window = 2000000
keep-recent-tokens = 20
"#;

fn by_model(server: &Server) -> String {
    let plugin = EXTRACTIVE.replace(r#""append:compaction""#, r#""append:compaction", "model:summary""#);
    format!("{}\n{plugin}summary = \"model\"\n", model_at(server))
}

/// The answer of `compact --json`, and its exit code.
fn compact(stage: &Stage, args: &[&str]) -> (Value, Option<i32>) {
    let output = stage.run(&[&["compact", "--json"], args].concat());
    let told = serde_json::from_slice(&output.stdout);
    let told = told.unwrap_or_else(|_| json!({ "stderr": String::from_utf8_lossy(&output.stderr) }));
    (told, output.status.code())
}

fn summary_of(told: &Value) -> &str {
    told["summary"].as_str().unwrap_or_else(|| panic!("no summary: {told}"))
}

#[test]
fn without_a_daemon_it_is_made_and_lands_by_this_process() {
    let stage = Stage::new(1, EXTRACTIVE);
    let path = stage.session("a.jsonl");
    let leaf = Talk::begin(&path).two_turns();
    let (told, code) = compact(&stage, &["--closed", "--instructions", "the second file", "a"]);
    assert_eq!((code, &told["outcome"]), (Some(0), &json!("grafted")), "{told}");
    assert!(summary_of(&told).starts_with("Focus: the second file\n"), "{told}");
    assert!(told["before"]["tokens"].as_f64() > told["after"]["tokens"].as_f64(), "{told}");
    assert_eq!((&told["before"]["messages"], &told["after"]["messages"]), (&json!(4), &json!(2)), "{told}");
    let file = Session::read(&path);
    file.assert_sound();
    assert!(file.is_live(told["entry"].as_str().expect("an id")) && file.is_live(&leaf));
    assert_eq!((file.receipts(), file.compactions()), (1, 1));
    let (again, code) = compact(&stage, &["--closed", "a"]);
    assert_eq!((code, &again["outcome"]), (Some(1), &json!("nothing")), "{again}");
    assert!(again["why"][0].as_str().is_some_and(|why| why.starts_with("auto-compact: ")), "{again}");
}

#[test]
fn a_running_daemon_does_it() {
    let stage = Stage::new(50, EXTRACTIVE);
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&["--closed"]);
    Talk::begin(&path).two_turns();
    let (told, code) = compact(&stage, &[path.to_str().expect("a path")]);
    assert_eq!(
        (code, &told["outcome"], &told["plugin"]),
        (Some(0), &json!("grafted"), &json!("auto-compact")),
        "{told}"
    );
    assert!(summary_of(&told).contains("src/first.rs"), "{told}");
    assert_eq!(Session::read(&path).compactions(), 1);
    daemon.end();
    assert_eq!(stage.outcomes(), ["grafted"]);
}

#[test]
fn a_dry_run_shows_it_and_keeps_nothing() {
    let stage = Stage::new(1, EXTRACTIVE);
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    let before = std::fs::read(&path).expect("the session");
    let text = stage.run(&["compact", "--dry-run", "a"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("a dry run: nothing is written") && text.contains("## Goal"), "{text}");
    let daemon = stage.daemon(&["--closed"]);
    let (told, code) = compact(&stage, &["--dry-run", "a"]);
    assert_eq!((code, &told["outcome"], &told["after"]["messages"]), (Some(0), &json!("made"), &json!(2)), "{told}");
    daemon.end();
    stage.once(&["--closed"]);
    assert_eq!(std::fs::read(&path).expect("the session"), before);
}

#[test]
fn what_cannot_land_is_not_made_and_the_user_is_told_why() {
    let stage = Stage::new(1, EXTRACTIVE);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("go");
    pi.call("c1", "bash");
    stage.hold_for("10m");
    let (told, code) = compact(&stage, &["a"]);
    assert_eq!((code, &told["outcome"]), (Some(1), &json!("nothing")), "{told}");
    assert!(!told["why"][0].as_str().expect("a reason").is_empty(), "{told}");
    assert_eq!(Session::read(&path).receipts(), 0);
}

#[test]
fn where_no_plugin_compacts_that_is_said() {
    let note = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[]}"#;
    let stage = Stage::new(1, &scripted("noter", &["append:custom"], note));
    Talk::begin(&stage.session("a.jsonl")).two_turns();
    let (told, code) = compact(&stage, &["--closed", "a"]);
    assert_eq!(code, Some(1));
    assert!(told["why"][0].as_str().is_some_and(|why| why.contains("append:compaction")), "{told}");
}

#[test]
fn a_model_is_told_the_instructions_and_its_failure_is_no_summary() {
    let server =
        Server::new([completion("## Goal\n- Change src/first.rs", "stop"), Reply::Say(400, "", String::new())]);
    let stage = Stage::new(1, &by_model(&server));
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    let (told, code) = compact(&stage, &["--closed", "--instructions", "the second file", "a"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(summary_of(&told).starts_with("## Goal\n- Change src/first.rs"), "{told}");
    assert!(server.requests()[0].1.contains("the second file"));
    Talk::begin(&stage.session("b.jsonl")).two_turns();
    let (told, code) = compact(&stage, &["--closed", "b"]);
    assert_eq!((code, &told["outcome"]), (Some(1), &json!("nothing")), "{told}");
    assert!(told["why"][0].as_str().is_some_and(|why| why.contains("400")), "{told}");
    assert_eq!(Session::read(&stage.session("b.jsonl")).receipts(), 0);
}

#[test]
fn whoever_goes_ends_the_call() {
    let server = Server::new([Reply::Nothing]);
    let stage = Stage::new(1, &by_model(&server));
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    let mut daemon = stage.daemon(&["--closed"]);
    let mut peer = Peer::connect(&stage);
    peer.say(&json!({ "v": 1, "control": "compact", "session": path }));
    server.wait_for_requests(1);
    drop(peer);
    server.wait_for_leaving();
    daemon.wait_for("nobody waits for its compaction any more");
    daemon.end();
    assert_eq!(Session::read(&path).receipts(), 0);
}

#[test]
fn an_idle_pi_with_a_bridge_is_asked_to_take_it() {
    let stage = Stage::new(50, EXTRACTIVE);
    let _daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let settings = r#"{"compaction":{"keepRecentTokens":20}}"#;
    std::fs::create_dir_all(stage.path("agent")).expect("a directory");
    std::fs::write(stage.path("agent/settings.json"), settings).expect("Pi's settings");
    let (mut peer, _) = Peer::bridge(&stage, &path, None);
    let leaf = Talk::begin(&path).two_turns();
    peer.say(&json!({ "leaf": leaf, "idle": true, "on": "agent_settled" }));
    let mut asks = Peer::connect(&stage);
    asks.say(&json!({ "v": 1, "control": "compact", "session": path }));
    let asked = peer.hear().expect("Pi is asked to compact");
    assert_eq!(asked["leaf"], leaf.as_str(), "{asked}");
    let token = asked["token"].clone();
    let (at, reason) = ("session_before_compact", "manual");
    peer.say(&json!({ "ask": 1, "leaf": leaf, "ms": 60_000, "at": at, "reason": reason, "token": token }));
    let made = peer.hear().expect("the compaction")["compaction"].clone();
    let members: Vec<String> = made.as_object().expect("an object").iter().map(|(k, v)| format!("{k:?}:{v}")).collect();
    let mut pi = Talk::reopen(&path);
    let entry = pi.entry("compaction", &format!("{},\"fromHook\":true", members.join(",")));
    peer.say(&json!({ "leaf": entry, "idle": true, "on": "session_compact" }));
    let told = asks.hear().expect("an answer")["ok"].clone();
    assert_eq!((&told["outcome"], &told["entry"]), (&json!("grafted"), &json!(entry)), "{told}");
    until("its end", || Session::read(&path).compactions() == 1);
}

/// It is not quiet yet, and more sessions than are kept in memory are written meanwhile.
#[test]
fn who_waits_for_a_compaction_is_not_forgotten_among_many_sessions() {
    let stage = Stage::new(4_000, EXTRACTIVE);
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    Talk::begin(&path).two_turns();
    let mut command = stage.command(&["compact", "--json", path.to_str().expect("a path")]);
    let waiting = command.stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    daemon.wait_for("waiting: ");
    for n in 0..80 {
        Talk::begin(&stage.session(&format!("other-{n}.jsonl"))).user("hello");
    }
    let output = waiting.wait_with_output().expect("it ends");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(told["outcome"], "grafted", "{told}");
    daemon.end();
}
