//! Which entries of a session were handled, by their ids: needed only once its file is not any more what it was.
//!
//! Eight bytes an entry, in rows of 512, written in the transaction that moves the cursor.

use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};
use sha2::{Digest, Sha256};

use super::record::SessionKey;
use super::store::JournalError;

pub(super) const IDS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("ids");

/// Fingerprints in a row.
const IN_A_ROW: u64 = 512;
/// Bytes of one.
const WIDTH: usize = 8;

/// What is kept of an entry's id.
#[must_use]
pub fn fingerprint(id: &str) -> u64 {
    let digest = Sha256::digest(id.as_bytes());
    digest.iter().take(WIDTH).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Puts `ids` behind the first `at` of the session; what stood there goes.
pub(super) fn put(txn: &WriteTransaction, session: SessionKey, at: u64, ids: &[u64]) -> Result<(), JournalError> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(IDS).map_err(JournalError::failed)?;
    let (mut row, kept) = (at / IN_A_ROW, usize::try_from(at % IN_A_ROW).unwrap_or(0) * WIDTH);
    let old = table.get((session.0, row)).map_err(JournalError::failed)?.map(|bytes| bytes.value().to_vec());
    let mut bytes = old.unwrap_or_default();
    bytes.resize(kept, 0);
    for id in ids {
        bytes.extend(id.to_be_bytes());
        if bytes.len() as u64 == IN_A_ROW * WIDTH as u64 {
            table.insert((session.0, row), bytes.as_slice()).map_err(JournalError::failed)?;
            (row, bytes) = (row + 1, Vec::new());
        }
    }
    table.insert((session.0, row), bytes.as_slice()).map_err(JournalError::failed)?;
    Ok(())
}

/// The first `count` of the session.
pub(super) fn get(txn: &ReadTransaction, session: SessionKey, count: u64) -> Result<Vec<u64>, JournalError> {
    let table = match txn.open_table(IDS) {
        Ok(table) => table,
        // A store that was made before there was such a table.
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(e) => return Err(JournalError::failed(e)),
    };
    let rows = table.range((session.0, 0)..=(session.0, count / IN_A_ROW)).map_err(JournalError::failed)?;
    let mut ids = Vec::new();
    for row in rows {
        let (_, bytes) = row.map_err(JournalError::failed)?;
        let (whole, _) = bytes.value().as_chunks::<WIDTH>();
        ids.extend(whole.iter().map(|id| u64::from_be_bytes(*id)));
    }
    ids.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(ids)
}
