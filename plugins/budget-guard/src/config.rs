//! The plugin's config, checked strictly: an error names its key.
use std::collections::BTreeMap;

use pi_graft_plugin::Json;
use pi_graft_plugin::config::{typed, wrong};
use pi_graft_plugin::serde::{Deserialize, Deserializer, de::Error as _};

use crate::steps::Steps;
use crate::wording::WORDS;

/// The keys there are.
const KEYS: &str = "session, day, model, models, display, text, currency";
/// The least step: below it rounding would be louder than the cost.
const LEAST: f64 = 0.0001;
/// Most bytes of the wording.
const MOST_TEXT: usize = 4096;

/// What `[plugin.config]` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Steps of the session's cost.
    pub session: Option<Steps>,
    /// Steps of its cost on one day.
    pub day: Option<Steps>,
    /// Steps of its cost with one model, whichever.
    pub model: Option<Steps>,
    /// The same for single models, by name; they win.
    pub models: BTreeMap<String, Steps>,
    /// Whether Pi shows the message to the user.
    pub display: bool,
    /// The wording.
    pub text: String,
    /// What stands before an amount.
    pub currency: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            session: Some(Steps::Every(10.0)),
            day: None,
            model: None,
            models: BTreeMap::new(),
            display: true,
            text: "Budget: {what} has cost {cost} so far, past the step of {step}.".into(),
            currency: "$".into(),
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
            config.set(key, value)?;
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &Json) -> Result<(), String> {
        match key {
            "session" => self.session = steps(key, value)?,
            "day" => self.day = steps(key, value)?,
            "model" => self.model = steps(key, value)?,
            "models" => self.models = models(key, value)?,
            "display" => self.display = typed(key, value, "true or false")?,
            "text" => self.text = wording(key, value)?,
            "currency" => self.currency = typed(key, value, "a text such as \"$\"")?,
            _ => return Err(format!("unknown key `{key}`; there are {KEYS}")),
        }
        Ok(())
    }

    /// The steps of a model's cost.
    #[must_use]
    pub fn steps_of(&self, model: &str) -> Option<&Steps> {
        let id = model.split_once('/').map_or(model, |(_, id)| id);
        self.models.get(model).or_else(|| self.models.get(id)).or(self.model.as_ref())
    }
}

/// A number, a list of numbers, or false for none.
fn steps(key: &str, value: &Json) -> Result<Option<Steps>, String> {
    if value.to::<bool>().ok() == Some(false) {
        return Ok(None);
    }
    let wanted = format!(
        "an amount such as 5 (told at each multiple of it), a list of ascending amounts such as [1, 5, 20], or false; \
         at least {LEAST} each"
    );
    let every = value.to::<f64>().ok().filter(|step| is_amount(*step)).map(Steps::Every);
    let list = || value.to::<Vec<f64>>().ok().filter(|list| ascends(list)).map(Steps::At);
    every.or_else(list).ok_or_else(|| wrong(key, value, &wanted)).map(Some)
}

fn is_amount(amount: f64) -> bool {
    amount.is_finite() && amount >= LEAST
}

fn ascends(list: &[f64]) -> bool {
    !list.is_empty() && list.iter().all(|amount| is_amount(*amount)) && list.is_sorted_by(|a, b| a < b)
}

fn models(key: &str, value: &Json) -> Result<BTreeMap<String, Steps>, String> {
    let table: BTreeMap<String, Json> = typed(key, value, "a table by model, each with its steps")?;
    let own = |(model, value): (String, Json)| {
        let path = format!("{key}.\"{model}\"");
        let steps = steps(&path, &value)?.ok_or_else(|| format!("`{path}` is false: leave it out"))?;
        Ok((model, steps))
    };
    table.into_iter().map(own).collect()
}

fn wording(key: &str, value: &Json) -> Result<String, String> {
    let text: String = typed(key, value, "a text")?;
    let words = WORDS.join(", ");
    if text.trim().is_empty() || text.len() > MOST_TEXT {
        return Err(format!("`{key}` must be a text of at most {MOST_TEXT} bytes; in it may stand {words}"));
    }
    let rest = WORDS.iter().fold(text.clone(), |rest, word| rest.replace(word, ""));
    match rest.find(['{', '}']) {
        Some(at) => Err(format!(
            "`{key}`: what does {:?} stand for? There are {words}",
            &rest[at..rest.floor_char_boundary(at + 20)]
        )),
        None => Ok(text),
    }
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
            r#"{"session":false,"day":[1,2.5],"model":3,"models":{"p/m":1,"n":[7]},"display":false,
            "text":"{what}: {cost} ({step})","currency":"€"}"#,
        )
        .expect("it is right");
        assert_eq!((config.session.clone(), config.day.clone()), (None, Some(Steps::At(vec![1.0, 2.5]))));
        let of = |model| config.steps_of(model).cloned();
        assert_eq!(of("p/m"), Some(Steps::Every(1.0)));
        assert_eq!(of("q/n"), Some(Steps::At(vec![7.0])));
        assert_eq!(of("q/o"), Some(Steps::Every(3.0)));
    }

    #[test]
    fn an_error_names_the_key_and_what_it_may_be() {
        let wrong = [
            (r#"{"sesion":1}"#, "`sesion`"),
            (r#"{"session":0}"#, "`session`"),
            (r#"{"session":-5}"#, "`session`"),
            (r#"{"session":true}"#, "`session`"),
            (r#"{"session":"$5"}"#, "`session`"),
            (r#"{"day":[]}"#, "`day`"),
            (r#"{"day":[5,1]}"#, "ascending"),
            (r#"{"model":[1,1]}"#, "`model`"),
            (r#"{"models":{"p/m":0}}"#, "`models.\"p/m\"`"),
            (r#"{"models":{"p/m":false}}"#, "`models.\"p/m\"`"),
            (r#"{"models":5}"#, "`models`"),
            (r#"{"display":"no"}"#, "`display`"),
            (r#"{"text":""}"#, "`text`"),
            (r#"{"text":"{spent}"}"#, "{what}, {cost}, {step}"),
            (r#"{"currency":5}"#, "`currency`"),
        ];
        for (json, named) in wrong {
            let error = read(json).expect_err(json);
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
