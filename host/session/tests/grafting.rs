//! From what was accepted to lines in the file: what the host adds, and what becomes of a batch that had to wait
//! (S12.2, S12.5, S12.8, product 4.4).

mod common;

use common::scene::{NOW_MS, Scene, compaction, counter, message_draft, omit, replace};
use pi_session::compose::{Composed, compose, compose_note};
use pi_session::draft::Draft;
use pi_session::receipt::Receipt;
use pi_session::strict::RawJson;
use pi_session::validate::Accepted;

fn reading() -> Scene {
    Scene::new(
        "s1 system: the prompt
         u1 user: read a
         a1 assistant calls c1: I shall
         r1 result c1: text of a
         a2 assistant: done",
    )
}

fn lines(composed: &Composed) -> Vec<String> {
    let line = |line: &[u8]| String::from_utf8(line.to_vec()).expect("lines are UTF-8");
    composed.entries().iter().map(|entry| line(&entry.line)).collect()
}

#[test]
fn every_line_is_as_pi_would_write_it() {
    let usage = r#"{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,
        "cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    let accepted = reading().accept(&[
        Draft::custom("x", Some("{\"n\": 1}")).expect("well formed"),
        replace("a2", "\"ok\""),
        Draft::custom_message("y", "\"note\"", true, Some("[]")).expect("well formed"),
        Draft::compaction("sum", Some("a2"), Some("{}"), Some(usage)).expect("well formed"),
    ]);
    let composed = reading().compose(&accepted, None).expect("nothing has changed");
    let at = r#""timestamp":"2026-01-01T01:00:00.000Z""#;
    let edit = r#""replacement":{"content":[{"type":"text","text":"ok"}]}"#;
    let usage = usage.replace("\n        ", "");
    let system = format!(r#"{{"role":"system","content":"the prompt","timestamp":{NOW_MS}}}"#);
    assert_eq!(
        lines(&composed),
        [
            format!(r#"{{"type":"custom","customType":"x","data":{{"n":1}},"id":"00000001","parentId":"a2",{at}}}"#),
            format!(r#"{{"type":"context_edit","id":"00000002","parentId":"00000001",{at},"targetId":"a2",{edit}}}"#),
            format!(
                r#"{{"type":"custom_message","customType":"y","content":"note","display":true,"details":[],"id":"00000003","parentId":"00000002",{at}}}"#
            ),
            format!(
                r#"{{"type":"compaction","id":"00000004","parentId":"00000003",{at},"summary":"sum","firstKeptEntryId":"a2","tokensBefore":14,"details":{{}},"usage":{usage},"fromHook":true,"systemMessage":{system}}}"#
            ),
        ]
        .map(|line| line + "\n")
    );
    assert_eq!(composed.leaf_before(), Some("a2"));
}

#[test]
fn what_was_grafted_is_on_the_branch_that_pi_continues_from() {
    let accepted = reading().accept(&[message_draft("note"), compaction(None)]);
    let after = reading().with(&reading().compose(&accepted, None).expect("nothing has changed"));
    assert_eq!(after.context(), "system: the prompt\ncompactionSummary: what was before");
    assert!(after.branch().tree().problems().is_empty(), "{:?}", after.branch().tree().problems());
    let gone_on = after.and("u2 user: next");
    assert!(gone_on.context().ends_with("user: next"));
}

#[test]
fn a_compaction_that_keeps_none_names_itself() {
    let composed = reading().compose(&reading().accept(&[compaction(None)]), None).expect("nothing has changed");
    assert!(lines(&composed)[0].contains(r#""id":"00000001","parentId":"a2""#));
    assert!(lines(&composed)[0].contains(r#""firstKeptEntryId":"00000001""#));
}

#[test]
fn without_system_messages_there_is_no_system_message() {
    let plain = Scene::new("u1 user: hi\na1 assistant: hello");
    let composed = plain.compose(&plain.accept(&[compaction(None)]), None).expect("nothing has changed");
    assert!(!lines(&composed)[0].contains("systemMessage"));
}

#[test]
fn the_first_entry_of_a_session_hangs_on_nothing() {
    let empty = Scene::new("");
    let composed = empty.compose(&empty.accept(&[message_draft("hi")]), None).expect("a session may begin");
    assert!(lines(&composed)[0].contains(r#""parentId":null"#));
    assert_eq!(composed.leaf_before(), None);
}

#[test]
fn no_entry_is_older_than_its_parent() {
    let accepted = reading().accept(&[message_draft("x")]);
    let early = compose(&reading().branch(), &accepted, None, 0, &mut counter()).expect("nothing has changed");
    assert!(lines(&early)[0].contains(r#""timestamp":"2026-01-01T00:00:04.000Z""#), "{:?}", lines(&early));
}

#[test]
fn ids_are_fresh_and_long_if_they_must_be() {
    let scene = Scene::new("00000001 user: hi\n00000002<missing user: ho");
    let accepted = scene.accept(&[message_draft("x"), message_draft("y")]);
    let composed = scene.compose(&accepted, None).expect("nothing has changed");
    let ids: Vec<_> = composed.entries().iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["00000003", "00000004"]);

    let mut stuck = || [7; 16];
    let composed = compose(&scene.branch(), &accepted, None, NOW_MS, &mut stuck).expect("nothing has changed");
    assert_eq!(composed.entries()[0].id, "07070707");
    assert_eq!(composed.entries()[1].id, "07070707-0707-4707-8707-070707070707");
}

#[test]
fn a_batch_that_waited_lands_on_the_leaf_of_that_moment() {
    let accepted = reading().accept(&[message_draft("note")]);
    let later = reading().and("u2 user: more\na3 assistant: more\nu3 user: enough\na4 assistant: well\nx1 custom: x");
    let composed = later.compose(&accepted, None).expect("it still holds");
    assert_eq!(composed.leaf_before(), Some("x1"));
    assert!(lines(&composed)[0].contains(r#""parentId":"x1""#));
}

#[test]
fn an_edit_whose_target_left_the_context_is_left_out_and_noted() {
    let accepted = reading().accept(&[omit("u1"), replace("a2", "\"ok\""), message_draft("note")]);
    let later = reading().and("k1 compaction a2: summary\nu2 user: more");
    let composed = later.compose(&accepted, None).expect("the rest still holds");
    assert_eq!(composed.entries().len(), 2);
    assert_eq!(composed.drafts().len(), 2);
    let (index, why) = &composed.left_out()[0];
    assert_eq!(accepted.drafts()[*index as usize], omit("u1"));
    assert!(why.contains("not in the context"), "{why}");

    let other_branch = reading().and("u9<s1 user: something else");
    let composed = other_branch.compose(&accepted, None).expect("the message still holds");
    assert_eq!((composed.left_out().len(), composed.entries().len()), (2, 1));
}

#[test]
fn a_batch_with_nothing_left_to_do_writes_no_receipt() {
    let accepted = reading().accept(&[omit("u1")]);
    let later = reading().and("k1 compaction a2: summary");
    let composed = later.compose(&accepted, Some(&Receipt::default())).expect("nothing to do is no fault");
    assert!(composed.entries().is_empty() && composed.bytes().is_empty());
}

#[test]
fn a_stale_draft_takes_its_whole_batch_with_it() {
    let accepted = reading().accept(&[message_draft("note"), compaction(Some("a2"))]);
    let compacted = reading().and("k1 compaction a2: by Pi");
    let stale = compacted.compose(&accepted, None);
    assert!(stale.is_ok(), "the note stands between the compactions");

    let accepted = reading().accept(&[Draft::custom("x", None).expect("well formed"), compaction(Some("a2"))]);
    let stale = compacted.compose(&accepted, None).expect_err("directly on Pi's compaction");
    assert_eq!((stale.index, stale.refusal.rule.as_str()), (1, "S12.5"));

    let forked = reading().and("u9<u1 user: something else");
    let stale = forked.compose(&accepted, None).expect_err("a2 is not on this branch");
    assert_eq!((stale.index, stale.refusal.rule.as_str()), (1, "S12.5"));
    assert!(stale.to_string().contains("stale"), "{stale}");
}

#[test]
fn an_edit_that_would_part_what_came_meanwhile_is_stale() {
    let calling = Scene::new("u1 user: go\na1 assistant calls c1: I shall");
    let accepted = calling.accept(&[omit("a1")]);
    let answered = calling.and("r1 result c1: text\na2 assistant: done");
    let stale = answered.compose(&accepted, None).expect_err("the result has come");
    assert_eq!((stale.index, stale.refusal.rule.as_str()), (0, "S12.6"));
    assert!(stale.refusal.message.contains("\"r1\""), "{stale}");
}

#[test]
fn a_batch_survives_the_store() {
    let accepted = reading().accept(&[message_draft("note"), omit("u1"), compaction(None)]);
    let restored = Accepted::from_store(&accepted.to_json()).expect("it was written by us");
    assert_eq!(restored, accepted);
    assert!(Accepted::from_store("[{}]").is_err());
}

#[test]
fn the_hosts_own_notes_need_no_acceptance() {
    let data = RawJson::parse(r#"{"from":"u1"}"#).expect("JSON");
    let composed = compose_note(&reading().branch(), "pi-graft.rejoin", data, NOW_MS, &mut counter());
    let composed = composed.expect("it hangs on the leaf");
    assert!(lines(&composed)[0].starts_with(r#"{"type":"custom","customType":"pi-graft.rejoin","data":{"from":"u1"}"#));
}

#[test]
fn an_id_that_cannot_be_written_again_gets_no_child() {
    let odd = Scene { text: reading().text.replace("\"id\":\"a2\"", "\"id\":\"\\ud800\"") };
    let accepted = reading().accept(&[message_draft("note")]);
    let stale = odd.compose(&accepted, None).expect_err("Pi would not find the parent");
    assert_eq!(stale.refusal.rule.as_str(), "S12.2");
}
