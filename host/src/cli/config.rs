//! `config init`, `config check`, `config schema` and `config show`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pi_session::settings::{Given, Known, ModelId};
use serde_json::json;

use crate::config::{Config, ConfigError, Env, Fault, SHIPPED, Setting, schema};
use crate::files::shown;
use crate::put::put_new;
use crate::shipped;

use super::around;
use super::failure::{Failure, Outcome};
use super::out::{Out, say};
use super::place;

/// What to do with the config.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the shipped config, with a comment on every key, to where it is looked for (or to --config).
    Init,
    /// Say with line and column what does not hold.
    Check,
    /// Print the JSON Schema of a config, for editors.
    Schema,
    /// Show every value in effect and where it comes from, and what Pi's own settings say.
    Show(Show),
}

/// For which sessions Pi's own settings are shown.
#[derive(Debug, Args)]
pub struct Show {
    /// Their working directory; default: this one.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Their model; default: the one that Pi begins with.
    #[arg(long, value_name = "PROVIDER/ID", value_parser = model)]
    model: Option<ModelId>,
}

fn model(text: &str) -> Result<ModelId, String> {
    let (provider, id) = text.split_once('/').ok_or("write PROVIDER/ID")?;
    Ok(ModelId { provider: provider.to_owned(), id: id.to_owned() })
}

pub(super) fn run(command: &Command, named: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    match command {
        Command::Init => init(named, out),
        Command::Check => check(named, out),
        Command::Schema => {
            out.line(format!("{:#}", schema()?))?;
            Ok(Outcome::Done)
        }
        Command::Show(of) => show(of, named, out),
    }
}

fn init(named: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let path = named.map_or_else(|| Env::of_process().config_file(), |path| Ok(path.to_path_buf()))?;
    // Never over a config that is there, and never a half of one.
    put_new(&path, SHIPPED).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => Failure::problem(format!(
            "{}: there is a config already, and it stays as it is; move it away, or name another with --config",
            path.display()
        )),
        _ => Failure::problem(format!("{}: {e}", path.display())),
    })?;
    if out.json {
        out.line(json!({ "path": path }))?;
    } else {
        out.line(format!("{} written; every key in it is at its default", path.display()))?;
    }
    Ok(Outcome::Done)
}

fn check(named: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    match Config::find(named) {
        Ok(config) => {
            let faults = plugin_faults(&config)?;
            tell(out, config.path.as_deref(), &faults, &config.notes)?;
            Ok(if faults.is_empty() { Outcome::Done } else { Outcome::Problems })
        }
        Err(ConfigError::Faults { path, faults }) => {
            tell(out, Some(&path), &faults, &[])?;
            Ok(Outcome::Problems)
        }
        Err(other) => Err(other.into()),
    }
}

/// What the plugins themselves say: each is loaded, and given its config.
fn plugin_faults(config: &Config) -> Result<Vec<Fault>, Failure> {
    let sandbox = super::load::sandbox()?;
    let enabled = config.plugins.iter().filter(|plugin| plugin.enabled);
    let faults = enabled.filter_map(|plugin| {
        let error = shipped::load(&sandbox, plugin).err()?.to_string();
        let prefix = format!("line {}: plugin {:?}: ", plugin.line, plugin.name);
        let message = error.strip_prefix(&prefix).unwrap_or(&error).to_owned();
        Some(Fault { line: plugin.line, column: 1, key: format!("plugin.{}", plugin.name), message })
    });
    Ok(faults.collect())
}

fn tell(out: &mut Out, path: Option<&Path>, faults: &[Fault], notes: &[Fault]) -> Result<(), Failure> {
    if out.json {
        let list = |list: &[Fault]| list.iter().map(fault_json).collect::<Vec<_>>();
        let valid = faults.is_empty();
        out.line(json!({ "path": path, "valid": valid, "errors": list(faults), "notes": list(notes) }))?;
        return Ok(());
    }
    let name = place(path);
    for fault in faults {
        out.line(format!("{name}:{fault}"))?;
    }
    for note in notes {
        out.line(format!("{name}:{note} (note)"))?;
    }
    match faults.len() {
        0 => out.line(format!("{name} holds"))?,
        1 => out.line("1 error")?,
        many => out.line(format!("{many} errors"))?,
    }
    Ok(())
}

