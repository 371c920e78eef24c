//! `plugin remove`

use clap::Args;
use serde_json::json;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::Out;

/// Remove an installed plugin.
#[derive(Debug, Args)]
pub struct Remove {
    /// Its name
    name: String,
}

impl Remove {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        let pin = super::installed()?.remove(&self.name).map_err(Failure::problem)?;
        if out.json {
            out.line(json!({ "name": self.name, "version": pin.version, "sha256": pin.sha256 }))?;
        } else {
            out.line(format!("{} {} removed; take its [[plugin]] out of your config too", self.name, pin.version))?;
        }
        Ok(Outcome::Done)
    }
}
