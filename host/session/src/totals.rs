//! What a session has used: tokens and cost, over the whole file and all branches, whatever context edits say (S4.5).

use std::collections::BTreeMap;

use crate::entry::{Entry, EntryKind, Role};
use crate::json::Json;
use crate::time::iso;
use crate::walk::{Found, Reported};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Sums of usage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Input tokens.
    pub input: f64,
    /// Output tokens, reasoning included.
    pub output: f64,
    /// Tokens read from the provider's cache.
    pub cache_read: f64,
    /// Tokens written to it.
    pub cache_write: f64,
    /// Cost, in the currency of the prices (US dollars in Pi).
    pub cost: f64,
}

impl Usage {
    fn of(reported: Reported) -> Usage {
        let sure = |number: Option<f64>| number.filter(|n| n.is_finite()).unwrap_or(0.0);
        Usage {
            input: sure(reported.input),
            output: sure(reported.output),
            cache_read: sure(reported.cache_read),
            cache_write: sure(reported.cache_write),
            cost: sure(reported.cost),
        }
    }

    fn add(&mut self, other: &Usage) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost += other.cost;
    }
}

/// What one entry added.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The number of its line.
    pub line: u32,
    /// How much.
    pub usage: Usage,
    /// The model, named as in [`Totals::by_model`].
    pub model: String,
    /// The day, counted as in [`Totals::by_day`].
    pub day: Option<i64>,
}

/// Totals of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Everything.
    pub all: Usage,
    /// By `provider/model`; what names no model stands under the empty name.
    pub by_model: BTreeMap<String, Usage>,
    /// By the day of the entry's time (UTC), in days since 1970-01-01; an entry without a time is in none.
    pub by_day: BTreeMap<i64, Usage>,
    /// What was counted last.
    pub last: Option<Counted>,
}

impl Totals {
    pub(crate) fn add(&mut self, entry: &Entry, found: &Found<'_>) {
        let counted = match (entry.kind, entry.role, found.message) {
            (EntryKind::Message, Role::Assistant, Some(m)) => m.usage.reported().map(|u| (u, m.provider, m.model)),
            (EntryKind::Message, Role::ToolResult, Some(m)) => m.usage.reported().map(|u| (u, None, None)),
            (EntryKind::Usage, ..) => found.usage.reported().map(|u| (u, found.provider, found.model)),
            (EntryKind::Compaction | EntryKind::BranchSummary, ..) => found.usage.reported().map(|u| (u, None, None)),
            _ => None,
        };
        if let Some((usage, provider, model)) = counted {
            let usage = Usage::of(usage);
            let model = model_name(provider, model);
            self.count(Counted { line: entry.line, usage, model, day: entry.time_ms.map(day_of) });
        }
    }

    fn count(&mut self, counted: Counted) {
        let usage = &counted.usage;
        self.all.add(usage);
        match self.by_model.get_mut(&counted.model) {
            Some(known) => known.add(usage),
            None => drop(self.by_model.insert(counted.model.clone(), *usage)),
        }
        if let Some(day) = counted.day {
            self.by_day.entry(day).or_default().add(usage);
        }
        self.last = Some(counted);
    }
}

/// The name of a day of [`Totals::by_day`], such as `2026-12-02`.
#[must_use]
pub fn day_name(day: i64) -> String {
    let text = iso(day.saturating_mul(DAY_MS));
    text.split_once('T').map_or(text.as_str(), |(date, _)| date).to_owned()
}

fn day_of(ms: i64) -> i64 {
    ms.div_euclid(DAY_MS)
}

fn model_name(provider: Option<Json<'_>>, model: Option<Json<'_>>) -> String {
    match (provider.and_then(Json::as_str), model.and_then(Json::as_str)) {
        (Some(provider), Some(model)) => [&*provider, "/", &*model].concat(),
        (None, Some(name)) | (Some(name), None) => name.into_owned(),
        (None, None) => String::new(),
    }
}
