//! What stands in place of a secret.
//!
//! `[redacted github-token k7qd]`: the kind, and a tag by which the same secret is known again. The tag is a part of a hash of
//! the secret, keyed with the session's first entry, so it is the same in every run, on every branch and in every fork of a
//! session, and another one in other sessions. It gives away 20 bits: of what a machine has made that is nothing. Of what
//! people may have chosen it gives 10, so that it rules out little for who tries words from a list.
use sha2::{Digest, Sha256};

use crate::find::Found;

/// 32 signs that are hard to take for one another.
const SIGNS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The placeholder of a secret, in a session whose first entry has this id.
#[must_use]
pub fn placeholder(root: &str, found: &Found, secret: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update([root.as_bytes(), b"\0", found.kind.as_bytes(), b"\0"].concat());
    hash.update(letters(found, secret));
    let tag = hash.finalize();
    let signs = if found.chosen { 2 } else { 4 };
    let tag: String = tag[..signs].iter().map(|byte| char::from(SIGNS[usize::from(byte & 31)])).collect();
    ["[redacted ", &found.kind, " ", &tag, "]"].concat()
}

/// A private key is the same however its lines are broken and escaped.
fn letters(found: &Found, secret: &[u8]) -> Vec<u8> {
    if found.kind != "private-key" {
        return secret.to_vec();
    }
    let (mut letters, mut at) = (Vec::with_capacity(secret.len()), 0);
    while at < secret.len() {
        match secret[at] {
            b'\\' => at = crate::find::words::behind_escape(secret, at),
            byte => {
                letters.extend(byte.is_ascii_alphanumeric().then_some(byte));
                at += 1;
            }
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &str, chosen: bool) -> Found {
        Found { start: 0, end: 0, kind: kind.into(), chosen }
    }

    #[test]
    fn the_same_secret_has_the_same_placeholder_within_a_session_only() {
        let token = found("github-token", false);
        let one = placeholder("root", &token, b"abc");
        assert!(one.starts_with("[redacted github-token ") && one.len() == "[redacted github-token abcd]".len());
        assert_eq!(one, placeholder("root", &token, b"abc"));
        assert_ne!(one, placeholder("root", &token, b"abd"));
        assert_ne!(one, placeholder("other", &token, b"abc"));
        assert_eq!(placeholder("root", &found("password", true), b"x").len(), "[redacted password ab]".len());
    }

    #[test]
    fn a_key_is_the_same_however_it_is_escaped() {
        let key = found("private-key", false);
        assert_eq!(placeholder("r", &key, br"-----A\nMIIE\n"), placeholder("r", &key, br"-----A\\nMIIE\\n"));
    }
}
