//! Drafts on a session: whatever is accepted can be composed, brings no new problem, and shows what was previewed.

use std::collections::BTreeSet;
use std::sync::Arc;

use pi_session::branch::Origin;
use pi_session::compose::{Composed, compose};
use pi_session::draft::Draft;
use pi_session::json::{Json, quoted};
use pi_session::receipt::{Receipt, missing, receipts};
use pi_session::tree::{EntryIx, Leaf};
use pi_session::validate::{Accepted, DraftLimits, Judge, accept_list};
use pi_session::{Branch, Tree};

use crate::generate::value::Rng;
use crate::tree::Seen;
use crate::{Input, branch, counter};

/// All that must hold of what the choices propose for this session.
pub fn check(input: &[u8]) {
    let Input { text, mut rng } = Input::of(input);
    let mut text = Arc::unwrap_or_clone(text);
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    let text = Arc::new(text);
    let tree = Arc::new(Tree::from_bytes(&text));
    let at_end = match tree.leaf() {
        Leaf::At(ix) => Some(ix),
        Leaf::None | Leaf::NoId => None,
    };
    let current = |ix: &EntryIx| tree.by_id(tree.id(*ix)) == Some(*ix);
    let leaf = if rng.below(4) == 0 { tree.all().rev().filter(current).nth(rng.below(9) as usize) } else { at_end };
    let Some(branch) = branch(&tree, &text, leaf) else { return };
    let drafts = drafts(&branch, &mut rng);
    let (accepted, preview) = match rng.below(3) {
        0 => (accept_list(&branch, &drafts, DraftLimits::default()).ok(), None),
        _ => judged(&branch, drafts, &mut rng),
    };
    if let Some(accepted) = accepted {
        written(&branch, &text, &accepted, preview.as_ref(), &mut rng);
    }
}

/// Proposed one by one, the edits now and then as a list.
fn judged(branch: &Branch, drafts: Vec<Draft>, rng: &mut Rng) -> (Option<Accepted>, Option<Branch>) {
    let mut judge = Judge::new(branch.clone(), DraftLimits::default(), Origin::default());
    let is_edit = |draft: &Draft| matches!(draft, Draft::ContextEdit { .. });
    let (edits, others): (Vec<_>, Vec<_>) = drafts.into_iter().partition(is_edit);
    let (together, apart) = if rng.below(2) == 0 { (edits, vec![]) } else { (vec![], edits) };
    let count = together.len();
    assert_eq!(judge.edits(together).len(), count);
    for draft in others.into_iter().chain(apart) {
        let before = judge.branch().len();
        let answer = judge.propose(draft);
        assert!(answer.is_ok() || judge.branch().len() == before, "what is refused changes nothing");
    }
    let preview = judge.branch().clone();
    let accepted = judge.finish();
    assert_eq!(Accepted::from_store(&accepted.to_json()).as_ref(), Ok(&accepted));
    (Some(accepted), Some(preview))
}

/// What was accepted, written to the file.
fn written(branch: &Branch, text: &[u8], accepted: &Accepted, preview: Option<&Branch>, rng: &mut Rng) {
    let receipt = (rng.below(2) == 0).then(a_receipt);
    let composed = match compose(branch, accepted, receipt.as_ref(), 1_800_000_000_000, &mut counter()) {
        Ok(composed) => composed,
        // Nothing may hang on this leaf; then nothing but the empty batch was accepted.
        Err(stale) => return assert!(accepted.is_empty(), "{stale}"),
    };
    assert_eq!(composed.drafts(), accepted.drafts());
    assert!(composed.left_out().is_empty());
    for entry in composed.entries() {
        assert_eq!(entry.line.iter().position(|byte| matches!(byte, b'\n' | b'\r')), Some(entry.line.len() - 1));
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&entry.line).is_ok(), "S12.7");
    }
    let Some(last) = composed.entries().last() else { return };
    let text = Arc::new([text, &composed.bytes()].concat());
    let tree = Arc::new(Tree::from_bytes(&text));
    assert_eq!(tree.problems(), branch.tree().problems(), "a new problem");
    let after = Branch::of_leaf(&tree, text).expect("a path that had no circle has none");
    assert_eq!(after.leaf_id(), Some(last.id.as_str()));
    shows(&after, branch, preview);
    counted(&after, &composed);
    if receipt.is_some() {
        receipted(&after, branch.len(), &composed);
    }
}

/// The context is as it was previewed, times apart, and no call is parted from its result that was not before.
fn shows(after: &Branch, before: &Branch, preview: Option<&Branch>) {
    let (before, now) = (Seen::of(before).messages, Seen::of(after).messages);
    assert!(loose(&now).is_subset(&loose(&before)), "{now:?}");
    if let Some(preview) = preview {
        assert_eq!(timeless(&now), timeless(&Seen::of(preview).messages));
    }
}

/// The members of each message but the time at its top.
fn timeless(messages: &[String]) -> Vec<Vec<(String, String)>> {
    let members = |message: &String| {
        let message = Json::parse(message.as_bytes()).expect("a message is JSON");
        let members = message.members().map(|(key, value)| (key.text().into_owned(), value.to_text().into_owned()));
        members.filter(|(name, _)| name != "timestamp").collect()
    };
    messages.iter().map(members).collect()
}

