//! The content of an entry without its secrets.
use std::ops::Range;

use crate::find::Found;
use crate::parts::{Content, Part};
use crate::placeholder::placeholder;

/// Bytes of a long text that stay at least, at its beginning and its end together.
const LEAST: usize = 512;

/// What is put in place of the content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// The content, JSON.
    pub(crate) content: String,
    /// Whether images or the middle of texts had to go, since it would have been too long.
    pub(crate) shortened: bool,
}

/// The content with every secret replaced by its placeholder, all else as it was; of at most `most` bytes.
pub(crate) fn rewrite(line: &str, content: &Content, found: &[Found], root: &str, most: usize) -> Rewritten {
    let pieces = pieces(line, content, found, root);
    let whole: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    let shortened = whole > most;
    let mut text: String = match shortened {
        false => pieces.iter().map(|piece| piece.text.as_str()).collect(),
        true => shorten(&pieces, most),
    };
    mend_surrogates(&mut text);
    Rewritten { content: text, shortened }
}

/// A stretch of the content after replacing.
struct Piece {
    text: String,
    sort: Sort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// What holds the content together, and what is not to be touched.
    Frame,
    /// A text, which may lose its middle.
    Text,
    /// An image's block, which may go.
    Image,
}

fn pieces(line: &str, content: &Content, found: &[Found], root: &str) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), content.range.start);
    let mut push = |range: Range<usize>, sort: Sort| {
        let text = replaced(line, range, found, root);
        pieces.push(Piece { text, sort });
    };
    for part in &content.parts {
        let (range, sort) = match part {
            Part::Text(range) => (range.clone(), Sort::Text),
            Part::Image(range) => (range.clone(), Sort::Image),
            Part::Signed(_) => continue,
        };
        push(at..range.start, Sort::Frame);
        at = range.end;
        push(range, sort);
    }
    push(at..content.range.end, Sort::Frame);
    pieces
}

fn replaced(line: &str, range: Range<usize>, found: &[Found], root: &str) -> String {
    let (mut text, mut at) = (String::with_capacity(range.len()), range.start);
    for secret in found.iter().filter(|secret| range.start <= secret.start && secret.end <= range.end) {
        text.push_str(&line[at..secret.start]);
        text.push_str(&placeholder(root, secret, &line.as_bytes()[secret.start..secret.end]));
        at = secret.end;
    }
    text.push_str(&line[at..range.end]);
    text
}

/// Images go first, then the middle of the longest texts, until it fits.
fn shorten(pieces: &[Piece], most: usize) -> String {
    let of = |sort: Sort| pieces.iter().filter(move |piece| piece.sort == sort).map(|piece| piece.text.len());
    let images = of(Sort::Frame).sum::<usize>() + of(Sort::Text).sum::<usize>() > most * 9 / 10
        || of(Sort::Image).sum::<usize>() > most / 2;
    let frame =
        of(Sort::Frame).sum::<usize>() + if images { 256 * of(Sort::Image).count() } else { of(Sort::Image).sum() };
    let mut cap = most;
    while cap > LEAST && frame + of(Sort::Text).map(|len| len.min(cap)).sum::<usize>() > most {
        cap = cap * 3 / 4;
    }
    let shortened = |piece: &Piece| match piece.sort {
        Sort::Image if images => image_note(piece.text.len()),
        Sort::Text if piece.text.len() > cap => without_middle(&piece.text, cap),
        _ => piece.text.clone(),
    };
    pieces.iter().map(shortened).collect()
}

fn image_note(bytes: usize) -> String {
    let text = format!(
        "[redact-secrets left out an image of {bytes} bytes: the message had a secret in its text, and is too large to be written anew with it]"
    );
    format!("{{\"type\":\"text\",\"text\":\"{text}\"}}")
}

