//! Private keys in their armour.
use super::Found;

/// How far behind its beginning the end of a block is looked for.
const MOST: usize = 32 << 10;
/// Digits of base64 that a block must hold: what is less is the talk of one.
const LEAST: usize = 40;

/// The lines of a key of PuTTY behind `Private-Lines: 6`, which is the word at `at`.
pub(super) fn putty(text: &[u8], at: usize, end: usize) -> Option<Found> {
    if &text[at..end] != b"Private-Lines" {
        return None;
    }
    let count = text.get(end..end + 12)?.iter().take_while(|byte| **byte != b'\\').count();
    let start = super::words::behind_escape(text, end + count);
    let rest = text.get(start..text.len().min(start + MOST))?;
    let stop = position(rest, b"Private-MAC").unwrap_or_else(|| armour(rest)).min(armour(rest));
    (digits(&rest[..stop]) >= LEAST).then(|| Found::new(start, start + stop, "private-key"))
}

/// A block that begins with the word at `at`, such as `-----BEGIN RSA PRIVATE KEY-----`.
pub(super) fn private_key(text: &[u8], at: usize, end: usize) -> Option<Found> {
    let begins = text[end - 1] == b'N' && text.get(end) == Some(&b' ') && text[at..end].ends_with(b"-----BEGIN");
    let title = begins.then(|| title(text, end + 1)).flatten()?;
    let at = end - b"-----BEGIN".len();
    let rest = &text[title..text.len().min(title + MOST)];
    let rest = &rest[..plain_quote(rest).unwrap_or(rest.len())];
    let (body, end) = match position(rest, b"-----END ") {
        Some(stop) => (&rest[..stop], title + stop + footer(&rest[stop..])),
        None => (&rest[..armour(rest)], title + armour(rest)),
    };
    (digits(body) >= LEAST).then(|| Found::new(at, end, "private-key"))
}

/// Behind the title's dashes, if it is the title of a private key.
fn title(text: &[u8], from: usize) -> Option<usize> {
    let line = &text[from..text.len().min(from + 48)];
    let dashes = position(line, b"-----")?;
    let title = &line[..dashes];
    let is_title = title.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ');
    let is_private = title.ends_with(b"PRIVATE KEY") || title == b"PGP PRIVATE KEY BLOCK";
    (is_title && is_private).then_some(from + dashes + 5)
}

/// The length of the line that ends a block.
fn footer(rest: &[u8]) -> usize {
    let title = b"-----END ".len();
    position(&rest[title..rest.len().min(title + 48)], b"-----").map_or(title, |dashes| title + dashes + 5)
}

/// The length of what can be the inside of a block whose end is not there: base64 and line breaks, a line number perhaps.
fn armour(rest: &[u8]) -> usize {
    rest.iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b' '))
        .count()
}

/// Digits of base64 in long runs.
fn digits(body: &[u8]) -> usize {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    body.split(|byte| !is_digit(byte)).map(<[u8]>::len).filter(|len| *len >= 16).sum()
}

/// The quote that ends the JSON string.
fn plain_quote(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
