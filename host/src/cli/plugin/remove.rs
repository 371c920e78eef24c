//! `plugin remove`

use clap::Args;
use serde_json::json;

use crate::shipped::SHIPPED;

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
        if SHIPPED.iter().any(|(shipped, _)| *shipped == self.name) {
            let message = format!(
                "{} is shipped with pi-graft; to be without it, take its [[plugin]] out of your config",
                self.name
            );
            return Err(Failure::problem(message));
        }
        let pin = super::installed()?.remove(&self.name).map_err(Failure::problem)?;
        if out.json {
            out.line(json!({ "name": self.name, "version": pin.version, "sha256": pin.sha256 }))?;
        } else {
            out.line(format!("{} {} removed; take its [[plugin]] out of your config too", self.name, pin.version))?;
        }
        Ok(Outcome::Done)
    }
}
