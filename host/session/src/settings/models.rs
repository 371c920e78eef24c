//! `models.json`: models that the user has told Pi of, and what is to be changed about others.
//!
//! Pi takes the file whole or not at all: where anything in it has the wrong type, no model of it counts. Here what is of
//! use here is judged, and fields that say how to talk to a model (`compat` and the like) are not looked at. What the file
//! says of a provider falls away where Pi could not build that provider from it.

mod check;
mod prices;

use std::collections::BTreeMap;

use super::file::{offset_in, without_bom};
use super::{Fault, Known, ModelId, Origin, Store, loose, table};
use crate::json::Json;

pub use prices::{Prices, Tier};

pub(super) use prices::PricesPatch;

/// The window of a model in `models` that does not say one, tokens.
const WINDOW: u64 = 128_000;
/// The most output of a model in `models` that does not say it, tokens.
const MAX_TOKENS: u64 = 16_384;

/// Faults that are told of one file.
const MOST_FAULTS: usize = 16;

/// What a `models.json` says of models.
#[derive(Clone, Debug, Default)]
pub struct Models {
    name: String,
    providers: BTreeMap<String, Provider>,
    faults: Vec<Fault>,
}

/// What it says of one provider.
#[derive(Clone, Debug, Default)]
struct Provider {
    /// `models`, by id; each replaces what Pi knows by itself.
    models: BTreeMap<String, Patch>,
    /// `modelOverrides`, by id; they change what is there, and come last.
    overrides: BTreeMap<String, Patch>,
}

/// What is said of one model.
#[derive(Clone, Debug, Default)]
struct Patch {
    window: Option<u64>,
    max_tokens: Option<u64>,
    prices: Option<PricesPatch>,
}

/// What is known of a model, from `models.json`, what Pi has fetched, and the shipped table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) window: Option<Known<u64>>,
    pub(super) max_tokens: Option<Known<u64>>,
    pub(super) prices: Option<Known<Prices>>,
}

impl Models {
    /// Models from the text of a file; `name` is what faults and origins call it.
    #[must_use]
    pub fn parse(name: &str, text: &[u8]) -> Models {
        let text = loose::plain(without_bom(text));
        let mut models = Models { name: name.to_owned(), ..Models::default() };
        if let Err((at, message)) = models.read(&text) {
            let message = format!("{message}; Pi goes on without this file");
            models.providers.clear();
            models.faults = vec![Fault::at(name, &text, at, message)];
        }
        models
    }

    /// Models that could not be read, which is no reason to stop.
    #[must_use]
    pub fn unreadable(name: &str, why: &str) -> Models {
        let fault = super::Settings::unreadable(name, why).fault().cloned();
        Models { name: name.to_owned(), faults: fault.into_iter().collect(), ..Models::default() }
    }

    /// What is wrong with the file, or with what it says of a provider.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    fn read(&mut self, text: &[u8]) -> Result<(), (usize, String)> {
        let json = Json::parse(text).map_err(|error| (error.at, format!("not JSON: {}", error.what)))?;
        check::file(json).map_err(|(at, message)| (offset_in(text, at), message))?;
        for (id, provider) in json.get("providers").into_iter().flat_map(check::last_of_each) {
            match check::provider(&id, provider) {
                Ok(()) => drop(self.providers.insert(id, Provider::read(provider))),
                Err(_) if self.faults.len() >= MOST_FAULTS => {}
                Err((at, message)) => {
                    let message = format!("providers.{id}: {message}; Pi takes nothing of this provider from here");
                    self.faults.push(Fault::at(&self.name, text, offset_in(text, at), message));
                }
            }
        }
        Ok(())
    }

    /// What is known of a model.
    pub(super) fn find(&self, model: &ModelId, store: &Store) -> Found {
        let provider = self.providers.get(&model.provider);
        let mut found = match provider.and_then(|provider| provider.models.get(&model.id)) {
            Some(own) => self.own(model, own),
            None => store.find(model),
        };
        if let Some(over) = provider.and_then(|provider| provider.overrides.get(&model.id)) {
            self.change(model, over, &mut found);
        }
        found
    }

    /// A model of `models` is all that it says, and Pi's defaults for the rest.
    fn own(&self, model: &ModelId, own: &Patch) -> Found {
        let key = |field: &str, said: bool| {
            let note = if said { "" } else { " (left out there)" };
            self.origin(model, "models", &format!("{field}{note}"))
        };
        let number = |said: Option<u64>, default, field: &str| {
            Some(Known { value: said.unwrap_or(default), origin: key(field, said.is_some()) })
        };
        let prices = own.prices.clone().unwrap_or_default().over(Prices::default());
        Found {
            window: number(own.window, WINDOW, "contextWindow"),
            max_tokens: number(own.max_tokens, MAX_TOKENS, "maxTokens"),
            prices: Some(Known { value: prices, origin: key("cost", own.prices.is_some()) }),
        }
    }

    fn change(&self, model: &ModelId, over: &Patch, found: &mut Found) {
        let origin = |field| self.origin(model, "modelOverrides", field);
        if let Some(value) = over.window {
            found.window = Some(Known { value, origin: origin("contextWindow") });
        }
        if let Some(value) = over.max_tokens {
            found.max_tokens = Some(Known { value, origin: origin("maxTokens") });
        }
        if let Some(patch) = over.prices.clone() {
            let before = found.prices.take().map(|known| known.value).unwrap_or_default();
            found.prices = Some(Known { value: patch.over(before), origin: origin("cost") });
        }
    }

    fn origin(&self, model: &ModelId, list: &str, field: &str) -> Origin {
        let id = crate::json::quoted(&model.id);
        Origin::File { file: self.name.clone(), key: format!("providers.{}.{list}[{id}].{field}", model.provider) }
    }
}

impl Provider {
    fn read(provider: Json<'_>) -> Provider {
        let [models, overrides] = provider.get_all(["models", "modelOverrides"]);
        let id = |model: &Json<'_>| Some(model.get("id")?.as_str()?.into_owned());
        let models = models.into_iter().flat_map(Json::items);
        let overrides = overrides.into_iter().flat_map(Json::members);
        Provider {
            models: models.filter_map(|model| Some((id(&model)?, Patch::read(model)))).collect(),
            overrides: overrides.map(|(key, over)| (key.text().into_owned(), Patch::read(over))).collect(),
        }
    }
}

impl Patch {
    fn read(model: Json<'_>) -> Patch {
        let [window, max_tokens, cost] = model.get_all(["contextWindow", "maxTokens", "cost"]);
        // Tokens are whole, so a fraction of one never counts.
        let tokens = |value: Option<Json<'_>>| Some(value?.as_f64()? as u64);
        Patch { window: tokens(window), max_tokens: tokens(max_tokens), prices: cost.map(PricesPatch::read) }
    }
}
