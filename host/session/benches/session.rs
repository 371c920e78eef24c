//! Opening, context and plan of sessions of 1, 10 and 100 MB; beside the real Pi, if `PI_DIR` and `ORACLE_NODE` say where
//! it is (`tests/oracle/setup.sh`).

#![allow(missing_docs, reason = "divan's macros make undocumented items")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use pi_session::compaction::PlanSettings;
use pi_session::{Branch, Tree};

#[path = "../tests/common/typical.rs"]
mod typical;

const MEGABYTES: [usize; 3] = [1, 10, 100];

fn main() {
    ask_pi();
    divan::main();
}

/// The same sessions, opened by the real Pi.
fn ask_pi() {
    let (Some(node), Some(_)) = (std::env::var_os("ORACLE_NODE"), std::env::var_os("PI_DIR")) else {
        return eprintln!("without Pi: set PI_DIR and ORACLE_NODE (see tests/oracle/setup.sh) to measure it too");
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/bench.mjs");
    let files: Vec<PathBuf> = MEGABYTES.iter().map(|megabytes| written(*megabytes)).collect();
    for file in &files {
        // A process each, so that one's garbage is not another's time.
        let done = Command::new(&node).arg(script).arg(file).status().expect("ORACLE_NODE must be a Node that runs");
        assert!(done.success(), "Pi could not be measured");
    }
    files.iter().for_each(|file| std::fs::remove_file(file).expect("it was made here"));
}

fn written(megabytes: usize) -> PathBuf {
    let file = std::env::temp_dir().join(format!("pi-session-bench-{megabytes}.jsonl"));
    let mut out = std::fs::File::create(&file).expect("the temporary directory can be written to");
    out.write_all(&session(megabytes)).expect("the temporary directory can be written to");
    file
}

/// A session of that size, made once.
fn session(megabytes: usize) -> Arc<Vec<u8>> {
    static MADE: [OnceLock<Arc<Vec<u8>>>; 3] = [const { OnceLock::new() }; 3];
    let slot = MEGABYTES.iter().position(|known| *known == megabytes).expect("one of the sizes");
    Arc::clone(MADE[slot].get_or_init(|| Arc::new(typical::session(7, megabytes * 1_000_000))))
}

fn leaf(megabytes: usize) -> Branch {
    let text = session(megabytes);
    Branch::of_leaf(&Arc::new(Tree::from_bytes(&text)), text).expect("it has no cycle")
}

#[divan::bench(args = MEGABYTES)]
fn open(bencher: Bencher, megabytes: usize) {
    let text = session(megabytes);
    bencher.counter(BytesCount::new(text.len())).bench(|| Tree::from_bytes(black_box(&text)));
}

/// Which entries the model sees, and how each shows: found in the index. Pi has all objects in memory by then, so its
/// `buildSessionContext` copies no text either.
#[divan::bench(args = MEGABYTES)]
fn context(bencher: Bencher, megabytes: usize) {
    let branch = leaf(megabytes);
    bencher.bench(|| (branch.context(), branch.thinking_level(), branch.model()));
}

/// The same with the JSON of all messages, read back and put together.
#[divan::bench(args = MEGABYTES)]
fn context_with_messages(bencher: Bencher, megabytes: usize) {
    let branch = leaf(megabytes);
    bencher.bench(|| {
        let context = branch.context();
        let messages: Vec<_> = context.entries.iter().map(|entry| branch.messages(entry)).collect();
        (messages, branch.thinking_level(), branch.model())
    });
}

#[divan::bench(args = MEGABYTES)]
fn plan(bencher: Bencher, megabytes: usize) {
    let branch = leaf(megabytes);
    bencher.bench(|| branch.plan(black_box(&PlanSettings::default())));
}

/// A line arrives, and a branch is made of the new leaf.
#[divan::bench(args = MEGABYTES)]
fn append(bencher: Bencher, megabytes: usize) {
    let text = session(megabytes);
    let mut tree = Arc::new(Tree::from_bytes(&text));
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        let parent = leaf_id(&tree);
        let line = format!(r#"{{"type":"custom","customType":"x","id":"new-{number}","parentId":"{parent}","timestamp":"2026-06-01T00:00:00.000Z"}}"#);
        Arc::get_mut(&mut tree).expect("no branch is alive").push(0, line.as_bytes());
        Branch::of_leaf(&tree, text.clone()).map(|branch| branch.len())
    });
}

fn leaf_id(tree: &Tree) -> String {
    match tree.leaf() {
        pi_session::tree::Leaf::At(ix) => tree.id(ix).to_owned(),
        _ => unreachable!("a typical session ends in an entry"),
    }
}
