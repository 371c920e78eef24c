//! Where a compaction would cut, and what it would summarise: the plan, as Pi makes it (S10).

use std::collections::HashSet;

use crate::branch::{Branch, BranchError};
use crate::context::{ContextEntry, Shown};
use crate::entry::{EntryKind, IdIx, Replacement, Role};
use crate::json::Json;
use crate::paths::Files;
use crate::tree::KeptFile;

/// Pi's two numbers (S10.1, S10.2), tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanSettings {
    /// Room that is kept free in the context window.
    pub reserve: u64,
    /// What stays of the newest part.
    pub keep_recent: u64,
}

impl Default for PlanSettings {
    fn default() -> PlanSettings {
        PlanSettings { reserve: 16_384, keep_recent: 20_000 }
    }
}

/// A compaction that could be made now.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The first entry that is kept.
    pub first_kept_id: String,
    /// Its place on the branch.
    pub first_kept_place: u32,
    /// The cut lies inside a turn, whose beginning is summarised apart.
    pub split_turn: bool,
    /// Tokens of the context now (S9.6).
    pub tokens_before: f64,
    /// Summary of the compaction in force, as JSON text.
    pub previous_summary: Option<String>,
    /// Its `details`, whoever made it, as JSON text.
    pub previous_details: Option<String>,
    /// Places of the entries whose messages are summarised.
    pub to_summarize: Vec<u32>,
    /// Places of those at the beginning of a split turn.
    pub turn_prefix: Vec<u32>,
    /// Files that were read and not modified, sorted (S10.5).
    pub read_files: Vec<String>,
    /// Files that were written or edited, sorted.
    pub modified_files: Vec<String>,
}

struct Cut {
    first_kept: usize,
    turn_start: Option<usize>,
}

impl Branch {
    /// The compaction of this branch that is to be made now; none if there is nothing to summarise (S10.3).
    ///
    /// # Errors
    /// [`BranchError`] if what is summarised cannot be read back.
    pub fn plan(&self, settings: &PlanSettings) -> Result<Option<Plan>, BranchError> {
        let last = self.len().checked_sub(1).map(|place| self.facts(place).kind);
        if last.is_none_or(|kind| kind == EntryKind::Compaction) {
            return Ok(None);
        }
        let context = self.context();
        let view = View { branch: self, entries: &context.entries };
        let previous = view.entries.first().filter(|e| view.kind(e) == EntryKind::Compaction && e.gives());
        let start = usize::from(previous.is_some());
        let cut = view.cut(start, settings.keep_recent);
        let Some(kept) = view.entries.get(cut.first_kept) else {
            return Ok(None);
        };
        let Some(first_kept_id) = self.item(kept.place).id.map(str::to_owned) else {
            return Ok(None);
        };
        let to_summarize = view.conversation(start, cut.turn_start.unwrap_or(cut.first_kept));
        let turn_prefix = cut.turn_start.map_or_else(Vec::new, |turn| view.conversation(turn, cut.first_kept));
        if to_summarize.is_empty() && turn_prefix.is_empty() {
            return Ok(None);
        }
        let mut files = Files::default();
        view.add_files(&mut files, start..cut.first_kept)?;
        let (previous_summary, previous_details) = match previous {
            Some(entry) => self.previous(entry.place, &mut files)?,
            None => (None, None),
        };
        let (read_files, modified_files) = files.lists();
        Ok(Some(Plan {
            first_kept_id,
            first_kept_place: kept.place,
            split_turn: cut.turn_start.is_some(),
            tokens_before: self.tokens(&context)?.total,
            previous_summary,
            previous_details,
            to_summarize,
            turn_prefix,
            read_files,
            modified_files,
        }))
    }

    /// Summary and details of the compaction in force; the file lists of one that Pi made count on (S10.5).
    fn previous(&self, place: u32, files: &mut Files) -> Result<(Option<String>, Option<String>), BranchError> {
        let from_hook = self.facts(place).from_hook;
        self.read(place, |line| {
            let details = line.get("details").filter(|d| d.is_truthy());
            if let Some(details) = details.filter(|_| !from_hook) {
                files.read.extend(texts(details.get("readFiles")));
                files.modified.extend(texts(details.get("modifiedFiles")));
            }
            let text = |json: Json<'_>| json.to_text().into_owned();
            (line.get("summary").map(text), details.map(text))
        })
    }
}

fn texts(list: Option<Json<'_>>) -> impl Iterator<Item = String> {
    list.into_iter().flat_map(Json::items).filter_map(|item| item.as_str().map(|t| t.into_owned()))
}

/// The context, looked at for a cut.
struct View<'b> {
    branch: &'b Branch,
    entries: &'b [ContextEntry],
}

