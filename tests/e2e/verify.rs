//! `replay --verify`: what the real daemon did to a session is what its plugins propose again, given what the run log has.

use std::path::Path;

use pi_graft::journal::{Journal, Keep, Moved, RunRecord, Text};
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::server::{Server, completion};
use crate::stage::{COMPACTS_SOON, Stage, model_at, scripted, until};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;
/// Its message says what was pending: it sees the note of the plugin before it.
const SEES: &str = r#"{"needs":["append:custom"],"on":["message:*"],"entry":[{"report":"seen"},{"later":"x","role":"assistant"}],
    "settled":[{"custom":{"type":"settled","data":"$leaf"}}]}"#;

fn two() -> String {
    [scripted("noter", &["append:custom"], NOTE), scripted("seer", &["append:custom"], SEES)].concat()
}

/// The report as text, and the exit code.
fn verify_text(stage: &Stage, path: &Path) -> (String, i32) {
    let output = stage.run(&["replay", "--verify", "--json", path.to_str().expect("text")]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (text, output.status.code().expect("a code"))
}

/// What is said of the one session, and the exit code.
fn verify(stage: &Stage, path: &Path) -> (Value, i32) {
    let (text, code) = verify_text(stage, path);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["failed"], json!([]), "{report}");
    (report["sessions"][0].clone(), code)
}

fn grafts_of<'r>(report: &'r Value, outcome: &str) -> Vec<&'r Value> {
    report["grafts"].as_array().expect("grafts").iter().filter(|graft| graft["outcome"] == outcome).collect()
}

/// All of it holds: so many grafts, none of them unverified, every run as then.
fn assert_verified(stage: &Stage, path: &Path, grafts: usize) -> Value {
    let (report, code) = verify(stage, path);
    assert_eq!((&report["outcome"], code), (&json!("verified"), 0), "{report:#}");
    assert_eq!(grafts_of(&report, "verified").len(), grafts, "{report:#}");
    assert_eq!(
        (report["grafts"].as_array().map(Vec::len), &report["others"]),
        (Some(grafts), &json!([])),
        "{report:#}"
    );
    for plugin in report["plugins"].as_array().expect("plugins") {
        assert_eq!(plugin["runs"], plugin["same"], "{report:#}");
    }
    report
}

/// A session with two turns and their grafts, made by a daemon that has ended.
fn worked_on(stage: &Stage) -> std::path::PathBuf {
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&["--closed"]);
    for turn in ["one", "two"] {
        let before = if path.exists() { Session::read(&path).customs("settled").len() } else { 0 };
        let mut talk = if before > 0 { Talk::reopen(&path) } else { Talk::begin(&path) };
        talk.user(turn);
        talk.assistant("ok");
        until("its grafts", || Session::read(&path).customs("settled").len() > before);
    }
    daemon.end();
    path
}

#[test]
fn what_the_daemon_grafted_is_what_the_plugins_propose_again() {
    let stage = Stage::new(20, &two());
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&["--closed"]);
    let mut talk = Talk::begin(&path);
    talk.user("one");
    talk.assistant("ok");
    until("the grafts", || Session::read(&path).customs("settled").len() == 1);
    // While it runs the daemon is asked, and the report is the same each time.
    let grafts = Session::read(&path).receipts();
    let report = assert_verified(&stage, &path, grafts);
    assert_eq!(report["plugins"].as_array().map(Vec::len), Some(2));
    let first = verify_text(&stage, &path);
    assert_eq!(first, verify_text(&stage, &path));
    daemon.end();
    assert_eq!(first, verify_text(&stage, &path), "the store says what the daemon said");
    let words = String::from_utf8(stage.run(&["replay", "--verify", "a"]).stdout).expect("text");
    assert!(words.contains("noter") && words.contains("verified"), "{words}");
}

