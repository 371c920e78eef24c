//! What becomes of runs that fail, and what the log says of every run.

use std::path::PathBuf;

use pi_graft::journal::{Journal, RunRecord};
use serde_json::Value;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk, member};

/// The rows of the log about runs, oldest first. The daemon must have ended.
fn runs(stage: &Stage) -> (Journal, Vec<RunRecord>) {
    let journal = Journal::open(&stage.path("state"), 0).expect("the store");
    let mut rows = journal.runs(1000, |row| row.given.is_some()).expect("rows");
    rows.reverse();
    (journal, rows)
}

/// The scripted guest as another version: the same, with another digest.
pub fn version(stage: &Stage, name: &str) -> PathBuf {
    let scripted = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/prebuilt/scripted.wasm");
    let mut bytes = std::fs::read(scripted).expect("the guest");
    let length = u8::try_from(name.len()).expect("a short name");
    // A custom section, which says nothing to anybody.
    bytes.extend([0, length + 1, length]);
    bytes.extend(name.as_bytes());
    let path = stage.path(&format!("{name}.wasm"));
    std::fs::write(&path, bytes).expect("a file");
    path
}

/// A plugin like [`scripted`] from another file, with limits.
pub fn plugin(name: &str, file: &std::path::Path, limits: &str, script: &str) -> String {
    let text = scripted(name, &["append:custom"], script);
    let (head, config) = text.split_once("[plugin.config]").expect("a config");
    let head: String = head.lines().filter(|line| !line.starts_with("path")).map(|line| format!("{line}\n")).collect();
    format!("{head}path = {file:?}\n[plugin.limits]\n{limits}\n[plugin.config]{config}")
}

/// What `quarantine list` says.
pub fn quarantine(stage: &Stage) -> Value {
    let output = stage.run(&["quarantine", "list", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn done(stage: &Stage, args: &[&str]) -> String {
    let output = stage.run(args);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    said
}

/// What the `custom` entries of a type say in `data.of`, in the order of the file.
fn noted(path: &std::path::Path, kind: &str) -> Vec<String> {
    Session::read(path).customs(kind).iter().map(|entry| member(entry, &["data", "of"])).collect()
}

fn json(journal: &Journal, hash: &str) -> Value {
    let text = journal.text(hash).expect("the store").expect("it is kept");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_log_holds_all_that_it_takes_to_make_a_run_again() {
    let first = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"first"}},{"later":"think"}],"settled":[{"custom":{"type":"third"}}]}"#;
    let second = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"second"}}]}"#;
    let plugins = [scripted("first", &["append:custom"], first), scripted("second", &["append:custom"], second)];
    let stage = Stage::new(20, &plugins.concat());
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let (asked, _) = (pi.user("hello"), pi.assistant("hi"));
    until("the grafts", || Session::read(&path).receipts() == 3);
    daemon.end();
    let (journal, rows) = runs(&stage);
    let [one, two, settled] = &rows[..] else { panic!("three runs: {rows:?}") };
    let given = |row: &RunRecord| row.given.clone().expect("what it was given");
    assert_eq!((one.trigger.as_str(), given(one).reason.as_str(), given(one).attempt), (asked.as_str(), "entry", 1));
    assert_eq!((given(one).entries, given(one).pending), (1, vec![]));
    assert_eq!(given(two).pending, [one.batch.clone().expect("a batch")], "it saw what the first proposed");
    assert_eq!(json(&journal, one.drafts.as_deref().expect("drafts"))[0]["customType"], "first");
    assert_eq!(json(&journal, &given(one).facts)["piCompaction"]["reserveTokens"], 16384);
    let config = json(&journal, &given(one).config);
    assert_eq!((&config["grants"][0], &config["limits"]["fuel"]), (&"append:custom".into(), &1_000_000_000.into()));
    assert_eq!(given(settled).reason, "settled");
    assert_eq!(json(&journal, &given(settled).told.expect("notes"))["notes"][0], "think");
}

