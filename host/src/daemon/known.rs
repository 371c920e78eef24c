//! The sessions that the store knows, in memory: by number, path and id.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::files::FileId;
use crate::journal::{SessionKey, SessionRecord};

/// What a path turned out to be, when it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// The session that was here before, or was moved here.
    Known(SessionKey, Box<SessionRecord>),
    /// A session that was never met.
    New,
    /// The same session id as a file that still exists elsewhere: followed from its present end (product.md 4.3).
    Copy,
}

/// The sessions that are known.
#[derive(Default)]
pub(super) struct Known {
    records: HashMap<SessionKey, SessionRecord>,
    by_path: HashMap<PathBuf, SessionKey>,
    by_id: HashMap<String, Vec<SessionKey>>,
    /// Sessions that were met and have no record yet, by id: of two files with one id, that one is the first.
    met: HashMap<String, PathBuf>,
}

impl Known {
    pub(super) fn new(records: Vec<(SessionKey, SessionRecord)>) -> Known {
        let mut known = Known::default();
        records.iter().for_each(|(key, record)| known.remember(*key, record));
        known
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (SessionKey, &SessionRecord)> {
        self.records.iter().map(|(key, record)| (*key, record))
    }

    pub(super) fn at(&self, path: &Path) -> Option<(SessionKey, &SessionRecord)> {
        let key = *self.by_path.get(path)?;
        Some((key, self.records.get(&key)?))
    }

    /// The records of the session with this id: more than one if there are copies.
    pub(super) fn with_id<'a>(&'a self, id: &str) -> impl Iterator<Item = (SessionKey, &'a SessionRecord)> {
        let keys = self.by_id.get(id).into_iter().flatten();
        keys.filter_map(|key| Some((*key, self.records.get(key)?)))
    }

    pub(super) fn get(&self, key: SessionKey) -> Option<&SessionRecord> {
        self.records.get(&key)
    }

    /// Whom [`Known::meet`] will ask about: the paths at which the session with `id` is known otherwise, and which file was there.
    pub(super) fn others(&self, path: &Path, id: &str, file: FileId) -> Vec<(PathBuf, Option<FileId>)> {
        if self.at(path).is_some_and(|(_, record)| record.session_id == id) {
            return Vec::new();
        }
        let records = self.with_id(id).map(|(_, record)| record).filter(|record| record.file != file);
        let first = self.met.get(id).filter(|first| first.as_path() != path);
        let known = records.map(|record| (record.path.clone(), Some(record.file)));
        known.chain(first.map(|first| (first.clone(), None))).collect()
    }

    /// What is known of the session with `id` at `path`. `is_at` says whether a path still holds the session with an id: one
    /// whose path is another session's by now was moved away, as one whose path is nobody's. Where it was moved to tells
    /// `is_elsewhere`, by the very file: what was copied from there may be met first.
    pub(super) fn meet(
        &mut self,
        path: &Path,
        id: &str,
        file: FileId,
        is_at: impl Fn(&Path, &str) -> bool,
        is_elsewhere: impl Fn(FileId, &str) -> bool,
    ) -> Met {
        if let Some((key, record)) = self.at(path).filter(|(_, record)| record.session_id == id) {
            return Met::Known(key, Box::new(record.clone()));
        }
        let moved =
            |record: &SessionRecord| record.file == file || !(is_at(&record.path, id) || is_elsewhere(record.file, id));
        if let Some((key, record)) = self.with_id(id).find(|(_, record)| moved(record)) {
            return Met::Known(key, Box::new(record.clone()));
        }
        let first = self.met.get(id).filter(|first| first.as_path() != path && is_at(first, id));
        if first.is_some() || self.with_id(id).next().is_some() {
            return Met::Copy;
        }
        self.met.insert(id.to_owned(), path.to_path_buf());
        Met::New
    }

