//! What a change of the context does to the provider's prompt cache: it holds up to the first message that is another one;
//! everything behind is sent anew, and paid for.

use pi_session::branch::Branch;
use pi_session::context::{Context, ContextEntry};
use serde::Serialize;

use super::account::pays_after;

/// One change of what had been sent before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Break {
    /// The entry behind which the context is another one.
    pub at: Option<String>,
    /// The first message that is another one: its number in the context, from 0, and its entry.
    pub message: usize,
    /// The entry of that message; none at the end of the context.
    pub entry: Option<String>,
    /// Tokens of the context before, estimated (S9.5).
    pub tokens_before: u64,
    /// The same behind it.
    pub tokens_after: u64,
    /// Tokens from the first changed message on, estimated.
    pub sent_anew: u64,
    /// Requests after which what is saved has paid for what is sent anew; none if nothing is saved.
    pub pays_after: Option<u64>,
}

/// The break between two contexts of one branch; none if the later one only has more behind.
#[must_use]
pub fn compare(branch: &Branch, before: &Context, after: &Context) -> Option<Break> {
    let (before, after) = (shown(before), shown(after));
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    if same == before.len() {
        return None;
    }
    let sum = |entries: &[&ContextEntry]| entries.iter().map(|entry| branch.shown_tokens(entry)).sum();
    let entry = after.get(same).and_then(|entry| branch.item(entry.place).id).map(str::to_owned);
    let (tokens_before, tokens_after, sent_anew) = (sum(&before), sum(&after), sum(&after[same..]));
    Some(Break {
        at: branch.leaf_id().map(str::to_owned),
        message: same,
        entry,
        tokens_before,
        tokens_after,
        sent_anew,
        pays_after: pays_after(sent_anew, tokens_before.saturating_sub(tokens_after)),
    })
}

fn shown(context: &Context) -> Vec<&ContextEntry> {
    context.entries.iter().filter(|entry| entry.gives()).collect()
}
