//! The summary as text.
use std::collections::BTreeSet;

use super::budget::{allot, cost, fill};
use super::extract::Extract;
use super::mentions::{Kind, names_in};
use super::sections::{Item, LASTING, Section};
use super::text;
use crate::files::Files;

/// Most bytes of the user's instructions.
const FOCUS: usize = 400;
/// Most bytes of an older request or answer where room is short.
const OLDER: usize = 160;

/// A place in the summary: what goes there, before each item, at what weight when room is short. Weights are per mille.
struct Slot {
    headings: &'static [&'static str],
    section: Section,
    mark: &'static str,
    weight: usize,
}

const SLOTS: [Slot; Section::COUNT] = [
    slot(&["## Goal"], Section::Goal, "- ", 150),
    slot(&["## Constraints & Preferences"], Section::Constraints, "- ", 200),
    slot(&["## Progress", "### Done"], Section::Done, "- [x] ", 70),
    slot(&["## Progress", "### In Progress"], Section::InProgress, "- [ ] ", 50),
    slot(&["## Progress", "### Blocked"], Section::Blocked, "- ", 120),
    slot(&["## Key Decisions"], Section::Decisions, "- ", 70),
    slot(&["## Next Steps"], Section::Next, "1. ", 110),
    slot(&["## Critical Context"], Section::Errors, "- ", 70),
    slot(&["## Critical Context"], Section::Notes, "- ", 50),
    slot(&["## Turn in Progress"], Section::Turn, "- ", 120),
];

/// The lists of names stand behind the notes.
const NAMES: [(Kind, &str, usize); 2] = [(Kind::Path, "Paths: ", 90), (Kind::Name, "Identifiers: ", 110)];

const fn slot(headings: &'static [&'static str], section: Section, mark: &'static str, weight: usize) -> Slot {
    Slot { headings, section, mark, weight }
}

/// Writes the summary in at most `max` bytes; none if there is nothing to say or no room to say it.
pub fn write(mut found: Extract, files: &Files, focus: Option<&str>, max: usize) -> Option<String> {
    let focus = focus.map(text::one_line).filter(|focus| !focus.is_empty());
    if let Some(focus) = &focus {
        found.sections.favour(&words(focus));
    }
    let (blocks, left_out) = files.blocks(max / 3, |path| found.touched(path));
    if left_out > 0 {
        let note = ["Files that are not listed below for want of room: ", &left_out.to_string()].concat();
        found.sections.push(Section::Notes, &note, 4);
    }
    let mut page = Page { text: String::new(), last: &[] };
    if let Some(focus) = focus {
        page.text = ["Focus: ", text::clip(&focus, FOCUS.min(max / 8)).as_ref(), "\n"].concat();
    }
    let room = max.saturating_sub(page.text.len() + if blocks.is_empty() { 0 } else { blocks.len() + 2 });
    let body = Body::of(&mut found, files, room);
    body.write(&mut page);
    let text = [page.text.trim(), &blocks].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    (!body.is_empty() || !blocks.is_empty()).then_some(text)
}

/// What is told in each slot, and the names behind the notes.
struct Body {
    told: Vec<Vec<String>>,
    names: [Vec<String>; NAMES.len()],
}

impl Body {
    fn of(found: &mut Extract, files: &Files, max: usize) -> Self {
        let mut items: Vec<Vec<Item>> = SLOTS.iter().map(|slot| found.sections.take(slot.section)).collect();
        let all: usize = SLOTS.iter().zip(&items).map(|(slot, items)| whole(slot, items)).sum();
        if all > max {
            SLOTS.iter().zip(&mut items).for_each(|(slot, items)| abridge(slot.section, items));
        }
        let listed: Mentioned = files.read.iter().chain(&files.modified).cloned().collect();
        // Names that stand elsewhere need no list. How many those are is known once the rest is told; then the rest is
        // told again, with the room that they do not need.
        let none = NAMES.map(|_| Vec::new());
        let all = NAMES.map(|(kind, ..)| names(found, kind, &listed));
        let first = Self { told: told(&items, &need_of(&all), max).0, names: none };
        let said = first.mentioned(&listed);
        let open = NAMES.map(|(kind, ..)| names(found, kind, &said));
        let (told, rooms) = told(&items, &need_of(&open), max);
        let mut body = Self { told, names: first.names };
        let said = body.mentioned(&listed);
        for (at, (kind, label, _)) in NAMES.iter().enumerate() {
            body.names[at] = fitting(names(found, *kind, &said), rooms[at].saturating_sub(label.len() + 3));
        }
        body
    }

