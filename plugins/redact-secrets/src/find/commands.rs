//! Secrets in commands: options, and what is set.
use super::Found;
use super::kinds;
use super::names::{self, Tells};
use super::random::is_stand_in;
use super::values::{Value, is_code, of_header, secret, value_at};
use super::words::{quote, word_end};
use crate::config::Config;

/// How far before an option its command is looked for.
const NEAR: usize = 256;

/// Options of one letter that take a password, and whose.
const SHORT: [(&[u8], &[&[u8]]); 4] = [
    (b"-p", &[b"docker", b"podman", b"mongo", b"mongosh", b"mongodump", b"mongorestore", b"sshpass", b"az", b"oc"]),
    (b"-a", &[b"redis-cli"]),
    (b"-w", &[b"ldapsearch", b"ldapmodify", b"ldapadd", b"ldapwhoami", b"ldapdelete", b"ldappasswd"]),
    (b"-P", &[b"sqlcmd"]),
];
/// Whose `-p` has the password directly behind it.
const GLUED: [&[u8]; 6] = [b"mysql", b"mysqldump", b"mysqladmin", b"mysqlimport", b"mariadb", b"sshpass"];
/// Whose `-U` is `user%password`.
const PERCENT: [&[u8]; 2] = [b"smbclient", b"rpcclient"];

/// Whether a word may be one of those below, told by a glance at it and what stands behind it.
#[inline]
pub(super) fn may_be(text: &[u8], at: usize, end: usize) -> bool {
    let next = |more: usize| text.get(end + more).copied().unwrap_or(0);
    match next(0) {
        // `password`, `passphrase`; `by`, `basic`, `bearer`; `set`, `sudo`.
        b' ' => match (text[at], end - at) {
            (b'-', _) | (b'p' | b'P', 8 | 10) | (b'b' | b'B', 2 | 5 | 6) | (b's', 3 | 4) => true,
            _ => next(1) == b'|',
        },
        b'\\' => next(2) == b',' && next(1) == b'"',
        b'\'' => next(1) == b',',
        b'>' => at > 0 && text[at - 1] == b'<',
        b':' => text[at] == b'P' && end - at == 13,
        _ => text[at] == b'-' && text[at + 1..end].first() == Some(&b'p'),
    }
}

/// The value of an option such as `--password value`, `-u user:password`, `-pvalue`, `machine … login … password value`, `set
/// NAME value`, `PASSWORD 'value'`.
pub(super) fn of_word(text: &[u8], at: usize, end: usize, config: &Config) -> Option<Found> {
    if text.get(end) == Some(&b'>') {
        return element(text, at, end, config);
    }
    if text[end..].starts_with(b" | ") {
        return cell(text, at, end, config);
    }
    if let Some((_, len)) = quote(text, end).filter(|(_, len)| text.get(end + len) == Some(&b',')) {
        return argument(text, (at, end), end + len + 1, config);
    }
    match &text[at..end] {
        b"sudo" if text[end..].starts_with(b" -S") => piped(text, at),
        b"-u" | b"--user" | b"--proxy-user" => of_user(text, end + 1, b':'),
        b"-U" if is_of(text, at, &PERCENT) => of_user(text, end + 1, b'%'),
        _ if !config.named_values => None,
        b"set" => set(text, end + 1, config),
        b"password" if is_netrc(text, at) => option(text, at, end, config),
        b"password" | b"passphrase" | b"Password" if text[end..].starts_with(b" is ") => told(text, end + 4),
        b"password" | b"PASSWORD" | b"by" | b"BY" => of_statement(text, at, end),
        word if word.starts_with(b"--") => option(text, at, end, config),
        word if word.starts_with(b"-p") && word.len() > 2 => glued(text, at),
        word => short(text, at, word),
    }
}

/// `<password>value</password>`
fn element(text: &[u8], at: usize, end: usize, config: &Config) -> Option<Found> {
    let opens = at > 0 && text[at - 1] == b'<' && config.named_values;
    let tells = names::tells(&text[at..end], config).filter(|_| opens)?;
    let value = value_at(text, end + 1, true).filter(|value| text.get(value.end) == Some(&b'<'))?;
    secret(text, &value, &text[at..end], tells)
}

/// `| NAME | value |`
fn cell(text: &[u8], at: usize, end: usize, config: &Config) -> Option<Found> {
    let tells = names::tells(&text[at..end], config).filter(|_| config.named_values)?;
    let spaces = text[end + 3..].iter().take_while(|byte| **byte == b' ').count();
    secret(text, &value_at(text, end + 3 + spaces, true)?, &text[at..end], tells)
}

/// `set("name", "value")`: both are quoted.
fn argument(text: &[u8], (at, end): (usize, usize), from: usize, config: &Config) -> Option<Found> {
    let name = &text[at..end];
    let tells = names::tells(name, config).filter(|_| config.named_values)?;
    let spaces = text[from..].iter().take(2).take_while(|byte| **byte == b' ').count();
    let value = value_at(text, from + spaces, true).filter(|value| value.quoted)?;
    if tells == Tells::Header { of_header(text, &value) } else { secret(text, &value, name, tells) }
}

