//! `session ls`: the sessions that there are.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::Args;
use pi_session::entry::{EntryKind, Role};
use pi_session::time::iso;
use pi_session::tree::Status;
use serde_json::json;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::find::paths_below;
use crate::cli::open::Opened;
use crate::cli::out::{Out, cut, grouped, json_number, say};
use crate::cli::preview;
use crate::config::Config;

/// Arguments of `session ls`.
#[derive(Debug, Args)]
pub struct Ls {
    /// Only sessions of this working directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// What is shown of a session.
struct Row {
    path: PathBuf,
    id: String,
    cwd: Option<String>,
    title: String,
    modified_ms: i64,
    bytes: u64,
    entries: usize,
    tokens: Option<f64>,
}

impl Ls {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let config = Config::find(config)?;
        let cwd = self.cwd.as_deref().map(std::path::absolute).transpose()?;
        let paths = config.watch.roots.iter().flat_map(|root| paths_below(root));
        let mut rows: Vec<Row> = paths.filter_map(|path| read(&path, cwd.as_deref())).collect();
        rows.sort_by(|a, b| b.modified_ms.cmp(&a.modified_ms).then_with(|| a.path.cmp(&b.path)));
        for row in &rows {
            if out.json { out.line(row.json())? } else { out.row(&row.text())? }
        }
        if rows.is_empty() && !out.json {
            let roots: Vec<_> = config.watch.roots.iter().map(|root| root.display().to_string()).collect();
            say(format!("no sessions below {}", roots.join(", ")));
        }
        Ok(Outcome::Done)
    }
}

/// What is no session, or of another directory, is passed over; what cannot be read is said.
fn read(path: &Path, cwd: Option<&Path>) -> Option<Row> {
    let row = Opened::at(path).and_then(|opened| row(&opened, cwd));
    row.unwrap_or_else(|failure| {
        if let Failure::Problem(message) | Failure::Usage(message) = failure {
            say(message);
        }
        None
    })
}

fn row(opened: &Opened, cwd: Option<&Path>) -> Result<Option<Row>, Failure> {
    let Some(header) = opened.tree.header().filter(|_| opened.tree.status() == Status::Session) else {
        return Ok(None);
    };
    if cwd.is_some_and(|cwd| header.cwd.as_deref().map(Path::new) != Some(cwd)) {
        return Ok(None);
    }
    let branch = opened.branch(None).ok();
    let tokens = branch.map(|branch| branch.tokens(&branch.context()).map(|tokens| tokens.total)).transpose()?;
    let meta = opened.reading.metadata()?;
    let modified = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some(Row {
        path: opened.path.clone(),
        id: header.id.clone(),
        cwd: header.cwd.clone(),
        title: title(opened)?,
        modified_ms: modified.as_millis() as i64,
        bytes: opened.place.len,
        entries: opened.tree.entries().len(),
        tokens,
    }))
}

/// Its name, else the first thing the user said.
fn title(opened: &Opened) -> Result<String, Failure> {
    if let Some(name) = opened.tree.name() {
        return Ok(preview::one_line(name));
    }
    let of_user = |entry: &&pi_session::entry::Entry| entry.kind == EntryKind::Message && entry.role == Role::User;
    let first = opened.tree.entries().iter().find(of_user);
    let said = first.map(|entry| opened.read(entry, |line| line.get("message").map(preview::message))).transpose()?;
    Ok(said.flatten().unwrap_or_default())
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({
            "path": self.path.display().to_string(),
            "id": self.id,
            "title": self.title,
            "cwd": self.cwd,
            "modified": iso(self.modified_ms),
            "bytes": self.bytes,
            "entries": self.entries,
            "contextTokens": self.tokens.map(json_number),
        })
    }

    fn text(&self) -> String {
        let time = iso(self.modified_ms)[..16].replace('T', " ");
        let size = format!("{} KiB", grouped(self.bytes.div_ceil(1024)));
        let tokens = self.tokens.map_or_else(|| "-".to_owned(), |tokens| grouped(tokens as u64));
        let (id, cwd) = (preview::one_line(&self.id), preview::one_line(self.cwd.as_deref().unwrap_or("")));
        let (title, entries) = (cut(&self.title, 60), grouped(self.entries as u64));
        format!("{time}  {id:<36}  {size:>11}  {entries:>7} entries  {tokens:>9} tokens  {title}  {cwd}")
    }
}
