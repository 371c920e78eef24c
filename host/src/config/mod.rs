//! The config: TOML, every key known, every fault told with line and column (product.md section 9).
//!
//! [`Config`] is what the rest of the program sees: typed, resolved, defaults filled in, paths absolute. [`read`] walks the
//! text once and asks each table for the keys there are, so the list of known keys is the code that reads them. What comes
//! from outside the file (the home directory, where Pi keeps its sessions) is in [`Env`].

mod env;
mod error;
mod globs;
mod limits;
mod models;
mod nearest;
mod plugin;
mod read;
mod schema;
mod setting;
mod units;
mod value;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

pub use env::Env;
pub use error::{ConfigError, Fault};
pub use globs::Globs;
pub use limits::Limits;
pub use models::{ModelConfig, ModelFrom};
pub use plugin::{PluginConfig, PluginFrom, is_plugin_name};
pub use schema::schema;
pub use setting::{Origin, Setting};
pub use units::{duration_text, parse_duration, parse_size, size_text};

use read::{Section, Sheet};

/// The config that is shipped, with a comment on every key.
pub const SHIPPED: &str = include_str!("../../../config/config.toml");

/// What `watch.network` may be: who delivers on network file systems.
const NETWORK: [&str; 2] = ["bridge", "append"];

/// Which sessions are followed, and when a graft may land.
#[derive(Clone, Debug)]
pub struct Watch {
    /// `roots`: directories that are searched for sessions, also below; absolute.
    pub roots: Vec<PathBuf>,
    /// `include`: globs on a session's path; none: all.
    pub include: Globs,
    /// `exclude`: globs on a session's path.
    pub exclude: Globs,
    /// `cwd`: globs on a session's working directory; none: all.
    pub cwd: Globs,
    /// `settle`: quiet time after a finished turn before a direct append.
    pub settle: Duration,
    /// `live-hold`: quiet time where Pi may be at work.
    pub live_hold: Duration,
    /// `network = "append"`: append directly on network file systems too, where else only the bridge delivers.
    pub append_on_network: bool,
}

impl Watch {
    /// Whether the session at this path is followed.
    #[must_use]
    pub fn wants_path(&self, path: &Path) -> bool {
        (self.include.is_empty() || self.include.matches(path)) && !self.exclude.matches(path)
    }

    /// Whether a session with this working directory is followed; one without is, unless `cwd` has globs.
    #[must_use]
    pub fn wants_cwd(&self, cwd: Option<&str>) -> bool {
        self.cwd.is_empty() || cwd.is_some_and(|cwd| self.cwd.matches(Path::new(cwd)))
    }
}

/// Where state is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// `dir`: the store, the run log and the caches; absolute.
    pub dir: PathBuf,
    /// `keep`: how long the run log is kept.
    pub keep: Duration,
}

/// How a live Pi is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// `turn-end`: how long Pi may wait for us at the end of a turn, at most.
    pub turn_end: Duration,
}

/// A config that holds.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file it came from; none for the shipped one.
    pub path: Option<PathBuf>,
    /// `[watch]`
    pub watch: Watch,
    /// `[state]`
    pub state: State,
    /// `[bridge]`
    pub bridge: Bridge,
    /// `[limits]`, for plugins that say nothing else.
    pub limits: Limits,
    /// `[[plugin]]`, in the order in which they run, disabled ones included.
    pub plugins: Vec<PluginConfig>,
    /// `[models.NAME]`, which plugins may be granted.
    pub models: Vec<ModelConfig>,
    /// Every value in effect and what said it, in the order of the sections.
    pub settings: Vec<Setting>,
    /// What holds and is worth a word to the user.
    pub notes: Vec<Fault>,
}

