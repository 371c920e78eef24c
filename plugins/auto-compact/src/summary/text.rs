//! Text, cut up: lines of prose, sentences, and clips at character boundaries. All of it in one pass.
use std::borrow::Cow;

/// At most so many bytes from the beginning, cut where a character ends.
pub fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// At most so many bytes from the end, cut where a character begins.
pub fn tail(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// The text in at most `max` bytes; what is missing at the end shows as `…`.
pub fn clip(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let whole = head(text, max.saturating_sub('…'.len_utf8()));
    let at_word = whole.rfind(char::is_whitespace).filter(|at| whole.len() - at < 24).unwrap_or(whole.len());
    Cow::Owned([whole[..at_word].trim_end(), "…"].concat())
}

/// The same with the end kept too: after a long paste the question often stands last.
pub fn clip_middle(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let last = tail(text, max / 3);
    let first = head(text, max.saturating_sub(last.len() + " … ".len()));
    Cow::Owned([first.trim_end(), " … ", last.trim_start()].concat())
}

/// All in one line: runs of white space and control characters become a space.
pub fn one_line(text: &str) -> String {
    let text = text.trim();
    let plain = text.bytes().all(|b| matches!(b, b' '..=b'~')) && !text.contains("  ");
    if plain {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len().min(1024));
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The pieces between ASCII characters of this table. Going by bytes costs a fifth of going by characters, and this is
/// where the time goes.
pub fn between<'a>(text: &'a str, apart: &'static [bool; 256]) -> impl Iterator<Item = &'a str> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = text.as_bytes().get(from..)?;
        let end = rest.iter().position(|b| apart[*b as usize]).map_or(text.len(), |at| from + at);
        let piece = &text[from..end];
        from = end + 1;
        Some(piece)
    })
    .filter(|piece| !piece.is_empty())
}

/// Line by line: each as [`one_line`], the empty ones dropped.
pub fn tidy(text: &str) -> String {
    let lines = text.lines().map(one_line).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether it reads as text: few control characters and few that were broken.
pub fn is_readable(text: &str) -> bool {
    let odd = |c: &char| *c == char::REPLACEMENT_CHARACTER || c.is_control() && !c.is_whitespace() && *c != '\u{1b}';
    let sample = || text.chars().take(512);
    sample().filter(odd).count() * 8 <= sample().count()
}

/// A hash (FNV-1a).
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(BASIS, |hash, byte| add_to(hash, *byte))
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn add_to(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// What two texts that say the same have in common: a hash of letters and digits, in lower case.
pub fn key(text: &str) -> u64 {
    let text = head(text, 400);
    let mut key = BASIS;
    if text.is_ascii() {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        key = letters.fold(key, |hash, byte| add_to(hash, byte.to_ascii_lowercase()));
    } else {
        let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
        key = letters.fold(key, |hash, c| c.encode_utf8(&mut [0; 4]).bytes().fold(hash, add_to));
    }
    if key == BASIS { hash(text.as_bytes()) } else { key }
}

/// A line of prose, without the mark that makes it a list item or heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// What it says.
    pub text: &'a str,
    /// Whether it is an item of a list.
    pub listed: bool,
    /// Of a checklist: whether the item is ticked.
    pub ticked: Option<bool>,
    /// Whether it announces what follows: a heading, or a line that ends in a colon.
    pub announces: bool,
}

/// The lines outside code blocks that are not empty.
pub fn prose(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut fenced = false;
    let lines = text.lines().filter(move |line| {
        let fence = is_fence(line);
        fenced ^= fence;
        !fence && !fenced
    });
    lines.map(line_of).filter(|line| !line.text.is_empty())
}

/// Whether the line opens or closes a code block.
pub fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn line_of(line: &str) -> Line<'_> {
    let line = line.trim().trim_start_matches("> ").trim_start();
    let unheaded = line.trim_start_matches('#');
    let heading = unheaded.len() < line.len() && unheaded.starts_with(' ');
    let item = unlisted(line);
    let (ticked, text) = untick(if heading { unheaded } else { item.unwrap_or(line) });
    let text = text.trim();
    let announces = heading || text.trim_end_matches("**").ends_with(':');
    Line { text, listed: item.is_some(), ticked, announces }
}

