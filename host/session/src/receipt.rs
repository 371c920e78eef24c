//! Receipts: what a batch in the file says of itself, and how a batch is recognised behind one (product 4.5).
//!
//! A receipt is a `custom` entry of type `pi-graft.run`; the drafts of its batch follow it. Exactly-once rests
//! on it alone: it is there in a clone, on another machine and after a lost store. A count proves nothing, since
//! others may cut or reorder what Pi is handed, so a draft counts as there if an entry equals it in type and
//! content. Where the drafts are not known any more, the receipt's own sum of their contents tells.

use crate::branch::{Branch, BranchError, Item};
use crate::draft::{Draft, RECEIPT_TYPE};
use crate::entry::EntryKind;
use crate::grafts::REJOIN_TYPE;
use crate::json::{Json, Kind, quoted};
use crate::strict::canonical;

/// Where in a compaction's `details` its receipt stands.
const INSIDE: &str = "pi-graft";

/// The `data` of a receipt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Receipt {
    /// The batch's id.
    pub batch: String,
    /// Name of the plugin in the config.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Digest of its component.
    pub digest: String,
    /// `on-entry` or `on-settled`.
    pub handler: String,
    /// Why it ran.
    pub reason: String,
    /// Id of the entry that it ran on.
    pub trigger: String,
    /// How many entries follow; set when composing.
    pub entries: u32,
    /// Sum of their contents ([`content_sum`]); set when composing, absent where Pi gave no room for it.
    pub content: Option<String>,
    /// Id of the batch of which this one holds what was missing.
    pub continues: Option<String>,
}

impl Receipt {
    /// The receipt in the `data` of an entry; `None` if it is none.
    pub fn parse(data: Json<'_>) -> Option<Receipt> {
        let text = |key: &str| Some(data.get(key)?.as_str()?.into_owned());
        Some(Receipt {
            batch: text("batch")?,
            plugin: text("plugin")?,
            version: text("version").unwrap_or_default(),
            digest: text("digest").unwrap_or_default(),
            handler: text("handler")?,
            reason: text("reason").unwrap_or_default(),
            trigger: text("trigger")?,
            entries: count(data.get("entries")?)?,
            content: text("content"),
            continues: text("continues"),
        })
    }

    /// The receipt that an entry is, or that stands in the `details` of one that a bridge handed to Pi.
    pub fn of_entry(entry: Json<'_>) -> Option<Receipt> {
        match &*entry.get("type")?.as_str()? {
            "custom" if entry.get("customType")?.as_str()? == RECEIPT_TYPE => Receipt::parse(entry.get("data")?),
            "compaction" => Receipt::parse(entry.get("details")?.get(INSIDE)?),
            _ => None,
        }
    }

    /// The same as JSON.
    pub fn to_json(&self) -> String {
        let texts = [
            ("batch", Some(&self.batch)),
            ("plugin", Some(&self.plugin)),
            ("version", Some(&self.version)),
            ("digest", Some(&self.digest)),
            ("handler", Some(&self.handler)),
            ("reason", Some(&self.reason)),
            ("trigger", Some(&self.trigger)),
            ("content", self.content.as_ref()),
            ("continues", self.continues.as_ref()),
        ];
        let given = texts.iter().filter_map(|(key, text)| Some(format!("\"{key}\":{},", quoted(text.as_ref()?))));
        format!("{{{}\"entries\":{}}}", given.collect::<String>(), self.entries)
    }

    /// Whether it stands for a run of this plugin's handler on this trigger.
    pub fn is_of(&self, plugin: &str, handler: &str, trigger: &str) -> bool {
        self.plugin == plugin && self.handler == handler && self.trigger == trigger
    }

    /// Says how many drafts follow, and what they add up to.
    pub(crate) fn of_drafts(mut self, drafts: &[Draft]) -> Receipt {
        self.entries = u32::try_from(drafts.len()).unwrap_or(u32::MAX);
        self.content = content_sum(drafts);
        self
    }
}

