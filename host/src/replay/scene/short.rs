//! The short forms of a scene's lines: what they leave out is what Pi would have written.
//!
//! | line | entry |
//! | --- | --- |
//! | `{"user": TEXT-OR-BLOCKS}` | a user's message |
//! | `{"assistant": TEXT-OR-BLOCKS, "thinking", "calls": [{"name", "arguments", "id"}], "stop", "error", "tokens", "usage", "model"}` | an answer |
//! | `{"toolResult": TEXT-OR-BLOCKS, "call", "tool", "isError", "details"}` | the result of a call: of the oldest without one |
//! | `{"custom": TYPE, "data"}` | a plugin's state |
//! | `{"customMessage": TYPE, "content", "display", "details"}` | a plugin's message |

use std::collections::VecDeque;

use pi_session::json::Json;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Members that say what a line is.
const KINDS: [&str; 5] = ["user", "assistant", "toolResult", "custom", "customMessage"];
/// The model of an answer that names none.
const MODEL: &str = "scene/scene";

/// Calls without a result: id and tool, oldest first.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: VecDeque<(String, String)>,
    count: usize,
}

impl Calls {
    /// What a message calls or answers.
    pub(super) fn note(&mut self, message: Option<Json<'_>>) {
        let text = |of: Json<'_>, name| of.get(name).and_then(Json::as_str).map(|text| text.into_owned());
        let Some(message) = message else { return };
        if let Some(call) = text(message, "toolCallId") {
            self.open.retain(|(id, _)| *id != call);
        }
        let blocks = message.get("content").into_iter().flat_map(Json::items);
        for block in blocks.filter(|block| text(*block, "type").as_deref() == Some("toolCall")) {
            self.open.push_back((text(block, "id").unwrap_or_default(), text(block, "name").unwrap_or_default()));
        }
    }