#[test]
fn another_result_of_a_plugin_is_found_and_named() {
    let stage = Stage::new(20, &two());
    let path = worked_on(&stage);
    // The very component and config, but the log says that they proposed something else.
    rewrite(&stage, |_, row| {
        if row.plugin == "noter" && row.outcome == "proposed" {
            *row = row.clone().with_drafts(r#"[{"type":"custom","customType":"nope"}]"#);
        }
    });
    let (report, code) = verify(&stage, &path);
    assert_eq!((&report["outcome"], code), (&json!("different"), 1), "{report:#}");
    let difference = report["differences"].as_array().expect("differences").iter().find(|one| one["plugin"] == "noter");
    let difference = difference.expect("the noter's");
    assert_eq!(difference["now"]["drafts"][0]["customType"], "note", "{difference}");
    assert_eq!(difference["then"]["drafts"][0]["customType"], "nope", "{difference}");
    let words = String::from_utf8(stage.run(&["replay", "--verify", "a"]).stdout).expect("text");
    assert!(words.contains("DIFFERENT") && words.contains("then") && words.contains("nope"), "{words}");
}

#[test]
fn what_was_changed_in_the_file_is_found() {
    let stage = Stage::new(20, &two());
    let path = worked_on(&stage);
    let text = std::fs::read_to_string(&path).expect("the session");
    let has = |report: &Value, what: &str| {
        let differences = report["differences"].as_array().expect("differences");
        differences.iter().any(|one| one["what"].as_str().expect("text").contains(what))
    };
    // A graft says something else.
    std::fs::write(
        &path,
        text.replacen("\"customType\":\"note\",\"data\":{\"of\"", "\"customType\":\"note\",\"data\":{\"ov\"", 1),
    )
    .expect("written");
    let (report, code) = verify(&stage, &path);
    assert!(code == 1 && has(&report, "something else than is proposed"), "{report:#}");
    let different = grafts_of(&report, "different");
    assert_eq!((different.len(), &different[0]["plugin"]), (1, &json!("noter")), "{report:#}");
    // A graft is gone, with its receipt.
    let is_noters = |line: &&str| line.contains("\"customType\":\"note\"") || line.contains("\"plugin\":\"noter\"");
    let kept: Vec<&str> = text.lines().filter(|line| !is_noters(line)).collect();
    std::fs::write(&path, kept.join("\n") + "\n").expect("written");
    let (report, code) = verify(&stage, &path);
    assert!(code == 1 && has(&report, "the file has nothing of it"), "{report:#}");
    // What the user said was changed: a plugin that looks at it sees it.
    std::fs::write(&path, text.replacen("\"content\":\"one\"", "\"content\":\"another\"", 1)).expect("written");
    let (report, code) = verify(&stage, &path);
    assert!(code == 1 && has(&report, "the run comes out otherwise"), "{report:#}");
    assert!(
        report["differences"].as_array().expect("differences").iter().all(|one| one["plugin"] == "seer"),
        "{report:#}"
    );
}

#[test]
fn another_config_or_version_is_listed_and_not_verified() {
    let stage = Stage::new(20, &two());
    let path = worked_on(&stage);
    let grafts = Session::read(&path).receipts();
    // Another config of one of them: the other is verified.
    let plugins = [
        scripted("noter", &["append:custom"], &NOTE.replace("note", "memo")),
        scripted("seer", &["append:custom"], SEES),
    ];
    stage.configure(20, &plugins.concat());
    let (report, code) = verify(&stage, &path);
    assert_eq!((&report["outcome"], code), (&json!("verified"), 0), "{report:#}");
    let other = &report["others"][0];
    assert_eq!(
        (&other["plugin"], &other["runs"], &other["grafts"]),
        (&json!("noter"), &json!(2), &json!(2)),
        "{report:#}"
    );
    assert!(other["why"].as_str().is_some_and(|why| why.contains("another config")), "{report:#}");
    assert_eq!(grafts_of(&report, "not verified").len(), 2);
    // None of them is loaded: nothing could be verified, and that is no success.
    stage.configure(20, &scripted("else", &["append:custom"], NOTE));
    let (report, code) = verify(&stage, &path);
    assert_eq!((&report["outcome"], code), (&json!("unverifiable"), 1), "{report:#}");
    assert_eq!(grafts_of(&report, "not verified").len(), grafts);
}

#[test]
fn without_the_log_it_says_that_it_cannot_verify() {
    let stage = Stage::new(20, &two());
    let path = worked_on(&stage);
    std::fs::remove_dir_all(stage.path("state")).expect("the store is gone");
    let output = stage.run(&["replay", "--verify", path.to_str().expect("text")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("nothing can be verified") && said.contains("--config"), "{said}");
    // A store that begins anew knows nothing of it.
    stage.once(&["--closed"]);
    let (report, code) = verify(&stage, &path);
    assert_eq!((&report["outcome"], code), (&json!("unverifiable"), 1), "{report:#}");
    assert!(report["others"][0]["why"].as_str().is_some_and(|why| why.contains("not in the log")), "{report:#}");
}

#[test]
fn what_pi_took_over_a_bridge_is_verified() {
    let stage = Stage::new(20, &two());
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&[]);
    let (mut peer, _) = Peer::bridge(&stage, &path, None);
    let mut talk = Talk::begin(&path);
    for ask in 1..=3 {
        talk.user("hello");
        let leaf = talk.assistant("hi");
        take(&mut talk, &boundary(&mut peer, ask, &leaf));
    }
    let leaf = talk.user("the last");
    take(&mut talk, &boundary(&mut peer, 9, &leaf));
    assert_eq!(Session::read(&path).customs("note").len(), 4);
    let grafts = Session::read(&path).receipts();
    assert!(grafts > 8, "{grafts}");
    assert_verified(&stage, &path, grafts);
    daemon.end();
}

/// Asks at the end of a turn that ended well.
fn boundary(peer: &mut Peer, ask: u64, leaf: &str) -> Vec<Value> {
    peer.say(&json!({ "ask": ask, "leaf": leaf, "ms": 20_000, "at": "turn_end", "outcome": "completed", "stopReason": "stop", "others": [] }));
    loop {
        let told = peer.hear().expect("an answer");
        if told["answer"] == ask {
            return told["entries"].as_array().expect("entries").clone();
        }
    }
}

/// Appends drafts as Pi does.
fn take(talk: &mut Talk, drafts: &[Value]) {
    for draft in drafts {
        let mut draft = draft.as_object().expect("a draft").clone();
        let kind = draft.remove("type").expect("a type");
        let members = Value::Object(draft).to_string();
        talk.entry(kind.as_str().expect("text"), &members[1..members.len() - 1]);
    }
}

#[test]
fn after_a_kill_at_each_step_of_a_delivery_the_session_verifies() {
    for step in ["intended", "written", "done"] {
        let stage = Stage::new(20, &two());
        let path = stage.session("a.jsonl");
        let daemon = stage.daemon_with(&["--closed"], &[("PI_GRAFT_TEST_DIE_AT", step)]);
        let mut pi = Talk::begin(&path);
        pi.user("hello");
        pi.assistant("hi");
        daemon.wait_for_end();
        let daemon = stage.daemon(&["--closed"]);
        until(step, || Session::read(&path).customs("settled").len() == 1);
        daemon.end();
        let grafts = Session::read(&path).receipts();
        assert_verified(&stage, &path, grafts);
    }
}

/// A retry sees what the first try saw, and what fails by the clock is nobody's proposal. What traps, traps again.
#[test]
fn runs_that_failed_and_their_retries_are_verified() {
    let slow = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"calls":200000},{"report":"seen"}]}"#;
    let trap = r#"{"on":["message:user"],"entry":[{"trap":true}]}"#;
    let config = |time: &str| {
        let limits = format!("[plugin.limits]\nfuel = 1000000000000\ntime = {time:?}\nretry = \"3s\"\n[plugin.config]");
        let slow = scripted("slow", &["append:custom"], slow).replacen("[plugin.config]", &limits, 1);
        [scripted("noter", &["append:custom"], NOTE), slow, scripted("trapper", &[], trap)].concat()
    };
    // Long enough for the answer to come before the first graft.
    let stage = Stage::new(2000, &config("20ms"));
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    daemon.wait_for("tried again in 3s");
    pi.assistant("hi");
    until("the note", || Session::read(&path).customs("note").len() == 1);
    stage.configure(20, &config("60s"));
    assert!(stage.run(&["reload"]).status.success());
    until("the slow one's graft", || Session::read(&path).customs("seen").len() == 1);
    daemon.end();
    let (report, code) = verify(&stage, &path);
    assert_eq!(
        (&report["outcome"], code, grafts_of(&report, "verified").len()),
        (&json!("verified"), 0, 2),
        "{report:#}"
    );
    let runs: Vec<_> = report["plugins"].as_array().expect("plugins").iter().map(|one| one["same"].clone()).collect();
    assert_eq!(runs, [1, 1, 1], "{report:#}");
    let other = &report["others"][0];
    assert_eq!(
        (&other["plugin"], &other["runs"], &other["grafts"]),
        (&json!("slow"), &json!(1), &json!(0)),
        "{report:#}"
    );
    assert!(other["why"].as_str().is_some_and(|why| why.contains("by the clock")), "{report:#}");
}

