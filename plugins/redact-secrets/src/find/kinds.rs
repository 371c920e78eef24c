//! Of what kind a secret is that only its surroundings show.
//!
//! The kind is told by the value alone, never by what stands beside it: so the same secret is of the same kind, and has the same
//! placeholder, in a `.env`, a URL and a header.
use super::Found;
use super::prefixes;
use crate::config::Config;

/// Most digits that are decoded.
const MOST: usize = 4096;

/// The secret that stands there.
pub(super) fn found(text: &[u8], start: usize, end: usize) -> Found {
    let value = &text[start..end];
    let first = super::words::word_end(text, start);
    if let Some(known) = prefixes::known(text, start, first, &Config::default()).filter(|known| known.end == end) {
        return known;
    }
    if is_pair(value) {
        Found::chosen(start, end, "basic-auth")
    } else if prefixes::is_made(value) {
        Found::new(start, end, "token")
    } else {
        Found::chosen(start, end, "password")
    }
}

/// Whether it is `user:password` in base64.
pub(super) fn is_pair(value: &[u8]) -> bool {
    base64(value).is_some_and(|pair| {
        pair.len() >= 5 && pair.contains(&b':') && pair.iter().all(|byte| (0x20..0x7f).contains(byte))
    })
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = &text[..text.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1)];
    if text.len() < 7 || text.len() > MOST {
        return None;
    }
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::with_capacity(text.len()));
    for byte in text {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
