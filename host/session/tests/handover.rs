//! What a live Pi is handed at a boundary, and in place of its own compaction (product 5, *bridge*).

mod common;

use common::scene::{Scene, compaction, message_draft, omit};
use pi_session::draft::Draft;
use pi_session::handover::{self, Handed, Handover, Offered};
use pi_session::receipt::{self, Passing, Receipt, receipts_of};

fn chat() -> Scene {
    Scene::new(
        "s1 system: the prompt
         u1 user: read a
         a1 assistant calls c1: I shall
         r1 result c1: text of a
         a2 assistant: done
         u2 user: and b
         a3 assistant: that too",
    )
}

fn receipt(batch: &str) -> Receipt {
    let text = str::to_owned;
    Receipt {
        batch: text(batch),
        plugin: text("trim"),
        handler: text("on-entry"),
        trigger: text("a3"),
        ..Receipt::default()
    }
}

fn state() -> Draft {
    Draft::custom("trim.state", Some("{\"n\":1}")).expect("well formed")
}

/// The types in what was handed, the receipt's `entries` in brackets.
fn kinds(handed: &Handed) -> Vec<String> {
    let kind = |json: &String| {
        let draft = pi_session::json::Json::parse(json.as_bytes()).expect("drafts are JSON");
        let text = |name| draft.get(name).and_then(|v| v.as_str()).map(|v| v.into_owned());
        let entries = draft.get("data").and_then(|data| data.get("entries")?.as_f64());
        match (text("customType").as_deref(), entries) {
            (Some("pi-graft.run"), Some(entries)) => format!("receipt({entries})"),
            _ => text("type").unwrap_or_default(),
        }
    };
    handed.drafts.iter().map(kind).collect()
}

fn handed(offered: Result<Offered, pi_session::compose::Stale>) -> Handed {
    match offered {
        Ok(Offered::Handed(handed)) => handed,
        other => panic!("not handed: {other:?}"),
    }
}

#[test]
fn all_batches_that_hold_go_into_one_list_each_behind_its_receipt() {
    let scene = chat();
    let mut list = Handover::new(&scene.branch(), []);
    let first = scene.accept(&[state(), omit("r1"), omit("a1")]);
    let second = scene.accept(&[message_draft("a note")]);
    assert_eq!(
        kinds(&handed(list.offer(&first, &receipt("b1")))),
        ["receipt(3)", "custom", "context_edit", "context_edit"]
    );
    assert_eq!(kinds(&handed(list.offer(&second, &receipt("b2")))), ["receipt(1)", "custom_message"]);
}

#[test]
fn nothing_follows_a_compaction_in_the_same_list() {
    let scene = chat();
    let mut list = Handover::new(&scene.branch(), []);
    assert_eq!(
        kinds(&handed(list.offer(&scene.accept(&[compaction(Some("u2"))]), &receipt("b1")))),
        ["receipt(1)", "compaction"]
    );
    assert_eq!(list.offer(&scene.accept(&[message_draft("late")]), &receipt("b2")), Ok(Offered::Later));
}

