//! How far a string is text and simple escapes: what reading a session costs, since nearly all of it is that.
//!
//! Where the next escape stands cannot be foreseen, and a wrong guess of the processor costs more than 64 bytes of looking.
//! So a block is looked at as a whole, and bit masks say without a branch what ends in it, and where.

/// Bytes in a block, and bits in a mask.
const BLOCK: usize = 64;

/// Where certain bytes of a block are, the first in the lowest bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Masks {
    quotes: u64,
    backslashes: u64,
    /// The letters that make an escape of one UTF-16 unit which JavaScript would write in the same way.
    letters: u64,
    /// Below 0x20, or beyond ASCII.
    odd: u64,
}

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
    let mut all = Run::default();
    loop {
        let rest = &text[all.len..];
        let (whole, next) = match rest.first_chunk() {
            Some(block) => (true, run_in(block)),
            None => (false, run_at_end(rest)),
        };
        all = Run { len: all.len + next.len, escapes: all.escapes + next.escapes };
        if next.len < BLOCK || !whole {
            return all;
        }
    }
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

/// The run of less than a block. What it is filled up with ends every run.
#[inline(never)]
fn run_at_end(text: &[u8]) -> Run {
    let mut block = [0; BLOCK];
    block[..text.len()].copy_from_slice(text);
    run_in(&block)
}

#[inline]
fn run_in(block: &[u8; BLOCK]) -> Run {
    let masks = masks(block);
    let (starts, escaped) = escapes(masks.backslashes);
    let simple = masks.quotes | masks.backslashes | masks.letters;
    // An escape that is not simple ends the run at its backslash; one across the block's end is left to the next block.
    let others = starts & !((escaped & simple) >> 1);
    let ends = (masks.quotes & !escaped) | masks.odd | others;
    if ends == 0 {
        return Run { len: BLOCK, escapes: starts.count_ones().into() };
    }
    let len = ends.trailing_zeros();
    let before = (1 << len) - 1;
    Run { len: len as usize, escapes: (starts & before).count_ones().into() }
}

/// The backslashes that begin an escape, and the bytes behind these. In a row of backslashes it is every other one; a
/// subtraction carries that along all rows at once.
#[inline]
fn escapes(backslashes: u64) -> (u64, u64) {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let turns = ((backslashes << 1 | ODD).wrapping_sub(backslashes)) ^ ODD;
    (turns & backslashes, turns ^ backslashes)
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the only way to name these instructions; all else made reading a third slower")]
#[inline]
fn masks(block: &[u8; BLOCK]) -> Masks {
    // SAFETY: SSE2 is a part of x86-64; there is none without it.
    unsafe { sse2(block) }
}

/// Sixteen bytes at a time.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn sse2(block: &[u8; BLOCK]) -> Masks {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
        _mm_setzero_si128,
    };

    let mut masks = Masks::default();
    let (sixteens, _) = block.as_chunks::<16>();
    for (at, sixteen) in sixteens.iter().enumerate() {
        let both = u128::from_le_bytes(*sixteen).cast_signed();
        let bytes = _mm_set_epi64x((both >> 64) as i64, both as i64);
        let equal = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
        let bits = |mask| u64::from(_mm_movemask_epi8(mask).cast_unsigned()) << (16 * at);
        let letters = b"bfnrt".map(equal);
        masks.quotes |= bits(equal(b'"'));
        masks.backslashes |= bits(equal(b'\\'));
        masks.letters |= bits(letters.into_iter().fold(_mm_setzero_si128(), |any, one| _mm_or_si128(any, one)));
        // As signed numbers, bytes beyond ASCII are below zero.
        masks.odd |= bits(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)));
    }
    masks
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn masks(block: &[u8; BLOCK]) -> Masks {
    portable(block)
}

/// The same on any machine, eight bytes at a time.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable(block: &[u8; BLOCK]) -> Masks {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES * 0x80;
    // The high bit of each byte that is at least `n`, of bytes below 0x80; no sum leaves its byte.
    let at_least = |word: u64, n: u64| (word & !HIGH) + ONES * (0x80 - n);
    let equal =
        |word: u64, byte: u8| !(at_least(word ^ (ONES * u64::from(byte)), 1) | (word ^ (ONES * u64::from(byte))));
    // Brings eight high bits together in the highest byte.
    let gather = |word: u64| ((word & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let mut masks = Masks::default();
    let (eights, _) = block.as_chunks::<8>();
    for (at, eight) in eights.iter().enumerate() {
        let word = u64::from_le_bytes(*eight);
        let bits = |marks| gather(marks) << (8 * at);
        masks.quotes |= bits(equal(word, b'"'));
        masks.backslashes |= bits(equal(word, b'\\'));
        masks.letters |= b"bfnrt".iter().fold(0, |any, letter| any | bits(equal(word, *letter)));
        masks.odd |= bits(!at_least(word, 0x20) | word);
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte by byte.
    fn plain_masks(block: &[u8; BLOCK]) -> Masks {
        let mask = |is: &dyn Fn(u8) -> bool| (0..BLOCK).filter(|at| is(block[*at])).fold(0, |mask, at| mask | 1 << at);
        Masks {
            quotes: mask(&|byte| byte == b'"'),
            backslashes: mask(&|byte| byte == b'\\'),
            letters: mask(&|byte| b"bfnrt".contains(&byte)),
            odd: mask(&|byte| !(0x20..0x80).contains(&byte)),
        }
    }

    #[test]
    fn every_byte_at_every_place_is_seen_as_what_it_is() {
        for (place, byte) in (0..BLOCK).flat_map(|place| (0..=255).map(move |byte| (place, byte))) {
            for rest in [b'a', b'"', b'\\', b'#', b']', b'n', 0xff, 0xa2, 0xdc, 0x80, 0x20, 0x1f, 0x7f, 0] {
                let mut block = [rest; BLOCK];
                block[place] = byte;
                let expected = plain_masks(&block);
                assert_eq!(masks(&block), expected, "{byte} at {place} among {rest}");
                assert_eq!(portable(&block), expected, "{byte} at {place} among {rest}");
            }
        }
    }

    fn begins_simple(text: &[u8]) -> bool {
        matches!(text, [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..])
    }

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
            assert_eq!(run_with_steps(&text), plain_run(&text), "{:?}", String::from_utf8_lossy(&text));
        }
    }
}
