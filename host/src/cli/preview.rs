//! A message in one line, for people.

use pi_session::json::{Json, Kind};

/// What a message says, in one line.
#[must_use]
pub fn message(message: Json<'_>) -> String {
    let text = |name| message.get(name).map(plain).unwrap_or_default();
    match text("role").as_str() {
        "toolResult" => format!("{}: {}", text("toolName"), text("content")),
        "bashExecution" => format!("$ {}  {}", text("command"), text("output")),
        "branchSummary" | "compactionSummary" => text("summary"),
        "custom" => format!("{}: {}", text("customType"), text("content")),
        "system" => system(message, text("content")),
        _ => text("content"),
    }
}

fn system(message: Json<'_>, content: String) -> String {
    let sections = message.get("sections").into_iter().flat_map(Json::members).count();
    let tools = message.get("toolsAdded").into_iter().flat_map(Json::items).count();
    let count = |n: usize, word: &str| if n > 0 { format!(" [{n} {word}]") } else { String::new() };
    format!("{content}{}{}", count(sections, "sections"), count(tools, "tools")).trim_start().to_owned()
}

/// What an entry is and says, in one line.
#[must_use]
pub fn entry(line: Json<'_>) -> String {
    let text = |name| line.get(name).map(plain).unwrap_or_default();
    let said = match text("type").as_str() {
        "message" => return line.get("message").map_or_else(|| "message".to_owned(), with_role),
        "model_change" => format!("{}/{}", text("provider"), text("modelId")),
        "thinking_level_change" => text("thinkingLevel"),
        "usage" => format!("{} {}/{}", text("kind"), text("provider"), text("model")),
        "compaction" | "branch_summary" => text("summary"),
        "context_edit" => edit(line),
        "custom" => format!("{} {}", text("customType"), text("data")),
        "custom_message" => format!("{}: {}", text("customType"), text("content")),
        "label" => format!("{} {:?}", text("targetId"), text("label")),
        "session_info" => text("name"),
        _ => String::new(),
    };
    format!("{} {said}", text("type"))
}

fn with_role(said: Json<'_>) -> String {
    let role = said.get("role").map(plain).unwrap_or_default();
    format!("{role} {}", message(said))
}

fn edit(line: Json<'_>) -> String {
    let target = line.get("targetId").map(plain).unwrap_or_default();
    match line.get("replacement") {
        Some(new) if !new.is_null() => {
            format!("{target} now: {}", new.get("content").map(plain).unwrap_or_default())
        }
        _ => format!("{target} left out"),
    }
}

/// Text or content blocks, in one line.
fn plain(value: Json<'_>) -> String {
    match value.kind() {
        Kind::String => one_line(&value.as_str().unwrap_or_default()),
        Kind::Array => value.items().map(block).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "),
        _ => one_line(&value.to_text()),
    }
}

fn block(block: Json<'_>) -> String {
    let text = |name| block.get(name).map(plain).unwrap_or_default();
    match text("type").as_str() {
        "text" => text("text"),
        "thinking" => format!("({})", text("thinking")),
        "image" => "[image]".to_owned(),
        "toolCall" => format!("→ {}{}", text("name"), text("arguments")),
        other => format!("[{other}]"),
    }
}

/// Line ends and other control characters are spaces, so that a text cannot paint on the terminal.
#[must_use]
pub fn one_line(text: &str) -> String {
    let visible = text.chars().take(400).map(|c| if c.is_control() { ' ' } else { c });
    visible.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
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
        assert_eq!(one_line("a\u{1b}[31mred\u{7}"), "a [31mred");
    }
}
