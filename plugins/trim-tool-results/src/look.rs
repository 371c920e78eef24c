//! What of the context may go.
use pi_graft_plugin::{Info, Run};

use crate::config::Config;

/// Tokens of a stub, about.
pub const STUB: u64 = 60;
/// Most entries that are looked at, newest first: what lies behind is left to a compaction.
const MOST: usize = 20_000;

/// A result that may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Old {
    /// Its place on the branch.
    pub place: u32,
    /// Its id.
    pub id: String,
    /// Its tokens, about.
    pub tokens: u64,
    /// Its bytes, about.
    pub bytes: u64,
    /// Tokens of the context behind it.
    pub behind: u64,
}

/// The context, as far as this plugin cares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// What may go, newest first.
    pub results: Vec<Old>,
    /// The provider's cache is worth nothing for the next request: it was left alone for too long, or a compaction changes
    /// the context's beginning.
    pub is_cold: bool,
}

/// Goes over the context, from the leaf back.
#[must_use]
pub fn look(config: &Config, run: &Run) -> Look {
    let (mut look, mut behind, mut turns) = (Look { is_cold: is_cold(config, run), ..Look::default() }, 0_u64, 0_u64);
    for info in run.projection().take(MOST) {
        if is_old(config, behind, turns) && may_go(config, &info) {
            look.results.extend(old(&info, behind));
        }
        behind += u64::from(info.tokens);
        turns += u64::from(info.role.as_deref() == Some("user"));
    }
    look
}

/// Whether what stands there is old enough. What the current turn uses never is.
fn is_old(config: &Config, behind: u64, turns: u64) -> bool {
    turns >= 1 && (turns >= config.older_than_turns || behind >= config.older_than_tokens)
}

/// A large result, which has not been trimmed yet.
fn may_go(config: &Config, info: &Info) -> bool {
    let ours = info.edited_by.as_deref() == Some("trim-tool-results");
    let shown = info.shown == "as-is" || info.shown == "replaced" && !ours;
    // A stub in place of less would make the context larger.
    let is_large = u64::from(info.tokens) >= config.larger_than.max(2 * STUB);
    info.role.as_deref() == Some("toolResult") && shown && !info.pending && is_large
}

fn old(info: &Info, behind: u64) -> Option<Old> {
    let (tokens, bytes) = (u64::from(info.tokens), info.bytes);
    Some(Old { place: info.place, id: info.id.clone()?, tokens, bytes, behind })
}

/// Whether the next request finds no cache. A tool that ran longer than the cache lives leaves none, and a compaction that has
/// had no answer yet, or is pending, changes what comes first.
fn is_cold(config: &Config, run: &Run) -> bool {
    if !config.cache {
        return true;
    }
    let mut newest = None;
    for info in run.branch().take(256) {
        if info.kind == "compaction" {
            return true;
        }
        if info.role.as_deref() == Some("assistant") && newest.is_some() {
            return outlived(config, &info, newest);
        }
        if info.role.as_deref() == Some("assistant") {
            return false;
        }
        newest = newest.or(info.time_ms.filter(|_| info.role.as_deref() == Some("toolResult")));
    }
    false
}

fn outlived(config: &Config, answer: &Info, newest: Option<i64>) -> bool {
    let gap = newest.zip(answer.time_ms).map_or(0, |(now, then)| now.saturating_sub(then));
    u64::try_from(gap).unwrap_or(0) >= config.cache_ms
}
