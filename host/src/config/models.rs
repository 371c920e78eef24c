//! `[models.NAME]`: the models that plugins may be granted, each by a name of the user's (`model:NAME`).

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

use super::plugin::is_plugin_name;
use super::read::{Section, Sheet, Spot, kind as kind_of};
use super::setting::Origin;
use super::units::duration_text;
use super::value;

/// How long one call may take, unless it is said.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Tokens of one day, unless it is said.
const TOKENS_PER_DAY: u64 = 2_000_000;

/// One `[models.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Its name here, as in the grant `model:NAME`.
    pub name: String,
    /// Who answers.
    pub from: ModelFrom,
    /// `timeout`: of one call, its retries and their pauses included.
    pub timeout: Duration,
    /// `max-tokens-per-day`: of all plugins together, requests and answers; a day is one of UTC.
    pub max_tokens_per_day: u64,
    /// `input-price`, dollars for a million tokens.
    pub input_price: f64,
    /// `output-price`, the same for what it answers.
    pub output_price: f64,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelFrom {
    /// `kind = "openai"`: a server that speaks OpenAI's chat completions.
    OpenAi {
        /// `base-url`, without a `/` at its end.
        base_url: String,
        /// `model`: its name there.
        model: String,
        /// `api-key-env`: the environment variable that holds the key; none sends none.
        api_key_env: Option<String>,
        /// `ca-file`: certificates (PEM) that are trusted in place of the public ones.
        ca_file: Option<PathBuf>,
    },
    /// `kind = "command"`: a program that reads the prompt on its standard input.
    Command {
        /// `argv`: the program and its arguments; no shell.
        argv: Vec<String>,
    },
}

/// Reads all models.
pub(super) fn read_all(sheet: &mut Sheet<'_>, spot: Option<Spot<'_, '_>>) -> Vec<ModelConfig> {
    let Some(spot) = spot else { return Vec::new() };
    let DeValue::Table(tables) = spot.get_ref() else {
        let message = format!("expected tables, each begun with [models.NAME], found {}", kind_of(spot.get_ref()));
        sheet.fault(spot.span().start, "models".into(), message);
        return Vec::new();
    };
    let mut models = Vec::new();
    for (name, spot) in tables.iter() {
        let (at, full) = (name.span().start, format!("models.{}", name.get_ref()));
        match spot.get_ref() {
            _ if !is_plugin_name(name.get_ref()) => {
                let message = "a name has letters, digits, `-`, `_` and `.` only, and begins with a letter or digit";
                sheet.fault(at, full, message.to_owned());
            }
            DeValue::Table(table) => models.extend(read_one(sheet, name.get_ref(), table, at)),
            other => sheet.fault(at, full, format!("expected a table, found {}", kind_of(other))),
        }
    }
    models
}

fn read_one(sheet: &mut Sheet<'_>, name: &str, table: &DeTable<'_>, at: usize) -> Option<ModelConfig> {
    let mut section = Section::new(format!("models.{name}"), Some(table));
    let is_command = match needed(sheet, &mut section, at, "kind", kind) {
        Some(kind) => kind == "command",
        // Which keys it must have is not known then; those that there are must be right all the same.
        None => table.contains_key("argv"),
    };
    let from = if is_command { read_command(sheet, &mut section, at) } else { read_openai(sheet, &mut section, at) };
    let (timeout, per_day) = (duration_text(TIMEOUT).into(), TOKENS_PER_DAY.into());
    let model = ModelConfig {
        name: name.to_owned(),
        timeout: section.value(sheet, "timeout", (TIMEOUT, timeout, Origin::Default), |_, v| value::some_duration(v)),
        max_tokens_per_day: section.value(
            sheet,
            "max-tokens-per-day",
            (TOKENS_PER_DAY, per_day, Origin::Default),
            |_, v| value::count(v, 1),
        ),
        input_price: section.value(sheet, "input-price", (0.0, 0.into(), Origin::Default), |_, v| value::price(v)),
        output_price: section.value(sheet, "output-price", (0.0, 0.into(), Origin::Default), |_, v| value::price(v)),
        from: from?,
    };
    section.finish(sheet);
    Some(model)
}

