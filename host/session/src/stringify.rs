//! How long JavaScript would write a value in which a name may come twice: of several members with one name the last
//! counts (S2.5), so what is before it must be taken out again.

use std::collections::HashMap;

use crate::json::{Items, Json, Kind, Members};
use crate::scan::Scan;

/// One open array or object of the walk.
struct Frame<'a> {
    parts: Parts<'a>,
    /// What an array's items gave so far, without separators.
    len: u64,
    items: u64,
    /// What an object's members gave, by name.
    named: HashMap<Vec<u16>, u64>,
    /// The name whose value is being walked, and its own length.
    key: Option<(Vec<u16>, u64)>,
}

enum Parts<'a> {
    Items(Items<'a>),
    Members(Members<'a>),
}

/// The length in UTF-16 units.
pub(crate) fn walk_len(value: Json<'_>) -> u64 {
    if let Some(len) = scalar_len(value) {
        return len;
    }
    let mut open = vec![Frame::new(value)];
    while let Some(top) = open.last_mut() {
        match top.next() {
            Some(part) => match scalar_len(part) {
                Some(len) => top.add(len),
                None => open.push(Frame::new(part)),
            },
            None => {
                let len = open.pop().map_or(0, Frame::close);
                match open.last_mut() {
                    Some(outer) => outer.add(len),
                    None => return len,
                }
            }
        }
    }
    0
}

/// The length of what is neither array nor object.
fn scalar_len(value: Json<'_>) -> Option<u64> {
    (!matches!(value.kind(), Kind::Array | Kind::Object)).then(|| written(value.raw()))
}

fn written(token: &[u8]) -> u64 {
    Scan::new(token).value_and_written().map_or(0, |(_, written)| written)
}

impl<'a> Frame<'a> {
    fn new(value: Json<'a>) -> Frame<'a> {
        let parts = match value.kind() {
            Kind::Array => Parts::Items(value.items()),
            _ => Parts::Members(value.members()),
        };
        Frame { parts, len: 0, items: 0, named: HashMap::new(), key: None }
    }

    fn next(&mut self) -> Option<Json<'a>> {
        match &mut self.parts {
            Parts::Items(items) => items.next(),
            Parts::Members(members) => {
                let (key, value) = members.next()?;
                let quoted = [b"\"", key.raw(), b"\""].concat();
                self.key = Some((key.units(), written(&quoted)));
                Some(value)
            }
        }
    }

    fn add(&mut self, len: u64) {
        match self.key.take() {
            None => {
                self.len += len;
                self.items += 1;
            }
            Some((name, name_len)) => drop(self.named.insert(name, name_len + 1 + len)),
        }
    }

    /// Brackets, parts and the commas between them.
    fn close(self) -> u64 {
        let parts = self.items + self.named.len() as u64;
        2 + self.len + self.named.values().sum::<u64>() + parts.saturating_sub(1)
    }
}
