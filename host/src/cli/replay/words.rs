//! The report for people.

use crate::cli::failure::Failure;
use crate::cli::out::{Out, grouped};
use crate::cli::paint::{Ink, Row};
use crate::cli::preview::one_line;
use crate::files::shown;
use crate::replay::account::{Account, READ, WRITE};
use crate::replay::report::{GraftTold, PluginTold, Several, Side, Told};

use super::compare::Change;
use super::{Done, Round, diff};

/// Grafts, refusals and differences that are shown of one session; all of them are in the JSON.
const MOST: usize = 20;

pub(super) fn round(round: &Round, out: &mut Out) -> Result<(), Failure> {
    for done in &round.done {
        session(done, out)?;
    }
    let entries: usize = round.done.iter().map(|done| done.told.entries).sum();
    let seconds = round.took.as_secs_f64();
    let speed = entries as f64 / seconds.max(0.001);
    let sessions = round.done.len();
    let text = format!(
        "{sessions} sessions, {} entries in {seconds:.1} s ({} a second)",
        grouped(entries as u64),
        grouped(speed as u64)
    );
    out.paint(&Row::new().and(Ink::Dim, &text))?;
    Ok(())
}

fn session(Done { told, branches }: &Done, out: &mut Out) -> Result<(), Failure> {
    let head = format!("{}  {} entries", shown(&told.path), grouped(told.entries as u64));
    let left_out = if told.left_out > 0 { format!(", {} of grafts left out", told.left_out) } else { String::new() };
    out.paint(&Row::new().and(Ink::Bold, &head).and(Ink::Dim, &left_out))?;
    for one in &told.plugins {
        plugin(one, out)?;
    }
    grafts(told, out)?;
    several("refused", Ink::Yellow, &told.refusals, out)?;
    several("failed", Ink::Red, &told.failures, out)?;
    context(told, out)?;
    if let Some((before, after)) = branches {
        diff::write(before, after, out)?;
    }
    out.line("")?;
    Ok(())
}

fn plugin(told: &PluginTold, out: &mut Out) -> Result<(), Failure> {
    let drafts: Vec<_> = told.drafts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let drafts = if drafts.is_empty() { String::new() } else { format!(" ({})", drafts.join(", ")) };
    let runs = told.runs + told.settled_runs;
    let text = format!(
        "{} runs, {} batches proposed{drafts}, {} grafted, {} refused ({} conflicts), {} failed",
        grouped(runs),
        told.proposed,
        told.grafted,
        told.refused,
        told.conflicts,
        told.failed
    );
    let mean = told.fuel / runs.max(1);
    let micros = told.micros / runs.max(1);
    let cost = format!(
        "fuel {} ({} a run, at most {}), {micros} µs a run",
        grouped(told.fuel),
        grouped(mean),
        grouped(told.most_fuel)
    );
    let name = format!("{} {}", told.plugin, told.version);
    out.paint(&Row::new().and(Ink::Plain, "  ").column(Ink::Cyan, 24, &one_line(&name)).and(Ink::Plain, &text))?;
    out.paint(&Row::new().and(Ink::Plain, "  ").column(Ink::Plain, 24, "").and(Ink::Dim, &cost))?;
    Ok(())
}

fn grafts(told: &Told, out: &mut Out) -> Result<(), Failure> {
    for graft in told.grafts.iter().take(MOST) {
        out.paint(&graft_row(graft))?;
    }
    more(told.grafts.len(), "batches", out)
}

fn graft_row(graft: &GraftTold) -> Row {
    let ink = if graft.outcome == "grafted" { Ink::Green } else { Ink::Yellow };
    let drafts: Vec<_> = graft.drafts.iter().map(|draft| one_line(draft.get())).collect();
    let why = if graft.why.is_empty() { String::new() } else { format!("{}  ", one_line(&graft.why)) };
    Row::new()
        .and(Ink::Plain, "    ")
        .column(ink, 10, &graft.outcome)
        .column(Ink::Plain, 18, &graft.plugin)
        .and(Ink::Dim, &format!("on {} ({})  {why}", one_line(&graft.trigger), one_line(&graft.reason)))
        .and(Ink::Plain, &drafts.join(" "))
}

