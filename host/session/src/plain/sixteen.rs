//! Short strings with the vector instructions that every x86-64 has.

use std::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
};

/// The length of a string that is short and plain: names and ids, which are most of all strings. `text` begins behind the
/// opening quote.
#[inline]
pub(crate) fn short(text: &[u8]) -> Option<usize> {
    let found = special(text.first_chunk()?);
    let len = found.trailing_zeros() as usize;
    (found != 0 && text[len] == b'"').then_some(len)
}

/// Which bytes are no plain text, the first in the lowest bit.
#[allow(unsafe_code, reason = "there is no other way to use these instructions; names are most of what is read")]
#[inline]
fn special(text: &[u8; 16]) -> u32 {
    // SAFETY: SSE2 is a part of x86-64, and the bytes may stand at any address.
    unsafe {
        let bytes = _mm_loadu_si128(text.as_ptr().cast());
        let equal = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
        // As signed numbers, bytes beyond ASCII are below zero.
        let others = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(equal(b'"'), equal(b'\\')), others)).cast_unsigned()
    }
}
