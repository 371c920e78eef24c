//! What becomes of runs that fail, and what the log says of every run.

use pi_graft::journal::{Journal, RunRecord};
use serde_json::Value;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

/// The rows of the log about runs, oldest first. The daemon must have ended.
fn runs(stage: &Stage) -> (Journal, Vec<RunRecord>) {
    let journal = Journal::open(&stage.path("state"), 0).expect("the store");
    let mut rows = journal.runs(1000, |row| row.given.is_some()).expect("rows");
    rows.reverse();
    (journal, rows)
}

fn json(journal: &Journal, hash: &str) -> Value {
    let text = journal.text(hash).expect("the store").expect("it is kept");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_log_holds_all_that_it_takes_to_make_a_run_again() {
    let first =
        r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"first"}},{"later":"think"}]}"#;
    let second = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"second"}}]}"#;
    let plugins = [scripted("first", &["append:custom"], first), scripted("second", &["append:custom"], second)];
    let stage = Stage::new(20, &plugins.concat());
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let (asked, _) = (pi.user("hello"), pi.assistant("hi"));
    until("both grafts and the later run", || {
        let file = Session::read(&path);
        file.receipts() == 2 && daemon.log().contains("an on-settled run begins")
    });
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
