//! What was run, and whether it works now: a failure counts until the same succeeds.
use std::collections::BTreeMap;

use super::cues::error_class;
use super::sections::{Section, Sections};
use super::text;

/// Outcomes that are held at once; of more, the oldest go.
const MOST: usize = 1024;
/// Most bytes of a command.
const COMMAND: usize = 200;
/// Most bytes of a command before an error of it.
const LABEL: usize = 80;
/// What parts a command from what came of it, in the summary.
const ARROW: &str = " → ";
/// How an error that stands begins in the summary.
const ERROR: &str = "Error (";

/// What an outcome is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A command that does something.
    Command,
    /// A command that only looks, or another tool: its success says nothing.
    Look,
}

#[derive(Debug)]
struct Outcome {
    label: String,
    key: String,
    of: Of,
    ok: bool,
    detail: String,
    fresh: bool,
    standing: Standing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is how things are.
    Now,
    /// It was a failure, and has since succeeded or failed in another way.
    Past,
    /// A newer one says the same.
    Replaced,
}

/// Outcomes, oldest first.
#[derive(Debug, Default)]
pub struct Outcomes {
    all: Vec<Outcome>,
    /// The newest of a key.
    last: BTreeMap<String, usize>,
    /// Failures of a key that stand.
    failing: BTreeMap<String, Vec<usize>>,
}

impl Outcomes {
    /// A command came to its end.
    pub fn command(&mut self, command: &str, ok: bool, detail: &str) {
        let of = if only_looks(command) { Of::Look } else { Of::Command };
        let label = text::clip(&text::one_line(command), COMMAND).into_owned();
        self.add(of, label, core(command), ok, detail, true);
    }

    /// Another tool came to its end; `on` is the file that it worked on.
    pub fn tool(&mut self, tool: &str, on: Option<&str>, ok: bool, detail: &str) {
        let label = on.map_or_else(|| tool.into(), |on| [tool, " ", text::clip(on, COMMAND).as_ref()].concat());
        self.add(Of::Look, label.clone(), label, ok, detail, true);
    }

    /// Reads an item of a summary before; false if it is no outcome.
    pub fn recall(&mut self, item: &str) -> bool {
        if let Some((label, detail)) = item.strip_prefix(ERROR).and_then(|rest| rest.split_once("): ")) {
            self.add(Of::Look, label.into(), label.into(), false, detail, false);
            return true;
        }
        let ok = item.strip_prefix("Ran: ").map(|rest| (true, rest));
        let Some((ok, rest)) = ok.or_else(|| item.strip_prefix("Fails: ").map(|rest| (false, rest))) else {
            return false;
        };
        let (label, detail) = rest.split_once(ARROW).unwrap_or((rest, ""));
        self.add(Of::Command, label.into(), core(label), ok, detail, false);
        true
    }

    fn add(&mut self, of: Of, label: String, key: String, ok: bool, detail: &str, fresh: bool) {
        if ok {
            self.resolve(&key);
        }
        if let Some(before) = self.last.get(&key).map(|at| &mut self.all[*at]) {
            let other_failure = !before.ok && !ok && before.detail != detail;
            before.standing = match before.standing {
                Standing::Now if other_failure => Standing::Past,
                Standing::Now => Standing::Replaced,
                standing => standing,
            };
        }
        let at = self.all.len();
        if !ok {
            self.failing.entry(key.clone()).or_default().push(at);
        }
        self.last.insert(key.clone(), at);
        self.all.push(Outcome { label, key, of, ok, detail: detail.into(), fresh, standing: Standing::Now });
        if self.all.len() > MOST {
            self.forget_half();
        }
    }

    /// What failed under this key, or with more arguments, works now.
    fn resolve(&mut self, key: &str) {
        let same = |other: &str| other == key || other[key.len()..].starts_with(' ');
        let keys = self.failing.range(key.to_owned()..).map(|(other, _)| other);
        let keys: Vec<_> =
            keys.take_while(|other| other.starts_with(key)).filter(|other| same(other)).cloned().collect();
        for at in keys.iter().filter_map(|key| self.failing.remove(key)).flatten() {
            self.all[at].standing = Standing::Past;
        }
    }

    fn forget_half(&mut self) {
        let newer = self.all.split_off(MOST / 2);
        *self = Self::default();
        for outcome in newer {
            let at = self.all.len();
            if !outcome.ok && outcome.standing == Standing::Now {
                self.failing.entry(outcome.key.clone()).or_default().push(at);
            }
            self.last.insert(outcome.key.clone(), at);
            self.all.push(outcome);
        }
    }

    /// Puts them where they belong, what is past first.
    pub fn tell(&self, sections: &mut Sections) {
        let past = self.all.iter().filter(|outcome| outcome.standing == Standing::Past);
        let now = self.all.iter().filter(|outcome| outcome.standing == Standing::Now);
        for outcome in past.chain(now) {
            if let Some((section, text, class)) = outcome.tell() {
                if outcome.fresh {
                    sections.push(section, &text, class);
                } else {
                    sections.push_old(section, &text, class);
                }
            }
        }
    }
}

impl Outcome {
    fn tell(&self) -> Option<(Section, String, u8)> {
        let to = if self.detail.is_empty() { "" } else { ARROW };
        match (self.of, self.ok, self.standing) {
            (Of::Command, true, _) => Some((Section::Done, ["Ran: ", &self.label, to, &self.detail].concat(), 2)),
            (Of::Look, true, _) => None,
            (_, false, _) if self.detail.is_empty() && self.of == Of::Look => None,
            (Of::Command, false, Standing::Now) => {
                Some((Section::Blocked, ["Fails: ", &self.label, to, &self.detail].concat(), 3))
            }
            (_, false, Standing::Now) => {
                // Of an old one nobody knows whether it still stands.
                Some((Section::Errors, self.error(ERROR), if self.fresh { 3 } else { 2 }))
            }
            (_, false, _) => Some((Section::Errors, self.past(), 1)),
        }
    }

