//! A session: however it is read it is the same tree, and a context is what the plainest reading makes it.

use std::sync::Arc;

use pi_session::compaction::PlanSettings;
use pi_session::fork::{NewSession, fork};
use pi_session::header::Version;
use pi_session::json::Json;
use pi_session::migrate::migrate;
use pi_session::tree::{EntryIx, Leaf, Status};
use pi_session::{Branch, Tree, check};

use crate::{Input, branch, counter, naive};

/// Leaves that are looked at besides the file's own.
const SOME: usize = 4;

/// All that must hold of this session.
pub fn check(input: &[u8]) {
    let text = Input::of(input).text;
    let tree = Arc::new(Tree::from_bytes(&text));
    same(&tree, &grown(&text));
    // An entry that a later line with its id has replaced can be no leaf (S8.5).
    let current = tree.all().rev().filter(|ix| tree.by_id(tree.id(*ix)) == Some(*ix));
    let some = current.step_by(1 + tree.entries().len() / SOME);
    for leaf in some.map(Some).chain([None]) {
        if let Some(branch) = branch(&tree, &text, leaf) {
            let seen = Seen::of(&branch);
            naive::check(&branch, &text);
            alone(&branch, &text, &seen);
            forked(&branch, &text, &seen);
        }
    }
    checked(&tree, &text);
    migrated(&tree, &text);
}

/// Whatever is wrong is named, in file order, and a context that Pi would fail to build is not called valid.
fn checked(tree: &Arc<Tree>, text: &Arc<Vec<u8>>) {
    let checked = check::check(tree, text.clone()).expect("memory can be read");
    assert!(checked.problems.is_sorted_by_key(|problem| problem.offset));
    assert!(!checked.valid || tree.entries().iter().all(|entry| !entry.breaks));
    assert!(!checked.valid || tree.status() != Status::NotASession);
}

/// Line by line, as a watcher sees a file grow.
fn grown(text: &[u8]) -> Tree {
    let (mut tree, mut offset) = (Tree::new(), 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(whole) => tree.push(offset, whole),
            None => tree.push_last(offset, line),
        };
        offset += line.len() as u64;
    }
    tree
}

fn same(one: &Tree, other: &Tree) {
    assert_eq!(one.status(), other.status());
    if one.status() == Status::NotASession {
        return;
    }
    assert_eq!(one.entries(), other.entries());
    assert_eq!(one.problems(), other.problems());
    assert_eq!((one.leaf(), one.lines(), one.name()), (other.leaf(), other.lines(), other.name()));
    // As text, since a cost may be no number.
    assert_eq!(format!("{:?}", one.totals()), format!("{:?}", other.totals()));
    assert!(one.all().all(|ix| one.id(ix) == other.id(ix)));
}

/// What a branch shows.
#[derive(PartialEq, Debug)]
pub struct Seen {
    pub messages: Vec<String>,
    pub tokens: f64,
    level: String,
    model: Option<pi_session::context::ModelName>,
}

impl Seen {
    /// Asks a branch everything; all that it puts together is JSON.
    pub fn of(branch: &Branch) -> Seen {
        let context = branch.context();
        let given = |entry| branch.messages(entry).expect("memory can be read");
        let messages: Vec<String> = context.entries.iter().flat_map(given).collect();
        let level = branch.thinking_level().expect("memory can be read");
        let replay = branch.system(&context).expect("memory can be read").message(None);
        for json in messages.iter().chain([&level]).chain(&replay) {
            Json::parse(json.as_bytes()).expect("what is put together is JSON");
        }
        plan(branch);
        let tokens = branch.tokens(&context).expect("memory can be read").total;
        Seen { messages, tokens, level, model: branch.model().expect("memory can be read") }
    }
}

/// A plan keeps an entry of the context and summarises only what stands before that in it.
fn plan(branch: &Branch) {
    for keep_recent in [0, 50, 20_000] {
        let settings = PlanSettings { keep_recent, ..PlanSettings::default() };
        let Some(plan) = branch.plan(&settings).expect("memory can be read") else { continue };
        let places: Vec<u32> = branch.context().entries.iter().map(|entry| entry.place).collect();
        let kept = places.iter().position(|place| *place == plan.first_kept_place).expect("it is in the context");
        let before = &places[..kept];
        assert!(plan.to_summarize.iter().chain(&plan.turn_prefix).all(|place| before.contains(place)));
        assert!(!plan.to_summarize.is_empty() || !plan.turn_prefix.is_empty());
    }
}

/// A context hangs on nothing but its own path: the path's lines alone give the same.
fn alone(branch: &Branch, text: &[u8], seen: &Seen) {
    let version = branch.tree().header().map(|header| header.version);
    if branch.is_empty() || version.is_none_or(|version| version == Version::V1) {
        return;
    }
    let mut path = header_line(text).to_vec();
    for place in 0..branch.len() {
        path.push(b'\n');
        path.extend_from_slice(&branch.text(place).expect("memory can be read"));
    }
    path.push(b'\n');
    let (path, tree) = (Arc::new(path.clone()), Arc::new(Tree::from_bytes(&path)));
    let alone = Branch::of_leaf(&tree, path).expect("a path has no circle");
    assert_eq!(&Seen::of(&alone), seen);
}

/// The first line that means something.
fn header_line(text: &[u8]) -> &[u8] {
    let truthy = |line: &&[u8]| Json::parse(line).is_ok_and(Json::is_truthy);
    text.split(|byte| *byte == b'\n').find(truthy).unwrap_or_default()
}

/// A fork shows what the branch showed.
fn forked(branch: &Branch, text: &[u8], seen: &Seen) {
    let new = NewSession { id: "new", now_ms: 0, cwd: "/", parent_session: None };
    let Some(leaf) = branch.leaf_id() else { return };
    let Ok(forked) = fork(text, Some(leaf), &new, &mut counter()) else { return };
    let text = Arc::new(forked.text);
    let tree = Arc::new(Tree::from_bytes(&text));
    let fork = Branch::of_leaf(&tree, text).expect("a path has no circle");
    assert_eq!(&Seen::of(&fork), seen);
}

/// A migrated session shows what the old one showed, and is migrated for good.
fn migrated(tree: &Arc<Tree>, text: &Arc<Vec<u8>>) {
    let Ok(new) = migrate(text, &mut counter()) else { return };
    let (new, again) = (Arc::new(new.to_vec()), migrate(&new, &mut counter()).map(|again| again.into_owned()));
    assert_eq!(again.as_ref(), Ok(&*new));
    let migrated = Arc::new(Tree::from_bytes(&new));
    assert_eq!(migrated.entries().len(), tree.entries().len());
    assert_eq!(migrated.leaf(), tree.leaf());
    let leaf = leaf(tree);
    let seen = |tree, text| branch(tree, text, leaf).map(|branch| Seen::of(&branch));
    assert_eq!(seen(&migrated, &new), seen(tree, text));
}

fn leaf(tree: &Tree) -> Option<EntryIx> {
    match tree.leaf() {
        Leaf::At(ix) => Some(ix),
        Leaf::None | Leaf::NoId => None,
    }
}
