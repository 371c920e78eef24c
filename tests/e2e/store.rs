//! The store between several commands, and with rows that nobody can read; and whose directories are trusted.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use pi_graft::daemon::world::now_ms;
use pi_graft::journal::Journal;
use redb::{Database, TableDefinition};

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;
const PENDING: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("pending");

fn stage() -> Stage {
    Stage::new(1, &scripted("noter", &["append:custom"], NOTE))
}

#[test]
fn who_needs_the_store_waits_for_a_command_that_has_it_for_a_moment() {
    for args in [&["run", "--once", "--closed"][..], &["log"]] {
        let stage = stage();
        stage.once(&["--closed"]);
        let held = Journal::open(&stage.path("state"), now_ms()).expect("the store");
        let mut command = stage.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut said = BufReader::new(command.stderr.take().expect("its words"));
        wait_for(&mut said, "waiting for it");
        drop(held);
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("its words");
        assert!(ended_well(&mut command), "{rest}");
    }
}

#[test]
fn who_waited_in_vain_says_who_has_it() {
    let stage = stage();
    stage.once(&["--closed"]);
    let _held = Journal::open(&stage.path("state"), now_ms()).expect("the store");
    for (args, who) in [(&["run", "--once"][..], "another pi-graft has"), (&["status"], "a `pi-graft run --once` has")]
    {
        let output = stage.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(who) && said.contains("try again"), "{said}");
    }
}

/// One session has a pending batch that a newer version wrote; the other is served all the same.
#[test]
fn a_row_that_cannot_be_read_costs_its_session_alone_and_comes_back_with_the_newer_version() {
    let stage = stage();
    let (one, other) = (stage.session("one.jsonl"), stage.session("other.jsonl"));
    let mut pi = Talk::begin(&one);
    pi.user("hello");
    pi.call("c1", "bash");
    stage.once(&[]);
    let good = swap_pending(&stage, r#"{"of":"a newer version"}"#);
    pi.result("c1", "ok");
    pi.assistant("done");
    let mut pi = Talk::begin(&other);
    pi.user("hello");
    pi.assistant("hi");
    let output = stage.run(&["run", "--once", "--closed"]);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("a newer pi-graft wrote it, or it is damaged"), "{said}");
    assert_eq!((Session::read(&one).receipts(), Session::read(&other).receipts()), (0, 1));
    swap_pending(&stage, &good);
    stage.once(&["--closed"]);
    Session::read(&one).assert_sound();
    assert_eq!(Session::read(&one).receipts(), 1);
}

#[test]
fn a_directory_for_sockets_that_others_can_write_to_is_refused() {
    let stage = stage();
    stage.once(&["--closed"]);
    let dir = stage.path("runtime/pi-graft");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("open to all");
    for args in [&["run", "--once"][..], &["run"], &["status"], &["pause"]] {
        let output = stage.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("others can write"), "{args:?}: {said}");
    }
}

/// A batch waits for the result of a call; meanwhile the state directory is deleted, with the daemon that has it.
#[test]
fn a_state_directory_that_is_deleted_under_a_daemon_is_put_back_with_what_is_pending() {
    let stage = stage();
    stage.hold_for("1h");
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("one.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.call("c1", "bash");
    daemon.wait_for("waiting: ");
    fs::remove_dir_all(stage.path("state")).expect("deleted");
    daemon.wait_for("put back with all it holds");
    daemon.kill();
    pi.result("c1", "ok");
    pi.assistant("done");
    stage.once(&["--closed"]);
    Session::read(&path).assert_sound();
    assert_eq!(Session::read(&path).receipts(), 1);
}

#[test]
fn a_daemon_can_be_reached_again_though_its_directories_were_deleted() {
    let stage = stage();
    let daemon = stage.daemon(&["--closed"]);
    for dir in ["runtime/pi-graft", "state"] {
        fs::remove_dir_all(stage.path(dir)).expect("deleted");
        until("the daemon's answer", || {
            let said = stage.run(&["status", "--json"]);
            let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
            said["daemon"]["pid"] == daemon.id()
        });
    }
    daemon.end();
    assert!(sockets(&stage).is_empty(), "it leaves none behind: {:?}", sockets(&stage));
}

fn sockets(stage: &Stage) -> Vec<std::path::PathBuf> {
    let all = fs::read_dir(stage.path("runtime/pi-graft")).expect("the directory").flatten().map(|entry| entry.path());
    all.filter(|path| path.extension().is_some_and(|ext| ext == "sock")).collect()
}

/// Yesterday's store is put back while the daemon runs: it ends, and the next one goes on with that store.
#[test]
fn a_daemon_whose_store_was_replaced_ends_and_grafts_nothing_twice() {
    let stage = stage();
    stage.once(&["--closed"]);
    let (store, backup) = (stage.path("state/state.redb"), stage.path("backup"));
    fs::copy(&store, &backup).expect("a backup");
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("one.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    daemon.wait_for("grafted");
    fs::rename(&backup, &store).expect("put back");
    daemon.wait_for_end_with("another store stands where the one in use was");
    stage.once(&["--closed"]);
    Session::read(&path).assert_sound();
    assert_eq!(Session::read(&path).receipts(), 1);
}

/// Puts a row in the place of the one that is pending.
fn swap_pending(stage: &Stage, row: &str) -> String {
    let db = Database::open(stage.path("state/state.redb")).expect("the store");
    let write = db.begin_write().expect("a transaction");
    let old = {
        let mut table = write.open_table(PENDING).expect("the table");
        let old = table.insert((1, 1), row).expect("kept").expect("what is pending");
        old.value().to_owned()
    };
    write.commit().expect("kept");
    old
}

fn wait_for(said: &mut impl BufRead, text: &str) {
    let found = said.lines().map(|line| line.expect("a line")).any(|line| line.contains(text));
    assert!(found, "it ended without {text:?}");
}

fn ended_well(command: &mut Child) -> bool {
    command.wait().expect("it ends").success()
}
