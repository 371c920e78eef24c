//! The run log: a row for each run and for what became of each batch, and the texts that rows name by hash.
//!
//! Texts (settings, a plugin's config, drafts, models' answers) are kept once, however many rows name them, and go when no
//! row is left that can. The whole has a size: the oldest rows go first.

use std::ops::Bound;

use redb::{Durability, ReadableTable, ReadableTableMetadata, Table, TableDefinition, WriteTransaction};

use super::record::{RunRecord, Text};
use super::store::{Journal, JournalError, META, Result, decode, encode};

const RUNS: TableDefinition<'_, (i64, u64), &str> = TableDefinition::new("runs");
/// By hash: when a row named it last, about, Unix milliseconds; and the text.
const TEXTS: TableDefinition<'_, &str, (i64, &str)> = TableDefinition::new("texts");

/// Bytes of rows and texts together, in `META`.
const BYTES: &str = "log-bytes";
/// How exactly it is kept when a text was named last, milliseconds: a write for each would be more than it is worth.
const NAMED_WITHIN_MS: i64 = 60 * 1000;

/// Where a row stands in the log: when it was written, Unix milliseconds, and its number.
pub type RowKey = (i64, u64);

/// How much of the log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Rows from then on, Unix milliseconds.
    pub from_ms: i64,
    /// Rows, at most.
    pub rows: u64,
    /// Bytes of rows and texts, at most.
    pub bytes: u64,
}

impl Journal {
    /// The newest lines of the run log that are wanted, newest first.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn runs(&self, most: usize, wants: impl Fn(&RunRecord) -> bool) -> Result<Vec<RunRecord>> {
        self.db.read(|read| {
            let table = read.open_table(RUNS).map_err(JournalError::failed)?;
            let rows = table.iter().map_err(JournalError::failed)?.rev();
            let rows = rows.map(|row| decode::<RunRecord>(row.map_err(JournalError::failed)?.1.value()));
            rows.filter(|row| row.as_ref().map_or(true, &wants)).take(most).collect()
        })
    }

    /// The rows behind `after`, or all, oldest first, until `each` wants no more.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn rows(&self, after: Option<RowKey>, mut each: impl FnMut(RowKey, RunRecord) -> bool) -> Result<()> {
        self.db.read(|read| {
            let table = read.open_table(RUNS).map_err(JournalError::failed)?;
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            for row in table.range((from, Bound::Unbounded)).map_err(JournalError::failed)? {
                let (key, row) = row.map_err(JournalError::failed)?;
                if !each(key.value(), decode(row.value())?) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The text that rows of the log name by this hash; none if it is not kept any more.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn text(&self, hash: &str) -> Result<Option<String>> {
        self.db.read(|read| {
            let table = read.open_table(TEXTS).map_err(JournalError::failed)?;
            let found = table.get(hash).map_err(JournalError::failed)?;
            Ok(found.map(|row| row.value().1.to_owned()))
        })
    }

    /// Bytes of the log's rows and texts.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn log_bytes(&self) -> Result<u64> {
        self.db.read(|read| {
            let meta = read.open_table(META).map_err(JournalError::failed)?;
            let bytes = meta.get(BYTES).map_err(JournalError::failed)?;
            Ok(bytes.and_then(|bytes| bytes.value().parse().ok()).unwrap_or(0))
        })
    }

    /// Drops what is not to be kept of the log: rows that are too old, the oldest of the rest while they are too many or
    /// too large, and the texts that no row can name any more.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn forget_runs(&self, keep: Keep) -> Result<()> {
        self.write(Durability::None, |txn| {
            let mut bytes = bytes(txn)?;
            let mut rows = txn.open_table(RUNS).map_err(JournalError::failed)?;
            let mut forgotten = 0;
            while let Some((at_ms, len)) = first(&rows)? {
                let too_many = rows.len().map_err(JournalError::failed)? > keep.rows;
                if at_ms >= keep.from_ms && !too_many && bytes <= keep.bytes {
                    break;
                }
                rows.pop_first().map_err(JournalError::failed)?;
                bytes = bytes.saturating_sub(len);
                forgotten += 1;
                // What only this row named goes with it, so that no more rows go than must.
                if forgotten % 256 == 0 {
                    bytes = bytes.saturating_sub(forget_texts(txn, first(&rows)?)?);
                }
            }
            if forgotten > 0 {
                bytes = bytes.saturating_sub(forget_texts(txn, first(&rows)?)?);
                put_bytes(txn, bytes)?;
            }
            Ok(())
        })
    }
}

