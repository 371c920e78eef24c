//! A session that a program makes: what each call writes, what it refuses, and that the real Pi would have written the same.

mod common;

use common::js::Js;
use common::oracle::Oracle;
use common::scene::{compaction, counter, message_draft, omit, refused};
use common::script::{self, NOW_MS, Script};
use pi_session::fork::{NewSession, fork_whole};
use pi_session::{BranchSummary, NewEntry, Session};

fn new_session(id: &str) -> NewSession<'_> {
    NewSession { id, now_ms: NOW_MS, cwd: "/work", parent_session: None }
}

/// A session of one user message and an assistant's call, and the ids of both.
fn waiting() -> (Script, String, String) {
    let mut script = Script::default();
    let question = script.user("read it").expect("stands");
    let call = script.assistant("reading", 1).expect("stands");
    (script, question, call)
}

#[test]
fn lines_are_handed_over_once_and_whole() {
    let mut session = Session::create(&new_session("s1")).expect("made");
    assert!(!session.has_conversation());
    session.append(NewEntry::user("hi", NOW_MS), NOW_MS, &mut counter()).expect("stands");
    assert!(session.has_conversation());
    let lines = String::from_utf8(session.take_lines()).expect("text");
    assert_eq!(
        lines,
        concat!(
            r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}"#,
            "\n",
            r#"{"type":"message","id":"00000001","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","#,
            r#""message":{"role":"user","content":"hi","timestamp":1767225600000}}"#,
            "\n",
        )
    );
    assert_eq!(session.take_lines(), b"");
}

#[test]
fn a_torn_file_is_ended_first_and_never_changed() {
    let (script, _, call) = waiting();
    let mut file = script.session.text().to_vec();
    file.extend_from_slice(b"{\"type\":\"custom\",\"id\":\"half");
    let mut session = Session::open(file.clone()).expect("opened");
    assert_eq!(session.leaf_id(), Some(call.as_str()));
    let mut ids = counter();
    session.append(NewEntry::session_name("n"), NOW_MS, &mut ids).expect("stands");
    let more = session.take_lines();
    assert!(more.starts_with(b"\n{") && more.ends_with(b"}\n"));
    assert_eq!([file, more].concat(), session.text());
    assert_eq!(session.leaf_id(), Some("00000003"), "the ids that are taken are not given again");
}

#[test]
fn a_program_whose_randomness_is_none_gets_ids_of_its_own_all_the_same() {
    let mut session = Session::create(&new_session("s1")).expect("made");
    let mut always_the_same = || [0xab; 16];
    let times = [i64::MIN, 0, NOW_MS, i64::MAX];
    for (turn, time) in (0..100).zip(times.iter().cycle()) {
        let question = session.append(NewEntry::user("hi", NOW_MS), *time, &mut always_the_same).expect("stands");
        let drafts = [message_draft("one"), message_draft("two")];
        session.append_drafts(&drafts, *time, &mut always_the_same).expect("stand");
        if turn % 10 == 9 {
            session.branch_from(&question).expect("there");
        }
    }
    let checked = pi_session::check::check(session.tree(), std::sync::Arc::new(session.text().to_vec())).expect("read");
    assert!(checked.problems.is_empty(), "{:?}", checked.problems);
    let fork = session.fork(None, &new_session("s2"), &mut always_the_same).expect("forked");
    assert_eq!(fork.branch().expect("opens").len(), session.branch().expect("opens").len());
}

#[test]
fn time_never_goes_back_along_a_branch() {
    let mut session = Session::create(&new_session("s")).expect("made");
    let mut ids = counter();
    session.append(NewEntry::user("late", NOW_MS), NOW_MS + 5000, &mut ids).expect("stands");
    session.append(NewEntry::user("early", NOW_MS), NOW_MS, &mut ids).expect("stands");
    let times: Vec<_> = session.tree().entries().iter().map(|entry| entry.time_ms).collect();
    assert_eq!(times, [Some(NOW_MS + 5000), Some(NOW_MS + 5000)]);
}

