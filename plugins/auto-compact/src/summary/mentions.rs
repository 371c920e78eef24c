//! Paths and identifiers that occur, and which of them matter most.
use std::collections::{BTreeMap, BTreeSet};

use super::text;

/// Names that are kept at once; when there are more, the less important half goes.
const MOST: usize = 4096;
/// A longer token is data rather than a name.
const LONGEST: usize = 160;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A path, a file's name or an address.
    Path,
    /// The name of something in code, an option, an error code, a commit.
    Name,
}

/// The names of one kind, by a hash: comparing the names themselves, which begin alike, is most of the work.
#[derive(Debug, Default)]
struct Ranked {
    seen: BTreeMap<u64, Seen>,
}

#[derive(Debug)]
struct Seen {
    name: String,
    score: u32,
    /// When it was last seen; no two are the same.
    last: u32,
}

/// All names that were seen.
#[derive(Debug, Default)]
pub struct Mentions {
    paths: Ranked,
    names: Ranked,
    now: u32,
}

impl Mentions {
    /// Takes in a text; `weight` says how much a mention there counts.
    pub fn scan(&mut self, text: &str, weight: u32) {
        for (kind, name) in named(text) {
            self.add(kind, name, weight);
        }
    }

    /// Takes in one name.
    pub fn add(&mut self, kind: Kind, name: &str, weight: u32) {
        self.now += 1;
        let now = self.now;
        match kind {
            Kind::Path => self.paths.add(name, weight, now),
            Kind::Name => self.names.add(name, weight, now),
        }
    }

    /// The names of a kind but for these, the most important first.
    pub fn best(&self, kind: Kind, but: &BTreeSet<String>) -> Vec<&str> {
        let ranked = if kind == Kind::Path { &self.paths } else { &self.names };
        ranked.best().into_iter().filter(|name| !but.contains(*name)).collect()
    }

    /// Takes in what another has seen, as newer.
    pub fn absorb(&mut self, other: &Self) {
        for (kind, ranked) in [(Kind::Path, &other.paths), (Kind::Name, &other.names)] {
            let mut by_time: Vec<_> = ranked.seen.values().collect();
            by_time.sort_by_key(|seen| seen.last);
            by_time.into_iter().for_each(|seen| self.add(kind, &seen.name, seen.score));
        }
    }
}

impl Ranked {
    fn add(&mut self, name: &str, weight: u32, now: u32) {
        let key = text::hash(name.as_bytes());
        if let Some(seen) = self.seen.get_mut(&key) {
            (seen.score, seen.last) = (seen.score.saturating_add(weight), now);
            return;
        }
        self.seen.insert(key, Seen { name: name.into(), score: weight, last: now });
        if self.seen.len() > MOST {
            let mut ranks: Vec<_> = self.seen.values().map(|seen| (seen.score, seen.last)).collect();
            ranks.sort_unstable();
            let least = ranks[ranks.len() - MOST / 2];
            self.seen.retain(|_, seen| (seen.score, seen.last) >= least);
        }
    }

    fn best(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.seen.values().collect();
        all.sort_by_key(|seen| std::cmp::Reverse((seen.score, seen.last)));
        all.into_iter().map(|seen| seen.name.as_str()).collect()
    }
}

/// The names in a text.
pub fn names_in(text: &str) -> impl Iterator<Item = &str> {
    named(text).map(|(_, name)| name)
}

fn named(text: &str) -> impl Iterator<Item = (Kind, &str)> {
    let tokens = text::between(text, &PARTS).filter(|token| !is_plain(token));
    let tokens = tokens.flat_map(|token| token.split(is_odd_mark)).map(trim);
    tokens.filter_map(|token| Some((kind_of(token)?, token))).map(|(kind, token)| match kind {
        Kind::Path => (kind, without_line(token)),
        Kind::Name => (kind, token),
    })
}

/// A path without the line and column behind it: the file is what is looked for.
fn without_line(path: &str) -> &str {
    let place = path.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    if path[place.len()..].starts_with(':') && !path.contains("://") { place } else { path }
}

/// Most tokens are plain words.
fn is_plain(token: &str) -> bool {
    token.len() < 3 || token.bytes().skip(1).all(|b| b.is_ascii_lowercase())
}

/// The ASCII characters that part tokens.
static PARTS: [bool; 256] = {
    let mut parts = [false; 256];
    let mut at = 0;
    while at < 128 {
        parts[at] = at <= 32 || at == 127;
        at += 1;
    }
    let marks = b"\"'`()[]{}<>,;|=*!?";
    let mut at = 0;
    while at < marks.len() {
        parts[marks[at] as usize] = true;
        at += 1;
    }
    parts
};

fn is_odd_mark(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '…' | '“' | '”' | '、' | '。' | '→' | char::REPLACEMENT_CHARACTER)
}

