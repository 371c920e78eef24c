//! `[[plugin]]`: which plugins run, in which order, with what grants, limits and config.

use std::path::PathBuf;

use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

use super::limits::Limits;
use super::nearest::nearest;
use super::read::{Section, Sheet, Spot, kind};
use super::setting::Origin;
use super::value;

/// The capabilities that can be granted, `model:NAME` aside.
pub(super) const GRANTS: [&str; 5] =
    ["append:custom", "append:custom_message", "append:compaction", "append:context_edit", "session:raw"];

/// Where the component is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginFrom {
    /// The shipped plugin of this name, else the one that is installed in this directory; none where there is no home.
    Name(Option<PathBuf>),
    /// This file; absolute.
    Path(PathBuf),
}

/// One `[[plugin]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// `name`: unique in the config.
    pub name: String,
    /// `path`, or by name.
    pub from: PluginFrom,
    /// `sha256`: the digest that the component must have, 64 lower-case hexadecimal digits.
    pub sha256: Option<String>,
    /// `enabled`
    pub enabled: bool,
    /// `grants`: what it may do; empty grants nothing.
    pub grants: Vec<String>,
    /// `on`: what wakes it, less often than it asks; none: as it asks.
    pub on: Option<Vec<String>>,
    /// `[plugin.limits]` over `[limits]`.
    pub limits: Limits,
    /// `[plugin.config]` as JSON text, `{}` where there is none.
    pub config_json: String,
    /// The line on which it begins, from 1, for messages.
    pub line: u32,
}

/// What the tables of plugins are read against.
#[derive(Clone, Copy)]
pub(super) struct Around<'c> {
    /// `[limits]`
    pub(super) limits: &'c Limits,
    /// The names of `[models.NAME]`.
    pub(super) models: &'c [String],
}

/// Reads all plugins.
pub(super) fn read_all(sheet: &mut Sheet<'_>, spot: Option<Spot<'_, '_>>, around: Around<'_>) -> Vec<PluginConfig> {
    let Some(spot) = spot else { return Vec::new() };
    let DeValue::Array(items) = spot.get_ref() else {
        let message = format!("expected a list of tables, each begun with [[plugin]], found {}", kind(spot.get_ref()));
        sheet.fault(spot.span().start, "plugin".into(), message);
        return Vec::new();
    };
    let mut plugins: Vec<PluginConfig> = Vec::new();
    for item in items.iter() {
        let at = item.span().start;
        let DeValue::Table(table) = item.get_ref() else {
            sheet.fault(at, "plugin".into(), format!("expected a table, found {}", kind(item.get_ref())));
            continue;
        };
        let Some(plugin) = read_one(sheet, table, at, around) else { continue };
        if plugins.iter().any(|other| other.name == plugin.name) {
            let message = format!("the name {:?} stands twice: give each plugin a name of its own", plugin.name);
            sheet.fault(at, "plugin.name".into(), message);
        }
        plugins.push(plugin);
    }
    plugins
}

fn read_one(sheet: &mut Sheet<'_>, table: &DeTable<'_>, at: usize, around: Around<'_>) -> Option<PluginConfig> {
    let name = match table.get("name").map(|spot| (spot.span().start, name(spot.get_ref()))) {
        Some((_, Ok(name))) => name,
        Some((at, Err(message))) => return none(sheet, at, message),
        None => return none(sheet, at, "missing: name a shipped or installed plugin, or one with a `path`".into()),
    };
    let mut section = Section::new(format!("plugin.{name}"), Some(table));
    let plugin = PluginConfig {
        from: read_from(sheet, &mut section),
        sha256: section.value(sheet, "sha256", (None, Value::Null, Origin::Default), |_, v| digest(v)),
        enabled: section.value(sheet, "enabled", (true, true.into(), Origin::Default), |_, v| value::flag(v)),
        grants: section
            .value(sheet, "grants", (Vec::new(), json!([]), Origin::Default), |_, v| grants(v, around.models)),
        on: section.value(sheet, "on", (None, Value::Null, Origin::Default), |_, v| on(v)),
        limits: {
            let inner = section.section(sheet, "limits");
            Limits::read(sheet, inner, around.limits, &Origin::Limits)
        },
        config_json: read_config(sheet, &mut section),
        line: sheet.line(at),
        name,
    };
    section.take("name");
    section.finish(sheet);
    Some(plugin)
}

