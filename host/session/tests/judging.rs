//! What may stand on a branch: every scene is a session, a proposal, and the answer (S12.5, S12.6, product 4.2, 4.4).

mod common;

use std::collections::{BTreeSet, HashMap};

use common::generate;
use common::scene::{Scene, compaction, context_of, draft, message_draft, omit, refused, replace};
use pi_session::branch::{Branch, Origin};
use pi_session::draft::Draft;
use pi_session::json::Json;
use pi_session::validate::{DraftLimits, Judge, accept_list};

/// A session in which the assistant reads two files and answers.
fn reading() -> Scene {
    Scene::new(
        "u1 user: read a and b
         a1 assistant calls c1 c2: I shall
         r1 result c1: text of a
         r2 result c2: text of b
         a2 assistant: done",
    )
}

/// The same, summarised from the answer on, and gone on with.
fn summarised() -> Scene {
    reading().and(
        "k1 compaction a2: they read a and b
         u2 user: thanks",
    )
}

#[test]
fn an_edit_changes_what_the_next_run_sees() {
    let mut judge = reading().judge();
    judge.propose(replace("u1", "\"read two files\"")).expect("a user message may be edited");
    let context = context_of(judge.branch());
    assert!(context.starts_with("user: read two files\n"), "{context}");
}

#[test]
fn only_messages_with_content_of_their_own_can_be_edited() {
    let scene = Scene::new(
        "s1 system: the prompt
         b1 bash: ls
         x1 custom: state
         m1 message: note
         t1 thinking high
         u1 user: hello
         k1 compaction s1: summary
         u2 user: again",
    );
    let mut judge = scene.judge();
    for (target, word) in [
        ("b1", "bashExecution message"),
        ("x1", "custom entry"),
        ("t1", "thinking_level_change entry"),
        ("k1", "compaction entry"),
        ("s1", "system message"),
    ] {
        refused(judge.propose(omit(target)), "S12.6", word);
    }
    for target in ["m1", "u1", "u2"] {
        judge.propose(omit(target)).expect("a message may be edited");
    }
}

#[test]
fn an_edit_of_what_is_not_in_the_context_is_refused() {
    let mut judge = summarised().judge();
    refused(judge.propose(omit("u1")), "S12.6", "not in the context");
    refused(judge.propose(omit("nobody")), "S12.6", "no entry \"nobody\"");
    refused(judge.propose(omit("")), "target is pending", "not in the file yet");
    judge.propose(omit("a2")).expect("kept by the compaction");

    let forked = reading().and("u9<u1 user: never mind");
    let mut judge = forked.judge();
    refused(judge.propose(omit("a2")), "S12.6", "another branch");
    judge.propose(omit("u1")).expect("on both branches");
}

