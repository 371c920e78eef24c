//! The capability `session`: reading the session one runs on, at no more cost than what is read. Needs no grant, but for
//! the raw text of an edited entry.
use pi_session::branch::BranchError;
use pi_session::compaction::PlanSettings;
use pi_session::entry::EntryKind;
use pi_session::json::Json;
use pi_session::totals::{Counted, Usage, day_name};
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use super::contract::{Piece, Plan, Refused, Tokens};
use super::instance::{Guest, Session, Stop, on_session};
use super::pieces::{self, cut};
use super::view::{View, shown_text};

type Cx<'a> = StoreContextMut<'a, Guest>;

/// Bytes in a piece of text.
const MAX_PIECE: usize = 64 << 10;
/// Bytes of a plan's texts, each.
const MAX_PLAN_TEXT: usize = 256 << 10;

/// Puts the capability where plugins find it.
pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut at = linker.instance("pi-graft:plugin/session@0.1.0")?;
    at.func_wrap("header", |cx: Cx<'_>, (): ()| on_session(cx, |s| Ok(s.header_json.clone())))?;
    at.func_wrap("trigger", |cx: Cx<'_>, (): ()| on_session(cx, |s| Ok(s.view.trigger()?)))?;
    at.func_wrap("leaf", |cx: Cx<'_>, (): ()| on_session(cx, |s| Ok(s.view.leaf()?)))?;
    at.func_wrap("branch", |cx: Cx<'_>, (before, max): (Option<u32>, u32)| {
        on_session(cx, |s| Ok(s.view.page(before, max)?))
    })?;
    at.func_wrap("projection", |cx: Cx<'_>, (before, max): (Option<u32>, u32)| {
        on_session(cx, |s| Ok(s.view.projection(before, max)?))
    })?;
    at.func_wrap("text", |cx: Cx<'_>, (place, offset, max): (u32, u64, u32)| {
        on_session(cx, |s| s.text(place, offset, max))
    })?;
    at.func_wrap("raw", |cx: Cx<'_>, (place, offset, max): (u32, u64, u32)| {
        on_session(cx, |s| s.raw(place, offset, max))
    })?;
    at.func_wrap("by-id", |cx: Cx<'_>, (id,): (String,)| {
        on_session(cx, |s| {
            let item = s.view.branch().place_of(&id).and_then(|place| s.view.item(place));
            Ok(item.map(|item| s.view.info(&item)).transpose()?)
        })
    })?;
    at.func_wrap("last-custom", |cx: Cx<'_>, (kind,): (String,)| on_session(cx, |s| Ok(s.view.last_custom(&kind)?)))?;
    link_counts(linker)
}