/// When the oldest row was written, and its length.
fn first(rows: &Table<'_, (i64, u64), &str>) -> Result<Option<(i64, u64)>> {
    let first = rows.first().map_err(JournalError::failed)?;
    Ok(first.map(|(key, row)| (key.value().0, row.value().len() as u64)))
}

/// Drops the texts that were named last before the oldest row. Gives how many bytes they had.
fn forget_texts(txn: &WriteTransaction, oldest: Option<(i64, u64)>) -> Result<u64> {
    let mut texts = txn.open_table(TEXTS).map_err(JournalError::failed)?;
    let (oldest, mut bytes) = (oldest.map_or(i64::MAX, |(at_ms, _)| at_ms), 0);
    let stays = |_: &str, (named_ms, text): (i64, &str)| {
        let stays = named_ms.saturating_add(NAMED_WITHIN_MS) >= oldest;
        bytes += if stays { 0 } else { text.len() as u64 };
        stays
    };
    texts.retain(stays).map_err(JournalError::failed)?;
    Ok(bytes)
}

/// Makes the tables.
pub(super) fn prepare(txn: &WriteTransaction) -> Result<()> {
    txn.open_table(RUNS).map_err(JournalError::failed)?;
    txn.open_table(TEXTS).map_err(JournalError::failed)?;
    Ok(())
}

/// Adds rows, and those of their texts that are not there yet.
pub(super) fn put(txn: &WriteTransaction, runs: &[RunRecord]) -> Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(RUNS).map_err(JournalError::failed)?;
    let mut texts = txn.open_table(TEXTS).map_err(JournalError::failed)?;
    let (mut number, mut bytes) =
        (table.last().map_err(JournalError::failed)?.map_or(0, |(key, _)| key.value().1), bytes(txn)?);
    for run in runs {
        number += 1;
        // A clock that was set back: the last line of the table is not the last that was written.
        while table.get((run.at_ms, number)).map_err(JournalError::failed)?.is_some() {
            number += 1;
        }
        let row = encode(run)?;
        bytes += row.len() as u64;
        table.insert((run.at_ms, number), row.as_str()).map_err(JournalError::failed)?;
        for text in &run.texts {
            bytes += put_text(&mut texts, run.at_ms, text)?;
        }
    }
    put_bytes(txn, bytes)
}

/// Keeps a text, or that it was named again. Gives how many bytes that added.
fn put_text(texts: &mut Table<'_, &str, (i64, &str)>, at_ms: i64, text: &Text) -> Result<u64> {
    let known = texts.get(text.hash()).map_err(JournalError::failed)?.map(|row| row.value().0);
    if known.is_some_and(|named_ms| at_ms < named_ms.saturating_add(NAMED_WITHIN_MS)) {
        return Ok(0);
    }
    texts.insert(text.hash(), (at_ms, text.text())).map_err(JournalError::failed)?;
    Ok(if known.is_some() { 0 } else { text.text().len() as u64 })
}

fn bytes(txn: &WriteTransaction) -> Result<u64> {
    let meta = txn.open_table(META).map_err(JournalError::failed)?;
    let bytes = meta.get(BYTES).map_err(JournalError::failed)?;
    Ok(bytes.and_then(|bytes| bytes.value().parse().ok()).unwrap_or(0))
}

