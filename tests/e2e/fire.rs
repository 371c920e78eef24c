//! Files under fire: what happens to a session file, and what the daemon makes of it (the table of ARCHITECTURE.md).

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::stage::{Stage, append, scripted, until};
use crate::talk::{Session, Talk, member};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user","message:assistant"],
    "entry":[{"custom":{"type":"note","data":{"of":"$trigger"}}}]}"#;

fn stage() -> Stage {
    Stage::new(20, &scripted("noter", &["append:custom"], NOTE))
}

/// Nobody has written to it for an hour, says its time.
fn grow_old(path: &Path) {
    let file = File::options().append(true).open(path).expect("the session");
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("an old time");
}

/// Cuts the file, as a crash of the machine or a full disk does.
fn cut(path: &Path, bytes: u64) {
    let file = File::options().write(true).open(path).expect("the session");
    let len = file.metadata().expect("its size").len();
    file.set_len(len - bytes).expect("cut");
}

fn triggers(file: &Session) -> Vec<String> {
    file.customs("note").iter().map(|note| member(note, &["data", "of"])).collect()
}

#[test]
fn a_whole_entry_without_its_line_end_is_waited_for_and_then_counts_as_it_does_in_pi() {
    let stage = stage();
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let (user, assistant) = (pi.user("hello"), pi.assistant("hi"));
    cut(&path, 1);
    let said = stage.once(&["--closed"]);
    assert!(said.contains("the last line is not finished"), "{said}");
    assert_eq!(Session::read(&path).receipts(), 0);
    grow_old(&path);
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(triggers(&file), [user, assistant.clone()], "both entries were handed to the plugin");
    assert_eq!(member(&file.customs("pi-graft.run")[0], &["parentId"]), assistant);
    let text = fs::read_to_string(&path).expect("the session");
    assert!(!text.contains("\n\n"), "one line end was missing, and one was written: {text}");
    let said = stage.once(&["--closed"]);
    assert!(said.contains("0 batches proposed"), "{said}");
}

#[test]
fn a_torn_last_line_is_ended_and_the_graft_hangs_on_the_last_whole_entry() {
    let stage = stage();
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let user = pi.user("hello");
    let assistant = pi.assistant("hi");
    pi.user("this one is torn");
    cut(&path, 20);
    stage.once(&["--closed"]);
    grow_old(&path);
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    assert_eq!(triggers(&file), [user, assistant.clone()]);
    assert_eq!(member(&file.customs("pi-graft.run")[0], &["parentId"]), assistant);
    let problems: Vec<_> = file.tree.problems().iter().map(|problem| (problem.rule(), problem.line)).collect();
    assert_eq!(problems, [("S2.2", 4)], "the torn line stands alone, and nothing else is wrong");
}

/// The same under a daemon that was there all the time.
#[test]
fn a_running_daemon_takes_a_last_line_without_its_end_after_live_hold() {
    let stage = stage();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&["--closed"]);
    let mut pi = Talk::begin(&path);
    let user = pi.user("hello");
    let (answer, line) = pi.answer_line("hi");
    append(&path, line.trim_end());
    daemon.wait_for("the last line is not finished");
    until("the grafts", || Session::read(&path).receipts() == 2);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(triggers(&file), [user, answer]);
    daemon.end();
}

#[test]
fn an_entry_without_its_end_is_handled_once_whatever_comes_behind_it() {
    for behind in ["\n", " \n", " and more that is not JSON\n"] {
        let stage = Stage::new(1, "");
        let path = stage.session("a.jsonl");
        let mut pi = Talk::begin(&path);
        pi.user("hello");
        pi.assistant("hi");
        cut(&path, 1);
        let said = stage.once(&["--closed"]);
        assert!(said.contains("1 entries handled"), "it is waited for: {said}");
        grow_old(&path);
        let said = stage.once(&["--closed"]);
        assert!(said.contains("1 entries handled"), "it was waited for: {said}");
        let said = stage.once(&["--closed"]);
        assert!(said.contains("0 entries handled"), "{said}");
        append(&path, behind);
        let said = stage.once(&["--closed"]);
        assert!(said.contains("0 entries handled"), "{behind:?}: {said}");
        pi.user("one more");
        let said = stage.once(&["--closed"]);
        assert!(said.contains("1 entries handled"), "{behind:?}: {said}");
    }
}

