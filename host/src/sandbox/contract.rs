//! The records of the contract as they cross the border, and what each costs.
//!
//! A host call costs fuel, so that the count bounds the host's work too and strikes first, at the same place on every
//! machine.
use wasmtime::component::{ComponentType, Lift, Lower};

/// Fuel for one call.
pub(super) const CALL_FUEL: u64 = 500;
/// Fuel for the fixed part of an entry's record.
const INFO_FUEL: u64 = 200;

/// `types.info`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub(super) struct Info {
    pub(super) place: u32,
    pub(super) id: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) kind: String,
    pub(super) role: Option<String>,
    #[component(name = "custom-type")]
    pub(super) custom_type: Option<String>,
    #[component(name = "time-ms")]
    pub(super) time_ms: Option<i64>,
    pub(super) tokens: u32,
    pub(super) bytes: u64,
    pub(super) shown: String,
    #[component(name = "grafted-by")]
    pub(super) grafted_by: Option<String>,
    #[component(name = "edited-by")]
    pub(super) edited_by: Option<String>,
    pub(super) pending: bool,
}

/// `types.page`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub(super) struct Page {
    pub(super) items: Vec<Info>,
    pub(super) next: Option<u32>,
}

/// `types.piece`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) next: Option<u64>,
}

/// `types.refusal`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub(super) struct Refused {
    pub(super) rule: String,
    pub(super) message: String,
}

/// `types.edit`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(super) struct Edit {
    pub(super) target: String,
    pub(super) replacement: Option<String>,
}

/// `types.plan`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub(super) struct Plan {
    #[component(name = "first-kept")]
    pub(super) first_kept: Option<String>,
    #[component(name = "split-turn")]
    pub(super) split_turn: bool,
    #[component(name = "tokens-before")]
    pub(super) tokens_before: u64,
    pub(super) previous: Option<u32>,
    #[component(name = "previous-summary")]
    pub(super) previous_summary: Option<String>,
    #[component(name = "previous-details")]
    pub(super) previous_details: Option<String>,
    #[component(name = "to-summarize")]
    pub(super) to_summarize: Vec<u32>,
    #[component(name = "turn-prefix")]
    pub(super) turn_prefix: Vec<u32>,
    #[component(name = "read-files")]
    pub(super) read_files: Vec<String>,
    #[component(name = "modified-files")]
    pub(super) modified_files: Vec<String>,
}

/// `types.tokens`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub(super) struct Tokens {
    #[component(name = "in-file")]
    pub(super) in_file: u64,
    #[component(name = "with-pending")]
    pub(super) with_pending: u64,
    pub(super) reported: Option<u64>,
}

/// `types.description`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(super) struct Description {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) needs: Vec<String>,
    #[component(name = "can-use")]
    pub(super) can_use: Vec<String>,
    pub(super) on: Vec<String>,
}

/// `types.answer`
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) stop: String,
    pub(super) usage: String,
}

impl Refused {
    pub(super) fn new(rule: &str, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: message.into() }
    }

    /// A call of what was not granted.
    pub(super) fn not_granted(capability: &str) -> Self {
        let message = format!("{capability:?} is not granted: the user's config can add it to the plugin's `grants`");
        Self::new("grant", message)
    }
}

impl From<pi_session::refusal::Refusal> for Refused {
    fn from(refusal: pi_session::refusal::Refusal) -> Self {
        Self { rule: refusal.rule.to_string(), message: refusal.message }
    }
}

/// What handing something over costs, in fuel: about a byte each.
pub(super) trait Weight {
    fn weight(&self) -> u64;
}

impl Weight for () {
    fn weight(&self) -> u64 {
        0
    }
}

impl Weight for String {
    fn weight(&self) -> u64 {
        self.len() as u64
    }
}

impl<T: Weight> Weight for Option<T> {
    fn weight(&self) -> u64 {
        self.as_ref().map_or(0, Weight::weight)
    }
}

impl<T: Weight> Weight for Vec<T> {
    fn weight(&self) -> u64 {
        self.iter().map(Weight::weight).sum()
    }
}

impl<T: Weight, E: Weight> Weight for Result<T, E> {
    fn weight(&self) -> u64 {
        self.as_ref().map_or_else(Weight::weight, Weight::weight)
    }
}

impl Weight for u32 {
    fn weight(&self) -> u64 {
        4
    }
}

impl Weight for Info {
    fn weight(&self) -> u64 {
        INFO_FUEL + self.id.weight() + self.kind.weight() + self.custom_type.weight()
    }
}

impl Weight for Page {
    fn weight(&self) -> u64 {
        self.items.weight()
    }
}

impl Weight for Piece {
    fn weight(&self) -> u64 {
        self.text.weight()
    }
}

impl Weight for Refused {
    fn weight(&self) -> u64 {
        self.message.weight()
    }
}

impl Weight for Tokens {
    fn weight(&self) -> u64 {
        INFO_FUEL
    }
}

impl Weight for Plan {
    fn weight(&self) -> u64 {
        let texts = self.previous_summary.weight() + self.previous_details.weight();
        let lists = self.to_summarize.weight() + self.turn_prefix.weight();
        texts + lists + self.read_files.weight() + self.modified_files.weight()
    }
}

impl Weight for Answer {
    fn weight(&self) -> u64 {
        self.text.weight()
    }
}
