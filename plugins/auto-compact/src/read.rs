//! From the entries of a session to what a summary needs of them. Nothing of an entry can make it fail: what cannot be
//! read is left out.
use std::collections::BTreeMap;

use pi_graft_plugin::serde::{self, Deserialize};
use pi_graft_plugin::{Block, Entry, Info, Json, Run};

use crate::summary::{Call, End, Message};

/// How much of an entry is read, bytes: an entry that is bigger is read as if it ended there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// All, unless it is huge.
    Whole,
    /// Its beginning.
    Glance,
    /// Nothing.
    Skip,
}

/// An entry up to this size is read whole.
const WHOLE: u64 = 256 * 1024;
/// Of a bigger one, so much.
const BEGINNING: u32 = 65_536;
/// At a glance, so much, and of so many.
const GLANCE: u32 = 1024;
const GLANCES: u32 = 256;
/// Of a long conversation the newest is read, up to this cost, and of the rest what the user said at a glance: fuel is
/// limited, and this takes at most about 920 million of it, where all is names. A byte of a tool's result costs one, and one of what people
/// and models say eight.
const COST: u64 = 6 << 20;
/// What results may cost.
const RESULTS: u64 = 3 << 20;

/// How deep each of these entries, oldest first, is to be read.
pub fn depths<'a>(infos: impl DoubleEndedIterator<Item = &'a Info>) -> Vec<Depth> {
    let (mut all, mut results, mut glances) = (0, 0, 0);
    let mut depth = |info: &Info| {
        let result = info.role.as_deref() == Some("toolResult");
        let cost = info.bytes.min(WHOLE) * if result { 1 } else { 8 };
        if all + cost > COST || result && results + cost > RESULTS {
            let glance = info.role.as_deref() == Some("user") && glances < GLANCES;
            glances += u32::from(glance);
            return if glance { Depth::Glance } else { Depth::Skip };
        }
        all += cost;
        results += if result { cost } else { 0 };
        Depth::Whole
    };
    let mut depths: Vec<_> = infos.rev().map(&mut depth).collect();
    depths.reverse();
    // The first request is the goal.
    if let Some(first) = depths.first_mut().filter(|depth| **depth == Depth::Skip) {
        *first = Depth::Glance;
    }
    depths
}

/// The message of an entry; none if it gives the model nothing to read.
pub fn message(run: &Run, info: &Info, depth: Depth) -> Option<Message> {
    let most = match depth {
        Depth::Whole if info.bytes <= WHOLE => None,
        Depth::Whole => Some(BEGINNING),
        Depth::Glance => Some(GLANCE),
        Depth::Skip => return None,
    };
    let entry = match most {
        Some(most) => beginning(run, info, most)?,
        None => run.entry(info, usize::MAX).ok()??,
    };
    if entry.message.as_ref().is_some_and(|message| message.role == "bashExecution") {
        return bash(run, info, entry);
    }
    of(entry)
}

/// The beginning of an entry, as if it ended there. Whether a tool failed stands at its end.
fn beginning(run: &Run, info: &Info, most: u32) -> Option<Entry> {
    let text = run.host().text(info.place, 0, most).ok()?.text;
    let text = &text[..text.floor_char_boundary(most as usize)];
    let mut entry: Entry = Json::from_text(closed(text)).to().ok()?;
    if let Some(message) = entry.message.as_mut().filter(|message| message.role == "toolResult") {
        let end = run.host().text(info.place, info.bytes.saturating_sub(512), 512);
        message.is_error |= end.is_ok_and(|piece| piece.text.contains("\"isError\":true"));
    }
    Some(entry)
}

/// A command of the user's, but for one that is kept from the model.
fn bash(run: &Run, info: &Info, entry: Entry) -> Option<Message> {
    let message = entry.message?;
    let text = run.text(info.place, WHOLE as usize).ok()?;
    let ran: Ran = Json::from_text(closed(&text)).to::<RanEntry>().map(|entry| entry.message).unwrap_or_default();
    let failed = ran.cancelled || ran.exit_code.is_some_and(|code| code != 0.0);
    let (command, output) = (message.command?, message.output.unwrap_or_default());
    (!ran.exclude_from_context).then_some(Message::Bash { command, output, failed })
}