fn read_openai(sheet: &mut Sheet<'_>, section: &mut Section<'_, '_>, at: usize) -> Option<ModelFrom> {
    misplaced(sheet, section, "argv", "command");
    let base_url = needed(sheet, section, at, "base-url", base_url);
    let model = needed(sheet, section, at, "model", |v| value::text(v).map(|read| read.0));
    let none = || (None, Value::Null, Origin::Default);
    let api_key_env = section.value(sheet, "api-key-env", none(), |_, v| env_name(v));
    let ca_file = section.value(sheet, "ca-file", (None, Value::Null, Origin::Default), |sheet, v| {
        let (path, shown) = value::path(sheet, v)?;
        Ok((Some(path), shown))
    });
    let from = ModelFrom::OpenAi { base_url: base_url?, model: model?, api_key_env, ca_file };
    if from.is_open_to_all() {
        let text = "its key goes over http, where others may read it; https does not".to_owned();
        sheet.note(at, section.key("base-url"), text);
    }
    Some(from)
}

impl ModelFrom {
    /// Whether a key is sent unencrypted over a network.
    fn is_open_to_all(&self) -> bool {
        let ModelFrom::OpenAi { base_url, api_key_env: Some(_), .. } = self else { return false };
        let here = ["localhost", "127.", "[::1]"];
        base_url.strip_prefix("http://").is_some_and(|rest| !here.iter().any(|host| rest.starts_with(host)))
    }
}

fn read_command(sheet: &mut Sheet<'_>, section: &mut Section<'_, '_>, at: usize) -> Option<ModelFrom> {
    for key in ["base-url", "model", "api-key-env", "ca-file"] {
        misplaced(sheet, section, key, "openai");
    }
    let Texts(argv) = needed(sheet, section, at, "argv", argv)?;
    Some(ModelFrom::Command { argv })
}

/// A key without which there is no model.
fn needed<T>(
    sheet: &mut Sheet<'_>,
    section: &mut Section<'_, '_>,
    at: usize,
    key: &'static str,
    parse: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
) -> Option<T>
where
    T: Clone + Into<Value>,
{
    let name = section.key(key);
    let Some(spot) = section.take(key) else {
        sheet.fault(at, name, "missing".to_owned());
        return None;
    };
    let here = spot.span().start;
    match parse(spot.get_ref()) {
        Ok(value) => {
            sheet.setting(name, value.clone().into(), Origin::File { line: sheet.line(here) });
            Some(value)
        }
        Err(message) => {
            sheet.fault(here, name, message);
            None
        }
    }
}

/// A key that belongs to the other kind.
fn misplaced(sheet: &mut Sheet<'_>, section: &mut Section<'_, '_>, key: &'static str, of: &str) {
    let name = section.key(key);
    if let Some(spot) = section.take(key) {
        sheet.fault(spot.span().start, name, format!("is for kind = \"{of}\""));
    }
}

fn kind(value: &DeValue<'_>) -> Result<String, String> {
    let (kind, _) = value::text(value)?;
    match kind.as_str() {
        "openai" | "command" => Ok(kind),
        other => Err(format!("{other:?}: there are \"openai\" and \"command\"")),
    }
}

/// Where the server is. What stands before an `@` may be a password: it is not told again.
fn base_url(value: &DeValue<'_>) -> Result<String, String> {
    let (url, _) = value::text(value)?;
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split('/').next()).filter(|host| !host.is_empty());
    match host {
        None => Err("expected an address such as \"http://127.0.0.1:8080/v1\"".to_owned()),
        Some(host) if host.contains('@') => {
            Err("has a user or a password: take it out, and name the key's variable in `api-key-env`".to_owned())
        }
        Some(_) if url.contains(['?', '#', ' ']) => {
            Err("ends in more than a path: give the address that `/chat/completions` is put behind".to_owned())
        }
        Some(_) => Ok(url.trim_end_matches('/').to_owned()),
    }
}

/// The name of a variable. What is no name may be the key itself: it is not told again.
fn env_name(value: &DeValue<'_>) -> Result<(Option<String>, Value), String> {
    let (name, shown) = value::text(value)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok((Some(name), shown));
    }
    Err("expected the name of an environment variable, such as \"OPENAI_API_KEY\"; never the key itself".to_owned())
}

fn argv(value: &DeValue<'_>) -> Result<Texts, String> {
    let (argv, _) = value::texts(value)?;
    if argv.is_empty() { Err("is empty: name a program".to_owned()) } else { Ok(Texts(argv)) }
}

/// Texts as a value that can be shown.
#[derive(Clone)]
struct Texts(Vec<String>);

impl From<Texts> for Value {
    fn from(texts: Texts) -> Value {
        json!(texts.0)
    }
}
