//! How many tokens of each model were used on which day.

use redb::{Durability, ReadableTable, TableDefinition};

use super::store::{Journal, JournalError};

pub(super) const USED: TableDefinition<'_, (u64, &str), u64> = TableDefinition::new("used");

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

type Result<T> = std::result::Result<T, JournalError>;

/// The day of a moment, in UTC.
fn day(at_ms: i64) -> u64 {
    at_ms.div_euclid(DAY_MS).max(0).unsigned_abs()
}

impl Journal {
    /// Uses so many tokens of a model on the day of this moment, if that leaves it within `most`; else says how many are used.
    /// On the disk when this returns, before anything is asked.
    ///
    /// # Errors
    /// [`JournalError::Failed`]: nothing must be asked.
    pub fn spend(&self, at_ms: i64, model: &str, tokens: u64, most: u64) -> Result<std::result::Result<(), u64>> {
        self.write(Durability::Immediate, |txn| {
            let mut table = txn.open_table(USED).map_err(JournalError::failed)?;
            let used = table.get((day(at_ms), model)).map_err(JournalError::failed)?.map_or(0, |used| used.value());
            let after = used.saturating_add(tokens);
            if after > most {
                return Ok(Err(used));
            }
            table.insert((day(at_ms), model), after).map_err(JournalError::failed)?;
            Ok(Ok(()))
        })
    }

    /// Puts what a call did cost in the place of what was set aside for it.
    ///
    /// # Errors
    /// [`JournalError::Failed`]: what was set aside stays used.
    pub fn spent(&self, at_ms: i64, model: &str, set_aside: u64, tokens: u64) -> Result<()> {
        self.write(Durability::Immediate, |txn| {
            let mut table = txn.open_table(USED).map_err(JournalError::failed)?;
            let used = table.get((day(at_ms), model)).map_err(JournalError::failed)?.map_or(0, |used| used.value());
            let after = used.saturating_sub(set_aside).saturating_add(tokens);
            table.insert((day(at_ms), model), after).map_err(JournalError::failed)?;
            Ok(())
        })
    }

    /// Tokens used of each model on the day of this moment.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn used(&self, at_ms: i64) -> Result<Vec<(String, u64)>> {
        self.db.read(|read| {
            let table = read.open_table(USED).map_err(JournalError::failed)?;
            let (today, after) = (day(at_ms), day(at_ms) + 1);
            let rows = table.range((today, "")..(after, "")).map_err(JournalError::failed)?;
            rows.map(|row| {
                let (key, used) = row.map_err(JournalError::failed)?;
                Ok((key.value().1.to_owned(), used.value()))
            })
            .collect()
        })
    }

    /// Drops the accounts of the days before this moment.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn forget_used(&self, until_ms: i64) -> Result<()> {
        self.write(Durability::None, |txn| {
            let mut used = txn.open_table(USED).map_err(JournalError::failed)?;
            used.retain_in(..(day(until_ms), ""), |_, _| false).map_err(JournalError::failed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_budget_and_what_was_not_used_of_it_is_given_back() {
        let journal = Journal::in_memory(0).expect("a store");
        let spend = |at, tokens| journal.spend(at, "m", tokens, 100).expect("an answer");
        assert_eq!(spend(0, 60), Ok(()));
        assert_eq!(spend(DAY_MS - 1, 50), Err(60), "the same day");
        journal.spent(0, "m", 60, 40).expect("kept");
        assert_eq!(spend(DAY_MS - 1, 50), Ok(()));
        assert_eq!(spend(DAY_MS, 100), Ok(()), "another day");
        assert_eq!(journal.used(0).expect("the account"), [("m".to_owned(), 90)]);
        journal.forget_used(DAY_MS).expect("forgotten");
        assert!(journal.used(0).expect("the account").is_empty());
    }
}
