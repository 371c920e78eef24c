//! `plugin check`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::sandbox::{CONTRACT_VERSION, Description, Inspection};

use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::{Out, grouped};

/// Say what a plugin is.
#[derive(Debug, Args)]
pub struct Check {
    /// The component, or a core module with its component type embedded
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    with: With,
}

/// What the plugin is given as its config.
#[derive(Debug, Args)]
pub struct With {
    /// The plugin's config, as JSON, where it does not do without
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(super) plugin_config: String,
}

impl Check {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        let bytes = super::read(&self.file)?;
        let found = super::inspect(&bytes, &self.with)?;
        if out.json {
            out.line(in_json(&self.file, &found))?;
        } else {
            in_words(out, &self.file, &found)?;
        }
        Ok(if found.error.is_none() { Outcome::Done } else { Outcome::Problems })
    }
}

fn in_json(file: &Path, found: &Inspection) -> Value {
    let said = found.description.as_ref();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    json!({
        "path": file,
        "loads": found.error.is_none(),
        "error": found.error.as_ref().map(ToString::to_string),
        "name": said.map(|said| &said.name),
        "version": said.map(|said| &said.version),
        "contract": { "plugin": found.contract, "host": CONTRACT_VERSION },
        "needs": said.map(|said| &said.needs),
        "canUse": said.map(|said| &said.can_use),
        "on": said.map(|said| &said.on),
        "imports": found.imports,
        "kind": kind(found),
        "bytes": found.bytes,
        "sha256": found.digest,
        "compileMs": found.compiled_in.map(millis),
    })
}

fn kind(found: &Inspection) -> &'static str {
    if found.is_core { "module" } else { "component" }
}

fn in_words(out: &mut Out, file: &Path, found: &Inspection) -> std::io::Result<()> {
    let name = found.description.as_ref().map(|said| format!("{} {}", said.name, said.version));
    let name = name.unwrap_or_else(|| file.display().to_string());
    match &found.error {
        None => out.line(format!("{name}: loads"))?,
        Some(error) => out.line(format!("{name}: does not load: {error}"))?,
    }
    let contract = found.contract.as_deref().unwrap_or("none");
    row(out, "contract", &format!("{contract} (this pi-graft serves {CONTRACT_VERSION})"))?;
    if let Some(said) = &found.description {
        asks(out, said)?;
    }
    row(out, "imports", &listed(&found.imports))?;
    row(out, "size", &format!("{} bytes, a {}", grouped(found.bytes), kind(found)))?;
    row(out, "sha256", &found.digest)?;
    if let Some(time) = found.compiled_in {
        row(out, "compiled in", &format!("{:.2} s, once: it is kept", time.as_secs_f64()))?;
    }
    Ok(())
}

fn asks(out: &mut Out, said: &Description) -> std::io::Result<()> {
    row(out, "needs", &listed(&said.needs))?;
    row(out, "can use", &listed(&said.can_use))?;
    row(out, "woken by", &listed(&said.on))?;
    row(out, "to grant", &super::grants_line(&said.needs))
}

fn row(out: &mut Out, key: &str, value: &str) -> std::io::Result<()> {
    out.line(format!("  {key:<12} {value}"))
}

fn listed(items: &[String]) -> String {
    if items.is_empty() { "nothing".to_owned() } else { items.join(", ") }
}