#[test]
fn under_a_running_daemon_a_line_that_got_longer_is_read_anew() {
    let stage = Stage::new(1, "");
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    cut(&path, 1);
    let mut daemon = stage.daemon(&["--closed"]);
    daemon.wait_for("taken as it is");
    append(&path, " and more that is not JSON\n");
    daemon.wait_for("read anew");
    pi.user("one more");
    let (log, said) = (daemon.end(), stage.once(&["--closed"]));
    let rest = usize::from(said.contains("1 entries handled"));
    assert!(log.contains(&format!("ended handled={}", 3 - rest)), "each of the three once: {log} {said}");
}

/// A session of `turns` turns that was handled whole.
fn handled(stage: &Stage, turns: usize) -> (std::path::PathBuf, String) {
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    for turn in 0..turns {
        pi.user(&format!("turn {turn}"));
        pi.assistant("ok");
    }
    let said = stage.once(&["--closed"]);
    assert!(said.contains(&format!("{} entries handled", 2 * turns)), "{said}");
    let text = fs::read_to_string(&path).expect("the session");
    (path, text)
}

fn once_handles(stage: &Stage, what: &str, entries: usize) {
    let said = stage.once(&["--closed"]);
    assert!(
        said.contains(&format!("\n{entries} entries handled"))
            || said.starts_with(&format!("{entries} entries handled")),
        "{what}: {said}"
    );
}

/// Its first half, and what was cut away comes back: as when a backup is put in its place, and taken away again.
#[test]
fn what_was_handled_before_a_file_was_shortened_is_not_handled_again() {
    let stage = Stage::new(1, "");
    let (path, text) = handled(&stage, 5);
    let half = text.split_inclusive('\n').take(7).collect::<String>();
    fs::write(&path, &half).expect("shortened");
    once_handles(&stage, "shortened", 0);
    append(&path, &text[half.len()..]);
    once_handles(&stage, "whole again", 0);
    Talk::reopen(&path).user("one more");
    once_handles(&stage, "one more", 1);
}

#[test]
fn in_a_file_that_was_edited_entries_are_known_by_their_ids() {
    let stage = Stage::new(1, "");
    let (path, text) = handled(&stage, 5);
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let fresh = lines[1].replace("00000001", "ffff0001").replace("turn 0", "put in by hand");
    lines.remove(8);
    lines.remove(3);
    lines.insert(1, &fresh);
    let beside = stage.path("edited");
    fs::write(&beside, lines.concat()).expect("the edited one");
    fs::rename(&beside, &path).expect("renamed over it");
    once_handles(&stage, "one was put in, two were taken out", 1);
    once_handles(&stage, "and again", 0);
    fs::write(&path, &text).expect("as it was, in place");
    once_handles(&stage, "as it was", 0);
}

#[test]
fn a_file_that_was_deleted_and_put_back_is_known() {
    let stage = Stage::new(1, "");
    let (path, text) = handled(&stage, 3);
    fs::remove_file(&path).expect("deleted");
    once_handles(&stage, "deleted", 0);
    fs::write(&path, text).expect("put back");
    once_handles(&stage, "put back", 0);
    Talk::reopen(&path).user("one more");
    once_handles(&stage, "one more", 1);
}

/// Under a running daemon, whose session is in memory.
#[test]
fn a_running_daemon_survives_a_file_that_is_shortened_and_written_anew() {
    let stage = stage();
    let path = stage.session("a.jsonl");
    let mut daemon = stage.daemon(&["--closed"]);
    let mut pi = Talk::begin(&path);
    pi.user("one");
    pi.assistant("ok");
    until("the grafts", || Session::read(&path).receipts() == 2);
    let text = fs::read_to_string(&path).expect("the session");
    let without_grafts: String = text.split_inclusive('\n').take(3).collect();
    fs::write(&path, without_grafts).expect("written anew");
    daemon.wait_for("not the file that it was");
    let mut pi = Talk::reopen(&path);
    let (user, assistant) = (pi.user("two"), pi.assistant("ok"));
    until("the grafts of the new turn", || Session::read(&path).receipts() == 2);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(triggers(&file), [user, assistant], "the old turn was handled");
    daemon.end();
}