#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default)]
struct RanEntry {
    message: Ran,
}

#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default, rename_all = "camelCase")]
struct Ran {
    exit_code: Option<f64>,
    cancelled: bool,
    exclude_from_context: bool,
}

fn of(entry: Entry) -> Option<Message> {
    let text = entry.content().text().into_owned();
    match entry.kind.as_str() {
        "custom_message" => return Some(Message::Note { text }),
        "branch_summary" => return Some(Message::Note { text: entry.summary? }),
        "message" => {}
        _ => return None,
    }
    let message = entry.message?;
    Some(match message.role.as_str() {
        "user" => Message::User { text },
        "assistant" => {
            let end = match message.stop_reason.as_deref() {
                Some("error" | "aborted") => End::Broken,
                Some("toolUse" | "deferred") => End::Calls,
                _ => End::Answered,
            };
            let calls = message.content.tool_calls().map(call).collect();
            Message::Assistant { text, calls, end, error: message.error_message }
        }
        "toolResult" => {
            let (call, tool) = (message.tool_call_id.unwrap_or_default(), message.tool_name.unwrap_or_default());
            Message::ToolResult { call, tool, text, failed: message.is_error }
        }
        "custom" => Message::Note { text },
        _ => return None,
    })
}

fn call(block: &Block) -> Call {
    let arguments: BTreeMap<String, Json> =
        block.arguments.as_ref().and_then(|arguments| arguments.to().ok()).unwrap_or_default();
    let text = |keys: &[&str]| keys.iter().find_map(|key| arguments.get(*key)?.to::<String>().ok());
    Call {
        id: block.id.clone().unwrap_or_default(),
        tool: block.name.clone().unwrap_or_default(),
        path: text(&["path", "file_path", "filePath", "file", "url"]).filter(|path| !path.is_empty()),
        command: text(&["command", "cmd"]).filter(|command| !command.is_empty()),
    }
}

/// JSON that ends anywhere, ended: the open text, list and object are closed where it breaks off.
fn closed(text: &str) -> String {
    let (mut open, mut in_text, mut escape, mut whole) = (Vec::new(), false, 0_usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        if in_text {
            match (escape, byte) {
                (0, b'\\') => escape = 1,
                (0, b'"') => in_text = false,
                // An escape is two bytes long, or six if it is `\u`.
                (1, b'u') => escape = 2,
                (2..=4, _) => escape += 1,
                _ => escape = 0,
            }
        } else {
            match byte {
                b'"' => in_text = true,
                b'{' => open.push(b'}'),
                b'[' => open.push(b']'),
                b'}' | b']' => drop(open.pop()),
                _ => {}
            }
        }
        if escape == 0 && text.is_char_boundary(at + 1) {
            whole = at + 1;
        }
    }
    let mut text = text[..whole].to_owned();
    if in_text {
        text.push('"');
    } else if !text.trim_end().ends_with(['"', '}', ']', '{', '[']) {
        // Behind a comma, a colon or within a number or word: what is broken off goes.
        let from = text.rfind([',', '{', '[']).unwrap_or(0);
        text.truncate(if text[from..].starts_with(',') { from } else { from + 1 });
    }
    finish_key(&mut text, open.last() == Some(&b'}'));
    text.extend(open.iter().rev().map(|byte| char::from(*byte)));
    text
}

