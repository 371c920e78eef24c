//! `[limits]` and `[plugin.limits]`: what one run may use.

use std::time::Duration;

use serde_json::Value;

use super::read::{Section, Sheet};
use super::setting::Origin;
use super::units::{duration_text, size_text};
use super::value;

/// What one run of a plugin may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `fuel`: instructions, about; the same on every machine.
    pub fuel: u64,
    /// `time`: wall clock of one run, host calls included.
    pub time: Duration,
    /// `memory`: bytes of all its memories together.
    pub memory: u64,
    /// `proposals`: drafts in one run.
    pub proposals: u32,
    /// `entry-bytes`: bytes of one entry.
    pub entry_bytes: u64,
    /// `log-lines`: lines that it may log in one run.
    pub log_lines: u32,
    /// `retry`: pause before the first retry of a run that failed by no fault of its own.
    pub retry: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            fuel: 1_000_000_000,
            time: Duration::from_secs(10),
            memory: 64 << 20,
            proposals: 32,
            entry_bytes: 256 << 10,
            log_lines: 100,
            retry: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// Reads a table of limits; what it does not name is as in `base`, which came from `origin`.
    pub(super) fn read(sheet: &mut Sheet<'_>, mut section: Section<'_, '_>, base: &Limits, origin: &Origin) -> Limits {
        let (time, memory) = (duration_text(base.time), size_text(base.memory));
        let (entry_bytes, retry) = (size_text(base.entry_bytes), duration_text(base.retry));
        let read = Limits {
            fuel: section.value(sheet, "fuel", preset(base.fuel, base.fuel, origin), |_, v| value::count(v, 1)),
            time: section.value(sheet, "time", preset(base.time, time, origin), |_, v| value::some_duration(v)),
            memory: section.value(sheet, "memory", preset(base.memory, memory, origin), |_, v| value::size(v)),
            proposals: section.value(sheet, "proposals", preset(base.proposals, base.proposals, origin), count32),
            entry_bytes: section
                .value(sheet, "entry-bytes", preset(base.entry_bytes, entry_bytes, origin), |_, v| value::size(v)),
            log_lines: section.value(sheet, "log-lines", preset(base.log_lines, base.log_lines, origin), count32),
            retry: section.value(sheet, "retry", preset(base.retry, retry, origin), |_, v| value::some_duration(v)),
        };
        section.finish(sheet);
        read
    }
}

/// A default: the value, how it is written, and what said it.
fn preset<T>(value: T, shown: impl Into<Value>, origin: &Origin) -> (T, Value, Origin) {
    (value, shown.into(), origin.clone())
}

fn count32(_: &Sheet<'_>, value: &toml::de::DeValue<'_>) -> Result<(u32, Value), String> {
    let (count, shown) = value::count(value, 0)?;
    let count = u32::try_from(count).map_err(|_| format!("{count} is out of range: give at most {}", u32::MAX))?;
    Ok((count, shown))
}
