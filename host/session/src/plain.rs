//! How far a string is text and simple escapes: what reading a session costs, since nearly all of it is that.

#[cfg(target_arch = "x86_64")]
mod blocks;

/// How far text goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Run {
    /// Bytes up to the first that is neither text nor of a simple escape, such as `\n`.
    pub len: usize,
    /// Simple escapes among them.
    pub escapes: u64,
}

/// The run that begins with `text`, which must be inside a string and not behind a backslash. Some end before a simple
/// escape, for the caller to step over.
#[inline]
pub(crate) fn run(text: &[u8]) -> Run {
    #[cfg(target_arch = "x86_64")]
    return blocks::run(text);
    #[cfg(not(target_arch = "x86_64"))]
    return by_eights(text);
}

/// Whether an escape of one UTF-16 unit begins here that JavaScript would write in the same way.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn begins_simple(text: &[u8]) -> bool {
    matches!(text, [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..])
}

/// The run on any machine, eight bytes at a time, and then an escape.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn by_eights(text: &[u8]) -> Run {
    let mut run = Run::default();
    loop {
        run.len += plain(&text[run.len..]);
        if !begins_simple(&text[run.len..]) {
            return run;
        }
        run = Run { len: run.len + 2, escapes: run.escapes + 1 };
    }
}

/// How many bytes from the start on are plain.
#[cfg(any(test, not(target_arch = "x86_64")))]
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
#[inline]
pub(crate) fn short(text: &[u8]) -> Option<usize> {
    let (eights, _) = text.first_chunk::<16>()?.as_chunks::<8>();
    let mut len = 0;
    for eight in eights {
        let found = special(u64::from_le_bytes(*eight));
        if found != 0 {
            len += (found.trailing_zeros() / 8) as usize;
            return (text[len] == b'"').then_some(len);
        }
        len += 8;
    }
    None
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

    /// The run, byte by byte.
    fn plain_run(text: &[u8]) -> Run {
        let mut run = Run::default();
        while let Some(byte) = text.get(run.len).filter(|byte| !matches!(byte, b'"' | ..0x20 | 0x80..)) {
            if *byte == b'\\' && !begins_simple(&text[run.len..]) {
                break;
            }
            run.len += if *byte == b'\\' { 2 } else { 1 };
            run.escapes += u64::from(*byte == b'\\');
        }
        run
    }

    /// A run may stop before an escape that stands across two blocks.
    fn run_with_steps(text: &[u8]) -> Run {
        let mut all = Run::default();
        loop {
            let next = run(&text[all.len..]);
            all = Run { len: all.len + next.len, escapes: all.escapes + next.escapes };
            if !begins_simple(&text[all.len..]) {
                return all;
            }
            all = Run { len: all.len + 2, escapes: all.escapes + 1 };
        }
    }

    #[test]
    fn a_run_ends_where_it_does_byte_by_byte() {
        let pieces: [&[u8]; 10] =
            [b"\\\\", b"\\n", b"\\\"", b"a", "é".as_bytes(), b"some words ", b"\\u0041", b"\"", b"\n", b"\\"];
        let mut state = 1_u64;
        for round in 0..20_000 {
            let mut text = vec![b'.'; round % 130];
            for _ in 0..40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // What ends a run is rare, so that runs are long.
                let kinds = if state >> 40 & 7 == 0 { pieces.len() } else { 6 };
                text.extend_from_slice(pieces[(state >> 33) as usize % kinds]);
            }
            let expected = plain_run(&text);
            assert_eq!(run_with_steps(&text), expected, "{:?}", String::from_utf8_lossy(&text));
            assert_eq!(by_eights(&text), expected, "{:?}", String::from_utf8_lossy(&text));
        }
    }
}
