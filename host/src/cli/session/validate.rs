//! `session validate`: what is wrong with a session.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use pi_session::Tree;
use pi_session::check::{Checked, check};
use pi_session::header::Version;
use pi_session::problem::{Problem, Severity};
use pi_session::tree::Source;
use serde_json::{Value, json};

use super::File;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::Opened;
use crate::cli::out::Out;
use crate::cli::text::seen;
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
        let source = Arc::clone(&opened.reading) as Arc<dyn Source>;
        let checked = check(&opened.tree, source).map_err(Failure::problem)?;
        if out.json {
            out.line(document(&opened, &checked))?;
        } else {
            write_text(&opened, &checked, out)?;
        }
        Ok(if checked.valid { Outcome::Done } else { Outcome::Problems })
    }
}

fn document(opened: &Opened, checked: &Checked) -> Value {
    let mut json = json!({
        "path": opened.path.display().to_string(),
        "version": version(&opened.tree),
        "entries": opened.tree.entries().len(),
        "valid": checked.valid,
        "problems": checked.problems.iter().map(problem_json).collect::<Vec<_>>(),
    });
    if checked.more > 0 {
        json["moreProblems"] = checked.more.into();
    }
    json
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
    let mut json = json!({
        "severity": problem.severity().as_str(),
        "rule": problem.rule(),
        "line": problem.line,
        "offset": problem.offset,
    });
    if let Some(id) = &problem.entry_id {
        json["entryId"] = id.as_str().into();
    }
    if let Some(at) = problem.at {
        json["at"] = at.into();
    }
    json["message"] = problem.message.as_str().into();
    json["finding"] = problem.finding.name().into();
    json["pi"] = problem.pi().into();
    json
}

fn write_text(opened: &Opened, checked: &Checked, out: &mut Out) -> Result<(), Failure> {
    let path = shown(&opened.path);
    for problem in &checked.problems {
        let Problem { line, offset, entry_id, message, .. } = problem;
        let (severity, rule) = (problem.severity(), problem.rule());
        let entry = entry_id.as_ref().map_or_else(String::new, |id| format!(" entry {}", seen(id)));
        out.line(format!("{path}:{line}: {severity} {rule}{entry} (byte {offset}): {}", seen(message)))?;
        out.line(format!("    Pi {}", problem.pi()))?;
    }
    out.line(summary(opened, checked))?;
    Ok(())
}

fn summary(opened: &Opened, checked: &Checked) -> String {
    let count = |of| checked.problems.iter().filter(|problem| problem.severity() == of).count();
    let (path, entries) = (shown(&opened.path), opened.tree.entries().len());
    let word = if checked.valid { "valid" } else { "not valid" };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let more = if checked.more > 0 { format!(", and {} problems more", checked.more) } else { String::new() };
    format!("{path}: {word}: {entries} entries, {errors} errors, {warnings} warnings{more}")
}
