//! Values that a name beside them makes secrets.
use super::Found;
use super::names::{self, Tells};
use super::prefixes::is_made;
use super::random::{Make, is_stand_in, looks_random};
use super::words::{ends_line, quote};
use crate::config::Config;

/// Most bytes of a value.
const MOST: usize = 4096;
/// Fewest bytes of a password, and of one in a file of environment variables.
const SHORTEST: usize = 8;
const SHORTEST_VARIABLE: usize = 6;

/// A value behind a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    quoted: bool,
    /// It stands directly behind the sign.
    close: bool,
}

impl Value {
    /// The same, ended by the first of these signs.
    fn until(&self, text: &[u8], signs: &[u8]) -> Self {
        let len = self.of(text).iter().position(|byte| signs.contains(byte));
        Self { end: len.map_or(self.end, |len| self.start + len), ..*self }
    }

    fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start..self.end]
    }
}

/// The value behind the `=` or `:` at `at`, if it can be one.
pub(super) fn behind(text: &[u8], at: usize) -> Option<Value> {
    let sign = text[at];
    let mut start = at + 1;
    match (sign, text.get(start)) {
        // `==`, `::`, `:=`: the sign that follows is looked at by itself, or is none.
        (b'=', Some(b'=' | b'~')) | (b':', Some(b':' | b'=' | b'/')) => return None,
        (b'=', Some(b'>')) => start += 1,
        _ => {}
    }
    if at > 0 && matches!(text[at - 1], b'=' | b'!' | b'<' | b'>') || sign == b':' && at > 0 && text[at - 1] == b':' {
        return None;
    }
    let close = start == at + 1;
    let spaces = text[start..].iter().take(8).take_while(|byte| **byte == b' ').count();
    value_at(text, start + spaces, close && spaces == 0)
}

/// The value that begins at `start`.
fn value_at(text: &[u8], start: usize, close: bool) -> Option<Value> {
    let window = text.len().min(start.checked_add(MOST)?);
    if let Some((mark, len)) = quote(text, start) {
        let from = start + len;
        let inside = text.get(from..window)?;
        let stop = inside.iter().position(|byte| *byte == mark || *byte == b'"').map(|stop| from + stop)?;
        // Of an escaped quote the backslashes before it are no part of the value; a line break ends it.
        let end = stop - text[from..stop].iter().rev().take_while(|byte| **byte == b'\\').count();
        let broken = (from..end).any(|at| text[at] == b'\\' && ends_line(text, at));
        return (!broken && from < end).then_some(Value { start: from, end, quoted: true, close });
    }
    let ends = |byte: u8| byte <= b' ' || byte >= 0x7f || b"\"'`\\,;)}]>|<".contains(&byte);
    let len = text.get(start..window)?.iter().position(|byte| ends(*byte)).unwrap_or(window - start);
    (len > 0).then_some(Value { start, end: start + len, quoted: false, close })
}

/// The value as a secret, if the name before the sign at `at` tells that it is one.
pub(super) fn named(text: &[u8], at: usize, value: &Value, config: &Config) -> Option<Found> {
    let (begin, name) = names::before(text, at)?;
    let query = begin > 0 && matches!(text[begin - 1], b'?' | b'&' | b';');
    let tells = names::tells(name, config).or_else(|| in_query(name).filter(|_| query))?;
    let value = &if query { value.until(text, b"&#") } else { *value };
    match tells {
        Tells::Header => of_header(text, value),
        Tells::Cookies => of_cookies(text, value.start),
        Tells::Made(kind) if config.named_values && is_made_secret(text, value, name) => {
            Some(Found::new(value.start, value.end, kind))
        }
        Tells::Chosen(kind) if config.named_values && is_chosen_secret(text, value, name) => {
            Some(Found::chosen(value.start, value.end, kind))
        }
        Tells::Made(_) | Tells::Chosen(_) => None,
    }
}

/// Signatures and keys in the query of a URL give what they sign.
fn in_query(name: &[u8]) -> Option<Tells> {
    let names: [&[u8]; 6] = [b"sig", b"signature", b"x-amz-signature", b"x-goog-signature", b"key", b"code"];
    names.contains(&name.to_ascii_lowercase().as_slice()).then_some(Tells::Made("url-signature"))
}

