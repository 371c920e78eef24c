//! The branch as a plugin may see it: receipts left out, texts as the context shows them, each entry a small record.
//!
//! It is the branch as the run found it; what the run proposes is not seen in it, so places stay what they were. What is
//! worked out from the whole context or path is worked out once, when first asked for, and counted as work.
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use pi_session::Branch;
use pi_session::branch::{BranchError, Item};
use pi_session::context::{Context, ContextEntry, Shown};
use pi_session::entry::{EntryKind, IdIx, Replacement, Role};
use pi_session::json::Json;
use pi_session::receipt::{Receipt, is_hosts_own, is_receipt, receipt_at};

use super::contract::{Info, Page};

/// Entries in a page.
const MAX_PAGE: u32 = 256;
/// Bytes of the names in a page, about; hostile ids may be long.
const MAX_PAGE_BYTES: usize = 256 << 10;
/// Fuel for each entry that is walked over to work something out.
const ENTRY_WORK: u64 = 20;
/// Entries behind a new one that are looked at one by one.
const FEW: u32 = 64;
/// How far behind its receipt a graft can stand.
const MAX_BATCH: u32 = 64;
/// Grafts that may come of one another.
const MOST_LINKS: usize = 3;

/// A branch, and what was worked out of it.
pub(super) struct View {
    branch: Branch,
    trigger: u32,
    context: OnceCell<Context>,
    edits: OnceCell<HashMap<IdIx, u32>>,
    /// The text of the edited entry that was read last.
    pub(super) edited: Option<(u32, String)>,
    work: Cell<u64>,
}

/// How an edit changes an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edited {
    /// The place of the edit.
    pub(super) by: u32,
    /// It leaves the entry out.
    pub(super) omits: bool,
}

impl View {
    /// A view of a branch with at least one entry.
    pub(super) fn new(branch: Branch, trigger: u32) -> Self {
        let (context, edits) = (OnceCell::new(), OnceCell::new());
        Self { branch, trigger, context, edits, edited: None, work: Cell::new(0) }
    }

    pub(super) fn branch(&self) -> &Branch {
        &self.branch
    }

    /// The fuel that working things out has cost since this was asked last.
    pub(super) fn take_work(&self) -> u64 {
        self.work.take()
    }

    /// Adds the price of going over the context once.
    pub(super) fn add_context_work(&self) {
        self.add_work(self.context().entries.len());
    }

    fn add_work(&self, entries: usize) {
        self.work.set(self.work.get() + ENTRY_WORK * entries as u64);
    }

    /// The context.
    pub(super) fn context(&self) -> &Context {
        self.context.get_or_init(|| {
            let context = self.branch.context();
            self.add_work(context.entries.len());
            context
        })
    }

    /// The last edit of each target on the whole path. What an edit took out stays out when a compaction hides it.
    fn edits(&self) -> &HashMap<IdIx, u32> {
        self.edits.get_or_init(|| {
            self.add_work(self.branch.len() as usize);
            let edit = |item: Item<'_>| Some((item.facts.names?, item.place));
            let edits = self.branch.items().filter(|item| item.facts.kind == EntryKind::ContextEdit);
            edits.filter_map(edit).collect()
        })
    }

    /// The entry of the context at a place. Behind the first, which may be a compaction, they are sorted.
    fn in_context(&self, place: u32) -> Option<ContextEntry> {
        if self.is_plainly_shown(place) {
            let shown = if self.branch.facts(place).gives { Shown::AsIs } else { Shown::Nothing };
            return Some(ContextEntry { place, shown });
        }
        let (first, rest) = self.context().entries.split_first()?;
        if first.place == place {
            return Some(*first);
        }
        rest.binary_search_by_key(&place, |entry| entry.place).ok().map(|at| rest[at])
    }

    /// How the entry at a place is edited.
    pub(super) fn edit_of(&self, place: u32) -> Option<Edited> {
        match self.in_context(place).map(|entry| entry.shown) {
            Some(Shown::Omitted { by }) => return Some(Edited { by, omits: true }),
            Some(Shown::Replaced { by }) => return Some(Edited { by, omits: false }),
            Some(Shown::AsIs) => return None,
            Some(Shown::Nothing) | None => {}
        }
        let facts = self.branch.facts(place);
        // What is pending has no id, so nothing can have edited it.
        if !facts.gives || place >= self.branch.in_file() {
            return None;
        }
        let by = *self.edits().get(&facts.id)?;
        match self.branch.facts(by).replacement {
            Replacement::Omit => Some(Edited { by, omits: true }),
            Replacement::Content if facts.role.takes_replacement() => Some(Edited { by, omits: false }),
            _ => None,
        }
    }

    /// A new entry that nothing behind it edits or summarises: it is in the context as it stands, which is seen without
    /// working the context out.
    fn is_plainly_shown(&self, place: u32) -> bool {
        let id = self.branch.facts(place).id;
        let changes = |after: u32| {
            let facts = self.branch.facts(after);
            facts.kind == EntryKind::Compaction || facts.kind == EntryKind::ContextEdit && facts.names == Some(id)
        };
        self.branch.len() - place <= FEW && !(place + 1..self.branch.len()).any(changes)
    }