#[test]
fn a_replacement_holds_what_its_target_may_hold() {
    let mut judge = reading().judge();
    let image = r#"[{"type":"image","data":"QUJD","mimeType":"image/png"}]"#;
    refused(judge.propose(replace("a2", image)), "S12.3", "text, thinking, toolCall");
    refused(judge.propose(replace("u1", r#"[{"type":"thinking","thinking":"hm"}]"#)), "S12.3", "text, image");
    judge.propose(replace("r1", image)).expect("a tool result may show an image");
    judge.propose(replace("a2", r#"[{"type":"thinking","thinking":"hm"}]"#)).expect("an assistant may think");
}

#[test]
fn text_for_an_assistant_or_a_tool_result_becomes_a_block() {
    let accepted = reading().accept(&[replace("a2", "\"ok\""), replace("r1", "\"cut\""), replace("u1", "\"read\"")]);
    let stored: Vec<_> = accepted.drafts().iter().map(Draft::to_json).collect();
    assert_eq!(
        stored,
        [
            r#"{"type":"context_edit","targetId":"r1","replacement":{"content":[{"type":"text","text":"cut"}]}}"#,
            r#"{"type":"context_edit","targetId":"a2","replacement":{"content":[{"type":"text","text":"ok"}]}}"#,
            r#"{"type":"context_edit","targetId":"u1","replacement":{"content":"read"}}"#,
        ]
    );
}

#[test]
fn an_edit_must_not_part_a_call_from_its_result() {
    let mut judge = reading().judge();
    refused(judge.propose(omit("r1")), "S12.6", "\"c1\"");
    refused(judge.propose(omit("a1")), "S12.6", "\"r1\"");
    refused(judge.propose(replace("a1", "\"I read them\"")), "S12.6", "keep the call");
    let one_call = r#"[{"type":"toolCall","id":"c1","name":"read","arguments":{}}]"#;
    refused(judge.propose(replace("a1", one_call)), "S12.6", "\"c2\"");
    let made_up = r#"[{"type":"toolCall","id":"c9","name":"read","arguments":{}}]"#;
    refused(judge.propose(replace("a2", made_up)), "S12.6", "no result");
    judge.propose(replace("r1", "\"\"")).expect("the result stays, if empty");
    assert_eq!(judge.finish().drafts().len(), 1, "what was refused has left nothing behind");
}

#[test]
fn a_list_of_edits_is_judged_as_one() {
    let mut judge = reading().judge();
    let answers = judge.edits(vec![omit("a1"), omit("r1"), omit("r2")]);
    assert_eq!(answers, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(context_of(judge.branch()), "user: read a and b\nassistant: done");

    let fewer_calls = r#"[{"type":"toolCall","id":"c2","name":"read","arguments":{}}]"#;
    let answers = reading().judge().edits(vec![omit("r1"), replace("a1", fewer_calls)]);
    assert_eq!(answers, [Ok(()), Ok(())], "one call and its result go, the other pair stays");
}

#[test]
fn of_a_list_only_what_cannot_stand_is_refused() {
    let mut judge = reading().judge();
    let answers = judge.edits(vec![omit("a1"), omit("r1"), replace("u1", "\"hi\""), omit("nobody")]);
    let rules: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().err().map(|refusal| refusal.rule.as_str())).collect();
    assert_eq!(rules, [Some("S12.6"), Some("S12.6"), None, Some("S12.6")], "r2 would have stayed without its call");
    assert_eq!(answers[3].as_ref().expect_err("nobody").index, Some(3));
    assert_eq!(judge.finish().drafts(), [replace("u1", "\"hi\"")]);
}

#[test]
fn loose_ends_that_were_there_before_are_nobodys_fault() {
    let killed = Scene::new(
        "u1 user: go
         a1 assistant calls c1: I shall
         u2 user: are you there?
         a2 assistant calls c2: yes
         r2 result c2: text",
    );
    let mut judge = killed.judge();
    judge.propose(omit("u2")).expect("it has no part in the open call");
    judge.propose(omit("a1")).expect("its call never had a result");
    refused(judge.propose(omit("r2")), "S12.6", "\"c2\"");
}

#[test]
fn what_was_left_out_comes_back_only_together() {
    let left_out = reading().and("e1 omit r1\ne2 omit r2\ne3 omit a1");
    let mut judge = left_out.judge();
    refused(judge.propose(replace("r1", "\"text\"")), "S12.6", "\"c1\"");
    let both = r#"[{"type":"toolCall","id":"c1","name":"read","arguments":{}}]"#;
    refused(judge.propose(replace("a1", both)), "S12.6", "\"c1\"");
    let answers = judge.edits(vec![replace("a1", both), replace("r1", "\"text\"")]);
    assert_eq!(answers, [Ok(()), Ok(())]);
}

/// A check of its own, over the messages alone: whatever may stand leaves no new call or result alone.
#[test]
fn nothing_that_may_stand_parts_a_call_from_its_result() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 1..=150 {
        let Ok(text) = String::from_utf8(generate::session(seed)) else { continue };
        let Some(branch) = (Scene { text }).try_branch() else { continue };
        let ids: Vec<String> = branch.items().filter_map(|item| item.id.map(str::to_owned)).collect();
        let alone = loose_ends(&branch);
        for (at, id) in ids.iter().enumerate() {
            let next = ids.get(at + 1).unwrap_or(id);
            for drafts in
                [vec![omit(id)], vec![omit(id), omit(next)], vec![replace(id, "\"x\"")], vec![compaction(Some(id))]]
            {
                let mut judge = Judge::new(branch.clone(), DraftLimits::default(), Origin::default());
                match judge.edits(drafts).iter().filter(|answer| answer.is_ok()).count() {
                    0 => refused += 1,
                    _ => {
                        accepted += 1;
                        let new: Vec<_> = loose_ends(judge.branch()).difference(&alone).cloned().collect();
                        assert!(new.is_empty(), "seed {seed}, {id}: {new:?}");
                    }
                }
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused: too few to say anything");
}

/// Calls and results that stand alone in the messages, by place and id.
fn loose_ends(branch: &Branch) -> BTreeSet<(u32, String)> {
    let text = |of: Json<'_>, key| of.get(key).and_then(Json::as_str).map(|text| text.into_owned());
    let (mut open, mut alone, mut seen) = (BTreeSet::new(), BTreeSet::new(), HashMap::new());
    for entry in branch.context().entries {
        for message in branch.messages(&entry).expect("memory reads") {
            let message = Json::parse(message.as_bytes()).expect("a message is JSON");
            match text(message, "role").as_deref() {
                Some("assistant") => {
                    let blocks = message.get("content").into_iter().flat_map(Json::items);
                    for call in blocks.filter(|block| text(*block, "type").as_deref() == Some("toolCall")) {
                        let Some(id) = text(call, "id") else { continue };
                        open.insert((entry.place, id.clone()));
                        seen.insert(id, entry.place);
                    }
                }
                Some("toolResult") => {
                    let Some(id) = text(message, "toolCallId") else { continue };
                    match seen.get(&id) {
                        Some(place) => drop(open.remove(&(*place, id))),
                        None => drop(alone.insert((entry.place, id))),
                    }
                }
                _ => {}
            }
        }
    }
    open.into_iter().chain(alone).collect()
}

#[test]
fn ids_of_calls_that_come_again_belong_to_the_latest_call() {
    let twice = Scene::new(
        "a1 assistant calls c1: first
         r1 result c1: one
         a2 assistant calls c1: second
         r2 result c1: two",
    );
    let answers = twice.judge().edits(vec![omit("a2"), omit("r2")]);
    assert_eq!(answers, [Ok(()), Ok(())]);
    let answers = twice.judge().edits(vec![omit("a1"), omit("r2")]);
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
}

#[test]
fn two_calls_of_one_id_in_one_message_have_one_result() {
    let twins = Scene::new(
        "a1 assistant calls c1 c1: both
         r1 result c1: one",
    );
    refused(twins.judge().propose(omit("r1")), "S12.6", "\"c1\"");
    refused(twins.judge().propose(omit("a1")), "S12.6", "\"c1\"");
    refused(twins.judge().propose(compaction(Some("r1"))), "S12.5", "\"c1\"");
    assert_eq!(twins.judge().edits(vec![omit("a1"), omit("r1")]), [Ok(()), Ok(())]);
}

#[test]
fn a_cut_must_not_part_a_call_from_its_result() {
    let mut judge = reading().judge();
    refused(judge.propose(compaction(Some("r1"))), "S12.5", "\"c1\"");
    refused(judge.propose(compaction(Some("r2"))), "S12.5", "begin the kept part");
    judge.propose(compaction(Some("a1"))).expect("the call stays with its results");
    assert_eq!(reading().judge().propose(compaction(Some("a2"))), Ok(()));
    assert_eq!(reading().judge().propose(compaction(None)), Ok(()));
}

#[test]
fn a_cut_is_judged_on_what_the_edits_have_left() {
    let mut judge = reading().judge();
    assert!(judge.edits(vec![omit("a1"), omit("r1"), omit("r2")]).iter().all(Result::is_ok));
    judge.propose(compaction(Some("r2"))).expect("its call and all results are left out");
    assert_eq!(context_of(judge.branch()), "compactionSummary: what was before\nassistant: done");
}

#[test]
fn the_first_kept_entry_is_on_the_branch() {
    let forked = reading().and("u9<u1 user: never mind");
    for (id, rule) in [("a2", "S12.5"), ("nobody", "S12.5"), ("", "target is pending")] {
        refused(forked.judge().propose(compaction(Some(id))), rule, "");
    }
    assert_eq!(forked.judge().propose(compaction(Some("u1"))), Ok(()));
}

#[test]
fn no_compaction_directly_on_another() {
    let just = reading().and("k1 compaction a2: they read");
    refused(just.judge().propose(compaction(None)), "S12.5", "last compaction");
    let silent = just.and("x1 custom: state\nt1 thinking high");
    refused(silent.judge().propose(compaction(None)), "S12.5", "last compaction");
    let left_out = just.and("u2 user: oops\ne1 omit u2");
    refused(left_out.judge().propose(compaction(None)), "S12.5", "last compaction");
    assert_eq!(summarised().judge().propose(compaction(None)), Ok(()));
    let mut judge = summarised().judge();
    judge.propose(compaction(None)).expect("the first");
    refused(judge.propose(compaction(Some("u2"))), "S12.5", "last compaction");
}

#[test]
fn what_was_proposed_before_still_stands_with_what_comes_later() {
    let mut judge = summarised().judge();
    judge.propose(compaction(None)).expect("u2 stands between the compactions");
    refused(judge.propose(omit("u2")), "S12.5", "what you proposed before");
    judge.propose(message_draft("remember")).expect("it comes before the compaction");
}

#[test]
fn of_two_pending_drafts_on_one_target_the_earlier_runs_stands() {
    let mut branch = reading().branch();
    let other = std::sync::Arc::new(Origin { plugin: "other".into(), batch: "b".into() });
    branch.push(&replace("u1", "\"hi\"").to_json(), &other).expect("an edit is JSON");
    let mut judge = Judge::new(branch.clone(), DraftLimits::default(), Origin::default());
    let answers = judge.edits(vec![omit("u1"), replace("a2", "\"ok\"")]);
    refused(answers[0].clone(), "pending", "earlier run");
    assert_eq!(answers[1], Ok(()), "for that target alone");
    judge.propose(replace("a2", "\"okay\"")).expect("its own edit of before is no other run's");

    branch.push(&compaction(Some("a2")).to_json(), &other).expect("a compaction is JSON");
    let mut judge = Judge::new(branch, DraftLimits::default(), Origin::default());
    refused(judge.propose(compaction(None)), "pending", "earlier run");
}

#[test]
fn only_a_compaction_in_the_file_hides_what_is_behind_it() {
    let mut branch = reading().branch();
    branch.push(&compaction(Some("a2")).to_json(), &Default::default()).expect("a compaction is JSON");
    let mut judge = Judge::new(branch, DraftLimits::default(), Origin::default());
    judge.propose(omit("u1")).expect("the pending compaction may never land");

    let mut judge = reading().judge();
    judge.propose(compaction(Some("a2"))).expect("a good cut");
    judge.propose(omit("u1")).expect("edits stand before the compaction");
}

#[test]
fn what_is_in_the_file_may_be_superseded() {
    let edited = reading().and("e1 edit u1: other words");
    let mut judge = edited.judge();
    judge.propose(replace("u1", "\"third words\"")).expect("the last edit wins");
    assert!(context_of(judge.branch()).starts_with("user: third words"));
}

#[test]
fn a_batch_has_one_order() {
    let mut judge = reading().judge();
    judge.propose(compaction(Some("a2"))).expect("a good cut");
    judge.propose(message_draft("note")).expect("a message");
    assert!(judge.edits(vec![omit("a1"), omit("r1"), omit("r2")]).iter().all(Result::is_ok));
    judge.propose(Draft::custom("x", None).expect("well formed")).expect("state");
    let order: Vec<_> = judge.finish().drafts().iter().map(|draft| draft.to_json()).collect();
    let has = |at: usize, word: &str| assert!(order[at].contains(word), "{at}: {order:#?}");
    has(0, "\"custom\"");
    has(1, "r1");
    has(2, "r2");
    has(3, "a1");
    has(4, "custom_message");
    has(5, "compaction");
}

#[test]
fn a_run_has_its_limits() {
    let limits = DraftLimits { entries: 2, entry_bytes: 1000, batch_bytes: 3000 };
    let mut judge = Judge::new(reading().branch(), limits, Origin::default());
    refused(
        judge.propose(message_draft(&"x".repeat(1000))),
        "S12.7",
        "of 1,000 bytes of an entry (limits.entry-bytes)",
    );
    judge.propose(message_draft(&"x".repeat(800))).expect("it fits");
    judge.propose(message_draft("two")).expect("it fits");
    refused(judge.propose(message_draft("three")), "limit", "used 3 of 2 drafts (limits.proposals)");

    let limits = DraftLimits { batch_bytes: 3000, ..DraftLimits::default() };
    let mut judge = Judge::new(reading().branch(), limits, Origin::default());
    judge.propose(message_draft(&"x".repeat(1500))).expect("it fits, with room for a receipt");
    refused(judge.propose(message_draft(&"x".repeat(500))), "limit", "of 3,000 bytes of a batch");
}

#[test]
fn a_compaction_counts_with_its_system_message() {
    let long = Scene::new(&format!("s1 system: {}\nu1 user: hi", "prompt ".repeat(1000)));
    let limits = DraftLimits { entry_bytes: 1000, batch_bytes: 5000, ..DraftLimits::default() };
    let mut judge = Judge::new(long.branch(), limits, Origin::default());
    refused(judge.propose(compaction(None)), "limit", "of 5,000 bytes of a batch");
    let limits = DraftLimits { entry_bytes: 1000, batch_bytes: 10_000, ..DraftLimits::default() };
    let mut judge = Judge::new(long.branch(), limits, Origin::default());
    judge.propose(compaction(None)).expect("the plugin's own part is short");
}

#[test]
fn nothing_is_written_to_files_that_pi_would_lose() {
    let with = |header: &str| Scene { text: reading().text.replacen("\"version\":3", header, 1) };
    refused(with("\"version\":2").judge().propose(message_draft("x")), "S11.2", "session migrate");
    refused(with("\"version\":4").judge().propose(message_draft("x")), "S3", "never written");
    let no_leaf = Scene { text: reading().text + "{\"type\":\"custom\"}\n" };
    refused(no_leaf.judge().propose(message_draft("x")), "S2.2", "no leaf");
    refused(Scene { text: String::new() }.judge().propose(message_draft("x")), "S2.3", "no session header");
    let unnamed = Scene { text: reading().text.replace("\"id\":\"a2\"", "\"id\":\"\\ud800\"") };
    refused(unnamed.judge().propose(message_draft("x")), "S12.2", "not valid Unicode");
}

#[test]
fn a_list_to_append_is_judged_in_its_own_order_and_pairs_at_its_end() {
    let limits = DraftLimits::default();
    let branch = reading().branch();
    let apart = [omit("r2"), draft(r#"{"type":"custom","customType":"x"}"#), omit("a1"), omit("r1")];
    let accepted = accept_list(&branch, &apart, limits).expect("whole at the end");
    assert_eq!(accepted.drafts(), apart);

    let refusals = accept_list(&branch, &[omit("a1"), omit("r1"), message_draft("x")], limits);
    let refusals = refusals.expect_err("r2 would stay alone");
    assert_eq!((refusals.len(), refusals[0].index, refusals[0].rule.as_str()), (1, Some(0), "S12.6"));

    let hidden = [compaction(Some("a2")), omit("u1")];
    let refusals = accept_list(&branch, &hidden, limits).expect_err("u1 is hidden by the compaction before");
    assert_eq!((refusals.len(), refusals[0].index, refusals[0].rule.as_str()), (1, Some(1), "S12.6"));

    let refusals = accept_list(&branch, &[compaction(Some("r1"))], limits).expect_err("the cut parts a call");
    assert_eq!((refusals[0].index, refusals[0].rule.as_str()), (Some(0), "S12.5"));
    let cut_and_edit = [omit("a1"), compaction(Some("a2"))];
    assert!(accept_list(&branch, &cut_and_edit, limits).is_ok(), "all that was parted is summarised away");
}
