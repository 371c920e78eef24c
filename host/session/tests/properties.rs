//! What holds of every session, tried on thousands of random ones.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::generate::{self, value::Rng};
use common::script::{self, Script};
use pi_session::compaction::PlanSettings;
use pi_session::entry::EntryKind;
use pi_session::header::Version;
use pi_session::tree::Pushed;
use pi_session::{Branch, Tree};

/// A line that arrives adds what it says, and changes nothing else.
#[test]
fn appending_is_the_only_thing_that_changes_a_tree() {
    let mut pushed = 0;
    for seed in 0..150 {
        let (session, mut tree, mut offset) = (generate::session(seed), Tree::new(), 0);
        for line in session.split(|byte| *byte == b'\n') {
            let before = tree.clone();
            let what = tree.push(offset, line);
            offset += line.len() as u64 + 1;
            pushed += 1;
            only_added(&before, &tree, what, seed);
        }
    }
    assert!(pushed > 2000, "{pushed} lines pushed");
}

fn only_added(before: &Tree, after: &Tree, what: Pushed, seed: u64) {
    let old = before.entries().len();
    assert_eq!(after.entries()[..old], *before.entries(), "seed {seed}: what was read stays");
    assert_eq!(after.entries().len() - old, usize::from(matches!(what, Pushed::Entry(_))), "seed {seed}");
    assert!(after.problems().starts_with(before.problems()), "seed {seed}: what was found stays");
    let Pushed::Entry(new) = what else {
        assert_eq!((before.name(), labels(before)), (after.name(), labels(after)), "seed {seed}");
        assert!(before.header().is_none() || before.header() == after.header(), "seed {seed}: one header counts");
        return;
    };
    for ix in before.all().filter(|ix| before.id(*ix) != after.id(new)) {
        let id = before.id(ix);
        assert_eq!(before.by_id(id), after.by_id(id), "seed {seed}: an id means what it meant");
    }
    let facts = after.entry(new);
    if facts.kind != EntryKind::Label {
        assert_eq!(labels(before), labels(after), "seed {seed}");
    }
    if facts.kind != EntryKind::SessionInfo {
        assert_eq!(before.name(), after.name(), "seed {seed}");
    }
}

fn labels(tree: &Tree) -> BTreeMap<&str, &str> {
    tree.labels().collect()
}

/// A file of nothing but a header and one branch means at its leaf what the whole file means there.
#[test]
fn a_context_never_depends_on_entries_off_its_path() {
    let mut compared = 0;
    for seed in 0..400 {
        let session = generate::session(seed);
        let tree = Arc::new(Tree::from_bytes(&session));
        // In version 1 the path is the whole file.
        if tree.header().is_none_or(|header| header.version == Version::V1) {
            continue;
        }
        let text = Arc::new(session);
        for ix in tree.all().step_by(3).filter(|ix| tree.by_id(tree.id(*ix)) == Some(*ix)) {
            let Ok(branch) = Branch::at(&tree, text.clone(), Some(ix)) else { continue };
            let alone = alone(&branch, &text);
            let alone_tree = Arc::new(Tree::from_bytes(&alone));
            let leaf = alone_tree.by_id(tree.id(ix));
            let other = Branch::at(&alone_tree, Arc::new(alone), leaf).expect("a path is no circle");
            assert_eq!(all_of(&branch), all_of(&other), "seed {seed}, leaf {}", tree.id(ix));
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared} branches compared");
}

/// The header and the lines of a branch, in the file's order.
fn alone(branch: &Branch, text: &[u8]) -> Vec<u8> {
    let is_header = |line: &&[u8]| Tree::from_bytes(&[line, b"\n".as_slice()].concat()).header().is_some();
    let header = text.split(|byte| *byte == b'\n').find(is_header).expect("it is a session");
    let mut offsets: Vec<_> = branch.items().map(|item| (item.facts.offset, item.facts.len)).collect();
    offsets.sort_unstable();
    let mut lines = header.to_vec();
    for (offset, len) in offsets {
        lines.push(b'\n');
        lines.extend_from_slice(&text[offset as usize..][..len as usize]);
    }
    lines.push(b'\n');
    lines
}

/// Everything that a branch says.
fn all_of(branch: &Branch) -> impl PartialEq + std::fmt::Debug {
    let context = branch.context();
    let shown: Vec<_> = context.entries.iter().map(|entry| (branch.item(entry.place).id, entry.shown)).collect();
    let shown = format!("{shown:?}");
    let plan = branch.plan(&PlanSettings { keep_recent: 50, ..PlanSettings::default() }).expect("memory can be read");
    let level = branch.thinking_level().expect("memory can be read");
    let model = branch.model().expect("memory can be read");
    let tokens = branch.tokens(&context).expect("memory can be read").total.to_bits();
    (shown, messages(branch), tokens, format!("{plan:?}"), level, model)
}

fn messages(branch: &Branch) -> Vec<String> {
    let given = |entry| branch.messages(entry).expect("memory can be read");
    branch.context().entries.iter().flat_map(given).collect()
}

/// Whatever an edit did, on the entry before it nothing of it shows, nor on what is appended there.
#[test]
fn an_edit_is_undone_by_leaving_its_branch() {
    let mut changed = 0;
    for seed in 0..600 {
        let (mut script, mut rng) = (script::random(seed), Rng::new(seed));
        let Some(leaf) = script.session.leaf_id().map(str::to_owned) else { continue };
        let before = said(&script);
        let branch = script.session.branch().expect("no circle");
        let target = branch.item(rng.below(branch.len())).id.expect("nothing is pending").to_owned();
        drop(branch);
        let replacement = rng.pick(&[None, Some(r#"{"content":"other"}"#)]);
        if script.edit(&target, replacement).is_none() {
            continue;
        }
        changed += u32::from(said(&script) != before);
        script.branch_from(&leaf);
        assert_eq!(said(&script), before, "seed {seed}");
        script.user("and on");
        let after = said(&script);
        assert_eq!(after[..before.len()], before, "seed {seed}");
        assert_eq!(after.len(), before.len() + 1, "seed {seed}");
    }
    assert!(changed > 100, "{changed} edits changed something");
}

fn said(script: &Script) -> Vec<String> {
    messages(&script.session.branch().expect("no circle"))
}
