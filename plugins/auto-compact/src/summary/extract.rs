//! From the messages to what a summary is made of. Message by message: nothing of them is held but what may be told.
use std::collections::BTreeMap;

use super::cues::{Cues, cues, error_class};
use super::mentions::{Kind, Mentions};
use super::message::{Call, End, Message};
use super::outcomes::Outcomes;
use super::sections::{LASTING, Section, Sections};
use super::text::{self, Line};

/// Of a message, at most so much is looked at.
const LOOK: usize = 64 * 1024;
/// Of an output, at most so much from either end.
const OUTPUT: usize = 16 * 1024;
/// Steps that are held of a turn.
const STEPS: usize = 6;
/// Files that are named as changed most.
const CHANGED: usize = 8;

/// What was found.
#[derive(Debug, Default)]
pub struct Extract {
    /// What there is to tell.
    pub sections: Sections,
    /// Paths and names that occurred.
    pub mentions: Mentions,
    /// What was run.
    pub outcomes: Outcomes,
    /// Requests that were not answered yet.
    open: Vec<String>,
    /// What the model said it does, newest last.
    steps: Vec<String>,
    /// Calls without a result yet.
    calls: BTreeMap<String, Call>,
    /// How often a file was changed.
    changed: BTreeMap<String, u32>,
    /// When a file was last touched, by a clock that counts calls.
    touched: BTreeMap<String, u64>,
    clock: u64,
    asked: bool,
}

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    User,
    Model,
}

impl Extract {
    /// Takes in the next message.
    pub fn add(&mut self, message: &Message) {
        match message {
            Message::User { text } => self.user(text),
            Message::Assistant { text, calls, end, error } => self.assistant(text, calls, *end, error.as_deref()),
            Message::ToolResult { call, tool, text, failed } => self.result(call, tool, text, *failed),
            Message::Bash { command, output, failed } => self.ran(command, output, *failed),
            Message::Note { text } => self.note(text),
        }
    }

    /// Takes up a request that a summary before calls unanswered.
    pub fn reopen(&mut self, request: &str) {
        self.open.push(request.into());
    }

    /// From now on a goal is known: the next request is not the first one.
    pub fn has_goal(&mut self) {
        self.asked = true;
    }

    fn user(&mut self, text: &str) {
        if !text::is_readable(text) {
            return;
        }
        let text = text::head(text, LOOK);
        let request = text::tidy(text);
        let few_words = request.split_whitespace().nth(2).is_none();
        let class = match (self.asked, few_words) {
            (false, _) => LASTING,
            (true, false) => 3,
            (true, true) => 0,
        };
        self.asked |= !request.is_empty();
        self.sections.push(Section::Goal, &request, class);
        if !request.is_empty() {
            self.open.push(text::clip_middle(&request, 320).into_owned());
        }
        self.mentions.scan(text, 8);
        self.listen(Voice::User, text);
    }

    fn assistant(&mut self, text: &str, calls: &[Call], end: End, error: Option<&str>) {
        let text = if text::is_readable(text) { text::head(text, LOOK) } else { "" };
        self.mentions.scan(text, 4);
        self.listen(Voice::Model, text);
        for call in calls {
            self.call(call);
        }
        let lead = lead(text);
        match end {
            End::Answered => {
                self.open.clear();
                self.steps.clear();
                self.sections.push(Section::Done, &lead, 3);
            }
            End::Calls if !lead.is_empty() => self.step(lead),
            End::Calls => {}
            End::Broken => self.broke(error),
        }
    }

    fn step(&mut self, lead: String) {
        if self.steps.len() == STEPS {
            self.steps.remove(0);
        }
        self.steps.push(lead);
    }

    /// The reason stands behind the request that got no answer.
    fn broke(&mut self, error: Option<&str>) {
        if let (Some(request), Some(error)) = (self.open.last_mut(), error) {
            let error = text::one_line(error);
            if !request.contains(&error) {
                *request = [text::clip(request, 320).as_ref(), " (broke off: ", &text::clip(&error, 160), ")"].concat();
            }
        }
    }