fn fault_json(fault: &Fault) -> serde_json::Value {
    json!({ "line": fault.line, "column": fault.column, "key": fault.key, "message": fault.message })
}

fn place(path: Option<&Path>) -> String {
    path.map_or_else(|| "the shipped config".to_owned(), |path| path.display().to_string())
}

fn show(of: &Show, named: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let config = Config::find(named)?;
    for note in &config.notes {
        say(format!("{}:{note}", place(config.path.as_deref())));
    }
    let pi = OfPi::look(of)?;
    if out.json {
        let settings: Vec<_> = config.settings.iter().map(setting_json).collect();
        out.line(json!({ "path": config.path, "settings": settings, "pi": pi.json() }))?;
        return Ok(Outcome::Done);
    }
    out.line(format!("# {}", place(config.path.as_deref())))?;
    let mut section = String::new();
    for setting in config.settings.iter().filter(|setting| !setting.value.is_null()) {
        let (of, key) = split(&setting.key);
        if of != section {
            out.line(format!("\n[{of}]"))?;
            of.clone_into(&mut section);
        }
        out.line(format!("{:<44} # {}", format!("{key} = {}", setting.value), setting.origin))?;
    }
    pi.write(out)?;
    Ok(Outcome::Done)
}

/// What Pi's own files say for sessions of one directory and model.
struct OfPi {
    cwd: PathBuf,
    model: Option<ModelId>,
    untrusted: Option<PathBuf>,
    /// Key, value, and who says so.
    rows: Vec<(&'static str, String, String)>,
}

impl OfPi {
    fn look(of: &Show) -> Result<OfPi, Failure> {
        let cwd = place::real(of.cwd.as_deref().unwrap_or(Path::new(".")))?;
        let seen = around::look(Some(&cwd));
        let model = of.model.clone().or_else(|| seen.around.default_model());
        let facts = seen.around.facts(model.as_ref(), &Given::default());
        around::tell(&facts.faults);
        let mut rows = vec![row("compaction.enabled", &facts.enabled)];
        rows.push(row("compaction.reserveTokens", &facts.reserve));
        rows.push(row("compaction.keepRecentTokens", &facts.keep_recent));
        rows.extend(facts.window.as_ref().map(|known| row("contextWindow", known)));
        rows.extend(facts.max_tokens.as_ref().map(|known| row("maxTokens", known)));
        Ok(OfPi { cwd, model, untrusted: seen.untrusted.clone(), rows })
    }

    fn write(&self, out: &mut Out) -> Result<(), Failure> {
        let model = self.model.as_ref().map_or_else(|| "no model".to_owned(), around::name_of);
        out.line(format!("\n# Pi's own settings in {} with {model}:", shown(&self.cwd)))?;
        for (key, value, origin) in &self.rows {
            out.line(format!("# {:<42} # {origin}", format!("{key} = {value}")))?;
        }
        if let Some(untrusted) = &self.untrusted {
            out.line(format!("# {} does not count: Pi does not trust the project (/trust in Pi)", shown(untrusted)))?;
        }
        Ok(())
    }

    fn json(&self) -> serde_json::Value {
        let model = self.model.as_ref().map(|model| json!({ "provider": model.provider, "modelId": model.id }));
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
        let rows = self.rows.iter();
        let rows = rows.map(|(key, text, origin)| json!({ "key": key, "value": value(text), "origin": origin }));
        let rows: Vec<_> = rows.collect();
        json!({ "cwd": self.cwd, "model": model, "settings": rows, "untrusted": self.untrusted })
    }
}

fn row<T: std::fmt::Display>(key: &'static str, known: &Known<T>) -> (&'static str, String, String) {
    (key, known.value.to_string(), around::origin_of(known))
}

/// The section of a key, and its name there. A plugin's name may have dots, its keys have none.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

fn setting_json(setting: &Setting) -> serde_json::Value {
    json!({ "key": setting.key, "value": setting.value, "origin": setting.origin.to_string() })
}
