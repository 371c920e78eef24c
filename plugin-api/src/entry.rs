//! Entries as the context shows them, read into types: the parts that plugins use; the rest is skipped.
use std::borrow::Cow;
use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Json;

/// An entry. Which fields it has depends on its `kind`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Entry {
    /// Its type, such as `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id; none while it is pending.
    pub id: Option<String>,
    /// When it was made (ISO 8601).
    pub timestamp: Option<String>,
    /// Of `message`.
    pub message: Option<Message>,
    /// Of `custom` and `custom_message`.
    pub custom_type: Option<String>,
    /// Of `custom`.
    pub data: Option<Json>,
    /// Of `custom_message`.
    pub content: Content,
    /// Of `compaction` and `branch_summary`.
    pub summary: Option<String>,
    /// Of `compaction`.
    pub first_kept_entry_id: Option<String>,
    /// Of `context_edit`.
    pub target_id: Option<String>,
    /// Of `context_edit`: what stands in place of the content; none omits the entry.
    pub replacement: Option<Json>,
    /// Of `compaction`, `branch_summary` and `custom_message`.
    pub details: Option<Json>,
}

impl Entry {
    /// The content of its message or custom message.
    #[must_use]
    pub fn content(&self) -> &Content {
        self.message.as_ref().map_or(&self.content, |message| &message.content)
    }
}

/// A message. Which fields it has depends on its `role`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Message {
    /// `user`, `assistant`, `toolResult` and others.
    pub role: String,
    /// Text or blocks.
    pub content: Content,
    /// Of `assistant`: why it stopped.
    pub stop_reason: Option<String>,
    /// Of `assistant`: what went wrong.
    pub error_message: Option<String>,
    /// Of `toolResult`: the call that it answers.
    pub tool_call_id: Option<String>,
    /// Of `toolResult`.
    pub tool_name: Option<String>,
    /// Of `toolResult`.
    pub is_error: bool,
    /// Of `bashExecution`.
    pub command: Option<String>,
    /// Of `bashExecution`.
    pub output: Option<String>,
}

/// The content of a message: text or blocks.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

impl Content {
    /// Its texts, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => {
                Cow::Owned(blocks.iter().filter_map(|b| b.text.as_deref()).collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Its blocks; none if it is a text.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// Its tool calls.
    pub fn tool_calls(&self) -> impl Iterator<Item = &Block> {
        self.blocks().iter().filter(|block| block.kind == "toolCall")
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

/// A block of content. Which fields it has depends on its `kind`. The data of images is skipped.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Block {
    /// `text`, `thinking`, `toolCall`, `image` and others.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of `text`.
    pub text: Option<String>,
    /// Of `thinking`.
    pub thinking: Option<String>,
    /// Of `toolCall`.
    pub id: Option<String>,
    /// Of `toolCall`: the tool.
    pub name: Option<String>,
    /// Of `toolCall`.
    pub arguments: Option<Json>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// Takes a text, a list of blocks, or null for neither.
struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of blocks")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.into()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = seq.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> Entry {
        crate::json::read(json).expect("an entry")
    }

    #[test]
    fn content_is_text_or_blocks_or_nothing() {
        assert_eq!(entry(r#"{"type":"message","message":{"role":"user","content":"hi"}}"#).content().text(), "hi");
        let blocks = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"a"},
            {"type":"toolCall","id":"c","name":"read","arguments":{"path":"x","n":1e400}},{"type":"text","text":"b"}]}}"#;
        assert_eq!(entry(blocks).content().text(), "a\nb");
        assert_eq!(entry(blocks).content().tool_calls().count(), 1);
        assert_eq!(entry(r#"{"type":"message","message":{"role":"user","content":null}}"#).content().text(), "");
    }
}
