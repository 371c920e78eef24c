//! JSON as Pi writes it: an escape that JSON does not need (`\/`, `\u003d`) becomes the sign that it stands for, so that a
//! secret, and what stands around it, looks the same whoever wrote the line. What it means stays the same.

use crate::json;

/// The text with the escapes that it needs; nothing if it has no others.
pub(crate) fn plain(text: &str) -> Option<String> {
    if !has_needless(text.as_bytes()) {
        return None;
    }
    let (bytes, mut out, mut from, mut at) = (text.as_bytes(), String::with_capacity(text.len()), 0, 0);
    while let Some(slash) = text[at..].find('\\').map(|slash| at + slash) {
        let (sign, len) = match bytes.get(slash + 1) {
            Some(b'/') => (Some(b'/'), 2),
            Some(b'u') => (printable(text, slash), 6),
            _ => (None, 2),
        };
        at = text.ceil_char_boundary((slash + len).min(text.len()));
        if let Some(sign) = sign {
            out.push_str(&text[from..slash]);
            out.push_str(if matches!(sign, b'"' | b'\\') { "\\" } else { "" });
            out.push(char::from(sign));
            from = at;
        }
    }
    out.push_str(&text[from..]);
    Some(out)
}

/// Whether there is an escape that JSON does not need.
fn has_needless(text: &[u8]) -> bool {
    let mut at = json::plain_end(text, 0);
    while at < text.len() {
        at = match (text[at], text.get(at + 1)) {
            (b'\\', Some(b'/')) => return true,
            (b'\\', Some(b'u')) if text[at + 2..].starts_with(b"00") => return true,
            (b'\\', _) => json::plain_end(text, at + 2),
            _ => json::plain_end(text, at + 1),
        };
    }
    false
}

/// The sign that an escape such as `\u003d` stands for, if it is one that a line may hold.
fn printable(text: &str, slash: usize) -> Option<u8> {
    let digits = text.get(slash + 2..slash + 6)?.strip_prefix("00")?;
    u8::from_str_radix(digits, 16).ok().filter(|byte| (0x20..0x7f).contains(byte))
}

/// Where the text can be cut: before an escape that may not be whole yet.
pub(crate) fn whole_escapes(text: &str) -> usize {
    let mut at = text.floor_char_boundary(text.len().saturating_sub(16));
    // Of a row of backslashes at the beginning the first may be the second of a pair: it is gone over from its own beginning.
    while at > 0 && text.as_bytes()[at - 1] == b'\\' {
        at -= 1;
    }
    while let Some(slash) = text[at..].find('\\').map(|slash| at + slash) {
        let len = if text.as_bytes().get(slash + 1) == Some(&b'u') { 6 } else { 2 };
        if slash + len > text.len() {
            return slash;
        }
        at = text.ceil_char_boundary(slash + len);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_that_are_not_needed_go() {
        assert_eq!(plain(r"a\nb\\u003d\"), None.or(plain(r"a\nb\\u003d\")), "no panic at an end that is cut off");
        assert_eq!(
            plain(r#"a\u003db\/c\u0022d\u005ce\u000af\u00e9g\\u003d"#).as_deref(),
            Some(r#"a=b/c\"d\\e\u000af\u00e9g\\u003d"#)
        );
        assert_eq!(plain(r#"{"a":"b\nc"}"#), None);
    }

    #[test]
    fn a_cut_parts_no_escape() {
        let text = r"abc\u003d\\\\\n\u00e9é\/".repeat(3);
        for at in (1..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let cut = whole_escapes(&text[..at]);
            assert!(cut <= at && at - cut < 6);
            let both = [plain(&text[..cut]), plain(&text[cut..])];
            let both: String =
                both.iter().zip([&text[..cut], &text[cut..]]).map(|(a, b)| a.clone().unwrap_or(b.into())).collect();
            assert_eq!(both, plain(&text).expect("it has some"), "{at}");
        }
    }
}
