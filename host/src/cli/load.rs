//! Loading the plugins of a config: at the start, and again at each reload.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{error, info};

use crate::config::Config;
use crate::sandbox::{Plugin, Sandbox, SandboxError, SandboxOptions};
use crate::shipped;

use super::{Failure, say};

/// Loads plugins into one sandbox.
pub(super) struct Loader {
    sandbox: Arc<Sandbox>,
}

/// The plugins of a config.
pub(super) struct Loaded {
    /// In the config's order.
    pub plugins: Vec<Arc<Plugin>>,
    /// Those that could not be loaded, by name, and why.
    pub faults: Vec<(String, String)>,
}

impl Loader {
    pub(super) fn new() -> Result<Loader, Failure> {
        Ok(Loader { sandbox: sandbox()? })
    }

    /// Loads every enabled plugin; one that cannot be loaded is told and left out.
    pub(super) fn load(&self, config: &Config) -> Loaded {
        let (plugins, faults) = shipped::load_all(&self.sandbox, config);
        faults.iter().for_each(|fault| error!("{fault}"));
        for plugin in &plugins {
            info!(plugin = plugin.name(), version = plugin.version(), digest = &plugin.digest()[..12], "loaded");
        }
        let faults = faults.iter().map(|fault| (fault.name().to_owned(), fault.to_string())).collect();
        Loaded { plugins, faults }
    }
}

impl Loaded {
    /// Enabled plugins that are not there.
    pub(super) fn lacking(&self, config: &Config) -> Vec<String> {
        let there = |name: &str| self.plugins.iter().any(|plugin| plugin.name() == name);
        let enabled = config.plugins.iter().filter(|plugin| plugin.enabled);
        enabled.map(|plugin| plugin.name.clone()).filter(|name| !there(name)).collect()
    }

    /// The same with what was loaded before in the place of what cannot be loaded now.
    pub(super) fn or_keep(self, before: &[Arc<Plugin>], config: &Config) -> Loaded {
        let find = |from: &[Arc<Plugin>], name: &str| from.iter().find(|plugin| plugin.name() == name).cloned();
        let enabled = config.plugins.iter().filter(|plugin| plugin.enabled);
        let plugins =
            enabled.filter_map(|plugin| find(&self.plugins, &plugin.name).or_else(|| find(before, &plugin.name)));
        Loaded { plugins: plugins.collect(), faults: self.faults }
    }
}

/// A sandbox with the cache of compiled plugins, which are compiled in a process of its own. A cache that cannot be used, or
/// trusted, costs the time of compiling and nothing else: that is said, and it is left alone.
pub(super) fn sandbox() -> Result<Arc<Sandbox>, Failure> {
    let cache_dir = cache_dir().map(|dir| dir.join("pi-graft/compiled"));
    let plain = SandboxOptions { compiler: Some(this_program()?), ..SandboxOptions::default() };
    let cached = Sandbox::new(&SandboxOptions { cache_dir, ..plain.clone() });
    match cached {
        Err(error @ (SandboxError::Cache { .. } | SandboxError::CacheNotPrivate { .. })) => {
            say(format!("note: {error}; it is not used, so plugins are compiled each time"));
            Sandbox::new(&plain).map_err(Failure::problem)
        }
        made => made.map_err(Failure::problem),
    }
}

/// This very program, also where another one was put in its place since it was started.
fn this_program() -> Result<PathBuf, Failure> {
    let linux = PathBuf::from("/proc/self/exe");
    if linux.exists() { Ok(linux) } else { std::env::current_exe().map_err(Failure::problem) }
}

/// The user's cache directory.
pub(super) fn cache_dir() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
}
