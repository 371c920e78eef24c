//! Names and values that stand in members of their own: `name: DB_PASSWORD` and below it `value: x`,
//! `<add key="ApiKey" value="x"/>`, `variable "db_password" { default = "x" }`.
use super::names::{self, Tells};
use super::values::value_at;
use crate::config::Config;

/// How far before the value its name is looked for.
const NEAR: usize = 200;

/// What the name tells whose value is the member `member` that begins at `at`.
pub(super) fn tells(text: &[u8], at: usize, member: &[u8], config: &Config) -> Option<Tells> {
    let before = at.saturating_sub(NEAR)..at;
    match member.to_ascii_lowercase().as_slice() {
        b"value" => {
            before.rev().filter(|sign| matches!(text[*sign], b'=' | b':')).find_map(|sign| of(text, sign, config))
        }
        b"default" => {
            let word = b"variable ";
            let found = text[before.clone()].windows(word.len()).rposition(|part| part == word)?;
            name_at(text, before.start + found + word.len(), config)
        }
        _ => None,
    }
}

/// What the name tells that stands behind this sign, if the sign is behind `name` or `key`.
fn of(text: &[u8], sign: usize, config: &Config) -> Option<Tells> {
    let (_, member) = names::before(text, sign)?;
    let is_name = member.eq_ignore_ascii_case(b"name") || member.eq_ignore_ascii_case(b"key");
    let spaces = text[sign + 1..].iter().take(8).take_while(|byte| **byte == b' ').count();
    is_name.then(|| name_at(text, sign + 1 + spaces, config)).flatten()
}

fn name_at(text: &[u8], at: usize, config: &Config) -> Option<Tells> {
    names::tells(value_at(text, at, true)?.of(text), config)
}