/// Ids of calls without a result, and of results without their call.
fn loose(messages: &[String]) -> BTreeSet<(bool, String)> {
    let mut loose = BTreeSet::new();
    for message in messages.iter().map(|message| Json::parse(message.as_bytes()).expect("a message is JSON")) {
        let text = |of: Json<'_>, name| of.get(name).and_then(Json::as_str).map(|text| text.into_owned());
        match text(message, "role").as_deref() {
            Some("assistant") => {
                let blocks = message.get("content").into_iter().flat_map(Json::items);
                let calls = blocks.filter(|block| text(*block, "type").as_deref() == Some("toolCall"));
                loose.extend(calls.filter_map(|call| Some((true, text(call, "id")?))));
            }
            Some("toolResult") => {
                let Some(id) = text(message, "toolCallId") else { continue };
                if !loose.remove(&(true, id.clone())) {
                    loose.insert((false, id));
                }
            }
            _ => {}
        }
    }
    loose
}

/// A compaction says the tokens of what was there before it (S12.5).
fn counted(after: &Branch, composed: &Composed) {
    for entry in composed.entries() {
        let line = Json::parse(&entry.line).expect("a line is JSON");
        let Some(said) = line.get("tokensBefore").and_then(Json::as_f64) else { continue };
        let place = after.place_of(&entry.id).expect("it was written");
        let before = place.checked_sub(1).and_then(|before| after.tree().by_id(after.item(before).id?));
        let text = Arc::new(whole(after));
        let before = Branch::at(after.tree(), text, before).expect("a path that had no circle has none");
        assert_eq!(said, Seen::of(&before).tokens.clamp(0.0, f64::MAX));
    }
}

/// The text that a branch of a whole file in memory reads from.
fn whole(branch: &Branch) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in branch.tree().entries() {
        text.resize(text.len().max((entry.offset + u64::from(entry.len)) as usize), b' ');
    }
    for place in 0..branch.len() {
        let (facts, line) = (branch.facts(place), branch.text(place).expect("memory can be read"));
        text[facts.offset as usize..][..line.len()].copy_from_slice(&line);
    }
    text
}

/// The receipt is found again, and all that it speaks of.
fn receipted(after: &Branch, place: u32, composed: &Composed) {
    let found = receipts(after, place.checked_sub(1)).expect("memory can be read");
    assert!(found.len() == 1 && found[0].place == place && found[0].complete, "{found:?}");
    assert_eq!(missing(after, place, composed.drafts()).as_deref(), Ok([].as_slice()));
}

fn a_receipt() -> Receipt {
    let handler = "on-entry".to_owned();
    Receipt { batch: "b".into(), plugin: "p".into(), handler, trigger: "t\"\u{2028}".into(), ..Receipt::default() }
}

/// What the choices propose.
fn drafts(branch: &Branch, rng: &mut Rng) -> Vec<Draft> {
    (0..rng.below(6)).filter_map(|_| draft(branch, rng)).collect()
}

fn draft(branch: &Branch, rng: &mut Rng) -> Option<Draft> {
    let draft = match rng.below(8) {
        0 => Draft::custom("fuzz", Some(&rng.value(3))),
        1 => Draft::custom_message("fuzz", &content(rng, false), rng.below(2) == 0, Some(&rng.value(2))),
        2 | 3 => {
            let kept = (rng.below(4) > 0).then(|| id(branch, rng));
            Draft::compaction("what was before", kept.as_deref(), None, None)
        }
        4 | 5 => Draft::context_edit(&id(branch, rng), None),
        _ => {
            let replacement = format!("{{\"content\":{}}}", content(rng, true));
            Draft::context_edit(&id(branch, rng), Some(&replacement))
        }
    };
    let draft = draft.ok()?;
    assert_eq!(Draft::from_json(&draft.to_json()).as_ref(), Ok(&draft));
    Some(draft)
}

/// Mostly an id of the branch's end, else any of the session's.
fn id(branch: &Branch, rng: &mut Rng) -> String {
    let back = rng.below(24);
    let on_branch = branch.len().checked_sub(1 + back).and_then(|place| branch.item(place).id);
    let any = || branch.tree().all().nth(rng.below(300) as usize).map(|ix| branch.tree().id(ix));
    on_branch.or_else(any).unwrap_or("nobody").to_owned()
}

fn content(rng: &mut Rng, with_calls: bool) -> String {
    match rng.below(4) {
        0 => rng.text(),
        1 => format!("[{{\"type\":\"text\",\"text\":{}}}]", rng.text()),
        2 if with_calls => {
            let call = rng.below(12);
            format!(
                "[{{\"type\":\"toolCall\",\"id\":{},\"name\":\"read\",\"arguments\":{{}}}}]",
                quoted(&format!("call_{call}"))
            )
        }
        2 => "[{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}]".to_owned(),
        _ => "[]".to_owned(),
    }
}
