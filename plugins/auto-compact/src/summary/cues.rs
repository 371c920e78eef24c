//! What a sentence is, told by its words: a constraint, a decision, a next step, an error.

use super::text;

/// What a sentence gives away, with a class: the higher, the surer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cues {
    /// The user lays something down.
    pub constraint: u8,
    /// Something was decided, or a reason is given.
    pub decision: u8,
    /// Something is left to do.
    pub next: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cue {
    /// Anywhere in the sentence.
    Rule,
    /// Only as its first word, "please" and the like apart.
    Order,
    Choice,
    Open,
}
use Cue::{Choice, Open, Order, Rule};

/// First word, the words behind it, what they say, how surely. Sorted by the first word.
const CUES: &[(&str, &str, Cue, u8)] = &[
    ("achte", "darauf", Order, 2),
    ("always", "", Rule, 3),
    ("avoid", "", Rule, 3),
    ("because", "", Choice, 1),
    ("cannot", "", Rule, 1),
    ("chose", "", Choice, 3),
    ("darf", "", Rule, 2),
    ("debe", "", Rule, 2),
    ("deben", "", Rule, 2),
    ("decide", "", Choice, 1),
    ("decided", "", Choice, 3),
    ("decision", "", Choice, 3),
    ("deve", "", Rule, 2),
    ("do", "not", Rule, 3),
    ("doit", "", Rule, 2),
    ("doivent", "", Rule, 2),
    ("don't", "", Rule, 3),
    ("dont", "", Rule, 2),
    ("dürfen", "", Rule, 2),
    ("ensure", "", Rule, 2),
    ("evita", "", Order, 2),
    ("fixme", "", Open, 2),
    ("follow", "up", Open, 1),
    ("forbidden", "", Rule, 3),
    ("go", "with", Choice, 2),
    ("going", "with", Choice, 2),
    ("has", "to", Rule, 2),
    ("have", "to", Rule, 1),
    ("i'd", "like", Rule, 1),
    ("i'll", "then", Open, 1),
    ("i'll", "use", Choice, 1),
    ("immer", "", Rule, 2),
    ("instead", "", Choice, 2),
    ("jamais", "", Rule, 2),
    ("keep", "", Order, 1),
    ("kein", "", Rule, 2),
    ("keine", "", Rule, 2),
    ("keinen", "", Rule, 2),
    ("keinesfalls", "", Rule, 3),
    ("leave", "", Order, 2),
    ("left", "to do", Open, 2),
    ("let's", "use", Choice, 2),
    ("mai", "", Rule, 2),
    ("make", "sure", Rule, 2),
    ("may", "not", Rule, 2),
    ("muss", "", Rule, 2),
    ("must", "", Rule, 3),
    ("mustn't", "", Rule, 3),
    ("müssen", "", Rule, 2),
    ("need", "to", Rule, 1),
    ("needs", "to", Rule, 1),
    ("never", "", Rule, 3),
    ("next", "", Open, 1),
    ("next", "i", Open, 2),
    ("next", "step", Open, 3),
    ("next", "steps", Open, 3),
    ("nicht", "", Rule, 1),
    ("nie", "", Rule, 2),
    ("niemals", "", Rule, 2),
    ("no", "", Order, 2),
    ("not", "yet", Open, 2),
    ("nunca", "", Rule, 2),
    ("nutze", "", Order, 2),
    ("não", "", Rule, 1),
    ("ohne", "", Rule, 1),
    ("only", "", Rule, 1),
    ("opted", "", Choice, 3),
    ("pas", "", Rule, 1),
    ("prefer", "", Rule, 3),
    ("rather", "than", Choice, 2),
    ("reason", "", Choice, 1),
    ("remaining", "", Open, 2),
    ("remains", "to", Open, 2),
    ("remember", "", Order, 2),
    ("required", "", Rule, 2),
    ("sans", "", Rule, 1),
    ("sempre", "", Rule, 2),
    ("settled", "on", Choice, 3),
    ("shall", "", Rule, 2),
    ("should", "", Rule, 1),
    ("should", "not", Rule, 2),
    ("shouldn't", "", Rule, 2),
    ("siempre", "", Rule, 2),
    ("soll", "", Rule, 1),
    ("sollte", "", Rule, 1),
    ("stay", "within", Rule, 2),
    ("stick", "to", Rule, 2),
    ("still", "need", Open, 3),
    ("still", "needs", Open, 3),
    ("still", "to", Open, 2),
    ("stop", "", Order, 2),
    ("switch", "to", Choice, 2),
    ("switched", "to", Choice, 2),
    ("to", "do", Open, 1),
    ("todo", "", Open, 3),
    ("toujours", "", Rule, 2),
    ("trade", "off", Choice, 2),
    ("usa", "", Order, 2),
    ("use", "", Order, 2),
    ("utilise", "", Order, 2),
    ("utilisez", "", Order, 2),
    ("vermeide", "", Order, 3),
    ("verwende", "", Order, 2),
    ("we'll", "use", Choice, 2),
    ("without", "", Rule, 1),
    ("won't", "", Rule, 1),
    ("évite", "", Order, 2),
    ("évitez", "", Order, 2),
    ("всегда", "", Rule, 2),
    ("должен", "", Rule, 2),
    ("должна", "", Rule, 2),
    ("нельзя", "", Rule, 2),
    ("никогда", "", Rule, 2),
];

