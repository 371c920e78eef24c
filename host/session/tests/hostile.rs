//! Files that nobody should write: read at once, in bounded memory, without a panic.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::generate::{self, value::Rng};
use pi_session::branch::BranchError;
use pi_session::compaction::PlanSettings;
use pi_session::json::Json;
use pi_session::{Branch, Tree};

const HEADER: &str =
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n";

/// Everything that can be asked of a file, at its leaf and some other entries.
fn ask_everything(text: &[u8]) -> Tree {
    let tree = Arc::new(Tree::from_bytes(text));
    let source = Arc::new(text.to_vec());
    pi_session::check::check(&tree, source.clone()).expect("memory can be read");
    let some = tree.all().rev().step_by(1 + tree.entries().len() / 4);
    for leaf in some.map(Some).chain([None]) {
        match Branch::at(&tree, source.clone(), leaf) {
            Ok(branch) => ask_branch(&branch),
            Err(error) => assert!(matches!(error, BranchError::Cycle(_)), "memory can always be read: {error}"),
        }
    }
    drop(source);
    assert!(tree.roots().count() <= tree.entries().len());
    Arc::unwrap_or_clone(tree)
}

fn ask_branch(branch: &Branch) {
    let context = branch.context();
    for entry in &context.entries {
        for message in branch.messages(entry).expect("memory can be read") {
            Json::parse(message.as_bytes()).expect("what is put together is JSON");
        }
    }
    branch.tokens(&context).expect("memory can be read");
    branch.plan(&PlanSettings { keep_recent: 50, ..PlanSettings::default() }).expect("memory can be read");
    branch.thinking_level().expect("memory can be read");
    branch.model().expect("memory can be read");
    if let Some(message) = branch.system(&context).expect("memory can be read").message(None) {
        Json::parse(message.as_bytes()).expect("what is put together is JSON");
    }
}

fn within(limit: Duration, what: &str, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    assert!(start.elapsed() < limit, "{what} took {:?}", start.elapsed());
}

#[test]
fn whatever_is_done_to_a_session_it_can_be_read() {
    let mut rng = Rng::new(1);
    for seed in 0..1500 {
        let mut text = generate::session(seed);
        for _ in 0..rng.below(20) {
            spoil(&mut text, &mut rng);
        }
        ask_everything(&text);
    }
}

/// Changes, removes, repeats or swaps some bytes.
fn spoil(text: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(text.len() as u32 + 1) as usize;
    let end = (at + rng.length() as usize).min(text.len());
    match rng.below(5) {
        0 if at < text.len() => text[at] = rng.next() as u8,
        1 => drop(text.drain(at..end)),
        2 => {
            let again = text[at..end].to_vec();
            text.splice(at..at, again);
        }
        3 => text.truncate(at.max(text.len() / 2)),
        _ => {
            let odd: &[&[u8]] =
                &[b"\"", b"\\", b"{", b"}", b"[", b"]", b"\n", b",", b":", b"null", b"\0", b"\xff", b"1e999", b"\\u"];
            text.splice(at..at, rng.pick(odd).iter().copied());
        }
    }
}

#[test]
fn bytes_at_random_are_no_session_and_no_trouble() {
    let mut rng = Rng::new(2);
    for _ in 0..500 {
        let length = rng.length();
        let noise: Vec<u8> = (0..length).map(|_| rng.next() as u8).collect();
        ask_everything(&noise);
        ask_everything(&[HEADER.as_bytes(), &noise].concat());
    }
}

#[test]
fn nothing_is_nested_too_deep() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    let lists = deep("[", "]");
    let objects = deep("{\"a\":", "}");
    let twice = deep("{\"a\":1,\"\\u0061\":", "}");
    for (at, value) in [lists, objects, twice].iter().enumerate() {
        let call = format!(r#"{{"type":"toolCall","id":"c","name":"read","arguments":{value}}}"#);
        let line = format!(
            r#"{{"type":"message","id":"a","parentId":null,"message":{{"role":"assistant","content":[{call}]}},"more":{value}}}"#
        );
        within(Duration::from_secs(10), "reading deep nesting", || {
            let tree = ask_everything(format!("{HEADER}{line}\n").as_bytes());
            assert_eq!(tree.entries().len(), 1, "value {at} must be read");
        });
        within(Duration::from_secs(10), "reading half of deep nesting", || {
            let tree = ask_everything(format!("{HEADER}{}\n", &line[..line.len() / 2]).as_bytes());
            assert_eq!(tree.entries().len(), 0);
        });
    }
}

#[test]
fn an_entry_that_is_its_own_parent_is_a_cycle_however_it_is_come_to() {
    let own = "{\"type\":\"custom\",\"id\":\"a\",\"parentId\":\"a\"}\n";
    let child = "{\"type\":\"custom\",\"id\":\"b\",\"parentId\":\"a\"}\n";
    for lines in [own.to_owned(), format!("{own}{child}")] {
        let text = format!("{HEADER}{lines}").into_bytes();
        let tree = Arc::new(Tree::from_bytes(&text));
        assert!(tree.problems().iter().any(|problem| problem.rule() == "S8.5"), "{:?}", tree.problems());
        assert!(matches!(Branch::of_leaf(&tree, Arc::new(text)), Err(BranchError::Cycle(_))), "{lines}");
    }
}

