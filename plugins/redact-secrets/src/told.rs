//! What is said of secrets that cannot be taken out. Never the secret.
use std::collections::BTreeMap;

use pi_graft_plugin::serde::{self, Serialize};
use pi_graft_plugin::{Info, Level, Result, Run};

use crate::config::Config;
use crate::find::{self, Found};

/// The `customType` of the note.
pub(crate) const NOTE: &str = "redact-secrets";

/// The data of the note.
#[derive(Serialize)]
#[serde(crate = "self::serde", rename_all = "camelCase")]
struct Note<'a> {
    /// The first entry of the branch that shows secrets which no edit can take out.
    entry: Option<&'a str>,
    /// What it is: a message's role, or an entry's type.
    what: &'a str,
    /// How many of which kind.
    kinds: BTreeMap<&'a str, usize>,
}

/// Looks through an entry that no edit can change, and says what is in it.
pub(crate) fn told_of(config: &Config, run: &Run, entry: &Info) -> Result {
    let found = in_all_of(config, run, entry)?;
    if found.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{} in a {}, which no context edit can change (S7.1): the model sees it until a compaction hides it",
        count(&found),
        what(entry)
    );
    run.log(Level::Warn, &text);
    if config.note && run.last_custom(NOTE).is_none() {
        let note = Note { entry: entry.id.as_deref(), what: what(entry), kinds: kinds(&found) };
        // Without the grant the log has to do.
        let _ = run.append_custom(NOTE, &note);
    }
    Ok(())
}

/// The secrets in the whole line, as far as it is read.
fn in_all_of(config: &Config, run: &Run, entry: &Info) -> Result<Vec<Found>> {
    if entry.bytes > crate::WHOLE {
        return Ok(crate::huge::gone_over(config, run, entry)?.0);
    }
    let line = run.text(entry.place, crate::WHOLE as usize)?;
    let line = crate::plain::plain(&line).unwrap_or(line);
    let hidden = entry.role.as_deref() == Some("bashExecution") && line.contains("\"excludeFromContext\":true");
    Ok(if hidden { Vec::new() } else { find::find(line.as_bytes(), 0, line.len(), config) })
}

/// Secrets in signed thinking.
pub(crate) fn signed(run: &Run, entry: &Info, found: &[Found]) {
    let id = entry.id.as_deref().unwrap_or("?");
    let text = format!(
        "{} in signed thinking of {id}, which only goes back to the model that wrote it: left as it is",
        count(found)
    );
    run.log(Level::Info, &text);
}

/// That more than secrets had to go.
pub(crate) fn shortened(entry: &Info) -> String {
    let id = entry.id.as_deref().unwrap_or("?");
    format!(
        "{id} is too large to be written anew whole: images or the middle of long texts are left out (`keep-bytes`)"
    )
}

/// How many of which kind: `2 github-token, 1 password`.
pub(crate) fn count(found: &[Found]) -> String {
    kinds(found).iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

fn kinds(found: &[Found]) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    found.iter().for_each(|found| *kinds.entry(found.kind.as_str()).or_default() += 1);
    kinds
}

fn what(entry: &Info) -> &str {
    entry.role.as_deref().unwrap_or(&entry.kind)
}