    fn call(&mut self, call: &Call) {
        if let Some(path) = &call.path {
            if path.len() <= 400 && !path.contains(|c: char| c.is_control() || c == ',') {
                self.mentions.add(Kind::Path, path, 2);
            }
            self.clock += 1;
            self.touched.insert(path.clone(), self.clock);
        }
        if let Some(command) = &call.command {
            self.mentions.scan(text::head(command, 4096), 3);
        }
        self.calls.insert(call.id.clone(), call.clone());
    }

    fn result(&mut self, id: &str, tool: &str, output: &str, failed: bool) {
        let call = self.calls.remove(id).unwrap_or_default();
        if let Some(command) = &call.command {
            self.ran(command, output, failed);
            return;
        }
        let detail = if failed { self.complaint(output) } else { String::new() };
        self.outcomes.tool(tool, call.path.as_deref(), !failed, &detail);
        if let Some(path) = call.path.filter(|_| !failed && matches!(tool, "edit" | "write")) {
            *self.changed.entry(path).or_default() += 1;
        }
    }

    fn ran(&mut self, command: &str, output: &str, failed: bool) {
        if failed {
            let detail = self.complaint(output);
            self.outcomes.command(command, false, &detail);
            return;
        }
        // A pipe hides the exit code: what reports errors in so many words is no success.
        let ends = [text::head(output, OUTPUT), text::tail(output, OUTPUT)];
        let sure = |line: &&str| line.trim_start().starts_with("error") && error_class(line) == 2;
        if ends.iter().flat_map(|end| end.lines()).any(|line| sure(&line)) {
            let detail = self.complaint(output);
            self.outcomes.command(command, false, &detail);
        } else {
            self.outcomes.command(command, true, &verdict(output));
        }
    }

    /// The lines of an output that say what is wrong.
    fn complaint(&mut self, output: &str) -> String {
        let said = complaint(output);
        self.mentions.scan(&said, 4);
        said
    }

    fn note(&mut self, text: &str) {
        if text::is_readable(text) {
            let text = text::head(text, LOOK);
            self.mentions.scan(text, 2);
            self.sections.push(Section::Notes, text, 1);
        }
    }

    /// Picks out of a text what its words give away.
    fn listen(&mut self, voice: Voice, text: &str) {
        let (mut announced, mut first) = (None, true);
        for line in text::prose(text) {
            if line.announces {
                announced = announced_by(voice, line.text);
            } else if !line.listed {
                announced = None;
            }
            match (line.ticked, announced) {
                (Some(done), _) => self.ticked(line, done),
                (None, Some(_)) if line.announces => {}
                (None, Some(section)) if line.listed => self.sections.push(section, line.text, 3),
                _ => text::sentences(line.text)
                    .for_each(|sentence| self.sentence(voice, sentence, std::mem::take(&mut first))),
            }
        }
    }

    fn ticked(&mut self, line: Line<'_>, done: bool) {
        self.sections.push(if done { Section::Done } else { Section::Next }, line.text, 2);
    }

    /// `first`: with which a text begins. What the user asks for there is a request, not a rule, unless it says so surely.
    fn sentence(&mut self, voice: Voice, sentence: &str, first: bool) {
        let found = cues(sentence);
        if voice == Voice::User && found.constraint > u8::from(first) {
            self.sections.push(Section::Constraints, sentence, found.constraint - 1);
        }
        if is_told(voice, found) {
            let (section, surely) = match found.next > found.decision {
                true => (Section::Next, found.next),
                false => (Section::Decisions, found.decision),
            };
            self.sections.push(section, sentence, surely - 1);
        }
    }

    /// When a file was last touched; more is later.
    pub fn touched(&self, path: &str) -> u64 {
        self.touched.get(path).copied().unwrap_or(0)
    }

    /// Puts what is only known at the end into its sections.
    pub fn close(&mut self) {
        for request in std::mem::take(&mut self.open).iter().rev().take(3).rev() {
            self.sections.push(Section::InProgress, &["Asked: ", request].concat(), 3);
        }
        let mut changed: Vec<_> = self.changed.iter().filter(|(_, times)| **times > 1).collect();
        changed.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let named: Vec<_> =
            changed.iter().take(CHANGED).map(|(path, times)| format!("{path} ({times} times)")).collect();
        if !named.is_empty() {
            self.sections.push(Section::Done, &["Changed: ", &named.join(", ")].concat(), 1);
        }
        std::mem::take(&mut self.outcomes).tell(&mut self.sections);
    }

