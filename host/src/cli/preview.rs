//! A message in one line, for people.

use pi_session::json::{Json, Kind};

use super::paint::Ink;
use super::text::seen;

/// Characters that are shown of one text; at most.
const MOST: usize = 400;

/// What a message says, in one line.
#[must_use]
pub fn message(message: Json<'_>) -> String {
    with_role(message).1
}

/// The role of a message, and what it says.
fn with_role(message: Json<'_>) -> (String, String) {
    let names = ["role", "content", "toolName", "command", "output", "summary", "customType", "sections", "toolsAdded"];
    let [role, content, tool, command, output, summary, custom, sections, tools] = message.get_all(names);
    let role = text(role);
    let said = match role.as_str() {
        "toolResult" => format!("{}: {}", text(tool), text(content)),
        "bashExecution" => format!("$ {}  {}", text(command), text(output)),
        "branchSummary" | "compactionSummary" => text(summary),
        "custom" => format!("{}: {}", text(custom), text(content)),
        "system" => system(sections, tools, &text(content)),
        _ => text(content),
    };
    (role, said)
}

fn system(sections: Option<Json<'_>>, tools: Option<Json<'_>>, content: &str) -> String {
    let sections = sections.into_iter().flat_map(Json::members).count();
    let tools = tools.into_iter().flat_map(Json::items).count();
    let count = |n: usize, word: &str| if n > 0 { format!(" [{n} {word}]") } else { String::new() };
    format!("{content}{}{}", count(sections, "sections"), count(tools, "tools")).trim_start().to_owned()
}

/// What an entry is, and what it says in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The role of its message, else its type.
    pub what: String,
    /// What it says.
    pub said: String,
}

impl Preview {
    /// The ink that its kind has wherever entries are listed.
    #[must_use]
    pub fn ink(&self) -> Ink {
        ink(&self.what)
    }
}

/// The ink of a role or type.
#[must_use]
pub fn ink(what: &str) -> Ink {
    match what {
        "user" | "bashExecution" => Ink::Blue,
        "assistant" => Ink::Green,
        "toolResult" => Ink::Cyan,
        "compaction" | "branch_summary" | "context_edit" | "compactionSummary" | "branchSummary" => Ink::Magenta,
        "custom_message" | "custom" | "session_info" | "label" => Ink::Yellow,
        _ => Ink::Dim,
    }
}

/// What an entry is and says.
#[must_use]
pub fn entry(line: Json<'_>) -> Preview {
    let [kind, message] = line.get_all(["type", "message"]);
    let what = text(kind);
    if what == "message" {
        let (role, said) = message.map(with_role).unwrap_or_default();
        return Preview { what: if role.is_empty() { what } else { role }, said };
    }
    let named = |a, b| line.get_all([a, b]).map(text);
    let said = match what.as_str() {
        "model_change" => named("provider", "modelId").join("/"),
        "thinking_level_change" => text(line.get("thinkingLevel")),
        "usage" => format!("{} {}", text(line.get("kind")), named("provider", "model").join("/")),
        "compaction" | "branch_summary" => text(line.get("summary")),
        "context_edit" => edit(line.get_all(["targetId", "replacement"])),
        "custom" => named("customType", "data").join(" "),
        "custom_message" => named("customType", "content").join(": "),
        "label" => {
            let [target, label] = named("targetId", "label");
            if label.is_empty() { format!("{target} no label any more") } else { format!("{target} [{label}]") }
        }
        "session_info" => text(line.get("name")),
        _ => String::new(),
    };
    Preview { what, said }
}

fn edit([target, new]: [Option<Json<'_>>; 2]) -> String {
    let target = text(target);
    match new.filter(|new| !new.is_null()) {
        Some(new) => format!("{target} now: {}", text(new.get("content"))),
        None => format!("{target} left out"),
    }
}

fn text(value: Option<Json<'_>>) -> String {
    value.map(plain).unwrap_or_default()
}

/// Text or content blocks, in one line.
fn plain(value: Json<'_>) -> String {
    match value.kind() {
        Kind::String => one_line(&value.beginning(MOST).unwrap_or_default()),
        Kind::Array => value.items().map(block).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "),
        // No character is longer than four bytes.
        _ => one_line(&String::from_utf8_lossy(&value.raw()[..value.raw().len().min(4 * MOST)])),
    }
}

fn block(block: Json<'_>) -> String {
    let [kind, said, thinking, name, arguments] = block.get_all(["type", "text", "thinking", "name", "arguments"]);
    match text(kind).as_str() {
        "text" => text(said),
        "thinking" => format!("({})", text(thinking)),
        "image" => "[image]".to_owned(),
        "toolCall" => format!("→ {}{}", text(name), text(arguments)),
        other => format!("[{other}]"),
    }
}

/// The beginning of a text in one line: white space is one space, and what could paint on the terminal a sign.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.chars().take(MOST).collect::<String>().split_whitespace() {
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(&seen(word));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(json: &str) -> String {
        message(Json::parse(json.as_bytes()).expect("JSON"))
    }

    #[test]
    fn each_role_says_its_own() {
        for (json, text) in [
            (r#"{"role":"user","content":"a\n b"}"#, "a b"),
            (r#"{"role":"assistant","content":[{"type":"text","text":"hi"},{"type":"image"}]}"#, "hi [image]"),
            (
                r#"{"role":"assistant","content":[{"type":"toolCall","name":"ls","arguments":{"p":1}}]}"#,
                r#"→ ls{"p":1}"#,
            ),
            (r#"{"role":"toolResult","toolName":"ls","content":[{"type":"text","text":"x"}]}"#, "ls: x"),
            (r#"{"role":"compactionSummary","summary":"so far"}"#, "so far"),
            (
                r#"{"role":"system","content":"","sections":{"a":"b"},"toolsAdded":[{"name":"x"}]}"#,
                "[1 sections] [1 tools]",
            ),
        ] {
            assert_eq!(preview(json), text);
        }
    }

    #[test]
    fn a_text_cannot_paint_on_the_terminal() {
        assert_eq!(one_line("a\u{1b}[31mred\u{7}"), "a␛[31mred␇");
    }
}
