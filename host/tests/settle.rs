//! The table of product.md section 5: where a branch stands, and whether to append now.

use std::sync::Arc;
use std::time::Duration;

use pi_graft::deliver::presence::Presence;
use pi_graft::deliver::settle::{State, Times, Verdict, regarding, state, verdict};
use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::tree::Source;

const USER: &str = r#""message":{"role":"user","content":"hi"}"#;
const STOP: &str = r#""message":{"role":"assistant","content":[],"stopReason":"stop"}"#;
const ABORTED: &str = r#""message":{"role":"assistant","content":[],"stopReason":"aborted"}"#;
const ERROR: &str = r#""message":{"role":"assistant","content":[],"stopReason":"error"}"#;
const LENGTH: &str = r#""message":{"role":"assistant","content":[],"stopReason":"length"}"#;
const CALLS: &str = r#""message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"a","arguments":{}},{"type":"toolCall","id":"c2","name":"b","arguments":{}}],"stopReason":"toolUse"}"#;
const RESULT_1: &str = r#""message":{"role":"toolResult","toolCallId":"c1","content":[]}"#;
const RESULT_2: &str = r#""message":{"role":"toolResult","toolCallId":"c2","content":[]}"#;

/// A branch of these entries: a type and its members each.
fn branch(entries: &[(&str, &str)]) -> Branch {
    let mut text = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n".to_owned();
    for (at, (kind, members)) in entries.iter().enumerate() {
        let parent = if at == 0 { "null".to_owned() } else { format!("\"e{}\"", at - 1) };
        text.push_str(&format!("{{\"type\":\"{kind}\",\"id\":\"e{at}\",\"parentId\":{parent},{members}}}\n"));
    }
    let source: Arc<dyn Source> = Arc::new(text.clone().into_bytes());
    Branch::of_leaf(&Arc::new(Tree::from_bytes(text.as_bytes())), source).expect("a branch")
}

fn messages(list: &[&str]) -> State {
    let entries: Vec<_> = list.iter().map(|members| ("message", *members)).collect();
    state(&branch(&entries)).expect("a state")
}

#[test]
fn a_turn_is_over_when_the_assistant_stopped_and_all_is_answered() {
    assert_eq!(messages(&[USER, STOP]), State::Finished);
    assert_eq!(messages(&[USER, ABORTED]), State::Finished);
    assert_eq!(messages(&[USER, CALLS, RESULT_1, RESULT_2, STOP]), State::Finished);
    assert_eq!(messages(&[USER]), State::Open);
    assert_eq!(messages(&[USER, ERROR]), State::Open, "the pause before a retry");
    assert_eq!(messages(&[USER, LENGTH]), State::Open);
    assert_eq!(messages(&[USER, CALLS, RESULT_1, RESULT_2]), State::Open, "the next request is under way");
    assert_eq!(messages(&[]), State::Open);
}

#[test]
fn a_call_without_a_result_is_a_tool_that_runs() {
    assert_eq!(messages(&[USER, CALLS]), State::Unanswered);
    assert_eq!(messages(&[USER, CALLS, RESULT_1]), State::Unanswered);
}

