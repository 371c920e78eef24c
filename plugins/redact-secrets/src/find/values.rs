//! Values that a name beside them makes secrets.
use super::Found;
use super::kinds;
use super::names::{self, Tells};
use super::prefixes::is_made;
use super::random::{Make, is_stand_in, is_unspeakable, looks_random};
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
    pub(super) quoted: bool,
    /// It stands directly behind the sign.
    pub(super) close: bool,
}

impl Value {
    /// The same, ended by the first of these signs.
    fn until(&self, text: &[u8], signs: &[u8]) -> Self {
        let len = self.of(text).iter().position(|byte| signs.contains(byte));
        Self { end: len.map_or(self.end, |len| self.start + len), ..*self }
    }

    pub(super) fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
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
    // `**Password:** x`
    start += text[start..].iter().take(2).take_while(|byte| **byte == b'*').count();
    let spaces = text[start..].iter().take(8).take_while(|byte| **byte == b' ').count();
    value_at(text, start + spaces, close && spaces == 0)
}

/// The value that begins at `start`.
pub(super) fn value_at(text: &[u8], start: usize, close: bool) -> Option<Value> {
    let window = text.len().min(start.checked_add(MOST)?);
    if let Some((mark, len)) = quote(text, start) {
        let from = start + len;
        let inside = text.get(from..window)?;
        // Of an escaped quote the backslashes before it are no part of the value; a line break ends it.
        let end = from + closing(inside, mark, len - 1)?;
        let broken = (from..end).any(|at| text[at] == b'\\' && ends_line(text, at));
        return (!broken && from < end).then_some(Value { start: from, end, quoted: true, close });
    }
    let ends = |byte: u8| byte <= b' ' || byte >= 0x7f || b"\"'`\\,;)}]>|<".contains(&byte);
    let len = text.get(start..window)?.iter().position(|byte| ends(*byte)).unwrap_or(window - start);
    (len > 0).then_some(Value { start, end: start + len, quoted: false, close })
}

/// Where a text ends that began with this quote behind so many backslashes: at the same quote with no more of them, which
/// are left out, or at the end of the JSON string.
fn closing(inside: &[u8], mark: u8, slashes: usize) -> Option<usize> {
    let mut before = 0;
    for (at, byte) in inside.iter().enumerate() {
        let ends = *byte == mark && before <= slashes || *byte == b'"' && before == 0;
        if ends {
            return Some(at - before);
        }
        before = if *byte == b'\\' { before + 1 } else { 0 };
    }
    None
}

/// The value as a secret, if the name before the sign at `at` tells that it is one.
pub(super) fn named(text: &[u8], at: usize, value: &Value, config: &Config) -> Option<Found> {
    let (begin, name) = names::before(text, at).map(|found| behind_type(text, found))?;
    // A part of a path such as `arn:aws:secretsmanager:…:secret:x`.
    if text[at] == b':' && begin > 0 && text[begin - 1] == b':' {
        return None;
    }
    let query = begin > 0 && matches!(text[begin - 1], b'?' | b'&' | b';');
    let tells = names::tells(name, config).or_else(|| in_query(name).filter(|_| query));
    let tells = tells.or_else(|| super::pairs::tells(text, begin, name, config))?;
    let value = &if query { value.until(text, b"&#") } else { *value };
    match tells {
        Tells::Header => of_header(text, value),
        Tells::Cookies => None,
        _ if config.named_values => secret(text, value, name, tells),
        _ => None,
    }
}

/// The value of this name as a secret, if it looks like one.
pub(super) fn secret(text: &[u8], value: &Value, name: &[u8], tells: Tells) -> Option<Found> {
    let is_one = match tells {
        Tells::Made => is_made_secret(text, value, name),
        Tells::Chosen => is_chosen_secret(text, value, name),
        Tells::Pair => kinds::is_pair(value.of(text)),
        Tells::Header | Tells::Cookies => false,
    };
    is_one.then(|| kinds::found(text, value.start, value.end))
}

/// The name behind which a type stands: of `token: str` the name is `token`; and one of two words, `API key`.
fn behind_type<'a>(text: &'a [u8], (begin, name): (usize, &'a [u8])) -> (usize, &'a [u8]) {
    let is_type = matches!(name, b"str" | b"string" | b"String");
    let before = text[..begin].trim_ascii_end();
    if is_type && before.ends_with(b":") {
        return names::before(text, before.len() - 1).unwrap_or((begin, name));
    }
    let spoken = name.eq_ignore_ascii_case(b"key")
        && [&b"api "[..], b"API ", b"Api "].iter().any(|word| text[..begin].ends_with(word));
    if spoken { (begin - 4, b"apikey") } else { (begin, name) }
}

/// Signatures and keys in the query of a URL give what they sign.
fn in_query(name: &[u8]) -> Option<Tells> {
    let names: [&[u8]; 6] = [b"sig", b"signature", b"x-amz-signature", b"x-goog-signature", b"key", b"code"];
    names.contains(&name.to_ascii_lowercase().as_slice()).then_some(Tells::Made)
}

