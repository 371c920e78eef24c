//! `session validate`: what is wrong with a session.

use std::path::Path;

use clap::Args;
use pi_session::Tree;
use pi_session::header::Version;
use pi_session::problem::{Problem, Severity};
use serde_json::{Value, json};

use super::File;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::Opened;
use crate::cli::out::Out;
use crate::files::shown;

/// Arguments of `session validate`.
#[derive(Debug, Args)]
pub struct Validate {
    #[command(flatten)]
    file: File,
}

impl Validate {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = Opened::at(&self.file.path(config)?)?;
        let problems = problems(&opened)?;
        let valid = problems.iter().all(|problem| problem.severity < Severity::Error);
        if out.json {
            out.line(document(&opened, &problems, valid))?;
        } else {
            write_text(&opened, &problems, valid, out)?;
        }
        Ok(if valid { Outcome::Done } else { Outcome::Problems })
    }
}

/// What was found while reading, and what shows only on the branch: a circle of parents (S8.5).
fn problems(opened: &Opened) -> Result<Vec<Problem>, Failure> {
    let mut problems = opened.tree.problems().to_vec();
    if let Err(Failure::Problem(message)) = opened.branch(None) {
        let leaf = opened.tree.entries().last();
        let place = leaf.map_or((0, 0), |leaf| (leaf.line, leaf.offset));
        let entry_id = leaf.map(|leaf| opened.tree.id_text(leaf.id).to_owned());
        let message = message.trim_start_matches("S8.5: ").to_owned();
        let (line, offset) = place;
        problems.push(Problem { severity: Severity::Error, rule: "S8.5", line, offset, entry_id, message });
    }
    Ok(problems)
}

fn document(opened: &Opened, problems: &[Problem], valid: bool) -> Value {
    json!({
        "path": opened.path.display().to_string(),
        "version": version(&opened.tree),
        "entries": opened.tree.entries().len(),
        "valid": valid,
        "problems": problems.iter().map(problem_json).collect::<Vec<_>>(),
    })
}

/// The version as Pi takes it; one that is newer than 3 has no number here, since it is read as 3.
pub(super) fn version(tree: &Tree) -> Option<u32> {
    tree.header().map(|header| match header.version {
        Version::V1 => 1,
        Version::V2 => 2,
        Version::V3 | Version::Newer => 3,
    })
}

fn problem_json(problem: &Problem) -> Value {
    let Problem { severity, rule, line, offset, entry_id, message } = problem;
    let mut json = json!({ "severity": severity.as_str(), "rule": rule, "line": line, "offset": offset });
    if let Some(id) = entry_id {
        json["entryId"] = id.as_str().into();
    }
    json["message"] = message.as_str().into();
    json
}

fn write_text(opened: &Opened, problems: &[Problem], valid: bool, out: &mut Out) -> Result<(), Failure> {
    let path = shown(&opened.path);
    for Problem { severity, rule, line, offset, entry_id, message } in problems {
        let entry = entry_id.as_ref().map_or_else(String::new, |id| format!(" entry {id}"));
        out.line(format!("{path}:{line}: {severity} {rule}{entry} (byte {offset}): {message}"))?;
    }
    let count = |of| problems.iter().filter(|problem| problem.severity == of).count();
    let word = if valid { "valid" } else { "not valid" };
    let entries = opened.tree.entries().len();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    out.line(format!("{path}: {word}: {entries} entries, {errors} errors, {warnings} warnings"))?;
    Ok(())
}