/// `echo value | sudo -S`
fn piped(text: &[u8], at: usize) -> Option<Found> {
    let before = text[..at].strip_suffix(b" | ")?;
    let start = before.iter().rev().take(128).position(|byte| *byte == b' ').map(|len| before.len() - len)?;
    let value = value_at(text, start, true).filter(|_| text[..start].ends_with(b"echo "))?;
    chosen(text, value.start, value.end)
}

/// "The password is value." A word of the language is none.
fn told(text: &[u8], from: usize) -> Option<Found> {
    let value = value_at(text, from, false)?;
    let of = value.of(text);
    let end = value.end - of.iter().rev().take_while(|byte| matches!(byte, b'.' | b'!' | b'?' | b':')).count().min(1);
    secret(text, &Value { end, ..value }, b"password", Tells::Chosen)
}

fn option(text: &[u8], at: usize, end: usize, config: &Config) -> Option<Found> {
    let word = &text[at..end];
    let value = value_at(text, end + 1, true)?;
    let tells = names::tells(word.strip_prefix(b"--").unwrap_or(word), config)?;
    secret(text, &value, word, tells)
}

/// The command that stands before `at` on its line.
fn command(text: &[u8], at: usize) -> &[u8] {
    let before = &text[at.saturating_sub(NEAR)..at];
    let ends = |byte: &u8| matches!(byte, b'"' | b'|' | b'&' | b';' | b'(');
    let from = before.iter().rposition(ends).map_or(0, |at| at + 1);
    let line = before[from..].windows(2).rposition(|pair| pair == b"\\n").map_or(from, |at| from + at + 2);
    &before[line..]
}

/// Whether one of these is the command before `at`, or a word of it.
fn is_of(text: &[u8], at: usize, commands: &[&[u8]]) -> bool {
    let mut words = command(text, at).split(|byte| matches!(byte, b' ' | b'/'));
    words.any(|word| commands.contains(&word))
}

fn short(text: &[u8], at: usize, word: &[u8]) -> Option<Found> {
    let (_, commands) = SHORT.iter().find(|(option, _)| *option == word)?;
    let value = value_at(text, at + word.len() + 1, true).filter(|_| is_of(text, at, commands))?;
    chosen(text, value.start, value.end)
}

/// `mysql -pvalue`
fn glued(text: &[u8], at: usize) -> Option<Found> {
    let value = value_at(text, at + 2, true).filter(|_| is_of(text, at, &GLUED))?;
    chosen(text, value.start, value.end)
}

/// What a command takes as a password.
fn chosen(text: &[u8], start: usize, end: usize) -> Option<Found> {
    let password = &text[start..end];
    let digits_only = password.iter().all(u8::is_ascii_digit);
    let good = password.len() >= 6 && !digits_only && !is_stand_in(password) && !is_code(password, false);
    good.then(|| kinds::found(text, start, end))
}

/// `curl -u user:password`
fn of_user(text: &[u8], start: usize, mark: u8) -> Option<Found> {
    let value = value_at(text, start, true)?;
    let at = value.of(text).iter().position(|byte| *byte == mark).filter(|at| *at > 0)?;
    chosen(text, value.start + at + 1, value.end)
}

/// `config set NAME value`, `set -x NAME value`
fn set(text: &[u8], from: usize, config: &Config) -> Option<Found> {
    let mut at = from;
    while text.get(at) == Some(&b'-') {
        at = word_end(text, at) + 1;
    }
    let len = text.get(at..)?.iter().take(NEAR).position(|byte| matches!(byte, b' ' | b'"' | b'\\' | b'='))?;
    let name = &text[at..at + len];
    let tells = names::tells(name, config).filter(|tells| matches!(tells, Tells::Made | Tells::Chosen))?;
    let mut behind = at + len + 1;
    while text.get(behind) == Some(&b'-') {
        behind = word_end(text, behind) + 1;
    }
    let value = value_at(text, behind, true).filter(|_| text[at + len] == b' ')?;
    secret(text, &value, name, tells)
}

/// `ALTER USER a WITH PASSWORD 'value'`, `IDENTIFIED BY 'value'`
fn of_statement(text: &[u8], at: usize, end: usize) -> Option<Found> {
    let is_by = matches!(text[at], b'b' | b'B');
    let identified = !is_by || command(text, at).trim_ascii_end().to_ascii_lowercase().ends_with(b"identified");
    quote(text, end + 1).filter(|(mark, _)| *mark == b'\'' && identified)?;
    let value = value_at(text, end + 1, true)?;
    chosen(text, value.start, value.end)
}

/// The line of a `.netrc`.
fn is_netrc(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(120)..at];
    before.windows(6).any(|part| part == b"login ") && before.windows(8).any(|part| part == b"machine ")
}