/// The same for scripts that do not part words.
const UNPARTED: &[&str] = &[
    "必须",
    "不要",
    "禁止",
    "绝不",
    "不得",
    "不能",
    "不许",
    "请勿",
    "务必",
    "只能",
    "总是",
    "永远不",
    "務必",
    "不可",
    "必ず",
    "しないで",
    "禁じ",
    "てはいけ",
    "반드시",
    "하지 마",
];

/// Words that may stand before an order.
const POLITE: &[&str] = &["also", "and", "bitte", "but", "just", "ok", "okay", "please", "then", "you"];

/// Whether a word can begin a cue, by a hash of its length and ends: most words are settled by this alone.
const BEGINS: [bool; 512] = {
    let mut begins = [false; 512];
    let mut at = 0;
    while at < CUES.len() {
        begins[hash(CUES[at].0.as_bytes())] = true;
        at += 1;
    }
    begins
};

const fn hash(word: &[u8]) -> usize {
    (word.len() * 131 + word[0] as usize * 31 + word[word.len() - 1] as usize * 7) % 512
}

/// What the words of a sentence say.
pub fn cues(sentence: &str) -> Cues {
    let lower = lower(text::head(sentence, 2000));
    let words = words(&lower);
    let mut cues = Cues::default();
    let first = words.iter().position(|word| !POLITE.contains(word)).unwrap_or(0);
    for at in (0..words.len()).filter(|at| BEGINS[hash(words[*at].as_bytes())]) {
        for (cue, class) in cues_at(&words[at..]) {
            let (slot, class) = match cue {
                Rule => (&mut cues.constraint, class),
                Order => (&mut cues.constraint, if at == first { class } else { 0 }),
                Choice => (&mut cues.decision, class),
                Open => (&mut cues.next, class),
            };
            *slot = class.max(*slot);
        }
    }
    if !sentence.is_ascii() && UNPARTED.iter().any(|cue| sentence.contains(cue)) {
        cues.constraint = cues.constraint.max(2);
    }
    if sentence.ends_with(['?', '？']) { Cues { next: cues.next, ..Cues::default() } } else { cues }
}

/// The cues that begin with the first of these words.
fn cues_at<'a>(words: &'a [&str]) -> impl Iterator<Item = (Cue, u8)> + use<'a> {
    let first = words[0];
    let from = CUES.partition_point(|cue| cue.0 < first);
    let same = CUES[from..].iter().take_while(move |cue| cue.0 == first);
    same.filter(|cue| goes_on(&words[1..], cue.1)).map(|cue| (cue.2, cue.3))
}

fn goes_on(words: &[&str], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase.split_whitespace().all(|wanted| words.next().is_some_and(|word| *word == wanted))
}

fn lower(sentence: &str) -> String {
    if sentence.is_ascii() { sentence.to_ascii_lowercase() } else { sentence.replace('’', "'").to_lowercase() }
}

