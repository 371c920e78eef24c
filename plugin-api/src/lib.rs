//! Write plugins for pi-graft in Rust.
//!
//! A plugin is a type with [`Plugin`] on it and one call of [`export!`]. Each call is a new instance: nothing is
//! remembered from one to the next but what the plugin appends.
//!
//! ```
//! use pi_graft_plugin::{Description, Plugin, Result, Run};
//!
//! struct CountTurns;
//!
//! impl Plugin for CountTurns {
//!     type Config = pi_graft_plugin::NoConfig;
//!
//!     fn describe(_: &Self::Config) -> Result<Description> {
//!         Ok(Description::new("count-turns", "0.1.0").needs(["append:custom"]).on(["message:user"]))
//!     }
//!
//!     fn on_entry(_: &Self::Config, run: &Run) -> Result {
//!         let turns = run.branch().filter(|info| info.role.as_deref() == Some("user")).count();
//!         run.append_custom("count-turns", &turns)?;
//!         Ok(())
//!     }
//! }
//!
//! pi_graft_plugin::export!(CountTurns);
//! # fn main() {}
//! ```
#![deny(missing_docs)]

#[doc(hidden)]
pub mod bindings;
pub mod config;
mod describe;
mod draft;
mod entry;
mod error;
mod export;
mod host;
mod json;
mod pages;
mod random;
mod run;
#[cfg(not(target_family = "wasm"))]
mod scene;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use bindings::pi_graft::plugin::types::{Answer, Description, Edit, Info, Page, Piece, Plan, Refusal, Tokens};
pub use describe::NoConfig;
pub use draft::{Compaction, CustomMessage};
pub use entry::{Block, Content, Entry, Message};
pub use error::{Error, Result};
#[doc(hidden)]
pub use export::{describe, on_entry, on_settled};
pub use host::{Host, Level};
pub use json::Json;
pub use pages::Entries;
pub use random::Random;
pub use run::{Reason, Run, Settled};
pub use {serde, serde_json};

/// A plugin. Only [`Plugin::describe`] has to be written; a handler that is not does nothing.
pub trait Plugin {
    /// The plugin's config, as `[plugin.config]` of the host's config has it. [`NoConfig`] if there is none.
    type Config: serde::de::DeserializeOwned;

    /// What the plugin is, given its config. Called when it is loaded, without a session.
    ///
    /// # Errors
    /// Says what is wrong with the config; the plugin is then not loaded.
    fn describe(config: &Self::Config) -> Result<Description>;

    /// Called once on each entry that wakes the plugin. What it proposes is kept if it returns ok.
    ///
    /// # Errors
    /// Drops what was proposed, and puts the entry into quarantine for this version of the plugin.
    fn on_entry(config: &Self::Config, run: &Run) -> Result {
        let _ = (config, run);
        Ok(())
    }

    /// Called when the branch is at rest and [`Run::later`] asked for it, or when a compaction is wanted.
    ///
    /// # Errors
    /// As for [`Plugin::on_entry`].
    fn on_settled(config: &Self::Config, run: &Run, settled: &Settled) -> Result {
        let _ = (config, run, settled);
        Ok(())
    }
}
