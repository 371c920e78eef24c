//! `session tree`: all branches.

use std::path::Path;
use std::rc::Rc;

use clap::Args;
use pi_session::draft::RECEIPT_TYPE;
use pi_session::entry::EntryKind;
use pi_session::tree::{EntryIx, Leaf};
use serde_json::{Value, json};

use super::File;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::Opened;
use crate::cli::out::Out;
use crate::cli::preview;

/// Arguments of `session tree`.
#[derive(Debug, Args)]
pub struct Tree {
    #[command(flatten)]
    file: File,
    /// Show `usage` entries and receipts of grafts too.
    #[arg(long)]
    all: bool,
}

/// An entry still to be shown: what stands before its line, and before the lines below it.
struct Node {
    ix: EntryIx,
    lead: Rc<str>,
    rest: Rc<str>,
}

/// The tree as it is drawn.
struct Drawing<'o> {
    opened: &'o Opened,
    children: Vec<Vec<EntryIx>>,
    roots: Vec<EntryIx>,
    all: bool,
}

impl Tree {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        let drawing = Drawing::of(&opened, self.all);
        if out.json {
            out.line(drawing.json()?)?
        } else {
            drawing.write(out)?
        }
        Ok(Outcome::Done)
    }
}

impl<'o> Drawing<'o> {
    /// Of two entries with one id only the later is there (S8.5).
    fn of(opened: &'o Opened, all: bool) -> Drawing<'o> {
        let tree = &opened.tree;
        let (mut children, mut roots) = (vec![Vec::new(); tree.entries().len()], Vec::new());
        let stands = |ix: &EntryIx| tree.by_id(tree.id(*ix)) == Some(*ix);
        for ix in opened.entries.iter().copied().filter(stands) {
            match tree.parent(ix) {
                Some(parent) => children[parent.index()].push(ix),
                None => roots.push(ix),
            }
        }
        Drawing { opened, children, roots, all }
    }

    fn shows(&self, ix: EntryIx) -> bool {
        let entry = self.opened.tree.entry(ix);
        let receipt = entry.kind == EntryKind::Custom && self.opened.tree.word(entry) == RECEIPT_TYPE;
        self.all || !(receipt || entry.kind == EntryKind::Usage)
    }

    /// The entries, each before its children; kept on a stack of its own, so that no depth is too deep.
    fn walk(&self, mut each: impl FnMut(&Node) -> Result<(), Failure>) -> Result<(), Failure> {
        let start: Rc<str> = "".into();
        let mut open = below(&self.roots, &start);
        while let Some(node) = open.pop() {
            let children = &self.children[node.ix.index()];
            if self.shows(node.ix) {
                each(&node)?;
                open.extend(below(children, &node.rest));
            } else if let [only] = children.as_slice() {
                open.push(Node { ix: *only, ..node });
            } else {
                open.extend(below(children, &node.rest));
            }
        }
        Ok(())
    }

    fn write(&self, out: &mut Out) -> Result<(), Failure> {
        let tree = &self.opened.tree;
        self.walk(|node| {
            let (id, entry) = (tree.id(node.ix), tree.entry(node.ix));
            let label = tree.label(id).map_or_else(String::new, |label| format!(" [{}]", preview::one_line(label)));
            let leaf = if tree.leaf() == Leaf::At(node.ix) { " ← leaf" } else { "" };
            let said = self.opened.read(entry, preview::entry)?;
            Ok(out.row(&format!("{}{}{label}{leaf} {said}", node.lead, preview::one_line(id)))?)
        })
    }

    fn json(&self) -> Result<Value, Failure> {
        let tree = &self.opened.tree;
        let id = |ix: EntryIx| tree.id(ix).to_owned();
        let mut entries = Vec::new();
        self.walk(|node| {
            let entry = tree.entry(node.ix);
            let (kind, role) = self.opened.read(entry, |line| {
                let text = |json: pi_session::json::Json<'_>| json.as_str().map(|text| text.into_owned());
                let role = line.get("message").and_then(|message| message.get("role"));
                (line.get("type").and_then(text), role.and_then(text))
            })?;
            let mut json = json!({ "id": id(node.ix), "parentId": tree.parent(node.ix).map(id), "type": kind });
            let more = [("role", role), ("label", tree.label(tree.id(node.ix)).map(str::to_owned))];
            more.into_iter().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| {
                json[name] = value.into();
            });
            entries.push(json);
            Ok(())
        })?;
        let leaf = match tree.leaf() {
            Leaf::At(ix) => Some(id(ix)),
            Leaf::None | Leaf::NoId => None,
        };
        Ok(
            json!({ "leafId": leaf, "roots": self.roots.iter().map(|ix| id(*ix)).collect::<Vec<_>>(), "entries": entries }),
        )
    }
}

/// The nodes below one, the first of them last: a single child goes on in the same column.
fn below(children: &[EntryIx], rest: &Rc<str>) -> Vec<Node> {
    if let [only] = children {
        return vec![Node { ix: *only, lead: Rc::clone(rest), rest: Rc::clone(rest) }];
    }
    let last = children.len().saturating_sub(1);
    let node = |(at, ix): (usize, &EntryIx)| {
        let (turn, line) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        Node { ix: *ix, lead: format!("{rest}{turn}").into(), rest: format!("{rest}{line}").into() }
    };
    children.iter().enumerate().map(node).rev().collect()
}
