//! A message as HTML: what was said to be read, what was done to be unfolded.

use pi_session::json::{Json, Kind};

use super::html::{escaped, markdown, pre, printed, without_colours};
use crate::cli::out::{grouped, short};
use crate::cli::preview::one_line;
use crate::cli::text::cut;

/// Characters of what is folded that its heading shows.
const GLIMPSE: usize = 100;
/// Kinds of picture that a browser shows and that cannot do anything.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The text of a member; empty where there is none.
pub(super) fn text(value: Option<Json<'_>>) -> String {
    match value {
        Some(value) if value.kind() == Kind::String => value.as_str().unwrap_or_default().into_owned(),
        Some(value) if !value.is_null() => value.to_text().into_owned(),
        _ => String::new(),
    }
}

/// Something to be unfolded. `class` is ours.
pub(super) fn folded(class: &str, head: &str, body: &str) -> String {
    format!("<details class=\"{class}\"><summary>{head}</summary>{body}</details>\n")
}

/// The beginning of a text, in one line.
fn glimpse(text: &str) -> String {
    escaped(&cut(&one_line(&without_colours(text)), GLIMPSE))
}

/// Text or blocks, each text given to `say`.
pub(super) fn content(content: Option<Json<'_>>, say: &dyn Fn(&str) -> String) -> String {
    match content {
        Some(blocks) if blocks.kind() == Kind::Array => blocks.items().map(|block| self::block(block, say)).collect(),
        Some(other) => say(&text(Some(other))),
        None => String::new(),
    }
}

fn block(block: Json<'_>, say: &dyn Fn(&str) -> String) -> String {
    let [kind, said, thinking, data, mime] = block.get_all(["type", "text", "thinking", "data", "mimeType"]);
    match text(kind).as_str() {
        "text" => say(&text(said)),
        "thinking" if text(thinking).trim().is_empty() => String::new(),
        "thinking" => folded("thinking", "thinking", &markdown(&text(thinking))),
        "toolCall" => call(block),
        "image" => picture(&text(mime), &text(data)),
        other => folded("other", &escaped(other), &pre(&block.to_text())),
    }
}

fn picture(mime: &str, data: &str) -> String {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if PICTURES.contains(&mime) && data.bytes().all(is_base64) {
        return format!("<img alt=\"\" src=\"data:{mime};base64,{data}\">\n");
    }
    format!("<p class=\"faint\">[a picture that is not shown: {}]</p>\n", escaped(&one_line(mime)))
}

/// A tool call: its name and the beginning of what it was called with.
fn call(block: Json<'_>) -> String {
    let [name, arguments] = block.get_all(["name", "arguments"]);
    let arguments: Vec<_> = arguments.into_iter().flat_map(Json::members).collect();
    let first = arguments.first().map(|(_, value)| text(Some(*value))).unwrap_or_default();
    let head = format!("<b>{}</b> <code>{}</code>", escaped(&one_line(&text(name))), glimpse(&first));
    let list = arguments.iter().map(|(key, value)| {
        format!("<dt>{}</dt><dd>{}</dd>", escaped(&one_line(&key.text())), pre(&text(Some(*value))))
    });
    folded("call", &head, &format!("<dl>{}</dl>", list.collect::<String>()))
}

/// What a tool gave back, folded.
pub(super) fn result(message: Json<'_>) -> String {
    let [name, content, failed] = message.get_all(["toolName", "content", "isError"]);
    let body = self::content(content, &printed);
    let said = self::content(content, &|text| text.to_owned());
    let lines = grouped(said.trim_end().lines().count() as u64);
    let failed = failed.and_then(Json::as_bool) == Some(true);
    let (class, word) = if failed { ("result failed", "failed ") } else { ("result", "") };
    let name = escaped(&one_line(&text(name)));
    folded(class, &format!("{word}<b>{name}</b> {lines} lines <code>{}</code>", glimpse(&said)), &body)
}

/// What a user ran, and what came of it.
pub(super) fn bash(message: Json<'_>) -> String {
    let [command, output, code, cancelled] = message.get_all(["command", "output", "exitCode", "cancelled"]);
    let (output, code) = (text(output), text(code));
    let end = match cancelled.and_then(Json::as_bool) {
        Some(true) => "<p class=\"failed\">cancelled</p>".to_owned(),
        _ if matches!(code.as_str(), "" | "0") => String::new(),
        _ => format!("<p class=\"failed\">exit code {}</p>", escaped(&code)),
    };
    let head = format!("{} lines <code>{}</code>", grouped(output.lines().count() as u64), glimpse(&output));
    let output = if output.is_empty() { String::new() } else { folded("result", &head, &printed(&output)) };
    format!("{}{output}{end}", pre(&format!("$ {}", text(command))))
}

/// The prompt, or what changes it: its text, sections and tools.
pub(super) fn system(message: Json<'_>) -> String {
    let names = ["content", "sections", "toolsAdded", "toolsRemoved"];
    let [content, sections, added, removed] = message.get_all(names);
    let mut body = self::content(content, &markdown);
    for (name, value) in sections.into_iter().flat_map(Json::members) {
        let name = escaped(&one_line(&name.text()));
        body += &match value.is_null() {
            true => format!("<p class=\"faint\">section {name} goes</p>\n"),
            false => folded("section", &name, &markdown(&text(Some(value)))),
        };
    }
    let tools =
        |tools: Option<Json<'_>>| -> Vec<String> { tools.into_iter().flat_map(Json::items).map(tool).collect() };
    for (word, tools) in [("tools", tools(added)), ("tools that go", tools(removed))] {
        if !tools.is_empty() {
            body += &folded("section", &format!("{} {word}", tools.len()), &format!("<ul>{}</ul>", tools.concat()));
        }
    }
    let said = text(content.filter(|content| content.kind() == Kind::String));
    folded("system", &format!("system prompt <code>{}</code>", glimpse(&said)), &body)
}

fn tool(tool: Json<'_>) -> String {
    let [name, description] = tool.get_all(["name", "description"]).map(text);
    format!("<li><b>{}</b> {}</li>", escaped(&one_line(&name)), escaped(&description))
}

/// Why an assistant stopped, where that was not because it was done.
pub(super) fn stopped(message: Json<'_>) -> String {
    let [stop, error] = message.get_all(["stopReason", "errorMessage"]).map(text);
    match stop.as_str() {
        "error" | "aborted" | "length" => {
            let error = if error.is_empty() { String::new() } else { format!(": {}", escaped(&error)) };
            format!("<p class=\"failed\">{}{error}</p>\n", escaped(&stop))
        }
        _ => String::new(),
    }
}

/// An assistant's model, and what it used.
pub(super) fn used(message: Json<'_>) -> String {
    let [model, usage] = message.get_all(["model", "usage"]);
    let number = |name| usage.and_then(|usage| usage.get(name)).and_then(Json::as_f64).unwrap_or(0.0);
    let cost = usage.and_then(|usage| usage.get("cost")?.get("total")?.as_f64()).unwrap_or(0.0);
    let tokens = [("in", number("input")), ("out", number("output")), ("cached", number("cacheRead"))];
    let tokens = tokens.into_iter().filter(|(_, tokens)| *tokens > 0.0);
    let tokens: Vec<_> = tokens.map(|(word, tokens)| format!("{} {word}", short(tokens))).collect();
    let cost = if cost > 0.0 { format!("${cost:.4}") } else { String::new() };
    let facts = [escaped(&one_line(&text(model))), tokens.join(", "), cost];
    facts.into_iter().filter(|fact| !fact.is_empty()).collect::<Vec<_>>().join(" · ")
}
