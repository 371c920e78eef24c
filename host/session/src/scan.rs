//! The walk over JSON text: checks the grammar as `JSON.parse` does, token by token, and counts on the way.
//!
//! A session is read through once, at the speed of memory, so what is wanted of a string (its length in UTF-16 units, as
//! it is and as JavaScript would write it, S9.5) is counted in the same pass that finds its end. Nothing here recurses:
//! no nesting is too deep.

use crate::json::{Json, JsonError, Key, hex4};
use crate::paths::FileOf;
use crate::plain;
use crate::stringify::Names;

/// A walk over a text.
#[derive(Clone, Debug)]
pub(crate) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    /// UTF-16 units of the last string that was passed.
    units: u64,
    /// UTF-16 units that JavaScript would write for all that was passed so far. Right only while counting.
    written: u64,
    /// What is written is wanted. Numbers are costly to count, and there are many.
    counting: bool,
    /// A text with bytes that are not UTF-8 was passed.
    lossy: bool,
    /// Carriage returns that were passed as white space.
    returns: usize,
    /// Files of the calls that were passed, for whoever walks to note and take.
    files: Vec<FileOf<'a>>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Scan<'a> {
        Scan { text, at: 0, units: 0, written: 0, counting: false, lossy: false, returns: 0, files: Vec::new() }
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError { at: self.at, what })
    }

    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// UTF-16 units of the string that was just passed.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    /// The next byte that is not white space, not consumed.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(space @ (b' ' | b'\t' | b'\n' | b'\r')) = self.byte() {
            self.returns += usize::from(space == b'\r');
            self.at += 1;
        }
        self.byte()
    }

    /// Whether a text that was passed holds bytes that are not UTF-8.
    pub(crate) fn is_lossy(&self) -> bool {
        self.lossy
    }

    /// Carriage returns between the values that were passed, and before them.
    pub(crate) fn returns(&self) -> usize {
        self.returns
    }

    /// A call was passed that names this file.
    pub(crate) fn note_file(&mut self, file: Option<FileOf<'a>>) {
        self.files.extend(file);
    }

    /// The files that were noted do not count.
    pub(crate) fn forget_files(&mut self) {
        self.files.clear();
    }

    /// The files that were noted since they were taken last.
    pub(crate) fn take_files(&mut self) -> Vec<FileOf<'a>> {
        std::mem::take(&mut self.files)
    }

    /// Steps over one byte of punctuation.
    fn step(&mut self) {
        self.at += 1;
        self.written += 1;
    }

    /// Steps over a comma between two parts of an array or object that was checked before.
    pub(crate) fn separator(&mut self) {
        if self.peek() == Some(b',') {
            self.step();
        }
    }

    /// Nothing but white space is left.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("something behind the value"),
        }
    }

    /// A member's name and its colon.
    pub(crate) fn key(&mut self) -> Result<Key<'a>, JsonError> {
        if self.peek() != Some(b'"') {
            return self.fail("expected a name");
        }
        let start = self.at + 1;
        let escaped = self.string()?;
        let key = Key::new(&self.text[start..self.at - 1], escaped);
        match self.peek() {
            Some(b':') => self.step(),
            _ => return self.fail("expected a colon"),
        }
        Ok(key)
    }

    /// Walks an object: `member` is called with each name and must consume the value with one of the methods here.
    #[inline]
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(Key<'a>, &mut Scan<'a>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.parts(b'}', |scan| {
            let key = scan.key()?;
            member(key, scan)
        })
    }

    /// Walks an array: `item` is called at each item and must consume it.
    #[inline]
    pub(crate) fn array(&mut self, item: impl FnMut(&mut Scan<'a>) -> Result<(), JsonError>) -> Result<(), JsonError> {
        self.parts(b']', item)
    }

    #[inline]
    fn parts(
        &mut self,
        close: u8,
        mut part: impl FnMut(&mut Scan<'a>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.peek();
        self.step();
        if self.peek() == Some(close) {
            self.step();
            return Ok(());
        }
        loop {
            part(self)?;
            match self.peek() {
                Some(b',') => self.step(),
                Some(b) if b == close => break self.step(),
                _ => return self.fail("expected a comma or a closing bracket"),
            }
        }
        Ok(())
    }

    /// Any one value, checked and stepped over.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Json<'a>, JsonError> {
        self.value_noting(None)
    }

    /// The same, and its length as [`Json::stringify_len`] gives it.
    pub(crate) fn value_and_written(&mut self) -> Result<(Json<'a>, u64), JsonError> {
        self.value_written(&mut Names::default())
    }

    /// The length of a value, likewise, and the member of that name, if it is an object and has one.
    pub(crate) fn written_and_member(&mut self, name: &'static str) -> Result<(u64, Option<Json<'a>>), JsonError> {
        let mut names = Names::and(name);
        let (_, written) = self.value_written(&mut names)?;
        Ok((written, names.span().map(|span| Json::checked(&self.text[span]))))
    }

    fn value_written(&mut self, names: &mut Names<'a>) -> Result<(Json<'a>, u64), JsonError> {
        let before = self.written;
        self.counting = true;
        let value = self.value_noting(Some(names))?;
        self.counting = false;
        Ok((value, self.written - before))
    }

    fn value_noting(&mut self, names: Option<&mut Names<'a>>) -> Result<Json<'a>, JsonError> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => drop(self.string()?),
            Some(b'{' | b'[') => self.nested(names)?,
            _ => self.atom()?,
        }
        Ok(Json::checked(&self.text[start..self.at]))
    }

    fn nested(&mut self, mut names: Option<&mut Names<'a>>) -> Result<(), JsonError> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Some(b @ (b'{' | b'[')) => {
                    self.step();
                    open.push(b);
                    if let Some(names) = &mut names {
                        names.open();
                    }
                    if self.peek() != Some(b + 2) {
                        self.name_in(b, &mut names)?;
                        continue;
                    }
                }
                Some(b'"') => drop(self.string()?),
                _ => self.atom()?,
            }
            if self.behind_value(&mut open, &mut names)? {
                return Ok(());
            }
        }
    }

    /// The name of the next member, where the innermost open bracket is an object's.
    fn name_in(&mut self, bracket: u8, names: &mut Option<&mut Names<'a>>) -> Result<(), JsonError> {
        if bracket == b'{' {
            let from = self.written;
            let key = self.key()?;
            if let Some(names) = names {
                self.peek();
                names.begin(key, from, self.at);
            }
        }
        Ok(())
    }

    /// Behind a value: closes what closes, and stops before the next value. True when all is closed.
    fn behind_value(&mut self, open: &mut Vec<u8>, names: &mut Option<&mut Names<'a>>) -> Result<bool, JsonError> {
        while let Some(&inner) = open.last() {
            if let Some(names) = names {
                names.end(self.written, self.at);
            }
            match self.peek() {
                Some(b',') => {
                    self.step();
                    self.name_in(inner, names)?;
                    return Ok(false);
                }
                Some(b) if b == inner + 2 => {
                    self.step();
                    open.pop();
                    if let Some(names) = names {
                        self.written -= names.close();
                    }
                }
                _ => return self.fail("expected a comma or a closing bracket"),
            }
        }
        Ok(true)
    }

    fn atom(&mut self) -> Result<(), JsonError> {
        let word: &[u8] = match self.byte() {
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => return self.counted_number(),
        };
        if !self.text[self.at..].starts_with(word) {
            return self.fail("expected a value");
        }
        self.at += word.len();
        self.written += word.len() as u64;
        Ok(())
    }

    fn counted_number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.number()?;
        if self.counting {
            self.written += number_len(&self.text[start..self.at]);
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.fail("expected a value"),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        let rest = &self.text[start..];
        self.at += rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        if self.at == start { self.fail("expected a digit") } else { Ok(()) }
    }

    /// Steps over a string, opening quote to closing quote, and counts it; true if there is an escape in it.
    #[inline]
    fn string(&mut self) -> Result<bool, JsonError> {
        match plain::short(&self.text[self.at + 1..]) {
            Some(len) => {
                self.units = len as u64;
                self.written += 2 + self.units;
                self.at += 2 + len;
                Ok(false)
            }
            None => self.long_string(),
        }
    }

    #[inline(never)]
    fn long_string(&mut self) -> Result<bool, JsonError> {
        let start = self.at + 1;
        self.at = start;
        let mut sum = Sum::default();
        loop {
            let run = plain::run(&self.text[self.at..]);
            self.at += run.len;
            sum.simple += run.escapes;
            sum.surplus += run.surplus;
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => self.escape(&mut sum)?,
                Some(0x80..) => self.characters(&mut sum),
                Some(_) => return self.fail("raw control character in a string"),
                None => return self.fail("string without an end"),
            }
        }
        self.units = (self.at - start) as u64 - sum.surplus - sum.simple;
        self.written += 2 + self.units + sum.growth + sum.simple;
        self.at += 1;
        Ok(sum.escaped || sum.simple > 0)
    }

    /// Steps over an escape; over both where two are a surrogate pair.
    fn escape(&mut self, sum: &mut Sum) -> Result<(), JsonError> {
        let (bytes, units, growth) = match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => (2, 1, 1),
            Some(b'/') => (2, 1, 0),
            Some(b'u') => match self.unit_at(self.at) {
                Some(0xD800..0xDC00) if matches!(self.unit_at(self.at + 6), Some(0xDC00..0xE000)) => (12, 2, 0),
                Some(unit) => (6, 1, written_growth(unit)),
                None => return self.fail("bad escape"),
            },
            _ => return self.fail("bad escape"),
        };
        self.at += bytes;
        sum.surplus += (bytes - units) as u64;
        sum.growth += growth;
        sum.escaped = true;
        Ok(())
    }

    /// Steps over characters beyond ASCII.
    fn characters(&mut self, sum: &mut Sum) {
        while let Some((bytes, units)) = character(&self.text[self.at..]) {
            self.at += bytes;
            sum.surplus += (bytes - units) as u64;
        }
        if let Some(0x80..) = self.byte() {
            self.lossy = true;
            let rest = &self.text[self.at..];
            let run = &rest[..rest.iter().position(u8::is_ascii).unwrap_or(rest.len())];
            let units = String::from_utf8_lossy(run).encode_utf16().count();
            self.at += run.len();
            // U+FFFD never has more units than the bytes it stands for.
            sum.surplus += (run.len() - units) as u64;
        }
    }

    /// The UTF-16 unit of an escape `\uXXXX` that stands there.
    fn unit_at(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().all(u8::is_ascii_hexdigit).then(|| hex4(digits))
    }
}

