//! Takes secrets out of what the model sees.
//!
//! Each new entry is looked through ([`mod@find`]) in the parts of it that the model sees ([`mod@parts`]); if there is a secret,
//! a context edit shows the same content with placeholders ([`mod@placeholder`], [`mod@rewrite`]). The line in the file stays as
//! it is. Where no edit can be made, that is said ([`mod@told`]).
#![deny(missing_docs)]

pub mod config;
pub mod find;
mod huge;
mod json;
mod parts;
pub mod placeholder;
mod plain;
mod rewrite;
mod told;

use pi_graft_plugin::{Description, Edit, Info, Json, Level, Plugin, Result, Run, export};

use config::Config;
use find::Found;
use parts::{Content, Part};

/// An entry up to this size is read whole.
const WHOLE: u64 = 4 << 20;
/// Bytes of a piece of text: the most that the host gives.
const PIECE: u32 = 65_536;

/// The plugin.
#[derive(Debug)]
pub struct RedactSecrets;

impl Plugin for RedactSecrets {
    type Config = Config;

    fn describe(_: &Config) -> Result<Description> {
        let description = Description::new("redact-secrets", env!("CARGO_PKG_VERSION"));
        let description = description.needs(["append:context_edit"]).can_use(["append:custom"]);
        Ok(description.on(["message:*", "custom_message", "context_edit", "compaction", "branch_summary"]))
    }

    fn on_entry(config: &Config, run: &Run) -> Result {
        let Some(entry) = shown(run, run.trigger())? else { return Ok(()) };
        if !is_editable(&entry) {
            return told::told_of(config, run, &entry);
        }
        if entry.bytes > WHOLE {
            return huge::redact(config, run, &entry);
        }
        redact(config, run, &entry)
    }
}

/// The entry whose text the model sees anew: the trigger, or what it edits. None if nothing of it is seen.
fn shown(run: &Run, trigger: Info) -> Result<Option<Info>> {
    let info = if trigger.kind == "context_edit" {
        let text = text(run, &trigger)?;
        let target = json::Cursor::whole(text.as_bytes()).member("targetId").and_then(|id| id.string());
        target.and_then(|id| run.by_id(&text[id]))
    } else {
        Some(trigger)
    };
    Ok(info.filter(|info| matches!(info.shown.as_str(), "as-is" | "replaced")))
}

/// Whether a context edit may change it (S7.1).
fn is_editable(entry: &Info) -> bool {
    entry.kind == "custom_message" || matches!(entry.role.as_deref(), Some("user" | "assistant" | "toolResult"))
}

fn redact(config: &Config, run: &Run, entry: &Info) -> Result {
    let line = text(run, entry)?;
    let Some(content) = parts::content(line.as_bytes()) else { return Ok(()) };
    let (found, signed) = secrets(config, line.as_bytes(), &content);
    if !signed.is_empty() {
        told::signed(run, entry, &signed);
    }
    if found.is_empty() {
        return Ok(());
    }
    let rewritten = rewrite::rewrite(&line, &content, &found, &root(run), config.keep_bytes);
    if rewritten.shortened {
        run.log(Level::Warn, &told::shortened(entry));
    }
    propose(run, entry, &Json::from_text(rewritten.content), &found)
}

/// The entry's line. Room is made once: moving it costs as much as looking through it.
fn text(run: &Run, entry: &Info) -> Result<String> {
    let (mut line, mut next) = (String::with_capacity(entry.bytes as usize), Some(0));
    while let Some(offset) = next {
        let piece = run.host().text(entry.place, offset, PIECE)?;
        line.push_str(&piece.text);
        next = piece.next;
    }
    Ok(plain::plain(&line).unwrap_or(line))
}

/// The secrets in what can be edited, and those in what cannot.
fn secrets(config: &Config, line: &[u8], content: &Content) -> (Vec<Found>, Vec<Found>) {
    let (mut found, mut signed) = (Vec::new(), Vec::new());
    for part in &content.parts {
        match part {
            Part::Text(range) => found.extend(find_in(line, range, config)),
            Part::Signed(range) => signed.extend(find_in(line, range, config)),
            Part::Image(_) => {}
        }
    }
    (found, signed)
}

fn find_in(line: &[u8], range: &std::ops::Range<usize>, config: &Config) -> Vec<Found> {
    find::find(&line[..range.end], range.start, range.end, config)
}

/// The id of the branch's first entry: the key of the placeholders' tags.
fn root(run: &Run) -> String {
    let first = run.host().branch(Some(1), 1).items.pop();
    first.and_then(|info| info.id).unwrap_or_default()
}

/// Proposes the edit, and says what was taken out, not its text.
fn propose(run: &Run, entry: &Info, content: &Json, found: &[Found]) -> Result {
    let Some(id) = entry.id.as_deref() else { return Ok(()) };
    let refused = run.append_edits(&[Edit::content(id, content)]).pop().and_then(Result::err);
    let what = told::count(found);
    match refused {
        None => run.log(Level::Info, &["redacted ", &what].concat()),
        Some(refusal) => run.log(Level::Warn, &["could not redact ", &what, ": ", &refusal.message].concat()),
    }
    Ok(())
}

export!(RedactSecrets);
