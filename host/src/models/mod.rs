//! The models that the config names: one completion, asked of a server or a program.
//!
//! Knows nothing of sessions, plugins or the store. A call blocks its thread, for `timeout` at most, and ends within a moment
//! once nobody waits for it. What is worth another try is tried again with growing pauses ([`retry`]). No error holds a word
//! of what was asked or answered, nor the key: they go to logs and to the store.
//!
//! | | |
//! | --- | --- |
//! | [`ask`] | the contract's request, read |
//! | [`openai`] over [`http`] | a server that speaks chat completions; [`http`] alone names ureq |
//! | [`command`] | a program that reads the prompt on its standard input |
//! | [`given`] | answers that somebody gave beforehand |
//! | [`usage`] | what an answer cost |

mod ask;
mod command;
mod error;
mod given;
mod http;
mod openai;
mod retry;
mod usage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::config::{ModelConfig, ModelFrom};

pub use ask::Request;
pub use error::AskError;
pub use given::Asked;
pub use usage::Usage;

use given::Given;
use usage::Prices;

/// Bytes of an answer's text.
const MOST_TEXT: usize = 512 << 10;
/// The time of a model that answers at once.
const NO_HURRY: Duration = Duration::from_hours(24);

/// The models of a config, by name.
#[derive(Debug, Default)]
pub struct Models {
    by_name: BTreeMap<String, Model>,
}

impl Models {
    /// Those of the config; programs run in `dir`.
    #[must_use]
    pub fn of(configs: &[ModelConfig], dir: &Path) -> Models {
        let by_name = configs.iter().map(|config| (config.name.clone(), Model::of(config, dir)));
        Models { by_name: by_name.collect() }
    }

    /// Models that give these answers (name, text), each once and in this order, and ask nobody.
    #[must_use]
    pub fn giving(answers: &[(String, String)]) -> Models {
        let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, text) in answers {
            by_name.entry(name.clone()).or_default().push(text.clone());
        }
        Models { by_name: by_name.into_iter().map(|(name, texts)| (name, Model::giving(texts))).collect() }
    }

    /// What models that give answers were asked, those of one model in order.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, Asked)> {
        let all = self.by_name.iter().filter_map(|(name, model)| Some((name, model.given()?)));
        all.flat_map(|(name, given)| given.asked().into_iter().map(|asked| (name.clone(), asked))).collect()
    }

    /// The one of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Model> {
        self.by_name.get(name)
    }
}

/// A model.
#[derive(Debug)]
pub struct Model {
    from: From,
    timeout: Duration,
    max_tokens_per_day: u64,
    prices: Prices,
    dir: PathBuf,
}

/// Who answers.
#[derive(Debug)]
enum From {
    Config(ModelFrom),
    Given(Given),
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text, not empty.
    pub text: String,
    /// Whether it was cut off.
    pub cut_off: bool,
    /// What it cost.
    pub usage: Usage,
}

impl Model {
    fn of(config: &ModelConfig, dir: &Path) -> Model {
        Model {
            from: From::Config(config.from.clone()),
            timeout: config.timeout,
            max_tokens_per_day: config.max_tokens_per_day,
            prices: Prices { input: config.input_price, output: config.output_price },
            dir: dir.to_path_buf(),
        }
    }

    fn giving(texts: Vec<String>) -> Model {
        let from = From::Given(Given::of(texts));
        Model { from, timeout: NO_HURRY, max_tokens_per_day: u64::MAX, prices: Prices::default(), dir: PathBuf::new() }
    }

    fn given(&self) -> Option<&Given> {
        match &self.from {
            From::Given(given) => Some(given),
            From::Config(_) => None,
        }
    }

    /// Tokens that all calls of a day may have.
    #[must_use]
    pub fn max_tokens_per_day(&self) -> u64 {
        self.max_tokens_per_day
    }

    /// Asks, on this thread. `over` says whether nobody waits for the answer any more.
    ///
    /// # Errors
    /// [`AskError`], after as many tries as are worth it and have room in the time.
    pub fn ask(&self, request: &Request, over: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        let until = Instant::now() + self.timeout;
        let late = || Instant::now() >= until;
        let answer = match &self.from {
            From::Given(given) => given.ask(request),
            From::Config(from @ ModelFrom::OpenAi { .. }) => {
                retry::retrying(until, over, &mut openai::Server::new(from, request)?)
            }
            From::Config(ModelFrom::Command { argv }) => {
                command::ask(argv, &self.dir, &request.as_prompt(), &late, over)
            }
        };
        let answer = answer.map_err(|error| error.within(self.timeout))?;
        if answer.text.trim().is_empty() {
            return Err(AskError::Empty);
        }
        let usage = answer.usage.unwrap_or_else(|| Usage::estimated(request, &answer.text)).priced(&self.prices);
        Ok(Answer { text: answer.text, cut_off: answer.cut_off, usage })
    }
}

/// An answer as it came, before it is looked at.
#[derive(Debug)]
struct Raw {
    text: String,
    cut_off: bool,
    /// None where nobody says.
    usage: Option<Usage>,
}