/// Version 1 has no ids that last: Pi's migration in place gives new ones.
#[test]
fn after_pis_migration_in_place_entries_are_known_by_their_count() {
    let stage = Stage::new(1, "");
    let path = stage.session("a.jsonl");
    let header = r#"{"type":"session","id":"a","timestamp":"2099-01-01T00:00:00.000Z","cwd":"/work"}"#;
    let message = |n: u32| {
        format!(
            r#"{{"type":"message","timestamp":"2099-01-01T00:00:0{n}.000Z","message":{{"role":"user","content":"{n}"}}}}"#
        )
    };
    fs::write(&path, format!("{header}\n{}\n{}\n", message(1), message(2))).expect("an old session");
    once_handles(&stage, "version 1", 2);
    let migrated = |n: u32| {
        message(n).replace(r#""timestamp":"2"#, &format!(r#""id":"abcd000{n}","parentId":null,"timestamp":"2"#))
    };
    let header = header.replace(r#""id""#, r#""version":3,"id""#);
    fs::write(&path, format!("{header}\n{}\n{}\n{}\n", migrated(1), migrated(2), migrated(3))).expect("migrated");
    once_handles(&stage, "migrated, and one more", 1);
    append(&path, &(migrated(4) + "\n"));
    once_handles(&stage, "one more", 1);
}

/// A batch waits for a turn's end, and its trigger goes away with the end of the file.
#[test]
fn what_is_pending_for_an_entry_that_is_gone_is_kept_until_it_comes_back() {
    let stage = stage();
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.entry("session_info", r#""name":"x""#);
    let before = fs::read_to_string(&path).expect("the session");
    let user = pi.user("two");
    pi.call("c1", "bash");
    let whole = fs::read_to_string(&path).expect("the session");
    let said = stage.once(&["--closed"]);
    assert!(said.contains("2 batches proposed, 0 grafted"), "{said}");
    fs::write(&path, &before).expect("shortened");
    let said = stage.once(&["--closed"]);
    assert!(said.contains("its entry is not in the file any more"), "{said}");
    fs::write(&path, whole).expect("as it was");
    pi.result("c1", "done");
    pi.assistant("ok");
    let said = stage.once(&["--closed"]);
    assert!(said.contains("in the file again"), "{said}");
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(triggers(&file).iter().filter(|of| **of == user).count(), 1);
    assert_eq!(file.receipts(), 3);
}

/// Unless somebody hears it, the signal that comes with such a limit ends the process.
#[test]
fn a_limit_on_the_size_of_files_keeps_what_exceeds_it_waiting_and_nothing_else() {
    let stage = stage();
    let (large, small) = (stage.session("large.jsonl"), stage.session("small.jsonl"));
    let mut program = std::process::Command::new("sh");
    program.args(["-c", "ulimit -f 16384; exec \"$@\"", "sh"]);
    let mut daemon = stage.daemon_by(program, &["--closed"]);
    let mut pi = Talk::begin(&large);
    pi.user(&"x".repeat(17 << 20));
    pi.assistant("hi");
    daemon.wait_for("kept for later");
    assert!(daemon.log().contains("File too large"), "{}", daemon.log());
    let mut pi = Talk::begin(&small);
    pi.user("hello");
    pi.assistant("hi");
    until("the small one's grafts", || triggers(&Session::read(&small)).len() == 2);
    daemon.end();
    assert_eq!(triggers(&Session::read(&large)).len(), 0);
    let daemon = stage.daemon(&["--closed"]);
    until("the large one's grafts", || triggers(&Session::read(&large)).len() == 2);
    daemon.end();
}
