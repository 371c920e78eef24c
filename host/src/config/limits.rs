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
        }
    }
}

impl Limits {
    /// Reads a table of limits; what it does not name is as in `base`, which came from `origin`.
    pub(super) fn read(
        sheet: &mut Sheet<'_>,
        mut section: Section<'_, '_>,
        base: &Limits,
        origin: &Origin,
    ) -> Limits {
        let from = |value: Value| (value, origin.clone());
        let (shown, origin_of) = from(base.fuel.into());
        let fuel = section.value(sheet, "fuel", (base.fuel, shown, origin_of), |_, v| value::count(v, 1));
        let (shown, origin_of) = from(duration_text(base.time).into());
        let time = section.value(sheet, "time", (base.time, shown, origin_of), |_, v| value::some_duration(v));
        let (shown, origin_of) = from(size_text(base.memory).into());
        let memory = section.value(sheet, "memory", (base.memory, shown, origin_of), |_, v| value::size(v));
        let (shown, origin_of) = from(base.proposals.into());
        let proposals = section.value(sheet, "proposals", (base.proposals, shown, origin_of), |_, v| count32(v));
        let (shown, origin_of) = from(size_text(base.entry_bytes).into());
        let entry_bytes = section.value(sheet, "entry-bytes", (base.entry_bytes, shown, origin_of), |_, v| value::size(v));
        let (shown, origin_of) = from(base.log_lines.into());
        let log_lines = section.value(sheet, "log-lines", (base.log_lines, shown, origin_of), |_, v| count32(v));
        section.finish(sheet);
        Limits { fuel, time, memory, proposals, entry_bytes, log_lines }
    }
}

fn count32(value: &toml::de::DeValue<'_>) -> Result<(u32, Value), String> {
    let (count, shown) = value::count(value, 0)?;
    let count = u32::try_from(count).map_err(|_| format!("{count} is out of range: give at most {}", u32::MAX))?;
    Ok((count, shown))
}
