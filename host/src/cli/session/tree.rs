//! `session tree`: all branches.

use std::path::Path;

use clap::Args;
use pi_session::json::Json;
use pi_session::tree::{EntryIx, Leaf};
use serde_json::{Value, json};

use super::File;
use super::shape::{Node, Shape};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::{AT_ONCE, Opened};
use crate::cli::out::Out;
use crate::cli::paint::{Ink, Row};
use crate::cli::preview::{self, Preview};
use crate::cli::text;

/// Arguments of `session tree`.
#[derive(Debug, Args)]
pub struct Tree {
    #[command(flatten)]
    file: File,
    /// Show `usage` entries and receipts of grafts too.
    #[arg(long)]
    all: bool,
}

/// Columns of an id; a longer one pushes what stands behind it.
const ID: usize = 8;
/// Columns of a role or type.
const WHAT: usize = 10;
/// Columns of a terminal on which there is little room.
const NARROW: usize = 60;

/// The tree as it is shown.
struct Drawing<'o> {
    opened: &'o Opened,
    shape: Shape,
}

impl Tree {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        let drawing = Drawing { opened: &opened, shape: Shape::of(&opened, self.all) };
        if out.json {
            drawing.write_json(out)?
        } else {
            drawing.write(out)?
        }
        Ok(Outcome::Done)
    }
}

impl Drawing<'_> {
    /// The entries that are shown, each with its place in the drawing and what `look` makes of its line.
    fn each_read<T: Send>(
        &self,
        look: impl Fn(Json<'_>) -> T + Sync,
        mut each: impl FnMut(&Node, T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut walk = self.shape.walk();
        loop {
            let some: Vec<Node> = walk.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return Ok(());
            }
            let entries: Vec<_> = some.iter().map(|node| *self.opened.tree.entry(node.ix)).collect();
            for (node, read) in some.iter().zip(self.opened.read_all(&entries, &look)?) {
                each(node, read)?;
            }
        }
    }

    fn write(&self, out: &mut Out) -> Result<(), Failure> {
        let width = out.width;
        let mut first = true;
        self.each_read(preview::entry, |node, preview| {
            if node.is_root && !std::mem::take(&mut first) {
                out.line("")?;
            }
            Ok(out.paint(&self.row(node, &preview, width))?)
        })
    }

    fn row(&self, node: &Node, preview: &Preview, width: usize) -> Row {
        let tree = &self.opened.tree;
        let id = preview::one_line(tree.id(node.ix));
        let (is_leaf, on_path) = (self.shape.is_leaf(node.ix), self.shape.is_on_path(node.ix));
        let dot = match preview.what.as_str() {
            "compaction" => "◆ ",
            _ if on_path => "● ",
            _ => "○ ",
        };
        let ink = |ink| if on_path { ink } else { Ink::Dim };
        // Where there is little room, columns that stand below each other would leave none for what is said.
        let (most, what) = if width < NARROW { (width / 4, 0) } else { (width / 2, WHAT) };
        let row = Row::new().and(Ink::Dim, &rails(&node.rails, most)).and(ink(Ink::Green), dot);
        let row = row.and(Ink::Dim, &format!("{} ", text::pad(&id, ID)));
        let row = row.and(ink(preview.ink()), &format!("{} ", text::pad(&preview.what, what)));
        // What the leaf is must be seen, however long its label.
        let row = if is_leaf { row.and(Ink::Bold, "← leaf ") } else { row };
        let label = tree.label(tree.id(node.ix)).map(preview::one_line);
        let of_label = |label: String| format!("[{}] ", text::cut(&label, (width / 3).max(ID)));
        let row = label.map(of_label).map_or(row.clone(), |label| row.and(Ink::Yellow, &label));
        row.and(ink(Ink::Plain), &preview.said)
    }

    /// Writes one document, an entry at a time: a session of a million entries takes no more memory than its tree.
    fn write_json(&self, out: &mut Out) -> Result<(), Failure> {
        let tree = &self.opened.tree;
        let leaf = match tree.leaf() {
            Leaf::At(ix) => Some(tree.id(ix)),
            Leaf::None | Leaf::NoId => None,
        };
        let roots: Vec<_> = self.shape.roots().iter().map(|ix| tree.id(*ix)).collect();
        out.put(&format!("{{\"leafId\":{},\"roots\":{},\"entries\":[", json!(leaf), json!(roots)))?;
        let mut comma = "";
        self.each_read(kind_and_role, |node, (kind, role)| {
            Ok(out.put(&format!("{}{}", std::mem::replace(&mut comma, ","), self.entry_json(node, kind, role)))?)
        })?;
        Ok(out.line("]}")?)
    }

    fn entry_json(&self, node: &Node, kind: Option<String>, role: Option<String>) -> Value {
        let tree = &self.opened.tree;
        let id = |ix: EntryIx| tree.id(ix);
        let mut json = json!({ "id": id(node.ix), "parentId": self.shape.above(node.ix).map(id), "type": kind });
        let more = [("role", role), ("label", tree.label(id(node.ix)).map(str::to_owned))];
        for (name, value) in more.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            json[name] = value.into();
        }
        json
    }
}

/// The lines that lead to an entry, at most so many columns of them: the nearest.
fn rails(rails: &str, most: usize) -> String {
    // Each takes two columns.
    let (count, most) = (rails.chars().count(), (most / 2 * 2).max(2));
    if count <= most {
        return rails.to_owned();
    }
    let nearest: String = rails.chars().skip(count + 2 - most).collect();
    format!("⋯ {nearest}")
}

/// The type of an entry's line, and the role of its message.
fn kind_and_role(line: Json<'_>) -> (Option<String>, Option<String>) {
    let text = |json: Json<'_>| json.as_str().map(|text| text.into_owned());
    let [kind, message] = line.get_all(["type", "message"]);
    (kind.and_then(text), message.and_then(|message| message.get("role")).and_then(text))
}
