//! One run: a store and an instance of its own, the host's functions behind it, and what is left when it ends.
use std::sync::Arc;
use std::time::{Duration, Instant};

use pi_session::figures::used;
use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Engine, Store, StoreContextMut, Trap};

use super::batch::Batch;
use super::contract::{CALL_FUEL, Weight};
use super::engine::Clockwork;
use super::grants::Grants;
use super::limits::{Limits, MAX_CALL_BYTES, MAX_STACK, Meter};
use super::log::Log;
use super::model::Asking;
use super::report::{Failure, FailureKind, HostFacts};
use super::ticker::ticks;
use super::view::View;
use super::{append, log, model, session};

/// What the host keeps for an instance.
pub(super) struct Guest {
    meter: Meter,
    pub(super) deadline: Instant,
    /// How long models took.
    pub(super) asked: Duration,
    pub(super) log: Log,
    /// None while it describes itself.
    pub(super) session: Option<Session>,
}

/// The session side of a run.
pub(super) struct Session {
    pub(super) view: View,
    pub(super) batch: Batch,
    pub(super) facts: HostFacts,
    pub(super) header_json: String,
    pub(super) on_entry: bool,
    pub(super) asking: Asking,
}

/// Ends a run from within a host call.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    #[error("the deadline passed in a host call")]
    Deadline,
    #[error("nobody waits for it any more")]
    Over,
    #[error("there is no session while a plugin describes itself")]
    NoSession,
    #[error("{0}")]
    Unreadable(#[from] pi_session::branch::BranchError),
}

/// All that a plugin can import.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    linker.instance("pi-graft:plugin/types@0.1.0")?;
    session::link(&mut linker)?;
    append::link(&mut linker)?;
    model::link(&mut linker)?;
    log::link(&mut linker)?;
    Ok(linker)
}

/// Begins a host call: the deadline covers it, and it costs fuel.
pub(super) fn enter(cx: &mut StoreContextMut<'_, Guest>, weight: u64) -> wasmtime::Result<()> {
    if Instant::now() > cx.data().deadline {
        return Err(Stop::Deadline.into());
    }
    if cx.data().session.as_ref().is_some_and(|session| session.asking.is_over()) {
        return Err(Stop::Over.into());
    }
    charge(cx, CALL_FUEL + weight)
}

pub(super) fn charge(cx: &mut StoreContextMut<'_, Guest>, fuel: u64) -> wasmtime::Result<()> {
    let left = cx.get_fuel()?;
    cx.set_fuel(left.saturating_sub(fuel))?;
    if left < fuel { Err(Trap::OutOfFuel.into()) } else { Ok(()) }
}

/// Does a host call on the session that the run is about.
pub(super) fn on_session<R: Weight>(
    mut cx: StoreContextMut<'_, Guest>,
    call: impl FnOnce(&mut Session) -> Result<R, Stop>,
) -> wasmtime::Result<(R,)> {
    enter(&mut cx, 0)?;
    let session = cx.data_mut().session.as_mut().ok_or(Stop::NoSession)?;
    let result = call(session)?;
    let fuel = result.weight() + session.view.take_work();
    charge(&mut cx, fuel)?;
    Ok((result,))
}

impl Session {
    /// A draft is judged on the whole context: so is its price.
    pub(super) fn judge_costs(&mut self) {
        self.view.add_context_work();
    }
}

/// What is needed to run a plugin.
pub(super) struct Machine {
    pub(super) clockwork: Clockwork,
    pub(super) pre: InstancePre<Guest>,
    pub(super) limits: Limits,
    pub(super) grants: Arc<Grants>,
}

/// A run that ended.
pub(super) struct Ended<T> {
    pub(super) result: Result<T, Failure>,
    pub(super) guest: Guest,
    pub(super) fuel: u64,
    pub(super) wall: Duration,
}

impl Machine {
    /// Makes an instance, calls it, and throws it away.
    pub(super) fn run<T>(
        &self,
        session: Option<Session>,
        call: impl FnOnce(&mut Store<Guest>, &wasmtime::component::Instance) -> wasmtime::Result<Result<T, String>>,
    ) -> Ended<T> {
        let running = self.clockwork.ticker.run();
        let begun = Instant::now();
        let mut store = self.store(session, begun);
        let result = self.pre.instantiate(&mut store).and_then(|instance| call(&mut store, &instance));
        drop(running);
        let fuel = self.limits.fuel - store.get_fuel().unwrap_or(0).min(self.limits.fuel);
        let guest = store.into_data();
        let result = match result {
            Ok(answer) => answer.map_err(|message| Failure { kind: FailureKind::Err, message }),
            Err(error) => Err(self.failure(&guest, &error)),
        };
        let wall = begun.elapsed().saturating_sub(guest.asked);
        Ended { result, guest, fuel, wall }
    }

    fn store(&self, session: Option<Session>, now: Instant) -> Store<Guest> {
        let Limits { fuel, time, log_lines, .. } = self.limits;
        // A time that no clock reaches is no deadline.
        let deadline = now.checked_add(time).unwrap_or(now + Duration::from_hours(24 * 365));
        let (meter, asked) = (Meter::new(&self.limits), Duration::ZERO);
        let guest = Guest { meter, deadline, asked, log: Log::new(log_lines), session };
        let mut store = Store::new(&self.clockwork.engine, guest);
        store.limiter(|guest| &mut guest.meter);
        store.set_hostcall_fuel(MAX_CALL_BYTES);
        store.set_epoch_deadline(ticks(time));
        // Fuel is on in this engine, so it can be set.
        let _ = store.set_fuel(fuel);
        store
    }

    /// What a failed call means for people.
    fn failure(&self, guest: &Guest, error: &wasmtime::Error) -> Failure {
        let Limits { fuel, time, .. } = self.limits;
        let stop = error.downcast_ref::<Stop>();
        let (kind, message) = match (stop, error.downcast_ref::<Trap>()) {
            (Some(Stop::Deadline), _) | (_, Some(Trap::Interrupt)) => {
                let most = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                (FailureKind::Deadline, used(most, most, "ms of time (limits.time)"))
            }
            (Some(Stop::Over), _) => (FailureKind::Over, Stop::Over.to_string()),
            (Some(Stop::Unreadable(error)), _) => (FailureKind::Session, error.to_string()),
            (_, Some(Trap::OutOfFuel)) => (FailureKind::Fuel, used(fuel, fuel, "fuel (limits.fuel)")),
            (_, Some(Trap::StackOverflow)) => {
                let most = MAX_STACK as u64;
                (FailureKind::Limit, used(most, most, "bytes of stack: it called itself without end"))
            }
            _ => guest.meter.hit().unwrap_or_else(|| crash(error)),
        };
        Failure { kind, message }
    }
}

/// A trap that no limit of ours explains.
fn crash(error: &wasmtime::Error) -> (FailureKind, String) {
    let text = format!("{error:#}");
    if text.contains("fuel allocated for hostcalls") {
        let most = MAX_CALL_BYTES as u64;
        return (FailureKind::Limit, used(most, most, "bytes that one call may hand over"));
    }
    if text.contains("memory fault at wasm address 0xffff") {
        // Where compilers keep a part of the stack in linear memory, below everything else, its end is there.
        return (FailureKind::Trap, format!("{text} (calling itself without end often ends like this)"));
    }
    (FailureKind::Trap, text)
}
