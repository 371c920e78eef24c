//! A session says by itself what came from whom: receipts written, found, and held against the drafts (product 4.5).

mod common;

use common::scene::{Scene, compaction, message_draft, omit, replace};
use pi_session::draft::Draft;
use pi_session::receipt::{Passing, Receipt, content_sum, drafts_at, is_receipt, missing, receipts, receipts_of};

fn chat() -> Scene {
    Scene::new(
        "u1 user: hi
         a1 assistant: hello
         u2 user: and?
         a2 assistant: well",
    )
}

fn receipt() -> Receipt {
    let text = |text: &str| text.to_owned();
    Receipt {
        batch: text("b1"),
        plugin: text("trim"),
        version: text("1.0"),
        digest: text("d"),
        handler: text("on-entry"),
        reason: text("entry"),
        trigger: text("a2"),
        ..Receipt::default()
    }
}

fn drafts() -> Vec<Draft> {
    vec![
        Draft::custom("state", Some(r#"{"n":1.0,"a":"\u0041"}"#)).expect("well formed"),
        replace("a1", "\"hey\""),
        omit("u1"),
        message_draft("note"),
        compaction(None),
    ]
}

/// The chat with the batch behind its receipt.
fn grafted() -> Scene {
    let accepted = chat().accept(&drafts());
    chat().with(&chat().compose(&accepted, Some(&receipt())).expect("nothing has changed"))
}

/// The last lines as Pi would write them after reading them in: other escapes, numbers and order of nothing.
fn through_pi(scene: &Scene) -> Scene {
    let text = scene.text.replace(r#"{"n":1.0,"a":"\u0041"}"#, r#"{"n":1,"a":"A"}"#);
    assert_ne!(text, scene.text);
    Scene { text }
}

/// The scene without the lines that `drop` names, counted from the receipt; what follows hangs on what is left.
fn cut(scene: &Scene, drop: &[usize]) -> Scene {
    let lines: Vec<&str> = scene.text.lines().collect();
    let first = lines.iter().position(|line| line.contains("pi-graft.run")).expect("there is a receipt");
    let mut text = String::new();
    let mut rename: Option<(String, String)> = None;
    for (at, line) in lines.iter().enumerate() {
        if at > first && drop.contains(&(at - first)) {
            let (id, before) = (format!("{:08}", at - first + 1), format!("{:08}", at - first));
            let before = rename.take().map_or(before, |(_, before)| before);
            rename = Some((format!("\"parentId\":\"{id}\""), before));
            continue;
        }
        let line = match &rename {
            Some((parent, before)) => line.replace(parent, &format!("\"parentId\":\"{before}\"")),
            None => (*line).to_owned(),
        };
        text += &line;
        text.push('\n');
    }
    Scene { text }
}

#[test]
fn a_batch_begins_with_its_receipt() {
    let branch = grafted().branch();
    let found = receipts(&branch, None).expect("memory reads");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].place, found[0].complete), (4, true));
    assert!(is_receipt(&branch.item(4)));
    let Receipt { entries, content, .. } = &found[0].receipt;
    assert_eq!((*entries, content.is_some()), (5, true));
    assert_eq!(Receipt { entries: 0, content: None, ..found[0].receipt.clone() }, receipt());
}

#[test]
fn a_receipt_is_found_by_plugin_handler_and_trigger() {
    let branch = grafted().branch();
    let count = |plugin, handler, trigger| receipts_of(&branch, plugin, handler, trigger).expect("memory reads").len();
    assert_eq!(count("trim", "on-entry", "a2"), 1);
    assert_eq!(count("other", "on-entry", "a2"), 0);
    assert_eq!(count("trim", "on-settled", "a2"), 0);
    assert_eq!(count("trim", "on-entry", "u2"), 0);
    assert_eq!(count("trim", "on-entry", "nobody"), 0);
    let before = grafted().branch_at("a2");
    assert!(receipts_of(&before, "trim", "on-entry", "a2").expect("memory reads").is_empty(), "not on this branch");
}

#[test]
fn drafts_are_recognised_after_pi_has_written_them_its_way() {
    let branch = through_pi(&grafted()).branch();
    assert!(receipts(&branch, None).expect("memory reads")[0].complete);
    let accepted = chat().accept(&drafts());
    assert_eq!(missing(&branch, 4, accepted.drafts()), Ok(vec![]));
}

