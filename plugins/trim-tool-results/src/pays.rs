//! Whether it pays.
//!
//! Let `S` be the tokens that go, `A` those behind the first that goes, which the next request must send anew, and `R` the
//! requests still to be expected. With a warm cache every request would have read `S` at the price of cached tokens (`r`, a
//! share of the price of fresh ones), and the next one pays `A` at the price of writing (`w`) instead of reading. So trimming
//! pays when `S × r × R > A × (w − r)`. Of all places to begin the one with the greatest gain is taken: what is older goes
//! along only if it brings more than the longer rest costs. With a cold cache `A` is paid for in any case, and every token
//! that goes is a gain.
use pi_graft_plugin::Run;
use pi_graft_plugin::serde::{self, Deserialize};

use crate::config::Config;
use crate::look::{Look, STUB};

/// What is to go.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The place of the oldest that goes; those behind it go too.
    pub from: u32,
    /// The account of it, for the log.
    pub account: String,
}

/// Prices of input tokens, as shares of a fresh one's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Of one read from the cache.
    pub read: f64,
    /// Of one written to it.
    pub write: f64,
}

/// What is to go, if it pays.
#[must_use]
pub fn choose(config: &Config, look: &Look, run: &Run) -> Option<Choice> {
    let prices = if look.is_cold || look.results.is_empty() { config.prices } else { prices(config, run) };
    best(config, look, prices)
}

/// The best place to begin, by the rule above.
#[must_use]
pub fn best(config: &Config, look: &Look, prices: Prices) -> Option<Choice> {
    let (mut saved, mut best) = (0, None::<(f64, u64, usize)>);
    for (at, result) in look.results.iter().enumerate().take(crate::MOST) {
        saved += result.tokens.saturating_sub(STUB);
        // What goes behind the first is not sent anew either, its stub is.
        let anew = (result.behind + result.tokens).saturating_sub(saved);
        let cost = if look.is_cold { 0.0 } else { anew as f64 * (prices.write - prices.read).max(0.0) };
        let gain = saved as f64 * if look.is_cold { 1.0 } else { prices.read * config.requests as f64 } - cost;
        if saved >= config.min_saving && gain > 0.0 && best.is_none_or(|(most, ..)| gain > most) {
            best = Some((gain, saved, at));
        }
    }
    let (_, saved, at) = best?;
    let (from, behind) = (look.results[at].place, look.results[at].behind);
    let account = format!(
        "{} results, {saved} tokens, become stubs; {behind} tokens stand behind the first, {}",
        at + 1,
        if look.is_cold {
            "and the cache is cold".to_owned()
        } else {
            format!("{} requests are expected", config.requests)
        }
    );
    Some(Choice { from, account })
}

#[derive(Debug, Default, Deserialize)]
#[serde(crate = "self::serde", default)]
struct Facts {
    cost: Cost,
}

#[derive(Debug, Default, Deserialize)]
#[serde(crate = "self::serde", default, rename_all = "camelCase")]
struct Cost {
    input: f64,
    cache_read: f64,
    cache_write: f64,
}

/// The model's prices, if they are known; else those of the config.
fn prices(config: &Config, run: &Run) -> Prices {
    let facts: Facts = run.model_facts().and_then(|facts| facts.to().ok()).unwrap_or_default();
    let Cost { input, cache_read, cache_write } = facts.cost;
    if input <= 0.0 || cache_read <= 0.0 {
        return config.prices;
    }
    Prices { read: cache_read / input, write: cache_write.max(input) / input }
}
