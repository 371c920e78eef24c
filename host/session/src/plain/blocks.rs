//! Runs in blocks of 64 bytes, with the vector instructions of the x86-64 processors of the last ten years (AVX2).
//!
//! Where the next escape or accented letter stands cannot be foreseen, and a wrong guess of the processor costs more than
//! 64 bytes of looking. So a block is looked at as a whole, and bit masks say without a branch what ends in it, and where.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8,
};

use super::Run;

/// Bytes in a block, and bits in a mask.
const BLOCK: usize = 64;

/// Where certain bytes of a block are, the first in the lowest bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Masks {
    quotes: u64,
    backslashes: u64,
    /// The letters that make an escape of one UTF-16 unit which JavaScript would write in the same way.
    letters: u64,
    /// Below 0x20.
    controls: u64,
    /// Beyond ASCII.
    high: u64,
}

/// What beyond ASCII a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Characters {
    /// The bytes of whole characters of two or three bytes, but for their first ones.
    behind: u64,
    /// All other bytes beyond ASCII: of longer characters, of what goes on in the next block, of what is no UTF-8.
    others: u64,
}

/// See [`super::run`]; none on a processor without these instructions.
#[allow(unsafe_code, reason = "there is no other way to use these instructions; what is gained stands above")]
#[inline]
pub(super) fn run(text: &[u8]) -> Option<Run> {
    let can =
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1");
    // SAFETY: the processor has the instructions.
    can.then(|| unsafe { run_of_blocks(text) })
}

#[target_feature(enable = "avx2,bmi1,popcnt")]
fn run_of_blocks(text: &[u8]) -> Run {
    let mut all = Run::default();
    loop {
        let rest = &text[all.len..];
        let (whole, next) = match rest.first_chunk() {
            Some(block) => (true, run_in(block)),
            None => (false, run_at_end(rest)),
        };
        all = all.and(next);
        if next.len < BLOCK || !whole {
            return all;
        }
    }
}

/// The run of less than a block. What it is filled up with ends every run.
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn run_at_end(text: &[u8]) -> Run {
    let mut block = [0; BLOCK];
    block[..text.len()].copy_from_slice(text);
    run_in(&block)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn run_in(block: &[u8; BLOCK]) -> Run {
    let halves = halves(block);
    let masks = masks(halves);
    let (starts, escaped) = escapes(masks.backslashes);
    let simple = masks.quotes | masks.backslashes | masks.letters;
    // An escape that is not simple ends the run at its backslash; one across the block's end is left to the next block.
    let others = starts & !((escaped & simple) >> 1);
    let characters = if masks.high == 0 { Characters::default() } else { characters(halves, masks.high) };
    let ends = (masks.quotes & !escaped) | masks.controls | others | characters.others;
    // All bits below the lowest.
    let before = ends.wrapping_sub(1) & !ends;
    Run {
        len: before.count_ones() as usize,
        escapes: (starts & before).count_ones().into(),
        surplus: (characters.behind & before).count_ones().into(),
    }
}

/// The backslashes that begin an escape, and the bytes behind these. In a row of backslashes it is every other one; a
/// subtraction carries that along all rows at once.
#[inline]
fn escapes(backslashes: u64) -> (u64, u64) {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let turns = ((backslashes << 1 | ODD).wrapping_sub(backslashes)) ^ ODD;
    (turns & backslashes, turns ^ backslashes)
}

#[allow(unsafe_code, reason = "there is no other way to load a vector")]
#[inline]
#[target_feature(enable = "avx2")]
fn halves(block: &[u8; BLOCK]) -> [__m256i; 2] {
    let (halves, _) = block.as_chunks::<32>();
    // SAFETY: each is 32 bytes long, and may stand at any address.
    [0, 1].map(|at| unsafe { _mm256_loadu_si256(halves[at].as_ptr().cast()) })
}

/// Which bytes of a block are what is said of each half of it.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(halves: [__m256i; 2]) -> u64 {
    let [low, high] = halves.map(|half| u64::from(_mm256_movemask_epi8(half).cast_unsigned()));
    low | high << 32
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal(bytes: __m256i, byte: u8) -> __m256i {
    _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()))
}