#[test]
fn a_receipt_that_lacks_a_draft_says_which() {
    let accepted = chat().accept(&drafts());
    for lost in 1..=5 {
        let branch = cut(&grafted(), &[lost]).branch();
        assert_eq!(missing(&branch, 4, accepted.drafts()), Ok(vec![lost as u32 - 1]), "without {lost}");
        assert!(!receipts(&branch, None).expect("memory reads")[0].complete, "without {lost}");
    }
    let branch = cut(&grafted(), &[1, 2, 3, 4, 5]).branch();
    assert_eq!(missing(&branch, 4, accepted.drafts()), Ok(vec![0, 1, 2, 3, 4]));
}

#[test]
fn a_count_proves_nothing() {
    let cut = cut(&grafted(), &[5]);
    let filled = cut.and("x9 custom: of another extension");
    let found = receipts(&filled.branch(), None).expect("memory reads");
    assert!(!found[0].complete, "five entries follow, but not these five");
    let accepted = chat().accept(&drafts());
    assert_eq!(missing(&filled.branch(), 4, accepted.drafts()), Ok(vec![4]));
}

#[test]
fn what_was_missing_follows_with_a_receipt_of_its_own() {
    let accepted = chat().accept(&drafts());
    let half = cut(&grafted(), &[4, 5]);
    let lost = missing(&half.branch(), 4, accepted.drafts()).expect("memory reads");
    let rest: Vec<_> = lost.iter().map(|at| accepted.drafts()[*at as usize].clone()).collect();
    let continued = Receipt { batch: "b2".into(), continues: Some("b1".into()), ..receipt() };
    let mended = half.with(&half.compose(&half.accept(&rest), Some(&continued)).expect("it still holds"));
    let found = receipts(&mended.branch(), None).expect("memory reads");
    let told: Vec<_> = found.iter().map(|found| (found.receipt.continues.as_deref(), found.complete)).collect();
    assert_eq!(told, [(None, false), (Some("b1"), true)]);
}

#[test]
fn a_receipt_without_a_sum_is_held_to_its_count() {
    let scene = chat().and("x1 custom: one");
    let data = r#"{"batch":"b","plugin":"p","handler":"h","trigger":"a2","entries":1}"#;
    let receipt = format!(
        r#"{{"type":"custom","customType":"pi-graft.run","data":{data},"id":"r","parentId":"a2","timestamp":""}}"#
    );
    let text = scene.text.replace(r#""parentId":"a2""#, r#""parentId":"r""#);
    let at = text.find(r#"{"type":"custom""#).expect("the custom entry");
    let scene = Scene { text: format!("{}{receipt}\n{}", &text[..at], &text[at..]) };
    let found = receipts(&scene.branch(), None).expect("memory reads");
    assert_eq!((found.len(), found[0].complete), (1, true));
}

#[test]
fn what_only_looks_like_a_receipt_is_none() {
    use pi_session::json::Json;
    for data in
        ["null", "{}", "[]", r#"{"batch":1}"#, r#"{"batch":"b","plugin":"p","handler":"h","trigger":"t","entries":-1}"#]
    {
        assert_eq!(Receipt::parse(Json::parse(data.as_bytes()).expect("JSON")), None, "{data}");
    }
}

#[test]
fn a_receipt_is_read_as_it_was_written() {
    let receipt = Receipt { reason: "a \"quoted\"\nreason".into(), continues: Some("b0".into()), ..receipt() };
    let json = receipt.to_json();
    assert_eq!(Receipt::parse(pi_session::json::Json::parse(json.as_bytes()).expect("JSON")), Some(receipt));
}

/// A graft that has to be made again is taken from the file.
#[test]
fn the_drafts_of_a_batch_are_read_back_from_the_file() {
    let branch = grafted().branch();
    let place = receipts(&branch, None).expect("readable")[0].place;
    let (said, read) = drafts_at(&branch, place).expect("readable").expect("a receipt");
    assert_eq!(said.batch, "b1");
    let list = format!("[{}]", read.join(","));
    let again = Draft::list_from_json(&list).expect("they are drafts");
    assert_eq!(content_sum(&again), said.content);
    assert_eq!(drafts_at(&branch, 0).expect("readable"), None);
}

/// Lines pass by in the file's order; somebody's line may stand among those of a batch.
#[test]
fn a_batch_is_whole_when_its_last_line_has_passed() {
    let text = grafted().text;
    let passed = |lines: &mut dyn Iterator<Item = &str>| {
        let mut passing = Passing::default();
        lines.filter_map(|line| passing.pass(line.as_bytes())).count()
    };
    assert_eq!(passed(&mut text.lines()), 1);
    assert_eq!(passed(&mut text.lines().take(text.lines().count() - 1)), 0, "one is missing");
    let among = r#"{"type":"message","id":"x","parentId":"a2","message":{"role":"user","content":"hi"}}"#;
    assert_eq!(passed(&mut text.lines().flat_map(|line| [line, among])), 1);
}
