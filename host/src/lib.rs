//! The daemon and the toolbox behind `pi-graft`: see ARCHITECTURE.md for how an entry flows through the rooms.

// What clippy.toml bans there; tests may make files as they like.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

pub mod cli;
pub mod config;
pub mod daemon;
pub mod deliver;
pub mod explain;
pub mod files;
pub mod installed;
pub mod journal;
pub mod making;
pub mod models;
pub mod pi;
pub mod put;
pub mod replay;
pub mod sandbox;
pub mod shipped;
pub mod steps;
pub mod wire;
