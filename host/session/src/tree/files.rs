//! The files that calls name, kept with the tree, so that a plan need not read what it summarises (S10.5).

use super::{EntryIx, Tree};
use crate::entry::Entry;
use crate::paths::{self, FileOf};
use crate::walk::Found;

/// Files of one entry that are kept at most, and bytes of their paths: a hostile line must not stand in memory whole.
const MOST: usize = 64;
const MOST_BYTES: usize = 4096;

/// A file that an entry's calls name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptFile {
    /// The number of its path among the words.
    path: u32,
    /// It was written or edited, not read.
    pub modified: bool,
}

/// Which entries name which files, in the order of the entries.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptFiles(Vec<(EntryIx, Option<KeptFile>)>);

impl Tree {
    /// Keeps the files of a new entry; of one that names too many only that it does.
    pub(super) fn keep_files(&mut self, ix: EntryIx, entry: &Entry, found: &Found<'_>) {
        let files = paths::files(entry, found);
        if files.is_empty() {
            return;
        }
        let bytes: usize = files.iter().map(|file| file.path.raw().len()).sum();
        if files.len() > MOST || bytes > MOST_BYTES {
            return self.files.0.push((ix, None));
        }
        for FileOf { path, modified } in files.iter() {
            let path = path.as_str().map(|path| self.words.intern(&path));
            self.files.0.push((ix, path.map(|path| KeptFile { path, modified: *modified })));
        }
    }

    /// The files that an entry's calls name; none where its line has to be read for them.
    pub(crate) fn files(&self, ix: EntryIx) -> Option<impl Iterator<Item = KeptFile>> {
        let KeptFiles(all) = &self.files;
        let from = &all[all.partition_point(|(entry, _)| *entry < ix)..];
        let own = &from[..from.partition_point(|(entry, _)| *entry == ix)];
        let all_kept = own.iter().all(|(_, file)| file.is_some());
        all_kept.then(|| own.iter().filter_map(|(_, file)| *file))
    }

    /// The path of a file that is kept.
    pub(crate) fn path_of(&self, file: KeptFile) -> &str {
        self.words.text(file.path)
    }
}
