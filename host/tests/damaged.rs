//! A store that was damaged, anywhere and in any way, is read as far as it can be or refused in words; it ends no process.

use std::panic::catch_unwind;
use std::path::Path;

use pi_graft::journal::{Batch, Journal, JournalError, Moved, SessionRecord};

const NOW_MS: i64 = 1_800_000_000_000;
const DAMAGES: u64 = 250;

fn record(n: u32) -> SessionRecord {
    let text = format!(
        r#"{{"path":"/sessions/{n}.jsonl","session_id":"s{n}","file":{{"dev":1,"ino":{n}}},"offset":0,"entries":0,"last_line":"","last_line_at":0}}"#
    );
    serde_json::from_str(&text).expect("a record")
}

fn batch(n: u32) -> Batch {
    let drafts = format!(r#"[{{\"type\":\"custom\",\"customType\":\"x\",\"data\":\"{}\"}}]"#, "d".repeat(200));
    let text = format!(
        r#"{{"id":"{n:016x}","plugin":"p","version":"1","digest":"d","handler":"on-entry","reason":"entry","trigger":"t","drafts":"{drafts}","made_ms":1}}"#
    );
    serde_json::from_str(&text).expect("a batch")
}

/// A store with a hundred sessions, something pending in each.
fn fill(dir: &Path) -> Result<(), JournalError> {
    let journal = Journal::open(dir, NOW_MS)?;
    for n in 0..100 {
        let ids = [u64::from(n), 7, 9];
        let moved = Moved { batches: vec![batch(n)], handled: (0, &ids), ..Moved::default() };
        journal.record(None, &record(n), moved)?;
    }
    journal.flush()
}

/// Everything that a daemon asks of its store, up to the first error.
fn use_up(dir: &Path) -> Result<(), JournalError> {
    let journal = Journal::open(dir, NOW_MS)?;
    for (key, record) in journal.sessions()? {
        journal.pending(key)?;
        journal.handled(key, 3)?;
        journal.record(Some(key), &record, Moved { batches: vec![batch(1000)], ..Moved::default() })?;
    }
    journal.sessions_with_pending()?;
    journal.intents()?;
    journal.all_failed()?;
    journal.runs(1000, |_| true)?;
    journal.flush()
}

/// The same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

/// Some bytes are others, a page is empty, or the end is missing.
fn damaged(whole: &[u8], seed: u64) -> Vec<u8> {
    let (mut bytes, mut numbers) = (whole.to_vec(), Numbers(seed));
    match seed % 8 {
        0 => bytes.truncate(numbers.below(whole.len())),
        1 => {
            let page = numbers.below(whole.len() / 4096) * 4096;
            bytes[page..page + 4096].fill(0);
        }
        kind => (0..1 << (2 * kind - 4)).for_each(|_| {
            let at = numbers.below(bytes.len());
            bytes[at] = numbers.below(256) as u8;
        }),
    }
    bytes
}

/// Here a directory has the store's name, as where rights are missing or a disk is read-only: to move it away would lose what is
/// pending for no reason.
#[test]
fn a_store_that_cannot_be_opened_is_not_called_damaged() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("state.redb")).expect("a directory");
    let error = Journal::open(dir.path(), NOW_MS).expect_err("it cannot be opened");
    assert!(matches!(error, JournalError::Closed { .. }), "{error}");
    assert!(!error.to_string().contains("ove it away"), "{error}");
}

#[test]
fn whatever_is_damaged_ends_in_words() {
    let dir = tempfile::tempdir().expect("a folder");
    fill(dir.path()).expect("a store");
    let path = dir.path().join("state.redb");
    let whole = std::fs::read(&path).expect("the store");
    use_up(dir.path()).expect("it can be used");
    let mut refused = 0;
    for seed in 0..DAMAGES {
        std::fs::write(&path, damaged(&whole, seed)).expect("written");
        let used = catch_unwind(|| use_up(dir.path())).unwrap_or_else(|_| panic!("seed {seed} ends in a panic"));
        if let Err(e) = used {
            refused += 1;
            let text = e.to_string();
            assert!(text.contains("store") && text.len() > 40, "seed {seed}: {text}");
        }
    }
    assert!(refused > DAMAGES / 4, "{refused}: these damages do not reach what is read");
}
