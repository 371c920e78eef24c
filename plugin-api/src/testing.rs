//! For a plugin's own tests: a [`Scene`] runs it in the real host; [`FakeHost`] is a host in memory, for the parts of it. That
//! one judges nothing: what the real host would refuse, it takes.
use std::cell::RefCell;

pub use crate::scene::{Asked, Failed, Logged, Ran, Refused, Scene, SceneError, Seen, Shown};

use crate::{
    Answer, Compaction, CustomMessage, Edit, Entry, Host, Info, Json, Level, Page, Piece, Plan, Refusal, Tokens,
};

/// A session of a few entries, and what a plugin did with it.
#[derive(Debug, Default)]
pub struct FakeHost {
    entries: Vec<(Info, String)>,
    /// What `compaction_plan` answers.
    pub plan: Option<Plan>,
    /// What `context_tokens` answers.
    pub tokens: Option<Tokens>,
    /// What `model_facts` answers.
    pub model_facts: Option<String>,
    /// What `usage_totals` answers.
    pub usage_totals: Option<String>,
    /// What `pi_compaction` answers.
    pub pi_compaction: Option<String>,
    /// What `complete` answers.
    pub answer: Option<Result<Answer, Refusal>>,
    /// The custom entries that were proposed: type and data.
    pub customs: RefCell<Vec<(String, Option<Json>)>>,
    /// The messages that were proposed.
    pub messages: RefCell<Vec<CustomMessage>>,
    /// The compactions that were proposed.
    pub compactions: RefCell<Vec<Compaction>>,
    /// The edits that were proposed.
    pub edits: RefCell<Vec<Edit>>,
    /// The last note to `later`.
    pub note: RefCell<Option<String>>,
    /// The log.
    pub logs: RefCell<Vec<(Level, String)>>,
}

impl FakeHost {
    /// A session with these entries, one JSON each, root first. An entry's tokens are its bytes over four.
    ///
    /// # Panics
    /// If one is no entry.
    #[must_use]
    pub fn new(entries: &[&str]) -> Self {
        let mut host = Self::default();
        for text in entries {
            let entry: Entry = crate::json::read(text).unwrap_or_else(|error| panic!("{error} in {text}"));
            let info = host.info(entry, text);
            host.entries.push((info, (*text).into()));
        }
        host
    }

    /// Changes what is said of the entry at a place: whether it is pending, when it was made, how it is shown.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn change(&mut self, place: usize, change: impl FnOnce(&mut Info)) {
        change(&mut self.entries[place].0);
    }

    fn info(&self, entry: Entry, text: &str) -> Info {
        let gives = matches!(entry.kind.as_str(), "message" | "custom_message" | "compaction" | "branch_summary");
        Info {
            place: u32::try_from(self.entries.len()).unwrap_or(u32::MAX),
            id: entry.id,
            parent: self.entries.last().and_then(|(info, _)| info.id.clone()),
            kind: entry.kind,
            role: entry.message.map(|message| message.role),
            custom_type: entry.custom_type,
            time_ms: None,
            tokens: if gives { u32::try_from(text.len() / 4).unwrap_or(u32::MAX) } else { 0 },
            bytes: text.len() as u64,
            shown: if gives { "as-is" } else { "none" }.into(),
            grafted_by: None,
            edited_by: None,
            pending: false,
        }
    }

    fn page(&self, before: Option<u32>, max: u32, wanted: impl Fn(&Info) -> bool) -> Page {
        let before = before.map_or(self.entries.len(), |place| place as usize).min(self.entries.len());
        let mut all = self.entries[..before].iter().rev().map(|(info, _)| info).filter(|info| wanted(info));
        let items: Vec<_> = all.by_ref().take(max as usize).cloned().collect();
        let next = all.next().and(items.last()).map(|info| info.place);
        Page { items, next }
    }

    fn last(&self, wanted: impl Fn(&Info) -> bool) -> Option<Info> {
        self.page(None, 1, wanted).items.pop()
    }
}

