//! The capability `model`: a completion from a model that the config names, in `on-settled` only. Needs `model:NAME`.
//!
//! No model is served yet; the shape is there, so that a plugin that can use one loads and is told.
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use super::contract::{Answer, Refused};
use super::instance::{Guest, on_session};

/// Puts the capability where plugins find it.
pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut model = linker.instance("pi-graft:plugin/model@0.1.0")?;
    model.func_wrap("complete", |cx: StoreContextMut<'_, Guest>, (name, _request): (String, String)| {
        on_session(cx, |session| Ok(complete(&name, session.batch.has(&format!("model:{name}")), session.on_entry)))
    })
}

fn complete(name: &str, granted: bool, on_entry: bool) -> Result<Answer, Refused> {
    if on_entry {
        return Err(Refused::new("handler", "on-entry has no model: ask for on-settled with `later`"));
    }
    if !granted {
        return Err(Refused::not_granted(&format!("model:{name}")));
    }
    Err(Refused::new("model", "this version of pi-graft serves no models: do without"))
}
