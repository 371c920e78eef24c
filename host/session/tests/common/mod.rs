//! What the tests share: JavaScript's values, what we make of a session in the oracle's shape, the oracle itself, and a
//! generator of sessions.
#![allow(dead_code, missing_docs, reason = "each test binary uses a part of it")]

pub mod beside;
pub mod faults;
pub mod generate;
pub mod grown;
pub mod js;
pub mod oracle;
pub mod probe;
pub mod report;
pub mod scene;
pub mod script;
pub mod typical;

/// Runs a test with room for values nested thousands deep, since these comparisons recurse.
pub fn deep<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(test).expect("a thread can be made");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The messages of the context of the leaf that a session ends in; none where there is no context.
pub fn messages(session: &[u8]) -> Option<Vec<String>> {
    use pi_session::{Branch, Tree};
    let text = std::sync::Arc::new(session.to_vec());
    let branch = Branch::of_leaf(&std::sync::Arc::new(Tree::from_bytes(session)), text).ok()?;
    let given = branch.context().entries.iter().map(|entry| branch.messages(entry)).collect::<Result<Vec<_>, _>>();
    Some(given.ok()?.concat())
}
