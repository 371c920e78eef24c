//! Says so, in the session, when what it has cost passes a step of the config.
//!
//! A cost only grows, so each step is passed by one entry: the run on that entry speaks ([`passed`]). What was said stands in
//! the message's `details`, and is all the state there is: a step that the branch has heard of is not said again ([`said`]).
#![deny(missing_docs)]

pub mod config;
pub mod passed;
mod said;
pub mod steps;
pub mod totals;
mod wording;

use pi_graft_plugin::{CustomMessage, Description, Json, Level, Plugin, Result, Run, export};

use config::Config;
use passed::Passed;

/// The `customType` of the messages.
pub const TYPE: &str = "budget-guard";

/// The plugin.
#[derive(Debug)]
pub struct BudgetGuard;

impl Plugin for BudgetGuard {
    type Config = Config;

    fn describe(_: &Config) -> Result<Description> {
        let description = Description::new("budget-guard", env!("CARGO_PKG_VERSION")).needs(["append:custom_message"]);
        // Whatever can cost something (S4.5); grafts since a compaction may have been made by a model.
        Ok(description.on([
            "message:assistant",
            "message:toolResult",
            "usage",
            "compaction",
            "branch_summary",
            "graft",
        ]))
    }

    fn on_entry(config: &Config, run: &Run) -> Result {
        let passed = passed::passed(config, &run.usage_totals().to()?);
        if passed.is_empty() {
            return Ok(());
        }
        let new = said::unsaid(run, passed);
        if new.is_empty() {
            run.log(Level::Debug, "a step was passed that this branch has heard of");
            return Ok(());
        }
        Ok(run.append_message(&message(config, &new))?)
    }
}

/// One message, whatever was passed at once.
fn message(config: &Config, passed: &[Passed]) -> CustomMessage {
    let lines: Vec<_> = passed.iter().map(|passed| wording::line(config, passed)).collect();
    CustomMessage {
        custom_type: TYPE.into(),
        content: Json::text(&lines.join("\n")),
        display: config.display,
        details: Some(said::details(passed)),
    }
}

export!(BudgetGuard);
