//! The session files of the Pi coding agent, format version 3: read as Pi reads them, checked as Pi does not.
//!
//! Two kinds of thing are kept apart: what was *read* stays bytes, known by place ([`json`], [`tree::Source`]); what is
//! *understood* is small and typed ([`entry`], [`tree`]). Nothing that was read is ever written anew. The crate does no
//! I/O, has no clock and no randomness: all of that comes in as parameters.
//!
//! | to | use |
//! | --- | --- |
//! | index a file, or its new lines | [`Tree`] |
//! | follow a branch | [`Branch`] |
//! | see what the model sees | [`Branch::context`], [`Branch::messages`], [`Branch::tokens`] |
//! | plan a compaction | [`Branch::plan`] |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![warn(missing_docs)]

pub mod branch;
pub mod compaction;
pub mod compose;
pub mod context;
pub mod draft;
pub mod entry;
mod facts;
pub mod header;
mod ids;
pub mod json;
mod load;
mod pairing;
pub mod problem;
pub mod receipt;
pub mod refusal;
mod scan;
mod shape;
mod source;
mod splice;
pub mod strict;
mod stringify;
pub mod system;
pub mod time;
pub mod tokens;
pub mod totals;
pub mod tree;
pub mod validate;
mod walk;

pub use branch::Branch;
pub use tree::Tree;