/// What stands behind the mark of a list item; none if it is no item.
pub fn unlisted(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "• ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    bullet.or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = line.len() - rest.len();
        rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")).filter(|_| (1..=3).contains(&digits))
    })
}

/// Takes the box of a checklist item off.
pub fn untick(item: &str) -> (Option<bool>, &str) {
    let item = item.trim_start();
    let open = item.strip_prefix("[ ]").map(|rest| (Some(false), rest));
    let done = || ["[x]", "[X]", "[✓]"].iter().find_map(|mark| item.strip_prefix(mark)).map(|rest| (Some(true), rest));
    open.or_else(done).map_or((None, item), |(ticked, rest)| (ticked, rest.trim_start()))
}

/// The sentences of a line, end marks included.
pub fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (sentence, more) = rest.split_at(sentence_end(rest));
        rest = more;
        (!sentence.is_empty()).then_some(sentence.trim())
    })
    .filter(|sentence| !sentence.is_empty())
}

/// Where the first sentence ends: behind `.`, `!` or `?` with a space behind it, or behind their CJK kin. What stands behind a
/// semicolon is not understood without what stands before it.
fn sentence_end(text: &str) -> usize {
    let is_mark = |b: &u8| matches!(b, b'.' | b'!' | b'?' | 0xe3 | 0xef);
    let mut from = 0;
    while let Some(at) = text.as_bytes()[from..].iter().position(is_mark) {
        let mark = from + at;
        let behind = text.ceil_char_boundary(mark + 1);
        let spaced = text[behind..].starts_with(char::is_whitespace);
        let ends = match &text[mark..behind] {
            "." => spaced && !is_short(&text[..mark]),
            "!" | "?" => spaced,
            "。" | "！" | "？" => true,
            _ => false,
        };
        if ends {
            return behind;
        }
        from = behind;
    }
    text.len()
}

/// Whether the last word is one that is written with a full stop, or the number of a list item.
fn is_short(text: &str) -> bool {
    let word = text.rsplit([' ', '(']).next().unwrap_or_default();
    matches!(word, "e.g" | "i.e" | "etc" | "vs" | "cf" | "z.B" | "approx") || word.len() < 3 && text.len() < 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clips_end_where_characters_end() {
        assert_eq!(clip("日本語日本語", 10), "日本…");
        assert_eq!(clip("a long sentence", 10), "a long…");
        assert_eq!(clip("short", 10), "short");
        assert_eq!(clip("x", 0), "…");
        assert_eq!(clip_middle("first words and then the last words", 24), "first words … st words");
        assert_eq!(tail("日本語", 4), "語");
    }

    #[test]
    fn sentences_end_at_marks_but_not_in_paths_or_abbreviations() {
        let line = "Edit src/main.rs, e.g. the top. src/a.rs holds it; never use v1.2! 必ず使う。はい";
        let found: Vec<_> = sentences(line).collect();
        let expected = ["Edit src/main.rs, e.g. the top.", "src/a.rs holds it; never use v1.2!", "必ず使う。", "はい"];
        assert_eq!(found, expected);
    }

    #[test]
    fn prose_skips_code_and_takes_marks_off() {
        let text = "# Next steps\n- [ ] write\n1. [x] read\n```sh\nmust not be seen\n```\n> quoted\nplain:";
        let lines: Vec<_> = prose(text).map(|l| (l.text, l.listed, l.ticked, l.announces)).collect();
        let expected = [
            ("Next steps", false, None, true),
            ("write", true, Some(false), false),
            ("read", true, Some(true), false),
            ("quoted", false, None, false),
            ("plain:", false, None, true),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_is_binary_is_not_readable() {
        assert!(is_readable("naïve 日本 \u{1b}[31mred"));
        assert!(is_readable(""));
        assert!(!is_readable("\u{0}\u{1}\u{fffd}PNG"));
    }
}