#[test]
fn a_cycle_is_an_error_at_once() {
    // a ← b ← c, and then a second line with the id a that hangs on c.
    let entry =
        |id: &str, parent: &str| format!(r#"{{"type":"custom","customType":"x","id":"{id}","parentId":"{parent}"}}"#);
    let lines = [entry("a", "nobody"), entry("b", "a"), entry("c", "b"), entry("a", "c")];
    let text = format!("{HEADER}{}\n", lines.join("\n"));
    let tree = Arc::new(Tree::from_bytes(text.as_bytes()));
    let branch = Branch::of_leaf(&tree, Arc::new(text.into_bytes()));
    assert!(matches!(branch, Err(BranchError::Cycle(id)) if id == "a"));
    assert!(tree.problems().iter().any(|problem| problem.rule() == "S8.5"));
}

#[test]
fn two_long_branches_written_in_turns_cost_no_more_than_their_lines() {
    let mut text = String::from(HEADER);
    for n in 0..100_000 {
        let parent = if n < 2 { "null".to_owned() } else { format!("\"{}\"", n - 2) };
        text.push_str(&format!("{{\"type\":\"custom\",\"id\":\"{n}\",\"parentId\":{parent}}}\n"));
    }
    within(Duration::from_secs(20), "reading two branches", || drop(ask_everything(text.as_bytes())));
}

#[test]
fn many_names_and_many_edits_cost_no_more_than_their_number() {
    let names: Vec<String> = (0..30_000).map(|n| format!("\"n{n}\":\"\"")).collect();
    let tools: Vec<String> = (0..20_000).map(|n| format!("{{\"name\":\"t{n}\"}}")).collect();
    let (names, tools) = (names.join(","), tools.join(","));
    let mut text = format!(
        "{HEADER}{{\"type\":\"message\",\"id\":\"s\",\"message\":{{\"role\":\"system\",\"content\":\"\",\"sections\":{{{names}}},\"toolsAdded\":[{tools},{{{names}}}],\"toolsRemoved\":[{tools}]}}}}\n"
    );
    let mut parent = "s".to_owned();
    for n in 0..10_000 {
        let assistant = r#""message":{"role":"assistant","content":[]}"#;
        text.push_str(&format!("{{\"type\":\"message\",\"id\":\"a{n}\",\"parentId\":\"{parent}\",{assistant}}}\n"));
        text.push_str(&format!("{{\"type\":\"context_edit\",\"id\":\"e{n}\",\"parentId\":\"a{n}\",\"targetId\":\"a{n}\",\"replacement\":null}}\n"));
        text.push_str(&format!("{{\"type\":\"kind {n}\",\"id\":\"k{n}\",\"parentId\":\"e{n}\"}}\n"));
        parent = format!("k{n}");
    }
    within(Duration::from_secs(20), "reading many names", || drop(ask_everything(text.as_bytes())));
}

#[test]
fn a_message_of_many_calls_costs_no_more_than_their_number() {
    let count = 200_000;
    let calls: Vec<_> =
        (0..count).map(|n| format!(r#"{{"type":"toolCall","id":"c{n}","name":"run","arguments":{{}}}}"#)).collect();
    let mut text = format!(
        "{HEADER}{{\"type\":\"message\",\"id\":\"m\",\"parentId\":null,\"message\":{{\"role\":\"assistant\",\"content\":[{}]}}}}\n",
        calls.join(",")
    );
    for n in 0..count {
        let parent = if n == 0 { "m".to_owned() } else { format!("r{}", n - 1) };
        text += &format!(
            "{{\"type\":\"message\",\"id\":\"r{n}\",\"parentId\":\"{parent}\",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"c{n}\",\"content\":[]}}}}\n"
        );
    }
    let (tree, source) = (Arc::new(Tree::from_bytes(text.as_bytes())), Arc::new(text.into_bytes()));
    within(Duration::from_secs(20), "pairing calls and results", || {
        let found = pi_session::check::check(&tree, source).expect("memory can be read");
        assert!(!found.problems.iter().any(|problem| problem.message.contains("call")));
    });
}

#[test]
fn of_a_file_of_garbage_not_every_problem_is_kept() {
    let text = format!("{HEADER}{}", "x\n".repeat(200_000));
    let tree = ask_everything(text.as_bytes());
    assert_eq!(tree.problems().len() as u64 + tree.more_problems(), 200_000);
    assert!(tree.problems().len() <= 10_000);
}

#[test]
fn a_line_of_beginnings_of_entries_costs_no_more_than_its_length() {
    let nested = r#"{"type":"x","a":"#.repeat(200_000);
    let siblings = format!("x{}", r#"{"type":"x"} "#.repeat(200_000));
    for line in [nested, siblings] {
        within(Duration::from_secs(20), "looking for glued lines", || {
            drop(ask_everything(format!("{HEADER}{line}\n").as_bytes()));
        });
    }
}

#[test]
fn a_huge_line_is_one_line() {
    let text = format!(
        "{HEADER}{{\"type\":\"message\",\"id\":\"u\",\"parentId\":null,\"message\":{{\"role\":\"user\",\"content\":\"{}\"}}}}\n{{\"type\":\"custom\",\"id\":\"c\",\"parentId\":\"u\"}}\n",
        "x".repeat(40_000_000)
    );
    within(Duration::from_secs(20), "reading a huge line", || {
        let tree = ask_everything(text.as_bytes());
        assert_eq!(tree.entries().len(), 2);
        assert_eq!(tree.entries()[0].tokens, 10_000_000);
    });
}
