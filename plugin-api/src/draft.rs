//! What a plugin can propose.
use crate::{Edit, Json};

/// A message to the model, which stands on the branch like one of the user's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CustomMessage {
    /// The plugin's own name for its kind of message.
    pub custom_type: String,
    /// JSON: a text or a list of blocks. [`CustomMessage::text`] makes it from a text.
    pub content: Json,
    /// Whether Pi shows it to the user too.
    pub display: bool,
    /// Anything else, which the model does not see.
    pub details: Option<Json>,
}

impl CustomMessage {
    /// A message with a text, shown to the user.
    #[must_use]
    pub fn text(custom_type: &str, text: &str) -> Self {
        Self { custom_type: custom_type.into(), content: Json::text(text), display: true, details: None }
    }
}

/// A summary that takes the place of what stands before an entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compaction {
    /// The summary.
    pub summary: String,
    /// The id of the first entry to keep; none keeps nothing.
    pub first_kept: Option<String>,
    /// Anything else, which the model does not see; Pi's own are `{readFiles, modifiedFiles}`.
    pub details: Option<Json>,
    /// What making it cost, in the shape of an assistant message's `usage`.
    pub usage: Option<Json>,
}

impl Edit {
    /// Takes the entry out of the context.
    #[must_use]
    pub fn omit(target: &str) -> Self {
        Self { target: target.into(), replacement: None }
    }

    /// Shows this text in place of the entry's content.
    #[must_use]
    pub fn text(target: &str, text: &str) -> Self {
        Self::content(target, &Json::text(text))
    }

    /// Shows this content: a text or a list of blocks, as JSON.
    #[must_use]
    pub fn content(target: &str, content: &Json) -> Self {
        let replacement = ["{\"content\":", content.as_str(), "}"].concat();
        Self { target: target.into(), replacement: Some(replacement) }
    }
}