impl Host for FakeHost {
    fn header(&self) -> String {
        r#"{"type":"session","version":3,"id":"test"}"#.into()
    }
    fn trigger(&self) -> Info {
        self.leaf()
    }
    fn leaf(&self) -> Info {
        self.last(|_| true).expect("a test session has an entry")
    }
    fn branch(&self, before: Option<u32>, max: u32) -> Page {
        self.page(before, max, |_| true)
    }
    fn projection(&self, before: Option<u32>, max: u32) -> Page {
        self.page(before, max, |info| matches!(info.shown.as_str(), "as-is" | "replaced"))
    }
    fn text(&self, place: u32, offset: u64, max: u32) -> Result<Piece, Refusal> {
        let refused = || Refusal { rule: "place".into(), message: "no such entry".into() };
        let (_, text) = self.entries.get(place as usize).ok_or_else(refused)?;
        let rest = usize::try_from(offset).ok().and_then(|at| text.get(at..)).unwrap_or_default();
        let piece = &rest[..rest.floor_char_boundary((max as usize).clamp(4, 65_536))];
        let next = (piece.len() < rest.len()).then_some(offset + piece.len() as u64);
        Ok(Piece { text: piece.into(), next })
    }
    fn raw(&self, place: u32, offset: u64, max: u32) -> Result<Piece, Refusal> {
        self.text(place, offset, max)
    }
    fn by_id(&self, id: &str) -> Option<Info> {
        self.last(|info| info.id.as_deref() == Some(id))
    }
    fn last_custom(&self, custom_type: &str) -> Option<Info> {
        self.last(|info| info.kind == "custom" && info.custom_type.as_deref() == Some(custom_type))
    }
    fn context_tokens(&self) -> Tokens {
        let estimate: u64 = self.entries.iter().map(|(info, _)| u64::from(info.tokens)).sum();
        self.tokens.unwrap_or(Tokens { in_file: estimate, with_pending: estimate, reported: None })
    }
    fn usage_totals(&self) -> String {
        self.usage_totals.clone().unwrap_or_else(|| "{}".into())
    }
    fn model_facts(&self) -> Option<String> {
        self.model_facts.clone()
    }
    fn pi_compaction(&self) -> String {
        let settings = r#"{"enabled":true,"reserveTokens":16384,"keepRecentTokens":20000}"#;
        self.pi_compaction.clone().unwrap_or_else(|| settings.into())
    }
    fn compaction_plan(&self, _reserve: Option<u64>, _keep: Option<u64>) -> Option<Plan> {
        self.plan.clone()
    }
    fn custom(&self, custom_type: &str, data: Option<&Json>) -> Result<(), Refusal> {
        self.customs.borrow_mut().push((custom_type.into(), data.cloned()));
        Ok(())
    }
    fn custom_message(&self, message: &CustomMessage) -> Result<(), Refusal> {
        self.messages.borrow_mut().push(message.clone());
        Ok(())
    }
    fn compaction(&self, compaction: &Compaction) -> Result<(), Refusal> {
        self.compactions.borrow_mut().push(compaction.clone());
        Ok(())
    }
    fn context_edits(&self, edits: &[Edit]) -> Vec<Result<(), Refusal>> {
        self.edits.borrow_mut().extend_from_slice(edits);
        edits.iter().map(|_| Ok(())).collect()
    }
    fn later(&self, note: &str) -> Result<(), Refusal> {
        *self.note.borrow_mut() = Some(note.into());
        Ok(())
    }
    fn complete(&self, _name: &str, _request: &str) -> Result<Answer, Refusal> {
        let refused = || Refusal { rule: "model".into(), message: "this test has no model".into() };
        self.answer.clone().unwrap_or_else(|| Err(refused()))
    }
    fn log(&self, level: Level, text: &str) {
        self.logs.borrow_mut().push((level, text.into()));
    }
}
