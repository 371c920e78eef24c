//! Compacts a session before its context is full: while nobody waits, and without a model.
//!
//! `on-entry` only asks whether a compaction is due ([`due`]). `on-settled` takes the host's plan, reads what it summarises
//! ([`mod@read`]), writes a summary of it ([`summary`]) and proposes the compaction ([`compact`]).
#![deny(missing_docs)]

mod compact;
pub mod config;
pub mod due;
pub mod files;
mod read;
pub mod summary;

use pi_graft_plugin::{Description, Level, Plugin, Reason, Result, Run, Settled, export};

use config::Config;
use due::{Settings, Verdict};

/// The plugin.
#[derive(Debug)]
pub struct AutoCompact;

impl Plugin for AutoCompact {
    type Config = Config;

    fn describe(_: &Config) -> Result<Description> {
        let description = Description::new("auto-compact", env!("CARGO_PKG_VERSION")).needs(["append:compaction"]);
        // What can make the context grow with nothing of the model's behind it. A user's message always has an answer.
        Ok(description.on(["message:assistant", "message:toolResult", "message:bashExecution"]))
    }

    fn on_entry(config: &Config, run: &Run) -> Result {
        match due::judge(config, &Settings::of(config, run), run) {
            Verdict::Due(numbers) => run.later(&numbers)?,
            Verdict::Not(why) => run.log(Level::Debug, &["not due: ", &why].concat()),
        }
        Ok(())
    }

    fn on_settled(config: &Config, run: &Run, settled: &Settled) -> Result {
        let settings = Settings::of(config, run);
        match wanted(config, &settings, run, settled) {
            Ok(min_saving) => compact::compact(config, &settings, run, settled.instructions.as_deref(), min_saving),
            Err(why) => run.log(Level::Debug, &["no compaction: ", &why].concat()),
        }
        Ok(())
    }
}

/// Whether to compact now, and how much that must save; or why not.
fn wanted(config: &Config, settings: &Settings, run: &Run, settled: &Settled) -> Result<u64, String> {
    match (settled.why(), settled.reason.as_str()) {
        (Reason::Settled | Reason::Boundary, _) => match due::judge(config, settings, run) {
            Verdict::Due(_) => Ok(settings.min_saving),
            Verdict::Not(why) => Err(["no longer due: ", &why].concat()),
        },
        (Reason::CompactionWanted, "manual") => Ok(1),
        // An extract must not replace the better summary that Pi would make now.
        (Reason::CompactionWanted, _) if config.take_over_always => Ok(1),
        (Reason::CompactionWanted, _) => Err("Pi makes its own (`take-over = \"always\"` takes its place)".into()),
        (Reason::Other, reason) => Err(["the reason is not known: ", reason].concat()),
    }
}

export!(AutoCompact);
