//! A tree that grew line by line, to compare others with.

use pi_session::Tree;

/// Line by line, as a watcher sees a file grow.
pub fn grown(text: &[u8]) -> Tree {
    let mut tree = Tree::new();
    let mut offset = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => tree.push(offset, line),
            None => tree.push_last(offset, line),
        };
        offset += line.len() as u64;
    }
    tree
}

/// All that two trees tell is the same.
pub fn same(one: &Tree, other: &Tree) {
    assert_eq!(one.entries(), other.entries());
    assert_eq!(one.problems(), other.problems());
    assert_eq!((one.leaf(), one.lines(), one.name()), (other.leaf(), other.lines(), other.name()));
    assert_eq!(one.totals(), other.totals());
    assert!(one.all().all(|ix| one.id(ix) == other.id(ix)));
}
