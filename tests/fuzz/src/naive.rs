//! The context of a leaf by the plainest means: maps of JSON values, nothing kept, nothing clever.

use std::collections::HashMap;

use pi_session::Branch;
use pi_session::context::Shown;
use pi_session::header::Version;
use pi_session::json::{Json, Kind};

/// Entries by id, the last of each (S8.5).
type Entries<'a> = HashMap<String, Json<'a>>;

/// The branch's path and context are what a plain reading of the text makes them (S8, S9.1, S9.2). Version 1 has no ids
/// to name entries by.
pub fn check(branch: &Branch, text: &[u8]) {
    let version = branch.tree().header().map(|header| header.version);
    if version.is_none_or(|version| version == Version::V1) {
        return;
    }
    let old = version == Some(Version::V2);
    let entries = entries(text);
    let path = path(&entries, branch.leaf_id());
    let theirs: Vec<_> = branch.items().map(|item| item.id.unwrap_or_default().to_owned()).collect();
    assert_eq!(path, theirs);
    let context = branch.context();
    let shown = |shown: &Shown| match shown {
        Shown::Omitted { .. } => 'o',
        Shown::Replaced { .. } => 'r',
        Shown::Nothing | Shown::AsIs => ' ',
    };
    let theirs: Vec<_> =
        context.entries.iter().map(|entry| (path[entry.place as usize].clone(), shown(&entry.shown))).collect();
    assert_eq!(context_of(&entries, &path, old), theirs);
}

fn entries(text: &[u8]) -> Entries<'_> {
    let values = text.split(|byte| *byte == b'\n').filter_map(|line| Json::parse(line).ok());
    let objects = values.filter(|value| value.kind() == Kind::Object && word(*value, "type") != "session");
    let named = objects.map(|entry| (word(entry, "id"), entry));
    named.filter(|(id, _)| !id.is_empty()).collect()
}

fn word(json: Json<'_>, name: &str) -> String {
    json.get(name).and_then(Json::as_str).unwrap_or_default().into_owned()
}

fn path(entries: &Entries<'_>, leaf: Option<&str>) -> Vec<String> {
    let (mut path, mut at) = (Vec::new(), leaf.unwrap_or_default().to_owned());
    while let Some(entry) = entries.get(&at) {
        path.push(at);
        at = word(*entry, "parentId");
    }
    path.reverse();
    path
}

/// The ids in the context, and whether an edit shows.
fn context_of(entries: &Entries<'_>, path: &[String], old: bool) -> Vec<(String, char)> {
    let kind = |id: &String| word(entries[id], "type");
    let ids: Vec<&String> = match path.iter().rposition(|id| kind(id) == "compaction") {
        None => path.iter().collect(),
        Some(at) => {
            let first = word(entries[&path[at]], "firstKeptEntryId");
            let kept = path[..at].iter().skip_while(|id| **id != first || first.is_empty());
            let kept = kept.filter(|id| kind(id) != "message" || role(entries[*id]) != "system");
            path[at..=at].iter().chain(kept).chain(&path[at + 1..]).collect()
        }
    };
    let edits: HashMap<String, Json<'_>> = ids
        .iter()
        .filter(|id| kind(id) == "context_edit")
        .map(|id| (word(entries[*id], "targetId"), entries[*id]))
        .collect();
    let gives = |id: &String| gives(entries[id]) && (kind(id) != "compaction" || id == ids[0]);
    let edit = |id: &String| edits.get(id).filter(|_| gives(id));
    ids.iter().map(|id| ((*id).clone(), edit(id).map_or(' ', |edit| edited(entries[*id], *edit, old)))).collect()
}

fn role(entry: Json<'_>) -> String {
    entry.get("message").map(|message| word(message, "role")).unwrap_or_default()
}

/// How the edit shows on an entry that gives a message: `o`mitted, `r`eplaced, or not at all.
fn edited(entry: Json<'_>, edit: Json<'_>, old: bool) -> char {
    match edit.get("replacement").map(Json::kind) {
        None => ' ',
        Some(Kind::Null) => 'o',
        Some(_) if takes_replacement(entry, old) => 'r',
        Some(_) => ' ',
    }
}

fn gives(entry: Json<'_>) -> bool {
    match word(entry, "type").as_str() {
        "branch_summary" => entry.get("summary").is_some_and(Json::is_truthy),
        kind => ["message", "custom_message", "compaction"].contains(&kind),
    }
}

/// The role `hookMessage` is an old word for `custom` (S11.1).
fn takes_replacement(entry: Json<'_>, old: bool) -> bool {
    let role = role(entry);
    let known = ["user", "assistant", "toolResult", "custom"].contains(&role.as_str()) || old && role == "hookMessage";
    word(entry, "type") == "custom_message" || word(entry, "type") == "message" && known
}