/// Names, labels and state do not start a turn; Pi's own edit does (it takes a failed attempt out before it retries).
#[test]
fn what_gives_no_context_does_not_count_but_for_an_edit_of_pis() {
    let with = |last| state(&branch(&[("message", USER), ("message", STOP), last])).expect("a state");
    assert_eq!(with(("session_info", r#""name":"n""#)), State::Finished);
    assert_eq!(with(("custom", r#""customType":"x""#)), State::Finished);
    assert_eq!(with(("context_edit", r#""targetId":"e1","replacement":null"#)), State::Open);
    assert_eq!(with(("compaction", r#""summary":"s","firstKeptEntryId":"e1","tokensBefore":1"#)), State::Open);
}

#[test]
fn grafts_do_not_count() {
    let receipt = r#""customType":"pi-graft.run","data":{"batch":"b","plugin":"p","version":"1","digest":"d","handler":"on-entry","reason":"entry","trigger":"e0","entries":1}"#;
    let compaction = ("compaction", r#""summary":"s","firstKeptEntryId":"e1","tokensBefore":1,"fromHook":true"#);
    let list = [("message", USER), ("message", STOP), ("custom", receipt), compaction];
    assert_eq!(state(&branch(&list)).expect("a state"), State::Finished);
}

/// A receipt counts drafts that may not be there: what Pi writes in their place is no graft.
#[test]
fn what_stands_behind_a_graft_that_is_cut_off_counts() {
    let receipt = r#""customType":"pi-graft.run","data":{"batch":"b","plugin":"p","version":"1","digest":"d","handler":"on-entry","reason":"entry","trigger":"e0","entries":3}"#;
    let state_with = |rest: &[(&str, &str)]| {
        let list = [&[("message", USER), ("message", STOP), ("custom", receipt)], rest].concat();
        state(&branch(&list)).expect("a state")
    };
    let draft = ("custom", r#""customType":"x""#);
    assert_eq!(state_with(&[draft]), State::Finished);
    assert_eq!(state_with(&[draft, ("message", USER)]), State::Open, "a run that goes on");
    assert_eq!(state_with(&[("message", USER)]), State::Open);
}

/// A compaction that a bridge handed to Pi holds its receipt itself, and is all of its batch.
#[test]
fn what_stands_behind_a_compaction_with_its_receipt_counts() {
    let compaction = r#""summary":"s","firstKeptEntryId":"e1","tokensBefore":1,"details":{"pi-graft":{"batch":"b","plugin":"p","version":"1","digest":"d","handler":"on-settled","reason":"manual","trigger":"e1","entries":1}}"#;
    let list = [("message", USER), ("message", STOP), ("compaction", compaction), ("message", USER)];
    assert_eq!(state(&branch(&list[..3])).expect("a state"), State::Finished);
    assert_eq!(state(&branch(&list)).expect("a state"), State::Open, "a run that goes on");
}

#[test]
fn over_pis_own_threshold_it_is_probably_compacting() {
    let reported = r#""message":{"role":"assistant","content":[],"stopReason":"stop","usage":{"totalTokens":900}}"#;
    let branch = branch(&[("message", USER), ("message", reported)]);
    let with = |threshold| regarding(state(&branch).expect("a state"), &branch, threshold).expect("tokens");
    assert_eq!(with(Some(899)), State::Full);
    assert_eq!(with(Some(900)), State::Finished);
    assert_eq!(with(None), State::Finished, "the window is not known, or its compaction is off");
    assert_eq!(regarding(State::Open, &branch, Some(1)).expect("tokens"), State::Open, "a turn that goes on stays one");
}

#[test]
fn the_table() {
    use Presence::{Absent, Here, Unknown};
    use State::{Finished, Full, Open, Unanswered};
    let times = Times { settle: Duration::from_secs(2), live_hold: Duration::from_secs(600) };
    let after = |presence, state, seconds| verdict(state, presence, Duration::from_secs(seconds), &times);
    for presence in [Absent, Unknown] {
        assert!(matches!(after(presence, Finished, 1), Verdict::Wait(rest, _) if rest == Duration::from_secs(1)));
        assert_eq!(after(presence, Finished, 2), Verdict::Settled);
    }
    assert_eq!(after(Absent, Open, 2), Verdict::Settled);
    assert_eq!(after(Absent, Full, 2), Verdict::Settled);
    assert!(matches!(after(Unknown, Full, 599), Verdict::Wait(..)));
    assert_eq!(after(Unknown, Full, 600), Verdict::Settled);
    assert!(matches!(after(Absent, Unanswered, 599), Verdict::Wait(..)));
    assert_eq!(after(Absent, Unanswered, 600), Verdict::Settled);
    assert!(matches!(after(Unknown, Open, 599), Verdict::Wait(..)));
    assert_eq!(after(Unknown, Open, 600), Verdict::Settled);
    assert!(matches!(after(Unknown, Unanswered, 1_000_000), Verdict::Held(_)));
    for state in [Finished, Full, Open, Unanswered] {
        assert!(matches!(after(Here, state, 1_000_000), Verdict::Held(_)));
    }
}
