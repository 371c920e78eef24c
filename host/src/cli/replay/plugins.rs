//! Which plugins are replayed: those of a config, by name, or any component.
//!
//! A component that bears the name of a plugin of the config takes its place there, with its config and grants: so a new
//! version is tried as the old one is used. One that has no such name is granted what it asks for; nothing is written anyway.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::failure::Failure;
use crate::config::{Config, PluginConfig, PluginFrom};
use crate::replay::NO_TIME_LIMIT;
use crate::sandbox::{Limits, Plugin, Sandbox};
use crate::shipped;

/// The plugins that are named, else all that the config enables; in the config's order, others behind them.
///
/// # Errors
/// [`Failure::Usage`]: there is no such plugin, or it does not load.
pub(super) fn load(
    sandbox: &Sandbox,
    config: &Config,
    named: &[String],
    plugin_config: Option<&str>,
) -> Result<Vec<Arc<Plugin>>, Failure> {
    let mut wanted = if named.is_empty() { enabled(config) } else { Vec::new() };
    for name in named {
        wanted.push(find(sandbox, config, name, plugin_config)?);
    }
    wanted.sort_by_key(|plugin| place_in(config, &plugin.name));
    if wanted.is_empty() {
        return Err(Failure::usage("no plugin is enabled in the config: name one with --plugin"));
    }
    let load = |plugin: &PluginConfig| shipped::load(sandbox, plugin).map(Arc::new).map_err(Failure::usage);
    wanted.into_iter().map(|plugin| load(&without_clock(plugin))).collect()
}

/// The same with one of them in another version.
///
/// # Errors
/// [`Failure::Usage`].
pub(super) fn with(names: &[String], file: &Path) -> Vec<String> {
    let stem = stem(file);
    let others = names.iter().filter(|name| name_of(name) != stem && names.len() > 1);
    others.cloned().chain([file.to_string_lossy().into_owned()]).collect()
}

fn enabled(config: &Config) -> Vec<PluginConfig> {
    config.plugins.iter().filter(|plugin| plugin.enabled).cloned().collect()
}

/// Where a plugin stands in the config; behind all where it does not.
fn place_in(config: &Config, name: &str) -> usize {
    config.plugins.iter().position(|plugin| plugin.name == name).unwrap_or(usize::MAX)
}

fn find(sandbox: &Sandbox, config: &Config, named: &str, plugin_config: Option<&str>) -> Result<PluginConfig, Failure> {
    let name = name_of(named);
    let known = config.plugins.iter().find(|plugin| plugin.name == name).cloned();
    let file = is_file(named).then(|| PathBuf::from(named));
    let mut plugin = match (known, &file) {
        (Some(plugin), None) => plugin,
        (Some(plugin), Some(file)) => PluginConfig { from: PluginFrom::Path(file.clone()), sha256: None, ..plugin },
        (None, _) => blank(config, &name, file.clone())?,
    };
    if let Some(json) = plugin_config {
        json.clone_into(&mut plugin.config_json);
    }
    if plugin.grants.is_empty() && place_in(config, &name) == usize::MAX {
        plugin.grants = asked_for(sandbox, &plugin)?;
    }
    Ok(plugin)
}

/// A plugin that the config does not have.
fn blank(config: &Config, name: &str, file: Option<PathBuf>) -> Result<PluginConfig, Failure> {
    let installed = crate::config::Env::of_process().plugins_dir().ok();
    Ok(PluginConfig {
        name: name.to_owned(),
        from: file.map_or(PluginFrom::Name(installed), PluginFrom::Path),
        sha256: None,
        enabled: true,
        grants: Vec::new(),
        on: None,
        limits: config.limits,
        config_json: "{}".to_owned(),
        line: 0,
    })
}

/// What a plugin needs and can use, models apart.
fn asked_for(sandbox: &Sandbox, plugin: &PluginConfig) -> Result<Vec<String>, Failure> {
    let bytes = shipped::bytes_of(plugin).map_err(Failure::usage)?;
    let found = sandbox.inspect(&bytes, &plugin.config_json, Limits::default());
    let said = match (found.description, found.error) {
        (Some(said), None) => said,
        (_, error) => {
            let why = error.map_or_else(String::new, |error| error.to_string());
            return Err(Failure::usage(format!("plugin {:?}: {why}", plugin.name)));
        }
    };
    let asked = said.needs.into_iter().chain(said.can_use);
    Ok(asked.filter(|grant| !grant.starts_with("model:")).collect())
}

fn without_clock(mut plugin: PluginConfig) -> PluginConfig {
    plugin.limits.time = NO_TIME_LIMIT;
    plugin
}

fn is_file(named: &str) -> bool {
    Path::new(named).extension().is_some_and(|ext| ext == "wasm") || named.contains('/')
}

fn name_of(named: &str) -> String {
    if is_file(named) { stem(Path::new(named)) } else { named.to_owned() }
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-")
}