fn trim(token: &str) -> &str {
    token.trim_end_matches(['.', ':', '-']).trim_start_matches(':')
}

/// What the token is; none if it is an ordinary word or number.
pub fn kind_of(token: &str) -> Option<Kind> {
    let letters = || token.bytes().any(|b| b.is_ascii_alphabetic() || b >= 0x80);
    if !(3..=LONGEST).contains(&token.len()) || is_plain(token) || !letters() {
        return None;
    }
    if is_path(token) {
        return Some(Kind::Path);
    }
    is_name(token).then_some(Kind::Name)
}

fn is_path(token: &str) -> bool {
    if token.contains("://") {
        return token.starts_with("http") || token.starts_with("file:");
    }
    if token.contains('\\') {
        return token.as_bytes()[1..].starts_with(b":\\");
    }
    let place = token.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    let place = if place.is_empty() { token } else { place };
    let Some((folders, file)) = place.rsplit_once('/') else {
        return has_known_end(place);
    };
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| token.starts_with(root));
    rooted && file.len() + folders.len() > 2 || file.contains('.') || folders.contains('/')
}

/// A bare name is a file's if its end is one of the usual ones: `a.b` may be anything.
fn has_known_end(name: &str) -> bool {
    const ENDS: &[&str] = &[
        "bash", "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "env", "go", "gz", "h", "hpp", "html", "ini",
        "java", "jpg", "js", "json", "jsonl", "jsx", "kt", "lock", "log", "lua", "md", "mjs", "mk", "pdf", "php",
        "png", "proto", "py", "rb", "rs", "scss", "sh", "sql", "svg", "swift", "tar", "toml", "ts", "tsx", "txt",
        "vue", "wasm", "wit", "xml", "yaml", "yml", "zig", "zip",
    ];
    name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && ENDS.binary_search(&end).is_ok())
}

fn is_name(token: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-' | '$' | '@' | '#');
    if !token.chars().all(plain) || token.len() > 80 {
        return false;
    }
    let flag = token.starts_with("--") && token.as_bytes().get(2).is_some_and(u8::is_ascii_alphabetic);
    let joined = token.contains("::") || token.trim_matches('_').contains('_');
    flag || joined || has_hump(token) || is_code(token)
}

/// A capital behind a small letter, as in `parseConfig`.
fn has_hump(token: &str) -> bool {
    token.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// An error code such as `E0308` or `TS2345`, or a commit.
fn is_code(token: &str) -> bool {
    let rest = token.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let capitals = token.len() - rest.len();
    let code = (1..=5).contains(&capitals) && rest.len() >= 3 && rest.bytes().all(|b| b.is_ascii_digit());
    let hex = token.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    code || hex && (7..=40).contains(&token.len()) && digits > 0 && digits < token.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_names_are_told_from_words() {
        for path in ["src/main.rs", "/etc/hosts", "Cargo.toml", "src/a.rs:12:5", "https://x.org/y", "./run", "C:\\a\\b"]
        {
            assert_eq!(kind_of(path), Some(Kind::Path), "{path}");
        }
        for name in ["parse_config", "Foo::new", "firstKept", "--no-verify", "E0308", "2d9f92f", "PI_DIR"] {
            assert_eq!(kind_of(name), Some(Kind::Name), "{name}");
        }
        for word in ["and/or", "word", "1.2.3", "12345678", "e.g", "\\nself", "well-known", "日本"] {
            assert_eq!(kind_of(word), None, "{word}");
        }
    }

    #[test]
    fn a_path_is_one_whatever_line_of_it_is_named() {
        let text = "src/a.rs:12:5 src/a.rs:7 src/a.rs http://h:80/x.html:3 v1/2024.10";
        assert_eq!(names_in(text).collect::<BTreeSet<_>>().len(), 3, "{:?}", names_in(text).collect::<Vec<_>>());
    }

    #[test]
    fn the_weightier_and_the_newer_come_first() {
        let mut mentions = Mentions::default();
        mentions.scan("see `old_name` and src/a.rs, then new_name.", 1);
        mentions.scan("(src/b.rs)", 5);
        assert_eq!(mentions.best(Kind::Path, &BTreeSet::new()), ["src/b.rs", "src/a.rs"]);
        assert_eq!(mentions.best(Kind::Name, &BTreeSet::from(["other".to_owned()])), ["new_name", "old_name"]);
    }

    #[test]
    fn of_too_many_the_important_ones_stay() {
        let mut mentions = Mentions::default();
        mentions.scan("the_one", 100);
        (0..3 * MOST).for_each(|n| mentions.scan(&format!("name_{n}"), 1));
        assert_eq!(mentions.best(Kind::Name, &BTreeSet::new())[0], "the_one");
        assert!(mentions.names.seen.len() <= MOST);
    }
}
