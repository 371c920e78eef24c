//! The part of a recorded session that a compaction would summarise, and what is in it.
use std::collections::BTreeMap;

use pi_graft_plugin::serde_json::{self, Value};

use crate::Wanted;

/// A part to summarise.
pub struct Part {
    /// The entries of the branch, as the context shows them.
    pub entries: Vec<Value>,
    /// Places that go, in whole turns.
    pub whole: Vec<u32>,
    /// Places that go of the turn that is split.
    pub prefix: Vec<u32>,
}

/// The branch of the last entry with edits applied, behind its last compaction.
pub fn branch(jsonl: &str) -> Vec<Value> {
    let entries: Vec<Value> = jsonl.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let by_id: BTreeMap<&str, &Value> = entries.iter().filter_map(|e| Some((e["id"].as_str()?, e))).collect();
    let (mut path, mut at) = (Vec::new(), entries.last());
    while let Some(entry) = at.filter(|entry| entry["type"] != "session") {
        path.push(entry);
        at = entry["parentId"].as_str().and_then(|id| by_id.get(id)).copied();
    }
    path.reverse();
    path.truncate(path.iter().rposition(|entry| entry["type"] != "compaction").map_or(0, |at| at + 1));
    let from = path.iter().rposition(|entry| entry["type"] == "compaction").map_or(0, |at| at + 1);
    let edits: BTreeMap<&str, &Value> =
        path.iter().filter_map(|e| Some((e["targetId"].as_str()?, &e["replacement"]))).collect();
    path[from..].iter().filter_map(|entry| shown(entry, &edits)).collect()
}

fn shown(entry: &Value, edits: &BTreeMap<&str, &Value>) -> Option<Value> {
    let mut entry = entry.clone();
    match edits.get(entry["id"].as_str()?) {
        Some(Value::Null) => return None,
        Some(replacement) => entry["message"]["content"] = replacement["content"].clone(),
        None => {}
    }
    (entry["type"] == "message" && entry["message"]["role"] != "system").then_some(entry)
}

/// All of these entries.
pub fn whole(entries: Vec<Value>) -> Part {
    let places = (0..entries.len()).map(|place| u32::try_from(place).expect("few")).collect();
    Part { entries, whole: places, prefix: Vec::new() }
}

/// Cuts where about so many bytes stay.
pub fn cut(entries: Vec<Value>, keep: usize) -> Part {
    let role = |at: usize| entries[at]["message"]["role"].as_str().unwrap_or_default();
    let (mut at, mut kept) = (entries.len(), 0);
    while at > 0 && (kept < keep || role(at) == "toolResult") {
        at -= 1;
        kept += entries[at].to_string().len();
    }
    let turn = (0..=at.min(entries.len() - 1)).rev().find(|at| role(*at) == "user").unwrap_or(at);
    let places = |range: std::ops::Range<usize>| range.map(|place| u32::try_from(place).expect("few")).collect();
    let (whole, prefix) = (places(0..turn.min(at)), places(turn.min(at)..at));
    Part { entries, whole, prefix }
}

impl Part {
    /// The messages that go.
    pub fn messages(&self) -> impl Iterator<Item = &Value> {
        self.whole.iter().chain(&self.prefix).map(|place| &self.entries[*place as usize]["message"])
    }

    /// The conversation as text, tool results shortened, as a model would be given it to summarise.
    pub fn serialised(&self) -> String {
        self.messages()
            .map(|message| format!("[{}] {}\n\n", message["role"].as_str().unwrap_or(""), shortened(message)))
            .collect()
    }

    /// What should not get lost, by simple rules of its own: tokens with a slash and a dot, tokens with an underscore or
    /// `::`, lines of failed results with "error" in them, sentences with a few telling words.
    pub fn wanted(&self) -> Vec<(Wanted, String)> {
        let mut wanted = Vec::new();
        for message in self.messages() {
            let failed = message["isError"] == true || message["exitCode"].as_f64().is_some_and(|code| code != 0.0);
            match message["role"].as_str().unwrap_or_default() {
                "toolResult" | "bashExecution" if failed => errors(&text(message), &mut wanted),
                "user" => {
                    names(&text(message), &mut wanted);
                    constraints(&text(message), &mut wanted);
                }
                "assistant" => names(&[text(message), calls(message)].join("\n"), &mut wanted),
                _ => {}
            }
        }
        wanted.sort();
        wanted.dedup();
        wanted
    }
}

fn text(message: &Value) -> String {
    let content = &message["content"];
    let blocks = content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    let own = content.as_str().or(message["output"].as_str()).unwrap_or_default().to_owned();
    blocks.fold(own, |text, block| [text.as_str(), block].join("\n"))
}

fn calls(message: &Value) -> String {
    let blocks = message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "toolCall");
    let arguments = blocks.flat_map(|block| [&block["arguments"]["path"], &block["arguments"]["command"]]);
    arguments.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

fn shortened(message: &Value) -> String {
    let text = [text(message), calls(message)].join("\n");
    let most = if message["role"] == "toolResult" { 2000 } else { usize::MAX };
    text[..text.floor_char_boundary(most)].to_owned()
}

fn names(text: &str, wanted: &mut Vec<(Wanted, String)>) {
    for token in text.split(|c: char| c.is_whitespace() || "\"'`(),;<>[]{}".contains(c)) {
        let token = token.trim_matches(['.', ':']);
        let letters = token.chars().any(char::is_alphabetic) && token.len() < 160;
        if letters && token.contains('/') && token.contains('.') {
            wanted.push((Wanted::Path, token.into()));
        } else if letters
            && token.is_ascii()
            && token.len() > 3
            && (token.trim_matches('_').contains('_') || token.contains("::"))
        {
            wanted.push((Wanted::Identifier, token.into()));
        }
    }
}

fn errors(text: &str, wanted: &mut Vec<(Wanted, String)>) {
    let lines = text.lines().map(str::trim).filter(|line| line.to_lowercase().contains("error"));
    wanted.extend(lines.map(|line| (Wanted::Error, line[..line.floor_char_boundary(150)].to_owned())));
}

fn constraints(text: &str, wanted: &mut Vec<(Wanted, String)>) {
    const WORDS: [&str; 6] = ["must", "never", "always", "don't", "do not", "prefer"];
    let sentences = text.lines().flat_map(|line| line.split(". ")).map(str::trim);
    let telling = sentences.filter(|sentence| {
        let padded = format!(" {} ", sentence.to_lowercase());
        WORDS.iter().any(|word| padded.contains(&format!(" {word} ")))
    });
    wanted.extend(telling.map(|sentence| (Wanted::Constraint, sentence.trim_end_matches('.').to_owned())));
}
