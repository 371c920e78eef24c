//! A server that speaks OpenAI's chat completions: what is sent, and what the answer means.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::ask::Request;
use super::error::AskError;
use super::http::{self, Post, Reply};
use super::retry::{Again, Attempt, Failed};
use super::usage::Usage;
use super::{MOST_TEXT, Raw};
use crate::config::ModelFrom;

/// Bytes of a server's own word for an error.
const MOST_CODE: usize = 64;

/// A server, and what it is asked.
pub(super) struct Server<'r> {
    url: String,
    model: String,
    key: Option<String>,
    ca_file: Option<&'r Path>,
    request: &'r Request,
    /// How this server calls the most that it may answer: newer models of OpenAI's refuse the old name.
    max_tokens: &'static str,
}

impl<'r> Server<'r> {
    /// The server of the config, with the key that its variable holds at this moment.
    pub(super) fn new(from: &'r ModelFrom, request: &'r Request) -> Result<Server<'r>, AskError> {
        let ModelFrom::OpenAi { base_url, model, api_key_env, ca_file } = from else {
            return Err(AskError::Request("not a server".to_owned()));
        };
        let key = api_key_env.as_deref().map(key_of).transpose()?;
        let (url, ca_file) = (format!("{base_url}/chat/completions"), ca_file.as_deref());
        Ok(Server { url, model: model.clone(), key, ca_file, request, max_tokens: "max_tokens" })
    }

    fn post(&self) -> Result<Post, AskError> {
        let roots = self.ca_file.map(http::certificates).transpose()?;
        Ok(Post { url: self.url.clone(), key: self.key.clone(), body: self.body().to_string().into_bytes(), roots })
    }

    fn body(&self) -> Value {
        let system = self.request.system.iter().map(|text| json!({ "role": "system", "content": text }));
        let messages = self.request.messages.iter().map(|message| json!(message));
        let messages: Vec<Value> = system.chain(messages).collect();
        let mut body = json!({ "model": self.model, "messages": messages, "stream": false });
        if let Some(most) = self.request.max_tokens {
            body[self.max_tokens] = most.into();
        }
        body
    }

    /// What a status other than 200 means, and whether another try is worth it.
    fn refused(&mut self, reply: &Reply) -> Failed {
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let error = &body["error"];
        let is_key = |code: &String| self.key.as_ref().is_some_and(|key| code.contains(key.as_str()));
        let (status, code) = (reply.status, code(error).filter(|code| !is_key(code)));
        if status == 400 && self.max_tokens == "max_tokens" && error["param"] == "max_tokens" {
            self.max_tokens = "max_completion_tokens";
            return Failed { error: AskError::Status { status, code }, again: Again::AtOnce };
        }
        let again = match status {
            // Money that is used up does not come back in a minute.
            429 if code.as_deref() == Some("insufficient_quota") => Again::No,
            408 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529 => {
                reply.retry_after.map_or(Again::Pause, Again::After)
            }
            _ => Again::No,
        };
        let error =
            if (300..400).contains(&status) { AskError::Redirect(status) } else { AskError::Status { status, code } };
        Failed { error, again }
    }
}

impl Attempt for Server<'_> {
    fn attempt(&mut self, until: Instant, over: &dyn Fn() -> bool) -> Result<Raw, Failed> {
        let no = |error| Failed { error, again: Again::No };
        let post = self.post().map_err(no)?;
        let reply = http::post(post, until, over).map_err(|error| Failed { again: again(&error), error })?;
        match reply.status {
            200..=299 => understood(&reply.body).map_err(no),
            _ => Err(self.refused(&reply)),
        }
    }
}

/// Whether a failure of the connection is worth another try.
fn again(error: &AskError) -> Again {
    match error {
        AskError::Unreachable(why) if why.starts_with("TLS") => Again::No,
        AskError::Unreachable(_) | AskError::BrokenOff => Again::Pause,
        _ => Again::No,
    }
}

/// The key, which must be one that a header can hold.
fn key_of(variable: &str) -> Result<String, AskError> {
    let key = std::env::var(variable).unwrap_or_default();
    let key = key.trim();
    let plain = !key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic());
    if plain { Ok(key.to_owned()) } else { Err(AskError::NoKey(variable.to_owned())) }
}

/// The server's own word for an error, if it is a word: whole sentences may repeat what was asked, or the key.
fn code(error: &Value) -> Option<String> {
    let word = |text: &&str| {
        let plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
        !text.is_empty() && text.len() <= MOST_CODE && text.bytes().all(plain)
    };
    ["code", "type"].iter().filter_map(|key| error[key].as_str()).find(word).map(str::to_owned)
}

/// The answer in a completion.
fn understood(body: &[u8]) -> Result<Raw, AskError> {
    let body: Value = serde_json::from_slice(body).map_err(|_| AskError::Garbage)?;
    let choice = body["choices"].get(0).ok_or(AskError::Garbage)?;
    let message = &choice["message"];
    let reason = choice["finish_reason"].as_str();
    let calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    if calls || message["function_call"].is_object() || matches!(reason, Some("tool_calls" | "function_call")) {
        return Err(AskError::ToolCall);
    }
    let text = text_of(&message["content"]).ok_or(AskError::Garbage)?;
    if text.len() > MOST_TEXT {
        return Err(AskError::TooLong);
    }
    let cut_off = match reason {
        Some("stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence") => false,
        Some("length" | "max_tokens" | "model_length") => true,
        other => return Err(stopped(other)),
    };
    Ok(Raw { text, cut_off, usage: Usage::reported(&body["usage"]) })
}

fn stopped(reason: Option<&str>) -> AskError {
    let word = |text: &&str| text.len() <= MOST_CODE && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    AskError::Stopped(reason.filter(word).unwrap_or("nothing that it says").to_owned())
}

/// A text, or the texts of a list of parts. Nothing at all is an empty one.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        _ => None,
    }
}
