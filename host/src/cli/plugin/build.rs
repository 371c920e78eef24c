//! `plugin build`

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::making;
use crate::put::put;
use crate::sandbox::componentize;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::{Out, grouped, say};

/// Build the plugin in a folder.
#[derive(Debug, Args)]
pub struct Build {
    /// Its folder
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl Build {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        let (component, bytes) = component(&self.dir)?;
        if out.json {
            out.line(json!({ "path": component, "bytes": bytes }))?;
        } else {
            out.line(format!("{}: {} bytes", component.display(), grouped(bytes)))?;
            out.line(format!("\n  pi-graft plugin check {}", component.display()))?;
        }
        Ok(Outcome::Done)
    }
}

/// Builds the plugin in a folder; gives its component and how large it is.
pub(super) fn component(dir: &Path) -> Result<(PathBuf, u64), Failure> {
    let mut built = making::build(dir, &|what| say(what)).map_err(Failure::problem)?;
    if let Ok(here) = built.component.strip_prefix(".") {
        built.component = here.to_owned();
    }
    let bytes = super::read(&built.made)?;
    if built.made.ends_with(&built.component) {
        return Ok((built.component, bytes.len() as u64));
    }
    let component = componentize(&bytes).map_err(Failure::problem)?;
    // A daemon may have it in use.
    put(&built.component, &component)?;
    Ok((built.component, component.len() as u64))
}
