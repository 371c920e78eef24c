//! The session files of the Pi coding agent, format version 3: read as Pi reads them, checked as Pi does not.
//!
//! Two kinds of thing are kept apart: what was *read* stays bytes, known by place ([`json`], [`tree::Source`]); what is
//! *understood* is small and typed ([`entry`], [`tree`]). Nothing that was read is ever written anew. The crate does no
//! I/O and has no clock: time, ids and bytes come in as parameters.
//!
//! | to | use |
//! | --- | --- |
//! | index a file, or its new lines | [`Tree::from_bytes`], [`Tree::from_source`], [`Tree::push`] |
//! | know what is wrong with a file, and what Pi does with that | [`check`] |
//! | follow a branch | [`Branch`] |
//! | see what the model sees | [`Branch::context`], [`Branch::messages`], [`Branch::tokens`] |
//! | plan a compaction | [`Branch::plan`] |
//! | create a session, append, branch, reset, leave a branch with a summary | [`Session`], [`NewEntry`] |
//! | go on from a branch in a new session (fork, clone) | [`Session::fork`], [`fork`] |
//! | judge and write what plugins propose | [`validate`], [`compose`] |
//! | take back what a plugin did | [`undo`] |
//! | write an old file as version 3 | [`migrate`] |
//! | know what Pi's own settings and models say | [`settings`] |
//!
//! Rules are cited as in the description of the format (`S8.5`). What is meant to differ from Pi stands in
//! `DIFFERENCES.md` beside this crate, all that can be wrong with a file, and what Pi does with it, in `FINDINGS.md`.
//!
//! # A session analyzer
//!
//! What does a session consist of, what did it cost, which tools were called, and what does the model see of it now?
//!
//! ```
//! use std::{collections::BTreeMap, sync::Arc};
//! use pi_session::{Branch, Tree, check, entry::Role, json::Json};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/real/05_auto_mid_run.jsonl");
//! let text = Arc::new(std::fs::read(file)?);
//! let tree = Arc::new(Tree::from_bytes(&text));
//! for problem in check::check(&tree, text.clone())?.problems {
//!     println!("line {}: {}; Pi {}", problem.line, problem.message, problem.pi());
//! }
//! let mut kinds = BTreeMap::new();
//! for entry in tree.entries() {
//!     *kinds.entry(entry.kind.as_str()).or_insert(0) += 1;
//! }
//! println!("{} entries {kinds:?}, {} roots", tree.entries().len(), tree.roots().count());
//! for (model, usage) in &tree.totals().by_model {
//!     println!("{model}: {} tokens in, {} out, {:.2} dollars", usage.input, usage.output, usage.cost);
//! }
//! let branch = Branch::of_leaf(&tree, text.clone())?;
//! let mut tools: BTreeMap<String, u32> = BTreeMap::new();
//! for item in branch.items().filter(|item| item.facts.role == Role::ToolResult) {
//!     let tool = branch.read(item.place, |line| Some(line.get("message")?.get("toolName")?.as_str()?.into_owned()))?;
//!     *tools.entry(tool.unwrap_or_default()).or_default() += 1;
//! }
//! let context = branch.context();
//! println!("tools {tools:?}; context: {} of {} entries, {} tokens",
//!     context.entries.len(), branch.len(), branch.tokens(&context)?.total);
//! for entry in &context.entries {
//!     for message in branch.messages(entry)? {
//!         let role = Json::parse(message.as_bytes())?.get("role").and_then(Json::as_str).map(|role| role.into_owned());
//!         println!("{:>8} {}", branch.shown_tokens(entry), role.unwrap_or_default());
//!     }
//! }
//! # assert_eq!((tree.entries().len(), branch.tokens(&context)?.total), (13, 1596.0));
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![warn(missing_docs)]

pub mod branch;
pub mod check;
pub mod compaction;
pub mod compose;
pub mod context;
pub mod draft;
pub mod entry;
mod facts;
pub mod figures;
pub mod finding;
pub mod fork;
mod glued;
pub mod grafted;
pub mod grafts;
pub mod handover;
pub mod header;
mod ids;
pub mod json;
mod load;
mod marks;
mod message;
pub mod migrate;
mod new_entry;
mod pairing;
mod paths;
mod plain;
pub mod problem;
pub mod receipt;
pub mod refusal;
pub mod retell;
mod scan;
pub mod session;
pub mod settings;
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
pub mod undo;
pub mod validate;
mod walk;

pub use branch::Branch;
pub use new_entry::{BranchSummary, NewEntry};
pub use session::Session;
pub use tree::Tree;