/// A whole number that is not negative.
fn count(json: Json<'_>) -> Option<u32> {
    let number = json.as_f64()?;
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u32)
}

/// A receipt on a branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its place on the branch.
    pub place: u32,
    /// What it says.
    pub receipt: Receipt,
    /// Whether the entries behind it are, by its own sum of their contents, what it speaks of.
    pub complete: bool,
    /// The last place of what is there of it, up to what its receipt counts; its own, if nothing is, or if it stands in the
    /// `details` of a compaction that a bridge handed to Pi.
    pub last: u32,
}

impl Found {
    /// The places of the receipt and of what is there of its drafts.
    pub fn places(&self) -> std::ops::RangeInclusive<u32> {
        self.place..=self.last
    }
}

/// The receipts behind `place` (all, if `None`) that are in the file, root first.
///
/// A receipt stands behind its trigger, so what is asked of a new entry costs what came after it.
pub fn receipts(branch: &Branch, behind: Option<u32>) -> Result<Vec<Found>, BranchError> {
    let mut found = Vec::new();
    for place in behind.map_or(0, |place| place + 1)..branch.len() {
        if let Some(receipt) = receipt_at(branch, place)? {
            let last = places_behind(branch, place, receipt.entries as usize).last().unwrap_or(place);
            let complete = is_complete(branch, place, &receipt)?;
            found.push(Found { place, receipt, complete, last });
        }
    }
    Ok(found)
}

/// The receipts of this plugin's handler for this trigger; none where the trigger is not on the branch.
pub fn receipts_of(branch: &Branch, plugin: &str, handler: &str, trigger: &str) -> Result<Vec<Found>, BranchError> {
    let Some(place) = branch.place_of(trigger) else { return Ok(Vec::new()) };
    let mut found = receipts(branch, Some(place))?;
    found.retain(|found| found.receipt.is_of(plugin, handler, trigger));
    Ok(found)
}

/// Those of `drafts` that are not behind the receipt at `place`, by their index.
pub fn missing(branch: &Branch, place: u32, drafts: &[Draft]) -> Result<Vec<u32>, BranchError> {
    missing_behind(branch, &[place], drafts)
}

/// Those of `drafts` that are behind none of the receipts at `places` (a batch, and what continues it), by their index.
pub fn missing_behind(branch: &Branch, places: &[u32], drafts: &[Draft]) -> Result<Vec<u32>, BranchError> {
    let mut there = Vec::new();
    for place in places {
        there.extend(contents_behind(branch, *place, usize::MAX)?);
    }
    let mut missing = Vec::new();
    for (index, draft) in (0..).zip(drafts) {
        let content = content_of_draft(draft);
        match there.iter().position(|entry| entry.is_some() && *entry == content) {
            Some(at) => drop(there.swap_remove(at)),
            None => missing.push(index),
        }
    }
    Ok(missing)
}

/// The receipt at `place`, if one stands there: as an entry, or in a compaction's `details`.
///
/// # Errors
/// If the entry cannot be read.
pub fn receipt_at(branch: &Branch, place: u32) -> Result<Option<Receipt>, BranchError> {
    let item = branch.item(place);
    let may_be = is_receipt(&item) || (item.id.is_some() && item.facts.kind == EntryKind::Compaction);
    if may_be { branch.read(place, Receipt::of_entry) } else { Ok(None) }
}

/// The receipt at `place` and the drafts behind it that are in the file, as JSON: what a graft was made of, told by itself.
pub fn drafts_at(branch: &Branch, place: u32) -> Result<Option<(Receipt, Vec<String>)>, BranchError> {
    let Some(receipt) = receipt_at(branch, place)? else { return Ok(None) };
    let mut drafts = Vec::new();
    for place in places_behind(branch, place, receipt.entries as usize) {
        drafts.extend(branch.read(place, draft_of)?);
    }
    Ok(Some((receipt, drafts)))
}

