//! How far a string is text and simple escapes: what reading a session costs, since nearly all of it is that.

#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(target_arch = "x86_64")]
mod sixteen;

#[cfg(target_arch = "x86_64")]
pub(crate) use sixteen::short;

/// How far text goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Run {
    /// Bytes up to the first that is neither text nor of a simple escape, such as `\n`.
    pub len: usize,
    /// Simple escapes among them.
    pub escapes: u64,
    /// Bytes of characters beyond ASCII, beyond their UTF-16 units.
    pub surplus: u64,
}

impl Run {
    /// This one, and what goes on behind it.
    fn and(self, next: Run) -> Run {
        Run { len: self.len + next.len, escapes: self.escapes + next.escapes, surplus: self.surplus + next.surplus }
    }
}

/// The run that begins with `text`, which must be inside a string and not behind a backslash. Some end before a simple
/// escape, or before a character beyond ASCII, for the caller to step over.
#[inline]
pub(crate) fn run(text: &[u8]) -> Run {
    #[cfg(target_arch = "x86_64")]
    if let Some(run) = blocks::run(text) {
        return run;
    }
    by_eights(text)
}

/// Whether an escape of one UTF-16 unit begins here that JavaScript would write in the same way.
fn begins_simple(text: &[u8]) -> bool {
    matches!(text, [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..])
}

/// The run on any machine, eight bytes at a time, and then an escape.
fn by_eights(text: &[u8]) -> Run {
    let mut run = Run::default();
    loop {
        run.len += plain(&text[run.len..]);
        if !begins_simple(&text[run.len..]) {
            return run;
        }
        run = run.and(Run { len: 2, escapes: 1, surplus: 0 });
    }
}

/// How many bytes from the start on are plain.
fn plain(text: &[u8]) -> usize {
    let (eights, rest) = text.as_chunks::<8>();
    for (at, eight) in eights.iter().enumerate() {
        let found = special(u64::from_le_bytes(*eight));
        if found != 0 {
            return 8 * at + (found.trailing_zeros() / 8) as usize;
        }
    }
    let more = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20 | 0x80..));
    8 * eights.len() + more.unwrap_or(rest.len())
}

/// The length of a string that is short and plain: names and ids, which are most of all strings. `text` begins behind the
/// opening quote.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn short(text: &[u8]) -> Option<usize> {
    let len = plain(text.first_chunk::<16>()?);
    (text.get(len) == Some(&b'"') && len < 16).then_some(len)
}

/// The high bit of each byte that is no plain text; exact up to the first of them.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (equal(b'"') | equal(b'\\') | below(word, 0x20) | word) & (ONES * 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The run, character by character.
    fn plain_run(text: &[u8]) -> Run {
        let mut run = Run::default();
        loop {
            let rest = &text[run.len..];
            let next = match rest.first() {
                Some(b'\\') if begins_simple(rest) => Run { len: 2, escapes: 1, surplus: 0 },
                None | Some(b'"' | b'\\' | ..0x20) => return run,
                Some(..0x80) => Run { len: 1, escapes: 0, surplus: 0 },
                Some(_) => match step(rest) {
                    Some(step) => step,
                    None => return run,
                },
            };
            run = run.and(next);
        }
    }

    /// Over the character beyond ASCII that stands there.
    fn step(text: &[u8]) -> Option<Run> {
        let valid =
            |len: &usize| std::str::from_utf8(text.get(..*len).unwrap_or_default()).is_ok_and(|c| !c.is_empty());
        let len = (1..=4).find(valid)?;
        Some(Run { len, escapes: 0, surplus: if len == 4 { 2 } else { len as u64 - 1 } })
    }

    /// A run may stop before an escape that stands across two blocks, and before characters beyond ASCII.
    fn with_steps(run: impl Fn(&[u8]) -> Run, text: &[u8]) -> Run {
        let mut all = Run::default();
        loop {
            all = all.and(run(&text[all.len..]));
            let rest = &text[all.len..];
            let simple = begins_simple(rest).then_some(Run { len: 2, escapes: 1, surplus: 0 });
            match simple.or_else(|| step(rest).filter(|_| rest[0] >= 0x80)) {
                Some(step) => all = all.and(step),
                None => return all,
            }
        }
    }

    #[test]
    fn a_run_ends_where_it_does_byte_by_byte() {
        let pieces: [&[u8]; 16] = [
            b"\\\\",
            b"\\n",
            b"\\\"",
            b"a",
            "é".as_bytes(),
            b"some words ",
            "語".as_bytes(),
            "\u{800}\u{d7ff}".as_bytes(),
            b"\\u0041",
            b"\"",
            b"\n",
            b"\\",
            "😀".as_bytes(),
            b"\xc3",
            b"\xe1\x80",
            b"\xed\xa0\x80",
        ];
        let mut state = 1_u64;
        for round in 0..20_000 {
            let mut text = vec![b'.'; round % 130];
            for _ in 0..40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // What ends a run is rare, so that runs are long.
                let kinds = if state >> 40 & 7 == 0 { pieces.len() } else { 8 };
                text.extend_from_slice(pieces[(state >> 33) as usize % kinds]);
            }
            let expected = plain_run(&text);
            assert_eq!(with_steps(run, &text), expected, "{:?}", String::from_utf8_lossy(&text));
            assert_eq!(with_steps(by_eights, &text), expected, "{:?}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn a_short_string_ends_at_its_quote() {
        for len in 0..20 {
            for end in [b'"', b'\\', b'\n', 0x1f, 0x7f, 0x80, 0xff, b' '] {
                let mut text = vec![b'a'; 40];
                (text[len], text[len + 1]) = (end, b'"');
                let expected = match end {
                    b'"' if len < 16 => Some(len),
                    b' ' | 0x7f if len < 15 => Some(len + 1),
                    _ => None,
                };
                assert_eq!(short(&text), expected, "{len} {end}");
                assert_eq!(short(&text[..15]), None);
            }
        }
    }
}
