//! The sections of a summary and what stands in them, before it is decided what there is room for.
use std::collections::BTreeMap;

use super::text;

/// Items of a section that are held at once; of more, the oldest go.
const MOST: usize = 1024;
/// The class of an item that goes last.
pub const LASTING: u8 = 8;
/// Most bytes of an item from a summary before.
const OLD_ITEM: usize = 1200;

/// A section, in the order of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// What the user asked for.
    Goal,
    /// What the user laid down.
    Constraints,
    /// What was done.
    Done,
    /// What was asked and not answered.
    InProgress,
    /// What fails.
    Blocked,
    /// What was decided, and why.
    Decisions,
    /// What is left to do.
    Next,
    /// Errors that were seen; part of the critical context.
    Errors,
    /// Everything else; part of the critical context.
    Notes,
    /// The beginning of a turn whose rest is kept.
    Turn,
}

impl Section {
    /// How many there are.
    pub const COUNT: usize = 10;

    /// Most bytes of an item.
    fn item_bytes(self) -> usize {
        match self {
            Self::Goal | Self::Turn => 600,
            Self::Constraints | Self::Errors | Self::Blocked => 480,
            _ => 320,
        }
    }
}

/// An item of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it says, perhaps in several lines.
    pub text: String,
    /// How much it matters: what has a higher class is kept first.
    pub class: u8,
    /// Whether it is new, and not from a summary before.
    pub fresh: bool,
    /// What it has in common with items that say the same.
    key: u64,
}

impl Item {
    /// An item.
    pub fn new(text: String, class: u8, fresh: bool) -> Self {
        let key = text::key(&text);
        Self { text, class, fresh, key }
    }
}

/// Items by section, each oldest first.
#[derive(Debug, Default)]
pub struct Sections {
    lists: [Vec<Item>; Section::COUNT],
}

impl Sections {
    /// Adds what the conversation says.
    pub fn push(&mut self, section: Section, text: &str, class: u8) {
        let text = text::clip_middle(&text::tidy(text), section.item_bytes()).into_owned();
        self.add(section, Item::new(text, class, true));
    }

    /// Adds what a summary before says.
    pub fn push_old(&mut self, section: Section, text: &str, class: u8) {
        let text = text::clip(text, OLD_ITEM).into_owned();
        self.add(section, Item::new(text, class, false));
    }

    fn add(&mut self, section: Section, item: Item) {
        if item.text.is_empty() {
            return;
        }
        let list = &mut self.lists[section as usize];
        list.push(item);
        if list.len() > MOST {
            settle(list);
            let excess = list.len().saturating_sub(MOST / 2);
            let mut old = 0;
            list.retain(|item| {
                old += usize::from(item.class < LASTING);
                item.class >= LASTING || old > excess
            });
        }
    }

    /// The items of a section, each said once.
    pub fn take(&mut self, section: Section) -> Vec<Item> {
        let mut list = std::mem::take(&mut self.lists[section as usize]);
        settle(&mut list);
        list
    }

    /// Moves the items of a section here.
    pub fn absorb(&mut self, section: Section, other: &mut Self) {
        other.take(section).into_iter().for_each(|item| self.add(section, item));
    }

    /// Raises the class of what has one of these words (in lower case) in it.
    pub fn favour(&mut self, words: &[String]) {
        for item in self.lists.iter_mut().flatten() {
            let lower = item.text.to_lowercase();
            if words.iter().any(|word| lower.contains(word.as_str())) {
                item.class = item.class.max(1) + 2;
            }
        }
    }
}

/// Of items that say the same, the last stays, with the highest class of them.
fn settle(list: &mut Vec<Item>) {
    let mut classes = BTreeMap::new();
    for item in &*list {
        let class = classes.entry(item.key).or_insert(item.class);
        *class = item.class.max(*class);
    }
    let mut kept: Vec<Item> = Vec::with_capacity(classes.len());
    for mut item in std::mem::take(list).into_iter().rev() {
        // Whose class is taken away has been said.
        if let Some(class) = classes.remove(&item.key) {
            item.class = class;
            kept.push(item);
        }
    }
    kept.reverse();
    *list = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_twice_stands_once_where_it_was_said_last() {
        let mut sections = Sections::default();
        sections.push_old(Section::Next, "Write the test.", 5);
        sections.push(Section::Next, "ship", 1);
        sections.push(Section::Next, "write  the test", 1);
        let items = sections.take(Section::Next);
        let seen: Vec<_> = items.iter().map(|i| (i.text.as_str(), i.class, i.fresh)).collect();
        assert_eq!(seen, [("ship", 1, true), ("write the test", 5, true)]);
    }

    #[test]
    fn of_too_many_the_first_goal_and_the_newest_stay() {
        let mut sections = Sections::default();
        sections.push(Section::Goal, "the goal", LASTING);
        (0..5000).for_each(|n| sections.push(Section::Goal, &format!("request {n}"), 3));
        let items = sections.take(Section::Goal);
        assert!(items.len() <= MOST);
        assert_eq!((items[0].text.as_str(), items[items.len() - 1].text.as_str()), ("the goal", "request 4999"));
    }
}