/// A key or token: it looks as if thrown. Of an environment variable a shorter one will do.
fn is_made_secret(text: &[u8], value: &Value, name: &[u8]) -> bool {
    let bytes = value.of(text);
    let made = is_made(bytes) || is_variable(text, value, name) && looks_random(bytes, 12);
    made && !is_stand_in(bytes) && !is_code(bytes, value.quoted)
}

/// A password: no stand-in, no code, and of more than one sort of signs.
fn is_chosen_secret(text: &[u8], value: &Value, name: &[u8]) -> bool {
    let bytes = value.of(text);
    let variable = is_variable(text, value, name);
    let least = if variable { SHORTEST_VARIABLE } else { SHORTEST };
    if bytes.len() < least || is_stand_in(bytes) || is_code(bytes, value.quoted) || same_name(bytes, name) {
        return false;
    }
    let make = Make::of(bytes);
    let sorts =
        [make.digits, make.lower, make.upper, make.len - make.alnum()].iter().filter(|count| **count > 0).count();
    if bytes.contains(&b' ') {
        return false;
    }
    match (variable, value.quoted || value.close) {
        (true, _) => sorts >= 2 || make.len >= 10,
        (false, true) => sorts >= 2 && (make.digits > 0 || sorts >= 3),
        (false, false) => sorts >= 3 || sorts == 2 && make.digits > 0 && make.digits < make.len,
    }
}

/// `NAME=value` up to the line's end, the name all in capitals.
fn is_variable(text: &[u8], value: &Value, name: &[u8]) -> bool {
    let end = value.end + quote(text, value.end).map_or(0, |(_, len)| len);
    value.close
        && names::is_variable(name)
        && (ends_line(text, value.end) || ends_line(text, end) || text.get(end) == Some(&b' '))
}

/// A value that only says its name again: `password: user_password`.
fn same_name(value: &[u8], name: &[u8]) -> bool {
    let letters = |text: &[u8]| -> Vec<u8> {
        text.iter().filter(|byte| byte.is_ascii_alphabetic()).map(u8::to_ascii_lowercase).collect()
    };
    let (value, name) = (letters(value), letters(name));
    value == name || value.ends_with(b"password") || value.ends_with(b"secret") || value.ends_with(b"token")
}

/// A reference, a call or a path rather than a value.
fn is_code(value: &[u8], quoted: bool) -> bool {
    let has = |signs: &[u8]| value.iter().any(|byte| signs.contains(byte));
    // The base64 of a key may begin with a slash too.
    let path = value.starts_with(b"/") && !looks_random(value, 32)
        || value.starts_with(b"./")
        || value.starts_with(b"~/")
        || value.starts_with(b"$");
    let url = value.windows(3).any(|part| part == b"://");
    if path || url || value.starts_with(b"arn:") || value.starts_with(b"op:") {
        return true;
    }
    if quoted {
        return false;
    }
    has(b"(){}[]*")
        || value.starts_with(b"x:")
        || value.starts_with(b"&")
        || value.starts_with(b"@")
        || is_dotted_name(value)
}

/// `settings.API_KEY`, `self.token`, `Foo::bar`: parts that are names, none of which holds a digit in the middle of it.
fn is_dotted_name(value: &[u8]) -> bool {
    let is_name = |part: &[u8]| {
        !part.is_empty()
            && part.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || *byte == b'?' || *byte == b'!')
    };
    value.contains(&b'.') && value.split(|byte| *byte == b'.').all(is_name)
        || value.windows(2).any(|part| part == b"::" || part == b"->")
}

/// `Bearer …`, `Basic …` and others behind `Authorization:`.
fn of_header(text: &[u8], value: &Value) -> Option<Found> {
    let scheme_end = super::words::word_end(text, value.start);
    if text.get(scheme_end) == Some(&b' ') {
        return of_scheme(text, value.start, scheme_end).or_else(|| other_scheme(text, value.start, scheme_end));
    }
    let bytes = value.of(text);
    (looks_random(bytes, 16) && !is_stand_in(bytes)).then(|| Found::new(value.start, value.end, "token"))
}

/// A scheme that only counts where a header names it.
fn other_scheme(text: &[u8], at: usize, end: usize) -> Option<Found> {
    let schemes: [&[u8]; 4] = [b"token", b"apikey", b"key", b"bot"];
    schemes
        .contains(&text[at..end].to_ascii_lowercase().as_slice())
        .then(|| credential(text, end + 1, "token"))
        .flatten()
}