/// What is counted of a string.
#[derive(Default)]
struct Sum {
    /// Escapes of two bytes that stand for one unit, and that JavaScript would write so too.
    simple: u64,
    /// Bytes it has in the text beyond its UTF-16 units.
    surplus: u64,
    /// Units that JavaScript would write for it beyond its own.
    growth: u64,
    /// There is an escape in it.
    escaped: bool,
}

/// Bytes and UTF-16 units of the character beyond ASCII that stands at the start, if it is valid.
fn character(text: &[u8]) -> Option<(usize, usize)> {
    const FIRST: u8 = 0x80;
    const LAST: u8 = 0xBF;
    match text {
        [0xC2..=0xDF, FIRST..=LAST, ..] => Some((2, 1)),
        [0xE0, 0xA0..=LAST, FIRST..=LAST, ..]
        | [0xE1..=0xEC | 0xEE..=0xEF, FIRST..=LAST, FIRST..=LAST, ..]
        | [0xED, FIRST..=0x9F, FIRST..=LAST, ..] => Some((3, 1)),
        [0xF0, 0x90..=LAST, FIRST..=LAST, FIRST..=LAST, ..]
        | [0xF1..=0xF3, FIRST..=LAST, FIRST..=LAST, FIRST..=LAST, ..]
        | [0xF4, FIRST..=0x8F, FIRST..=LAST, FIRST..=LAST, ..] => Some((4, 2)),
        _ => None,
    }
}

/// Units beyond one that JavaScript writes for this unit, alone in a string.
fn written_growth(unit: u32) -> u64 {
    match unit {
        0x22 | 0x5C | 8 | 9 | 10 | 12 | 13 => 1,
        0..0x20 | 0xD800..0xE000 => 5,
        _ => 0,
    }
}

/// Units of a number as JavaScript would write it.
fn number_len(raw: &[u8]) -> u64 {
    if raw.len() < 16 && raw.iter().all(u8::is_ascii_digit) {
        return raw.len() as u64;
    }
    let number = std::str::from_utf8(raw).ok().and_then(|text| text.parse::<f64>().ok());
    match number {
        Some(0.0) => 1,
        Some(n) if n.is_finite() => ryu_js::Buffer::new().format_finite(n).len() as u64,
        _ => "null".len() as u64,
    }
}
