//! What waits: seen by later runs, judged again when its time comes, grafted once.

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk, member};

const FIRST: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"first"}}]}"#;

#[test]
fn the_second_plugin_sees_what_the_first_proposed_on_the_same_entry() {
    let second = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[
        {"custom":{"type":"missed"},"unless":"first"},{"custom":{"type":"ran"}}]}"#;
    let plugins = [scripted("one", &["append:custom"], FIRST), scripted("two", &["append:custom"], second)].concat();
    let stage = Stage::new(50, &plugins);
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    until("both grafts", || Session::read(&path).receipts() == 2);
    let file = Session::read(&path);
    assert_eq!((file.customs("first").len(), file.customs("ran").len(), file.customs("missed").len()), (1, 1, 0));
    daemon.end();
}

#[test]
fn a_graft_that_waits_through_five_entries_lands_once_on_the_leaf_of_that_moment() {
    let stage = Stage::new(50, &scripted("one", &["append:custom"], FIRST));
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    daemon.wait_for("waiting");
    pi.result("c1", "done");
    pi.call("c2", "bash");
    pi.result("c2", "done");
    pi.call("c3", "bash");
    assert_eq!(Session::read(&path).receipts(), 0);
    pi.result("c3", "done");
    let last = pi.assistant("all done");
    until("the graft", || Session::read(&path).receipts() == 1);
    let file = Session::read(&path);
    assert_eq!(member(&file.customs("pi-graft.run")[0], &["parentId"]), last);
    daemon.end();
    stage.once(&["--backfill", "--closed"]);
    assert_eq!(Session::read(&path).customs("first").len(), 1);
}

