//! One branch as a session of its own (S8.6).

mod common;

use std::path::Path;
use std::sync::Arc;

use common::js::Js;
use common::oracle::Oracle;
use pi_session::fork::{ForkError, Forked, NewSession, fork};
use pi_session::header::Version;
use pi_session::tree::Leaf;
use pi_session::{Branch, Tree};

const HEADER: &str = r#"{"type":"session","version":3,"id":"old","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;

fn random() -> impl FnMut() -> [u8; 16] {
    let mut next = 0xf0_u8;
    move || {
        next = next.wrapping_add(1);
        [next; 16]
    }
}

fn forked(session: &[u8], leaf: Option<&str>) -> Result<Forked, ForkError> {
    let new = NewSession { id: "new", now_ms: 0, cwd: "/work", parent_session: Some("/old.jsonl") };
    fork(session, leaf, &new, &mut random())
}

/// The lines behind the header of a fork of these entries.
fn lines(entries: &[&str], leaf: Option<&str>) -> Vec<String> {
    let session = format!("{HEADER}\n{}\n", entries.join("\n"));
    let text = String::from_utf8(forked(session.as_bytes(), leaf).expect("forked").text).expect("text");
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn only_the_path_is_taken_over_byte_for_byte() {
    let root = r#"{"type":"custom","id":"a","parentId":null,"n":1e400 , "x":"\ud800"}"#;
    let other = r#"{"type":"custom","id":"b","parentId":"a"}"#;
    let child = r#"{"type":"custom","id":"c","parentId":"a"} "#;
    assert_eq!(lines(&[root, other, child], None), [root, child]);
    assert_eq!(lines(&[root, other, child], Some("b")), [root, other]);
    let orphan = r#"{"type":"custom","id":"d","parentId":"nobody"}"#;
    assert_eq!(lines(&[orphan], None), [r#"{"type":"custom","id":"d","parentId":null}"#]);
}

#[test]
fn labels_are_dropped_from_the_path_and_written_again_at_the_end() {
    let entries = [
        r#"{"type":"custom","id":"a","parentId":null}"#,
        r#"{"type":"label","id":"l1","parentId":"a","timestamp":"T1","targetId":"a","label":"one"}"#,
        r#"{"type":"compaction","id":"k","parentId":"l1","summary":"s","firstKeptEntryId":"l1"}"#,
        r#"{"type":"label","id":"l2","parentId":"k","timestamp":"T2","targetId":"k","label":"gone"}"#,
        r#"{"type":"custom","id":"b","parentId":"l2"}"#,
        r#"{"type":"compaction","id":"m","parentId":"b","summary":"s","firstKeptEntryId":"l2"}"#,
        r#"{"type":"custom","id":"other","parentId":"a"}"#,
        r#"{"type":"label","id":"l3","parentId":"m","timestamp":"T3","targetId":"k"}"#,
        r#"{"type":"label","id":"l4","parentId":"l3","timestamp":"T4","targetId":"other","label":"elsewhere"}"#,
        r#"{"type":"label","id":"l5","parentId":"l4","timestamp":"T5","targetId":"m","label":"two"}"#,
        r#"{"type":"label","id":"l6","parentId":"l5","timestamp":"T6","targetId":"a","label":"three"}"#,
    ];
    let expected = [
        entries[0],
        r#"{"type":"compaction","id":"k","parentId":"a","summary":"s","firstKeptEntryId":"k"}"#,
        r#"{"type":"custom","id":"b","parentId":"k"}"#,
        r#"{"type":"compaction","id":"m","parentId":"b","summary":"s","firstKeptEntryId":"b"}"#,
        r#"{"type":"label","id":"f1f1f1f1","parentId":"m","timestamp":"T6","targetId":"a","label":"three"}"#,
        r#"{"type":"label","id":"f2f2f2f2","parentId":"f1f1f1f1","timestamp":"T5","targetId":"m","label":"two"}"#,
    ];
    assert_eq!(lines(&entries, None), expected);
}

#[test]
fn an_old_session_is_migrated_first() {
    let old = "{\"type\":\"session\",\"id\":\"old\"}\n{\"type\":\"message\",\"message\":{\"role\":\"hookMessage\"}}\n\
        {\"type\":\"custom\"}\n";
    let text = forked(old.as_bytes(), Some("v1-000002")).expect("forked").text;
    let text = String::from_utf8(text).expect("text");
    let line = r#"{"type":"message","message":{"role":"custom"},"id":"f1f1f1f1","parentId":null}"#;
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), [line]);
}

#[test]
fn what_cannot_be_forked_is_told() {
    let error = |text: &str, leaf| forked(text.as_bytes(), leaf).expect_err("nothing to fork").to_string();
    assert!(error("", None).starts_with("S2.3"));
    assert!(error("{\"type\":\"session\",\"version\":4,\"id\":\"s\"}\n{\"id\":\"a\"}\n", None).starts_with("S3"));
    assert_eq!(error(&format!("{HEADER}\n"), None), ForkError::Empty.to_string());
    let label = r#"{"type":"label","id":"a","parentId":null,"targetId":"a","label":"x"}"#;
    assert_eq!(error(&format!("{HEADER}\n{label}\n"), None), ForkError::Empty.to_string());
    assert_eq!(error(&format!("{HEADER}\n{label}\n"), Some("b")), "there is no entry b");
    let circle = "{\"id\":\"a\",\"parentId\":\"b\"}\n{\"id\":\"b\",\"parentId\":\"a\"}\n";
    assert!(error(&format!("{HEADER}\n{circle}"), None).starts_with("S8.5"));
}

/// What a real Pi cloned, from the session it came from as far as both go, and from what it wrote itself.
#[test]
fn it_is_the_clone_that_pi_makes() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/real");
    let read = |name: &str| std::fs::read_to_string(real.join(name)).expect("a case");
    let (source, of_pi) = (read("09_fork_clone_source.jsonl"), read("09_fork_clone_cloned.jsonl"));
    let of_pi: Vec<_> = of_pi.lines().collect();
    let label = of_pi.iter().position(|line| line.contains("\"label\"")).expect("Pi wrote the label again");
    let same = |session: &str, leaf, expected: &[&str]| {
        let ours = String::from_utf8(forked(session.as_bytes(), Some(leaf)).expect("forked").text).expect("text");
        let ours: Vec<_> = ours.lines().skip(1).map(without_label_ids).collect();
        assert_eq!(ours, expected.iter().map(|line| without_label_ids(line)).collect::<Vec<_>>());
    };
    same(&source, "fa06a43c", &[&of_pi[1..6], &of_pi[label..=label]].concat());
    same(&of_pi.join("\n"), "4b5143cb", &of_pi[1..=label]);
}