    fn error(&self, begin: &str) -> String {
        [begin, text::clip(&self.key, LABEL).as_ref(), "): ", &self.detail].concat()
    }

    /// What is settled is told in short: an error in so many words needs no command before it.
    fn past(&self) -> String {
        let says = error_class(&self.detail) == 2 && self.detail.len() > 32;
        if says { ["Earlier: ", &self.detail].concat() } else { self.error("Earlier (") }
    }
}

/// The steps of a command line.
fn steps(command: &str) -> impl Iterator<Item = &str> {
    command.split("&&").flat_map(|part| part.split([';', '\n'])).map(str::trim).filter(|step| !step.is_empty())
}

/// What of a command makes it this command: not where it runs, nor what is shown of its output.
fn core(command: &str) -> String {
    let moves = |step: &&str| !["cd ", "export ", "set ", "source "].iter().any(|word| step.starts_with(word));
    let plain = |step: &str| step.split(" | ").next().unwrap_or(step).replace("2>&1", "").trim().to_owned();
    let steps: Vec<_> = steps(text::head(command, 2000)).filter(moves).map(plain).collect();
    text::clip(&text::one_line(&steps.join(" && ")), COMMAND).into_owned()
}

/// Whether nothing would be missed if it were not told that this ran.
fn only_looks(command: &str) -> bool {
    const LOOKS: &[&str] = &[
        "awk", "basename", "cat", "cd", "column", "cut", "date", "df", "diff", "dirname", "du", "echo", "env", "false",
        "fd", "file", "find", "grep", "head", "id", "jq", "less", "ls", "nl", "node", "printf", "ps", "pwd", "python",
        "python3", "readlink", "realpath", "rg", "sed", "seq", "sleep", "sort", "stat", "tail", "tree", "true", "type",
        "uname", "uniq", "wc", "which", "xxd",
    ];
    const GIT_LOOKS: &[&str] = &["blame", "branch", "diff", "grep", "log", "ls-files", "remote", "show", "status"];
    let looks = |step: &str| {
        let mut words = step.split_whitespace().filter(|word| !word.contains('='));
        match words.next() {
            Some("git") => words.next().is_none_or(|word| GIT_LOOKS.contains(&word)),
            Some("sed") => !step.contains(" -i"),
            Some("node" | "python" | "python3") => words.next().is_none_or(|word| word.starts_with('-')),
            Some(word) => LOOKS.binary_search(&word).is_ok(),
            None => true,
        }
    };
    steps(command).all(looks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(outcomes: &Outcomes, section: Section) -> Vec<String> {
        let mut sections = Sections::default();
        outcomes.tell(&mut sections);
        sections.take(section).into_iter().map(|item| item.text).collect()
    }

    #[test]
    fn a_failure_blocks_until_the_same_succeeds() {
        let mut outcomes = Outcomes::default();
        outcomes.command("cd /x && cargo test parser 2>&1 | tail -5", false, "error: no");
        assert_eq!(told(&outcomes, Section::Blocked), ["Fails: cd /x && cargo test parser 2>&1 | tail -5 → error: no"]);
        outcomes.command("cargo test", true, "12 passed");
        assert_eq!(told(&outcomes, Section::Blocked), [""; 0]);
        assert_eq!(told(&outcomes, Section::Done), ["Ran: cargo test → 12 passed"]);
        assert_eq!(told(&outcomes, Section::Errors).len(), 1);
    }

    #[test]
    fn a_success_is_forgotten_when_the_same_fails() {
        let mut outcomes = Outcomes::default();
        outcomes.command("make", true, "");
        outcomes.command("make", false, "error: x");
        outcomes.command("makefile-lint", true, "");
        assert_eq!(told(&outcomes, Section::Done), ["Ran: makefile-lint"]);
        assert_eq!(told(&outcomes, Section::Blocked), ["Fails: make → error: x"]);
    }

    #[test]
    fn looking_is_not_work_but_its_errors_are_told() {
        let mut outcomes = Outcomes::default();
        outcomes.command("grep -n x src/a.rs | head", true, "");
        outcomes.command("git status", true, "");
        outcomes.tool("read", Some("gone.rs"), false, "ENOENT: no such file");
        assert_eq!(told(&outcomes, Section::Done), [""; 0]);
        assert_eq!(told(&outcomes, Section::Errors), ["Error (read gone.rs): ENOENT: no such file"]);
    }

    #[test]
    fn what_a_summary_said_is_taken_up() {
        let mut outcomes = Outcomes::default();
        assert!(outcomes.recall("Fails: cargo test → error: x"));
        assert!(!outcomes.recall("Implemented the parser"));
        outcomes.command("cargo test", true, "");
        assert_eq!(told(&outcomes, Section::Blocked), [""; 0]);
    }

    #[test]
    fn a_command_of_thousands_is_still_bounded() {
        let mut outcomes = Outcomes::default();
        (0..3 * MOST).for_each(|n| outcomes.command(&format!("make t{n}"), n % 2 == 0, "d"));
        outcomes.command("make", true, "");
        assert!(outcomes.all.len() <= MOST + 1);
        assert_eq!(told(&outcomes, Section::Blocked), [""; 0]);
    }
}
