//! The whole of it: the real daemon, real plugins, the bridge and the real Pi. Every graft ends up on the live branch, and
//! counts from the first request on after the boundary at which it was handed over.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::home::{Home, bridge};
use crate::stage::{scripted, until};
use crate::talk::Session;

/// A message to the model for each of the user's, marked with the user's entry.
const NOTE: &str = r#"{"needs":["append:custom_message","append:custom"],"on":["message:user"],"entry":[
    {"custom":{"type":"of","data":"$trigger"}},
    {"custom_message":{"type":"note","content":"NOTED $trigger"}}]}"#;
/// Leaves each result of a tool out of the context, with its call.
const TRIM: &str = r#"{"needs":["append:context_edit"],"on":["message:toolResult"],"entry":[
    {"edits":[{"target":"$trigger","text":"TRIMMED"}]}]}"#;
/// Makes a compaction when one is wanted, and none unasked.
const SUM: &str = r#"{"needs":["append:compaction"],"on":["label"],
    "settled":[{"compaction":{"summary":"OURS FOR $reason","first_kept":"$leaf"}}]}"#;
/// Asks for a compaction at each message of the user's, and makes it when the branch is at rest.
const SHRINK: &str = r#"{"needs":["append:compaction"],"on":["message:user"],"entry":[{"later":"due"}],
    "settled":[{"compaction":{"summary":"SHRUNK AT $reason","first_kept":"$leaf"}}]}"#;

const READ: &str = "[[tool read {\"path\":\"notes.txt\"}]]";

/// Ids on the branch that Pi would continue from, in order.
fn branch(home: &Home) -> Vec<Value> {
    let entries = home.entries();
    let by_id = |id: &Value| entries.iter().find(|entry| entry["id"] == *id && entry["type"] != "session").cloned();
    let mut path = vec![entries.last().expect("an entry").clone()];
    while let Some(parent) = by_id(&path.last().expect("an entry")["parentId"]) {
        path.push(parent);
    }
    path.reverse();
    path
}

fn of(entries: &[Value], kind: &str) -> Vec<Value> {
    entries
        .iter()
        .filter(|e| e["type"] == kind || e["customType"] == kind || e["message"]["role"] == kind)
        .cloned()
        .collect()
}

/// All there is of a kind is on the live branch, as often as it was to be.
fn assert_all_live(home: &Home, kind: &str, count: usize) {
    let (all, live) = (of(&home.entries(), kind), of(&branch(home), kind));
    assert_eq!((all.len(), live.len()), (count, count), "{kind}: {:#?}", home.entries());
}

fn texts(request: &Value) -> String {
    request["messages"].to_string()
}

#[test]
fn notes_edits_and_state_count_in_the_request_after_the_boundary() {
    let plugins = [
        scripted("noter", &["append:custom_message", "append:custom"], NOTE),
        scripted("trimmer", &["append:context_edit"], TRIM),
    ];
    let Some(home) = Home::with(&plugins.concat()) else { return };
    let daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    let turns = 6;
    for turn in 0..turns {
        pi.prompt(&format!("{READ} turn {turn}"));
    }
    pi.quit();
    daemon.end();
    assert_all_live(&home, "note", turns);
    assert_all_live(&home, "of", turns);
    assert_all_live(&home, "context_edit", turns);
    let users = of(&home.entries(), "user");
    let requests = home.requests();
    // Two requests a turn; the second, with the result of the tool, is the first one after the turn's first boundary.
    assert_eq!((users.len(), requests.len()), (turns, 2 * turns));
    for (turn, user) in users.iter().enumerate() {
        let noted = format!("NOTED {}", user["id"].as_str().expect("an id"));
        assert!(!texts(&requests[2 * turn]).contains(&noted), "not before");
        assert!(texts(&requests[2 * turn + 1]).contains(&noted), "turn {turn}");
        assert_eq!(texts(&requests[2 * turn + 1]).matches("TRIMMED").count(), turn + 1);
        assert!(!texts(&requests[2 * turn + 1]).contains("line 7 of the notes"));
    }
    Session::read(&home.session()).assert_sound();
}

#[test]
fn many_batches_at_one_boundary() {
    let plugins: String =
        (0..8).map(|n| scripted(&format!("noter{n}"), &["append:custom_message", "append:custom"], NOTE)).collect();
    let Some(home) = Home::with(&plugins) else { return };
    let daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt(&format!("{READ} one"));
    pi.prompt("two");
    pi.quit();
    until("all", || of(&home.entries(), "note").len() == 16);
    daemon.end();
    assert_all_live(&home, "note", 16);
    assert_all_live(&home, "pi-graft.run", 16);
    let batches: BTreeSet<String> =
        of(&home.entries(), "pi-graft.run").iter().map(|e| e["data"]["batch"].to_string()).collect();
    assert_eq!(batches.len(), 16);
    // All of the first boundary's count in the request that follows it.
    assert_eq!(texts(&home.requests()[0]).matches("NOTED").count(), 0);
    assert_eq!(texts(&home.requests()[1]).matches("NOTED").count(), 8);
}

#[test]
fn a_compaction_at_a_boundary_is_what_the_next_request_begins_with() {
    let Some(home) = Home::with(&scripted("shrinker", &["append:compaction"], SHRINK)) else { return };
    let daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt("FIRST [[len 3000]]");
    pi.prompt("second");
    pi.quit();
    daemon.end();
    let last = home.requests().last().map(texts).expect("a request");
    assert!(last.contains("SHRUNK AT boundary") && !last.contains("FIRST"), "{last}");
    let (all, live) = (of(&home.entries(), "compaction"), of(&branch(&home), "compaction"));
    assert_eq!(all.len(), live.len());
    assert!(all.iter().all(|entry| entry["fromHook"] == true));
}

