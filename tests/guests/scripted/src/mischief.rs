//! What a guest should not do.
use std::hint::black_box;

/// Never returns.
pub fn spin() {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Calls itself until the stack ends.
#[allow(unconditional_recursion, reason = "that is the mischief")]
pub fn recurse(n: u64) -> u64 {
    let here = black_box([n; 16]);
    recurse(n + 1) + here[0]
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