/// Whether the entry is a receipt, and in the file.
pub fn is_receipt(item: &Item<'_>) -> bool {
    item.id.is_some() && item.facts.kind == EntryKind::Custom && item.word == RECEIPT_TYPE
}

/// Whether the entry is the host's own, and in the file: a receipt, or what leads back to a branch. It wakes nobody, and
/// plugins do not see it.
pub fn is_hosts_own(item: &Item<'_>) -> bool {
    is_receipt(item) || (item.id.is_some() && item.facts.kind == EntryKind::Custom && item.word == REJOIN_TYPE)
}

/// Whether what stands behind the receipt is all that it speaks of.
fn is_complete(branch: &Branch, place: u32, receipt: &Receipt) -> Result<bool, BranchError> {
    Ok(is_whole(receipt, contents_behind(branch, place, receipt.entries as usize)?))
}

/// Contents of the entries directly behind `place` that could be a batch's, at most `max`; of a compaction that holds its
/// receipt itself, its own.
fn contents_behind(branch: &Branch, place: u32, max: usize) -> Result<Vec<Option<String>>, BranchError> {
    places_behind(branch, place, max).map(|place| branch.read(place, content)).collect()
}

/// The places of the entries directly behind the receipt at `place` that could be its batch's, at most `max`; of a compaction
/// that holds its receipt itself, its own.
pub(crate) fn places_behind(branch: &Branch, place: u32, max: usize) -> impl Iterator<Item = u32> {
    let inside = branch.facts(place).kind == EntryKind::Compaction;
    let first = if inside { place } else { place + 1 };
    let end = if inside { first + 1 } else { branch.in_file() };
    let is_drafts = |place: &u32| {
        let item = branch.item(*place);
        !is_receipt(&item) && may_be_grafted(item.facts.kind)
    };
    (first..end).take(max).take_while(is_drafts)
}

/// Whether an entry of this type may stand in a batch (S12.1).
pub(crate) fn may_be_grafted(kind: EntryKind) -> bool {
    use EntryKind::{Compaction, ContextEdit, Custom, CustomMessage};
    matches!(kind, Custom | CustomMessage | Compaction | ContextEdit)
}

/// The members that an entry has from its draft.
///
/// Not among them: id, parent, time, and what the host or Pi counts.
fn members_of(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "custom" => &["customType", "data"],
        "custom_message" => &["customType", "content", "display", "details"],
        "compaction" => &["summary", "firstKeptEntryId", "details", "usage"],
        "context_edit" => &["targetId", "replacement"],
        _ => return None,
    })
}

/// What an entry and the draft it came from have in common, in one spelling: equal if one came from the other. None where it
/// is of a type that is never grafted. A compaction that keeps none names itself.
pub fn content(entry: Json<'_>) -> Option<String> {
    let kind = entry.get("type")?.as_str()?;
    let own_id = entry.get("id").and_then(|id| id.as_str());
    let mut out = kind.clone().into_owned();
    for field in members_of(&kind)? {
        out.push('\n');
        let value = entry.get(field).filter(|value| *field != "firstKeptEntryId" || value.as_str() != own_id);
        let value = value.filter(|value| *field != "firstKeptEntryId" || value.kind() != Kind::Null);
        out.push_str(&match value {
            None => String::new(),
            Some(value) if kind == "compaction" && *field == "details" => canonical_details(value)?,
            Some(value) => canonical(value)?,
        });
    }
    Some(out)
}

/// A compaction's details in one spelling, without the receipt that may stand in them.
fn canonical_details(details: Json<'_>) -> Option<String> {
    let own = own_details(details)?;
    if own == "null" { Some(String::new()) } else { canonical(Json::parse(own.as_bytes()).ok()?) }
}

