//! Compacts a session before its context is full, while nobody waits: by extracts without a model, or with one.
//!
//! `on-entry` only asks whether a compaction is due ([`due`]). `on-settled` takes the host's plan, reads what it summarises
//! ([`mod@read`]), writes a summary of it ([`summary`]) or has a model write one ([`model`], which reads the conversation as
//! [`talk`] puts it), and proposes the compaction ([`compact`]).
#![deny(missing_docs)]

mod compact;
pub mod config;
pub mod due;
pub mod files;
mod model;
mod read;
pub mod summary;
mod talk;

use pi_graft_plugin::{Description, Level, Plugin, Reason, Result, Run, Settled, export};

use compact::Wish;
use config::{Config, TakeOver};
use due::{Settings, Verdict};

/// The plugin.
#[derive(Debug)]
pub struct AutoCompact;

impl Plugin for AutoCompact {
    type Config = Config;

    fn describe(config: &Config) -> Result<Description> {
        let model = config.by_model.then(|| ["model:", &config.model].concat());
        let needs = [Some("append:compaction".into()), model].into_iter().flatten();
        let description = Description::new("auto-compact", env!("CARGO_PKG_VERSION")).needs(needs);
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
            Ok(wish) => compact::compact(config, &settings, run, &wish),
            Err(why) => {
                run.log(Level::Debug, &["no compaction: ", &why].concat());
                Ok(())
            }
        }
    }
}

/// What to compact now, or why not.
fn wanted<'s>(config: &Config, settings: &Settings, run: &Run, settled: &'s Settled) -> Result<Wish<'s>, String> {
    match (settled.why(), settled.reason.as_str()) {
        (Reason::Settled | Reason::Boundary, _) => match due::judge(config, settings, run) {
            Verdict::Due(_) => Ok(Wish { focus: None, min_saving: settings.min_saving, may_extract: true }),
            Verdict::Not(why) => Err(["no longer due: ", &why].concat()),
        },
        (Reason::CompactionWanted, reason) => {
            let may_extract = in_place_of_pi(config, settings, reason)?;
            Ok(Wish { focus: settled.instructions.as_deref(), min_saving: 1, may_extract })
        }
        (Reason::Other, reason) => Err(["the reason is not known: ", reason].concat()),
    }
}

/// Whether an extract may stand in for what Pi would make: it must not take the place of a better summary unasked.
fn in_place_of_pi(config: &Config, settings: &Settings, reason: &str) -> Result<bool, String> {
    let pi_makes_own = settings.pi_makes_own.unwrap_or(reason != "manual");
    match config.take_over {
        _ if !pi_makes_own => Ok(true),
        TakeOver::Always => Ok(true),
        TakeOver::Model if config.by_model => Ok(false),
        TakeOver::Model => Err("Pi makes its own (`take-over = \"always\"` takes its place)".into()),
        TakeOver::Never => Err("Pi makes its own (`take-over = \"never\"`)".into()),
    }
}

export!(AutoCompact);
