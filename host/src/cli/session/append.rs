//! `session append`: entries of the user's own making, through the same checks and the same write as a plugin's.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use pi_session::compose::{Composed, compose};
use pi_session::draft::Draft;
use pi_session::refusal::Refusal;
use pi_session::tree::Leaf;
use pi_session::validate::{DraftLimits, accept_list};
use serde_json::json;

use super::{File, quiet};
use crate::cli::direct::{self, Attempt};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::Opened;
use crate::cli::out::{Out, say};
use crate::daemon::world::{now_ms, random};
use crate::files::append::Landed;

/// Arguments of `session append`.
#[derive(Debug, Args)]
pub struct Append {
    #[command(flatten)]
    file: File,
    /// A JSON list of drafts; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    drafts: PathBuf,
    /// The entry to append to; default: where Pi would go on.
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    /// Check and show, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// What came of it.
enum Answer {
    Refused(Vec<Refusal>),
    Composed(Composed),
    Appended(Composed, Landed),
}

impl Append {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let path = self.file.path(config)?;
        let text = self.read_drafts()?;
        let drafts = match Draft::list_from_json(&text) {
            Ok(drafts) => drafts,
            Err(refusals) => return tell(&Answer::Refused(refusals), out),
        };
        let answer = direct::retried(&path, || self.attempt(&path, &drafts, config))?;
        tell(&answer, out)
    }

    fn read_drafts(&self) -> Result<String, Failure> {
        let mut text = String::new();
        let read = match self.drafts.to_str() {
            Some("-") => std::io::stdin().read_to_string(&mut text).map(|_| text),
            _ => std::fs::read_to_string(&self.drafts),
        };
        read.map_err(|e| Failure::usage(format!("{}: {e}", self.drafts.display())))
    }

    /// Reads the session as it is now, judges, and writes if it still is so (S12.8).
    fn attempt(&self, path: &Path, drafts: &[Draft], config: Option<&Path>) -> Result<Answer, Attempt> {
        let opened = direct::open(path)?;
        let branch = opened.branch(self.leaf.as_deref())?;
        let accepted = match accept_list(&branch, drafts, DraftLimits::default()) {
            Ok(accepted) => accepted,
            Err(refusals) => return Ok(Answer::Refused(refusals)),
        };
        let composed = match compose(&branch, &accepted, None, now_ms(), &mut random) {
            Ok(composed) => composed,
            Err(stale) => return Ok(Answer::Refused(vec![stale.refusal.at(stale.index as usize)])),
        };
        self.warn_of_leaf(&opened, &composed);
        if self.dry_run || composed.entries().is_empty() {
            return Ok(Answer::Composed(composed));
        }
        quiet::not_bridged(path, opened.reading.id(), config)?;
        let landed = direct::write(&opened, composed.bytes())?;
        Ok(Answer::Appended(composed, landed))
    }

    /// The last entry is where Pi goes on (S8.2): an append elsewhere moves it.
    fn warn_of_leaf(&self, opened: &Opened, composed: &Composed) {
        let Leaf::At(leaf) = opened.tree.leaf() else { return };
        let (last, parent) = (opened.tree.id(leaf), composed.leaf_before());
        if parent != Some(last) {
            let parent = parent.unwrap_or("the root");
            say(format!("note: Pi would go on from {last}; behind this, it goes on from what is appended to {parent}"));
        }
    }
}

fn tell(answer: &Answer, out: &mut Out) -> Result<Outcome, Failure> {
    match answer {
        Answer::Refused(refusals) => tell_refused(refusals, out),
        Answer::Composed(composed) => tell_entries(composed, "would append", out),
        Answer::Appended(composed, Landed { between: 0, .. }) => tell_entries(composed, "appended", out),
        Answer::Appended(composed, _) => {
            tell_entries(composed, "appended", out)?;
            say("misplaced: somebody wrote to the session at the same moment; Pi may go on from another branch");
            Ok(Outcome::Problems)
        }
    }
}

fn tell_refused(refusals: &[Refusal], out: &mut Out) -> Result<Outcome, Failure> {
    if out.json {
        let one = |r: &Refusal| json!({ "index": r.index, "rule": r.rule.as_str(), "message": r.message });
        out.line(json!({ "refused": refusals.iter().map(one).collect::<Vec<_>>() }))?;
        return Ok(Outcome::Problems);
    }
    for Refusal { index, rule, message } in refusals {
        let which = index.map_or_else(|| "refused".to_owned(), |index| format!("draft {index} refused"));
        out.line(format!("{which}: {rule}: {message}"))?;
    }
    out.line("nothing was written")?;
    Ok(Outcome::Problems)
}

fn tell_entries(composed: &Composed, word: &str, out: &mut Out) -> Result<Outcome, Failure> {
    let lines = composed.entries().iter().map(|entry| String::from_utf8_lossy(&entry.line));
    if out.json {
        let entries: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
        out.line(format!("{{\"appended\":[{}]}}", entries.join(",")))?;
        return Ok(Outcome::Done);
    }
    for line in lines {
        out.row(&format!("{word} {}", line.trim_end()))?;
    }
    for (index, why) in composed.left_out() {
        out.line(format!("draft {index} left out: {why}"))?;
    }
    Ok(Outcome::Done)
}
