//! The shape of a message that is to be appended (S5).
//!
//! Reading takes messages as they come; what is written is held to what Pi and its providers count on.

use crate::json::{Json, Kind};
use crate::shape::{Owner, check_content, check_usage, kind_name, text_of};

/// Why an assistant may have stopped; `pending` is never stored.
const STOPS: [&str; 6] = ["stop", "length", "toolUse", "error", "aborted", "deferred"];

/// What is wrong with a message, as the end of the sentence "the message …".
pub(crate) fn check_message(message: Json<'_>) -> Result<(), String> {
    if message.kind() != Kind::Object {
        return Err(format!("is {}: give an object with a `role`", kind_name(message)));
    }
    let role = text_of(message, "role")?;
    number(message, "timestamp").map_err(|why| format!("{why} of Unix milliseconds"))?;
    match role.as_str() {
        "" => Err("has an empty `role`".into()),
        "user" => content(message, Owner::Plain),
        "assistant" => assistant(message),
        "toolResult" => tool_result(message),
        "system" => system(message),
        "bashExecution" => ["command", "output"].iter().try_for_each(|field| text_of(message, field).map(drop)),
        "custom" => {
            filled(message, "customType")?;
            content(message, Owner::Plain)
        }
        "compactionSummary" | "branchSummary" => {
            Err(format!("has the role {role:?}, which has an entry of its own: append a compaction or branch summary"))
        }
        // An application's own: what it means is not known here (S2.5).
        _ => Ok(()),
    }
}

fn assistant(message: Json<'_>) -> Result<(), String> {
    blocks(message, Owner::Assistant)?;
    ["api", "provider", "model"].iter().try_for_each(|field| filled(message, field))?;
    usage(message)?;
    let stop = text_of(message, "stopReason")?;
    match STOPS.contains(&stop.as_str()) {
        true => Ok(()),
        false => Err(format!("has the `stopReason` {stop:?}: stored are {}", STOPS.join(", "))),
    }
}

fn tool_result(message: Json<'_>) -> Result<(), String> {
    ["toolCallId", "toolName"].iter().try_for_each(|field| filled(message, field))?;
    blocks(message, Owner::Plain)?;
    match message.get("isError").and_then(Json::as_bool) {
        Some(_) => message.get("usage").map_or(Ok(()), |_| usage(message)),
        None => Err("has no `isError` that is true or false".into()),
    }
}

/// A system message is a delta: text, sections by name, tools that come and go (S5.1).
fn system(message: Json<'_>) -> Result<(), String> {
    content(message, Owner::Plain)?;
    let sections = message.get("sections").into_iter().flat_map(Json::members);
    let is_section = |value: Json<'_>| matches!(value.kind(), Kind::String | Kind::Null);
    if let Some((name, _)) = sections.into_iter().find(|(_, value)| !is_section(*value)) {
        return Err(format!("has a section {:?} that is neither text nor null", name.text()));
    }
    ["toolsAdded", "toolsRemoved"].iter().try_for_each(|field| {
        let tools = message.get(field).into_iter().flat_map(Json::items);
        tools
            .into_iter()
            .try_for_each(|tool| filled(tool, "name").map_err(|why| format!("has in `{field}` one that {why}")))
    })
}

fn usage(message: Json<'_>) -> Result<(), String> {
    match message.get("usage") {
        Some(usage) => check_usage(usage).map_err(|why| format!("has a `usage` that {why}")),
        None => {
            Err("has no `usage`: Pi adds it up for every assistant message, so give zeros if it is not known".into())
        }
    }
}

fn content(message: Json<'_>, owner: Owner) -> Result<(), String> {
    match message.get("content") {
        Some(content) => check_content(content, owner).map_err(|why| format!("has a `content` that {why}")),
        None => Err("has no `content`".into()),
    }
}

/// Content that may not be a mere text.
fn blocks(message: Json<'_>, owner: Owner) -> Result<(), String> {
    match message.get("content").map(Json::kind) {
        Some(Kind::String) => Err("has a `content` that is a string: give a list of blocks".into()),
        _ => content(message, owner),
    }
}

fn number(message: Json<'_>, field: &str) -> Result<(), String> {
    match message.get(field).map(Json::kind) {
        Some(Kind::Number) => Ok(()),
        _ => Err(format!("has no number `{field}`")),
    }
}

/// A text that is there and not empty.
fn filled(object: Json<'_>, field: &str) -> Result<(), String> {
    match text_of(object, field)?.is_empty() {
        true => Err(format!("has an empty `{field}`")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        check_message(Json::parse(text.as_bytes()).expect("JSON"))
    }

    #[track_caller]
    fn refused(text: &str, word: &str) {
        let why = check(text).expect_err("this must be refused");
        assert!(why.contains(word), "{why:?} does not speak of {word:?}");
    }

    #[test]
    fn every_role_has_what_pi_counts_on() {
        assert_eq!(check(r#"{"role":"user","content":"hi","timestamp":1}"#), Ok(()));
        assert_eq!(check(r#"{"role":"my-role","anything":1,"timestamp":1}"#), Ok(()));
        assert_eq!(check(r#"{"role":"bashExecution","command":"ls","output":"","timestamp":1}"#), Ok(()));
        refused("7", "is a number");
        refused(r#"{"content":"hi"}"#, "no `role`");
        refused(r#"{"role":"user","content":"hi","timestamp":"2026-01-01T00:00:00.000Z"}"#, "Unix milliseconds");
        refused(r#"{"role":"user","timestamp":1}"#, "no `content`");
        refused(r#"{"role":"user","content":[{"type":"text"}],"timestamp":1}"#, "block 0 has no `text`");
        refused(r#"{"role":"compactionSummary","summary":"s","timestamp":1}"#, "an entry of its own");
        refused(r#"{"role":"custom","content":"x","timestamp":1}"#, "`customType`");
    }

    #[test]
    fn an_assistant_says_who_it_is_and_what_it_cost() {
        let cost = r#""cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}"#;
        let usage = format!(r#""usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,{cost}}}"#);
        let whole = format!(
            r#"{{"role":"assistant","content":[],"api":"a","provider":"p","model":"m",{usage},"stopReason":"stop","timestamp":1}}"#
        );
        assert_eq!(check(&whole), Ok(()));
        refused(&whole.replace("\"content\":[]", "\"content\":\"text\""), "list of blocks");
        refused(&whole.replace(&usage, "\"usage\":null"), "`usage` that is null");
        refused(&whole.replace("\"stop\"", "\"pending\""), "\"pending\"");
        refused(&whole.replace("\"m\"", "\"\""), "empty `model`");
    }

    #[test]
    fn a_tool_result_names_its_call() {
        let whole =
            r#"{"role":"toolResult","toolCallId":"c","toolName":"read","content":[],"isError":false,"timestamp":1}"#;
        assert_eq!(check(whole), Ok(()));
        refused(&whole.replace("\"c\"", "\"\""), "empty `toolCallId`");
        refused(&whole.replace("false", "0"), "isError");
    }

    #[test]
    fn a_system_message_is_a_delta_of_texts_and_tools() {
        let system = |more: &str| check(&format!(r#"{{"role":"system","content":"","timestamp":1{more}}}"#));
        assert_eq!(system(r#","sections":{"a":"x","b":null},"toolsAdded":[{"name":"t"}]"#), Ok(()));
        assert!(system(r#","sections":{"a":1}"#).is_err());
        assert!(system(r#","toolsRemoved":["t"]"#).is_err());
    }
}
