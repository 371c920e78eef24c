//! The conversation, as far as a summary needs it.

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// What the user asked.
    User {
        /// The text.
        text: String,
    },
    /// What the model said and called.
    Assistant {
        /// The text, without what it thought.
        text: String,
        /// The calls.
        calls: Vec<Call>,
        /// How it ended.
        end: End,
        /// What went wrong.
        error: Option<String>,
    },
    /// What came of a call.
    ToolResult {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// The output.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
    /// A command that the user ran.
    Bash {
        /// The command.
        command: String,
        /// The output.
        output: String,
        /// Whether it failed.
        failed: bool,
    },
    /// A message by an extension, or the summary of a branch that was left.
    Note {
        /// The text.
        text: String,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The file or address that it is about.
    pub path: Option<String>,
    /// The command that it runs.
    pub command: Option<String>,
}

/// How an assistant message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The turn is answered.
    Answered,
    /// It goes on with the results of the calls.
    Calls,
    /// It broke off: an error or the user's abort.
    Broken,
}
