//! What `undo` says.

use pi_session::settings::Given;
use pi_session::undo::{Change, To};
use serde_json::{Value, json};

use super::{Done, UndoArgs};
use crate::cli::compact::{messages, side_json};
use crate::cli::out::{Out, grouped, say};
use crate::cli::replay::diff;
use crate::cli::{Failure, Outcome, around, preview};
use crate::files::shown;

pub(super) fn tell(args: &UndoArgs, done: &Done, out: &mut Out) -> Result<Outcome, Failure> {
    match out.json {
        true => in_json(args, done, out)?,
        false => in_words(args, done, out)?,
    }
    let misplaced = done.landed.as_ref().is_some_and(|landed| landed.between > 0);
    if misplaced {
        say("misplaced: somebody wrote to the session at the same moment; Pi may go on from another branch");
    }
    Ok(if misplaced || !done.undo.refused.is_empty() { Outcome::Problems } else { Outcome::Done })
}

fn outcome(done: &Done) -> &'static str {
    match (&done.composed, &done.landed) {
        (None, _) => "nothing",
        (Some(_), None) => "would undo",
        (Some(_), Some(_)) => "undone",
    }
}

fn in_json(args: &UndoArgs, done: &Done, out: &mut Out) -> Result<(), Failure> {
    let (undo, rest) = (&done.undo, &done.rest);
    let refused = undo.refused.iter().map(|(change, refusal)| {
        json!({ "entry": change.target, "rule": refusal.rule.as_str(), "message": refusal.message })
    });
    let compactions = undo.compactions.iter().map(|cut| json!({ "entry": cut.id, "branchFrom": cut.before }));
    let entries = done.composed.iter().flat_map(|composed| composed.entries()).map(|entry| &entry.id);
    let head = json!({
        "path": done.opened.path.to_string_lossy(),
        "plugin": args.plugin,
        "outcome": outcome(done),
        "leaf": done.before.leaf_id(),
        "changes": undo.changes.iter().map(change_json).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
        "compactions": compactions.collect::<Vec<_>>(),
        "hidden": undo.hidden,
        "customs": undo.customs,
        "pending": rest.pending,
        "enabled": rest.enabled,
        "entries": entries.collect::<Vec<_>>(),
        "before": side_json(&done.before)?,
        "after": side_json(&undo.after)?,
    });
    let head = head.to_string();
    let head = head.strip_suffix('}').unwrap_or(&head);
    Ok(out.line(format!("{head},\"diff\":{}}}", diff::to_json(&done.before, &undo.after)?))?)
}

fn change_json(change: &Change) -> Value {
    match &change.to {
        To::Itself => json!({ "entry": change.target, "to": "itself" }),
        To::Edit(edit) => json!({ "entry": change.target, "to": "edit", "edit": edit }),
        To::Nothing => json!({ "entry": change.target, "to": "nothing" }),
    }
}

fn in_words(args: &UndoArgs, done: &Done, out: &mut Out) -> Result<(), Failure> {
    let Some(composed) = &done.composed else { return nothing(args, done, out) };
    let plugin = preview::one_line(&args.plugin);
    let (entries, bytes) = (composed.entries().len() as u64, composed.bytes().len() as u64);
    let written = match done.landed {
        Some(_) => format!("{plugin} is undone: {} entries appended, {} bytes", grouped(entries), grouped(bytes)),
        None => format!(
            "a dry run: to undo {plugin}, {} entries would be appended, {} bytes",
            grouped(entries),
            grouped(bytes)
        ),
    };
    out.line(written)?;
    if !done.undo.changes.is_empty() {
        let window = around::facts(&done.opened, &done.before, &Given::default())?.0.window;
        for (name, branch) in [("before", &done.before), ("after", &done.undo.after)] {
            let tokens = around::of_window(branch.tokens(&branch.context())?.total, window.as_ref());
            out.line(format!("{name:<7} {tokens}, {} messages", grouped(messages(branch)? as u64)))?;
        }
        out.line("")?;
        diff::write_short(&done.before, &done.undo.after, out)?;
        out.line("")?;
        done.undo.changes.iter().try_for_each(|change| out.line(line_of(change)))?;
    }
    left(args, done, out)
}

fn line_of(Change { target, to, .. }: &Change) -> String {
    match to {
        To::Itself => format!("{target} shows as it stands"),
        To::Edit(edit) => format!("{target} shows as the edit {edit} has it, which is not the plugin's"),
        To::Nothing => format!("{target} is left out: it was the plugin's message"),
    }
}

fn nothing(args: &UndoArgs, done: &Done, out: &mut Out) -> Result<(), Failure> {
    let plugin = preview::one_line(&args.plugin);
    out.line(format!("nothing to do: {plugin} has no edit or message in effect on this branch"))?;
    let others: Vec<String> = done.rest.others.iter().map(|name| preview::one_line(name)).collect();
    if done.undo.customs == 0 && done.undo.compactions.is_empty() && !others.is_empty() {
        out.line(format!("plugins that did something here: {}", others.join(", ")))?;
    }
    left(args, done, out)
}

/// What stays, and what to do about it.
fn left(args: &UndoArgs, done: &Done, out: &mut Out) -> Result<(), Failure> {
    let (undo, plugin) = (&done.undo, preview::one_line(&args.plugin));
    for (change, refusal) in &undo.refused {
        out.line(format!("{} stays as it is: {refusal}", change.target))?;
    }
    for cut in &undo.compactions {
        let path = shown(&done.opened.path);
        let how = match &cut.before {
            Some(before) => {
                format!("go to {before} with /tree in Pi, or `pi-graft session fork {path} --leaf {before}`")
            }
            None => "begin a new session".to_owned(),
        };
        out.line(format!("the compaction {} stays: only branching before it undoes it; {how}", cut.id))?;
    }
    if undo.hidden > 0 {
        out.line(format!(
            "{} of its edits and messages are summarised away: there is nothing to take back",
            undo.hidden
        ))?;
    }
    if undo.customs > 0 {
        out.line(format!("{} of its custom entries stay: a model never sees them", undo.customs))?;
    }
    match done.rest.pending {
        0 => {}
        1 => out.line("1 batch of it that waits is given up by the daemon")?,
        more => out.line(format!("{more} batches of it that wait are given up by the daemon"))?,
    }
    if done.rest.enabled {
        say(format!(
            "note: {plugin} is enabled in the config and goes on with what comes; to keep it out: enabled = false, then `pi-graft reload`"
        ));
    }
    Ok(())
}
