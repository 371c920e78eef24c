//! What stands in place of a result: what it was, its size, and how to get it again.
use pi_graft_plugin::serde::{self, Deserialize};
use pi_graft_plugin::{Json, Run};

use crate::look::Old;

/// Bytes of a result's beginning in which its call is named.
const HEAD: usize = 2048;
/// Bytes of an assistant's message that are read for the call's arguments.
const CALLS: usize = 256 << 10;
/// Entries before a result among which its call stands.
const NEAR: usize = 40;
/// Bytes of the arguments that are shown.
const SHOWN: usize = 160;

/// The content of the stub.
#[must_use]
pub fn content(run: &Run, result: &Old) -> Json {
    let head = run.text(result.place, HEAD).unwrap_or_default();
    let (tool, call) = (member(&head, "toolName").unwrap_or_default(), member(&head, "toolCallId").unwrap_or_default());
    let arguments = arguments(run, result.place, &call).unwrap_or_default();
    let text = text(&tool, &arguments, result);
    Json::from_text(["[{\"type\":\"text\",\"text\":", Json::text(&text).as_str(), "}]"].concat())
}

fn text(tool: &str, arguments: &str, result: &Old) -> String {
    let again = match tool {
        "read" | "grep" | "find" | "ls" => "Use the tool again if you need it.",
        "bash" => "Run the command again if you need its output, and if that does no harm.",
        _ => "Call the tool again if you need it, and if that does no harm.",
    };
    let size = format!("about {} tokens, {} KB", result.tokens, result.bytes.div_ceil(1000));
    let what = if tool.is_empty() { "tool" } else { tool };
    format!("[The result of {what} {arguments} ({size}) was left out to keep the context small. {again}]")
        .replace("  ", " ")
}

/// A member that is a plain text, near the beginning of a line that is not read whole.
fn member(head: &str, name: &str) -> Option<String> {
    let key = ["\"", name, "\":\""].concat();
    let rest = &head[head.find(&key)? + key.len()..];
    let end = rest.find('"')?;
    Json::from_text(["\"", &rest[..end], "\""].concat()).to().ok()
}

#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default)]
struct Blocks {
    content: Vec<Call>,
}

#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default)]
struct Call {
    id: String,
    arguments: Option<Json>,
}

#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default)]
struct Entry {
    message: Blocks,
}

/// The arguments of the call that a result answers, in short.
fn arguments(run: &Run, place: u32, call: &str) -> Option<String> {
    let page = run.host().branch(Some(place), NEAR as u32);
    let asked = page.items.into_iter().find(|info| info.role.as_deref() == Some("assistant"))?;
    if call.is_empty() || asked.bytes > CALLS as u64 {
        return None;
    }
    let entry: Entry = Json::from_text(run.text(asked.place, CALLS).ok()?).to().ok()?;
    let found = entry.message.content.into_iter().find(|block| block.id == call)?;
    let text = found.arguments?.as_str().to_owned();
    let short = &text[..text.floor_char_boundary(SHOWN)];
    Some(if short.len() < text.len() { [short, "…"].concat() } else { text })
}