    fn mentioned(&self, listed: &Mentioned) -> Mentioned {
        let tokens = self.told.iter().flatten().flat_map(|text| names_in(text));
        tokens.map(str::to_owned).chain(listed.iter().cloned()).collect()
    }

    fn is_empty(&self) -> bool {
        self.told.iter().all(Vec::is_empty) && self.names.iter().all(Vec::is_empty)
    }

    fn write(&self, page: &mut Page) {
        for (slot, told) in SLOTS.iter().zip(&self.told) {
            if slot.section == Section::Turn {
                NAMES.iter().zip(&self.names).for_each(|((_, label, _), names)| page.names(label, names));
            }
            told.iter().enumerate().for_each(|(n, text)| page.item(slot, n, text));
        }
    }
}

/// What all of a slot's items take.
fn whole(slot: &Slot, items: &[Item]) -> usize {
    items.iter().map(|item| cost(&item.text, slot.mark.len())).sum()
}

/// Names that need not be told.
type Mentioned = BTreeSet<String>;

fn names(found: &Extract, kind: Kind, but: &Mentioned) -> Vec<String> {
    found.mentions.best(kind, but).into_iter().map(str::to_owned).collect()
}

fn need_of(names: &[Vec<String>; NAMES.len()]) -> [usize; NAMES.len()] {
    let need =
        |names: &Vec<String>, label: &str| label.len() + 3 + names.iter().map(|name| name.len() + 2).sum::<usize>();
    std::array::from_fn(|at| if names[at].is_empty() { 0 } else { need(&names[at], NAMES[at].1) })
}

fn fitting(mut names: Vec<String>, mut room: usize) -> Vec<String> {
    names.retain(|name| {
        let fits = name.len() + 2 <= room;
        room -= if fits { name.len() + 2 } else { 0 };
        fits
    });
    names
}

/// What there is room for in each slot, and the room of the names, which need this much.
fn told(items: &[Vec<Item>], names_need: &[usize; NAMES.len()], max: usize) -> (Vec<Vec<String>>, Vec<usize>) {
    let shares = shares(items, names_need, max);
    let (mut spare, mut goals) = (0, Vec::new());
    let mut all = Vec::new();
    for ((slot, items), share) in SLOTS.iter().zip(items).zip(&shares) {
        // What is hardly a constraint need not be said twice.
        let said = |item: &&Item| item.class == 0 && goals.iter().any(|goal: &String| goal.contains(&item.text));
        let fresh: Vec<Item> = items.iter().filter(|item| !said(item)).cloned().collect();
        let (told, left) = fill(&fresh, slot.mark.len(), share + spare);
        spare = left;
        goals = if slot.section == Section::Goal { told.clone() } else { Vec::new() };
        all.push(told);
    }
    (all, shares[SLOTS.len()..].to_vec())
}

