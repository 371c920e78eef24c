//! Old, large results of tools become short stubs, when that pays.
//!
//! [`look`] goes over the context and finds what may go; [`pays`] weighs what every further request saves against what has to be
//! sent anew, since an edit early in the context makes the provider's prompt cache worthless from there on; [`mod@stub`] writes
//! what stands in place of a result.
#![deny(missing_docs)]

pub mod config;
pub mod look;
pub mod pays;
pub mod stub;

use pi_graft_plugin::{Description, Edit, Level, Plugin, Result, Run, Settled, export};

use config::Config;
use look::Look;
use pays::Choice;

/// Edits of one run: a batch may hold so many drafts.
const MOST: usize = 32;

/// The plugin.
#[derive(Debug)]
pub struct TrimToolResults;

impl Plugin for TrimToolResults {
    type Config = Config;

    fn describe(_: &Config) -> Result<Description> {
        let description = Description::new("trim-tool-results", env!("CARGO_PKG_VERSION"));
        Ok(description.needs(["append:context_edit"]).on(["message:assistant", "message:toolResult"]))
    }

    /// Where the cache is cold the edits are made at once, so that they land before the next request; else they are made when
    /// the branch is at rest or Pi stands at a boundary.
    fn on_entry(config: &Config, run: &Run) -> Result {
        let look = look::look(config, run);
        let Some(choice) = pays::choose(config, &look, run) else { return Ok(()) };
        if look.is_cold {
            return trim(run, &look, &choice);
        }
        Ok(run.later(&choice.account)?)
    }

    fn on_settled(config: &Config, run: &Run, _: &Settled) -> Result {
        let look = look::look(config, run);
        match pays::choose(config, &look, run) {
            Some(choice) => trim(run, &look, &choice),
            None => {
                run.log(Level::Debug, "it does not pay any more");
                Ok(())
            }
        }
    }
}

/// Proposes the stubs.
fn trim(run: &Run, look: &Look, choice: &Choice) -> Result {
    let chosen = look.results.iter().filter(|result| result.place >= choice.from).take(MOST);
    let edits: Vec<_> = chosen.map(|result| Edit::content(&result.id, &stub::content(run, result))).collect();
    let refused = run.append_edits(&edits).into_iter().filter_map(Result::err);
    for refusal in refused {
        run.log(Level::Warn, &["a result was not trimmed: ", &refusal.message].concat());
    }
    run.log(Level::Info, &choice.account);
    Ok(())
}

export!(TrimToolResults);