fn without_label_ids(line: &str) -> String {
    let entry = Js::parse(line.as_bytes());
    let is_label = entry.get("type").and_then(Js::as_text).as_deref() == Some("label");
    let names = ["type", "timestamp", "targetId", "label"];
    if is_label {
        names.map(|name| entry.get(name).map(Js::canonical).unwrap_or_default()).concat()
    } else {
        entry.canonical()
    }
}

/// For every leaf of random sessions: the fork's context is the branch's, and the fork is sound.
#[test]
fn the_context_of_a_fork_is_that_of_the_branch() {
    let mut compared = 0;
    for seed in 1..30 {
        let session = common::generate::session(seed);
        let tree = Arc::new(Tree::from_bytes(&session));
        for ix in tree.all().filter(|ix| tree.by_id(tree.id(*ix)) == Some(*ix)) {
            let branch = Branch::at(&tree, Arc::new(session.clone()), Some(ix));
            let (Ok(branch), Ok(new)) = (branch, forked(&session, Some(tree.id(ix)))) else { continue };
            assert_eq!(said(&branch), common::messages(&new.text), "seed {seed}, leaf {}", tree.id(ix));
            assert!(matches!(Tree::from_bytes(&new.text).leaf(), Leaf::At(_)));
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared} forks compared");
}

fn said(branch: &Branch) -> Option<Vec<String>> {
    let given = branch.context().entries.iter().map(|entry| branch.messages(entry)).collect::<Result<Vec<_>, _>>();
    Some(given.ok()?.concat())
}

/// Every branch of random sessions, odd ones too, as the real Pi forks it.
#[test]
fn pi_forks_odd_sessions_the_same() {
    common::deep(|| {
        let Some(mut oracle) = Oracle::start() else { return };
        let file = std::env::temp_dir().join(format!("pi-session-odd-forks-{}.jsonl", std::process::id()));
        let mut compared = 0;
        for seed in 1..250 {
            let session = common::generate::session(seed);
            let tree = Tree::from_bytes(&session);
            if tree.header().is_none_or(|header| header.version != Version::V3) || tree.leaf() == Leaf::NoId {
                continue;
            }
            std::fs::write(&file, &session).expect("the temporary directory can be written to");
            for ix in tree.all().step_by(5).filter(|ix| tree.by_id(tree.id(*ix)) == Some(*ix)) {
                let leaf = tree.id(ix);
                let (Ok(ours), false) = (forked(&session, Some(leaf)), leaf.contains('\u{fffd}')) else { continue };
                same_as_pi(&ours, &oracle.branched(&file, leaf, 0), seed);
                compared += 1;
            }
        }
        let _ = std::fs::remove_file(&file);
        eprintln!("{compared} forks are as Pi makes them");
        assert!(compared > 300, "{compared} forks compared");
    });
}

/// The same entries after JavaScript's number rules; ids of labels that were written again differ.
fn same_as_pi(ours: &Forked, pi: &Js, seed: u64) {
    let ours = String::from_utf8_lossy(&ours.text).into_owned();
    let theirs: Vec<String> = pi.get("lines").expect("lines").items().iter().filter_map(Js::as_text).collect();
    let values = |lines: &[&str]| lines.iter().skip(1).map(|line| with_parent(line)).collect::<Vec<_>>();
    let (ours, theirs) = (ours.lines().collect::<Vec<_>>(), theirs.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(values(&ours), values(&theirs), "seed {seed}");
}

/// A root without a parent, or with one that is no text, stays so here; Pi writes `null`.
fn with_parent(line: &str) -> String {
    let mut entry = Js::parse(line.as_bytes());
    let is_named = entry.get("parentId").and_then(Js::as_text).is_some_and(|parent| !parent.is_empty());
    let is_label = entry.get("type").and_then(Js::as_text).as_deref() == Some("label");
    if let (false, false, Js::Object(members)) = (is_named, is_label, &mut entry) {
        members.insert("parentId".encode_utf16().collect(), Js::Null);
    }
    if is_label { without_label_ids(line) } else { entry.canonical() }
}
