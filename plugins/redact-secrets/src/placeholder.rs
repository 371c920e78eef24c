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
    hash.update([root.as_bytes(), b"\0"].concat());
    hash.update(letters(found, secret));
    let tag = hash.finalize();
    let signs = if found.chosen { 2 } else { 4 };
    let tag: String = tag[..signs].iter().map(|byte| char::from(SIGNS[usize::from(byte & 31)])).collect();
    ["[redacted ", &found.kind, " ", &tag, "]"].concat()
}

/// What of a secret counts: it is the same however it is escaped, in JSON or in a URL. Of a private key only the letters and
/// digits do, however its lines are broken.
fn letters(found: &Found, secret: &[u8]) -> Vec<u8> {
    let is_key = found.kind == "private-key";
    let (mut letters, mut at) = (Vec::with_capacity(secret.len()), 0);
    while at < secret.len() {
        let (byte, len) = match secret[at] {
            b'\\' if is_key => (b'\\', crate::find::words::behind_escape(secret, at) - at),
            b'\\' => (b'\\', 1),
            b'%' => hex(secret, at + 1).map_or((b'%', 1), |byte| (byte, 3)),
            byte => (byte, 1),
        };
        let counts = if is_key { byte.is_ascii_alphanumeric() } else { byte != b'\\' };
        letters.extend(counts.then_some(byte));
        at += len;
    }
    letters
}

/// The byte that two hexadecimal digits stand for.
fn hex(text: &[u8], at: usize) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(at..at + 2)?).ok()?;
    u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
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
    fn a_password_is_the_same_in_a_url_and_behind_escapes() {
        let password = found("password", true);
        let all: [&[u8]; 4] = [b"p@ss/w\"x1", b"p%40ss%2Fw%22x1", br#"p@ss\/w\"x1"#, br#"p@ss/w\\\"x1"#];
        let tags: Vec<_> = all.iter().map(|secret| placeholder("r", &password, secret)).collect();
        assert!(tags.iter().all(|tag| *tag == tags[0]), "{tags:?}");
    }

    #[test]
    fn a_key_is_the_same_however_it_is_escaped() {
        let key = found("private-key", false);
        assert_eq!(placeholder("r", &key, br"-----A\nMIIE\n"), placeholder("r", &key, br"-----A\\nMIIE\\n"));
    }
}