const NOTE: &str = r#"{"custom":{"type":"note","data":{"of":"$trigger"}}}"#;

/// Notes each user message, but does something else first.
fn noting(first: &str) -> String {
    format!(r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{first}{NOTE}]}}"#)
}

/// Notes the user's messages with another type.
fn good() -> String {
    let script = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"good","data":{"of":"$trigger"}}}]}"#;
    scripted("good", &["append:custom"], script)
}

#[test]
fn a_run_that_took_too_long_is_tried_again_as_of_then_and_holds_nobody_up() {
    let slow = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"calls":200000},{"report":"seen"}]}"#;
    let stage = Stage::new(20, "");
    let file = version(&stage, "one");
    let limits = |time: &str| format!("fuel = 1000000000000\ntime = {time:?}\nretry = \"3s\"");
    let config = |time: &str| format!("{}{}", good(), plugin("slow", &file, &limits(time), slow));
    stage.configure(20, &config("20ms"));
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let asked = pi.user("hello");
    daemon.wait_for("tried again in 3s");
    pi.assistant("hi");
    until("the good one's graft", || noted(&path, "good") == [asked.clone()]);
    let failed = quarantine(&stage);
    assert_eq!((&failed["runs"][0]["state"], &failed["runs"][0]["kind"]), (&"retry".into(), &"deadline".into()));
    stage.configure(20, &config("60s"));
    done(&stage, &["reload"]);
    until("the slow one's graft", || Session::read(&path).customs("seen").len() == 1);
    let file = Session::read(&path);
    file.assert_sound();
    let seen = member(&file.customs("seen")[0], &["data", "branch"]);
    assert!(seen.contains("custom/good pending by good"), "what was pending then: {seen}");
    assert!(!seen.contains("assistant"), "nothing of what came later: {seen}");
    assert_eq!(quarantine(&stage)["runs"], serde_json::json!([]));
    daemon.end();
    let (_, rows) = runs(&stage);
    let slow: Vec<_> = rows.iter().filter(|row| row.plugin == "slow").collect();
    let tries: Vec<_> = slow.iter().map(|row| row.given.as_ref().expect("it is given").attempt).collect();
    assert_eq!(tries, [1, 2]);
    assert!(
        slow[0].message.contains("used 20 of 20 ms of time") && slow[0].message.contains("try 1 of 4"),
        "{}",
        slow[0].message
    );
}

