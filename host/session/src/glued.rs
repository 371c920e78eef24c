//! Two entries on one line: what a write that was cut short, and a line written behind it, make of a file (S2.4).

use crate::json::{Json, Kind};
use crate::walk::is_js_space;

/// How an entry begins in every file that Pi writes.
const BEGINS: &[u8] = b"{\"type\":\"";
/// A line is looked through for entries at most about so many times its length, whatever stands on it.
const LOOKS: usize = 4;

/// Where on a line that is no JSON another whole entry begins, which ends with the line; or where the second begins, if
/// the first is whole.
pub(crate) fn on(line: &[u8]) -> Option<u32> {
    let mut left = line.len().saturating_mul(LOOKS);
    for at in memchr::memmem::find_iter(line, BEGINS) {
        let spent = match Json::parse(&line[at..]) {
            Ok(entry) if is_entry(entry) => return u32::try_from(at).ok().filter(|_| !is_blank(&line[..at])),
            Ok(_) => line.len() - at,
            Err(error) if at == 0 => match second(&line[error.at..]) {
                Some(space) => return u32::try_from(error.at + space).ok(),
                None => error.at,
            },
            Err(error) => error.at,
        };
        // What a look costs beside its own bytes.
        left = left.checked_sub(spent + BEGINS.len())?;
    }
    None
}

/// Where behind a whole value an entry begins.
fn second(rest: &[u8]) -> Option<usize> {
    let space = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    rest[space..].starts_with(BEGINS).then_some(space)
}

/// White space that is none to JSON, a byte order mark too, is no entry.
fn is_blank(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.chars().all(is_js_space))
}

fn is_entry(entry: Json<'_>) -> bool {
    entry.get("id").is_some_and(|id| id.kind() == Kind::String)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        r#"{"type":"message","id":"b","parentId":"a","message":{"content":[{"type":"text","text":"{}"}]}}"#;

    #[test]
    fn behind_a_torn_beginning_the_entry_is_found() {
        for torn in [r#"{"type":"cus"#, r#"{"type":"custom","id":"x","data":{"type":"text""#, "\0\0", r#"{"a":1},"#] {
            assert_eq!(on(format!("{torn}{ENTRY}").as_bytes()), Some(torn.len() as u32), "{torn}");
        }
    }

    #[test]
    fn behind_a_whole_entry_its_beginning_is_enough() {
        assert_eq!(on(format!("{ENTRY}{ENTRY}").as_bytes()), Some(ENTRY.len() as u32));
        assert_eq!(on(format!("{ENTRY} {}", &ENTRY[..30]).as_bytes()), Some(ENTRY.len() as u32 + 1));
    }

    #[test]
    fn what_is_merely_broken_is_not_glued() {
        let after_mark = format!("\u{feff}\u{a0}{ENTRY}");
        for line in
            [&after_mark, &ENTRY[..60], "garbage", "", r#"{"type":"text"}}"#, r#"x{"type":"text","text":"no id"}"#]
        {
            assert_eq!(on(line.as_bytes()), None, "{line}");
        }
    }
}
