//! Cutting text where a character ends.
use std::borrow::Cow;

/// The beginning of a text, of at most so many bytes.
pub(super) fn cut(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The beginning of bytes that go on behind these, up to where a character ends. What is no UTF-8 is left as it is.
pub(super) fn whole_chars(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let wanted = match bytes[at] {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        return if wanted > back { &bytes[..at] } else { bytes };
    }
    bytes
}

/// Bytes as text, with U+FFFD for what is none (S2.1).
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_never_cut() {
        let text = "aä😀b";
        for end in 1..=text.len() {
            let whole = whole_chars(&text.as_bytes()[..end]);
            assert!(std::str::from_utf8(whole).is_ok(), "up to {end}");
            assert_eq!(cut(text, end).as_bytes(), whole);
        }
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        assert_eq!(whole_chars(&[0x80, 0x80, 0x80, 0x80]).len(), 4);
        assert_eq!(whole_chars(&[b'a', 0xff]).len(), 2);
    }
}
