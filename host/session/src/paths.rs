//! The files that tool calls name (S10.5): as they stand on a line, and gathered for a plan.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::entry::{Entry, EntryKind, Role};
use crate::json::{Json, JsonError, Kind};
use crate::walk::{self, Found, Line};

/// A file that a call names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileOf<'a> {
    /// Its path, a string that is not empty.
    pub path: Json<'a>,
    /// It was written or edited, not read.
    pub modified: bool,
}

impl<'a> FileOf<'a> {
    /// The file of a call of this tool with this path.
    pub(crate) fn of(tool: Option<Json<'a>>, path: Option<Json<'a>>) -> Option<FileOf<'a>> {
        let is_text = |path: &Json<'_>| path.kind() == Kind::String && path.raw().len() > 2;
        let modified = match tool?.raw() {
            b"\"read\"" => false,
            b"\"write\"" | b"\"edit\"" => true,
            // Any other that is one is written with escapes.
            raw if raw.contains(&b'\\') => match tool?.as_str()?.as_ref() {
                "read" => false,
                "write" | "edit" => true,
                _ => return None,
            },
            _ => return None,
        };
        Some(FileOf { path: path.filter(is_text)?, modified })
    }

    /// The files of the calls that a tool made itself.
    pub(crate) fn of_nested(nested: Json<'a>) -> Vec<FileOf<'a>> {
        let calls = nested.get("calls").into_iter().flat_map(Json::items);
        let of_call = |call: Json<'a>| {
            let [tool, arguments] = call.get_all(["name", "arguments"]);
            FileOf::of(tool, arguments?.get("path"))
        };
        calls.filter_map(of_call).collect()
    }
}

/// The files that an entry's calls name: those of an assistant's blocks, of the record of calls that a tool made itself, or
/// of the blocks that an edit shows instead.
pub(crate) fn files<'f, 'a>(entry: &Entry, found: &'f Found<'a>) -> Cow<'f, [FileOf<'a>]> {
    let [of_message, of_edit] = &found.files;
    match (entry.kind, entry.role) {
        (EntryKind::Message, Role::Assistant) => of_message.into(),
        (EntryKind::Message, Role::ToolResult) => {
            found.message.and_then(|message| message.nested).map(FileOf::of_nested).unwrap_or_default().into()
        }
        (EntryKind::ContextEdit, _) => of_edit.into(),
        _ => (&[]).into(),
    }
}

/// Paths by what was done to them.
#[derive(Default)]
pub(crate) struct Files {
    /// Read.
    pub(crate) read: BTreeSet<String>,
    /// Written or edited.
    pub(crate) modified: BTreeSet<String>,
}

impl Files {
    /// Adds one.
    pub(crate) fn add(&mut self, path: &str, modified: bool) {
        let set = if modified { &mut self.modified } else { &mut self.read };
        set.insert(path.to_owned());
    }

    /// Adds those that an entry's calls name, given its line.
    pub(crate) fn add_line(&mut self, entry: &Entry, line: &[u8]) -> Result<(), JsonError> {
        let found = match walk::read(line) {
            Line::Object(_, found) => found,
            Line::Bad(error, _) => return Err(error),
            _ => return Err(JsonError { at: 0, what: "not an object" }),
        };
        for file in files(entry, &found).iter() {
            file.path.as_str().into_iter().for_each(|path| self.add(&path, file.modified));
        }
        Ok(())
    }

    /// Read and not modified, and modified, each sorted by UTF-16 units.
    pub(crate) fn lists(self) -> (Vec<String>, Vec<String>) {
        let Files { read, modified } = self;
        let read = read.into_iter().filter(|path| !modified.contains(path)).collect();
        (by_units(read), by_units(modified.into_iter().collect()))
    }
}

fn by_units(mut paths: Vec<String>) -> Vec<String> {
    paths.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    paths
}
