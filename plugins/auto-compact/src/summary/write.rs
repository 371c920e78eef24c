//! The summary as text.
use std::collections::BTreeSet;

use super::budget::{allot, cost, fill};
use super::extract::Extract;
use super::mentions::Kind;
use super::sections::{Item, Section, Sections};
use super::text;
use crate::files::Files;

/// Most bytes of the user's instructions.
const FOCUS: usize = 400;

/// A place in the summary: what goes there, before each item, at what weight when room is short. Weights are per mille.
struct Slot {
    headings: &'static [&'static str],
    section: Section,
    mark: &'static str,
    weight: usize,
}

const SLOTS: [Slot; Section::COUNT] = [
    slot(&["## Goal"], Section::Goal, "- ", 210),
    slot(&["## Constraints & Preferences"], Section::Constraints, "- ", 130),
    slot(&["## Progress", "### Done"], Section::Done, "- [x] ", 110),
    slot(&["## Progress", "### In Progress"], Section::InProgress, "- [ ] ", 40),
    slot(&["## Progress", "### Blocked"], Section::Blocked, "- ", 60),
    slot(&["## Key Decisions"], Section::Decisions, "- ", 100),
    slot(&["## Next Steps"], Section::Next, "1. ", 60),
    slot(&["## Critical Context"], Section::Errors, "- ", 90),
    slot(&["## Critical Context"], Section::Notes, "- ", 50),
    slot(&["## Turn in Progress"], Section::Turn, "- ", 120),
];

/// The lists of names stand behind the notes.
const NAMES: [(Kind, &str, usize); 2] = [(Kind::Path, "Paths: ", 70), (Kind::Name, "Identifiers: ", 70)];

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
    let listed: BTreeSet<&str> = files.read.iter().chain(&files.modified).map(String::as_str).collect();
    let names = NAMES.map(|(kind, label, _)| (label, found.mentions.best(kind, &listed)));
    let body = sections(&mut found.sections, &names, &mut page, room);
    let text = [page.text.trim(), &blocks].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    (body || !blocks.is_empty()).then_some(text)
}

/// Writes what there is room for; whether there was any.
fn sections(found: &mut Sections, names: &[(&str, Vec<&str>); 2], page: &mut Page, max: usize) -> bool {
    let items: Vec<Vec<Item>> = SLOTS.iter().map(|slot| found.take(slot.section)).collect();
    let needs = |(slot, items): (&Slot, &Vec<Item>)| items.iter().map(|item| cost(&item.text, slot.mark.len())).sum();
    let mut need: Vec<usize> = SLOTS.iter().zip(&items).map(needs).collect();
    need.extend(names.iter().map(|(label, names)| names_need(label, names)));
    let weights: Vec<usize> = SLOTS.iter().map(|slot| slot.weight).chain(NAMES.map(|names| names.2)).collect();
    let shares = allot(&need, &weights, max.saturating_sub(headings_cost(&need)));
    let (mut spare, before) = (0, page.text.len());
    for (at, slot) in SLOTS.iter().enumerate() {
        if slot.section == Section::Turn {
            for (at, (label, names)) in names.iter().enumerate() {
                spare = page.names(label, names, shares[SLOTS.len() + at] + spare);
            }
        }
        let (told, left) = fill(&items[at], slot.mark.len(), shares[at] + spare);
        spare = left;
        told.iter().enumerate().for_each(|(n, text)| page.item(slot, n, text));
    }
    page.text.len() > before
}

fn names_need(label: &str, names: &[&str]) -> usize {
    if names.is_empty() { 0 } else { label.len() + 3 + names.iter().map(|name| name.len() + 2).sum::<usize>() }
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

    /// As many names as fit, in one line; what room is left.
    fn names(&mut self, label: &str, names: &[&str], room: usize) -> usize {
        let mut left = room.saturating_sub(label.len() + 3);
        let fits = |name: &&&str| {
            let fits = name.len() + 2 <= left;
            left -= if fits { name.len() + 2 } else { 0 };
            fits
        };
        let told: Vec<_> = names.iter().filter(fits).copied().collect();
        if told.is_empty() {
            return room;
        }
        self.open(&["## Critical Context"]);
        self.text.push_str(&["- ", label, &told.join(", "), "\n"].concat());
        left
    }
}

/// The words of the instructions that can be looked for.
fn words(focus: &str) -> Vec<String> {
    let words = focus.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '`')).map(str::to_lowercase);
    words.map(|word| word.trim_matches('.').to_owned()).filter(|word| word.chars().count() > 4).take(16).collect()
}