#[test]
fn what_others_put_into_the_list_is_checked_with_ours() {
    let scene = chat();
    let theirs = r#"{"type":"compaction","summary":"theirs","firstKeptEntryId":"u2"}"#;
    let mut list = Handover::new(&scene.branch(), [theirs]);
    assert_eq!(list.offer(&scene.accept(&[compaction(Some("u2"))]), &receipt("b1")), Ok(Offered::Later));
    let theirs = r#"{"type":"context_edit","targetId":"a2","replacement":null}"#;
    let mut list = Handover::new(&scene.branch(), [theirs, "no JSON", "7", r#"{"type":"custom","customType":"x"}"#]);
    assert_eq!(list.offer(&scene.accept(&[omit("a2")]), &receipt("b1")), Ok(Offered::Later));
    assert_eq!(kinds(&handed(list.offer(&scene.accept(&[omit("u2")]), &receipt("b2")))).len(), 2);
}

#[test]
fn a_batch_that_does_not_hold_any_more_is_stale_and_an_edit_of_what_is_gone_is_left_out() {
    let accepted = chat().accept(&[omit("a2")]);
    let compacted = chat().and("k1 compaction u2: a summary\nu3 user: go on\na4 assistant: yes");
    let mut list = Handover::new(&compacted.branch(), []);
    match list.offer(&accepted, &receipt("b1")) {
        Ok(Offered::Nothing(left_out)) => assert_eq!(left_out.len(), 1),
        other => panic!("{other:?}"),
    }
    let kept = chat().accept(&[compaction(Some("u2"))]);
    let elsewhere = chat().and("u9<a1 user: another way");
    let stale = Handover::new(&elsewhere.branch(), []).offer(&kept, &receipt("b2")).expect_err("u2 is not on it");
    assert_eq!(stale.refusal.rule.as_str(), "S12.5");
}

#[test]
fn in_place_of_pis_compaction_the_receipt_stands_in_the_details() {
    let scene = chat();
    let draft = Draft::compaction("sum", Some("u2"), Some(r#"{"readFiles":["a"]}"#), None).expect("well formed");
    let json = handover::compaction(&scene.branch(), &scene.accept(&[draft]), &receipt("b1"));
    let json = json.expect("it holds").expect("it is one compaction");
    let json = pi_session::json::Json::parse(json.as_bytes()).expect("JSON");
    let text = |name| json.get(name).and_then(|v| v.as_str()).map(|v| v.into_owned());
    assert_eq!((text("summary").as_deref(), text("firstKeptEntryId").as_deref()), (Some("sum"), Some("u2")));
    assert!(json.get("tokensBefore").and_then(|v| v.as_f64()).is_some_and(|tokens| tokens > 0.0));
    let details = json.get("details").expect("details");
    assert_eq!(details.get("readFiles").map(|v| v.to_text().into_owned()).as_deref(), Some("[\"a\"]"));
    let said = Receipt::parse(details.get("pi-graft").expect("the receipt")).expect("a receipt");
    assert_eq!((said.batch.as_str(), said.entries, said.content.is_some()), ("b1", 1, true));
}

/// Pi writes that compaction itself: the receipt in it counts like one before it, the compaction is its one draft.
#[test]
fn a_compaction_that_pi_took_is_known_by_the_receipt_in_its_details() {
    for details in [None, Some(r#"{"readFiles":["a"]}"#), Some("[1,2]"), Some("null")] {
        let scene = chat();
        let draft = Draft::compaction("sum", Some("u2"), details, None).expect("well formed");
        let taken = handover::compaction(&scene.branch(), &scene.accept(std::slice::from_ref(&draft)), &receipt("b1"));
        let taken = taken.expect("it holds").expect("it is one compaction");
        let line = format!(
            "{{\"type\":\"compaction\",\"id\":\"k1\",\"parentId\":\"a3\",\"timestamp\":\"2026-01-02T00:00:00.000Z\",{}\n",
            &taken[1..]
        );
        let changed = line.replace("\"sum\"", "\"another summary\"");
        for (line, whole) in [(line, true), (changed, false)] {
            let branch = Scene { text: format!("{}{line}", scene.text) }.branch();
            let found = receipts_of(&branch, "trim", "on-entry", "a3").expect("readable");
            assert_eq!(found.iter().map(|found| found.complete).collect::<Vec<_>>(), [whole], "{details:?}");
            assert_eq!(found[0].places(), found[0].place..=found[0].place);
            let left = receipt::missing(&branch, found[0].place, std::slice::from_ref(&draft)).expect("readable");
            assert_eq!(left.is_empty(), whole);
            assert_eq!(Passing::default().pass(line.as_bytes()).is_some(), whole);
        }
    }
}

#[test]
fn only_a_lone_compaction_that_keeps_something_stands_in_for_pis() {
    let scene = chat();
    let try_it = |drafts: &[Draft]| handover::compaction(&scene.branch(), &scene.accept(drafts), &receipt("b1"));
    assert_eq!(try_it(&[state(), compaction(Some("u2"))]), Ok(None));
    assert_eq!(try_it(&[compaction(None)]), Ok(None));
    assert_eq!(try_it(&[state()]), Ok(None));
}