/// The words; what joins letters (`_`, `/`, `.`) stays inside, so that a path or a name is one word.
fn words(lower: &str) -> Vec<&str> {
    let odd = |c: char| !c.is_ascii() && !c.is_alphanumeric();
    let mut words = Vec::with_capacity(lower.len() / 5);
    for piece in text::between(lower, &APART) {
        if piece.is_ascii() {
            words.push(trim(piece));
        } else {
            words.extend(piece.split(odd).map(trim));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn trim(word: &str) -> &str {
    let plain = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    if plain(word.as_bytes().first()) && plain(word.as_bytes().last()) {
        return word;
    }
    word.trim_matches(['.', ':', '/', '\''])
}

/// The ASCII characters that part words.
static APART: [bool; 256] = {
    let mut apart = [false; 256];
    let mut at = 0;
    while at < 128 {
        let byte = at as u8;
        apart[at] = !(byte.is_ascii_alphanumeric() || matches!(byte, b'\'' | b'_' | b'/' | b'.' | b':'));
        at += 1;
    }
    apart
};

const SURE: &[&str] = &[
    "error:",
    "error[",
    "panicked at",
    "exception:",
    "fatal:",
    "failed:",
    "traceback",
    "err!",
    "error -",
    "errno",
    "segmentation fault",
    "assertion",
    "enoent",
    "eacces",
    "could not",
    "cannot ",
    "can't ",
    "not found",
    "permission denied",
    "no such file",
    "undefined reference",
    "command exited with code",
    "timed out",
    "unresolved",
];
const PERHAPS: &[&str] = &["error", "fail", "exception", "denied", "invalid", "refused", "unable", "missing"];

/// How surely a line of output reports an error: 0 not at all, 2 in so many words.
pub fn error_class(line: &str) -> u8 {
    const BOTH: Pairs = Pairs::of(SURE).and(PERHAPS);
    let line = text::head(line, 1000).to_ascii_lowercase();
    let mut class = 0;
    for at in BOTH.places(line.as_bytes()) {
        let starts =
            |phrases: &[&str]| phrases.iter().any(|phrase| line.as_bytes()[at..].starts_with(phrase.as_bytes()));
        if starts(SURE) {
            return 2;
        }
        class = class.max(u8::from(starts(PERHAPS)));
    }
    class
}

/// The pairs of letters with which phrases begin: few places of a text are worth a closer look.
struct Pairs([u64; 16]);

impl Pairs {
    const fn of(phrases: &[&str]) -> Self {
        Self([0; 16]).and(phrases)
    }

    const fn and(mut self, phrases: &[&str]) -> Self {
        let mut at = 0;
        while at < phrases.len() {
            let bytes = phrases[at].as_bytes();
            let bit = Self::bit(bytes[0], bytes[1]);
            self.0[bit / 64] |= 1 << (bit % 64);
            at += 1;
        }
        self
    }

    const fn bit(first: u8, second: u8) -> usize {
        (first as usize & 31) << 5 | second as usize & 31
    }

    fn places(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        let pairs = text.windows(2).enumerate();
        pairs
            .filter(|(_, pair)| self.0[Self::bit(pair[0], pair[1]) / 64] >> (Self::bit(pair[0], pair[1]) % 64) & 1 == 1)
            .map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CUES.is_sorted_by_key(|cue| cue.0));
        assert!(CUES.iter().all(|cue| cue.3 > 0));
    }

    #[test]
    fn the_users_rules_are_told_from_talk() {
        let rule = |text| cues(text).constraint;
        for text in
            ["You must not touch config/prod.yaml", "Don’t add dependencies.", "please use tabs", "不要修改测试"]
        {
            assert!(rule(text) >= 2, "{text}");
        }
        assert_eq!(rule("How do you use this?"), 0);
        assert_eq!(rule("I use vim"), 0);
        assert_eq!(rule("Do you always do that?"), 0);
        assert_eq!(rule("it says must_use there"), 0);
    }

    #[test]
    fn decisions_and_open_ends() {
        assert_eq!(cues("I decided on redb instead of sled.").decision, 3);
        assert_eq!(cues("Next step: wire it up").next, 3);
        assert_eq!(cues("We still need a test").next, 3);
        assert_eq!(cues("All done."), Cues::default());
    }

    #[test]
    fn errors_in_so_many_words() {
        assert_eq!(error_class("error[E0308]: mismatched types"), 2);
        assert_eq!(error_class("test a ... FAILED"), 1);
        assert_eq!(error_class("all good"), 0);
    }
}
