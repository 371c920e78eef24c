//! Who stands above whom, known for all entries after one walk over the tree.

use crate::entry::EntryKind;
use crate::tree::{EntryIx, Tree};

/// No entry.
const NONE: u32 = u32::MAX;

/// The walk over a tree: from each root down, children in file order.
pub(super) struct Order {
    /// When the walk came to an entry, and when it left it; 0 where no root leads to.
    enter: Vec<u32>,
    leave: Vec<u32>,
    /// The last compaction above an entry.
    compaction: Vec<u32>,
    /// The same, if no entry between gives a message.
    close_compaction: Vec<u32>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
}

impl Order {
    pub fn of(tree: &Tree) -> Order {
        let none = || vec![NONE; tree.entries().len()];
        let zero = || vec![0; tree.entries().len()];
        let mut order = Order {
            enter: zero(),
            leave: zero(),
            compaction: none(),
            close_compaction: none(),
            first_child: none(),
            next_sibling: none(),
        };
        let mut roots = Vec::new();
        for ix in tree.all().rev() {
            match tree.parent(ix) {
                Some(parent) => {
                    order.next_sibling[ix.index()] = order.first_child[parent.index()];
                    order.first_child[parent.index()] = ix.0;
                }
                None => roots.push(ix),
            }
        }
        let mut clock = 0;
        roots.into_iter().rev().for_each(|root| order.walk(tree, root, &mut clock));
        order
    }

    fn walk(&mut self, tree: &Tree, root: EntryIx, clock: &mut u32) {
        let mut open = vec![root];
        self.come(root, clock);
        while let Some(ix) = open.last().copied() {
            match self.next_child(ix) {
                Some(child) => {
                    self.inherit(tree, ix, child);
                    self.come(child, clock);
                    open.push(child);
                }
                None => {
                    self.leave[ix.index()] = *clock;
                    open.pop();
                }
            }
        }
    }

    fn come(&mut self, ix: EntryIx, clock: &mut u32) {
        *clock += 1;
        self.enter[ix.index()] = *clock;
    }

    /// The next child to walk to. Which one that is stands in `leave` (its number and one), until the entry is left.
    fn next_child(&mut self, ix: EntryIx) -> Option<EntryIx> {
        let next = match self.leave[ix.index()] {
            0 => self.first_child[ix.index()],
            child => self.next_sibling[child as usize - 1],
        };
        (next != NONE).then(|| {
            self.leave[ix.index()] = next + 1;
            EntryIx(next)
        })
    }

    fn inherit(&mut self, tree: &Tree, parent: EntryIx, child: EntryIx) {
        let (facts, above) = (tree.entry(parent), parent.index());
        let (last, close) = match facts.kind {
            EntryKind::Compaction => (parent.0, parent.0),
            _ if facts.gives => (self.compaction[above], NONE),
            _ => (self.compaction[above], self.close_compaction[above]),
        };
        self.compaction[child.index()] = last;
        self.close_compaction[child.index()] = close;
    }

    /// Whether a root leads to this entry: none does where its parents lead in a circle (S8.5).
    pub fn is_reached(&self, ix: EntryIx) -> bool {
        self.enter[ix.index()] != 0
    }

    /// Whether `above` is on the path to `ix`, or is it.
    pub fn is_on_path(&self, above: EntryIx, ix: EntryIx) -> bool {
        let (above, ix) = (above.index(), ix.index());
        self.enter[above] != 0 && self.enter[above] <= self.enter[ix] && self.leave[ix] <= self.leave[above]
    }

    /// The last compaction above an entry.
    pub fn compaction_above(&self, ix: EntryIx) -> Option<EntryIx> {
        some(self.compaction[ix.index()])
    }

    /// The same, if nothing between gives a message.
    pub fn compaction_close_above(&self, ix: EntryIx) -> Option<EntryIx> {
        some(self.close_compaction[ix.index()])
    }

    /// The children of an entry, in file order.
    pub fn children(&self, ix: EntryIx) -> impl Iterator<Item = EntryIx> {
        std::iter::successors(some(self.first_child[ix.index()]), |child| some(self.next_sibling[child.index()]))
    }
}

fn some(ix: u32) -> Option<EntryIx> {
    (ix != NONE).then_some(EntryIx(ix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, Option<&str>)]) -> Tree {
        let mut text = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}"#.to_owned();
        for (id, parent) in entries {
            let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("{parent:?}"));
            let kind = if id.starts_with('k') { "compaction" } else { "custom" };
            text += &format!("\n{{\"type\":{kind:?},\"id\":{id:?},\"parentId\":{parent}}}");
        }
        Tree::from_bytes(text.as_bytes())
    }

    #[test]
    fn who_is_above_whom() {
        // a ─ b ─ c
        //   └ k ─ d ─ e      x ⇄ y
        let entries = [("a", None), ("b", Some("a")), ("k", Some("a")), ("c", Some("b")), ("d", Some("k"))];
        let more = [("e", Some("d")), ("x", Some("y")), ("y", Some("x"))];
        let tree = tree(&[&entries[..], &more].concat());
        let order = Order::of(&tree);
        let ix = |id| tree.by_id(id).expect("it is there");
        let mut on_path = Vec::new();
        for (above, _) in entries {
            let below = tree.all().filter(|below| order.is_on_path(ix(above), *below));
            on_path.push(below.map(|below| tree.id(below)).collect::<String>());
        }
        assert_eq!(on_path, ["abkcde", "bc", "kde", "c", "de"]);
        assert!(!order.is_reached(ix("x")) && !order.is_on_path(ix("a"), ix("y")));
        assert_eq!(order.compaction_above(ix("e")), Some(ix("k")));
        assert_eq!(order.compaction_close_above(ix("k")), None);
        assert_eq!(order.children(ix("a")).map(|child| tree.id(child)).collect::<String>(), "bk");
    }

    #[test]
    fn no_tree_is_too_deep() {
        let ids: Vec<String> = (0..100_000).map(|n| format!("{n:x}")).collect();
        let parents = std::iter::once(None).chain(ids.iter().map(|id| Some(id.as_str())));
        let entries: Vec<_> = ids.iter().map(String::as_str).zip(parents).collect();
        let tree = tree(&entries);
        let order = Order::of(&tree);
        assert!(order.is_on_path(EntryIx(0), EntryIx(99_999)) && !order.is_on_path(EntryIx(99_999), EntryIx(0)));
    }
}
