//! Whether Pi would take a `models.json`, and what it says of a provider.

use super::table;
use crate::json::{Json, Kind};

/// What is wrong, and with which value.
type Wrong<'a> = (Json<'a>, String);

/// The shape of the whole file: one fault and nothing in it counts.
pub(super) fn file(json: Json<'_>) -> Result<(), Wrong<'_>> {
    object(json, "the file")?;
    optional(json, "$schema", string)?;
    let providers = json.get("providers").ok_or_else(|| (json, "`providers` is missing".to_owned()))?;
    object(providers, "providers")?;
    last_of_each(providers).try_for_each(|(_, provider)| provider_shape(provider))
}

fn provider_shape(provider: Json<'_>) -> Result<(), Wrong<'_>> {
    object(provider, "a provider")?;
    ["name", "baseUrl", "apiKey", "api"].into_iter().try_for_each(|name| optional(provider, name, some_string))?;
    optional(provider, "oauth", |value, name| {
        is(value, value.as_str().as_deref() == Some("radius"), name, "\"radius\"")
    })?;
    optional(provider, "headers", strings)?;
    optional(provider, "authHeader", boolean)?;
    optional(provider, "compat", |value, name| object(value, name))?;
    if let Some(models) = provider.get("models") {
        is(models, models.kind() == Kind::Array, "models", "a list")?;
        models.items().try_for_each(definition)?;
    }
    let Some(overrides) = provider.get("modelOverrides") else { return Ok(()) };
    object(overrides, "modelOverrides")?;
    last_of_each(overrides).try_for_each(|(_, over)| model(over, false))
}

fn definition(of: Json<'_>) -> Result<(), Wrong<'_>> {
    object(of, "a model")?;
    let id = of.get("id").ok_or_else(|| (of, "a model without `id`".to_owned()))?;
    some_string(id, "id")?;
    ["api", "baseUrl"].into_iter().try_for_each(|name| optional(of, name, some_string))?;
    model(of, true)
}

/// What a model and an override have in common; only a model's prices must all be there.
fn model(of: Json<'_>, whole: bool) -> Result<(), Wrong<'_>> {
    object(of, "a model")?;
    optional(of, "name", some_string)?;
    optional(of, "reasoning", boolean)?;
    optional(of, "contextWindow", above_zero)?;
    optional(of, "maxTokens", above_zero)?;
    optional(of, "headers", strings)?;
    optional(of, "cost", |value, name| cost(value, name, whole))
}

fn cost<'a>(value: Json<'a>, name: &str, whole: bool) -> Result<(), Wrong<'a>> {
    object(value, name)?;
    rates(value, whole)?;
    let Some(tiers) = value.get("tiers") else { return Ok(()) };
    is(tiers, tiers.kind() == Kind::Array, "tiers", "a list")?;
    tiers.items().try_for_each(|tier| {
        object(tier, "a tier")?;
        required(tier, "inputTokensAbove")?;
        rates(tier, true)
    })
}

fn rates(of: Json<'_>, whole: bool) -> Result<(), Wrong<'_>> {
    ["input", "output", "cacheRead", "cacheWrite"].into_iter().try_for_each(|name| match whole {
        true => required(of, name),
        false => optional(of, name, number),
    })
}

/// Whether Pi can build the provider from this. The first model of a provider that it does not know by itself must say
/// how to reach it; the others may take that from the first.
pub(super) fn provider<'a>(id: &str, provider: Json<'a>) -> Result<(), Wrong<'a>> {
    let names = ["models", "baseUrl", "headers", "compat", "modelOverrides", "apiKey", "oauth", "authHeader"];
    let [models, base, headers, compat, overrides, key, oauth, auth] = provider.get_all(names);
    if oauth.is_some() && base.is_none() {
        return Err((provider, "`oauth` without `baseUrl`".to_owned()));
    }
    let first = models.and_then(|models| models.items().next());
    let overrides = overrides.and_then(|overrides| overrides.members().next());
    let says = [base, headers, compat, key, oauth, auth].iter().any(Option::is_some);
    if first.is_none() && overrides.is_none() && !says {
        return Err((provider, "it says nothing".to_owned()));
    }
    let Some(first) = first.filter(|_| !table::has_provider(id)) else { return Ok(()) };
    for name in ["api", "baseUrl"] {
        if first.get(name).or(provider.get(name)).is_none() {
            return Err((first, format!("no `{name}`")));
        }
    }
    Ok(())
}

/// The members of an object, of several with one name the last.
pub(super) fn last_of_each(object: Json<'_>) -> impl Iterator<Item = (String, Json<'_>)> {
    let members = object.members().map(|(key, value)| (key.text().into_owned(), value));
    members.collect::<std::collections::BTreeMap<_, _>>().into_iter()
}

fn is<'a>(value: Json<'a>, right: bool, name: &str, wanted: &str) -> Result<(), Wrong<'a>> {
    if right { Ok(()) } else { Err((value, format!("{name} must be {wanted}"))) }
}

fn optional<'a>(
    of: Json<'a>,
    name: &str,
    check: impl FnOnce(Json<'a>, &str) -> Result<(), Wrong<'a>>,
) -> Result<(), Wrong<'a>> {
    of.get(name).map_or(Ok(()), |value| check(value, name))
}

fn required<'a>(of: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    let value = of.get(name).ok_or_else(|| (of, format!("`{name}` is missing")))?;
    number(value, name)
}

fn object<'a>(value: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    is(value, value.kind() == Kind::Object, name, "an object")
}

fn string<'a>(value: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    is(value, value.kind() == Kind::String, name, "text")
}

fn some_string<'a>(value: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    is(value, value.as_str().is_some_and(|text| !text.is_empty()), name, "text, not empty")
}

fn strings<'a>(value: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    object(value, name)?;
    last_of_each(value).try_for_each(|(_, value)| string(value, name))
}

fn boolean<'a>(value: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    is(value, value.kind() == Kind::Bool, name, "true or false")
}

fn number<'a>(value: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    is(value, value.as_f64().is_some_and(f64::is_finite), name, "a number")
}

fn above_zero<'a>(value: Json<'a>, name: &str) -> Result<(), Wrong<'a>> {
    is(value, value.as_f64().is_some_and(|n| n.is_finite() && n > 0.0), name, "a number over 0")
}