/// An object that ends in a key gets a value for it.
fn finish_key(text: &mut String, in_object: bool) {
    if !in_object || !text.ends_with('"') {
        return;
    }
    let mut begin = text.len() - 1;
    while let Some(at) = text[..begin].rfind('"') {
        begin = at;
        let slashes = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if slashes % 2 == 0 {
            break;
        }
    }
    if text[..begin].trim_end().ends_with(['{', ',']) {
        text.push_str(":null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_graft_plugin::testing::FakeHost;

    fn read(json: &str) -> Option<Message> {
        let host = FakeHost::new(&[json]);
        let run = Run::on(&host);
        message(&run, &run.leaf(), Depth::Whole)
    }

    #[test]
    fn every_kind_of_message_is_read() {
        let user = r#"{"type":"message","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"eA=="}]}}"#;
        assert_eq!(read(user), Some(Message::User { text: "a".into() }));
        let assistant = r#"{"type":"message","message":{"role":"assistant","stopReason":"toolUse","content":[{"type":"thinking","thinking":"t"},
            {"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls","timeout":1e400}},{"type":"toolCall","id":"d","name":"read","arguments":{"path":7}}]}}"#;
        let call = |id: &str, tool: &str, command: Option<&str>| Call {
            id: id.into(),
            tool: tool.into(),
            path: None,
            command: command.map(Into::into),
        };
        let calls = vec![call("c", "bash", Some("ls")), call("d", "read", None)];
        assert_eq!(
            read(assistant),
            Some(Message::Assistant { text: String::new(), calls, end: End::Calls, error: None })
        );
        let note = r#"{"type":"custom_message","customType":"x","content":"n","display":true}"#;
        assert_eq!(read(note), Some(Message::Note { text: "n".into() }));
        let branch = r#"{"type":"branch_summary","summary":"s","fromId":"x"}"#;
        assert_eq!(read(branch), Some(Message::Note { text: "s".into() }));
    }

    #[test]
    fn commands_kept_from_the_model_are_kept_from_the_summary() {
        let bash = |more: &str| {
            read(&format!(
                r#"{{"type":"message","message":{{"role":"bashExecution","command":"make","output":"o"{more}}}}}"#
            ))
        };
        let ran = |failed| Some(Message::Bash { command: "make".into(), output: "o".into(), failed });
        assert_eq!(bash(r#","exitCode":0"#), ran(false));
        assert_eq!(bash(r#","exitCode":2"#), ran(true));
        assert_eq!(bash(r#","cancelled":true"#), ran(true));
        assert_eq!(bash(r#","exitCode":0,"excludeFromContext":true"#), None);
    }

    #[test]
    fn what_is_no_message_is_left_out() {
        assert_eq!(read(r#"{"type":"message","message":{"role":"system","content":"x"}}"#), None);
        assert_eq!(read(r#"{"type":"custom","customType":"x"}"#), None);
        assert_eq!(read(r#"{"type":"message"}"#), None);
    }

    #[test]
    fn of_a_huge_entry_the_beginning_is_read_and_whether_it_failed() {
        let text = "no such file \\n".repeat(40_000);
        let result = format!(
            r#"{{"type":"message","message":{{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{{"type":"text","text":"{text}"}}],"isError":true}}}}"#
        );
        let Some(Message::ToolResult { failed, text, .. }) = read(&result) else { panic!("a tool result") };
        assert!(failed && text.starts_with("no such file"));
    }

    #[test]
    fn of_a_very_long_conversation_the_newest_is_read_and_what_the_user_said() {
        let host = FakeHost::new(&[
            r#"{"type":"message","message":{"role":"user"}}"#,
            r#"{"type":"message","message":{"role":"toolResult"}}"#,
        ]);
        let infos: Vec<_> = Run::on(&host).branch().collect();
        let sized = |at: usize, bytes: u64| Info { bytes, ..infos[at].clone() };
        let (user, result) = (sized(1, 200 << 10), sized(0, 200 << 10));
        let all: Vec<_> = (0..20).flat_map(|_| [&user, &result]).collect();
        let depths = depths(all.into_iter());
        assert_eq!((depths[0], depths[1]), (Depth::Glance, Depth::Skip));
        assert_eq!((depths[38], depths[39]), (Depth::Whole, Depth::Whole));
        assert_eq!(depths.iter().filter(|depth| **depth == Depth::Whole).count(), 9);
    }

    #[test]
    fn json_may_end_anywhere() {
        let json = r#"{"a":[1,{"b\"":"x\\\u00e9é"},true,null],"c":"d\"","e":-12.5,"f":{}}"#;
        for end in (1..=json.len()).filter(|end| json.is_char_boundary(*end)) {
            let closed = closed(&json[..end]);
            assert!(
                Json::from_text(closed.clone()).to::<BTreeMap<String, Json>>().is_ok(),
                "{} -> {closed}",
                &json[..end]
            );
        }
    }
}
