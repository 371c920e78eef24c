//! `session tree`: all branches.

use std::path::Path;
use std::rc::Rc;

use clap::Args;
use pi_session::draft::RECEIPT_TYPE;
use pi_session::entry::EntryKind;
use pi_session::json::Json;
use pi_session::tree::{EntryIx, Leaf};
use serde_json::{Value, json};

use super::File;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::open::{AT_ONCE, Opened};
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
    fn walk(&self, mut each: impl FnMut(&Node)) {
        let start: Rc<str> = "".into();
        let mut open = below(&self.roots, &start);
        while let Some(node) = open.pop() {
            let children = &self.children[node.ix.index()];
            if self.shows(node.ix) {
                each(&node);
                open.extend(below(children, &node.rest));
            } else if let [only] = children.as_slice() {
                open.push(Node { ix: *only, ..node });
            } else {
                open.extend(below(children, &node.rest));
            }
        }
    }

    /// The entries that are shown in the order of the walk, each with what stands before it and what `look` makes of its
    /// line.
    fn each_read<T: Send>(
        &self,
        look: impl Fn(Json<'_>) -> T + Sync,
        mut each: impl FnMut(EntryIx, &str, T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut nodes = Vec::new();
        self.walk(|node| nodes.push((node.ix, Rc::clone(&node.lead))));
        for some in nodes.chunks(AT_ONCE) {
            let entries: Vec<_> = some.iter().map(|(ix, _)| *self.opened.tree.entry(*ix)).collect();
            for ((ix, lead), read) in some.iter().zip(self.opened.read_all(&entries, &look)?) {
                each(*ix, lead, read)?;
            }
        }
        Ok(())
    }

    fn write(&self, out: &mut Out) -> Result<(), Failure> {
        let tree = &self.opened.tree;
        self.each_read(preview::entry, |ix, lead, said| {
            let id = tree.id(ix);
            let label = tree.label(id).map_or_else(String::new, |label| format!(" [{}]", preview::one_line(label)));
            let leaf = if tree.leaf() == Leaf::At(ix) { " ← leaf" } else { "" };
            Ok(out.row(&format!("{lead}{}{label}{leaf} {said}", preview::one_line(id)))?)
        })
    }

    fn json(&self) -> Result<Value, Failure> {
        let tree = &self.opened.tree;
        let id = |ix: EntryIx| tree.id(ix).to_owned();
        let mut entries = Vec::new();
        self.each_read(kind_and_role, |ix, _, (kind, role)| {
            let mut json = json!({ "id": id(ix), "parentId": tree.parent(ix).map(id), "type": kind });
            let more = [("role", role), ("label", tree.label(tree.id(ix)).map(str::to_owned))];
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

/// The type of an entry's line, and the role of its message.
fn kind_and_role(line: Json<'_>) -> (Option<String>, Option<String>) {
    let text = |json: Json<'_>| json.as_str().map(|text| text.into_owned());
    let [kind, message] = line.get_all(["type", "message"]);
    (kind.and_then(text), message.and_then(|message| message.get("role")).and_then(text))
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