#[test]
fn a_model_s_answer_comes_from_the_log() {
    let server = Server::new([completion("## Goal\n- Change src/first.rs", "stop")]);
    let stage = Stage::new(50, &format!("{}{COMPACTS_SOON}", model_at(&server)));
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&["--closed"]);
    Talk::begin(&path).two_turns();
    until("the graft", || Session::read(&path).compactions() == 1);
    assert_verified(&stage, &path, 1);
    daemon.end();
    assert_eq!(server.requests().len(), 1, "no model was asked again");
    // Another answer would have been another compaction.
    rewrite(&stage, |journal, row| {
        let Some(given) = row.given.as_mut().filter(|given| !given.answers.is_empty()) else { return };
        let answer = journal.text(&given.answers[0]).expect("the store").expect("it is kept");
        let other = Text::new(answer.replace("first.rs", "other.rs"));
        given.answers = vec![other.hash().to_owned()];
        row.texts.push(other);
    });
    let (report, code) = verify(&stage, &path);
    assert_eq!((&report["outcome"], code), (&json!("different"), 1), "{report:#}");
    // Nor was that question asked.
    rewrite(&stage, |journal, row| {
        let Some(given) = row.given.as_mut().filter(|given| !given.answers.is_empty()) else { return };
        let answer = journal.text(&given.answers[0]).expect("the store").expect("it is kept");
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["request"] = json!("0".repeat(64));
        let other = Text::new(answer.to_string());
        given.answers = vec![other.hash().to_owned()];
        row.texts.push(other);
    });
    let (report, _) = verify(&stage, &path);
    let what = report["differences"][0]["what"].as_str().expect("text");
    assert!(what.contains("asked model \"summary\" something else"), "{report:#}");
}

