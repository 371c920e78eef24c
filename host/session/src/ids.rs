//! Texts known by number: ids, and words that come again and again. Each stands once, all in one piece of memory.

use std::hash::BuildHasher;

use hashbrown::HashTable;

/// A growing set of texts, numbered in the order they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    /// All texts, one behind the other.
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
    /// Their numbers, found by hash. Files are not to be trusted, so the hash is keyed.
    table: HashTable<u32>,
    hasher: std::hash::RandomState,
}

impl Ids {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of that number.
    pub(crate) fn text(&self, number: u32) -> &str {
        text_of(&self.text, &self.ends, number)
    }

    /// The number of a text that is there.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.table.find(self.hasher.hash_one(text), |known| self.text(*known) == text).copied()
    }

    /// The number of a text, a new one if it never came before.
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        let hash = self.hasher.hash_one(text);
        if let Some(known) = self.table.find(hash, |known| self.text(*known) == text) {
            return *known;
        }
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.text.push_str(text);
        self.ends.push(self.text.len());
        let (all, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.table.insert_unique(hash, number, |known| hasher.hash_one(text_of(all, ends, *known)));
        number
    }
}

fn text_of<'t>(all: &'t str, ends: &[usize], number: u32) -> &'t str {
    let at = number as usize;
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &all[start..ends[at]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_number() {
        let mut ids = Ids::default();
        let first: Vec<u32> = (0..1000).map(|n| ids.intern(&format!("id {n}"))).collect();
        let again: Vec<u32> = (0..1000).map(|n| ids.intern(&format!("id {n}"))).collect();
        assert_eq!(first, again);
        assert_eq!(ids.text(first[999]), "id 999");
        assert_eq!(ids.find("id 7"), Some(first[7]));
        assert_eq!(ids.find("nobody"), None);
        assert_eq!(ids.len(), 1000);
    }
}
