//! Credentials in URLs: `scheme://user:password@host`.
use super::Found;
use super::kinds;
use super::random::{is_stand_in, looks_random};

/// Most bytes between `://` and `@`.
const MOST: usize = 256;

/// The credentials of the URL whose `://` stands at `at`.
pub(super) fn credentials(text: &[u8], at: usize) -> Option<Found> {
    let from = at + 3;
    let window = &text[from..text.len().min(from + MOST)];
    let stop = window.iter().position(|byte| !may_be_in_authority(*byte)).unwrap_or(window.len());
    if let Some(hook) = webhook(text, from, from + stop) {
        return Some(hook);
    }
    let host = window[..stop].iter().rposition(|byte| *byte == b'@')?;
    let user = window[..host].iter().position(|byte| *byte == b':');
    match user {
        Some(colon) => {
            let password = &window[colon + 1..host];
            let is_one = !password.is_empty() && !is_stand_in(password) && !is_word(password);
            is_one.then(|| kinds::found(text, from + colon + 1, from + host))
        }
        None => looks_random(&window[..host], 16).then(|| kinds::found(text, from, from + host)),
    }
}

/// `user:password@host` of documentation, where the password is called so; `postgres:postgres` in a test is no secret
/// either, but nobody can tell, so it counts.
fn is_word(password: &[u8]) -> bool {
    let names: [&[u8]; 6] = [b"pass", b"passwd", b"password", b"pw", b"pwd", b"secret"];
    names.contains(&password.to_ascii_lowercase().as_slice())
}

fn may_be_in_authority(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"-._~%!$&*+,;=:@^(){}#".contains(&byte)
}

/// A webhook: whoever knows the address may post.
fn webhook(text: &[u8], from: usize, host_end: usize) -> Option<Found> {
    let hosts: [(&[u8], &[u8]); 4] = [
        (b".webhook.office.com", b"/webhookb2/"),
        (b"hooks.slack.com", b"/services/"),
        (b"discord.com", b"/api/webhooks/"),
        (b"discordapp.com", b"/api/webhooks/"),
    ];
    let (_, path) = hosts.iter().find(|(host, _)| text[from..host_end].ends_with(host))?;
    let start = host_end + path.len();
    let end = text
        .get(start..)?
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'@'))
        .count()
        + start;
    let is_it = text[host_end..].starts_with(path) && end - start >= 24 && !is_stand_in(&text[start..end]);
    is_it.then(|| Found::new(start, end, "webhook"))
}