#[test]
fn edits_that_follow_to_another_branch_are_verified_there_too() {
    let redact = r#"{"needs":["append:context_edit"],"on":["message:user"],"entry":[{"edits":[{"target":"$trigger","text":"REDACTED"}]}]}"#;
    let seer = r#"{"needs":["append:custom"],"on":["message:assistant"],"entry":[{"report":"seen"}]}"#;
    let plugins = [scripted("redactor", &["append:context_edit"], redact), scripted("seer", &["append:custom"], seer)];
    let stage = Stage::new(20, &plugins.concat());
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&["--closed"]);
    let mut talk = Talk::begin(&path);
    let first = talk.user("my secret");
    let answer = talk.assistant("ok");
    until("the edit", || Session::read(&path).receipts() == 2);
    // Pi goes on from the graft, so it is known; then its user goes back to before it.
    let mut talk = Talk::reopen(&path);
    talk.user("more");
    talk.assistant("ok");
    until("the next", || Session::read(&path).receipts() == 4);
    let mut talk = Talk::reopen(&path);
    talk.go_to(&answer);
    talk.user("elsewhere");
    talk.assistant("ok");
    let edits = |file: &Session| file.live_of(pi_session::entry::EntryKind::ContextEdit);
    until("the edits there", || edits(&Session::read(&path)) == 2);
    until("the last answer seen", || Session::read(&path).receipts() == 7);
    let report = assert_verified(&stage, &path, 7);
    let of_first = report["grafts"].as_array().expect("grafts").iter();
    assert_eq!(of_first.filter(|graft| graft["trigger"] == *first).count(), 2, "on both branches: {report:#}");
    daemon.end();
}

