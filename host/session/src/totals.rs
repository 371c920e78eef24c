//! What a session has used: tokens and cost, over the whole file and all branches, whatever context edits say (S4.5).

use std::collections::BTreeMap;

use crate::entry::{Entry, EntryKind, Role};
use crate::json::Json;
use crate::walk::{Found, Reported};

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

/// Totals of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Everything.
    pub all: Usage,
    /// By `provider/model`; what names no model stands under the empty name.
    pub by_model: BTreeMap<String, Usage>,
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
            self.all.add(&usage);
            self.by_model.entry(model_name(provider, model)).or_default().add(&usage);
        }
    }
}

fn model_name(provider: Option<Json<'_>>, model: Option<Json<'_>>) -> String {
    let text = |v: Option<Json<'_>>| v.and_then(Json::as_str).map(|t| t.into_owned());
    match (text(provider), text(model)) {
        (Some(provider), Some(model)) => format!("{provider}/{model}"),
        (None, Some(name)) | (Some(name), None) => name,
        (None, None) => String::new(),
    }
}