/// A text's beginning and end. Of the arguments of a call, which are JSON, the long strings lose their middle instead.
fn without_middle(text: &str, cap: usize) -> String {
    if text.starts_with(['{', '[']) {
        return shorter_strings(text, cap);
    }
    let half = cap.saturating_sub(160) / 2;
    let (head, tail) = (safe_cut(text, half), safe_cut(text, text.len() - half));
    let left_out = tail.saturating_sub(head);
    format!(
        "{} [redact-secrets left out {left_out} bytes here: too large to be written anew] {}",
        &text[..head],
        &text[tail.max(head)..]
    )
}

/// JSON in which every string of more than its share has lost its middle.
fn shorter_strings(json: &str, cap: usize) -> String {
    let (bytes, mut out, mut at) = (json.as_bytes(), String::new(), 0);
    while let Some(open) = json[at..].find('"').map(|quote| at + quote + 1) {
        let mut close = open;
        while close < bytes.len() && bytes[close] != b'"' {
            close += 1 + usize::from(bytes[close] == b'\\');
        }
        let inside = &json[open..close.min(json.len())];
        out.push_str(&json[at..open]);
        out.push_str(&if inside.len() > cap / 2 {
            without_middle_of_string(inside, cap / 2)
        } else {
            inside.to_owned()
        });
        at = close.min(json.len());
        if at < json.len() {
            out.push('"');
            at += 1;
        }
    }
    out + &json[at..]
}

fn without_middle_of_string(inside: &str, cap: usize) -> String {
    // A string may begin as JSON does; here it is none.
    let text = [" ", inside].concat();
    without_middle(&text, cap)[1..].to_owned()
}

/// A place near `at` where JSON text can be cut: between two plain signs, far from any escape.
fn safe_cut(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'.' | b',' | b'-' | b'_' | b'/' | b'+');
    let safe =
        |at: usize| plain(bytes[at]) && plain(bytes[at - 1]) && !bytes[at.saturating_sub(12)..at].contains(&b'\\');
    (1..at.min(bytes.len().saturating_sub(1)) + 1).rev().take(8192).find(|at| safe(*at)).unwrap_or(0)
}

/// Half a surrogate pair in an escape, which JavaScript writes and a draft may not have, becomes U+FFFD.
fn mend_surrogates(text: &mut String) {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return;
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while at < text.len() {
        let Some(slash) = text[at..].find('\\').map(|slash| at + slash) else { break };
        out.push_str(&text[at..slash]);
        let (piece, len) = match (surrogate(text, slash), surrogate(text, slash + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (&text[slash..slash + 12], 12),
            (Some(_), _) => ("\\ufffd", 6),
            (None, _) => (&text[slash..text.ceil_char_boundary(slash + 2)], text.ceil_char_boundary(slash + 2) - slash),
        };
        out.push_str(piece);
        at = slash + len;
    }
    out.push_str(&text[at..]);
    *text = out;
}

fn surrogate(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_parts_no_escape() {
        let text = r"abc\u00e9\u00e9\ndef ghi jkl".repeat(50);
        for at in 0..text.len() {
            let cut = safe_cut(&text, at);
            assert!(cut <= at);
            let json = format!("\"{}\"", &text[..cut]);
            assert!(pi_graft_plugin::Json::from_text(json.clone()).to::<String>().is_ok(), "{json}");
        }
    }

    #[test]
    fn half_a_pair_is_mended() {
        let mut text = r"a\ud83d\ude00b\ud83dc\\ud83d é".to_owned();
        mend_surrogates(&mut text);
        assert_eq!(text, r"a\ud83d\ude00b\ufffdc\\ud83d é");
    }

    #[test]
    fn of_json_the_strings_are_shortened() {
        let json = format!(r#"{{"path":"x","content":"{}","list":[1,"y"]}}"#, "word ".repeat(2000));
        let short = without_middle(&json, 2000);
        assert!(
            short.len() < 2000
                && short.starts_with(r#"{"path":"x","content":"word"#)
                && short.ends_with(r#""list":[1,"y"]}"#),
            "{short}"
        );
        assert!(
            pi_graft_plugin::Json::from_text(short)
                .to::<std::collections::BTreeMap<String, pi_graft_plugin::Json>>()
                .is_ok()
        );
    }
}
