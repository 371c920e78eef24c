//! Plugins as WebAssembly components: loaded, checked against their grants, and run on a branch within limits.
//!
//! Knows sessions, and nothing of files; nothing else names wasmtime. All of it is synchronous: call it on a thread that
//! may wait, never on the daemon's loop.
//!
//! A run is a function of the session. Each gets a fresh instance, so memory never survives; a store that trapped or hit
//! a limit is thrown away with it. What a plugin can reach is the contract's interfaces, one file each here
//! ([`session`], [`append`], [`model`], [`log`]), and nothing else: a component that imports more is not loaded.
//!
//! | bytes to a plugin | [`compiler`], in a process of its own → [`cache`] → [`component`] → [`plugin`] |
//! | --- | --- |
//! | a run | [`instance`] over a [`view`] of the branch, with a [`batch`] for what is proposed |
//! | what ends one | [`limits`], [`ticker`], [`report`] |

mod append;
mod batch;
mod cache;
mod compiler;
mod component;
mod contract;
mod engine;
mod grants;
mod inspect;
mod instance;
mod limits;
mod log;
mod model;
mod pieces;
mod plugin;
mod report;
mod session;
mod ticker;
mod view;
mod wakes;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use compiler::{COMPILE, SMALL, serve as serve_compiler};
pub use component::{CONTRACT_VERSION, componentize};
#[doc(hidden)]
pub use engine::config as engine_config;
pub use inspect::{Description, Inspection};
pub use limits::Limits;
pub use model::{Answered, Models, NotAnswered};
pub use plugin::{Plugin, PluginSource};
pub use report::{Done, Failure, FailureKind, Handler, HostFacts, LogLine, ModelFacts, PiCompaction, Run, RunReport};
pub use view::maker;

/// How many bytes of compiled code are kept, unless it is said.
const CACHE_BYTES: u64 = 512 << 20;

/// What a sandbox is made for.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// Where compiled code is kept; none compiles each plugin anew. A directory of its own, which only this user may
    /// write to.
    pub cache_dir: Option<PathBuf>,
    /// This program, which compiles each plugin in a process of its own when it is started with [`COMPILE`]; none compiles it in
    /// this process, where nothing bounds what that takes.
    pub compiler: Option<PathBuf>,
    /// Bytes of compiled code that are kept; the ones not used for longest go first.
    pub cache_bytes: u64,
    /// Runs at one time; further ones wait.
    pub concurrent_runs: u32,
    /// The most memory that a plugin's limits may allow it, bytes.
    pub max_memory: usize,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self { cache_dir: None, compiler: None, cache_bytes: CACHE_BYTES, concurrent_runs: 16, max_memory: 1 << 30 }
    }
}

/// An engine with its cache: what plugins are loaded into.
pub struct Sandbox {
    clockwork: engine::Clockwork,
    linker: wasmtime::component::Linker<instance::Guest>,
    cache: Option<cache::Cache>,
    compiler: Option<PathBuf>,
    max_memory: usize,
}

impl Sandbox {
    /// A sandbox.
    ///
    /// # Errors
    /// If this machine cannot run compiled code, or the cache's directory cannot be trusted.
    pub fn new(options: &SandboxOptions) -> Result<Arc<Self>, SandboxError> {
        let clockwork = engine::Clockwork::new(options)?;
        let open = |dir: &PathBuf| cache::Cache::open(dir, &clockwork.engine, options.cache_bytes);
        let cache = options.cache_dir.as_ref().map(open).transpose()?;
        let linker = instance::linker(&clockwork.engine).map_err(|error| SandboxError::Engine(format!("{error:#}")))?;
        let (compiler, max_memory) = (options.compiler.clone(), options.max_memory);
        Ok(Arc::new(Self { clockwork, linker, cache, compiler, max_memory }))
    }

    fn engine(&self) -> &wasmtime::Engine {
        &self.clockwork.engine
    }
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine does not run here.
    #[error("WebAssembly cannot be run on this machine: {0}")]
    Engine(String),
    /// The cache's directory cannot be used.
    #[error("the cache of compiled plugins at {dir}: {error}", dir = dir.display())]
    Cache {
        /// The directory.
        dir: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// Others could put code there.
    #[error(
        "the cache of compiled plugins at {dir} is not a directory that only you can write to, so somebody else could \
         put code there: `chmod 700` it, or remove it",
        dir = dir.display()
    )]
    CacheNotPrivate {
        /// The directory.
        dir: PathBuf,
    },
}

/// Why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are no plugin.
    #[error("this is no plugin: {0}")]
    NotAPlugin(String),
    /// It is more than a plugin may be, or than its compiler could take.
    #[error(
        "it is too much: {0}; leave out what it does not use, split huge functions, and build it for size (a Rust plugin with \
         `opt-level = \"s\"`)"
    )]
    TooMuch(String),
    /// The process that was to compile it gave nothing.
    #[error(
        "it could not be compiled: {0}; see that this user may start processes, and try again with `pi-graft reload`"
    )]
    Compiler(String),
    /// It was made for another version of the contract.
    #[error(
        "it was made for version {theirs} of the contract (pi-graft:plugin), and this is version {ours}: build it with \
         the SDK of {ours}, or take the pi-graft that it was made for"
    )]
    Contract {
        /// The plugin's version.
        theirs: String,
        /// The one that is served.
        ours: &'static str,
    },
    /// It imports what the host does not have.
    #[error("it asks for what no plugin gets: {}", .0.join(", "))]
    Imports(Vec<String>),
    /// Its own description failed: a config that it does not like, a trap, a limit.
    #[error("it does not describe itself: {0}")]
    Describe(Failure),
    /// It cannot do without what was not granted.
    #[error("it needs {}, which is not granted: put `{line}` into its [[plugin]] table", missing.join(" and "))]
    Needs {
        /// What is missing.
        missing: Vec<String>,
        /// The line of the config that grants it.
        line: String,
    },
    /// There is no such capability.
    #[error("there is no capability {0:?}: the plugin is of a newer kind, or the name is misspelt")]
    Capability(String),
    /// What wakes it cannot be read.
    #[error(
        "{0:?} wakes nothing: give `*`, an entry type, `message:ROLE`, `custom:TYPE`, `custom_message:TYPE` or `graft`"
    )]
    Pattern(String),
    /// Its limits allow more than there is.
    #[error("its memory limit of {wanted} bytes is over the {most} that a plugin can have")]
    Memory {
        /// What its limits say.
        wanted: usize,
        /// What there is.
        most: usize,
    },
    /// The config is no JSON.
    #[error("its config is no JSON: {0}")]
    ConfigJson(String),
}
