//! The engine: how wasm is compiled and where its instances live.
//!
//! Whatever decides what a run computes is fixed here: fuel, canonical NaNs, deterministic relaxed SIMD, no threads.
use std::sync::Arc;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, Memory, MemoryType, PoolingAllocationConfig, Store,
};

use super::limits::{MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_STACK, MAX_TABLE_ELEMENTS, MAX_TABLES};
use super::ticker::Ticker;
use super::{SandboxError, SandboxOptions};

/// Memory that an instance has written to and that is wiped by hand rather than given back to the system: below this size that
/// is faster, since what is given back has to be taken again, and each time every core of the process is interrupted.
const KEEP_RESIDENT: usize = 1 << 20;

/// An engine, and the ticker that its deadlines hang on.
#[derive(Clone)]
pub(super) struct Clockwork {
    pub(super) engine: Engine,
    pub(super) memories: Memories,
    pub(super) ticker: Arc<Ticker>,
}

/// How an instance's memory lies in the address space. Compiled code is for one or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memories {
    /// With room around it, so that most accesses need no check.
    Roomy,
    /// No larger than what is in it.
    Small,
}

impl Clockwork {
    /// The fastest engine that this machine has the address space for: with a pool of instances; without one (slower by
    /// some 20 µs a run); or with memories that are no larger than what is in them (slower in every access). What a run
    /// computes, and its fuel, is the same with each.
    pub(super) fn new(options: &SandboxOptions) -> Result<Self, SandboxError> {
        let roomy = usable(&config(Some(options))).or_else(|_| usable(&plain(Memories::Roomy)));
        let (engine, memories) = match roomy {
            Ok(engine) => (engine, Memories::Roomy),
            Err(_) => (usable(&plain(Memories::Small)).map_err(no_engine)?, Memories::Small),
        };
        let ticker = Ticker::new(engine.clone(), options.concurrent_runs);
        let ticker = ticker.map_err(|error| SandboxError::Engine(format!("no thread for its clock: {error}")))?;
        Ok(Self { engine, memories, ticker: Arc::new(ticker) })
    }
}

fn no_engine(error: wasmtime::Error) -> SandboxError {
    SandboxError::Engine(format!("{error:#}"))
}

/// What is compiled how, and run without a pool.
pub(super) fn plain(memories: Memories) -> Config {
    let mut config = config(None);
    if memories == Memories::Small {
        config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(1 << 20);
    }
    config
}

/// An engine that has room for a memory.
fn usable(config: &Config) -> wasmtime::Result<Engine> {
    let engine = Engine::new(config)?;
    Memory::new(&mut Store::new(&engine, ()), MemoryType::new(1, None))?;
    Ok(engine)
}

/// What is compiled how. With options there is a pool; compiled code is the same either way.
#[must_use]
pub fn config(pool: Option<&SandboxOptions>) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(MAX_STACK)
        .concurrency_support(false)
        .native_unwind_info(false)
        .wasm_backtrace_max_frames(None);
    if let Some(options) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(options)));
    }
    config
}

/// Room for so many runs at a time, each as large as the limits let it be.
fn pooling(options: &SandboxOptions) -> PoolingAllocationConfig {
    let runs = options.concurrent_runs;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(runs)
        .total_core_instances(runs * MAX_CORE_INSTANCES)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .total_memories(runs * MAX_MEMORIES)
        .max_memories_per_component(MAX_MEMORIES)
        .total_tables(runs * MAX_TABLES)
        .max_tables_per_component(MAX_TABLES)
        .table_elements(MAX_TABLE_ELEMENTS)
        .max_memory_size(options.max_memory)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT)
        // Where the system tells which pages were written to, only these are wiped.
        .pagemap_scan(Enabled::Auto);
    pool
}
