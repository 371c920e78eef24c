//! Finding secrets in a text.
//!
//! The text is the inside of a JSON string, or JSON itself, as it stands in the session's line: escapes are not undone, so
//! that what is found can be replaced where it stands. One pass goes from word to word ([`words`]); only where a word or a
//! sign begins something telling is it looked at closely, so a byte of ordinary text costs little.
mod commands;
mod keys;
mod kinds;
pub mod names;
mod pairs;
pub mod prefixes;
pub mod random;
mod urls;
mod values;
pub mod words;

use crate::config::Config;

/// A secret: where it stands, and of what kind it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its first byte.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// Its kind, as the placeholder names it.
    pub kind: String,
    /// People may have chosen it, so it may be easy to guess.
    pub chosen: bool,
}

/// All secrets that begin in `text[from..until]`, in order, none within another. What lies behind `until` is looked at only
/// to see where they end.
#[must_use]
pub fn find(text: &[u8], from: usize, until: usize, config: &Config) -> Vec<Found> {
    find_on(text, from, until, config).0
}

/// The same, and where it stopped: at `until`, or behind what begins before it.
pub(crate) fn find_on(text: &[u8], from: usize, until: usize, config: &Config) -> (Vec<Found>, usize) {
    let mut finder = Finder { text, config, found: Vec::new() };
    let at = finder.walk(from, until.min(text.len()));
    (finder.found, at)
}

/// The walk over a text.
struct Finder<'a> {
    text: &'a [u8],
    config: &'a Config,
    found: Vec<Found>,
}

impl Finder<'_> {
    fn walk(&mut self, from: usize, until: usize) -> usize {
        let mut at = from;
        while at < until {
            let byte = self.text[at];
            at = match words::CLASS[byte as usize] {
                words::WORD => self.word(at),
                words::ESCAPE => words::behind_escape(self.text, at),
                words::SIGN => self.sign(at),
                _ => at + 1,
            };
        }
        at
    }

    /// A word begins here. Gives where to go on.
    fn word(&mut self, at: usize) -> usize {
        let end = words::word_end(self.text, at);
        if self.is_plain(at, end) { end } else { self.close_look(at, end) }
    }

    /// Most words are spared by their length and what stands behind them.
    #[inline]
    fn is_plain(&self, at: usize, end: usize) -> bool {
        end - at < prefixes::SHORTEST
            && !commands::may_be(self.text, at, end)
            && !prefixes::may_be_short(self.text, at, end)
            && self.config.prefixes.is_empty()
    }

    fn close_look(&mut self, at: usize, end: usize) -> usize {
        let found = self.known(at, end).or_else(|| self.spoken(at, end));
        self.keep(found, end)
    }

    /// What a word shows by its own form.
    fn known(&self, at: usize, end: usize) -> Option<Found> {
        prefixes::known(self.text, at, end, self.config)
            .or_else(|| keys::private_key(self.text, at, end))
            .or_else(|| keys::putty(self.text, at, end))
    }

    /// What a word says of the value behind it: an option, an authentication scheme.
    fn spoken(&self, at: usize, end: usize) -> Option<Found> {
        if !commands::may_be(self.text, at, end) {
            return None;
        }
        commands::of_word(self.text, at, end, self.config).or_else(|| values::of_scheme(self.text, at, end))
    }

    /// A `=` or `:`. Gives where to go on.
    fn sign(&mut self, at: usize) -> usize {
        if self.text[at..].starts_with(b"://") {
            let found = urls::credentials(self.text, at);
            return self.keep(found, at + 3);
        }
        let behind_digit = at > 0 && self.text[at - 1].is_ascii_digit();
        if let Some(found) = behind_digit.then(|| prefixes::of_two(self.text, at)).flatten() {
            return self.keep(Some(found), at + 1);
        }
        if !names::may_tell(self.text, at, self.config) {
            return at + 1;
        }
        let Some(value) = values::behind(self.text, at) else { return at + 1 };
        if names::before(self.text, at).and_then(|(_, name)| names::tells(name, self.config))
            == Some(names::Tells::Cookies)
        {
            let cookies = values::cookies(self.text, value.start);
            return cookies.into_iter().fold(at + 1, |at, cookie| self.keep(Some(cookie), at));
        }
        let first = words::word_end(self.text, value.start);
        if first > value.start && self.known(value.start, first).is_some() {
            return value.start;
        }
        let found = values::named(self.text, at, &value, self.config);
        self.keep(found, at + 1)
    }

    fn keep(&mut self, found: Option<Found>, otherwise: usize) -> usize {
        let Some(found) = found else { return otherwise };
        let end = found.end.max(otherwise);
        if !self.config.ignores(&found.kind) && !self.config.allows(&self.text[found.start..found.end]) {
            self.found.push(found);
        }
        end
    }
}

impl Found {
    fn new(start: usize, end: usize, kind: &str) -> Self {
        Self { start, end, kind: kind.into(), chosen: false }
    }

    fn chosen(start: usize, end: usize, kind: &str) -> Self {
        Self { chosen: true, ..Self::new(start, end, kind) }
    }
}
