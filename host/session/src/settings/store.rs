//! `models-store.json`: lists of models that Pi has fetched since it was released, by provider.
//!
//! Pi lays such a list over the one that it ships if it is newer; in OpenRouter's case it takes the place of it. What this
//! file says is Pi's own, so a file that cannot be read is no more than that nothing was fetched.

use std::collections::BTreeMap;

use super::file::{offset_in, without_bom};
use super::models::{Found, PricesPatch};
use super::{Fault, Known, ModelId, Origin, Prices, table};
use crate::json::{Json, Kind};
use crate::time::parse_iso;

/// The provider whose fetched list is what the user's key may use, and all there is.
const WHOLE: &str = "openrouter";

/// What Pi has fetched.
#[derive(Clone, Debug, Default)]
pub struct Store {
    name: String,
    /// By provider.
    lists: BTreeMap<String, List>,
    fault: Option<Fault>,
}

/// The models of a provider that were fetched.
#[derive(Clone, Debug)]
struct List {
    /// Chat models, by id.
    models: BTreeMap<String, Fetched>,
    /// There are no others.
    is_all: bool,
}

/// What a list says of a model.
#[derive(Clone, Debug)]
struct Fetched {
    window: Option<u64>,
    max_tokens: Option<u64>,
    prices: Option<Prices>,
}

impl Store {
    /// Lists from the text of a file; `name` is what faults and origins call it.
    #[must_use]
    pub fn parse(name: &str, text: &[u8]) -> Store {
        let text = without_bom(text);
        let mut store = Store { name: name.to_owned(), ..Store::default() };
        match Json::parse(text) {
            Ok(json) if json.kind() == Kind::Object => store.lists = lists(json),
            Ok(json) => store.fault = Some(Fault::at(name, text, offset_in(text, json), "not an object".to_owned())),
            Err(e) => store.fault = Some(Fault::at(name, text, e.at, format!("not JSON: {}", e.what))),
        }
        store
    }

    /// Lists that could not be read, which is no reason to stop.
    #[must_use]
    pub fn unreadable(name: &str, why: &str) -> Store {
        let fault = super::Settings::unreadable(name, why).fault().cloned();
        Store { name: name.to_owned(), fault, ..Store::default() }
    }

    /// What is wrong with the file.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// What is known of a model before `models.json` has its say: from here, else from the shipped table.
    pub(super) fn find(&self, model: &ModelId) -> Found {
        let list = self.lists.get(&model.provider);
        match list.and_then(|list| list.models.get(&model.id)) {
            Some(fetched) => self.found(model, fetched),
            None if list.is_some_and(|list| list.is_all) => Found::default(),
            None => in_table(model),
        }
    }

    fn found(&self, model: &ModelId, fetched: &Fetched) -> Found {
        let origin = |field: &str| {
            let key = format!("{}[{}].{field}", model.provider, crate::json::quoted(&model.id));
            Origin::File { file: self.name.clone(), key }
        };
        let number = |value: Option<u64>, field: &str| Some(Known { value: value?, origin: origin(field) });
        Found {
            window: number(fetched.window, "contextWindow"),
            max_tokens: number(fetched.max_tokens, "maxTokens"),
            prices: fetched.prices.clone().map(|value| Known { value, origin: origin("cost") }),
        }
    }
}

fn in_table(model: &ModelId) -> Found {
    let Some(row) = table::find(&model.provider, &model.id) else { return Found::default() };
    let origin = || Origin::Table { date: table::date() };
    let number = |value| Some(Known { value, origin: origin() });
    let prices = Some(Known { value: row.prices, origin: origin() });
    Found { window: number(row.window), max_tokens: number(row.max_tokens), prices }
}

fn lists(json: Json<'_>) -> BTreeMap<String, List> {
    let released = parse_iso(&format!("{}T00:00:00.000Z", table::date())).unwrap_or(i64::MAX);
    let mut lists = BTreeMap::new();
    for (key, list) in json.members() {
        let provider = key.text().into_owned();
        let is_newer = list.get("lastModified").and_then(Json::as_f64).is_some_and(|ms| ms > released as f64);
        let counts = is_newer || provider == WHOLE || !table::has_provider(&provider);
        let models = || list.get("models").filter(|_| counts).into_iter().flat_map(Json::items);
        let is_all = provider == WHOLE && models().any(|model| is(model.get("provider"), WHOLE));
        let models = models().filter_map(|model| fetched(model, &provider)).collect();
        lists.insert(provider, List { models, is_all });
    }
    lists
}

fn is(value: Option<Json<'_>>, text: &str) -> bool {
    value.and_then(Json::as_str).as_deref() == Some(text)
}

/// A chat model of this provider.
fn fetched(model: Json<'_>, provider: &str) -> Option<(String, Fetched)> {
    let [id, of, kind, window, max_tokens, cost] =
        model.get_all(["id", "provider", "type", "contextWindow", "maxTokens", "cost"]);
    if !is(of, provider) || !(kind.is_none() || is(kind, "chat")) {
        return None;
    }
    let tokens = |value: Option<Json<'_>>| value?.as_f64().filter(|n| *n >= 1.0).map(|n| n as u64);
    let prices = cost.map(|cost| PricesPatch::read(cost).over(Prices::default()));
    Some((id?.as_str()?.into_owned(), Fetched { window: tokens(window), max_tokens: tokens(max_tokens), prices }))
}
