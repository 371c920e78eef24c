//! The plugins of a config, loaded: shipped ones from this binary, installed ones as they were installed, one's own from
//! their files.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Config, PluginConfig, PluginFrom};
use crate::installed::{Installed, InstalledError, component_at, digest};
use crate::sandbox::{Limits, LoadError, Plugin, PluginSource, Sandbox};

/// The shipped plugins: name and component.
pub const SHIPPED: [(&str, &[u8]); 4] = [
    ("auto-compact", include_bytes!("../../plugins/prebuilt/auto-compact.wasm")),
    ("budget-guard", include_bytes!("../../plugins/prebuilt/budget-guard.wasm")),
    ("redact-secrets", include_bytes!("../../plugins/prebuilt/redact-secrets.wasm")),
    ("trim-tool-results", include_bytes!("../../plugins/prebuilt/trim-tool-results.wasm")),
];

/// Why a plugin of the config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// There is no plugin of this name.
    #[error(
        "line {line}: no plugin {name:?} is shipped or installed (shipped: {}); give the file of your own with \
         `path = \"…\"`, or install it with `pi-graft plugin install`",
        names()
    )]
    Unknown {
        /// The name.
        name: String,
        /// Its line in the config.
        line: u32,
    },
    /// Its file cannot be read.
    #[error("line {line}: plugin {name:?}: {}: {source}", path.display())]
    Read {
        /// The plugin.
        name: String,
        /// Its line in the config.
        line: u32,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is installed, and cannot be used.
    #[error("line {line}: plugin {name:?}: {source}")]
    Installed {
        /// The plugin.
        name: String,
        /// Its line in the config.
        line: u32,
        /// Why.
        source: InstalledError,
    },
    /// The config grants what was not accepted for what is installed.
    #[error(
        "line {line}: plugin {name:?}: {} was not accepted for the one that is installed (version {version}): accept it \
         with `pi-graft plugin install`, or take it out of `grants`",
        extra.join(" and ")
    )]
    Grants {
        /// The plugin.
        name: String,
        /// Its line in the config.
        line: u32,
        /// The version that is installed.
        version: String,
        /// What was not accepted.
        extra: Vec<String>,
    },
    /// It is not the one that the config names.
    #[error("line {line}: plugin {name:?}: its sha256 is {found}, the config says {expected}; it was changed since")]
    Digest {
        /// The plugin.
        name: String,
        /// Its line in the config.
        line: u32,
        /// What the config says.
        expected: String,
        /// What it is.
        found: String,
    },
    /// It cannot be loaded.
    #[error("line {line}: plugin {name:?}: {source}")]
    Load {
        /// The plugin.
        name: String,
        /// Its line in the config.
        line: u32,
        /// Why.
        source: LoadError,
    },
}

impl PluginError {
    /// The plugin's name in the config.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            PluginError::Unknown { name, .. }
            | PluginError::Read { name, .. }
            | PluginError::Installed { name, .. }
            | PluginError::Grants { name, .. }
            | PluginError::Digest { name, .. }
            | PluginError::Load { name, .. } => name,
        }
    }
}

fn names() -> String {
    SHIPPED.map(|(name, _)| name).join(", ")
}

/// Loads every enabled plugin, in the config's order. Gives those that loaded and what is wrong with the others, so that
/// one that is broken does not stop the rest.
#[must_use]
pub fn load_all(sandbox: &Sandbox, config: &Config) -> (Vec<Arc<Plugin>>, Vec<PluginError>) {
    let (mut loaded, mut faults) = (Vec::new(), Vec::new());
    for plugin in config.plugins.iter().filter(|plugin| plugin.enabled) {
        match load(sandbox, plugin) {
            Ok(plugin) => loaded.push(Arc::new(plugin)),
            Err(fault) => faults.push(fault),
        }
    }
    (loaded, faults)
}

/// Loads one plugin of the config.
///
/// # Errors
/// [`PluginError`] says what is wrong with it and where the config names it.
pub fn load(sandbox: &Sandbox, plugin: &PluginConfig) -> Result<Plugin, PluginError> {
    let (name, line) = (plugin.name.clone(), plugin.line);
    let bytes = bytes_of(plugin)?;
    let found = digest(&bytes);
    if let Some(expected) = plugin.sha256.clone().filter(|expected| *expected != found) {
        return Err(PluginError::Digest { name, line, expected, found });
    }
    let source = PluginSource {
        name: name.clone(),
        bytes,
        config_json: plugin.config_json.clone(),
        grants: plugin.grants.clone(),
        limits: limits(plugin),
        on: plugin.on.clone(),
    };
    sandbox.load(source).map_err(|source| PluginError::Load { name, line, source })
}

/// The component of a plugin of the config, as it stands.
///
/// # Errors
/// [`PluginError`]: there is none that may be used.
pub fn bytes_of(plugin: &PluginConfig) -> Result<Vec<u8>, PluginError> {
    match &plugin.from {
        PluginFrom::Name(installed) => match SHIPPED.iter().find(|(name, _)| *name == plugin.name) {
            Some((_, bytes)) => Ok(bytes.to_vec()),
            None => installed_bytes(plugin, installed.as_ref()),
        },
        PluginFrom::Path(path) => component_at(path).map_err(|source| PluginError::Read {
            name: plugin.name.clone(),
            line: plugin.line,
            path: path.clone(),
            source,
        }),
    }
}

/// The one that was installed, if it was accepted for what the config grants it.
fn installed_bytes(plugin: &PluginConfig, dir: Option<&PathBuf>) -> Result<Vec<u8>, PluginError> {
    let (name, line) = (plugin.name.clone(), plugin.line);
    let opened = dir.map(|dir| Installed::at(dir).open(&plugin.name));
    let (bytes, pin) = match opened {
        Some(Ok(found)) => found,
        None | Some(Err(InstalledError::Unknown(_))) => return Err(PluginError::Unknown { name, line }),
        Some(Err(source)) => return Err(PluginError::Installed { name, line, source }),
    };
    let extra: Vec<_> = plugin.grants.iter().filter(|grant| !pin.grants.contains(grant)).cloned().collect();
    if extra.is_empty() { Ok(bytes) } else { Err(PluginError::Grants { name, line, version: pin.version, extra }) }
}

fn limits(plugin: &PluginConfig) -> Limits {
    let of = &plugin.limits;
    Limits {
        fuel: of.fuel,
        time: of.time,
        memory: usize::try_from(of.memory).unwrap_or(usize::MAX),
        proposals: of.proposals,
        entry_bytes: of.entry_bytes,
        log_lines: of.log_lines,
        retry: of.retry,
        ..Limits::default()
    }
}
