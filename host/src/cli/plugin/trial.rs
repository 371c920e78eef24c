//! `plugin try`

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pi_session::json::Json;
use serde_json::json;

use crate::config::{Limits as ConfigLimits, PluginConfig, PluginFrom, is_plugin_name};
use crate::models::Models;
use crate::replay::tried::{RunTold, Tried};
use crate::replay::{NO_TIME_LIMIT, Replay, Scene};
use crate::sandbox::{Description, Limits, Plugin};
use crate::shipped;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::{Out, grouped};
use crate::cli::paint::{Ink, Row};
use crate::cli::preview::{self, one_line};

/// The session that stands for standard input.
const STDIN: &str = "-";

/// Run a plugin on a session of a few lines, as if live, and say what it did. Writes nothing.
///
/// A line is an entry, or short for one: {"user":"hi"}, {"assistant":"hello"}, {"toolResult":"…"}, {"custom":"TYPE","data":…},
/// {"compact":"manual"}. What it leaves out is made, and the same each time. No config is read, and none of Pi's settings.
#[derive(Debug, Args)]
pub struct Try {
    /// The component, or a folder, whose plugin is built first
    #[arg(value_name = "FILE|DIR")]
    plugin: PathBuf,
    /// The session; - is standard input
    #[arg(value_name = "SESSION", default_value = STDIN)]
    session: PathBuf,
    /// The plugin's config, as JSON, or @FILE
    #[arg(long, value_name = "JSON", default_value = "{}")]
    plugin_config: String,
    /// What it is granted (again for each; empty for nothing); default: all that it asks for, and the models that are given
    #[arg(long = "grant", value_name = "CAPABILITY")]
    grants: Option<Vec<String>>,
    /// An answer of a model (again for each): it is given once, in this order
    #[arg(long = "model", value_name = "NAME=ANSWER", value_parser = answer)]
    models: Vec<(String, String)>,
    /// Want a compaction at the end: manual, threshold or overflow
    #[arg(long, value_name = "REASON")]
    compact: Option<String>,
}

fn answer(text: &str) -> Result<(String, String), String> {
    let (name, answer) = text.split_once('=').ok_or("the model's name, `=`, and what it answers")?;
    Ok((name.to_owned(), answer.to_owned()))
}

impl Try {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        let scene = self.scene()?;
        let plugin = Arc::new(self.load()?);
        let replay = Replay { plugins: vec![Arc::clone(&plugin)], agent_dir: None };
        let tried = replay.scene(&scene, Arc::new(Models::giving(&self.models))).map_err(Failure::problem)?;
        if out.json {
            in_json(&plugin, &tried, out)?;
        } else {
            in_words(&plugin, &tried, out)?;
        }
        Ok(if tried.runs.iter().all(|run| run.failed.is_none()) { Outcome::Done } else { Outcome::Problems })
    }

    fn scene(&self) -> Result<Scene, Failure> {
        let text = if self.session == Path::new(STDIN) {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(&self.session)
        };
        let text = text.map_err(|error| Failure::usage(format!("{}: {error}", self.session.display())))?;
        let mut scene = Scene::parse(&text).map_err(Failure::usage)?;
        if let Some(reason) = &self.compact {
            scene.want(reason).map_err(Failure::usage)?;
        }
        Ok(scene)
    }

    fn config(&self) -> Result<String, Failure> {
        let Some(path) = self.plugin_config.strip_prefix('@') else { return Ok(self.plugin_config.clone()) };
        std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{path}: {error}")))
    }

    /// The plugin as a config that names it would have it, without a limit of wall clock: fuel is the same everywhere.
    fn load(&self) -> Result<Plugin, Failure> {
        let file = if self.plugin.is_dir() { super::build::component(&self.plugin)?.0 } else { self.plugin.clone() };
        let (bytes, config_json) = (super::read(&file)?, self.config()?);
        let sandbox = super::sandbox()?;
        super::tell_wait(&bytes);
        let found = sandbox.inspect(&bytes, &config_json, Limits::default());
        let said = match (found.description, found.error) {
            (Some(said), None) => said,
            (_, error) => {
                let why = error.map_or_else(|| "it does not say what it is".to_owned(), |error| error.to_string());
                return Err(Failure::problem(format!("{}: {why}", file.display())));
            }
        };
        let name = if is_plugin_name(&said.name) { said.name.clone() } else { "plugin".to_owned() };
        let plugin = PluginConfig {
            name,
            from: PluginFrom::Path(file),
            sha256: None,
            enabled: true,
            grants: self.granted(said),
            on: None,
            limits: ConfigLimits { time: NO_TIME_LIMIT, ..ConfigLimits::default() },
            config_json,
            line: 0,
        };
        shipped::load(&sandbox, &plugin).map_err(Failure::problem)
    }

    fn granted(&self, said: Description) -> Vec<String> {
        if let Some(grants) = &self.grants {
            return grants.iter().filter(|grant| !grant.is_empty()).cloned().collect();
        }
        let is_given = |grant: &String| {
            let model = grant.strip_prefix("model:");
            model.is_none_or(|model| self.models.iter().any(|(name, _)| name == model))
        };
        let needs = said.needs.into_iter();
        needs.chain(said.can_use.into_iter().filter(is_given)).collect()
    }
}

