//! Words of a text, and the escapes between them.

/// Nothing of interest.
pub const OTHER: u8 = 0;
/// A letter, a digit, `_` or `-`.
pub const WORD: u8 = 1;
/// A backslash.
pub const ESCAPE: u8 = 2;
/// `=` or `:`.
pub const SIGN: u8 = 3;

/// What each byte is.
pub static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        if c.is_ascii_alphanumeric() || c == b'_' || c == b'-' {
            classes[byte] = WORD;
        }
        byte += 1;
    }
    classes[b'\\' as usize] = ESCAPE;
    classes[b'=' as usize] = SIGN;
    classes[b':' as usize] = SIGN;
    classes
}

/// Where the word that begins at `at` ends; `at` itself if none does.
#[must_use]
pub fn word_end(text: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < text.len() && CLASS[text[end] as usize] == WORD {
        end += 1;
    }
    end
}

/// Behind the escape at `at`. An escaped backslash may be the first half of an escape within a text within this text,
/// such as the `\n` of a JSON file that is shown here.
#[must_use]
pub fn behind_escape(text: &[u8], at: usize) -> usize {
    match text.get(at + 1) {
        Some(b'u') => at + 6,
        Some(b'\\') => {
            let inner = text.get(at + 2).is_some_and(|byte| matches!(byte, b'n' | b'r' | b't'));
            at + 2 + usize::from(inner)
        }
        _ => at + 2,
    }
}

/// Whether a line, or the text, ends at `at`.
#[must_use]
pub fn ends_line(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        None | Some(b'"') => true,
        Some(b'\\') => {
            let escaped = text[at..].iter().position(|byte| *byte != b'\\').map(|skip| text[at + skip]);
            matches!(escaped, None | Some(b'n' | b'r'))
        }
        Some(_) => false,
    }
}

/// The quote that stands at `at`, and its length: `"`, `'` and a backtick, escaped or not.
#[must_use]
pub fn quote(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let slashes = text.get(at..)?.iter().take_while(|byte| **byte == b'\\').count();
    let byte = *text.get(at + slashes)?;
    let is_quote = matches!(byte, b'"' | b'\'' | b'`') && (slashes == 0 || byte != b'`');
    is_quote.then_some((byte, slashes + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_no_part_of_words() {
        let text = br"\nghp_x\\nabc\u001bdef";
        assert_eq!(behind_escape(text, 0), 2);
        assert_eq!(word_end(text, 2), 7);
        assert_eq!(behind_escape(text, 7), 10, "the escaped escape too");
        assert_eq!(behind_escape(text, 13), 19);
    }

    #[test]
    fn quotes_may_be_escaped_at_any_depth() {
        assert_eq!(quote(br#""a"#, 0), Some((b'"', 1)));
        assert_eq!(quote(br#"\"a"#, 0), Some((b'"', 2)));
        assert_eq!(quote(br#"\\\"a"#, 0), Some((b'"', 4)));
        assert_eq!(quote(b"'a", 0), Some((b'\'', 1)));
        assert_eq!(quote(br"\na", 0), None);
    }
}