fn none(sheet: &mut Sheet<'_>, at: usize, message: String) -> Option<PluginConfig> {
    sheet.fault(at, "plugin.name".into(), message);
    None
}

fn name(value: &DeValue<'_>) -> Result<String, String> {
    let (name, _) = value::text(value)?;
    if is_plugin_name(&name) {
        return Ok(name);
    }
    Err(format!("{name:?}: a name has letters, digits, `-`, `_` and `.` only, and begins with a letter or digit"))
}

/// Whether a name can stand in a receipt, a file name and a command line.
#[must_use]
pub fn is_plugin_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn read_from(sheet: &mut Sheet<'_>, section: &mut Section<'_, '_>) -> PluginFrom {
    let named = PluginFrom::Name(sheet.env.plugins_dir().ok());
    section.value(sheet, "path", (named, Value::Null, Origin::Default), |sheet, v| {
        let (path, shown) = value::path(sheet, v)?;
        Ok((PluginFrom::Path(path), shown))
    })
}

fn digest(value: &DeValue<'_>) -> Result<(Option<String>, Value), String> {
    let (text, _) = value::text(value)?;
    let text = text.to_lowercase();
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok((Some(text.clone()), text.into()));
    }
    Err("expected the 64 hexadecimal digits that sha256sum prints".to_owned())
}

fn grants(value: &DeValue<'_>, models: &[String]) -> Result<(Vec<String>, Value), String> {
    let (grants, shown) = value::texts(value)?;
    let models_of = grants.iter().filter_map(|grant| grant.strip_prefix("model:")).filter(|name| !name.is_empty());
    if let Some(unknown) = models_of.into_iter().find(|name| !models.iter().any(|known| known == name)) {
        return Err(match nearest(unknown, models.iter().map(String::as_str)) {
            Some(near) => format!("there is no [models.{unknown}]; did you mean \"model:{near}\"?"),
            None => format!("there is no [models.{unknown}]: write that table, or take \"model:{unknown}\" out"),
        });
    }
    match grants.iter().find(|grant| !is_grant(grant)) {
        None => Ok((grants, shown)),
        Some(odd) => Err(match nearest(odd, GRANTS) {
            Some(near) => format!("{odd:?} cannot be granted; did you mean {near:?}?"),
            None => format!("{odd:?} cannot be granted; there are {} and model:NAME", GRANTS.join(", ")),
        }),
    }
}

fn is_grant(grant: &str) -> bool {
    GRANTS.contains(&grant) || grant.strip_prefix("model:").is_some_and(|name| !name.is_empty())
}

/// Patterns are checked where plugins are loaded; here only that there is one, since an empty list wakes nobody.
fn on(value: &DeValue<'_>) -> Result<(Option<Vec<String>>, Value), String> {
    let (patterns, shown) = value::texts(value)?;
    if patterns.is_empty() {
        return Err("nothing would wake it: leave `on` out, or set `enabled = false`".to_owned());
    }
    Ok((Some(patterns), shown))
}

fn read_config(sheet: &mut Sheet<'_>, section: &mut Section<'_, '_>) -> String {
    let (name, spot) = (section.key("config"), section.take("config"));
    let Some(spot) = spot else { return "{}".to_owned() };
    let at = spot.span().start;
    let DeValue::Table(table) = spot.get_ref() else {
        sheet.fault(at, name, format!("expected a table [plugin.config], found {}", kind(spot.get_ref())));
        return "{}".to_owned();
    };
    let mut config = serde_json::Map::new();
    for (key, value) in table.iter() {
        let (full, at) = (format!("{name}.{}", key.get_ref()), value.span().start);
        match value::any_json(value.get_ref()) {
            Ok(json) => {
                sheet.setting(full, json.clone(), Origin::File { line: sheet.line(at) });
                config.insert(key.get_ref().to_string(), json);
            }
            Err(message) => sheet.fault(at, full, message),
        }
    }
    Value::Object(config).to_string()
}
