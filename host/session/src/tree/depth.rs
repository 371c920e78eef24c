//! How deep a tree is.

use super::{EntryIx, Tree};

/// Not looked at yet.
const UNKNOWN: u32 = u32::MAX;
/// On the way up at this moment: who comes here again goes in a circle.
const OPEN: u32 = u32::MAX - 1;

impl Tree {
    /// Entries on the longest branch, whichever entry it ends in; 0 where there is none. What leads in a circle is on no
    /// branch (S8.5). Costs the number of entries.
    #[must_use]
    pub fn depth(&self) -> u32 {
        let mut depths = vec![UNKNOWN; self.entries().len()];
        self.all().map(|ix| self.depth_of(ix, &mut depths)).max().unwrap_or(0)
    }

    /// Entries from the root to this one, 0 if it hangs on a circle; noted for all on the way.
    fn depth_of(&self, ix: EntryIx, depths: &mut [u32]) -> u32 {
        let (mut way, mut at) = (Vec::new(), Some(ix));
        while let Some(next) = at.filter(|next| depths[next.index()] == UNKNOWN) {
            depths[next.index()] = OPEN;
            way.push(next);
            at = self.parent(next);
        }
        let above = at.map(|at| depths[at.index()]);
        let hangs_on_circle = matches!(above, Some(0 | OPEN));
        let mut depth = above.filter(|_| !hangs_on_circle).unwrap_or(0);
        for entry in way.into_iter().rev() {
            depth = if hangs_on_circle { 0 } else { depth + 1 };
            depths[entry.index()] = depth;
        }
        depths[ix.index()]
    }
}

#[cfg(test)]
mod tests {
    use crate::Tree;

    fn depth(entries: &[(&str, Option<&str>)]) -> u32 {
        let mut text = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}"#.to_owned();
        for (id, parent) in entries {
            let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("{parent:?}"));
            text += &format!("\n{{\"type\":\"custom\",\"customType\":\"x\",\"id\":{id:?},\"parentId\":{parent}}}");
        }
        Tree::from_bytes(text.as_bytes()).depth()
    }

    #[test]
    fn the_deepest_branch_counts_wherever_the_leaf_is() {
        assert_eq!(depth(&[]), 0);
        assert_eq!(depth(&[("a", None)]), 1);
        assert_eq!(depth(&[("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("a"))]), 3);
        assert_eq!(depth(&[("a", None), ("b", Some("a")), ("c", None)]), 2);
        assert_eq!(depth(&[("a", None), ("b", Some("nobody")), ("c", Some("b"))]), 2);
    }

    #[test]
    fn a_circle_is_no_branch() {
        assert_eq!(depth(&[("a", Some("b")), ("b", Some("a")), ("c", Some("a"))]), 0);
        assert_eq!(depth(&[("a", Some("a")), ("r", None), ("s", Some("r"))]), 2);
        assert_eq!(depth(&[("c", Some("a")), ("a", Some("b")), ("b", Some("a"))]), 0);
    }

    #[test]
    fn no_depth_is_too_deep() {
        let ids: Vec<String> = (0..100_000).map(|n| format!("{n:x}")).collect();
        let parents = std::iter::once(None).chain(ids.iter().map(|id| Some(id.as_str())));
        let entries: Vec<_> = ids.iter().map(String::as_str).zip(parents).collect();
        assert_eq!(depth(&entries), 100_000);
    }
}
