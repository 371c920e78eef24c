//! What a sentence is, told by its words: a constraint, a decision, a next step, an error.

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
    ("always", "", Rule, 3),
    ("avoid", "", Rule, 3),
    ("because", "", Choice, 1),
    ("cannot", "", Rule, 1),
    ("chose", "", Choice, 3),
    ("darf", "", Rule, 2),
    ("decide", "", Choice, 1),
    ("decided", "", Choice, 3),
    ("decision", "", Choice, 3),
    ("do", "not", Rule, 3),
    ("don't", "", Rule, 3),
    ("dont", "", Rule, 2),
    ("ensure", "", Rule, 2),
    ("fixme", "", Open, 2),
    ("follow", "up", Open, 1),
    ("forbidden", "", Rule, 3),
    ("go", "with", Choice, 2),
    ("going", "with", Choice, 2),
    ("i'll", "then", Open, 1),
    ("i'll", "use", Choice, 1),
    ("immer", "", Rule, 2),
    ("instead", "", Choice, 2),
    ("jamais", "", Rule, 2),
    ("keep", "", Order, 1),
    ("left", "to do", Open, 2),
    ("let's", "use", Choice, 2),
    ("make", "sure", Rule, 2),
    ("may", "not", Rule, 2),
    ("muss", "", Rule, 2),
    ("must", "", Rule, 3),
    ("mustn't", "", Rule, 3),
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
    ("only", "", Rule, 1),
    ("opted", "", Choice, 3),
    ("prefer", "", Rule, 3),
    ("rather", "than", Choice, 2),
    ("reason", "", Choice, 1),
    ("remaining", "", Open, 2),
    ("remains", "to", Open, 2),
    ("remember", "", Order, 2),
    ("required", "", Rule, 2),
    ("settled", "on", Choice, 3),
    ("shall", "", Rule, 2),
    ("should", "", Rule, 1),
    ("should", "not", Rule, 2),
    ("shouldn't", "", Rule, 2),
    ("siempre", "", Rule, 2),
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
    ("use", "", Order, 2),
    ("we'll", "use", Choice, 2),
    ("without", "", Rule, 1),
    ("won't", "", Rule, 1),
    ("всегда", "", Rule, 2),
    ("должен", "", Rule, 2),
    ("должна", "", Rule, 2),
    ("нельзя", "", Rule, 2),
    ("никогда", "", Rule, 2),
];

/// The same for scripts that do not part words.
const UNPARTED: &[&str] = &["必须", "不要", "禁止", "绝不", "務必", "必ず", "しないで", "禁じ", "반드시", "하지 마"];

/// Words that may stand before an order.
const POLITE: &[&str] = &["also", "and", "but", "just", "ok", "okay", "please", "then", "you"];

/// What the words of a sentence say.
pub fn cues(sentence: &str) -> Cues {
    let words = words(super::text::head(sentence, 2000));
    let mut cues = Cues::default();
    let first = words.iter().position(|word| !POLITE.contains(&word.as_str())).unwrap_or(0);
    for at in 0..words.len() {
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
fn cues_at(words: &[String]) -> impl Iterator<Item = (Cue, u8)> {
    let first = words[0].as_str();
    let from = CUES.partition_point(|cue| cue.0 < first);
    CUES[from..]
        .iter()
        .take_while(move |cue| cue.0 == first)
        .filter(|cue| goes_on(&words[1..], cue.1))
        .map(|c| (c.2, c.3))
}

fn goes_on(words: &[String], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase.split_whitespace().all(|wanted| words.next().is_some_and(|word| word == wanted))
}

/// The words in lower case; what joins letters (`_`, `/`, `.`) stays inside, so that a path or a name is one word.
fn words(sentence: &str) -> Vec<String> {
    let apart = |c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’' | '_' | '/' | '.' | ':'));
    let words = sentence.split(apart).map(|word| word.trim_matches(['.', ':', '/', '\'']));
    words.filter(|word| !word.is_empty()).map(|word| word.replace('’', "'").to_lowercase()).collect()
}

/// How surely a line of output reports an error: 0 not at all, 2 in so many words.
pub fn error_class(line: &str) -> u8 {
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
    let line = super::text::head(line, 1000).to_ascii_lowercase();
    let says = |cues: &[&str]| cues.iter().any(|cue| line.contains(cue));
    if says(SURE) { 2 } else { u8::from(says(PERHAPS)) }
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
