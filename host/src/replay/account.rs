//! The account of the provider's prompt cache: what the requests of a session send, how much of it the cache had, and so what an
//! edit costs by breaking it, what it saves at each later request, and when that has paid for it.
//!
//! A request is each recorded answer. It finds in its cache what the request before it has sent, up to the first message that is
//! another one, unless that was too long ago; the rest is written to the cache. Costs are in fresh input tokens, with the
//! usual prices: so two tellings of a session can be compared, whatever its model.

use pi_session::branch::Branch;
use pi_session::context::{Context, ContextEntry, Shown};
use pi_session::entry::{EntryKind, Role};
use serde::Serialize;

use super::ReplayError;

/// What a token costs that is read from the cache, as a share of a fresh one.
pub const READ: f64 = 0.1;
/// What one costs that is written to it.
pub const WRITE: f64 = 1.25;
/// How long the cache is kept behind an answer, milliseconds.
const KEPT: i64 = 300_000;

/// What all requests of a branch have sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// Requests.
    pub requests: u64,
    /// Those that found no cache, since the one before was too long ago.
    pub cold: u64,
    /// Tokens that were read from the cache, estimated (S9.5).
    pub read: u64,
    /// Tokens that were written to it.
    pub written: u64,
    /// What that cost, in fresh tokens.
    pub cost: u64,
    /// What it had cost after each request.
    #[serde(skip)]
    so_far: Vec<f64>,
}

/// Two tellings of a session compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Balance {
    /// Fresh tokens that were saved in all; less than 0 if it cost more.
    pub saved: i64,
    /// The request at which the one with the plugins first had cost more.
    pub dearer_at: Option<u64>,
    /// How many requests later it no longer had.
    pub paid_back_after: Option<u64>,
}

impl Account {
    /// The account of a branch; `at` gives the branch that ends in one of its entries.
    pub(super) fn of(
        branch: &Branch,
        at: impl Fn(Option<&str>) -> Result<Branch, ReplayError>,
    ) -> Result<Account, ReplayError> {
        let mut account = Account::default();
        let mut before = Sent::default();
        for item in branch.items().filter(|item| is_answer(branch, item.place)) {
            let sent = before.then(branch, item.place, &at)?;
            account.note(sent.read, sent.total - sent.read, sent.is_cold);
            before = sent;
        }
        Ok(account)
    }

    fn note(&mut self, read: u64, written: u64, is_cold: bool) {
        let cost = self.so_far.last().copied().unwrap_or(0.0) + read as f64 * READ + written as f64 * WRITE;
        self.so_far.push(cost);
        self.requests += 1;
        self.cold += u64::from(is_cold);
        self.read += read;
        self.written += written;
        self.cost = cost.round() as u64;
    }

    /// What this one saves or costs more than `without`.
    #[must_use]
    pub fn against(&self, without: &Account) -> Balance {
        let mut pairs = self.so_far.iter().zip(&without.so_far).map(|(with, without)| with - without);
        // Half a token is no difference.
        let dearer_at = pairs.by_ref().position(|more| more > 0.5);
        let paid = dearer_at.and_then(|_| pairs.position(|more| more <= 0.5));
        let number = |at: usize| at as u64 + 1;
        let saved = without.cost as i64 - self.cost as i64;
        Balance { saved, dearer_at: dearer_at.map(number), paid_back_after: paid.map(number) }
    }
}

/// What a request has sent.
#[derive(Default)]
struct Sent {
    /// The place of its answer; 0 before the first.
    place: u32,
    total: u64,
    read: u64,
    is_cold: bool,
}

impl Sent {
    /// The next request, whose answer stands at `place`.
    fn then(
        &self,
        branch: &Branch,
        place: u32,
        at: &impl Fn(Option<&str>) -> Result<Branch, ReplayError>,
    ) -> Result<Sent, ReplayError> {
        let between = self.place..place;
        let changed = between.clone().any(|place| changes(branch.facts(place).kind));
        let (total, same) = if changed {
            let (old, new) = (context(branch, self.place, at)?, context(branch, place, at)?);
            let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
            (tokens(branch, &new), tokens(branch, &new[..same]))
        } else {
            let new = between.map(|place| branch.shown_tokens(&ContextEntry { place, shown: Shown::AsIs }));
            (self.total + new.sum::<u64>(), self.total)
        };
        let is_cold = self.place > 0 && was_long_ago(branch, self.place, place);
        Ok(Sent { place, total, read: if is_cold { 0 } else { same }, is_cold })
    }
}

fn is_answer(branch: &Branch, place: u32) -> bool {
    let facts = branch.facts(place);
    facts.kind == EntryKind::Message && facts.role == Role::Assistant
}

fn changes(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Compaction | EntryKind::ContextEdit)
}

/// The context that was sent for the answer at `place`.
fn context(
    branch: &Branch,
    place: u32,
    at: &impl Fn(Option<&str>) -> Result<Branch, ReplayError>,
) -> Result<Vec<ContextEntry>, ReplayError> {
    let Some(parent) = place.checked_sub(1) else { return Ok(Vec::new()) };
    let Context { mut entries } = at(branch.item(parent).id)?.context();
    entries.retain(ContextEntry::gives);
    Ok(entries)
}

fn tokens(branch: &Branch, entries: &[ContextEntry]) -> u64 {
    entries.iter().map(|entry| branch.shown_tokens(entry)).sum()
}

/// Whether the cache of the answer before is gone when the next request is sent.
fn was_long_ago(branch: &Branch, before: u32, answer: u32) -> bool {
    let asked = branch.facts(answer.saturating_sub(1)).time_ms;
    branch.facts(before).time_ms.zip(asked).is_some_and(|(then, now)| now.saturating_sub(then) > KEPT)
}

/// What a break must save before it has paid for itself: requests, with a warm cache.
#[must_use]
pub fn pays_after(sent_anew: u64, saved: u64) -> Option<u64> {
    (saved > 0).then(|| (sent_anew as f64 * (WRITE - READ) / (saved as f64 * READ)).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(requests: &[(u64, u64)]) -> Account {
        let mut account = Account::default();
        requests.iter().for_each(|(read, written)| account.note(*read, *written, false));
        account
    }

    #[test]
    fn a_break_is_paid_back_by_what_later_requests_save() {
        let without = account(&[(0, 1000), (1000, 100), (1100, 100), (1200, 100), (1300, 100)]);
        // The second request sends 400 anew, and 600 less from then on.
        let with = account(&[(0, 1000), (100, 400), (500, 100), (600, 100), (700, 100)]);
        let balance = with.against(&without);
        assert_eq!((balance.dearer_at, balance.paid_back_after), (Some(2), None), "{balance:?}");
        assert!(balance.saved < 0, "{balance:?}");
        let longer = |account: &Account, read: u64| {
            let mut longer = account.clone();
            (0..10).for_each(|_| longer.note(read, 0, false));
            longer
        };
        let balance = longer(&with, 800).against(&longer(&without, 1400));
        assert_eq!((balance.dearer_at, balance.paid_back_after), (Some(2), Some(5)), "{balance:?}");
        assert_eq!(without.against(&without), Balance::default());
    }

    #[test]
    fn a_break_says_after_how_many_requests_it_pays() {
        assert_eq!(pays_after(400, 600), Some(8), "460 fresh tokens at 60 a request");
        assert_eq!(pays_after(400, 0), None);
    }
}
