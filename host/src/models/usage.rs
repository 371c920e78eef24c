//! What an answer cost: tokens, and dollars where the prices are known.

use serde_json::{Value, json};

use super::ask::Request;

/// Bytes in a token, about.
const BYTES: u64 = 4;

/// Tokens of one answer, and its price.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens of the request that were not in the provider's cache.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Tokens of the request that were.
    pub cache_read: u64,
    /// Dollars, as the server says or the config's prices make it.
    pub cost: Option<f64>,
    input_cost: f64,
    output_cost: f64,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prices {
    pub(super) input: f64,
    pub(super) output: f64,
}

impl Usage {
    /// What the server's `usage` says; none if it says nothing of tokens.
    pub(super) fn reported(usage: &Value) -> Option<Usage> {
        let count = |value: &Value| value.as_u64().or_else(|| value.as_f64().map(|n| n.max(0.0) as u64));
        let (prompt, output) = (count(&usage["prompt_tokens"])?, count(&usage["completion_tokens"]).unwrap_or(0));
        let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]).unwrap_or(0).min(prompt);
        let cost = usage["cost"].as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
        Some(Usage { input: prompt - cached, output, cache_read: cached, cost, ..Usage::default() })
    }

    /// Where nobody says: a token for four bytes.
    pub(super) fn estimated(request: &Request, answer: &str) -> Usage {
        Usage { input: Usage::of_request(request), output: answer.len() as u64 / BYTES, ..Usage::default() }
    }

    /// Tokens of a request, about.
    #[must_use]
    pub fn of_request(request: &Request) -> u64 {
        let bytes: usize = request.messages.iter().map(|message| message.content.len()).sum();
        (bytes + request.system.as_ref().map_or(0, String::len)) as u64 / BYTES
    }

    pub(super) fn priced(self, prices: &Prices) -> Usage {
        let per_token = |price: f64, tokens: u64| price * tokens as f64 / 1_000_000.0;
        let input_cost = per_token(prices.input, self.input + self.cache_read);
        let output_cost = per_token(prices.output, self.output);
        let cost = self.cost.or(Some(input_cost + output_cost).filter(|cost| *cost > 0.0));
        Usage { input_cost, output_cost, cost, ..self }
    }

    /// All tokens.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input + self.output + self.cache_read
    }

    /// In the shape of an assistant message's `usage`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let total = self.cost.unwrap_or(0.0);
        json!({
            "input": self.input, "output": self.output, "cacheRead": self.cache_read, "cacheWrite": 0,
            "totalTokens": self.total(),
            "cost": {
                "input": self.input_cost, "output": self.output_cost, "cacheRead": 0.0, "cacheWrite": 0.0, "total": total,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_told_apart_and_the_servers_price_wins() {
        let said =
            json!({"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}});
        let usage = Usage::reported(&said).expect("tokens");
        assert_eq!((usage.input, usage.cache_read, usage.output, usage.total()), (40, 60, 7, 107));
        let priced = usage.priced(&Prices { input: 1.0, output: 10.0 });
        assert!((priced.cost.expect("a price") - 0.00017).abs() < 1e-12);
        assert_eq!(priced.to_json()["cost"]["input"], 0.0001);
        let said = Usage { cost: Some(0.5), ..usage }.priced(&Prices { input: 1.0, output: 10.0 });
        assert_eq!(said.cost, Some(0.5));
    }

    #[test]
    fn a_server_that_counts_nothing_is_estimated() {
        assert_eq!(Usage::reported(&Value::Null), None);
    }
}