/// A scheme of authentication at `at` and its credential: the words `Bearer` and `Basic`.
pub(super) fn of_scheme(text: &[u8], at: usize, end: usize) -> Option<Found> {
    match &text[at..end] {
        b"Bearer" | b"bearer" | b"BEARER" => credential(text, end + 1, "bearer-token"),
        b"Basic" | b"basic" => basic(text, end + 1),
        _ => None,
    }
}

fn credential(text: &[u8], start: usize, kind: &str) -> Option<Found> {
    let value = token_at(text, start);
    let bytes = &text[value.0..value.1];
    let first = super::words::word_end(text, value.0);
    // One of a known kind is told as that.
    if first > value.0 && super::prefixes::known(text, value.0, first, &Config::default()).is_some() {
        return None;
    }
    let good = looks_random(bytes, 16) || looks_random(bytes, 12) && ends_line(text, value.1) || is_made(bytes);
    (good && !is_stand_in(bytes)).then(|| Found::new(value.0, value.1, kind))
}

/// `user:password` in base64.
fn basic(text: &[u8], start: usize) -> Option<Found> {
    let value = token_at(text, start);
    let decoded = base64(&text[value.0..value.1])?;
    let is_it = decoded.len() >= 5 && decoded.contains(&b':') && decoded.iter().all(|byte| (0x20..0x7f).contains(byte));
    is_it.then(|| Found::chosen(value.0, value.1, "basic-auth"))
}

/// Where the token that begins at `start` stands: letters, digits and the signs of base64 and of URLs.
fn token_at(text: &[u8], start: usize) -> (usize, usize) {
    let takes = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    let len = text.get(start..).map_or(0, |rest| rest.iter().take(MOST).take_while(|byte| takes(byte)).count());
    (start.min(text.len()), start.min(text.len()) + len)
}

/// The pairs of a cookie header: of each the value, if it looks thrown. The first that does counts; the header is gone over
/// from there.
fn of_cookies(text: &[u8], start: usize) -> Option<Found> {
    let mut at = start;
    for _ in 0..32 {
        let name = super::words::word_end(text, at);
        if name == at || text.get(name) != Some(&b'=') {
            return None;
        }
        let (from, end) = token_at(text, name + 1);
        if looks_random(&text[from..end], 16) {
            return Some(Found::new(from, end, "cookie"));
        }
        if !text[end..].starts_with(b"; ") {
            return None;
        }
        at = end + 2;
    }
    None
}

/// The value of an option such as `--password value`, `-u user:password`, `machine … login … password value`.
pub(super) fn of_option(text: &[u8], at: usize, end: usize, config: &Config) -> Option<Found> {
    let word = &text[at..end];
    if word == b"-u" || word == b"--user" || word == b"--proxy-user" {
        return of_user(text, end + 1);
    }
    let long = word.starts_with(b"--") && config.named_values;
    let netrc = word == b"password" && is_netrc(text, at);
    if !long && !netrc {
        return None;
    }
    let value = value_at(text, end + 1, true)?;
    let tells = names::tells(word.trim_ascii_start().strip_prefix(b"--").unwrap_or(word), config)?;
    match tells {
        Tells::Made(kind) => is_made_secret(text, &value, word).then(|| Found::new(value.start, value.end, kind)),
        Tells::Chosen(kind) => {
            is_chosen_secret(text, &value, word).then(|| Found::chosen(value.start, value.end, kind))
        }
        Tells::Header | Tells::Cookies => None,
    }
}

/// The line of a `.netrc`.
fn is_netrc(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(120)..at];
    before.windows(6).any(|part| part == b"login ") && before.windows(8).any(|part| part == b"machine ")
}

/// `curl -u user:password`.
fn of_user(text: &[u8], start: usize) -> Option<Found> {
    let value = value_at(text, start, true)?;
    let colon = value.of(text).iter().position(|byte| *byte == b':')?;
    let password = &text[value.start + colon + 1..value.end];
    let digits_only = password.iter().all(u8::is_ascii_digit);
    let good = password.len() >= 6 && colon > 0 && !digits_only && !is_stand_in(password) && !is_code(password, false);
    good.then(|| Found::chosen(value.start + colon + 1, value.end, "password"))
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = &text[..text.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1)];
    if text.len() < 7 || text.len() > MOST {
        return None;
    }
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::with_capacity(text.len()));
    for byte in text {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