impl View<'_> {
    fn kind(&self, entry: &ContextEntry) -> EntryKind {
        self.branch.facts(entry.place).kind
    }

    fn role(&self, entry: &ContextEntry) -> Role {
        self.branch.facts(entry.place).role
    }

    fn is_compaction(&self, entry: &ContextEntry) -> bool {
        self.kind(entry) == EntryKind::Compaction
    }

    fn allows_cut(&self, entry: &ContextEntry) -> bool {
        entry.gives() && !self.is_compaction(entry) && self.role(entry).allows_cut()
    }

    fn starts_turn(&self, entry: &ContextEntry) -> bool {
        entry.gives() && !self.is_compaction(entry) && self.role(entry).starts_turn()
    }

    /// Finds the cut at or behind `start` (S10.2).
    fn cut(&self, start: usize, keep: u64) -> Cut {
        let allowed: Vec<usize> = (start..self.entries.len()).filter(|i| self.allows_cut(&self.entries[*i])).collect();
        let Some(first) = allowed.first().copied() else {
            return Cut { first_kept: start, turn_start: None };
        };
        let mut at = first;
        if let Some(reached) = self.keep_reached(start, keep) {
            at = allowed.iter().copied().find(|i| *i >= reached).unwrap_or(allowed[allowed.len() - 1]);
            if self.only_omitted_attempts_behind(at) {
                at += 1;
            }
        }
        while at > start && !self.stops_at(&self.entries[at - 1]) {
            at -= 1;
        }
        let turn_start = match self.entries.get(at) {
            Some(entry) if !self.starts_turn(entry) => (start..=at).rev().find(|i| self.starts_turn(&self.entries[*i])),
            _ => None,
        };
        Cut { first_kept: at, turn_start }
    }

    /// The place, from the end back, where keep-recent is reached.
    fn keep_reached(&self, start: usize, keep: u64) -> Option<usize> {
        let mut sum = 0;
        (start..self.entries.len()).rev().find(|i| {
            let tokens = self.branch.shown_tokens(&self.entries[*i]);
            sum += tokens;
            tokens > 0 && sum >= keep
        })
    }

    fn stops_at(&self, entry: &ContextEntry) -> bool {
        self.is_compaction(entry) || entry.gives()
    }

    /// What stands behind the cut gives no message, and an omitted assistant message is among it: a failed attempt that
    /// recovery took out stays out (S10.2).
    fn only_omitted_attempts_behind(&self, at: usize) -> bool {
        let suffix = &self.entries[at + 1..];
        let omitted = |e: &ContextEntry| matches!(e.shown, Shown::Omitted { .. });
        let attempt =
            |e: &ContextEntry| omitted(e) && self.kind(e) == EntryKind::Message && self.role(e) == Role::Assistant;
        let closed = |e: &ContextEntry| !self.is_compaction(e) && !e.gives();
        suffix.iter().any(attempt) && suffix.iter().all(closed) && !self.replaces_outside(suffix)
    }

    /// An edit among these replaces something that is not itself omitted among them.
    fn replaces_outside(&self, suffix: &[ContextEntry]) -> bool {
        let omitted: HashSet<IdIx> = suffix
            .iter()
            .filter(|e| matches!(e.shown, Shown::Omitted { .. }))
            .map(|e| self.branch.facts(e.place).id)
            .collect();
        suffix.iter().map(|e| self.branch.facts(e.place)).any(|facts| {
            facts.kind == EntryKind::ContextEdit
                && facts.replacement != Replacement::Omit
                && facts.names.is_none_or(|target| !omitted.contains(&target))
        })
    }

    /// Places of the entries that give conversation: not prompts, not compactions.
    fn conversation(&self, from: usize, to: usize) -> Vec<u32> {
        let counts = |e: &&ContextEntry| e.gives() && !self.is_compaction(e) && self.role(e) != Role::System;
        self.entries.get(from..to).unwrap_or_default().iter().filter(counts).map(|e| e.place).collect()
    }

    fn add_files(&self, files: &mut Files, range: std::ops::Range<usize>) -> Result<(), BranchError> {
        let mut kept = Vec::new();
        for entry in self.entries.get(range).unwrap_or_default() {
            let facts = self.branch.facts(entry.place);
            match (entry.shown, facts.role) {
                (Shown::Replaced { by }, Role::Assistant) => self.add_files_of(by, files, &mut kept)?,
                (Shown::AsIs, Role::Assistant) | (Shown::AsIs | Shown::Replaced { .. }, Role::ToolResult)
                    if facts.calls =>
                {
                    self.add_files_of(entry.place, files, &mut kept)?;
                }
                _ => {}
            }
        }
        // The same few files come again and again.
        kept.sort_unstable();
        kept.dedup();
        kept.into_iter().for_each(|file| files.add(self.branch.tree().path_of(file), file.modified));
        Ok(())
    }

    /// The files of the entry at a place, from the index; of one that is not in the file, or names too many, from its line.
    fn add_files_of(&self, place: u32, files: &mut Files, kept: &mut Vec<KeptFile>) -> Result<(), BranchError> {
        if let Some(known) = self.branch.entry_at(place).and_then(|ix| self.branch.tree().files(ix)) {
            kept.extend(known);
            return Ok(());
        }
        let (line, facts) = (self.branch.text(place)?, self.branch.facts(place));
        files.add_line(facts, &line).map_err(|reason| BranchError::Changed { offset: facts.offset, reason })
    }
}

/// A compaction is due (S10.1): `tokens` is over the window less the reserve.
#[must_use]
pub fn is_due(tokens: f64, window: u64, settings: &PlanSettings) -> bool {
    tokens > window as f64 - settings.reserve as f64
}
