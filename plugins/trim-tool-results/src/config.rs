//! The plugin's config, checked strictly: an error names its key.
use std::collections::BTreeMap;

use pi_graft_plugin::Json;
use pi_graft_plugin::config::{millis, typed, wrong};
use pi_graft_plugin::serde::{Deserialize, Deserializer, de::Error as _};

use crate::pays::Prices;

/// The keys there are.
const KEYS: &str = "older-than-turns, older-than-tokens, larger-than, min-saving, expected-requests, cache, cache-time, \
                    cache-read, cache-write";

/// What `[plugin.config]` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// A result with so many of the user's messages behind it is old.
    pub older_than_turns: u64,
    /// One with so many tokens behind it is old too.
    pub older_than_tokens: u64,
    /// Smaller ones stay, tokens.
    pub larger_than: u64,
    /// What must go at once, or it waits, tokens.
    pub min_saving: u64,
    /// Requests that are still to be expected.
    pub requests: u64,
    /// Whether the provider has a prompt cache.
    pub cache: bool,
    /// How long it lives, milliseconds.
    pub cache_ms: u64,
    /// Prices where those of the model are not known.
    pub prices: Prices,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            older_than_turns: 4,
            older_than_tokens: 40_000,
            larger_than: 1000,
            min_saving: 4000,
            requests: 20,
            cache: true,
            cache_ms: 300_000,
            prices: Prices { read: 0.1, write: 1.25 },
        }
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = BTreeMap::<String, Json>::deserialize(deserializer)?;
        let mut config = Self::default();
        for (key, value) in &keys {
            config.set(key, value).map_err(D::Error::custom)?;
        }
        Ok(config)
    }
}

impl Config {
    fn set(&mut self, key: &str, value: &Json) -> Result<(), String> {
        match key {
            "older-than-turns" => self.older_than_turns = at_least_one(key, value)?,
            "older-than-tokens" => self.older_than_tokens = at_least_one(key, value)?,
            "larger-than" => self.larger_than = typed(key, value, "a whole number of tokens")?,
            "min-saving" => self.min_saving = typed(key, value, "a whole number of tokens")?,
            "expected-requests" => self.requests = at_least_one(key, value)?,
            "cache" => self.cache = typed(key, value, "true or false")?,
            "cache-time" => self.cache_ms = time(key, value)?,
            "cache-read" => self.prices.read = share(key, value)?,
            "cache-write" => self.prices.write = share(key, value)?,
            _ => return Err(format!("unknown key `{key}`; there are {KEYS}")),
        }
        Ok(())
    }
}

fn at_least_one(key: &str, value: &Json) -> Result<u64, String> {
    let number = value.to().ok().filter(|number| *number > 0);
    number.ok_or_else(|| wrong(key, value, "a whole number, at least 1"))
}

/// A share of the price of a fresh token.
fn share(key: &str, value: &Json) -> Result<f64, String> {
    let share = value.to().ok().filter(|share: &f64| (0.0..=10.0).contains(share));
    let wanted = "a share of the price of a fresh token, such as 0.1";
    share.ok_or_else(|| wrong(key, value, wanted))
}

fn time(key: &str, value: &Json) -> Result<u64, String> {
    millis(value).filter(|time| *time > 0).ok_or_else(|| wrong(key, value, "a time such as \"5m\" or \"1h\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Config, String> {
        Json::from_text(json.into()).to().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_a_config_too_and_every_key_is_read() {
        assert_eq!(read("{}"), Ok(Config::default()));
        let config = read(
            r#"{"older-than-turns":2,"older-than-tokens":9,"larger-than":8,"min-saving":7,"expected-requests":6,
            "cache":false,"cache-time":"1h","cache-read":0.5,"cache-write":1}"#,
        )
        .expect("it is right");
        assert_eq!((config.older_than_turns, config.older_than_tokens, config.larger_than), (2, 9, 8));
        assert_eq!((config.min_saving, config.requests, config.cache, config.cache_ms), (7, 6, false, 3_600_000));
        assert_eq!(config.prices, Prices { read: 0.5, write: 1.0 });
    }

    #[test]
    fn an_error_names_the_key_and_what_it_may_be() {
        let wrong = [
            (r#"{"older-than":1}"#, "`older-than`"),
            (r#"{"older-than-turns":0}"#, "`older-than-turns`"),
            (r#"{"larger-than":"4KiB"}"#, "tokens"),
            (r#"{"cache-time":300}"#, "\"5m\""),
            (r#"{"cache-read":-1}"#, "`cache-read`"),
            (r#"{"cache":"no"}"#, "`cache`"),
        ];
        for (json, named) in wrong {
            let error = read(json).expect_err(json);
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
