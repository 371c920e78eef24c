//! How many tokens a context has: what the model last reported, else an estimate (S9.5, S9.6).

use crate::branch::{Branch, BranchError};
use crate::context::{Context, ContextEntry, Shown};
use crate::entry::{EntryKind, Role};
use crate::json::Json;
use crate::system::Replay;

/// The tokens of a context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tokens {
    /// All of it.
    pub total: f64,
    /// What the last usable report says; 0 without one.
    pub usage: f64,
    /// Estimates of what follows it, or of everything.
    pub trailing: u64,
    /// Place of the assistant message whose report was used.
    pub usage_at: Option<u32>,
}

impl Branch {
    /// The tokens of a context of this branch (S9.6).
    ///
    /// # Errors
    /// [`BranchError`] if a system message cannot be read back.
    pub fn tokens(&self, context: &Context) -> Result<Tokens, BranchError> {
        if let Some(tokens) = self.reported_tokens(context) {
            return Ok(tokens);
        }
        let mut replay = Replay::default();
        let mut trailing = 0;
        for entry in &context.entries {
            self.add_system(entry, &mut replay)?;
            trailing += self.tokens_without_system(entry);
        }
        trailing += replay.tokens();
        Ok(Tokens { total: trailing as f64, usage: 0.0, trailing, usage_at: None })
    }

    /// The last real usage, if no edit or compaction came after it.
    fn reported_tokens(&self, context: &Context) -> Option<Tokens> {
        let reports = |entry: &&ContextEntry| entry.gives() && self.facts(entry.place).usage.is_some();
        let from_end = context.entries.iter().rev().position(|e| reports(&e))?;
        let at = context.entries.len() - 1 - from_end;
        let place = context.entries[at].place;
        let invalidates = |kind| matches!(kind, EntryKind::ContextEdit | EntryKind::Compaction);
        if (place + 1..self.len()).any(|after| invalidates(self.facts(after).kind)) {
            return None;
        }
        let usage = self.facts(place).usage?;
        let trailing = context.entries[at + 1..].iter().map(|e| self.shown_tokens(e)).sum::<u64>();
        Some(Tokens { total: usage + trailing as f64, usage, trailing, usage_at: Some(place) })
    }

    /// The estimate of all messages that an entry of the context gives (S9.5).
    #[must_use]
    pub fn shown_tokens(&self, entry: &ContextEntry) -> u64 {
        let facts = self.facts(entry.place);
        match entry.shown {
            Shown::Nothing | Shown::Omitted { .. } => 0,
            Shown::AsIs if facts.kind == EntryKind::Compaction => {
                u64::from(facts.tokens) + u64::from(facts.more_tokens)
            }
            Shown::AsIs => u64::from(facts.tokens),
            Shown::Replaced { by } if facts.role == Role::Assistant => u64::from(self.facts(by).more_tokens),
            Shown::Replaced { by } => u64::from(self.facts(by).tokens),
        }
    }

    fn tokens_without_system(&self, entry: &ContextEntry) -> u64 {
        let facts = self.facts(entry.place);
        match facts.kind {
            EntryKind::Message if facts.role == Role::System => 0,
            EntryKind::Compaction if entry.gives() && facts.has_system => u64::from(facts.tokens),
            _ => self.shown_tokens(entry),
        }
    }

    /// The system messages in a context, replayed (S5.1).
    ///
    /// # Errors
    /// [`BranchError`] if one cannot be read back.
    pub fn system(&self, context: &Context) -> Result<Replay, BranchError> {
        let mut replay = Replay::default();
        context.entries.iter().try_for_each(|entry| self.add_system(entry, &mut replay))?;
        Ok(replay)
    }

    fn add_system(&self, entry: &ContextEntry, replay: &mut Replay) -> Result<(), BranchError> {
        let facts = self.facts(entry.place);
        let member = match facts.kind {
            EntryKind::Message if facts.role == Role::System => "message",
            EntryKind::Compaction if facts.has_system => "systemMessage",
            _ => return Ok(()),
        };
        if !entry.gives() {
            return Ok(());
        }
        self.read(entry.place, |line: Json<'_>| {
            if let Some(message) = line.get(member) {
                replay.add(message);
            }
        })
    }
}