fn in_json(plugin: &Plugin, tried: &Tried, out: &mut Out) -> Result<(), Failure> {
    let grants: Vec<_> = plugin.grants().collect();
    let of = json!({ "name": plugin.name(), "version": plugin.version(), "digest": plugin.digest(), "grants": grants });
    let told = serde_json::to_string(tried).map_err(Failure::problem)?;
    out.line(format!("{{\"plugin\":{of},{}", told.strip_prefix('{').unwrap_or(&told)))?;
    Ok(())
}

fn in_words(plugin: &Plugin, tried: &Tried, out: &mut Out) -> Result<(), Failure> {
    let grants: Vec<_> = plugin.grants().collect();
    let granted = if grants.is_empty() { "nothing".to_owned() } else { grants.join(", ") };
    let head = format!("{} {}", plugin.name(), plugin.version());
    out.paint(&Row::new().and(Ink::Bold, &head).and(Ink::Dim, &format!("  granted {granted}")))?;
    for run in &tried.runs {
        told(run, out)?;
    }
    for asked in &tried.asked {
        let request = serde_json::to_string(&asked.asked.request).map_err(Failure::problem)?;
        out.paint(&line("asked", Ink::Cyan, &format!("{}  {}", asked.model, one_line(&request))))?;
    }
    let text = format!("context: {} messages, {} tokens", tried.context.len(), grouped(tried.tokens));
    out.paint(&Row::new().and(Ink::Bold, &text))?;
    for shown in &tried.context {
        let message = Json::parse(shown.message.get().as_bytes()).map_err(Failure::problem)?;
        let row = Row::new().and(Ink::Plain, "  ").column(Ink::Dim, 9, &one_line(&shown.id));
        out.paint(&row.and(Ink::Plain, &preview::message(message)))?;
    }
    Ok(())
}

fn told(run: &RunTold, out: &mut Out) -> Result<(), Failure> {
    let why = if run.reason == "entry" { String::new() } else { format!(" ({})", run.reason) };
    let text = format!("{}{why}, fuel {}", run.handler, grouped(run.fuel));
    let row = Row::new().and(Ink::Plain, "  ").column(Ink::Plain, 9, &one_line(&run.trigger));
    out.paint(&row.and(Ink::Dim, &text))?;
    for draft in &run.proposed {
        out.paint(&line(run.outcome.as_deref().unwrap_or_default(), Ink::Green, &one_line(draft.get())))?;
    }
    if !run.why.is_empty() {
        out.paint(&line("", Ink::Dim, &one_line(&run.why)))?;
    }
    for refused in &run.refused {
        out.paint(&line("refused", Ink::Yellow, &format!("{}: {}", refused.rule, one_line(&refused.message))))?;
    }
    for logged in &run.log {
        out.paint(&line(&logged.level, Ink::Dim, &one_line(&logged.text)))?;
    }
    if let Some(failed) = &run.failed {
        out.paint(&line("failed", Ink::Red, &format!("{}: {}", failed.kind, one_line(&failed.message))))?;
    }
    Ok(())
}

fn line(what: &str, ink: Ink, text: &str) -> Row {
    Row::new().and(Ink::Plain, "    ").column(ink, 9, what).and(Ink::Plain, text)
}
