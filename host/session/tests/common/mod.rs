//! What the tests share: JavaScript's values, what we make of a session in the oracle's shape, the oracle itself, and a
//! generator of sessions.
#![allow(dead_code, missing_docs, reason = "each test binary uses a part of it")]

pub mod generate;
pub mod js;
pub mod oracle;
pub mod report;
pub mod scene;
pub mod typical;

/// Runs a test with room for values nested thousands deep, since these comparisons recurse.
pub fn deep<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(test).expect("a thread can be made");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