fn several(word: &str, ink: Ink, list: &[Several], out: &mut Out) -> Result<(), Failure> {
    for one in list.iter().take(MOST) {
        let text = format!(
            "{}: {} ({} times, first on {})",
            one.rule,
            one_line(&one.message),
            one.times,
            one_line(&one.first)
        );
        let row = Row::new().and(Ink::Plain, "    ").column(ink, 10, word).column(Ink::Plain, 18, &one.plugin);
        out.paint(&row.and(Ink::Plain, &text))?;
    }
    more(list.len(), word, out)
}

fn more(all: usize, what: &str, out: &mut Out) -> Result<(), Failure> {
    if all > MOST {
        out.paint(&Row::new().and(Ink::Dim, &format!("    … and {} more {what}: see --json", all - MOST)))?;
    }
    Ok(())
}

fn context(told: &Told, out: &mut Out) -> Result<(), Failure> {
    let (before, after) = (&told.before, &told.after);
    let tokens = format!(
        "{} tokens without, {} with the plugins; recorded {}",
        side(before),
        side(after),
        grouped(told.recorded_tokens)
    );
    row("context", &tokens, out)?;
    let breaks =
        |side: &Side| format!("broken {} times, {} tokens sent anew", side.breaks.len(), grouped(side.sent_anew));
    row("cache", &format!("without: {}; with: {}", breaks(before), breaks(after)), out)?;
    account(told, out)?;
    let first = after.breaks.iter().find(|one| !before.breaks.contains(one));
    let Some(first) = first else { return Ok(()) };
    let entry = first.entry.as_deref().map_or_else(|| "the end".to_owned(), one_line);
    let text = format!(
        "first changed message: number {}, {entry}; {} tokens before, {} behind it{}",
        first.message,
        grouped(first.tokens_before),
        grouped(first.tokens_after),
        first.pays_after.map_or_else(String::new, |requests| format!("; pays after {requests} requests"))
    );
    row("", &text, out)
}

/// What the requests sent, and what the plugins saved of it.
fn account(told: &Told, out: &mut Out) -> Result<(), Failure> {
    let (before, after, balance) = (&told.before.account, &told.after.account, told.balance);
    if before == after {
        return Ok(());
    }
    let one = |of: &Account| format!("{} tokens read from it, {} written", grouped(of.read), grouped(of.written));
    let sent = format!("{} requests, without: {}; with: {}", after.requests, one(before), one(after));
    row("", &sent, out)?;
    let worth = grouped(balance.saved.unsigned_abs());
    let saved = if balance.saved < 0 { format!("{worth} more") } else { format!("{worth} less") };
    let paid = match (balance.dearer_at, balance.paid_back_after) {
        (None, _) => String::new(),
        (Some(at), None) => format!("; dearer from request {at} on, not paid back yet"),
        (Some(at), Some(after)) => format!("; dearer from request {at} on, paid back {after} later"),
    };
    row("", &format!("in fresh tokens (read {READ}, written {WRITE}): {saved}{paid}"), out)
}

/// As reported, or estimated.
fn side(side: &Side) -> String {
    match side.reported {
        true => format!("{} ({} estimated)", grouped(side.tokens), grouped(side.estimated)),
        false => format!("{} (estimated)", grouped(side.tokens)),
    }
}

fn row(name: &str, text: &str, out: &mut Out) -> Result<(), Failure> {
    out.paint(&Row::new().and(Ink::Plain, "  ").column(Ink::Dim, 10, name).and(Ink::Plain, text))?;
    Ok(())
}

/// What two reports differ in.
pub(super) fn differences(what: &str, changes: &[Change], out: &mut Out) -> Result<(), Failure> {
    if changes.is_empty() {
        out.line(format!("{what}: the same"))?;
        return Ok(());
    }
    out.line(format!("{what}: {} differences", changes.len()))?;
    for change in changes.iter().take(4 * MOST) {
        let session: String = change.session.chars().take(8).collect();
        let text = format!("{}: {} → {}", change.what, change.before, change.now);
        let row = Row::new().and(Ink::Plain, "  ").column(Ink::Dim, 9, &one_line(&session));
        out.paint(&row.and(Ink::Yellow, &one_line(&text)))?;
    }
    Ok(())
}
