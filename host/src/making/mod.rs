//! Making a plugin of one's own: a folder to begin with, and a component from it.
//!
//! The folder holds all of the SDK, as this binary was built with it: nothing of pi-graft has to be published anywhere, and
//! what the SDK itself is built from comes from the registry of its language.

mod build;
mod name;
mod new;
mod sdk;

use std::path::PathBuf;

pub use build::{Built, build};
pub use new::{Lang, create};

/// Why a plugin cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MakingError {
    /// The folder is in use.
    #[error("{} is there already, and not empty: name a new folder", .0.display())]
    Taken(PathBuf),
    /// No plugin can be called so.
    #[error("{0:?} is no name for a plugin: letters, digits and `-`, beginning with a letter")]
    Name(String),
    /// The folder holds nothing to build.
    #[error("{} holds neither a Cargo.toml nor a package.json: `pi-graft plugin new DIR` makes a folder to begin with", .0.display())]
    NoPlugin(PathBuf),
    /// There is no Rust.
    #[error("cargo is not there: install Rust from https://rustup.rs, then `rustup target add wasm32-unknown-unknown`")]
    NoCargo,
    /// There is one, which cannot compile to wasm.
    #[error(
        "this Rust cannot compile to WebAssembly: run `rustup target add wasm32-unknown-unknown`; for a distribution's \
         Rust install its target (`libstd-rust-dev-wasm32` on Debian and Ubuntu) or the sources of std (`rust-src`), and \
         `lld`"
    )]
    NoWasm,
    /// std can be built along, and there is no linker for it.
    #[error("wasm-ld is missing, which links WebAssembly: install `lld`")]
    NoLinker,
    /// There is no Node.
    #[error(
        "{0} is not there: install Node 20 or newer, which brings npm (https://nodejs.org, or `nodejs` and `npm` of your distribution)"
    )]
    NoNode(&'static str),
    /// Node is too old.
    #[error("this is Node {0}: version 20 or newer is needed (https://nodejs.org)")]
    OldNode(String),
    /// A tool failed, and said why itself.
    #[error("{0} failed; what is wrong stands above")]
    Tool(String),
    /// A tool says what cannot be understood.
    #[error("{tool}: {why}")]
    Odd {
        /// The tool.
        tool: String,
        /// What is odd.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl MakingError {
    /// An error of a file.
    fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