/// The part of it that counts and plans.
fn link_counts(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut at = linker.instance("pi-graft:plugin/session@0.1.0")?;
    at.func_wrap("context-tokens", |cx: Cx<'_>, (): ()| on_session(cx, |s| Ok(tokens(&s.view)?)))?;
    at.func_wrap("usage-totals", |cx: Cx<'_>, (): ()| on_session(cx, |s| Ok(totals(&s.view))))?;
    at.func_wrap("model-facts", |cx: Cx<'_>, (): ()| on_session(cx, |s| Ok(s.facts.model.as_ref().map(json))))?;
    at.func_wrap("pi-compaction", |cx: Cx<'_>, (): ()| on_session(cx, |s| Ok(json(&s.facts.pi_compaction))))?;
    at.func_wrap("compaction-plan", |cx: Cx<'_>, (reserve, keep): (Option<u64>, Option<u64>)| {
        on_session(cx, |s| Ok(s.plan(reserve, keep)?))
    })
}

/// These types have no maps with odd keys, so they are JSON.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

impl Session {
    fn text(&mut self, place: u32, offset: u64, max: u32) -> Result<Result<Piece, Refused>, Stop> {
        if self.view.item(place).is_none() {
            return Ok(Err(no_entry(place)));
        }
        let edit = self.view.edit_of(place);
        if edit.is_none() && !self.view.is_superseded_edit(place) {
            return self.raw_piece(place, offset, max);
        }
        if self.view.edited.as_ref().is_none_or(|(cached, _)| *cached != place) {
            let by = edit.filter(|edit| !edit.omits).map(|edit| edit.by);
            self.view.edited = Some((place, edited_text(&self.view, place, by)?));
        }
        let text = self.view.edited.as_ref().map_or("", |(_, text)| text);
        Ok(Ok(piece_of(text, offset, max)))
    }

    fn raw(&mut self, place: u32, offset: u64, max: u32) -> Result<Result<Piece, Refused>, Stop> {
        if self.view.item(place).is_none() {
            return Ok(Err(no_entry(place)));
        }
        let is_edited = self.view.edit_of(place).is_some() || self.view.is_superseded_edit(place);
        if is_edited && !self.batch.has("session:raw") {
            return Ok(Err(Refused::not_granted("session:raw")));
        }
        self.raw_piece(place, offset, max)
    }

    /// A piece of the text as it stands: no more is read than that.
    fn raw_piece(&mut self, place: u32, offset: u64, max: u32) -> Result<Result<Piece, Refused>, Stop> {
        let branch = self.view.branch();
        let len = u64::from(branch.facts(place).len);
        let bytes = branch.part(place, offset, piece_len(max))?;
        let end = offset.saturating_add(bytes.len() as u64);
        let whole = if end < len { pieces::whole_chars(&bytes) } else { &bytes };
        let next = offset.saturating_add(whole.len() as u64);
        Ok(Ok(Piece { text: pieces::text(whole).into_owned(), next: (next < len).then_some(next) }))
    }

    fn plan(&self, reserve: Option<u64>, keep: Option<u64>) -> Result<Option<Plan>, BranchError> {
        let pi = self.facts.pi_compaction;
        let (reserve, keep_recent) = (reserve.unwrap_or(pi.reserve), keep.unwrap_or(pi.keep_recent));
        self.view.add_context_work();
        let plan = self.view.branch().plan(&PlanSettings { reserve, keep_recent })?;
        Ok(plan.map(|plan| to_contract(&self.view, plan)))
    }
}

fn no_entry(place: u32) -> Refused {
    Refused::new("place", format!("there is no entry at place {place}: take places from the pages of the branch"))
}

/// The bytes to give: at least a character, at most a piece.
fn piece_len(max: u32) -> usize {
    (max as usize).clamp(4, MAX_PIECE)
}

fn piece_of(text: &str, offset: u64, max: u32) -> Piece {
    let rest = usize::try_from(offset).ok().and_then(|at| text.get(at..)).unwrap_or_default();
    let piece = cut(rest, piece_len(max));
    let next = (piece.len() < rest.len()).then_some(offset + piece.len() as u64);
    Piece { text: piece.into(), next }
}

/// The text of an entry after the edit at `by`, or without its content.
fn edited_text(view: &View, place: u32, by: Option<u32>) -> Result<String, BranchError> {
    let content_of = |edit: Json<'_>| Some(edit.get("replacement")?.get("content")?.to_text().into_owned());
    let content = by.map(|by| view.branch().read(by, content_of)).transpose()?.flatten();
    view.branch().read(place, |entry| shown_text(entry, content.as_deref()))
}

fn tokens(view: &View) -> Result<Tokens, BranchError> {
    let branch = view.branch();
    view.add_context_work();
    let with_pending = branch.tokens(view.context())?.total;
    let in_file = if branch.len() == branch.in_file() {
        with_pending
    } else {
        view.add_context_work();
        let branch = branch.without_pending();
        branch.tokens(&branch.context())?.total
    };
    Ok(Tokens { in_file: whole(in_file), with_pending: whole(with_pending), reported: reported(view) })
}

/// Tokens as a whole number; a report may hold any.
fn whole(tokens: f64) -> u64 {
    tokens.round() as u64
}

/// The last reported usage, with what came after it, less what edits behind it save. None behind a compaction.
fn reported(view: &View) -> Option<u64> {
    let (branch, entries) = (view.branch(), &view.context().entries);
    let at = entries.iter().rposition(|entry| entry.gives() && branch.facts(entry.place).usage.is_some())?;
    let place = entries[at].place;
    if branch.last_compaction().is_some_and(|compaction| compaction > place) {
        return None;
    }
    let usage = whole(branch.facts(place).usage?);
    let trailing: u64 = entries[at + 1..].iter().map(|entry| branch.shown_tokens(entry)).sum();
    let saved = |entry: &pi_session::context::ContextEntry| {
        let edit = view.edit_of(entry.place).filter(|edit| edit.by > place)?;
        let before = u64::from(branch.facts(entry.place).tokens);
        Some(before.saturating_sub(branch.shown_tokens(entry))).filter(|_| edit.by > place)
    };
    let saved: u64 = entries[..=at].iter().filter_map(saved).sum();
    Some((usage + trailing).saturating_sub(saved))
}

/// The totals of the lines up to now, and what the trigger added to them, unless what came behind it is counted already.
fn totals(view: &View) -> String {
    let (totals, trigger) = (view.branch().tree().totals(), view.trigger_line());
    let by_model: serde_json::Map<_, _> =
        totals.by_model.iter().map(|(name, sum)| (name.clone(), usage(sum))).collect();
    let by_day: serde_json::Map<_, _> = totals.by_day.iter().map(|(day, sum)| (day_name(*day), usage(sum))).collect();
    let mut json = serde_json::json!({ "total": usage(&totals.all), "byModel": by_model, "byDay": by_day });
    match &totals.last {
        Some(last) if last.line > trigger => {}
        Some(last) if last.line == trigger => json["trigger"] = added(last),
        _ => json["trigger"] = usage(&Usage::default()),
    }
    json.to_string()
}

fn usage(usage: &Usage) -> serde_json::Value {
    serde_json::json!({
        "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write, "cost": usage.cost,
    })
}

/// What one entry added, for which model and on which day.
fn added(counted: &Counted) -> serde_json::Value {
    let mut json = usage(&counted.usage);
    json["model"] = counted.model.as_str().into();
    json["day"] = counted.day.map(day_name).into();
    json
}

fn to_contract(view: &View, plan: pi_session::compaction::Plan) -> Plan {
    let first = view.context().entries.first().filter(|entry| entry.gives());
    let previous =
        first.map(|entry| entry.place).filter(|place| view.branch().facts(*place).kind == EntryKind::Compaction);
    let summary = plan.previous_summary.as_deref().and_then(text_of).map(|text| cut(&text, MAX_PLAN_TEXT).to_owned());
    let mut room = MAX_PLAN_TEXT;
    let mut within = |files: Vec<String>| -> Vec<String> {
        let fits = |file: &String| room.checked_sub(file.len()).map(|left| room = left).is_some();
        files.into_iter().take_while(fits).collect()
    };
    Plan {
        first_kept: Some(plan.first_kept_id),
        split_turn: plan.split_turn,
        tokens_before: whole(plan.tokens_before),
        previous,
        previous_summary: summary,
        previous_details: plan.previous_details.filter(|details| details.len() <= MAX_PLAN_TEXT),
        to_summarize: plan.to_summarize,
        turn_prefix: plan.turn_prefix,
        read_files: within(plan.read_files),
        modified_files: within(plan.modified_files),
    }
}

/// The string in a JSON text.
fn text_of(json: &str) -> Option<String> {
    Json::parse(json.as_bytes()).ok()?.as_str().map(std::borrow::Cow::into_owned)
}