    /// Takes in what was found in the beginning of a turn whose rest is kept: told in a section of its own, but for what
    /// holds beyond the turn.
    pub fn close_turn(&mut self, mut turn: Self) {
        let steps = std::mem::take(&mut turn.steps);
        turn.open.clear();
        turn.close();
        for (section, label) in [(Section::Goal, "Request: "), (Section::Done, "Done: "), (Section::Blocked, "")] {
            for item in turn.sections.take(section) {
                let class = if section == Section::Goal { LASTING } else { item.class };
                self.sections.push(Section::Turn, &[label, &item.text].concat(), class);
            }
        }
        steps.iter().for_each(|step| self.sections.push(Section::Turn, &["Step: ", step].concat(), 1));
        for section in [Section::Constraints, Section::Decisions, Section::Next, Section::Errors, Section::Notes] {
            self.sections.absorb(section, &mut turn.sections);
        }
        self.mentions.absorb(&turn.mentions);
        self.touched.extend(turn.touched.into_iter().map(|(path, last)| (path, self.clock + last)));
    }
}

/// Whether a sentence decides or leaves something open. What the user leaves open is a request.
fn is_told(voice: Voice, found: Cues) -> bool {
    match voice {
        Voice::User => found.decision > 1 && found.decision >= found.next,
        Voice::Model => found.decision > 0 || found.next > 1,
    }
}

/// Where the items of a list belong, by the line before it.
fn announced_by(voice: Voice, line: &str) -> Option<Section> {
    let lower = text::head(line, 200).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let found = cues(line);
    if voice == Voice::User && (found.constraint > 1 || says(&["rule", "constraint", "requirement", "convention"])) {
        return Some(Section::Constraints);
    }
    if found.decision > 1 {
        return Some(Section::Decisions);
    }
    (voice == Voice::Model && (found.next > 0 || says(&["to do", "not done"]))).then_some(Section::Next)
}

/// The sentences that say what a text is about; not those that have a section of their own.
fn lead(text: &str) -> String {
    let mut lines = text::prose(text).filter(|line| !line.announces);
    let first = lines.next().map_or("", |line| line.text);
    let line =
        if first.len() < 12 { lines.find(|line| line.text.len() >= 12).map_or(first, |l| l.text) } else { first };
    let mut said = String::new();
    for sentence in text::sentences(line).take(4).filter(|sentence| !is_told(Voice::Model, cues(sentence))) {
        if !said.is_empty() && said.len() + sentence.len() > 240 {
            break;
        }
        said = [said.as_str(), sentence].join(if said.is_empty() { "" } else { " " });
    }
    text::clip(&text::one_line(&said), 300).into_owned()
}

/// At most four lines of an output that report an error, the surest first; else its last line.
fn complaint(output: &str) -> String {
    if !text::is_readable(output) {
        return String::new();
    }
    let whole = output.len() <= 2 * OUTPUT;
    let (begin, end) = if whole { (output, "") } else { (text::head(output, OUTPUT), text::tail(output, OUTPUT)) };
    let lines: Vec<_> = begin.lines().chain(end.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
    let classes: Vec<_> = lines.iter().map(|line| error_class(line)).collect();
    let best = classes.iter().max().copied().filter(|class| *class > 0);
    let mut said: Vec<String> = Vec::new();
    for at in (0..lines.len()).filter(|at| best == Some(classes[*at])) {
        let place = lines.get(at + 1).filter(|line| line.starts_with("--> ")).map_or("", |line| line);
        let line = [lines[at], place].join(if place.is_empty() { "" } else { " " });
        let line = text::clip(&text::one_line(&line), 240).into_owned();
        let adds = said.is_empty() || !line.starts_with("Command exited");
        if said.len() < 4 && adds && !said.contains(&line) {
            said.push(line);
        }
    }
    if said.is_empty() {
        said.extend(lines.last().map(|line| text::clip(&text::one_line(line), 200).into_owned()));
    }
    said.join(" / ")
}

/// The line in which a test run says how it went.
fn verdict(output: &str) -> String {
    let tells = |line: &&str| line.contains(" passed") || line.contains("test result") || line.contains(" passing");
    let line = text::tail(output, OUTPUT).lines().rev().take(40).find(tells).unwrap_or_default();
    text::clip(&text::one_line(line), 120).into_owned()
}
