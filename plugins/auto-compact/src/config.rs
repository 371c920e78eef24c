//! The plugin's config, checked strictly: an error names its key.
use std::collections::BTreeMap;

use pi_graft_plugin::Json;
use pi_graft_plugin::config::{bytes, millis, typed, wrong};
use pi_graft_plugin::serde::{Deserialize, Deserializer, de::Error as _};

/// The keys there are.
const KEYS: &str = "context-window, at, reserve-tokens, keep-recent-tokens, min-saving, min-interval, when-pi-disabled, \
                    take-over, summary, summary-bytes, model, model-window, model-answer-tokens, on-failure, focus, models";

/// What `[plugin.config]` says. Tokens unless it says bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The context window, and Pi's two numbers, for every model.
    pub numbers: Numbers,
    /// The same for single models, by `provider/id` or `id`; they win.
    pub models: BTreeMap<String, Numbers>,
    /// When it is due.
    pub at: Amount,
    /// How much a compaction must save, or it waits.
    pub min_saving: Amount,
    /// Goes on where Pi's own compaction is off.
    pub when_pi_disabled: bool,
    /// Time from one compaction to the next, milliseconds, by the entries' own times.
    pub min_interval_ms: i64,
    /// Whether it takes the place of Pi's own compaction.
    pub take_over: TakeOver,
    /// Whether a model makes the summary.
    pub by_model: bool,
    /// Most bytes of an extracted summary, file lists included.
    pub summary_bytes: usize,
    /// The model's name in the host's config.
    pub model: String,
    /// Tokens that it takes, question and answer.
    pub model_window: u64,
    /// Tokens that it may answer.
    pub model_answer_tokens: u64,
    /// Extracts where the model fails, instead of trying again later.
    pub or_extract: bool,
    /// What every summary is to look at.
    pub focus: Option<String>,
}

/// When it takes the place of Pi's own compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver {
    /// Never.
    Never,
    /// With a summary that a model made.
    Model,
    /// With an extract too.
    Always,
}

/// Numbers that may be set for a model; what is not, Pi's settings say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The context window.
    pub window: Option<u64>,
    /// What is kept free of it.
    pub reserve: Option<u64>,
    /// What stays as it is of the newest part.
    pub keep_recent: Option<u64>,
}

/// So many tokens, or a share of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Tokens.
    Tokens(u64),
    /// Per cent.
    Percent(u64),
}

impl Amount {
    /// In tokens, where `whole` is 100 %.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Percent(percent) => whole / 100 * percent + whole % 100 * percent / 100,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            numbers: Numbers::default(),
            models: BTreeMap::new(),
            at: Amount::Percent(80),
            min_saving: Amount::Percent(10),
            when_pi_disabled: false,
            min_interval_ms: 0,
            take_over: TakeOver::Model,
            by_model: false,
            summary_bytes: 12 * 1024,
            model: "summary".into(),
            model_window: 128_000,
            model_answer_tokens: 8_192,
            or_extract: false,
            focus: None,
        }
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = BTreeMap::<String, Json>::deserialize(deserializer)?;
        Self::read(&keys).map_err(D::Error::custom)
    }
}

impl Config {
    fn read(keys: &BTreeMap<String, Json>) -> Result<Self, String> {
        let mut config = Self::default();
        for (key, value) in keys {
            if !config.numbers.set(key, key, value)? {
                config.set(key, value)?;
            }
        }
        config.numbers.check("")?;
        config.check_model()?;
        Ok(config)
    }

