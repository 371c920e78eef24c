//! What the demo prints.

use std::io::{IsTerminal, stdout};
use std::path::Path;

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::context::{Context, ContextEntry};
use pi_session::entry::{Entry, EntryKind};
use pi_session::json::Json;

use crate::cli::out::terminal_width;
use crate::cli::{Failure, answer};

/// Columns before a line's text.
const MARGIN: usize = 22;
/// Columns at most, and in a pipe.
const WIDTH: usize = 110;

fn paint(code: &str, text: &str) -> String {
    if stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

fn heading(text: &str) {
    answer(format_args!("\n{}", paint("1", text)));
}

pub(super) fn opening(dir: &Path) {
    answer("pi-graft demo: a Pi session, the real daemon, the four shipped plugins.");
    answer(format_args!("It plays in {}; nothing of yours is touched.", dir.display()));
    heading("1. A session grows, a line at a time, as Pi writes it. The daemon follows it.");
}

/// One line of the writer.
pub(super) fn line(number: usize, text: &str) {
    let Ok(entry) = Json::parse(text.as_bytes()) else { return };
    let (word, rest) = describe(entry);
    answer(format_args!("  {:>3}  {}  {}", number + 1, paint(color_of(&word), &format!("{word:<12}")), cut(&rest)));
}

fn color_of(word: &str) -> &'static str {
    match word {
        "user" => "36",
        "assistant" => "33",
        _ => "2",
    }
}

fn describe(entry: Json<'_>) -> (String, String) {
    let text = |json: Option<Json<'_>>| json.and_then(Json::as_str).unwrap_or_default().into_owned();
    let Some(message) = entry.get("message") else { return (text(entry.get("type")), String::new()) };
    let role = text(message.get("role"));
    let content = message.get("content");
    let first = content.and_then(|c| c.items().next());
    let shown = match first.map(|block| text(block.get("type"))).as_deref() {
        Some("toolCall") => format!("calls {} {}", text(first.and_then(|b| b.get("name"))), arguments(first)),
        Some(_) => text(first.and_then(|b| b.get("text"))),
        None => text(content),
    };
    (role, shown)
}

fn arguments(call: Option<Json<'_>>) -> String {
    call.and_then(|c| c.get("arguments")).map_or_else(String::new, |a| a.to_text().into_owned())
}

fn cut(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let width = if stdout().is_terminal() { terminal_width(stdout()).clamp(2 * MARGIN, WIDTH) } else { WIDTH };
    match line.char_indices().nth(width - MARGIN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

pub(super) fn quiet() {
    heading("2. Pi is left. After a moment of quiet the plugins' work is grafted:");
}

pub(super) fn again() {
    heading("3. Next day Pi opens the session again, and goes on behind what was grafted:");
}

pub(super) fn quiet_again() {
    heading("4. The context has grown to its bound: it is compacted while nobody waits:");
}

/// One entry that was grafted.
pub(super) fn graft(tree: &Tree, entry: &Entry, line: &[u8]) {
    let json = Json::parse(line).ok();
    let get = |name: &str| json.and_then(|j| j.get(name));
    let what = match entry.kind {
        EntryKind::Custom => {
            let data = get("data");
            let text =
                |name: &str| data.and_then(|d| d.get(name)).and_then(Json::as_str).unwrap_or_default().into_owned();
            format!("receipt: {} {}, {} on {}", text("plugin"), text("version"), text("handler"), text("trigger"))
        }
        EntryKind::Compaction => format!(
            "a compaction: a summary of {} bytes stands for everything before entry {}",
            get("summary").and_then(Json::as_str).unwrap_or_default().len(),
            get("firstKeptEntryId").and_then(Json::as_str).unwrap_or_default()
        ),
        EntryKind::ContextEdit => format!(
            "entry {} now reads: {}",
            get("targetId").and_then(Json::as_str).unwrap_or_default(),
            text_in(get("replacement"))
        ),
        EntryKind::CustomMessage => text_in(get("content")),
        _ => tree.word(entry).to_owned(),
    };
    answer(format_args!("  {} {:<14}  {}", paint("32", "+"), entry.kind.as_str(), cut(&what)));
}

/// The text of content: a text, or the blocks of one, or what has content.
fn text_in(content: Option<Json<'_>>) -> String {
    let Some(content) = content else { return String::new() };
    if let Some(inner) = content.get("content") {
        return text_in(Some(inner));
    }
    let text = |json: Json<'_>| json.as_str().unwrap_or_default().into_owned();
    let blocks = content.items().filter_map(|block| block.get("text")).map(text);
    if content.as_str().is_some() { text(content) } else { blocks.collect() }
}

/// The context at one moment.
pub(super) struct Side {
    /// Estimated.
    pub(super) tokens: u64,
    messages: Vec<(String, u64)>,
}

impl Side {
    pub(super) fn of(branch: &Branch) -> Result<Side, Failure> {
        let context = branch.context();
        let tokens = context.entries.iter().map(|e| branch.shown_tokens(e)).sum();
        Ok(Side { tokens, messages: messages(branch, &context)? })
    }
}

fn messages(branch: &Branch, context: &Context) -> Result<Vec<(String, u64)>, Failure> {
    let mut list = Vec::new();
    for entry in &context.entries {
        for message in branch.messages(entry).map_err(Failure::from)? {
            let role = role(&message);
            let tokens = share(branch, entry, &role);
            list.push((role, tokens));
        }
    }
    Ok(list)
}

fn role(message: &str) -> String {
    let json = Json::parse(message.as_bytes()).ok();
    json.and_then(|m| m.get("role")).and_then(Json::as_str).unwrap_or_default().into_owned()
}

/// The estimate of one message: a compaction gives two, its prompt and its summary.
fn share(branch: &Branch, entry: &ContextEntry, role: &str) -> u64 {
    let facts = branch.facts(entry.place);
    match (facts.kind, role) {
        (EntryKind::Compaction, "system") => u64::from(facts.more_tokens),
        (EntryKind::Compaction, _) => u64::from(facts.tokens),
        _ => branch.shown_tokens(entry),
    }
}

/// Both contexts, side by side.
pub(super) fn contexts(before: &Side, after: &Side) {
    heading("5. What the model will see:");
    let total = |side: &Side| format!("{} messages, about {} tokens", side.messages.len(), side.tokens);
    answer("  without pi-graft                  with it");
    answer(format_args!("  {:<34}{}", total(before), total(after)));
    let row = |side: &Side, at: usize| {
        side.messages.get(at).map_or_else(String::new, |(role, tokens)| format!("{role:<18} {tokens:>6}"))
    };
    for at in 0..before.messages.len().max(after.messages.len()) {
        answer(format_args!("  {}{}", paint("2", &format!("{:<34}", row(before, at))), row(after, at)));
    }
}

/// The summary that stands for the older part.
pub(super) fn summary(text: &str) {
    heading("The summary (made offline, in the session's own words):");
    text.lines().for_each(|line| answer(format_args!("  {}", paint("2", "│ ").to_owned() + line)));
}

pub(super) fn closing() {
    heading("That was all: the session file was only appended to, and Pi opens it as it is.");
    answer("  pi-graft run             follow your own sessions with the shipped config");
    answer("  pi-graft config init     write a config of your own");
}