impl Config {
    /// Reads a config file, in the environment of this process.
    ///
    /// # Errors
    /// [`ConfigError`]: it cannot be read, or does not hold.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        Config::load_in(&Env::of_process(), path)
    }

    /// The same with the environment given.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load_in(env: &Env, path: &Path) -> Result<Config, ConfigError> {
        let io = |source| ConfigError::Io { path: path.to_path_buf(), source };
        let bytes = std::fs::read(path).map_err(io)?;
        let path = std::path::absolute(path).map_err(io)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let (good, at) = (String::from_utf8_lossy(error.as_bytes()), error.utf8_error().valid_up_to());
            let message = "this is no UTF-8: save the file as UTF-8".to_owned();
            ConfigError::Faults { path: path.clone(), faults: vec![Fault::at(&good, at, String::new(), message)] }
        })?;
        Config::parse(env, Some(&path), &text)
    }

    /// The shipped config, in the environment of this process: Pi's own session directory, `auto-compact`.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn default_config() -> Result<Config, ConfigError> {
        Config::parse(&Env::of_process(), None, SHIPPED)
    }

    /// The config of `--config`, else the user's, else the shipped one.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn find(named: Option<&Path>) -> Result<Config, ConfigError> {
        let env = Env::of_process();
        if let Some(path) = named {
            return Config::load_in(&env, path);
        }
        let users = env.config_file()?;
        if users.is_file() { Config::load_in(&env, &users) } else { Config::parse(&env, None, SHIPPED) }
    }

    /// Reads the text of a config. Relative paths in it are relative to the directory of `path`.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn parse(env: &Env, path: Option<&Path>, text: &str) -> Result<Config, ConfigError> {
        let mut sheet = Sheet::new(text, path, env);
        let table = sheet.parse();
        let mut top = Section::new("", Some(&table));
        let watch = top.section(&mut sheet, "watch");
        let watch = read_watch(&mut sheet, watch)?;
        let state = top.section(&mut sheet, "state");
        let state = read_state(&mut sheet, state)?;
        let bridge = top.section(&mut sheet, "bridge");
        let bridge = read_bridge(&mut sheet, bridge);
        let section = top.section(&mut sheet, "limits");
        let limits = Limits::read(&mut sheet, section, &Limits::default(), &Origin::Default);
        let models = models::read_all(&mut sheet, top.take("models"));
        // A table with a fault is there all the same.
        let tables = table.get("models").and_then(|spot| spot.get_ref().as_table());
        let names: Vec<String> = tables.into_iter().flatten().map(|(name, _)| name.get_ref().to_string()).collect();
        let around = plugin::Around { limits: &limits, models: &names };
        let plugins = plugin::read_all(&mut sheet, top.take("plugin"), around);
        top.finish(&mut sheet);
        let (settings, notes) = sheet.finish()?;
        Ok(Config { path: path.map(Path::to_path_buf), watch, state, bridge, limits, plugins, models, settings, notes })
    }
}

fn read_watch(sheet: &mut Sheet<'_>, mut section: Section<'_, '_>) -> Result<Watch, ConfigError> {
    let (root, origin) = sheet.env.pi_sessions()?;
    let shown = json!([root.display().to_string()]);
    let roots = section.value(sheet, "roots", (vec![root], shown, origin), value::paths);
    let include = read_globs(sheet, &mut section, "include");
    let exclude = read_globs(sheet, &mut section, "exclude");
    let cwd = read_globs(sheet, &mut section, "cwd");
    let settle = read_duration(sheet, &mut section, "settle", Duration::from_secs(2));
    let live_hold = read_duration(sheet, &mut section, "live-hold", Duration::from_mins(10));
    let bridge = (NETWORK[0], NETWORK[0].into(), Origin::Default);
    let network = section.value(sheet, "network", bridge, |_, v| value::choice(v, &NETWORK));
    section.finish(sheet);
    Ok(Watch { roots, include, exclude, cwd, settle, live_hold, append_on_network: network == NETWORK[1] })
}

fn read_state(sheet: &mut Sheet<'_>, mut section: Section<'_, '_>) -> Result<State, ConfigError> {
    let dir = sheet.env.state_dir()?;
    let shown = Value::from(dir.display().to_string());
    let dir = section.value(sheet, "dir", (dir, shown, Origin::Default), value::path);
    let keep = read_duration(sheet, &mut section, "keep", Duration::from_hours(90 * 24));
    section.finish(sheet);
    Ok(State { dir, keep })
}

/// The bridge comes later; what is said of it is checked, and the user is told.
fn read_bridge(sheet: &mut Sheet<'_>, mut section: Section<'_, '_>) -> Bridge {
    let usual = Duration::from_millis(500);
    let given = (usual, Value::from(duration_text(usual)), Origin::Default);
    let turn_end = section.value(sheet, "turn-end", given, |_, v| value::some_duration(v));
    section.finish(sheet);
    Bridge { turn_end }
}

fn read_globs(sheet: &mut Sheet<'_>, section: &mut Section<'_, '_>, key: &'static str) -> Globs {
    section.value(sheet, key, (Globs::default(), json!([]), Origin::Default), |sheet, v| {
        let (texts, shown) = value::texts(v)?;
        let globs = Globs::new(texts, sheet.env.home.as_deref()).map_err(|(_, message)| message)?;
        Ok((globs, shown))
    })
}

fn read_duration(
    sheet: &mut Sheet<'_>,
    section: &mut Section<'_, '_>,
    key: &'static str,
    default: Duration,
) -> Duration {
    let default = (default, duration_text(default).into(), Origin::Default);
    section.value(sheet, key, default, |_, v| value::duration(v))
}

#[cfg(test)]
mod tests;
