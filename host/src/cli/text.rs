//! Text of others, made fit to be shown: nothing in it can move, hide or reorder what stands beside it, and it takes the
//! columns that it is given.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Whether a character does something to a terminal or a line rather than being seen: control characters, those that
/// change the direction of text, and those of no width that are not part of a script or an emoji.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    let of_format = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    of_format || c.is_control()
}

/// The text with a sign in the place of every such character: `␛` for an escape, `\u{202e}` for an override.
#[must_use]
pub fn seen(text: &str) -> Cow<'_, str> {
    replaced(text, is_unseen)
}

/// The same for text of several lines: their ends stay.
#[must_use]
pub fn seen_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c != '\n' && is_unseen(c))
}

/// JSON with `\u…` for every such character, which means the same: they can only stand in strings.
#[must_use]
pub fn seen_json(text: &str) -> Cow<'_, str> {
    let unseen = |c| !matches!(c, '\n' | '\r' | '\t') && is_unseen(c);
    if !text.contains(unseen) {
        return text.into();
    }
    let (mut out, mut units) = (String::with_capacity(text.len() + 16), [0; 2]);
    for c in text.chars() {
        match unseen(c) {
            true => c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
            false => out.push(c),
        }
    }
    out.into()
}

fn replaced(text: &str, unseen: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&unseen) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if unseen(c) { push_sign(&mut out, c) } else { out.push(c) }
    }
    out.into()
}

fn push_sign(out: &mut String, c: char) {
    match u32::from(c) {
        // Unicode has a picture of each of these.
        code @ 0..0x20 => out.extend(char::from_u32(0x2400 + code)),
        0x7f => out.push('␡'),
        _ => out.extend(c.escape_unicode()),
    }
}

/// Columns that a text takes on a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The beginning of a text that fits into so many columns, its last character `…` if there was more.
#[must_use]
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    // No character takes more columns than bytes.
    if text.len() <= most || columns(text) <= most { text.into() } else { cut_short(text, most) }
}

/// The same for a text behind which there is more, whether or not it fits itself.
#[must_use]
pub fn cut_short(text: &str, most: usize) -> Cow<'_, str> {
    let mut left = most.saturating_sub(1);
    let fits = text.char_indices().find(|(_, c)| match left.checked_sub(columns_of(*c)) {
        Some(now) => {
            left = now;
            false
        }
        None => true,
    });
    let kept = &text[..fits.map_or(text.len(), |(at, _)| at)];
    if most == 0 { Cow::Borrowed("") } else { format!("{kept}…").into() }
}

/// The text cut to so many columns, and with spaces behind it where it takes less.
#[must_use]
pub fn fit(text: &str, wide: usize) -> String {
    pad(&cut(text, wide), wide)
}

/// The text with spaces behind it where it takes fewer columns.
#[must_use]
pub fn pad(text: &str, wide: usize) -> String {
    format!("{text}{}", " ".repeat(wide.saturating_sub(columns(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_paint_on_the_terminal_is_shown_as_a_sign() {
        assert_eq!(seen("a\u{1b}[31mred\u{7}\nb"), "a␛[31mred␇␊b");
        assert_eq!(seen_lines("a\u{9b}31m\nb\u{7f}"), "a\\u{9b}31m\nb␡");
        assert_eq!(seen("ab\u{202e}cd"), "ab\\u{202e}cd");
        assert_eq!(seen("plain, 日本語, 👩\u{200d}🚀"), "plain, 日本語, 👩\u{200d}🚀");
    }

    #[test]
    fn json_stays_the_same_value() {
        let text = "{\"a\":\"\u{9b}\u{202e}\u{e0041}b\"}";
        let shown = seen_json(text);
        assert_eq!(shown, "{\"a\":\"\\u009b\\u202e\\udb40\\udc41b\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(value(&shown), value(text));
    }

    #[test]
    fn long_texts_are_cut_between_characters_at_columns() {
        assert_eq!(
            (cut("añb", 3), cut("añbc", 3), cut("", 3), cut("a", 0)),
            ("añb".into(), "añ…".into(), "".into(), "".into())
        );
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…", "half a character is none");
    }

    #[test]
    fn texts_are_made_of_one_width() {
        assert_eq!((fit("日本", 6), fit("日本語", 4), fit("ab", 1)), ("日本  ".into(), "日… ".into(), "…".into()));
        assert_eq!((pad("日本", 6), pad("日本語", 4)), ("日本  ".into(), "日本語".into()));
    }
}
