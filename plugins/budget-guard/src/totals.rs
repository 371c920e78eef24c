//! The host's totals, as far as they are about cost.
use std::collections::BTreeMap;

use pi_graft_plugin::serde::{self, Deserialize};

/// What a session has cost so far.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(crate = "self::serde", default, rename_all = "camelCase")]
pub struct Totals {
    /// In total.
    pub total: Sum,
    /// By model.
    pub by_model: BTreeMap<String, Sum>,
    /// By day.
    pub by_day: BTreeMap<String, Sum>,
    /// What this run's entry has added; none where the host has counted more than that already.
    pub trigger: Option<Added>,
}

/// A sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(crate = "self::serde", default)]
pub struct Sum {
    /// Cost, in the currency of the prices.
    pub cost: f64,
}

/// What one entry has added.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(crate = "self::serde", default)]
pub struct Added {
    /// Cost, in the currency of the prices.
    pub cost: f64,
    /// For which model; empty if none is named.
    pub model: String,
    /// On which day.
    pub day: Option<String>,
}