#[test]
fn three_retries_that_fail_too_end_in_quarantine() {
    let limits = "fuel = 1000000000000\ntime = \"10ms\"\nretry = \"10ms\"";
    let stage = Stage::new(20, "");
    stage.configure(20, &plugin("slow", &version(&stage, "one"), limits, &noting(r#"{"loop":true},"#)));
    let mut daemon = stage.daemon(&[]);
    Talk::begin(&stage.session("a.jsonl")).user("hello");
    daemon.wait_for("in quarantine until a new version comes");
    let failed = quarantine(&stage);
    assert_eq!((&failed["runs"][0]["state"], &failed["runs"][0]["tries"]), (&"quarantine".into(), &4.into()));
}

#[test]
fn what_is_in_quarantine_is_run_in_order_when_a_new_version_comes() {
    let stage = Stage::new(20, "");
    let (one, two) = (version(&stage, "one"), version(&stage, "two"));
    stage.configure(20, &plugin("noter", &one, "", &noting(r#"{"trap":true},"#)));
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let asked = [pi.user("a"), pi.user("b"), pi.user("c")];
    pi.assistant("hi");
    until("three in quarantine", || quarantine(&stage)["runs"].as_array().is_some_and(|runs| runs.len() == 3));
    let id = quarantine(&stage)["runs"][0]["id"].as_str().expect("an id").to_owned();
    let shown = done(&stage, &["quarantine", "show", &id]);
    assert!(shown.contains("trap") && shown.contains(&asked[0]), "{shown}");
    assert!(done(&stage, &["status"]).contains("3 runs in quarantine"));
    // A start alone brings nothing new.
    daemon.end();
    assert_eq!(quarantine(&stage)["runs"].as_array().map(Vec::len), Some(3), "from the store");
    stage.configure(20, &plugin("noter", &two, "", &noting("")));
    let daemon = stage.daemon(&[]);
    until("all of it", || noted(&path, "note").len() == 3);
    assert_eq!(noted(&path, "note"), asked);
    until("an empty list", || quarantine(&stage)["runs"] == serde_json::json!([]));
    daemon.end();
    stage.once(&[]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(file.receipts(), 3, "each once");
}

#[test]
fn after_five_failures_in_a_row_what_passes_is_kept_and_run_when_the_suspension_ends() {
    let stage = Stage::new(20, "");
    let one = version(&stage, "one");
    let bad = format!("{}{}", plugin("noter", &one, "", &noting(r#"{"err":"no"},"#)), good());
    // Long enough for the answer to come before the first graft.
    stage.configure(2000, &bad);
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let asked: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].iter().map(|text| pi.user(text)).collect();
    daemon.wait_for("5 failures in a row: suspended in this session");
    pi.assistant("hi");
    until("the good one's grafts", || noted(&path, "good") == asked);
    let failed = quarantine(&stage);
    assert_eq!(failed["runs"].as_array().map(Vec::len), Some(5));
    assert!(failed["suspended"][0]["passed"].as_u64() >= Some(2), "{failed}");
    assert!(done(&stage, &["status"]).contains("SUSPENDED in 1 session"));
    // The same component with another config: what it failed on stays where it is, what passed is run.
    stage.configure(20, &bad.replace("err = \"no\"", "log = { text = \"well\" }"));
    done(&stage, &["reload"]);
    until("what passed", || noted(&path, "note").len() == 2);
    assert_eq!(noted(&path, "note"), asked[5..]);
    let failed = quarantine(&stage);
    assert_eq!((failed["runs"].as_array().map(Vec::len), &failed["suspended"]), (Some(5), &serde_json::json!([])));
    let said = done(&stage, &["quarantine", "retry", "--plugin", "noter"]);
    assert!(said.contains("5 runs are made again now"), "{said}");
    until("the rest", || noted(&path, "note").len() == 7);
    assert_eq!(noted(&path, "note")[2..], asked[..5]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(file.receipts(), 14);
}

#[test]
fn suspended_in_three_sessions_is_suspended_everywhere() {
    let stage = Stage::new(20, "");
    let one = version(&stage, "one");
    stage.configure(20, &plugin("noter", &one, "", &noting(r#"{"trap":true},"#)));
    let mut daemon = stage.daemon(&[]);
    for name in ["a", "b", "c"] {
        let mut pi = Talk::begin(&stage.session(&format!("{name}.jsonl")));
        ["1", "2", "3", "4", "5"].iter().for_each(|text| drop(pi.user(text)));
    }
    daemon.wait_for("and so everywhere");
    let path = stage.session("d.jsonl");
    let mut pi = Talk::begin(&path);
    let asked = [pi.user("hello"), pi.user("again")];
    pi.assistant("hi");
    until("they pass", || quarantine(&stage)["suspended"].as_array().is_some_and(|rows| rows.len() == 4));
    let failed = quarantine(&stage);
    assert_eq!(failed["runs"].as_array().map(Vec::len), Some(15), "nothing was run in the fourth");
    assert!(done(&stage, &["status"]).contains("SUSPENDED everywhere"));
    stage.configure(20, &plugin("noter", &one, "", &noting("")));
    done(&stage, &["reload"]);
    until("what passed there", || noted(&path, "note") == asked);
    daemon.end();
}

#[test]
fn what_passes_while_a_plugin_cannot_be_loaded_is_run_once_it_can() {
    let stage = Stage::new(20, "");
    let file = stage.path("one.wasm");
    let config = format!("{}{}", good(), plugin("noter", &file, "", &noting("")));
    stage.configure(20, &config);
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let mut asked = vec![pi.user("a"), pi.user("b")];
    pi.assistant("hi");
    until("the good one's grafts", || noted(&path, "good") == asked);
    assert_eq!(quarantine(&stage)["suspended"][0]["plugin"], "noter");
    version(&stage, "one");
    // One that was not in the config before begins with what comes next.
    let late = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"late","data":{"of":"$trigger"}}}]}"#;
    stage.configure(20, &format!("{config}{}", scripted("late", &["append:custom"], late)));
    done(&stage, &["reload"]);
    until("what passed", || noted(&path, "note").len() == 2);
    let mut pi = Talk::reopen(&path);
    asked.push(pi.user("c"));
    pi.assistant("hi");
    until("what comes next", || noted(&path, "late").len() == 1 && noted(&path, "note").len() == 3);
    assert_eq!((noted(&path, "note"), noted(&path, "late")), (asked.clone(), asked[2..].to_vec()));
    daemon.end();
    Session::read(&path).assert_sound();
}

#[test]
fn an_on_settled_run_that_failed_waits_in_quarantine_with_its_notes() {
    let script = |steps: &str| {
        format!(
            r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{{"later":"think"}}],"settled":[{steps}]}}"#
        )
    };
    let stage = Stage::new(20, "");
    let (one, two) = (version(&stage, "one"), version(&stage, "two"));
    stage.configure(20, &plugin("thinker", &one, "", &script(r#"{"trap":true}"#)));
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    daemon.wait_for("in quarantine");
    assert_eq!(quarantine(&stage)["runs"][0]["handler"], "on-settled");
    stage.configure(
        20,
        &plugin("thinker", &two, "", &script(r#"{"custom":{"type":"thought","data":{"of":"$notes"}}}"#)),
    );
    done(&stage, &["reload"]);
    until("the thought", || noted(&path, "thought") == ["think"]);
    assert_eq!(quarantine(&stage)["runs"], serde_json::json!([]));
}

/// No daemon runs: the next run of any kind makes it, and until then the list says so.
#[test]
fn without_a_daemon_a_retry_is_kept_for_the_next_run() {
    let stage = Stage::new(20, "");
    let one = version(&stage, "one");
    let failing = plugin("noter", &one, "", &noting(r#"{"trap":true},"#));
    stage.configure(20, &failing);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let asked = [pi.user("a"), pi.user("b")];
    pi.assistant("hi");
    stage.once(&["--closed"]);
    let found = quarantine(&stage);
    let id = found["runs"][1]["id"].as_str().expect("an id").to_owned();
    assert!(done(&stage, &["quarantine", "show", &id]).contains(&asked[1]));
    // The same component, which does not trap any more: without a word nothing is made again.
    stage.configure(20, &failing.replace("trap = true", "log = { text = \"well\" }"));
    stage.once(&["--closed"]);
    assert_eq!(noted(&path, "note").len(), 0);
    let said = done(&stage, &["quarantine", "retry", &id]);
    assert!(said.contains("1 run is made again by the next `pi-graft run`"), "{said}");
    let states: Vec<Value> = quarantine(&stage)["runs"].as_array().expect("runs").clone();
    assert_eq!(states.iter().map(|run| &run["state"]).collect::<Vec<_>>(), ["quarantine", "retry"]);
    stage.once(&["--closed"]);
    assert_eq!(noted(&path, "note"), asked[1..]);
    done(&stage, &["quarantine", "retry", "--all"]);
    stage.once(&["--closed"]);
    assert_eq!(quarantine(&stage)["runs"], serde_json::json!([]));
    assert_eq!(noted(&path, "note"), [asked[1].clone(), asked[0].clone()]);
    let output = stage.run(&["quarantine", "retry", "nobody"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