/// What takes a plugin's work back is the user's own: nobody proposed it, and what was proposed stays so.
#[test]
fn a_session_in_which_the_user_has_undone_a_plugin_verifies() {
    let redact = r#"{"needs":["append:context_edit"],"on":["message:user"],"entry":[{"edits":[{"target":"$trigger","text":"REDACTED"}]}]}"#;
    let stage = Stage::new(20, &scripted("redactor", &["append:context_edit"], redact));
    let path = stage.session("a.jsonl");
    let mut talk = Talk::begin(&path);
    let user = talk.user("my secret");
    talk.assistant("ok");
    stage.once(&["--closed"]);
    assert!(stage.run(&["undo", "--plugin", "redactor", "--closed", "a"]).status.success());
    assert_eq!(Session::read(&path).receipts(), 2);
    assert_verified(&stage, &path, 1);
    let explain = |id: &str| -> Value {
        serde_json::from_slice(&stage.run(&["explain", "--json", "--session", "a", id]).stdout).expect("JSON")
    };
    let edits = explain(&user)["edits"].clone();
    let graft = explain(edits[0]["id"].as_str().expect("an id"))["graft"].clone();
    let undo = explain(edits[1]["id"].as_str().expect("an id"))["graft"].clone();
    assert_eq!((&graft["handler"], &undo["handler"]), (&json!("on-entry"), &json!("undo")), "{edits}");
    assert_eq!((&graft["undone"], &undo["undone"]), (&undo["entries"][0], &Value::Null), "{graft} {undo}");
    let words = String::from_utf8(stage.run(&["explain", "--session", "a", &user]).stdout).expect("text");
    assert!(words.contains("undo of redactor"), "{words}");
}

/// Writes the rows of the log anew, each as `change` leaves it, as nobody should. The daemon must have ended.
fn rewrite(stage: &Stage, mut change: impl FnMut(&Journal, &mut RunRecord)) {
    let journal = Journal::open(&stage.path("state"), 0).expect("the store");
    let mut rows = Vec::new();
    journal.rows(None, |_, row| (rows.push(row), true).1).expect("rows");
    for row in &mut rows {
        let given = row.given.clone().unwrap_or_default();
        let hashes = [Some(given.facts), Some(given.config), given.told, row.drafts.clone()];
        let hashes = hashes.into_iter().flatten().chain(given.answers);
        row.texts = hashes.filter_map(|hash| journal.text(&hash).expect("the store")).map(Text::new).collect();
        change(&journal, row);
    }
    let (key, record) = journal.sessions().expect("sessions").remove(0);
    journal.forget_runs(Keep { from_ms: i64::MAX, rows: 0, bytes: 0 }).expect("forgotten");
    journal.record(Some(key), &record, Moved { runs: &rows, ..Moved::default() }).expect("kept");
    journal.flush().expect("on the disk");
}
