//! The shape in which a session's tree is drawn.
//!
//! What goes on from an entry stays in its column; what branches off hangs beside it, before it goes on:
//!
//! ```text
//! ● a
//! ├─○ b      given up
//! │ ○ c
//! ● d        goes on from a
//! ```
//!
//! What goes on is the path to the leaf; elsewhere, of several children the one with the most below it. So a chain of
//! 100,000 entries with a branch at each does not indent away: no entry stands deeper than its number has binary digits.

use std::rc::Rc;

use pi_session::draft::RECEIPT_TYPE;
use pi_session::entry::EntryKind;
use pi_session::grafts::REJOIN_TYPE;
use pi_session::tree::{EntryIx, Leaf};

use crate::cli::open::Opened;

/// An entry in the drawing.
pub(super) struct Node {
    /// Which.
    pub ix: EntryIx,
    /// It begins a tree of its own.
    pub is_root: bool,
    /// What stands before it in its line.
    pub rails: Rc<str>,
    /// What stands before those that go on from it.
    below: Rc<str>,
}

/// The entries that are shown and how they hang together.
pub(super) struct Shape {
    /// The entries below each, in file order; of those that are not shown nothing.
    children: Vec<Vec<EntryIx>>,
    roots: Vec<EntryIx>,
    /// Entries in the tree below each, itself included.
    sizes: Vec<u32>,
    on_path: Vec<bool>,
    /// The entry above each, of those that are shown.
    above: Vec<Option<EntryIx>>,
    /// The leaf, or where it is not shown the last entry before it that is.
    leaf: Option<EntryIx>,
}

impl Shape {
    /// That of a session: all of it, or without `usage` entries and receipts. Of two entries with one id only the later is
    /// there (S8.5).
    pub fn of(opened: &Opened, all: bool) -> Shape {
        let tree = &opened.tree;
        let entries = tree.entries().len();
        let (mut below, mut roots) = (vec![Vec::new(); entries], Vec::new());
        let stands = |ix: &EntryIx| tree.by_id(tree.id(*ix)) == Some(*ix);
        for ix in tree.all().filter(stands) {
            match tree.parent(ix).filter(|parent| *parent != ix) {
                Some(parent) => below[parent.index()].push(ix),
                None => roots.push(ix),
            }
        }
        let mut shape = Shape {
            children: vec![Vec::new(); entries],
            roots: Vec::new(),
            sizes: vec![1; entries],
            on_path: Vec::new(),
            above: vec![None; entries],
            leaf: None,
        };
        let shows = |ix| all || is_shown(opened, ix);
        shape.take(&below, &roots, shows);
        let path = path_to_leaf(opened);
        shape.leaf = path.iter().copied().find(|ix| shows(*ix));
        shape.on_path = vec![false; entries];
        path.iter().for_each(|ix| shape.on_path[ix.index()] = true);
        shape
    }

    /// Takes over what is shown, and counts what stands below each.
    fn take(&mut self, below: &[Vec<EntryIx>], roots: &[EntryIx], shows: impl Fn(EntryIx) -> bool) {
        let mut open: Vec<(EntryIx, Option<EntryIx>)> = roots.iter().rev().map(|ix| (*ix, None)).collect();
        let mut order = Vec::new();
        while let Some((ix, above)) = open.pop() {
            let shown = shows(ix);
            if shown {
                above.map_or(&mut self.roots, |above| &mut self.children[above.index()]).push(ix);
                order.push((ix, above));
            }
            let above = if shown { Some(ix) } else { above };
            open.extend(below[ix.index()].iter().rev().map(|child| (*child, above)));
        }
        for (ix, above) in order.into_iter().rev() {
            self.above[ix.index()] = above;
            if let Some(above) = above {
                self.sizes[above.index()] += self.sizes[ix.index()];
            }
        }
    }

    /// The entries where the drawing begins.
    pub fn roots(&self) -> &[EntryIx] {
        &self.roots
    }

    /// The entry that an entry hangs on in the drawing.
    pub fn above(&self, ix: EntryIx) -> Option<EntryIx> {
        self.above[ix.index()]
    }

    /// Whether an entry is where Pi would go on, as far as is shown.
    pub fn is_leaf(&self, ix: EntryIx) -> bool {
        self.leaf == Some(ix)
    }

    /// Whether an entry is on the path to the leaf.
    pub fn is_on_path(&self, ix: EntryIx) -> bool {
        self.on_path[ix.index()]
    }

    /// The entries in the order in which they are drawn.
    pub fn walk(&self) -> Walk<'_> {
        let root = |ix: &EntryIx| Node { ix: *ix, is_root: true, rails: "".into(), below: "".into() };
        Walk { shape: self, open: self.roots.iter().rev().map(root).collect() }
    }

    /// The child in whose line it goes on.
    fn goes_on(&self, children: &[EntryIx]) -> Option<EntryIx> {
        let rank = |ix: &&EntryIx| (self.is_on_path(**ix), self.sizes[ix.index()]);
        children.iter().max_by_key(rank).copied()
    }
}

/// The entries in the order in which they are drawn; kept on a stack of its own, so that no depth is too deep.
pub(super) struct Walk<'s> {
    shape: &'s Shape,
    open: Vec<Node>,
}

impl Iterator for Walk<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        let node = self.open.pop()?;
        let children = &self.shape.children[node.ix.index()];
        let goes_on = self.shape.goes_on(children);
        let same = |ix| Node { ix, is_root: false, rails: Rc::clone(&node.below), below: Rc::clone(&node.below) };
        self.open.extend(goes_on.map(same));
        let beside: (Rc<str>, Rc<str>) = match children.len() {
            0 | 1 => ("".into(), "".into()),
            _ => (format!("{}├─", node.below).into(), format!("{}│ ", node.below).into()),
        };
        for ix in children.iter().rev().copied().filter(|ix| Some(*ix) != goes_on) {
            let (rails, below) = (Rc::clone(&beside.0), Rc::clone(&beside.1));
            self.open.push(Node { ix, is_root: false, rails, below });
        }
        Some(node)
    }
}

fn is_shown(opened: &Opened, ix: EntryIx) -> bool {
    let entry = opened.tree.entry(ix);
    let hosts_own = matches!(opened.tree.word(entry), RECEIPT_TYPE | REJOIN_TYPE);
    let hosts_own = entry.kind == EntryKind::Custom && hosts_own;
    !(hosts_own || entry.kind == EntryKind::Usage)
}

/// The entries on the path to the leaf, that one first. One that leads in a circle ends where it began.
fn path_to_leaf(opened: &Opened) -> Vec<EntryIx> {
    let (mut seen, mut path) = (vec![false; opened.tree.entries().len()], Vec::new());
    let mut at = match opened.tree.leaf() {
        Leaf::At(ix) => Some(ix),
        Leaf::None | Leaf::NoId => None,
    };
    while let Some(ix) = at.filter(|ix| !seen[ix.index()]) {
        seen[ix.index()] = true;
        path.push(ix);
        at = opened.tree.parent(ix);
    }
    path
}
