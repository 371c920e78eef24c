//! The capability `append`: proposing entries. Each kind of draft needs its own grant.
use pi_session::draft::Draft;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use super::contract::{Edit, Refused};
use super::instance::{Guest, on_session};

type Cx<'a> = StoreContextMut<'a, Guest>;
type Text = Option<String>;

/// Edits in one list.
const MAX_EDITS: usize = 256;

/// Puts the capability where plugins find it.
pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut append = linker.instance("pi-graft:plugin/append@0.1.0")?;
    append.func_wrap("custom", |cx: Cx<'_>, (kind, data): (String, Text)| {
        on_session(cx, |session| {
            session.judge_costs();
            Ok(session.batch.propose("append:custom", || Draft::custom(&kind, data.as_deref())))
        })
    })?;
    append.func_wrap(
        "custom-message",
        |cx: Cx<'_>, (kind, content, display, details): (String, String, bool, Text)| {
            on_session(cx, |session| {
                session.judge_costs();
                let draft = || Draft::custom_message(&kind, &content, display, details.as_deref());
                Ok(session.batch.propose("append:custom_message", draft))
            })
        },
    )?;
    append.func_wrap(
        "compaction",
        |cx: Cx<'_>, (summary, first_kept, details, usage): (String, Text, Text, Text)| {
            on_session(cx, |session| {
                session.judge_costs();
                let draft = || Draft::compaction(&summary, first_kept.as_deref(), details.as_deref(), usage.as_deref());
                Ok(session.batch.propose("append:compaction", draft))
            })
        },
    )?;
    append.func_wrap("context-edits", |cx: Cx<'_>, (edits,): (Vec<Edit>,)| {
        on_session(cx, |session| {
            session.judge_costs();
            if edits.len() > MAX_EDITS {
                let message = format!("{} edits in one list; at most {MAX_EDITS} are judged", edits.len());
                return Ok(vec![Err(Refused::new("limit", message)); edits.len()]);
            }
            let draft = |edit: &Edit| Draft::context_edit(&edit.target, edit.replacement.as_deref());
            Ok(session.batch.edits(edits.iter().map(draft).collect()))
        })
    })?;
    append.func_wrap("later", |cx: Cx<'_>, (note,): (String,)| {
        on_session(cx, |session| {
            if !session.on_entry {
                return Ok(Err(Refused::new("handler", "only on-entry can ask for on-settled")));
            }
            Ok(session.batch.later(note))
        })
    })
}