/// A batch of two edits waits; meanwhile Pi compacts, and the message it keeps is gone from the branch's context.
#[test]
fn a_batch_of_which_one_draft_is_stale_is_dropped_whole() {
    let script = r#"{"needs":["append:custom","append:compaction"],"on":["message:user"],"entry":[
        {"custom":{"type":"with-it"}},
        {"compaction":{"summary":"what was said","first_kept":"$trigger"}}]}"#;
    let stage = Stage::new(50, &scripted("one", &["append:custom", "append:compaction"], script));
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    daemon.wait_for("proposed");
    let kept = pi.assistant("hi");
    // Pi itself compacts at this moment: ours would stand directly on it.
    pi.entry("compaction", &format!(r#""summary":"Pi's own","firstKeptEntryId":"{kept}","tokensBefore":10"#));
    daemon.wait_for("stale");
    let file = Session::read(&path);
    assert_eq!((file.receipts(), file.customs("with-it").len(), file.compactions()), (0, 0, 1));
    assert!(daemon.log().contains("S12.5"), "{}", daemon.log());
    daemon.end();
}

#[test]
fn yesterdays_store_put_back_grafts_nothing_twice() {
    let stage = Stage::new(50, &scripted("one", &["append:custom"], FIRST));
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&[]);
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    daemon.wait_for("waiting");
    daemon.end();
    let store = stage.path("state/state.redb");
    let yesterday = std::fs::read(&store).expect("the store");
    let mut pi = Talk::reopen(&path);
    pi.result("c1", "done");
    pi.assistant("hi");
    let daemon = stage.daemon(&[]);
    until("the graft", || Session::read(&path).receipts() == 1);
    daemon.end();
    std::fs::write(&store, yesterday).expect("yesterday's store");
    let text = stage.once(&["--closed"]);
    assert!(text.contains("already holds its receipt"), "{text}");
    std::fs::remove_file(&store).expect("no store at all");
    stage.once(&["--backfill", "--closed"]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!((file.receipts(), file.customs("first").len()), (1, 1));
}

#[test]
fn while_a_pi_is_seen_in_the_directory_nothing_is_appended() {
    let stage = Stage::new(20, &scripted("one", &["append:custom"], FIRST));
    let work = stage.path("work");
    std::fs::create_dir(&work).expect("a working directory");
    let mut pi = titled_pi(&work);
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut talk = Talk::begin_in(&path, &work);
    talk.user("hello");
    talk.assistant("hi");
    daemon.wait_for("a Pi has this session open");
    assert_eq!(Session::read(&path).receipts(), 0);
    pi.kill().expect("it quits");
    pi.wait().expect("it is gone");
    until("the graft", || Session::read(&path).receipts() == 1);
    daemon.end();
}

/// No line is written when a Pi is killed in the middle of a call: the daemon must look by itself.
#[test]
fn a_pi_that_is_killed_in_the_middle_of_a_call_is_seen_to_be_gone() {
    let stage = Stage::new(20, &scripted("one", &["append:custom"], FIRST));
    let work = stage.path("work");
    std::fs::create_dir(&work).expect("a working directory");
    let mut pi = titled_pi(&work);
    let mut daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut talk = Talk::begin_in(&path, &work);
    talk.user("hello");
    talk.call("c1", "bash");
    daemon.wait_for("a Pi has this session open");
    pi.kill().expect("it is killed");
    pi.wait().expect("it is gone");
    until("the graft", || Session::read(&path).receipts() == 1);
    daemon.end();
}

/// A directory of sessions may hold those of many working directories, and files that are no sessions: a newer one of these
/// is not what a Pi that works elsewhere has open.
#[test]
fn a_pi_has_the_newest_session_of_its_own_working_directory() {
    let stage = Stage::new(20, &scripted("one", &["append:custom"], FIRST));
    let (here, elsewhere) = (stage.path("here"), stage.path("elsewhere"));
    [&here, &elsewhere].iter().for_each(|dir| std::fs::create_dir(dir).expect("a working directory"));
    let mut pi = titled_pi(&here);
    let (path, newer) = (stage.session("a.jsonl"), stage.session("b.jsonl"));
    let mut talk = Talk::begin_in(&path, &here);
    talk.user("hello");
    talk.assistant("hi");
    until("a later time", || {
        std::fs::write(stage.session("no-session.jsonl"), "{}\n").expect("a file");
        let time = |path| std::fs::metadata(path).and_then(|meta| meta.modified()).expect("a time");
        time(stage.session("no-session.jsonl")) > time(path.clone())
    });
    let mut beside = Talk::begin_in(&newer, &elsewhere);
    beside.user("hello");
    beside.assistant("hi");
    let mut daemon = stage.daemon(&[]);
    until("the graft where no Pi is", || Session::read(&newer).receipts() == 1);
    daemon.wait_for("a Pi has this session open");
    assert_eq!(Session::read(&path).receipts(), 0, "nothing behind its back");
    pi.kill().expect("it is killed");
    pi.wait().expect("it is gone");
    until("the graft once it is gone", || Session::read(&path).receipts() == 1);
    daemon.end();
}

/// What is asked for while an `on-settled` run is under way is a wish of its own.
#[test]
fn a_wish_during_an_on_settled_run_is_granted_too() {
    let script = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"later":"$trigger"}],
        "settled":[{"calls":30000},{"custom":{"type":"settled","data":{"notes":"$notes"}}}]}"#;
    let stage = Stage::new(20, &scripted("one", &["append:custom"], script));
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let first = pi.user("hello");
    pi.assistant("hi");
    daemon.wait_for("an on-settled run begins");
    let second = pi.user("more");
    pi.assistant("yes");
    until("both runs", || Session::read(&path).customs("settled").len() == 2);
    let notes: Vec<String> =
        Session::read(&path).customs("settled").iter().map(|entry| member(entry, &["data", "notes"])).collect();
    assert_eq!(notes, [first, second]);
    daemon.end();
}

/// A process that the system shows under the title that Pi gives itself.
fn titled_pi(work: &std::path::Path) -> std::process::Child {
    use std::os::unix::process::CommandExt;
    std::process::Command::new("sleep").arg0("pi").arg("600").current_dir(work).spawn().expect("it runs")
}

/// Closed by default, also at the last moment (product.md 4.3).
#[test]
fn what_a_plugin_proposed_is_dropped_when_it_is_disabled_or_loses_the_grant() {
    let script = r#"{"can_use":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"first"}}]}"#;
    let ungranted = scripted("one", &[], script);
    let broken = ungranted.replace("scripted.wasm", "no-such.wasm");
    for (later, dropped) in [(ungranted, true), (String::new(), true), (broken + &scripted("two", &[], script), false)]
    {
        let stage = Stage::new(1, &scripted("one", &["append:custom"], script));
        let path = stage.session("a.jsonl");
        let mut pi = Talk::begin(&path);
        pi.user("hello");
        pi.call("c1", "bash");
        stage.once(&[]);
        pi.result("c1", "ok");
        pi.assistant("done");
        stage.configure(1, &later);
        let output = stage.run(&["run", "--once", "--closed"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.contains("dropped:"), dropped, "{said}");
        assert_eq!(output.status.success(), dropped, "a plugin that cannot be loaded is a problem");
        assert_eq!(Session::read(&path).receipts(), usize::from(!dropped));
    }
}
