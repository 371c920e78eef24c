//! `session show`: the entries of a branch, or one entry as it stands.

use std::path::Path;

use clap::Args;
use pi_session::entry::Entry;
use pi_session::settings::Given;
use serde_json::json;

use super::File;
use super::validate::version;
use crate::cli::around;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::{AT_ONCE, Opened};
use crate::cli::out::Out;
use crate::cli::paint::{Ink, Row};
use crate::cli::preview;
use crate::cli::when::Zone;
use crate::files::shown;

/// Arguments of `session show`.
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    file: File,
    /// One entry, whole, as it stands in the file.
    #[arg(value_name = "ENTRY")]
    entry: Option<String>,
    /// The leaf of the branch to show; default: where Pi would go on.
    #[arg(long, value_name = "ID", conflicts_with = "entry")]
    leaf: Option<String>,
    /// Every entry in file order, whatever its branch.
    #[arg(long, conflicts_with_all = ["entry", "leaf"])]
    all: bool,
}

impl Show {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        if let Some(id) = &self.entry {
            return one(&opened, id, out);
        }
        let entries = self.entries(&opened)?;
        if out.json {
            write_json(&opened, &entries, out)?
        } else {
            write_text(&opened, self.context(&opened)?, &entries, out)?
        }
        Ok(Outcome::Done)
    }

    /// How full the context of the branch is; none where all branches are shown.
    fn context(&self, opened: &Opened) -> Result<Option<String>, Failure> {
        if self.all {
            return Ok(None);
        }
        let branch = opened.branch(self.leaf.as_deref())?;
        let (facts, model) = around::facts(opened, &branch, &Given::default())?;
        let tokens = branch.tokens(&branch.context())?.total;
        let name = model.map(|model| format!(" ({})", around::name_of(&model))).unwrap_or_default();
        Ok(Some(around::of_window(tokens, facts.window.as_ref()) + &name))
    }

    fn entries(&self, opened: &Opened) -> Result<Vec<Entry>, Failure> {
        if self.all {
            return Ok(opened.tree.entries().to_vec());
        }
        let branch = opened.branch(self.leaf.as_deref())?;
        Ok(branch.items().map(|item| *item.facts).collect())
    }
}

fn one(opened: &Opened, id: &str, out: &mut Out) -> Result<Outcome, Failure> {
    let missing = || Failure::usage(format!("{}: there is no entry {id}", shown(&opened.path)));
    let ix = opened.tree.by_id(id).ok_or_else(missing)?;
    let text = opened.read(opened.tree.entry(ix), |line| line.to_text().into_owned())?;
    out.line(text)?;
    Ok(Outcome::Done)
}

fn write_json(opened: &Opened, entries: &[Entry], out: &mut Out) -> Result<(), Failure> {
    let header = opened.tree.header();
    let head = json!({
        "path": opened.path.display().to_string(),
        "id": header.map(|header| header.id.as_str()),
        "version": version(&opened.tree),
        "timestamp": header.and_then(|header| header.timestamp.as_deref()),
        "cwd": header.and_then(|header| header.cwd.as_deref()),
        "parentSession": header.and_then(|header| header.parent_session.as_deref()),
        "name": opened.tree.name(),
    });
    out.put(head.to_string().trim_end_matches('}'))?;
    out.put(",\"entries\":[")?;
    for (at, entry) in entries.iter().enumerate() {
        out.put(if at > 0 { "," } else { "" })?;
        let text = opened.read(entry, |line| line.to_text().into_owned())?;
        out.put(&text)?;
    }
    out.line("]}")?;
    Ok(())
}

fn write_text(opened: &Opened, context: Option<String>, entries: &[Entry], out: &mut Out) -> Result<(), Failure> {
    write_head(opened, context.as_deref(), out)?;
    let zone = Zone::of_process();
    for some in entries.chunks(AT_ONCE) {
        for (entry, preview) in some.iter().zip(opened.read_all(some, preview::entry)?) {
            let time = entry.time_ms.map(|ms| zone.seconds(ms)).unwrap_or_default();
            let id = preview::one_line(opened.tree.id_text(entry.id));
            let row = Row::new().and(Ink::Dim, &format!("{time:<19}  {id:<8}  "));
            let row = row.and(preview.ink(), &format!("{:<10} ", preview.what)).and(Ink::Plain, &preview.said);
            out.paint(&row)?;
        }
    }
    Ok(())
}

fn write_head(opened: &Opened, context: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    let Some(header) = opened.tree.header() else { return Ok(()) };
    let lines = [
        ("session", Some(header.id.as_str())),
        ("name", opened.tree.name()),
        ("cwd", header.cwd.as_deref()),
        ("from", header.parent_session.as_deref()),
        ("context", context),
    ];
    for (name, value) in lines {
        if let Some(value) = value {
            out.paint(&Row::new().column(Ink::Dim, 9, name).and(Ink::Plain, &preview::one_line(value)))?;
        }
    }
    Ok(out.line("")?)
}