    fn check_model(&self) -> Result<(), String> {
        let (window, answer) = (self.model_window, self.model_answer_tokens);
        if answer.saturating_mul(2) > window {
            return Err(format!("`model-answer-tokens` ({answer}) is more than half of `model-window` ({window})"));
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &Json) -> Result<(), String> {
        match key {
            "at" => self.at = amount(key, value)?,
            "min-saving" => self.min_saving = amount(key, value)?,
            "when-pi-disabled" => self.when_pi_disabled = typed(key, value, "true or false")?,
            "take-over" => {
                self.take_over = match choice(key, value, &["never", "model", "always"])?.as_str() {
                    "never" => TakeOver::Never,
                    "always" => TakeOver::Always,
                    _ => TakeOver::Model,
                }
            }
            "summary" => self.by_model = choice(key, value, &["extractive", "model"])? == "model",
            "model" => self.model = text(key, value)?,
            "model-window" => self.model_window = typed(key, value, "a whole number of tokens")?,
            "model-answer-tokens" => self.model_answer_tokens = typed(key, value, "a whole number of tokens")?,
            "on-failure" => self.or_extract = choice(key, value, &["retry", "extractive"])? == "extractive",
            "focus" => self.focus = Some(text(key, value)?),
            "min-interval" => self.min_interval_ms = time(key, value)?,
            "summary-bytes" => self.summary_bytes = size(key, value)?,
            "models" => self.models = models(key, value)?,
            _ => return Err(format!("unknown key `{key}`; there are {KEYS}")),
        }
        Ok(())
    }

    /// The numbers for a model, which is named by its id, perhaps behind its provider.
    #[must_use]
    pub fn numbers_for(&self, provider: Option<&str>, id: Option<&str>) -> Numbers {
        let full = provider.zip(id).map(|(provider, id)| [provider, "/", id].concat());
        let own = full.and_then(|name| self.models.get(&name)).or_else(|| self.models.get(id?));
        let own = own.copied().unwrap_or_default();
        Numbers {
            window: own.window.or(self.numbers.window),
            reserve: own.reserve.or(self.numbers.reserve),
            keep_recent: own.keep_recent.or(self.numbers.keep_recent),
        }
    }
}

impl Numbers {
    /// Sets the number with this key; false if there is none. `path` is how an error names it.
    fn set(&mut self, key: &str, path: &str, value: &Json) -> Result<bool, String> {
        let slot = match key {
            "context-window" => &mut self.window,
            "reserve-tokens" => &mut self.reserve,
            "keep-recent-tokens" => &mut self.keep_recent,
            _ => return Ok(false),
        };
        *slot = Some(typed(path, value, "a whole number of tokens")?);
        Ok(true)
    }

