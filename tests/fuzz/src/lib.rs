//! What must hold whatever stands in a session file, said as functions of bytes; libFuzzer looks for bytes where it does
//! not (`.ci/fuzz`). One module a target; [`naive`] says the same thing as the crate by the plainest means.

#[allow(dead_code, unused_imports, reason = "a part of the tests' generator is used")]
#[path = "../../../host/session/tests/common/generate/mod.rs"]
mod generate;

pub mod draft;
pub mod line;
pub mod naive;
pub mod tree;

use std::sync::Arc;

use generate::value::Rng;
use pi_session::tree::EntryIx;
use pi_session::{Branch, Tree};

/// A session that a fuzzer made, and the choices that are left.
struct Input {
    text: Arc<Vec<u8>>,
    rng: Rng,
}

impl Input {
    /// After a `~` each byte is a choice of the tests' generator, so that the fuzzer turns knobs of sessions that hang
    /// together; anything else is a session as it stands. Behind a line `~` it has choices too.
    fn of(input: &[u8]) -> Input {
        if let Some(choices) = input.strip_prefix(b"~") {
            let mut rng = Rng::of(choices);
            let text = Arc::new(generate::chosen(&mut rng));
            return Input { text, rng };
        }
        let (text, choices) = match input.windows(2).rposition(|two| two == b"\n~") {
            Some(at) => (&input[..=at], &input[at + 2..]),
            None => (input, [].as_slice()),
        };
        Input { text: Arc::new(text.to_vec()), rng: Rng::of(choices) }
    }
}

/// The branch that ends in an entry; none where its parents lead in a circle.
fn branch(tree: &Arc<Tree>, text: &Arc<Vec<u8>>, leaf: Option<EntryIx>) -> Option<Branch> {
    Branch::at(tree, text.clone(), leaf).ok()
}

/// Random bytes that are never the same.
fn counter() -> impl FnMut() -> [u8; 16] {
    let mut count = 0_u32;
    move || {
        count += 1;
        let mut bytes = [0x5a; 16];
        bytes[..4].copy_from_slice(&count.to_be_bytes());
        bytes
    }
}