/// Who gets how much: first what is needed for what must not get lost, then what else there is.
fn shares(items: &[Vec<Item>], names_need: &[usize; NAMES.len()], max: usize) -> Vec<usize> {
    let slots = || SLOTS.iter().zip(items);
    let core = |(slot, items): (&Slot, &Vec<Item>)| {
        core(slot.section, items).iter().map(|item| cost(&item.text, slot.mark.len())).sum()
    };
    let core: Vec<usize> = slots().map(core).chain(*names_need).collect();
    let need: Vec<usize> = slots().map(|(slot, items)| whole(slot, items)).chain(*names_need).collect();
    let weights: Vec<usize> = SLOTS.iter().map(|slot| slot.weight).chain(NAMES.map(|names| names.2)).collect();
    let room = max.saturating_sub(headings_cost(&need));
    let first = allot(&core, &weights, room);
    let open: Vec<usize> = need.iter().zip(&first).map(|(need, share)| need - share).collect();
    let more = allot(&open, &weights, room - first.iter().sum::<usize>());
    first.iter().zip(more).map(|(first, more)| first + more).collect()
}

/// Newest requests and answers that are told in full, and have room before what is older.
const NEWEST: usize = 8;
/// Settled errors that have.
const SETTLED: usize = 3;

/// What must not get lost of a section.
fn core(section: Section, items: &[Item]) -> Vec<&Item> {
    let newest = || items.iter().rev().filter(|item| item.class < LASTING).take(NEWEST);
    let at_least = |class: u8| items.iter().filter(move |item| item.class >= class);
    match section {
        Section::Goal => at_least(LASTING).chain(newest()).collect(),
        Section::Done => newest().collect(),
        Section::Constraints | Section::Decisions => at_least(1).collect(),
        Section::Errors => at_least(2).chain(newest().filter(|item| item.class < 2).take(SETTLED)).collect(),
        _ => items.iter().collect(),
    }
}

/// Where not all has room, older requests and answers are told by how they begin.
fn abridge(section: Section, items: &mut [Item]) {
    if matches!(section, Section::Goal | Section::Done) {
        let older = items.len().saturating_sub(NEWEST);
        items[..older].iter_mut().filter(|item| item.class < LASTING).for_each(|item| {
            let line = item.text.lines().next().unwrap_or_default();
            let first = text::sentences(line).next().unwrap_or_default();
            item.text = text::clip(first, OLDER).into_owned();
        });
    }
}

/// What the headings of what is not empty take, a number of two digits before an item included.
fn headings_cost(need: &[usize]) -> usize {
    let open = SLOTS.iter().zip(need).filter(|(_, need)| **need > 0);
    let headings: BTreeSet<&str> = open.flat_map(|(slot, _)| slot.headings).copied().collect();
    let context = need[SLOTS.len()..].iter().any(|need| *need > 0).then_some("## Critical Context");
    let all: BTreeSet<&str> = headings.into_iter().chain(context).collect();
    all.iter().map(|heading| heading.len() + 2).sum::<usize>()
}

/// The text so far.
struct Page {
    text: String,
    last: &'static [&'static str],
}

impl Page {
    /// The headings that do not stand there yet.
    fn open(&mut self, headings: &'static [&'static str]) {
        let common = self.last.iter().zip(headings).take_while(|(a, b)| a == b).count();
        for heading in &headings[common..] {
            if heading.starts_with("## ") && !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(heading);
            self.text.push('\n');
        }
        self.last = headings;
    }

    fn item(&mut self, slot: &Slot, n: usize, text: &str) {
        self.open(slot.headings);
        if slot.mark == "1. " {
            self.text.push_str(&(n + 1).to_string());
            self.text.push_str(". ");
        } else {
            self.text.push_str(slot.mark);
        }
        self.text.push_str(&text.replace('\n', "\n  "));
        self.text.push('\n');
    }

    fn names(&mut self, label: &str, names: &[String]) {
        if !names.is_empty() {
            self.open(&["## Critical Context"]);
            self.text.push_str(&["- ", label, &names.join(", "), "\n"].concat());
        }
    }
}

/// The words of the instructions that can be looked for.
fn words(focus: &str) -> Vec<String> {
    let words = focus.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '`')).map(str::to_lowercase);
    words.map(|word| word.trim_matches('.').to_owned()).filter(|word| word.chars().count() > 4).take(16).collect()
}
