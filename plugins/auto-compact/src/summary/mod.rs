//! A summary without a model: extracts of the conversation, word for word, in the sections that Pi's summaries have.
//!
//! Nothing in it is made up, and the same conversation gives the same summary. It *updates* the summary before: that is
//! taken apart ([`previous`]), what is new goes beside what is known, and what has been settled since goes away: a request
//! once it is answered, a failure once the same command succeeds. The time it takes grows with the text, as text; what
//! is held does not.
//!
//! | section | what goes there |
//! | --- | --- |
//! | Goal | the user's requests, the first and the newest first of all |
//! | Constraints & Preferences | the user's sentences that lay something down ("must", "never", "use …") |
//! | Done | how each answered turn begins to tell of itself; commands that succeed; files changed most |
//! | In Progress | requests without an answer |
//! | Blocked | commands that fail, with what they say, until the same succeeds |
//! | Key Decisions | sentences that decide or give a reason |
//! | Next Steps | open items of checklists, lists under "next steps", sentences such as "still need to" |
//! | Critical Context | other errors, notes by extensions, paths and identifiers |
//! | Turn in Progress | the beginning of a turn whose rest is kept |
mod budget;
mod cues;
mod extract;
mod mentions;
mod message;
mod outcomes;
mod previous;
mod sections;
mod text;
mod write;

pub use message::{Call, End, Message};
pub(crate) use text::clip_middle;

use crate::files::{self, Files};
use extract::Extract;

/// A summary in the making. Take in the summary before first, then the messages, then those of a split turn.
#[derive(Debug, Default)]
pub struct Summary {
    history: Extract,
    turn: Option<Extract>,
}

impl Summary {
    /// One that updates this summary. The files that it lists come back with it.
    #[must_use]
    pub fn updating(previous: Option<&str>) -> (Self, Files) {
        let mut history = Extract::default();
        let (text, files) = previous.map(files::strip_blocks).unwrap_or_default();
        previous::recall(&text, &mut history);
        (Self { history, turn: None }, files)
    }

    /// Takes in the next message.
    pub fn add(&mut self, message: &Message) {
        self.history.add(message);
    }

    /// Takes in the next message of the beginning of a split turn.
    pub fn add_to_turn(&mut self, message: &Message) {
        self.turn.get_or_insert_default().add(message);
    }

    /// The text, in at most `max` bytes, with the files listed at its end; `focus` is what the user asked to look at.
    /// None if there is nothing to say, or no room to say it.
    #[must_use]
    pub fn write(self, files: &Files, focus: Option<&str>, max: usize) -> Option<String> {
        let Self { mut history, turn } = self;
        history.close();
        if let Some(turn) = turn {
            history.close_turn(turn);
        }
        write::write(history, files, focus, max)
    }
}

#[cfg(test)]
mod tests;