    fn check(&self, path: &str) -> Result<(), String> {
        if self.window == Some(0) {
            return Err(format!("`{path}context-window` is 0: leave it out to take what is known of the model"));
        }
        match (self.window, self.reserve) {
            (Some(window), Some(reserve)) if reserve >= window => {
                Err(format!("`{path}reserve-tokens` ({reserve}) leaves nothing of `{path}context-window` ({window})"))
            }
            _ => Ok(()),
        }
    }
}

fn models(key: &str, value: &Json) -> Result<BTreeMap<String, Numbers>, String> {
    let tables: BTreeMap<String, BTreeMap<String, Json>> = typed(key, value, "a table by model, each a table")?;
    let mut models = BTreeMap::new();
    for (model, keys) in tables {
        let mut numbers = Numbers::default();
        for (name, value) in &keys {
            let path = format!("{key}.\"{model}\".{name}");
            if !numbers.set(name, &path, value)? {
                return Err(format!(
                    "unknown key `{path}`; there are context-window, reserve-tokens, keep-recent-tokens"
                ));
            }
        }
        numbers.check(&format!("{key}.\"{model}\"."))?;
        models.insert(model, numbers);
    }
    Ok(models)
}

fn choice(key: &str, value: &Json, choices: &[&str]) -> Result<String, String> {
    let chosen = value.to::<String>().ok().filter(|text| choices.contains(&text.as_str()));
    let wanted = choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(" or ");
    chosen.ok_or_else(|| wrong(key, value, &wanted))
}

/// "80%", or a number of tokens.
fn amount(key: &str, value: &Json) -> Result<Amount, String> {
    let percent = |text: String| text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
    let percent = value.to().ok().and_then(percent).filter(|percent| (1..=100).contains(percent)).map(Amount::Percent);
    let tokens = || value.to().ok().filter(|tokens| *tokens > 0).map(Amount::Tokens);
    let wanted = "per cent such as \"80%\" (1 to 100) or a number of tokens";
    percent.or_else(tokens).ok_or_else(|| wrong(key, value, wanted))
}

fn text(key: &str, value: &Json) -> Result<String, String> {
    let text: String = typed(key, value, "text")?;
    if text.trim().is_empty() { Err(format!("`{key}` is empty")) } else { Ok(text) }
}

fn time(key: &str, value: &Json) -> Result<i64, String> {
    let time = millis(value).and_then(|time| i64::try_from(time).ok());
    time.ok_or_else(|| wrong(key, value, "a time such as \"10m\""))
}

fn size(key: &str, value: &Json) -> Result<usize, String> {
    let size = bytes(value).and_then(|bytes| usize::try_from(bytes).ok());
    let wanted = "a size from 512 bytes to 128KiB, such as \"12KiB\"";
    size.filter(|size| (512..=131_072).contains(size)).ok_or_else(|| wrong(key, value, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Config, String> {
        Json::from_text(json.into()).to().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_a_config_too() {
        assert_eq!(read("{}"), Ok(Config::default()));
    }

    #[test]
    fn every_key_is_read() {
        let config = read(
            r#"{"context-window":200000,"at":150000,"reserve-tokens":1000,"keep-recent-tokens":2000,"summary":"extractive",
            "summary-bytes":"8KiB","min-saving":"5%","when-pi-disabled":true,"take-over":"always","min-interval":"10m",
            "model":"big","model-window":32000,"model-answer-tokens":4000,"on-failure":"extractive","focus":"the API",
            "models":{"x/big":{"context-window":7},"small":{"reserve-tokens":8}}}"#,
        )
        .expect("it is right");
        assert_eq!((config.at, config.min_saving), (Amount::Tokens(150_000), Amount::Percent(5)));
        assert_eq!(config.summary_bytes, 8192);
        assert!(config.when_pi_disabled && config.or_extract && !config.by_model);
        assert_eq!((config.take_over, config.min_interval_ms), (TakeOver::Always, 600_000));
        assert_eq!((config.model.as_str(), config.focus.as_deref()), ("big", Some("the API")));
        assert_eq!((config.model_window, config.model_answer_tokens), (32_000, 4_000));
        let numbers = |provider, id| config.numbers_for(Some(provider), Some(id));
        let of = |window, reserve| Numbers { window: Some(window), reserve: Some(reserve), keep_recent: Some(2000) };
        assert_eq!(numbers("x", "big"), of(7, 1000));
        assert_eq!(numbers("y", "small"), of(200_000, 8));
        assert_eq!(config.numbers_for(None, None), of(200_000, 1000));
    }

    #[test]
    fn an_error_names_the_key_and_what_it_may_be() {
        let wrong = [
            (r#"{"contxt-window":1}"#, "`contxt-window`"),
            (r#"{"context-window":"200k"}"#, "`context-window`"),
            (r#"{"context-window":0}"#, "`context-window`"),
            (r#"{"context-window":-1}"#, "`context-window`"),
            (r#"{"reserve-tokens":10.5}"#, "`reserve-tokens`"),
            (r#"{"context-window":1000,"reserve-tokens":1000}"#, "`reserve-tokens`"),
            (r#"{"keep-recent-tokens":null}"#, "`keep-recent-tokens`"),
            (r#"{"at":"180%"}"#, "`at`"),
            (r#"{"at":"80"}"#, "`at`"),
            (r#"{"at":0}"#, "`at`"),
            (r#"{"min-saving":true}"#, "`min-saving`"),
            (r#"{"summary":"magic"}"#, "\"extractive\""),
            (r#"{"on-failure":"panic"}"#, "`on-failure`"),
            (r#"{"model":""}"#, "`model`"),
            (r#"{"model-window":8000}"#, "`model-window`"),
            (r#"{"min-interval":10}"#, "`min-interval`"),
            (r#"{"min-interval":"10 moons"}"#, "`min-interval`"),
            (r#"{"summary-bytes":"12 parsecs"}"#, "`summary-bytes`"),
            (r#"{"summary-bytes":12}"#, "`summary-bytes`"),
            (r#"{"when-pi-disabled":"yes"}"#, "`when-pi-disabled`"),
            (r#"{"take-over":"sometimes"}"#, "`take-over`"),
            (r#"{"models":[]}"#, "`models`"),
            (r#"{"models":{"x/y":{"window":1}}}"#, "`models.\"x/y\".window`"),
            (r#"{"models":{"x/y":{"context-window":"1"}}}"#, "`models.\"x/y\".context-window`"),
        ];
        for (json, named) in wrong {
            let error = read(json).expect_err(json);
            assert!(error.contains(named), "{json}: {error}");
        }
        assert!(read("[]").is_err() && read("null").is_err());
    }
}