    /// The call of this id, else the oldest.
    fn answer(&mut self, id: Option<&str>) -> Option<(String, String)> {
        let at = self.open.iter().position(|(open, _)| id.is_none_or(|id| id == open))?;
        self.open.remove(at)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    user: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Assistant {
    assistant: Value,
    thinking: Option<String>,
    #[serde(default)]
    calls: Vec<Call>,
    stop: Option<String>,
    error: Option<String>,
    tokens: Option<u64>,
    usage: Option<Value>,
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ToolResult {
    tool_result: Value,
    call: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    is_error: bool,
    details: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Custom {
    custom: String,
    data: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CustomMessage {
    custom_message: String,
    content: Value,
    #[serde(default = "yes")]
    display: bool,
    details: Option<Value>,
}

fn yes() -> bool {
    true
}

/// The entry of a line, without what every entry has. A line with `type` is one already.
pub(super) fn body(given: Map<String, Value>, at_ms: i64, calls: &mut Calls) -> Result<Map<String, Value>, String> {
    if given.contains_key("type") {
        let message = given.get("message").map(Value::to_string).unwrap_or_default();
        calls.note(Json::parse(message.as_bytes()).ok());
        return Ok(given);
    }
    let mut kinds = KINDS.into_iter().filter(|kind| given.contains_key(*kind));
    let entry = match (kinds.next(), kinds.next()) {
        (Some("user"), None) => message(json!({ "role": "user", "content": read::<User>(given)?.user }), at_ms),
        (Some("assistant"), None) => message(assistant(read(given)?, calls), at_ms),
        (Some("toolResult"), None) => message(tool_result(read(given)?, calls)?, at_ms),
        (Some("custom"), None) => custom(read(given)?),
        (Some("customMessage"), None) => custom_message(read(given)?),
        _ => {
            return Err(format!(
                "says not what it is by one of {}, or by `type`",
                KINDS.map(|k| format!("`{k}`")).join(", ")
            ));
        }
    };
    match entry {
        Value::Object(entry) => Ok(entry),
        _ => Err("not an entry".to_owned()),
    }
}

fn read<T: DeserializeOwned>(given: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::from(given)).map_err(|error| error.to_string())
}

fn message(mut message: Value, at_ms: i64) -> Value {
    message["timestamp"] = at_ms.into();
    json!({ "type": "message", "message": message })
}

/// A text as blocks; blocks as they are.
fn blocks(of: Value) -> Vec<Value> {
    match of {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks,
        _ => Vec::new(),
    }
}

fn assistant(of: Assistant, calls: &mut Calls) -> Value {
    let thinking = of.thinking.map(|text| json!({ "type": "thinking", "thinking": text }));
    let mut content: Vec<_> = thinking.into_iter().chain(blocks(of.assistant)).collect();
    let has_calls = !of.calls.is_empty();
    for call in of.calls {
        calls.count += 1;
        let id = call.id.unwrap_or_else(|| format!("call-{}", calls.count));
        content.push(json!({ "type": "toolCall", "id": id, "name": call.name, "arguments": call.arguments }));
    }
    let usual = match (&of.error, has_calls) {
        (Some(_), _) => "error",
        (None, true) => "toolUse",
        (None, false) => "stop",
    };
    let model = of.model.unwrap_or_else(|| MODEL.to_owned());
    let (provider, id) = model.split_once('/').unwrap_or(("scene", &model));
    let usage = of.usage.unwrap_or_else(|| usage(of.tokens.unwrap_or(0)));
    let mut message = json!({
        "role": "assistant", "content": content, "api": "scene", "provider": provider, "model": id, "usage": usage,
        "stopReason": of.stop.as_deref().unwrap_or(usual),
    });
    if let Some(error) = of.error {
        message["errorMessage"] = error.into();
    }
    let text = message.to_string();
    calls.open.clear();
    calls.note(Json::parse(text.as_bytes()).ok());
    message
}

/// A request of so many tokens. None reported are 0 (S9.6).
fn usage(tokens: u64) -> Value {
    let cost = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 });
    json!({ "input": tokens, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens, "cost": cost })
}

fn tool_result(of: ToolResult, calls: &mut Calls) -> Result<Value, String> {
    let (call, tool) = match (calls.answer(of.call.as_deref()), of.call) {
        (Some((call, tool)), _) => (call, of.tool.unwrap_or(tool)),
        (None, Some(call)) => (call, of.tool.unwrap_or_default()),
        (None, None) => {
            return Err(
                "no call is left without a result: give the `calls` of an `assistant`, or its `call`".to_owned()
            );
        }
    };
    let mut message = json!({
        "role": "toolResult", "toolCallId": call, "toolName": tool, "content": blocks(of.tool_result), "isError": of.is_error,
    });
    if let Some(details) = of.details {
        message["details"] = details;
    }
    Ok(message)
}

fn custom(of: Custom) -> Value {
    let mut entry = json!({ "type": "custom", "customType": of.custom });
    if let Some(data) = of.data {
        entry["data"] = data;
    }
    entry
}

fn custom_message(of: CustomMessage) -> Value {
    let (kind, content, display) = (of.custom_message, of.content, of.display);
    let mut entry = json!({ "type": "custom_message", "customType": kind, "content": content, "display": display });
    if let Some(details) = of.details {
        entry["details"] = details;
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(calls: &mut Calls, line: Value) -> Value {
        let Value::Object(given) = line else { panic!("an object") };
        Value::from(body(given, 7, calls).unwrap_or_else(|why| panic!("{why}")))
    }

    #[test]
    fn a_result_answers_the_oldest_call_unless_it_names_one() {
        let mut calls = Calls::default();
        let two = json!({ "assistant": "look", "calls": [{ "name": "read" }, { "name": "bash", "id": "b" }] });
        let answer = made(&mut calls, two);
        assert_eq!((&answer["message"]["stopReason"], &answer["message"]["timestamp"]), (&json!("toolUse"), &json!(7)));
        assert_eq!(made(&mut calls, json!({ "toolResult": "ok", "call": "b" }))["message"]["toolName"], "bash");
        let result = made(&mut calls, json!({ "toolResult": "ok" }));
        assert_eq!(
            (&result["message"]["toolCallId"], &result["message"]["toolName"]),
            (&json!("call-1"), &json!("read"))
        );
        let Value::Object(third) = json!({ "toolResult": "ok" }) else { panic!("an object") };
        assert!(body(third, 0, &mut calls).expect_err("no call").contains("no call is left"));
    }

    #[test]
    fn what_a_line_cannot_have_is_refused() {
        for line in
            [json!({ "user": "a", "calls": [] }), json!({ "user": "a", "assistant": "b" }), json!({ "text": "a" })]
        {
            let Value::Object(given) = line.clone() else { panic!("an object") };
            assert!(body(given, 0, &mut Calls::default()).is_err(), "{line}");
        }
    }
}
