//! `plugin install`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::config::is_plugin_name;
use crate::installed::{Installed, Pin};
use crate::sandbox::Description;
use crate::shipped::SHIPPED;

use super::check::With;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::Out;

/// Copy a plugin to where configs find it by name.
///
/// It is pinned to its digest: should the copy be changed, it is not loaded until you install it again. With it goes what a
/// config may grant it: all that it asks for, or what you name. Nothing is granted by this: that is for the config.
#[derive(Debug, Args)]
pub struct Install {
    /// The component, or a folder, whose plugin is built first
    #[arg(value_name = "FILE|DIR")]
    from: PathBuf,
    /// The name to install it under; default: its own
    #[arg(long)]
    name: Option<String>,
    /// What a config may grant it (again for each); default: all that it asks for
    #[arg(long = "grant", value_name = "CAPABILITY")]
    grants: Option<Vec<String>>,
    #[command(flatten)]
    with: With,
}

impl Install {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        let file = if self.from.is_dir() { super::build::component(&self.from)?.0 } else { self.from.clone() };
        let bytes = super::read(&file)?;
        let found = super::inspect(&bytes, &self.with)?;
        let refused = |error| Failure::problem(format!("{}: not installed: {error}", file.display()));
        if let Some(error) = found.error {
            return Err(refused(error.to_string()));
        }
        let said = found.description.ok_or_else(|| refused("it does not say what it is".into()))?;
        let installed = super::installed()?;
        let name = self.name(&said, &installed)?;
        let grants = self.grants.clone().unwrap_or_else(|| [said.needs.clone(), said.can_use.clone()].concat());
        let from = std::path::absolute(&file)?;
        let pin = Pin { version: said.version.clone(), sha256: found.digest, grants, from };
        let before = installed.install(&name, &bytes, pin.clone()).map_err(Failure::problem)?;
        tell(out, &name, &said, &pin, before.as_ref())?;
        Ok(Outcome::Done)
    }

    /// The name that a config will use.
    fn name(&self, said: &Description, installed: &Installed) -> Result<String, Failure> {
        // An installed copy that was changed is accepted under the name that it has.
        let stem = self.from.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let known = stem.filter(|stem| self.from == installed.file(stem));
        let name = self.name.clone().or(known).unwrap_or_else(|| said.name.clone());
        if !is_plugin_name(&name) {
            return Err(Failure::usage(format!("{name:?} is no name that a config can use: give one with --name")));
        }
        if SHIPPED.iter().any(|(shipped, _)| *shipped == name) {
            let message =
                format!("a plugin {name:?} is shipped, and would be found first: give another name with --name");
            return Err(Failure::usage(message));
        }
        Ok(name)
    }
}

fn tell(out: &mut Out, name: &str, said: &Description, pin: &Pin, before: Option<&Pin>) -> std::io::Result<()> {
    if out.json {
        let replaced = before.map(|pin| json!({ "version": pin.version, "sha256": pin.sha256, "grants": pin.grants }));
        return out.line(json!({
            "name": name, "version": pin.version, "sha256": pin.sha256, "grants": pin.grants, "replaced": replaced,
        }));
    }
    let version = &pin.version;
    match before {
        None => out.line(format!("{name} {version} installed, sha256 {}", short(pin)))?,
        Some(old) => {
            let (was, now) = (short(old), short(pin));
            out.line(format!("{name} {version} ({now}) installed in place of {} ({was})", old.version))?;
            let more: Vec<_> = pin.grants.iter().filter(|grant| !old.grants.contains(grant)).cloned().collect();
            if !more.is_empty() {
                out.line(format!("new is that it may be granted {}", more.join(", ")))?;
            }
        }
    }
    out.line(format!("\n[[plugin]]\nname = {name:?}\n{}", super::grants_line(&said.needs)))
}

fn short(pin: &Pin) -> &str {
    pin.sha256.get(..12).unwrap_or(&pin.sha256)
}
