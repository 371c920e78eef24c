//! What Pi's own files say around a session: for which model, which numbers, and who said so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi_session::Branch;
use pi_session::settings::{Facts, Fault, Given, Known, ModelId};

use super::failure::Failure;
use super::open::Opened;
use super::out::{grouped, say};
use super::preview;
use crate::config::Env;
use crate::pi::{PiFiles, Seen};

/// Pi's files as they bear on sessions with this working directory. What is wrong with them is said.
pub(super) fn look(cwd: Option<&Path>) -> Arc<Seen> {
    let seen = PiFiles::new(Env::of_process().agent_dir().ok()).look(cwd);
    tell(&seen.faults);
    seen
}

/// What holds for a session, and the model of this branch of it.
///
/// # Errors
/// [`Failure::Problem`] if the branch cannot be read back.
pub(super) fn facts(opened: &Opened, branch: &Branch, given: &Given) -> Result<(Facts, Option<ModelId>), Failure> {
    let cwd = opened.tree.header().and_then(|header| header.cwd.as_deref()).map(PathBuf::from);
    let model = branch.model()?.and_then(|name| name.id());
    let facts = look(cwd.as_deref()).around.facts(model.as_ref(), given);
    tell(&facts.faults);
    Ok((facts, model))
}

/// Says what is wrong with Pi's files, on standard error.
pub(super) fn tell(faults: &[Fault]) {
    faults.iter().for_each(|fault| say(preview::one_line(&fault.to_string())));
}

/// `1,234 tokens, 12 % of 10,000`; only the tokens where the window is not known.
pub(super) fn of_window(tokens: f64, window: Option<&Known<u64>>) -> String {
    let text = format!("{} tokens", grouped(tokens as u64));
    let Some(window) = window.map(|known| known.value) else { return text };
    format!("{text}, {} % of {}", percent(tokens, window), grouped(window))
}

/// The share of a window, whole per cent.
pub(super) fn percent(tokens: f64, window: u64) -> u64 {
    (tokens * 100.0 / window.max(1) as f64).round() as u64
}

/// `provider/id`, fit for a terminal: a session may name anything.
pub(super) fn name_of(model: &ModelId) -> String {
    preview::one_line(&format!("{}/{}", model.provider, model.id))
}

/// A value, and who says it, fit for a terminal.
pub(super) fn origin_of<T>(known: &Known<T>) -> String {
    preview::one_line(&known.origin.to_string())
}
