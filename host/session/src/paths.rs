//! The files that tool calls name (S10.5), found in one pass over a line.

use std::collections::BTreeSet;

use crate::json::{Json, JsonError};
use crate::scan::Scan;

/// Where in an entry tool calls stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the blocks of an assistant's message.
    Message,
    /// In the blocks that an edit shows instead.
    Replacement,
    /// In the record of calls that a tool made itself.
    Nested,
}

/// Paths by what was done to them.
#[derive(Default)]
pub(crate) struct Files {
    /// Read.
    pub(crate) read: BTreeSet<String>,
    /// Written or edited.
    pub(crate) modified: BTreeSet<String>,
}

/// The name and the path of a call.
type Call<'a> = (Option<Json<'a>>, Option<Json<'a>>);

impl Files {
    /// Adds the files of the calls in an entry, given its line.
    pub(crate) fn add_line(&mut self, line: &[u8], place: Place) -> Result<(), JsonError> {
        for (name, path) in calls(line, place)? {
            self.add(name.and_then(Json::as_str).as_deref(), path);
        }
        Ok(())
    }

    fn add(&mut self, tool: Option<&str>, path: Option<Json<'_>>) {
        let Some(path) = path.and_then(Json::as_str).filter(|path| !path.is_empty()) else {
            return;
        };
        match tool {
            Some("read") => drop(self.read.insert(path.into_owned())),
            Some("write" | "edit") => drop(self.modified.insert(path.into_owned())),
            _ => {}
        }
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

/// The calls in an entry. Of a name that comes twice the last counts, so a list that comes again begins anew.
fn calls(line: &[u8], place: Place) -> Result<Vec<Call<'_>>, JsonError> {
    let outer = if place == Place::Replacement { "replacement" } else { "message" };
    let mut found = Vec::new();
    let mut scan = Scan::new(line);
    member(&mut scan, outer, &mut |scan| {
        found.clear();
        match place {
            Place::Message | Place::Replacement => member(scan, "content", &mut |scan| list(scan, &mut found, true)),
            Place::Nested => member(scan, "nestedCalls", &mut |scan| {
                found.clear();
                member(scan, "calls", &mut |scan| list(scan, &mut found, false))
            }),
        }
    })?;
    scan.end()?;
    Ok(found)
}

/// Steps over a value; if it is an object, `look` consumes the member of that name.
fn member<'a>(
    scan: &mut Scan<'a>,
    name: &str,
    look: &mut dyn FnMut(&mut Scan<'a>) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    if scan.peek() != Some(b'{') {
        return scan.value().map(drop);
    }
    scan.object(|key, scan| if key.is(name) { look(scan) } else { scan.value().map(drop) })
}

/// The calls in a list; among an assistant's blocks only those that are calls.
fn list<'a>(scan: &mut Scan<'a>, found: &mut Vec<Call<'a>>, blocks: bool) -> Result<(), JsonError> {
    found.clear();
    if scan.peek() != Some(b'[') {
        return scan.value().map(drop);
    }
    scan.array(|scan| {
        let (kind, call) = item(scan)?;
        if !blocks || kind.and_then(Json::as_str).as_deref() == Some("toolCall") {
            found.push(call);
        }
        Ok(())
    })
}

/// The type of an item, and the call that it may be.
fn item<'a>(scan: &mut Scan<'a>) -> Result<(Option<Json<'a>>, Call<'a>), JsonError> {
    let [mut kind, mut name, mut path] = [None; 3];
    if scan.peek() != Some(b'{') {
        scan.value()?;
        return Ok((kind, (name, path)));
    }
    scan.object(|key, scan| {
        match &*key.name() {
            b"type" => kind = Some(scan.value()?),
            b"name" => name = Some(scan.value()?),
            b"arguments" => {
                path = None;
                member(scan, "path", &mut |scan| scan.value().map(|value| path = Some(value)))?;
            }
            _ => drop(scan.value()?),
        }
        Ok(())
    })?;
    Ok((kind, (name, path)))
}
