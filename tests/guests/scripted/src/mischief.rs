//! What a guest should not do.
use std::hint::black_box;

/// Never returns.
pub fn spin() {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Calls itself until the stack ends. Nothing of it lives in linear memory, so it is the machine's stack that does.
pub fn recurse(n: u64) -> u64 {
    if n == 0 { 1 } else { recurse(n.wrapping_add(2)).wrapping_mul(3) ^ n }
}

/// Takes memory until there is none.
pub fn eat_memory() {
    let mut eaten = Vec::new();
    loop {
        eaten.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Traps without a word.
pub fn trap() {
    #[cfg(target_family = "wasm")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    std::process::abort();
}
