//! Old sessions written as version 3: as Pi writes them, ids apart, and nothing else touched (S11).

mod common;

use std::path::Path;

use common::js::Js;
use pi_session::Tree;
use pi_session::finding::Finding;
use pi_session::migrate::{MigrateError, migrate};
use pi_session::problem::Problem;

/// Ids as the oracle names Pi's random ones: by their order.
fn in_order() -> impl FnMut() -> [u8; 16] {
    let mut next = 0_u32;
    move || {
        next += 1;
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&next.to_be_bytes());
        bytes
    }
}

fn migrated(text: &str) -> String {
    let new = migrate(text.as_bytes(), &mut in_order()).expect("an old session");
    String::from_utf8(new.into_owned()).expect("text")
}

fn case(name: &str) -> (String, Js) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/odd").join(name);
    let answer = std::fs::read(file.with_extension("expected.json")).expect("Pi's answer");
    (std::fs::read_to_string(file).expect("a case"), Js::parse(&answer))
}

/// `gen-0001` for `00000001`.
fn as_the_oracle_names(text: &str, entries: usize) -> String {
    (1..=entries).fold(text.to_owned(), |text, n| text.replace(&format!("{n:08x}"), &format!("gen-{n:04}")))
}

#[test]
fn the_migrated_file_is_the_one_that_pi_writes() {
    let cases = [
        "21c_version_float.jsonl",
        "21d_version_zero.jsonl",
        "22_version_null.jsonl",
        "23_version_missing_v1.jsonl",
        "25_v1_firstKeptIndex_0.jsonl",
        "26_v1_firstKeptIndex_out_of_range.jsonl",
        "28_version_1_explicit_with_ids.jsonl",
    ];
    for name in cases {
        let (session, pi) = case(name);
        let ours = as_the_oracle_names(&migrated(&session), session.lines().count());
        let after = pi.get("fileAfter").and_then(|after| after.get("lines")).expect("the file behind Pi");
        let of_pi: Vec<_> = after.items().iter().map(|line| line.as_text().expect("a line")).collect();
        assert_eq!(ours.lines().map(str::to_owned).collect::<Vec<_>>(), of_pi, "{name}");
    }
}

#[test]
fn what_does_not_change_stays_byte_for_byte() {
    let old = "{\"type\":\"session\", \"version\":2,\"id\":\"s\"}\r\n\nnot json\n[1]\n\
        {\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"n\":1e400,\"message\":{\"role\" : \"hookMessage\"}}\n\
        {\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"\\ud800\"}} \n\
        {\"type\":\"session\",\"version\":1}\n{\"torn";
    let new = old.replace("\"version\":2", "\"version\":3").replace("hookMessage", "custom");
    assert_eq!(migrated(old), format!("{new}\n"));
}

#[test]
fn an_index_counts_every_value_and_may_be_the_compaction_s_own() {
    let old = "{\"type\":\"session\",\"id\":\"s\"}\nnot json\n7\n{\"type\":\"a\"}\n\
        {\"type\":\"compaction\",\"firstKeptEntryIndex\":2}\n{\"firstKeptEntryIndex\":4,\"type\":\"compaction\"}\n\
        {\"type\":\"compaction\",\"firstKeptEntryIndex\":9}\n";
    let new = migrated(old);
    let lines: Vec<_> = new.lines().skip(4).collect();
    let expected = [
        r#"{"type":"compaction","id":"00000002","parentId":"00000001","firstKeptEntryId":"00000001"}"#,
        r#"{"type":"compaction","id":"00000003","parentId":"00000002","firstKeptEntryId":"00000003"}"#,
        r#"{"type":"compaction","id":"00000004","parentId":"00000003"}"#,
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_id_is_never_given_twice() {
    let old = format!("{{\"type\":\"session\",\"id\":\"s\"}}\n{}", "{\"type\":\"a\"}\n".repeat(3));
    let mut calls = 0_u32;
    let mut stuck = || {
        calls += 1;
        [if calls > 150 { 2 } else { 1 }; 16]
    };
    let new = migrate(old.as_bytes(), &mut stuck).expect("an old session");
    let tree = Tree::from_bytes(&new);
    let is_twice = |problem: &&Problem| problem.finding == Finding::DuplicateId;
    assert_eq!(tree.problems().iter().find(is_twice), None);
    assert_eq!(tree.id(tree.all().nth(1).expect("a second")).len(), 36, "a long id after 100 collisions");
}

#[test]
fn what_is_new_or_no_session_is_left_alone() {
    let current = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n{\"torn";
    assert_eq!(migrate(current, &mut in_order()).as_deref(), Ok(current.as_slice()));
    for (text, error) in [
        ("", MigrateError::NotASession),
        ("{}\n", MigrateError::NotASession),
        ("{\"type\":\"session\",\"version\":4,\"id\":\"s\"}\n", MigrateError::Newer),
    ] {
        assert_eq!(migrate(text.as_bytes(), &mut in_order()), Err(error), "{text}");
    }
}

/// What the migrated session means, version 3 or the old one in memory: the same messages.
#[test]
fn the_migrated_session_means_what_the_old_one_meant() {
    for seed in 1..300 {
        let session = common::generate::session(seed);
        let Ok(new) = migrate(&session, &mut in_order()) else { continue };
        assert_eq!(common::messages(&session), common::messages(&new), "seed {seed}");
    }
}
