//! What one run may use, and the meter that says what it hit.
use std::time::Duration;

use pi_session::figures::used;
use wasmtime::ResourceLimiter;

use super::report::FailureKind;

/// Bytes of a plugin's file.
pub(super) const MAX_COMPONENT_BYTES: usize = 32 << 20;
/// Bytes of its compiled code.
pub(super) const MAX_CODE_BYTES: usize = 128 << 20;
/// Bytes of stack for wasm, and so the depth of recursion.
pub(super) const MAX_STACK: usize = 512 << 10;
/// Core instances in a component: the plugin's own, and the few that join it to the host.
pub(super) const MAX_CORE_INSTANCES: u32 = 20;
/// Memories in a component.
pub(super) const MAX_MEMORIES: u32 = 4;
/// Tables in a component.
pub(super) const MAX_TABLES: u32 = 8;
/// Elements in all tables of a component together.
pub(super) const MAX_TABLE_ELEMENTS: usize = 20_000;
/// Bytes that a guest can hand over in one call, strings and lists together.
pub(super) const MAX_CALL_BYTES: usize = 4 << 20;
/// Bytes of one line in the log.
pub(super) const MAX_LOG_BYTES: usize = 4 << 10;
/// Bytes of one note to `later`.
pub(super) const MAX_NOTE_BYTES: usize = 4 << 10;
/// Refusals that a report keeps.
pub(super) const MAX_REFUSALS: usize = 64;

/// What one run of a plugin may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, about; host calls cost some too. The same on every machine.
    pub fuel: u64,
    /// Wall clock, host calls included.
    pub time: Duration,
    /// Bytes of all memories together. At most what the sandbox was made for.
    pub memory: usize,
    /// Drafts.
    pub proposals: u32,
    /// Bytes of one entry.
    pub entry_bytes: u64,
    /// Bytes of all entries, as they will be written.
    pub batch_bytes: u64,
    /// Lines in the log; further ones are counted and dropped.
    pub log_lines: u32,
    /// The pause before a run that failed by no fault of its own is tried again; five times as long before each further try.
    pub retry: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 1_000_000_000,
            time: Duration::from_secs(10),
            memory: 64 << 20,
            proposals: 32,
            entry_bytes: 256 << 10,
            batch_bytes: 512 << 10,
            log_lines: 100,
            retry: Duration::from_secs(5),
        }
    }
}

/// Counts memory and tables over all instances of a store, and remembers what was refused.
#[derive(Debug)]
pub(super) struct Meter {
    memory: Count,
    table: Count,
}

/// Something of which there is only so much.
#[derive(Debug)]
struct Count {
    used: usize,
    limit: usize,
    wanted: Option<usize>,
}

impl Meter {
    pub(super) fn new(limits: &Limits) -> Self {
        let count = |limit| Count { used: 0, limit, wanted: None };
        Self { memory: count(limits.memory), table: count(MAX_TABLE_ELEMENTS) }
    }

    /// What was hit, with the figures.
    pub(super) fn hit(&self) -> Option<(FailureKind, String)> {
        let memory = self.memory.hit("bytes of memory (limits.memory)").map(|said| (FailureKind::Memory, said));
        memory.or_else(|| Some((FailureKind::Limit, self.table.hit("table elements")?)))
    }
}

impl Count {
    /// What was refused, if something was.
    fn hit(&self, what: &str) -> Option<String> {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        Some(used(count(self.wanted?), count(self.limit), what))
    }

    /// Whether something of this size may grow.
    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.limit {
            self.wanted = Some(used);
            return false;
        }
        self.used = used;
        true
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.memory.grow(current, desired))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.table.grow(current, desired))
    }

    fn instances(&self) -> usize {
        MAX_CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_memories_share_one_limit() {
        let mut meter = Meter::new(&Limits { memory: 100, ..Limits::default() });
        assert!(meter.memory_growing(0, 60, None).expect("an answer"));
        assert!(meter.memory_growing(0, 40, None).expect("an answer"));
        assert_eq!(meter.hit(), None);
        assert!(!meter.memory_growing(40, 41, None).expect("an answer"));
        let (kind, message) = meter.hit().expect("it was hit");
        assert_eq!(kind, FailureKind::Memory);
        assert_eq!(message, "used 101 of 100 bytes of memory (limits.memory)");
    }
}