    /// Takes over a session's newest record.
    pub(super) fn remember(&mut self, key: SessionKey, record: &SessionRecord) {
        self.met.remove(&record.session_id);
        let old = self.records.insert(key, record.clone());
        if let Some(old) = old {
            if old.path != record.path && self.by_path.get(&old.path) == Some(&key) {
                self.by_path.remove(&old.path);
            }
            if old.session_id != record.session_id {
                self.by_id.entry(old.session_id).or_default().retain(|known| *known != key);
            }
        }
        self.by_path.insert(record.path.clone(), key);
        let of_id = self.by_id.entry(record.session_id.clone()).or_default();
        if !of_id.contains(&key) {
            of_id.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &Path, id: &str, ino: u64) -> SessionRecord {
        SessionRecord {
            path: path.into(),
            session_id: id.into(),
            file: FileId { dev: 1, ino },
            ..serde_json::from_str(BLANK).expect("a record")
        }
    }

    const BLANK: &str = r#"{"path":"","session_id":"","file":{"dev":1,"ino":1},"offset":0,"entries":0,"last_line":"","last_line_at":0}"#;

    #[test]
    fn of_two_new_files_with_one_id_the_second_is_a_copy() {
        let dir = tempfile::tempdir().expect("a folder");
        let (a, b) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
        [&a, &b].iter().for_each(|path| std::fs::write(path, "").expect("a file"));
        let (file_a, file_b) = (FileId { dev: 1, ino: 1 }, FileId { dev: 1, ino: 2 });
        let mut known = Known::default();
        let is_at = |path: &Path, _: &str| path.exists();
        let nowhere = |_: FileId, _: &str| false;
        assert_eq!(known.meet(&a, "x", file_a, is_at, nowhere), Met::New);
        assert_eq!(known.meet(&b, "x", file_b, is_at, nowhere), Met::Copy);
        assert_eq!(known.meet(&a, "x", file_a, is_at, nowhere), Met::New, "it is still the first");
        known.remember(SessionKey(1), &record(&a, "x", 1));
        assert_eq!(known.meet(&b, "x", file_b, is_at, nowhere), Met::Copy);
        std::fs::remove_file(&a).expect("gone");
        assert_eq!(
            known.meet(&b, "x", file_b, is_at, |file, _| file == file_a),
            Met::Copy,
            "of what was moved elsewhere"
        );
        assert!(matches!(known.meet(&b, "x", file_b, is_at, nowhere), Met::Known(SessionKey(1), _)), "it was moved");
    }

    /// It was copied elsewhere (so it is another file), and another session was put at its path.
    #[test]
    fn a_session_whose_path_is_another_ones_by_now_was_moved() {
        let (path, elsewhere) = (Path::new("/a"), Path::new("/b"));
        let (of_x, of_y) = (FileId { dev: 1, ino: 3 }, FileId { dev: 1, ino: 2 });
        let mut known = Known::default();
        known.remember(SessionKey(1), &record(path, "x", 1));
        let nowhere = |_: FileId, _: &str| false;
        assert_eq!(known.meet(elsewhere, "x", of_x, |_, _| true, nowhere), Met::Copy, "it is there still");
        let is_at = |_: &Path, id: &str| id == "y";
        assert_eq!(known.meet(path, "y", of_y, is_at, nowhere), Met::New);
        assert!(matches!(known.meet(elsewhere, "x", of_x, is_at, nowhere), Met::Known(SessionKey(1), _)));
    }

    #[test]
    fn a_session_is_found_at_its_new_path_only() {
        let mut known = Known::default();
        known.remember(SessionKey(1), &record(Path::new("/a"), "x", 1));
        known.remember(SessionKey(1), &record(Path::new("/b"), "x", 1));
        assert!(known.at(Path::new("/a")).is_none());
        assert_eq!(known.with_id("x").count(), 1);
        known.remember(SessionKey(2), &record(Path::new("/a"), "y", 2));
        known.remember(SessionKey(1), &record(Path::new("/c"), "x", 1));
        assert!(known.at(Path::new("/a")).is_some(), "it is another one's by now");
    }
}
