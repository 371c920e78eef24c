//! The files that a plan names (S10.5): found while the session is read, so that a plan does not read it again.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use pi_session::branch::Branch;
use pi_session::compaction::{Plan, PlanSettings};
use pi_session::tree::{Source, SourceError, Tree};

/// A session's text, that says where it was read.
struct Watched {
    text: Vec<u8>,
    read: Mutex<Vec<u64>>,
}

impl Source for Watched {
    fn read(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, SourceError> {
        self.read.lock().expect("nobody panics").push(offset);
        self.text.read(offset, len)
    }
}

/// A session with these messages, each behind the other, and then a user's, which alone is kept.
fn session(messages: &[String]) -> String {
    let mut text =
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n"
            .to_owned();
    let last = r#""type":"message","message":{"role":"user","content":"and now?","timestamp":1767225600000}"#;
    let fields = messages.iter().map(String::as_str).chain([last]);
    for (at, fields) in fields.enumerate() {
        let parent = at.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        text +=
            &format!("{{{fields},\"id\":\"{at}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\"}}\n");
    }
    text
}

/// An assistant's message of these blocks.
fn assistant(blocks: &str) -> String {
    format!(r#""type":"message","message":{{"role":"assistant","content":[{blocks}],"timestamp":1767225600000}}"#)
}

fn call(tool: &str, arguments: &str) -> String {
    assistant(&format!(r#"{{"type":"toolCall","id":"c","name":"{tool}","arguments":{arguments}}}"#))
}

/// The plan that keeps the last message, and how many of the lines that it summarises were read for it.
fn plan(messages: &[String]) -> (Plan, usize) {
    let text = session(messages).into_bytes();
    let tree = Arc::new(Tree::from_bytes(&text));
    let source = Arc::new(Watched { text, read: Mutex::default() });
    let branch = Branch::of_leaf(&tree, source.clone()).expect("no cycle");
    let settings = PlanSettings { keep_recent: 1, ..PlanSettings::default() };
    let plan = branch.plan(&settings).expect("it can be read").expect("there is something to summarise");
    let read = source.read.lock().expect("nobody panics");
    let is_read = |entry: &&pi_session::entry::Entry| read.contains(&entry.offset);
    let lines = tree.entries()[..messages.len()].iter().filter(is_read).count();
    (plan, lines)
}

/// The lists, read files before modified ones.
fn lists(messages: &[String]) -> String {
    let (plan, read) = plan(messages);
    assert_eq!(read, 0, "nothing was read again");
    format!("{} | {}", plan.read_files.join(" "), plan.modified_files.join(" "))
}

#[test]
fn the_files_of_calls_come_from_the_index() {
    let messages = [
        call("read", r#"{"path":"b"}"#),
        call("read", r#"{"limit":3,"path": "a" }"#),
        call("read", r#"{"path":"b"}"#),
        call("write", r#"{"path":"w","content":"{\"path\":\"in a text\"}"}"#),
        call("edit", r#"{"edits":[{"path":"deeper"}],"path":"e"}"#),
        call("read", r#"{"path":"e"}"#),
        call("bash", r#"{"path":"no file"}"#),
    ];
    assert_eq!(lists(&messages), "a b | e w");
}

#[test]
fn of_what_stands_twice_the_last_counts_and_what_is_no_path_is_none() {
    assert_eq!(lists(&[call("read", r#"{"path":"a","path":"b"}"#)]), "b | ");
    assert_eq!(lists(&[call("read", r#"{"path":"a","path":7}"#)]), " | ");
    assert_eq!(lists(&[call("r\\u0065ad", r#"{"p\u0061th":"\u0061"}"#)]), "a | ");
    for arguments in [r#"{"path":""}"#, r#"{"path":["a"]}"#, r#"[{"path":"a"}]"#, r#""path""#, "{}"] {
        assert_eq!(lists(&[call("read", arguments)]), " | ", "{arguments}");
    }
    let block = |path: &str| format!(r#"{{"name":"read","arguments":{{"path":"{path}"}},"type":"toolCall","id":"c"}}"#);
    let twice = format!(r#"{},"content":[{}]}}"#, assistant(&block("a")).trim_end_matches('}'), block("b"));
    assert_eq!(lists(&[twice]), "b | ");
    let no_call = block("a").replace("toolCall", "text");
    assert_eq!(lists(&[assistant(&format!("{},{no_call}", block("b")))]), "b | ");
}

#[test]
fn calls_that_a_tool_made_itself_and_those_that_an_edit_shows_count() {
    let nested = |calls: &str| {
        let result = r#""role":"toolResult","toolCallId":"c","toolName":"x","content":[],"isError":false"#;
        format!(r#""type":"message","message":{{{result},"nestedCalls":{calls},"timestamp":1767225600000}}"#)
    };
    let calls = r#"{"calls":[{"name":"write","arguments":{"path":"w"}},{"name":"read","arguments":{"path":"r"}},7]}"#;
    assert_eq!(lists(&[nested(calls)]), "r | w");
    let shown = r#"{"type":"toolCall","id":"c","name":"read","arguments":{"path":"shown"}}"#;
    let edit = format!(r#""type":"context_edit","targetId":"0","replacement":{{"content":[{shown}]}}"#);
    assert_eq!(lists(&[call("read", r#"{"path":"hidden"}"#), edit]), "shown | ");
}

/// So a hostile line does not stand in memory whole.
#[test]
fn an_entry_that_names_very_many_files_or_long_ones_is_read_again() {
    let block = |path: &str| format!(r#"{{"type":"toolCall","id":"c","name":"read","arguments":{{"path":"{path}"}}}}"#);
    let blocks = |count: usize| (0..count).map(|n| block(&format!("{n:03}"))).collect::<Vec<_>>().join(",");
    for (message, files, read) in [
        (assistant(&blocks(64)), 64, 0),
        (assistant(&blocks(65)), 65, 1),
        (call("read", &format!(r#"{{"path":"{}"}}"#, "x".repeat(5000))), 1, 1),
    ] {
        let (plan, again) = plan(&[message, call("read", r#"{"path":"000"}"#)]);
        assert_eq!((plan.read_files.len() - usize::from(files == 1), again), (files, read));
    }
}
