//! Sketches of plugins that strangers would want, each in a file that could be a crate of its own: they compile against the SDK,
//! and so show that the contract has what they need.
#![allow(missing_docs, reason = "sketches")]

mod export_decisions;
mod language_guard;
mod lint_calls;
