//! A tree only grows: however it came to be, it is the same; and a context hangs on nothing but its own path.

mod common;

use std::sync::Arc;

use common::generate::{self, value::Rng};
use common::grown::{grown, same};
use common::typical;
use pi_session::tree::EntryIx;
use pi_session::{Branch, Tree};

/// All that a branch shows, as text.
fn shown(tree: &Arc<Tree>, text: &Arc<Vec<u8>>, leaf: Option<EntryIx>) -> String {
    let Ok(branch) = Branch::at(tree, text.clone(), leaf) else { return "a cycle".to_owned() };
    let context = branch.context();
    let messages: Vec<_> =
        context.entries.iter().map(|entry| branch.messages(entry).expect("memory can be read")).collect();
    format!("{messages:?} {:?}", branch.tokens(&context))
}

#[test]
fn a_file_read_at_once_is_the_file_read_line_by_line() {
    for seed in 0..500 {
        let text = generate::session(seed);
        same(&Tree::from_bytes(&text), &grown(&text));
    }
}

#[test]
fn a_big_file_is_read_on_all_cores_and_comes_out_the_same() {
    let mut text = typical::session(1, 6_000_000);
    same(&Tree::from_bytes(&text), &grown(&text));
    // Odd lines, and lines longer than what one worker takes at a time.
    let long = format!(
        "{{\"type\":\"custom\",\"id\":\"long\",\"parentId\":null,\"data\":\"{}\"}}\nnonsense\n\n",
        "x".repeat(900_000)
    );
    for at in [3, 2, 1] {
        let middle = text.len() / 4 * at;
        let line = middle + memchr_newline(&text[middle..]) + 1;
        text.splice(line..line, long.bytes());
    }
    text.extend_from_slice(b"{\"type\":\"custom\",\"id\":\"torn");
    same(&Tree::from_bytes(&text), &grown(&text));
}

fn memchr_newline(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').expect("a session has line ends")
}

#[test]
fn the_path_kept_for_the_leaf_is_the_path_walked_from_it() {
    for seed in 0..300 {
        let text = generate::session(seed);
        let mut tree = Tree::new();
        let source = Arc::new(text.clone());
        for line in text.split(|byte| *byte == b'\n') {
            tree.push(0, line);
            let kept = Arc::new(tree.clone());
            let Ok(branch) = Branch::of_leaf(&kept, source.clone()) else { continue };
            let Some(leaf) = branch.leaf() else { continue };
            let walked = std::iter::successors(Some(leaf), |ix| kept.parent(*ix)).collect::<Vec<_>>();
            let ids: Vec<_> = walked.iter().rev().map(|ix| kept.id(*ix)).collect();
            assert_eq!(branch.items().filter_map(|item| item.id).collect::<Vec<_>>(), ids, "seed {seed}");
            assert!(
                branch.items().all(|item| branch.place_of(item.id.expect("nothing is pending")) == Some(item.place))
            );
        }
    }
}

#[test]
fn what_is_appended_elsewhere_changes_no_context() {
    let mut rng = Rng::new(5);
    for seed in 0..300 {
        let mut text = generate::session(seed);
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        let before = Arc::new(Tree::from_bytes(&text));
        let Some(leaf) = before.all().next_back() else { continue };
        let old = shown(&before, &Arc::new(text.clone()), Some(leaf));
        // A branch of its own, with an edit of an entry on the other one and a compaction that keeps it.
        let some = before
            .id(before.all().nth(rng.below(before.entries().len() as u32) as usize).expect("it is below the number"));
        let edit = format!(
            "{{\"type\":\"context_edit\",\"id\":\"new-1\",\"parentId\":null,\"targetId\":{some:?},\"replacement\":null}}\n"
        );
        let compaction = format!(
            "{{\"type\":\"compaction\",\"id\":\"new-2\",\"parentId\":\"new-1\",\"summary\":\"s\",\"firstKeptEntryId\":{some:?},\"tokensBefore\":1}}\n"
        );
        text.extend_from_slice(edit.as_bytes());
        text.extend_from_slice(compaction.as_bytes());
        let after = Arc::new(Tree::from_bytes(&text));
        assert_eq!(shown(&after, &Arc::new(text), Some(leaf)), old, "seed {seed}");
    }
}

#[test]
fn an_edit_is_undone_by_leaving_its_branch() {
    for seed in 0..300 {
        let mut text = generate::session(seed);
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        let before = Arc::new(Tree::from_bytes(&text));
        let Some(leaf) = before.all().next_back() else { continue };
        if before.header().is_none_or(|header| header.version != pi_session::header::Version::V3) {
            continue;
        }
        let old = shown(&before, &Arc::new(text.clone()), Some(leaf));
        let id = before.id(leaf);
        text.extend_from_slice(format!("{{\"type\":\"context_edit\",\"id\":\"new-1\",\"parentId\":{id:?},\"targetId\":{id:?},\"replacement\":null}}\n").as_bytes());
        let after = Arc::new(Tree::from_bytes(&text));
        assert_eq!(shown(&after, &Arc::new(text), after.by_id(id)), old, "seed {seed}");
    }
}