#[test]
fn in_place_of_pis_own_compaction_whoever_wants_it() {
    let Some(home) = Home::with(&scripted("summer", &["append:compaction"], SUM)) else { return };
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi_with(&[bridge()], &["--model", "mock/small"]);
    pi.prompt("[[len 3000]] one");
    pi.prompt("[[len 3000]] two");
    assert_eq!(pi.command("compact", json!({ "customInstructions": "be brief" }))["success"], true);
    pi.prompt("[[len 3000]] three");
    pi.prompt("[[len 3000]] [[usage 27000]] four");
    pi.prompt("[[len 3000]] five");
    pi.prompt("[[overflow]] six");
    pi.quit();
    daemon.wait_for("its bridge has left");
    daemon.end();
    let made: Vec<Value> = of(&home.entries(), "compaction").iter().map(|entry| entry["summary"].clone()).collect();
    assert_eq!(made, ["OURS FOR manual", "OURS FOR threshold", "OURS FOR overflow"]);
    assert!(home.requests().iter().all(|request| !request.to_string().contains("ontext summarization assistant")));
    assert_all_live(&home, "compaction", 3);
}

#[test]
fn a_daemon_killed_again_and_again_grafts_once() {
    let Some(home) = Home::with(&scripted("noter", &["append:custom_message", "append:custom"], NOTE)) else { return };
    let mut pi = home.pi();
    let turns = 6;
    for turn in 0..turns {
        let daemon = home.stage.daemon(&[]);
        pi.begin(&format!("{READ} turn {turn}"));
        // Whatever it is at by then.
        std::thread::sleep(Duration::from_millis(40 * turn as u64));
        daemon.kill();
        pi.settled();
    }
    let mut daemon = home.stage.daemon(&[]);
    pi.quit();
    daemon.wait_for("following");
    until("all grafts", || of(&home.entries(), "note").len() == turns);
    daemon.end();
    assert_all_live(&home, "note", turns);
    Session::read(&home.session()).assert_sound();
}

#[test]
fn what_a_killed_pi_had_not_taken_is_written_once_it_is_gone() {
    let Some(home) = Home::with(&scripted("noter", &["append:custom_message", "append:custom"], NOTE)) else { return };
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt("one");
    pi.begin("[[delay 20000]] two");
    until("the second prompt", || of(&home.entries(), "user").len() == 2);
    daemon.wait_for("proposed");
    until("its proposal", || daemon.log().matches("proposed").count() == 2);
    pi.kill();
    until("the second note", || of(&home.entries(), "note").len() == 2);
    daemon.end();
    assert_all_live(&home, "note", 2);
    let mut pi = home.pi_with(&[bridge()], &["--continue"]);
    pi.prompt("three");
    pi.quit();
    assert_eq!(home.requests().last().map(texts).expect("a request").matches("NOTED").count(), 2);
}

/// `pi -p` prints the answer, as ever, and what could not be taken before its end is written behind it.
#[test]
fn beside_pi_p() {
    let Some(home) = Home::with(&scripted("noter", &["append:custom_message", "append:custom"], NOTE)) else { return };
    let daemon = home.stage.daemon(&[]);
    let output = home.print_command("hello [[say printed]]").output().expect("Pi runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "printed");
    until("the note", || of(&home.entries(), "note").len() == 1);
    daemon.end();
    assert_all_live(&home, "note", 1);
}

#[test]
fn another_extension_at_the_same_hooks_loses_nothing() {
    let Some(home) = Home::with(&scripted("noter", &["append:custom_message", "append:custom"], NOTE)) else { return };
    let daemon = home.stage.daemon(&[]);
    let other = "export default function (pi) { let n = 0; for (const at of ['turn_end', 'agent_before_settle'])
        pi.on(at, (e) => ({ entries: [...e.entries, { type: 'custom', customType: 'theirs', data: n++ }] })); }";
    let other = home.extension("other.ts", other);
    let mut pi = home.pi_with(&[other.clone(), bridge()], &[]);
    (0..4).for_each(|turn| pi.prompt(&format!("turn {turn}")));
    pi.quit();
    daemon.end();
    assert_all_live(&home, "note", 4);
    assert_all_live(&home, "theirs", 8);
}

#[test]
fn sessions_come_and_go_in_one_pi() {
    let Some(home) = Home::with(&scripted("noter", &["append:custom_message", "append:custom"], NOTE)) else { return };
    let mut daemon = home.stage.daemon(&[]);
    let mut pi = home.pi();
    pi.prompt("in the first");
    let first = home.session();
    pi.command("new_session", json!({}));
    pi.prompt("in the second");
    pi.command("switch_session", json!({ "sessionPath": first }));
    pi.prompt("in the first again");
    pi.quit();
    daemon.wait_for("its bridge has left");
    let notes = |path: &std::path::Path| fs::read_to_string(path).expect("it").matches("\"content\":\"NOTED").count();
    // What Pi could not take before it left a session is written behind it.
    until("a note for each prompt", || {
        let mut counts: Vec<usize> = home.sessions().iter().map(|path| notes(path)).collect();
        counts.sort_unstable();
        counts == [1, 2]
    });
    daemon.end();
    home.sessions().iter().for_each(|path| Session::read(path).assert_sound());
}