fn put_bytes(txn: &WriteTransaction, bytes: u64) -> Result<()> {
    let mut meta = txn.open_table(META).map_err(JournalError::failed)?;
    meta.insert(BYTES, bytes.to_string().as_str()).map_err(JournalError::failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{About, Batch, Handler, Moved, SessionRecord};

    const BLANK: &str = r#"{"path":"/a","session_id":"a","file":{"dev":1,"ino":1},"offset":0,"entries":0,"last_line":"","last_line_at":0}"#;

    fn row(at_ms: i64, texts: &[&str]) -> RunRecord {
        let batch = Batch {
            id: "b".into(),
            plugin: "p".into(),
            version: "1".into(),
            digest: "d".into(),
            handler: Handler::OnEntry,
            reason: "entry".into(),
            trigger: "t".into(),
            drafts: "[]".into(),
            made_ms: 0,
            continues: None,
        };
        let texts = texts.iter().map(|text| Text::new(*text)).collect();
        RunRecord { about: About::Run, texts, ..RunRecord::of_batch(at_ms, "a", &batch, "nothing", String::new()) }
    }

    fn journal(rows: &[RunRecord]) -> Journal {
        let journal = Journal::in_memory(0).expect("a store");
        let record: SessionRecord = serde_json::from_str(BLANK).expect("a record");
        journal.record(None, &record, Moved { runs: rows, ..Moved::default() }).expect("kept");
        journal
    }

    fn times(journal: &Journal) -> Vec<i64> {
        journal.runs(100, |_| true).expect("rows").iter().map(|row| row.at_ms).collect()
    }

    fn has(journal: &Journal, text: &str) -> bool {
        journal.text(Text::new(text).hash()).expect("an answer").as_deref() == Some(text)
    }

    const ALL: Keep = Keep { from_ms: i64::MIN, rows: u64::MAX, bytes: u64::MAX };
    const HOUR: i64 = 60 * 60 * 1000;

    #[test]
    fn a_text_is_kept_once_and_as_long_as_rows_can_name_it() {
        let journal = journal(&[row(1, &["settings", "old"]), row(HOUR, &["settings"]), row(2 * HOUR, &["new"])]);
        let before = journal.log_bytes().expect("a figure");
        journal.forget_runs(ALL).expect("done");
        assert_eq!((times(&journal), journal.log_bytes().expect("a figure")), (vec![2 * HOUR, HOUR, 1], before));
        journal.forget_runs(Keep { from_ms: 2, ..ALL }).expect("done");
        assert_eq!(times(&journal), [2 * HOUR, HOUR]);
        assert!(!has(&journal, "old") && has(&journal, "settings") && has(&journal, "new"));
        journal.forget_runs(Keep { from_ms: 3 * HOUR, ..ALL }).expect("done");
        assert_eq!(journal.log_bytes().expect("a figure"), 0);
        assert!(!has(&journal, "new"));
    }

    #[test]
    fn the_oldest_rows_go_when_there_are_too_many_or_they_are_too_large() {
        let journal = journal(&[row(1, &[]), row(2, &[]), row(3, &[])]);
        journal.forget_runs(Keep { rows: 2, ..ALL }).expect("done");
        assert_eq!(times(&journal), [3, 2]);
        let bytes = journal.log_bytes().expect("a figure");
        journal.forget_runs(Keep { bytes: bytes - 1, ..ALL }).expect("done");
        assert_eq!(times(&journal), [3]);
    }

    #[test]
    fn a_row_of_an_older_version_can_be_read() {
        let old = r#"{"at_ms":1,"session":"a","plugin":"p","digest":"d","handler":"on-entry","trigger":"t","outcome":"nothing","fuel":1,"micros":1}"#;
        let row: RunRecord = serde_json::from_str(old).expect("a row");
        assert_eq!((row.given, row.drafts, row.about), (None, None, About::Run));
    }
}