    /// Whether the entry at a place is an edit that a later one of the same target stands for.
    pub(super) fn is_superseded_edit(&self, place: u32) -> bool {
        let facts = self.branch.facts(place);
        let target = facts.names.filter(|_| facts.kind == EntryKind::ContextEdit);
        target.is_some_and(|target| self.edits().get(&target) != Some(&place))
    }

    /// The entry at a place, if a plugin may see it.
    pub(super) fn item(&self, place: u32) -> Option<Item<'_>> {
        (place < self.branch.len()).then(|| self.branch.item(place)).filter(|item| !is_hosts_own(item))
    }

    /// The record of an entry that [`View::item`] gives.
    pub(super) fn info(&self, item: &Item<'_>) -> Result<Info, BranchError> {
        let facts = item.facts;
        let edit = self.edit_of(item.place);
        let edited_by = edit.map(|edit| maker(&self.branch, edit.by)).transpose()?.map(Option::unwrap_or_default);
        Ok(Info {
            place: item.place,
            id: item.id.map(str::to_owned),
            parent: self.parent(item).map(str::to_owned),
            kind: kind(item).to_owned(),
            role: role(item).map(str::to_owned),
            custom_type: custom_type(item).map(str::to_owned),
            time_ms: facts.time_ms,
            tokens: self.tokens(item, edit),
            bytes: u64::from(edit.map_or(facts, |edit| self.branch.facts(edit.by)).len),
            shown: self.shown(item, edit).to_owned(),
            grafted_by: maker(&self.branch, item.place)?,
            edited_by,
            pending: item.pending.is_some(),
        })
    }

    /// The id of the nearest entry before it that a plugin may see.
    fn parent(&self, item: &Item<'_>) -> Option<&str> {
        let before = (0..item.place).rev().find_map(|place| self.item(place))?;
        before.id
    }

    fn tokens(&self, item: &Item<'_>, edit: Option<Edited>) -> u32 {
        let shown = match edit {
            None if !item.facts.gives => return 0,
            None => Shown::AsIs,
            Some(Edited { by, omits: true }) => Shown::Omitted { by },
            Some(Edited { by, omits: false }) => Shown::Replaced { by },
        };
        let tokens = self.branch.shown_tokens(&ContextEntry { place: item.place, shown });
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    fn shown(&self, item: &Item<'_>, edit: Option<Edited>) -> &'static str {
        match (self.in_context(item.place), edit) {
            _ if !item.facts.gives => "none",
            (None, _) => "hidden",
            (Some(entry), _) if entry.shown == Shown::Nothing => "hidden",
            (Some(_), None) => "as-is",
            (Some(_), Some(edit)) => {
                if edit.omits {
                    "omitted"
                } else {
                    "replaced"
                }
            }
        }
    }

    /// The record of the trigger.
    pub(super) fn trigger(&self) -> Result<Info, BranchError> {
        self.info(&self.branch.item(self.trigger))
    }

    /// The number of the trigger's line.
    pub(super) fn trigger_line(&self) -> u32 {
        self.branch.facts(self.trigger).line
    }

    /// The record of the newest entry.
    pub(super) fn leaf(&self) -> Result<Info, BranchError> {
        let leaf = (0..self.branch.len()).rev().find_map(|place| self.item(place));
        leaf.map_or_else(|| self.trigger(), |item| self.info(&item))
    }

    /// A page of the branch.
    pub(super) fn page(&self, before: Option<u32>, max: u32) -> Result<Page, BranchError> {
        let end = before.unwrap_or(u32::MAX).min(self.branch.len());
        self.fill((0..end).rev(), max)
    }

    /// A page of what gives messages.
    pub(super) fn projection(&self, before: Option<u32>, max: u32) -> Result<Page, BranchError> {
        let end = before.unwrap_or(u32::MAX);
        let (first, rest) = self.context().entries.split_first().map_or((None, &[][..]), |(f, r)| (Some(f), r));
        // The first may be a compaction, which stands before what it keeps; places stand in their own order here.
        let first_place = first.map_or(0, |entry| entry.place);
        let at = rest.partition_point(|entry| entry.place < first_place);
        let in_order = rest[at..].iter().rev().chain(first).chain(rest[..at].iter().rev());
        let places = in_order.filter(|entry| entry.gives()).map(|entry| entry.place);
        self.fill(places.skip_while(|place| *place >= end), max)
    }

    /// Fills a page with the first of these places that a plugin may see.
    fn fill(&self, places: impl Iterator<Item = u32>, max: u32) -> Result<Page, BranchError> {
        let max = max.clamp(1, MAX_PAGE) as usize;
        let (mut items, mut bytes) = (Vec::new(), 0);
        for item in places.filter_map(|place| self.item(place)) {
            if items.len() == max || bytes > MAX_PAGE_BYTES {
                let next = items.last().map(|info: &Info| info.place);
                return Ok(Page { items, next });
            }
            let info = self.info(&item)?;
            bytes += info.kind.len() + info.id.as_ref().map_or(0, String::len) + item.word.len();
            items.push(info);
        }
        Ok(Page { items, next: None })
    }

    /// The last `custom` of a type.
    pub(super) fn last_custom(&self, wanted: &str) -> Result<Option<Info>, BranchError> {
        let is_it = |item: &Item<'_>| item.facts.kind == EntryKind::Custom && item.word == wanted;
        let found = self.branch.items().rev().find(is_it).filter(|item| !is_hosts_own(item));
        let walked = self.branch.len() - found.map_or(0, |item| item.place);
        // A glance at each entry on the way costs less than working with it.
        self.add_work(walked as usize / 8);
        found.map(|item| self.info(&item)).transpose()
    }
}

/// The plugin that grafted or proposed the entry at a place of a branch; none for Pi's own and everybody else's.
///
/// # Errors
/// If the receipt before it cannot be read.
pub fn maker(branch: &Branch, place: u32) -> Result<Option<String>, BranchError> {
    match branch.item(place).pending {
        Some(origin) => Ok(Some(origin.plugin.clone())),
        None => Ok(receipt_of(branch, place)?.map(|receipt| receipt.plugin)),
    }
}

/// Whether the graft at a place is the last that a chain may have: it came from a graft that came from a graft (product.md
/// 4.3).
///
/// # Errors
/// If a receipt cannot be read.
pub(super) fn ends_chain(branch: &Branch, place: u32) -> Result<bool, BranchError> {
    let mut at = Some(place);
    for _ in 0..MOST_LINKS {
        let Some(place) = at else { return Ok(false) };
        let Some(receipt) = receipt_of(branch, place)? else { return Ok(false) };
        at = branch.place_of(&receipt.trigger);
    }
    Ok(true)
}

/// The receipt of the graft that the entry at a place belongs to.
fn receipt_of(branch: &Branch, place: u32) -> Result<Option<Receipt>, BranchError> {
    if branch.item(place).facts.kind == EntryKind::Compaction
        && let Some(inside) = receipt_at(branch, place)?
    {
        return Ok(Some(inside));
    }
    let nearest = place.saturating_sub(MAX_BATCH)..=place;
    for before in nearest.rev() {
        let item = branch.item(before);
        if is_receipt(&item) {
            let receipt = branch.read(before, |entry| entry.get("data").and_then(Receipt::parse))?;
            return Ok(receipt.filter(|receipt| before < place && place - before <= receipt.entries));
        }
        if !may_be_grafted(item.facts.kind) {
            break;
        }
    }
    Ok(None)
}

fn may_be_grafted(kind: EntryKind) -> bool {
    use EntryKind::{Compaction, ContextEdit, Custom, CustomMessage};
    matches!(kind, Custom | CustomMessage | Compaction | ContextEdit)
}

/// The type of an entry, as the file has it.
pub(super) fn kind<'a>(item: &Item<'a>) -> &'a str {
    if item.facts.kind == EntryKind::Other { item.word } else { item.facts.kind.as_str() }
}

