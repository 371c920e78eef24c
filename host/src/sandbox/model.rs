//! The capability `model`: a completion from a model that the config names, in `on-settled` only. Needs `model:NAME`.
//!
//! Nothing is opened here: whoever makes the run gives what answers ([`Models`]). The time that a call takes is the model's
//! own, and moves the run's deadline. Once nobody waits for the run any more, the call ends it.
use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::Linker;
use wasmtime::{AsContextMut, StoreContextMut};

use super::contract::{Answer, Refused, Weight};
use super::instance::{Guest, Session, Stop, charge, enter};
use super::ticker::ticks;

/// Calls in one run: a plugin that asks without end costs money.
const MAX_CALLS: u32 = 16;

/// What answers `complete`. Given to a run that may ask, and asked on the run's own thread.
pub trait Models: Send + Sync {
    /// One completion from the model of this name; the request is the contract's JSON. Takes as long as the model may.
    ///
    /// # Errors
    /// [`NotAnswered`].
    fn complete(&self, name: &str, request: &str) -> Result<Answered, NotAnswered>;

    /// Whether nobody waits for this run any more.
    fn is_over(&self) -> bool;
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What it said.
    pub text: String,
    /// `stop`, or `length` if it was cut off.
    pub stop: String,
    /// What it cost, in the shape of an assistant message's `usage` (JSON).
    pub usage: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAnswered {
    /// The plugin is told, and may do without.
    Refused {
        /// `model`, `budget` or `limit`.
        rule: String,
        /// A sentence for people, without a word of the session or the key.
        message: String,
    },
    /// Nobody waits for the run any more: it ends.
    Over,
}

/// The models of a run, and what became of its calls.
#[derive(Default)]
pub(super) struct Asking {
    models: Option<Arc<dyn Models>>,
    calls: u32,
    /// Whether the last call failed.
    pub(super) failed: bool,
}

impl Asking {
    pub(super) fn of(models: Option<Arc<dyn Models>>) -> Self {
        Self { models, ..Self::default() }
    }

    /// Whether nobody waits for the run any more.
    pub(super) fn is_over(&self) -> bool {
        self.models.as_ref().is_some_and(|models| models.is_over())
    }
}

/// Puts the capability where plugins find it.
pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut model = linker.instance("pi-graft:plugin/model@0.1.0")?;
    model.func_wrap("complete", |mut cx: StoreContextMut<'_, Guest>, (name, request): (String, String)| {
        enter(&mut cx, request.len() as u64)?;
        let begun = Instant::now();
        let session = cx.data_mut().session.as_mut().ok_or(Stop::NoSession)?;
        let result = complete(session, &name, &request)?;
        resume(&mut cx, begun);
        charge(&mut cx, result.weight())?;
        Ok((result,))
    })
}

fn complete(session: &mut Session, name: &str, request: &str) -> Result<Result<Answer, Refused>, Stop> {
    let models = match asked(session, name) {
        Ok(models) => models,
        Err(refused) => return Ok(Err(refused)),
    };
    let answer = match models.complete(name, request) {
        Ok(Answered { text, stop, usage }) => Ok(Answer { text, stop, usage }),
        Err(NotAnswered::Refused { rule, message }) => Err(Refused::new(&rule, message)),
        Err(NotAnswered::Over) => return Err(Stop::Over),
    };
    session.asking.failed = answer.is_err();
    Ok(answer)
}

/// Who answers, if this run may ask.
fn asked(session: &mut Session, name: &str) -> Result<Arc<dyn Models>, Refused> {
    if session.on_entry {
        return Err(Refused::new("handler", "on-entry has no model: ask for on-settled with `later`"));
    }
    let grant = format!("model:{name}");
    if !session.batch.has(&grant) {
        return Err(Refused::not_granted(&grant));
    }
    session.asking.calls += 1;
    if session.asking.calls > MAX_CALLS {
        return Err(Refused::new("limit", format!("{MAX_CALLS} calls of models are the most in one run")));
    }
    session.asking.models.clone().ok_or_else(|| Refused::new("model", "no model is served here: do without"))
}

/// The time that the model took is not the run's.
fn resume(cx: &mut StoreContextMut<'_, Guest>, begun: Instant) {
    let took = begun.elapsed();
    let guest = cx.data_mut();
    guest.asked += took;
    guest.deadline = guest.deadline.checked_add(took).unwrap_or(guest.deadline);
    let left = guest.deadline.saturating_duration_since(Instant::now());
    cx.as_context_mut().set_epoch_deadline(ticks(left));
}
