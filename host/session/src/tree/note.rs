//! What a tree notes of problems while it reads: of a line by itself, and of what stands before it.

use super::Tree;
use crate::entry::{Entry, EntryKind, IdIx, Role};
use crate::finding::Finding;
use crate::header::{Header, Version};
use crate::json::{Json, JsonError, Kind};
use crate::problem::{Problem, Problems};
use crate::session::is_session_id;
use crate::walk::Found;

/// The longest text that Pi's JavaScript engine can hold, in UTF-16 units.
const LONGEST_TEXT: u32 = 0x1FFF_FFE8;

/// How far Pi looks for a header when it looks for a session, bytes; its line end counts.
const HEADER_WITHIN: u64 = 1 << 20;

impl Tree {
    /// All problems so far, those that are only counted included.
    pub(crate) fn noted(&self) -> &Problems {
        &self.problems
    }

    pub(super) fn note(&mut self, finding: Finding, offset: u64, id: Option<IdIx>) {
        self.note_as(finding, offset, id, finding.what().to_owned());
    }

    fn note_as(&mut self, finding: Finding, offset: u64, id: Option<IdIx>, message: String) {
        let entry_id = id.map(|id| self.id_text(id).to_owned());
        self.problems.push(Problem { finding, line: self.lines, offset, at: None, entry_id, message });
    }

    /// A line that is no JSON: where it breaks, or where on it another entry begins.
    pub(super) fn note_bad(&mut self, offset: u64, error: JsonError, glued: Option<u32>) {
        let (finding, at, message) = match glued {
            Some(at) => {
                let at = offset + u64::from(at);
                let message = format!("another entry begins on this line, at byte {at} of the file");
                (Finding::GluedLines, at, message)
            }
            None => {
                let at = offset + error.at as u64;
                (Finding::BadLine, at, format!("not JSON: {} at byte {at} of the file", error.what))
            }
        };
        self.problems.push(Problem { finding, line: self.lines, offset, at: Some(at), entry_id: None, message });
    }

    /// The header, and where its line ends.
    pub(super) fn note_header(&mut self, offset: u64, end: u64, header: &Header) {
        if end >= HEADER_WITHIN {
            self.note(Finding::FarHeader, offset, None);
        }
        match header.version {
            Version::V1 | Version::V2 => self.note(Finding::OldVersion, offset, None),
            Version::V3 => {}
            Version::Newer => self.note(Finding::NewerVersion, offset, None),
        }
        if header.timestamp.is_none() || header.cwd.is_none() {
            self.note(Finding::HeaderField, offset, None);
        }
        if !is_session_id(&header.id) {
            self.note(Finding::OddSessionId, offset, None);
        }
    }

    pub(super) fn note_known_id(&mut self, entry: &Entry) {
        if self.current[entry.id.0 as usize].is_some() {
            self.note(Finding::DuplicateId, entry.offset, Some(entry.id));
        }
    }

    /// A parent that is not there yet may come; then the check of the whole file says so (S8.1).
    pub(super) fn note_parent(&mut self, entry: &Entry, is_there: bool) {
        let Some(parent) = entry.parent else { return };
        if parent == entry.id {
            self.note_as(Finding::Cycle, entry.offset, Some(entry.id), "it is its own parent".into());
        } else if !is_there {
            let message = format!("its parent {:?} is not in the file before it", self.id_text(parent));
            self.note_as(Finding::UnknownParent, entry.offset, Some(entry.id), message);
        }
    }

    /// What was found on an entry's line.
    pub(super) fn note_marks(&mut self, entry: &Entry, marks: &[Finding], found: &Found<'_>) {
        for mark in marks {
            self.note_as(*mark, entry.offset, Some(entry.id), of_kind(*mark, entry, found));
        }
        self.note_length(entry);
        let parent = found.parent.filter(|parent| !parent.is_null());
        let is_cut_off = self.version() != Version::V1 && entry.parent.is_none() && !self.entries.is_empty();
        if is_cut_off && (found.parent.is_none() || parent.is_some()) {
            self.note(Finding::NoParent, entry.offset, Some(entry.id));
        }
        if entry.kind == EntryKind::ContextEdit && replaces_with_text(found) {
            self.note_edit_text(entry);
        }
    }

    fn note_length(&mut self, entry: &Entry) {
        if entry.len > LONGEST_TEXT {
            self.note(Finding::LongLine, entry.offset, Some(entry.id));
        }
    }

    /// Text for a message that holds blocks is to be stored as a block (S7.2).
    fn note_edit_text(&mut self, edit: &Entry) {
        let target = edit.names.and_then(|target| self.current(target)).map(|target| self.entry(target).role);
        if matches!(target, Some(Role::Assistant | Role::ToolResult)) {
            self.note(Finding::EditText, edit.offset, Some(edit.id));
        }
    }
}

fn replaces_with_text(found: &Found<'_>) -> bool {
    found.edit.as_deref().is_some_and(|(_, content)| content.shape == crate::walk::Shape::Text)
}

/// What is wrong, with the word that is not known where that is it.
fn of_kind(mark: Finding, entry: &Entry, found: &Found<'_>) -> String {
    let word = match mark {
        Finding::UnknownType => found.kind,
        Finding::UnknownRole => found.message.and_then(|message| message.role),
        Finding::OddStop => found.message.and_then(|message| message.stop),
        _ => None,
    };
    let what = mark.what();
    match word.filter(|word| word.kind() == Kind::String).and_then(|word| Json::beginning(word, 40)) {
        Some(word) => format!("{what}: {word:?}"),
        None if matches!(entry.kind, EntryKind::Message) => format!("{what} ({})", entry.role.as_str()),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_pi_cannot_hold_is_told() {
        let mut tree = Tree::new();
        let mut entry = Entry::blank(EntryKind::Custom);
        tree.ids.intern("a");
        for (len, found) in [(LONGEST_TEXT, 0), (LONGEST_TEXT + 1, 1)] {
            entry.len = len;
            tree.note_length(&entry);
            assert_eq!(tree.problems().len(), found);
        }
        assert_eq!(tree.problems()[0].finding, Finding::LongLine);
    }
}
