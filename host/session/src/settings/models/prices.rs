//! What a model costs.

use crate::json::Json;

/// Prices in dollars for a million tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// Input that is in no cache.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the provider's cache.
    pub cache_read: f64,
    /// Input written to it.
    pub cache_write: f64,
    /// Prices of requests with more input; the one with the highest bound that is passed holds for the whole request.
    pub tiers: Vec<Tier>,
}

/// Prices of requests whose input is over a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// The bound: tokens of input.
    pub above: u64,
    /// As in [`Prices`].
    pub input: f64,
    /// As in [`Prices`].
    pub output: f64,
    /// As in [`Prices`].
    pub cache_read: f64,
    /// As in [`Prices`].
    pub cache_write: f64,
}

/// Prices of which some are said.
#[derive(Clone, Debug, Default)]
pub(in crate::settings) struct PricesPatch {
    rates: [Option<f64>; 4],
    tiers: Option<Vec<Tier>>,
}

/// The names of the four prices in Pi's files.
const RATES: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

impl PricesPatch {
    pub(in crate::settings) fn read(cost: Json<'_>) -> PricesPatch {
        let rates = cost.get_all(RATES).map(|rate| rate.and_then(Json::as_f64));
        let tiers = cost.get("tiers").map(|tiers| tiers.items().filter_map(tier).collect());
        PricesPatch { rates, tiers }
    }

    /// These, and for the rest those from before.
    pub(in crate::settings) fn over(self, before: Prices) -> Prices {
        let [input, output, cache_read, cache_write] = self.rates;
        Prices {
            input: input.unwrap_or(before.input),
            output: output.unwrap_or(before.output),
            cache_read: cache_read.unwrap_or(before.cache_read),
            cache_write: cache_write.unwrap_or(before.cache_write),
            tiers: self.tiers.unwrap_or(before.tiers),
        }
    }
}

fn tier(tier: Json<'_>) -> Option<Tier> {
    let [input, output, cache_read, cache_write] = tier.get_all(RATES).map(|rate| rate.and_then(Json::as_f64));
    let above = tier.get("inputTokensAbove")?.as_f64()? as u64;
    Some(Tier { above, input: input?, output: output?, cache_read: cache_read?, cache_write: cache_write? })
}