/// As signed numbers, bytes beyond ASCII are below zero, in their own order.
#[inline]
#[target_feature(enable = "avx2")]
fn below(bytes: __m256i, byte: u8) -> __m256i {
    _mm256_cmpgt_epi8(_mm256_set1_epi8(byte.cast_signed()), bytes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn masks(halves: [__m256i; 2]) -> Masks {
    let [low, high] = halves;
    let high_bits = mask(halves);
    Masks {
        quotes: mask([equal(low, b'"'), equal(high, b'"')]),
        backslashes: mask([equal(low, b'\\'), equal(high, b'\\')]),
        letters: mask([letters(low), letters(high)]),
        controls: mask([below(low, b' '), below(high, b' ')]) & !high_bits,
        high: high_bits,
    }
}

/// `b`, `f`, which are one but for a bit, `n`, `r` and `t`.
#[inline]
#[target_feature(enable = "avx2")]
fn letters(bytes: __m256i) -> __m256i {
    let without = _mm256_and_si256(bytes, _mm256_set1_epi8(!(b'b' ^ b'f').cast_signed()));
    let nr = _mm256_or_si256(equal(bytes, b'n'), equal(bytes, b'r'));
    _mm256_or_si256(_mm256_or_si256(equal(without, b'b'), equal(bytes, b't')), nr)
}

/// Whole characters of two and three bytes. Those of three that begin with E0 or ED are bound to more, and left to whoever
/// looks at one after the other.
#[inline(never)]
#[target_feature(enable = "avx2")]
fn characters(halves: [__m256i; 2], high: u64) -> Characters {
    let all_below = |byte| mask([below(halves[0], byte), below(halves[1], byte)]);
    let each = |byte| mask([equal(halves[0], byte), equal(halves[1], byte)]);
    let from_e0 = high & !all_below(0xe0);
    let next = all_below(0xc0) & high;
    let twos = all_below(0xe0) & !all_below(0xc2) & high & next >> 1;
    let threes = from_e0 & all_below(0xf0) & !each(0xe0) & !each(0xed) & next >> 1 & next >> 2;
    let behind = twos << 1 | threes << 1 | threes << 2;
    Characters { behind, others: high & !(twos | threes | behind) }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "as above")]
mod tests {
    use super::*;

    /// Byte by byte.
    fn plain_masks(block: &[u8; BLOCK]) -> Masks {
        let mask = |is: &dyn Fn(u8) -> bool| (0..BLOCK).filter(|at| is(block[*at])).fold(0, |mask, at| mask | 1 << at);
        Masks {
            quotes: mask(&|byte| byte == b'"'),
            backslashes: mask(&|byte| byte == b'\\'),
            letters: mask(&|byte| b"bfnrt".contains(&byte)),
            controls: mask(&|byte| byte < 0x20),
            high: mask(&|byte| byte >= 0x80),
        }
    }

    /// Character by character.
    fn plain_characters(block: &[u8; BLOCK]) -> Characters {
        let mut all = Characters::default();
        let mut at = 0;
        while at < BLOCK {
            let whole = (2..=3).find(|len| {
                std::str::from_utf8(block.get(at..at + len).unwrap_or_default())
                    .is_ok_and(|text| text.chars().count() == 1)
            });
            match whole.filter(|_| block[at] >= 0x80 && !matches!(block[at], 0xe0 | 0xed)) {
                Some(len) => {
                    all.behind |= (1..len).fold(0, |mask, n| mask | 1 << (at + n));
                    at += len;
                }
                None => {
                    all.others |= u64::from(block[at] >= 0x80) << at;
                    at += 1;
                }
            }
        }
        all
    }

    fn assert_seen(block: &[u8; BLOCK]) {
        if run(b"").is_none() {
            return;
        }
        // SAFETY: the processor has the instructions.
        let (masks, characters) = unsafe {
            let halves = halves(block);
            let masks = masks(halves);
            (masks, characters(halves, masks.high))
        };
        assert_eq!(masks, plain_masks(block), "{block:x?}");
        assert_eq!(characters, plain_characters(block), "{block:x?}");
    }

    #[test]
    fn every_byte_at_every_place_is_seen_as_what_it_is() {
        for (place, byte) in (0..BLOCK).flat_map(|place| (0..=255).map(move |byte| (place, byte))) {
            for rest in [b'a', b'"', b'\\', b'#', b']', b'n', 0xff, 0xa2, 0xdc, 0x80, 0x20, 0x1f, 0x7f, 0, 0xe1, 0xe0] {
                let mut block = [rest; BLOCK];
                block[place] = byte;
                assert_seen(&block);
            }
        }
    }

    #[test]
    fn every_character_at_every_place_is_whole_or_left() {
        const NEAR: [u8; 16] =
            [0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0];
        for place in [0, 1, 13, 30, 31, 32, 59, 60] {
            for code in 0..NEAR.len().pow(4) {
                let mut block = [b'a'; BLOCK];
                (0..4).for_each(|n| block[place + n] = NEAR[code >> (4 * n) & 15]);
                assert_seen(&block);
            }
        }
    }
}