/// A key or token: it looks as if thrown. Of an environment variable a shorter one will do.
fn is_made_secret(text: &[u8], value: &Value, name: &[u8]) -> bool {
    let bytes = value.of(text);
    let made = is_made(bytes) || is_unspeakable(bytes) || is_variable(text, value, name) && looks_random(bytes, 12);
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
    let again: [&[u8]; 5] = [b"password", b"secret", b"token", b"credential", b"credentials"];
    value == name || again.iter().any(|end| value.ends_with(end))
}

/// A reference, a call or a path rather than a value.
pub(super) fn is_code(value: &[u8], quoted: bool) -> bool {
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
    if is_constant(value) || value.starts_with(b"+") && !looks_random(value, 32) {
        return true;
    }
    if quoted {
        return false;
    }
    let goes_on = [&b"??"[..], b"&&", b"||", b"===", b"!0:", b"!1:"];
    if goes_on.iter().any(|sign| holds(value, sign)) {
        return true;
    }
    let assigned = value.iter().position(|byte| *byte == b'=').is_some_and(|at| is_dotted_name(&value[..at]));
    assigned
        || has(b"(){}[]*")
        || value.starts_with(b"x:")
        || value.starts_with(b"&")
        || value.starts_with(b"@")
        || is_dotted_name(value)
}

fn holds(value: &[u8], part: &[u8]) -> bool {
    value.windows(part.len()).any(|window| window == part)
}

/// The name of a variable: `AWS_SECRET_ACCESS_KEY`.
fn is_constant(value: &[u8]) -> bool {
    value.contains(&b'_') && value.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
}

/// `settings.API_KEY`, `self.token`, `Foo::bar`: parts that are names, none of which holds a digit in the middle of it.
fn is_dotted_name(value: &[u8]) -> bool {
    let is_name = |part: &[u8]| {
        !part.is_empty()
            && part.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'?' | b'!' | b'1'..=b'3'))
            && !part[0].is_ascii_digit()
    };
    value.contains(&b'.') && value.split(|byte| *byte == b'.').all(is_name)
        || value.windows(2).any(|part| part == b"::" || part == b"->")
}

/// `Bearer …`, `Basic …` and others behind `Authorization:`.
pub(super) fn of_header(text: &[u8], value: &Value) -> Option<Found> {
    let scheme_end = super::words::word_end(text, value.start);
    if text.get(scheme_end) == Some(&b' ') {
        return of_scheme(text, value.start, scheme_end).or_else(|| other_scheme(text, value.start, scheme_end));
    }
    let bytes = value.of(text);
    (looks_random(bytes, 16) && !is_stand_in(bytes)).then(|| kinds::found(text, value.start, value.end))
}

/// A scheme that only counts where a header names it.
fn other_scheme(text: &[u8], at: usize, end: usize) -> Option<Found> {
    let schemes: [&[u8]; 4] = [b"token", b"apikey", b"key", b"bot"];
    schemes.contains(&text[at..end].to_ascii_lowercase().as_slice()).then(|| credential(text, end + 1)).flatten()
}

/// A scheme of authentication at `at` and its credential: the words `Bearer` and `Basic`.
pub(super) fn of_scheme(text: &[u8], at: usize, end: usize) -> Option<Found> {
    match &text[at..end] {
        b"Bearer" | b"bearer" | b"BEARER" => credential(text, end + 1),
        b"Basic" | b"basic" => basic(text, end + 1),
        _ => None,
    }
}

fn credential(text: &[u8], start: usize) -> Option<Found> {
    let value = token_at(text, start);
    let bytes = &text[value.0..value.1];
    let good = looks_random(bytes, 16)
        || looks_random(bytes, 12) && ends_line(text, value.1)
        || is_made(bytes)
        || is_unspeakable(bytes);
    (good && !is_stand_in(bytes)).then(|| kinds::found(text, value.0, value.1))
}

/// `user:password` in base64.
fn basic(text: &[u8], start: usize) -> Option<Found> {
    let value = token_at(text, start);
    kinds::is_pair(&text[value.0..value.1]).then(|| kinds::found(text, value.0, value.1))
}

/// Where the token that begins at `start` stands: letters, digits and the signs of base64 and of URLs.
fn token_at(text: &[u8], start: usize) -> (usize, usize) {
    let takes = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    let len = text.get(start..).map_or(0, |rest| rest.iter().take(MOST).take_while(|byte| takes(byte)).count());
    (start.min(text.len()), start.min(text.len()) + len)
}

/// The pairs of a cookie header that begins at `start`: of each the value, if it looks thrown.
pub(super) fn cookies(text: &[u8], start: usize) -> Vec<Found> {
    let (mut found, mut at) = (Vec::new(), start);
    for _ in 0..32 {
        let name = text[at..].iter().take(MOST).take_while(|byte| !b"=; \"\\".contains(byte)).count();
        if name == 0 || text.get(at + name) != Some(&b'=') {
            break;
        }
        let from = at + name + 1;
        let end = from + text[from..].iter().take(MOST).take_while(|byte| !b"; \"\\',".contains(byte)).count();
        if looks_random(&text[from..end], 16) || is_made(&text[from..end]) {
            found.push(kinds::found(text, from, end));
        }
        if !text[end..].starts_with(b"; ") {
            break;
        }
        at = end + 2;
    }
    found
}