#[test]
fn what_is_refused_changes_nothing() {
    let (mut script, question, _) = waiting();
    let session = &mut script.session;
    let (text, leaf) = (session.text().to_vec(), session.leaf_id().map(str::to_owned));
    let mut ids = counter();
    refused(session.branch_from("nobody"), "S8.1", "nobody");
    refused(session.append(NewEntry::label("nobody", Some("x")), NOW_MS, &mut ids), "S8.1", "nobody");
    let summary = BranchSummary::new("s", None, None).expect("well formed");
    refused(session.branch_with_summary(Some("nobody"), &summary, NOW_MS, &mut ids), "S8.1", "nobody");
    refused(session.append(compaction(Some("nobody")), NOW_MS, &mut ids), "S12.5", "nobody");
    session.branch_from(&question).expect("there");
    let elsewhere = leaf.as_deref().expect("a leaf");
    refused(session.append(omit(elsewhere), NOW_MS, &mut ids), "S12.6", "another branch");
    assert_eq!(session.text(), text);
    refused(NewEntry::thinking_level(""), "S12.3", "empty");
    refused(NewEntry::usage("k", "p", "m", "{}", ""), "S12.3", "usage");
    refused(NewEntry::message(r#"{"role":"user"}"#), "S12.3", "timestamp");
    refused(BranchSummary::new(" ", None, None), "S12.3", "empty");
    refused(Session::create(&new_session("-x")).map(drop), "S1.3", "letter or digit");
}

#[test]
fn a_result_answers_an_open_call() {
    let (mut script, question, call) = waiting();
    let result = |script: &mut Script, call: u32| {
        let message = format!(
            r#"{{"role":"toolResult","toolCallId":"call{call}","toolName":"read","content":[],"isError":false,"timestamp":1}}"#
        );
        script.session.append(NewEntry::message(&message).expect("well formed"), NOW_MS, &mut || [9; 16])
    };
    refused(result(&mut script, 7), "S5", "not in the context");
    result(&mut script, 1).expect("it is open");
    refused(result(&mut script, 1), "S5", "already");
    script.branch_from(&question);
    refused(result(&mut script, 1), "S5", "not in the context");
    script.branch_from(&call);
    result(&mut script, 1).expect("open on this branch");
}

#[test]
fn edits_of_a_call_and_its_result_go_together() {
    let (mut script, _, call) = waiting();
    let result = script.result(1, "the file").expect("stands");
    let session = &mut script.session;
    let mut ids = counter();
    refused(session.append(omit(&call), NOW_MS, &mut ids), "S12.6", "parted");
    let both = session.append_drafts(&[omit(&result), omit(&call)], NOW_MS, &mut ids).expect("together they may");
    assert_eq!(both.len(), 2);
    assert_eq!(session.leaf_id(), Some(both[1].as_str()));
}

#[test]
fn after_a_reset_anything_may_be_the_root() {
    let (mut script, _, _) = waiting();
    let mut ids = counter();
    script.session.reset();
    script.session.append(message_draft("a new start"), NOW_MS, &mut ids).expect("stands");
    assert_eq!(script.session.tree().roots().count(), 2);
    assert_eq!(script.session.branch().expect("no cycle").len(), 1);
}

#[test]
fn old_newer_and_no_sessions_are_not_opened() {
    refused(Session::open(Vec::new()).map(drop), "S2.3", "header");
    refused(Session::open(b"{\"type\":\"session\",\"id\":\"s\"}\n".to_vec()).map(drop), "S11.2", "migrate");
    refused(Session::open(b"{\"type\":\"session\",\"version\":4,\"id\":\"s\"}\n".to_vec()).map(drop), "S3", "above 3");
    let no_leaf =
        b"{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n{\"type\":\"custom\",\"id\":\"a\"}\n{}\n".to_vec();
    let mut session = Session::open(no_leaf).expect("opened");
    refused(session.append(NewEntry::session_name("n"), NOW_MS, &mut counter()), "S2.2", "no leaf");
    session.branch_from("a").expect("there");
    session.append(NewEntry::session_name("n"), NOW_MS, &mut counter()).expect("stands");
}

/// The same calls, random ones, made on Pi's own session manager: the same bytes but for the ids, key order included; and
/// opened again, the same leaf and messages.
#[test]
fn pi_writes_the_same_for_the_same_calls() {
    let Some(mut oracle) = Oracle::start() else { return };
    let (mut lines, mut refused) = (0, 0);
    for seed in 0..400 {
        let script = script::random(seed);
        let pi = oracle.make(&script.calls(), NOW_MS);
        let theirs: Vec<String> = pi.get("lines").expect("lines").items().iter().filter_map(Js::as_text).collect();
        let ours = String::from_utf8(script.session.text().to_vec()).expect("text");
        assert_eq!(numbered(&ours.lines().collect::<Vec<_>>()), numbered(&theirs), "seed {seed}: {}", script.calls());
        compare_opened(&script, &pi, seed);
        (lines, refused) = (lines + theirs.len(), refused + script.refused);
    }
    eprintln!("{lines} lines are as Pi writes them; {refused} calls were refused here and not made");
    assert!(lines > 4000, "{lines} lines compared");
}

/// Lines with each entry's id replaced by its number.
fn numbered<T: AsRef<str>>(lines: &[T]) -> Vec<String> {
    let id = |line: &T| Js::parse(line.as_ref().as_bytes()).get("id").and_then(Js::as_text).expect("an id");
    let ids: Vec<String> = lines.iter().skip(1).map(id).collect();
    let number = |line: &T| {
        let named =
            |line: String, (at, id): (usize, &String)| line.replace(&format!("\"{id}\""), &format!("\"#{at}\""));
        ids.iter().enumerate().fold(line.as_ref().to_owned(), named)
    };
    lines.iter().map(number).collect()
}

/// What our file says when it is opened is what Pi said of its own.
fn compare_opened(script: &Script, pi: &Js, seed: u64) {
    let theirs = pi.get("reopened").and_then(|leaf| leaf.get("messages")).expect("messages").items();
    let ours = common::messages(script.session.text()).expect("no cycle");
    let canonical = |message: &String| Js::parse(message.as_bytes()).canonical();
    let without_ids = |texts: Vec<String>| texts.into_iter().map(|text| without_from(&text)).collect::<Vec<_>>();
    let ours = without_ids(ours.iter().map(canonical).collect());
    assert_eq!(ours, without_ids(theirs.iter().map(Js::canonical).collect()), "seed {seed}");
}

/// A branch summary's message names an entry; the ids differ.
fn without_from(message: &str) -> String {
    match message.split_once("\"fromId\":\"") {
        Some((before, after)) => format!("{before}{}", after.split_once('"').map_or("", |(_, rest)| rest)),
        None => message.to_owned(),
    }
}

/// Forks and clones of random sessions, and copies of the whole, as Pi makes them.
#[test]
fn pi_forks_and_clones_the_same() {
    let Some(mut oracle) = Oracle::start() else { return };
    let file = std::env::temp_dir().join(format!("pi-session-forks-{}.jsonl", std::process::id()));
    let (mut branches, mut wholes) = (0, 0);
    for seed in 0..300 {
        let script = script::random(seed);
        std::fs::write(&file, script.session.text()).expect("the temporary directory can be written to");
        let new = new_session("new");
        for leaf in script.ids().iter().step_by(3) {
            let mut count = counter();
            // Ids that nothing in the session names.
            let mut random = || count().map(|byte| byte | 0xa0);
            let Ok(ours) = script.session.fork(Some(leaf), &new, &mut random) else { continue };
            same_lines(ours.text(), &oracle.branched(&file, leaf, NOW_MS), seed);
            branches += 1;
        }
        let ours = fork_whole(script.session.text(), &new, &mut counter()).expect("forked").text;
        same_lines(&ours, &oracle.forked(&file, NOW_MS), seed);
        wholes += 1;
    }
    let _ = std::fs::remove_file(&file);
    eprintln!("{branches} forks of a branch and {wholes} of a whole session are as Pi makes them");
    assert!(branches > 1000, "{branches} forks compared");
}

/// The same lines but for the header's id and file, and ids of labels that were written again.
fn same_lines(ours: &[u8], pi: &Js, seed: u64) {
    let ours: Vec<_> = std::str::from_utf8(ours).expect("text").lines().map(str::to_owned).collect();
    let theirs: Vec<String> = pi.get("lines").expect("lines").items().iter().filter_map(Js::as_text).collect();
    assert_eq!(numbered(&ours)[1..], numbered(&theirs)[1..], "seed {seed}");
}
