//! One entry of a branch as HTML.

use pi_session::json::{Json, Kind};

use super::html::{escaped, markdown, pre};
use super::message::{self, bash, content, folded, result, stopped, system, text, used};
use crate::cli::out::grouped;
use crate::cli::preview::{self, one_line};

/// An entry to be read.
#[derive(Default)]
pub(super) struct Article {
    /// How it looks; a word of ours.
    pub class: &'static str,
    /// Who, or what; HTML.
    pub name: String,
    /// What there is to know of it; HTML.
    pub facts: String,
    /// What it says; HTML.
    pub body: String,
}

impl Article {
    fn new(class: &'static str, name: &str, body: String) -> Article {
        Article { class, name: escaped(&one_line(name)), facts: String::new(), body }
    }

    /// What only changes something, in one line.
    fn note(line: Json<'_>) -> Article {
        let preview = preview::entry(line);
        Article::new("note", &preview.what.replace('_', " "), escaped(&preview.said))
    }
}

/// The entry of this line. `link` makes HTML of the id of another.
pub(super) fn of(line: Json<'_>, link: &dyn Fn(&str) -> String) -> Article {
    let [kind, message, custom] = line.get_all(["type", "message", "customType"]);
    match text(kind).as_str() {
        "message" => of_message(message, line),
        "compaction" => compaction(line, link),
        "branch_summary" => {
            let [summary, from] = line.get_all(["summary", "fromId"]).map(text);
            let from = format!("<p class=\"faint\">of the branch that ended in {}</p>", link(&from));
            Article::new("summary", "branch summary", markdown(&summary) + &from)
        }
        "context_edit" => edit(line, link),
        "custom_message" => {
            let hidden = line.get("display").and_then(Json::as_bool) == Some(false);
            let body = content(line.get("content"), &markdown);
            let facts = if hidden { "hidden in Pi" } else { "" }.to_owned();
            Article { facts, ..Article::new("custom", &text(custom), body) }
        }
        "custom" => {
            let data = line.get("data").map(|data| data.to_text().into_owned()).unwrap_or_default();
            Article::new("note", "custom", folded("other", &escaped(&one_line(&text(custom))), &pre(&data)))
        }
        "model_change" | "thinking_level_change" | "label" | "session_info" | "usage" => Article::note(line),
        other => Article::new("note", other, folded("other", "as it stands", &pre(&line.to_text()))),
    }
}

fn of_message(message: Option<Json<'_>>, line: Json<'_>) -> Article {
    let Some(message) = message.filter(|message| message.kind() == Kind::Object) else {
        return Article::new("note", "message", folded("other", "as it stands", &pre(&line.to_text())));
    };
    let [role, said] = message.get_all(["role", "content"]);
    let role = text(role);
    match role.as_str() {
        "user" => Article::new("user", "user", content(said, &markdown)),
        "assistant" => {
            let body = content(said, &markdown) + &stopped(message);
            Article { facts: used(message), ..Article::new("assistant", "assistant", body) }
        }
        "toolResult" => Article::new("tool", "", result(message)),
        "bashExecution" => Article::new("user", "user's command", bash(message)),
        "system" => Article::new("tool", "", system(message)),
        "compactionSummary" | "branchSummary" => {
            Article::new("summary", &role, markdown(&text(message.get("summary"))))
        }
        _ => Article::new("custom", &role, content(said, &markdown)),
    }
}

fn compaction(line: Json<'_>, link: &dyn Fn(&str) -> String) -> Article {
    let names = ["summary", "firstKeptEntryId", "tokensBefore", "details", "systemMessage"];
    let [summary, kept, before, details, prompt] = line.get_all(names);
    let before = before.and_then(Json::as_f64).map(|tokens| format!("{} tokens before", grouped(tokens as u64)));
    let kept = text(kept);
    let own = line.get("id").and_then(Json::as_str).is_some_and(|id| id == kept);
    let kept = if own { "nothing before it is kept".to_owned() } else { format!("kept from {} on", link(&kept)) };
    let files = [("read", "readFiles"), ("modified", "modifiedFiles")].map(|(word, name)| {
        let files = details.and_then(|details| details.get(name)).into_iter().flat_map(Json::items);
        let files: String = files.map(|file| format!("<li>{}</li>", escaped(&one_line(&text(Some(file)))))).collect();
        if files.is_empty() { files } else { folded("section", &format!("files {word}"), &format!("<ul>{files}</ul>")) }
    });
    let prompt = prompt.filter(|prompt| prompt.kind() == Kind::Object).map(message::system).unwrap_or_default();
    let body = format!("{}<p class=\"faint\">{kept}</p>{}{prompt}", markdown(&text(summary)), files.concat());
    Article { facts: before.unwrap_or_default(), ..Article::new("summary", "compaction", body) }
}

fn edit(line: Json<'_>, link: &dyn Fn(&str) -> String) -> Article {
    let [target, new] = line.get_all(["targetId", "replacement"]);
    let target = link(&text(target));
    let body = match new.filter(|new| !new.is_null()) {
        None => format!("leaves {target} out of what the model sees"),
        Some(new) => {
            let body = content(new.get("content"), &markdown);
            format!("in place of {target} the model sees {}", folded("other", "this", &body))
        }
    };
    Article { body, ..Article::new("note", "context edit", String::new()) }
}