/// The details of a compaction without the receipt that may stand in them; `null` where there was nothing else.
fn own_details(details: Json<'_>) -> Option<String> {
    if details.get(INSIDE).is_none() {
        return Some(details.to_text().into_owned());
    }
    let own: Vec<_> = details.members().filter(|(key, _)| !key.is(INSIDE)).collect();
    match &own[..] {
        [] => Some("null".to_owned()),
        // Details that were no object were put there.
        [(key, value)] if key.is("details") && value.kind() != Kind::Object => Some(value.to_text().into_owned()),
        own => {
            let members = own.iter().map(|(key, value)| format!("{}:{}", quoted(&key.text()), value.to_text()));
            Some(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
        }
    }
}

/// The draft that an entry came from, as JSON.
pub(crate) fn draft_of(entry: Json<'_>) -> Option<String> {
    let kind = entry.get("type")?.as_str()?;
    let own_id = entry.get("id").and_then(|id| id.as_str());
    let mut out = format!("{{\"type\":{}", quoted(&kind));
    for field in members_of(&kind)? {
        let Some(value) = entry.get(field) else { continue };
        let text = match *field {
            "firstKeptEntryId" if value.as_str() == own_id => "null".into(),
            "details" if kind == "compaction" => own_details(value)?.into(),
            _ => value.to_text(),
        };
        out.push_str(&format!(",{}:{text}", quoted(field)));
    }
    Some(out + "}")
}

/// The same of a draft.
fn content_of_draft(draft: &Draft) -> Option<String> {
    content(Json::parse(draft.to_json().as_bytes()).ok()?)
}

/// A short sum of what `drafts` hold, whatever their order: 16 hexadecimal digits.
///
/// It guards against what others do to a list by accident, not against forgery.
pub fn content_sum(drafts: &[Draft]) -> Option<String> {
    sum(drafts.iter().map(content_of_draft))
}

/// Adds up the 64-bit FNV-1a hashes of `contents`.
fn sum(mut contents: impl Iterator<Item = Option<String>>) -> Option<String> {
    let total = contents.try_fold(0u64, |total, content| Some(total.wrapping_add(fnv(content?.as_bytes()))));
    total.map(|total| format!("{total:016x}"))
}

/// The 64-bit FNV-1a hash.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Finds whole batches among lines that pass by in the file's order.
///
/// What stands between the lines of a batch and could not be in one is passed over.
#[derive(Debug, Default)]
pub struct Passing {
    /// A receipt, the contents behind it, and how many lines may yet pass.
    open: Option<(Receipt, Vec<Option<String>>, u32)>,
}

/// Lines of others that may stand among those of a batch; more are not looked at.
const AMONG: u32 = 8;

impl Passing {
    /// Whether the next line may belong to the receipt that passed last.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes the next line; the receipt of the batch that is whole with it. Costs nothing for a line that has nothing to do
    /// with a graft.
    pub fn pass(&mut self, line: &[u8]) -> Option<Receipt> {
        let named = memchr::memmem::find(line, b"pi-graft").is_some();
        if self.open.is_none() && !named {
            return None;
        }
        let entry = Json::parse(line).ok()?;
        match Receipt::of_entry(entry).filter(|_| named) {
            Some(receipt) if entry.get("summary").is_some() => {
                return is_whole(&receipt, vec![content(entry)]).then_some(receipt);
            }
            Some(receipt) => self.open = Some((receipt.clone(), Vec::new(), receipt.entries.saturating_add(AMONG))),
            None => self.take(entry),
        }
        let (receipt, contents, left) = self.open.as_ref()?;
        if *left > 0 && contents.len() < receipt.entries as usize {
            return None;
        }
        let (receipt, contents, _) = self.open.take()?;
        is_whole(&receipt, contents).then_some(receipt)
    }

    fn take(&mut self, entry: Json<'_>) {
        let Some((_, contents, left)) = &mut self.open else { return };
        contents.extend(content(entry).map(Some));
        *left = left.saturating_sub(1);
    }
}

/// Whether these contents are all that a receipt speaks of.
pub(crate) fn is_whole(receipt: &Receipt, contents: Vec<Option<String>>) -> bool {
    let all_there = contents.len() == receipt.entries as usize;
    all_there && (receipt.content.is_none() || receipt.content == sum(contents.into_iter()))
}