/// The role of a message.
pub(super) fn role<'a>(item: &Item<'a>) -> Option<&'a str> {
    let role = if item.facts.role == Role::Other { item.word } else { item.facts.role.as_str() };
    (item.facts.kind == EntryKind::Message).then_some(role)
}

/// The `customType` of an entry.
pub(super) fn custom_type<'a>(item: &Item<'a>) -> Option<&'a str> {
    matches!(item.facts.kind, EntryKind::Custom | EntryKind::CustomMessage).then_some(item.word)
}

/// What an edited entry keeps: facts that an edit of its content cannot have meant.
const KEPT: [&str; 9] =
    ["type", "id", "parentId", "timestamp", "customType", "display", "firstKeptEntryId", "fromHook", "targetId"];
/// The same of its message.
const KEPT_OF_MESSAGE: [&str; 12] = [
    "role",
    "api",
    "provider",
    "model",
    "usage",
    "stopReason",
    "timestamp",
    "toolCallId",
    "toolName",
    "isError",
    "customType",
    "display",
];

/// An edited entry as the context shows it. `content` is JSON; without it the entry is left out.
pub(super) fn shown_text(entry: Json<'_>, content: Option<&str>) -> String {
    let mut out = keep(entry, &KEPT);
    match entry.get("message") {
        Some(message) => {
            let mut inner = keep(message, &KEPT_OF_MESSAGE);
            push_content(&mut inner, content);
            out.extend(["\"message\":", &inner, "},"]);
        }
        None => push_content(&mut out, content),
    }
    out.truncate(out.trim_end_matches(',').len());
    out.push('}');
    out
}

/// The beginning of an object with these members.
fn keep(object: Json<'_>, names: &[&str]) -> String {
    let mut out = String::from("{");
    for name in names {
        if let Some(value) = object.get(name) {
            out.extend(["\"", name, "\":", &value.to_text(), ","]);
        }
    }
    out
}

/// Its last member, if there is one.
fn push_content(out: &mut String, content: Option<&str>) {
    match content {
        Some(content) => out.extend(["\"content\":", content]),
        None => out.truncate(out.trim_end_matches(',').len()),
    }
}
