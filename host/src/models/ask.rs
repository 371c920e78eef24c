//! The contract's request: JSON with `system`, `messages`, `maxTokens`.

use serde::{Deserialize, Serialize};

use super::error::AskError;

/// Messages in one request.
const MOST_MESSAGES: usize = 256;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// What the model is told of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation; at least one.
    pub messages: Vec<Message>,
    /// The most that it may answer, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Message {
    /// Whose.
    pub role: Role,
    /// Its text.
    pub content: String,
}

/// Whose a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The one who asks.
    User,
    /// The model, before.
    Assistant,
}

impl Request {
    /// Reads one.
    ///
    /// # Errors
    /// [`AskError::Request`] says which member is wrong, and nothing of what it holds.
    pub fn parse(json: &str) -> Result<Request, AskError> {
        let wrong = |why: &str| AskError::Request(why.to_owned());
        let request: Request = serde_json::from_str(json).map_err(|error| {
            let place = format!("not JSON of {{system, messages, maxTokens}} at column {}", error.column());
            AskError::Request(place)
        })?;
        match request.messages.len() {
            0 => Err(wrong("there is no message")),
            1..=MOST_MESSAGES => Ok(request),
            _ => Err(wrong("there are more than 256 messages")),
        }
    }

    /// As one text, for a program that reads it.
    #[must_use]
    pub fn as_prompt(&self) -> String {
        let alone = self.messages.len() == 1;
        let messages = self.messages.iter().map(|message| match (alone, message.role) {
            (true, _) => message.content.clone(),
            (false, Role::User) => format!("User:\n{}", message.content),
            (false, Role::Assistant) => format!("Assistant:\n{}", message.content),
        });
        let parts: Vec<String> = self.system.iter().cloned().chain(messages).collect();
        parts.join("\n\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_none_is_told_without_its_text() {
        for wrong in [r#"{"messages":[]}"#, r#"{"messages":[{"role":"tool","content":"SECRET"}]}"#, "SECRET", "{}"] {
            let error = Request::parse(wrong).expect_err(wrong).to_string();
            assert!(!error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn a_program_reads_system_and_messages_as_one_text() {
        let request = Request::parse(r#"{"system":"be brief","messages":[{"role":"user","content":"hi"}]}"#);
        assert_eq!(request.expect("a request").as_prompt(), "be brief\n\nhi\n");
    }
}
