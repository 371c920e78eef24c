//! Walking a branch, page by page behind the scenes.
use std::vec;

use crate::{Host, Info, Page};

/// Entries, newest first. Stop when you have seen enough: what is not looked at is not read.
pub struct Entries<'a> {
    page: &'a dyn Fn(&dyn Host, Option<u32>) -> Page,
    host: &'a dyn Host,
    items: vec::IntoIter<Info>,
    next: Next,
}

/// Where the walk goes on.
enum Next {
    Leaf,
    Before(u32),
    Done,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(host: &'a dyn Host, page: &'a dyn Fn(&dyn Host, Option<u32>) -> Page) -> Self {
        Self { page, host, items: Vec::new().into_iter(), next: Next::Leaf }
    }

    /// Fetches the next page; false at the root.
    fn turn(&mut self) -> bool {
        let before = match self.next {
            Next::Leaf => None,
            Next::Before(place) => Some(place),
            Next::Done => return false,
        };
        let page = (self.page)(self.host, before);
        self.next = page.next.map_or(Next::Done, Next::Before);
        self.items = page.items.into_iter();
        true
    }
}

impl Iterator for Entries<'_> {
    type Item = Info;

    fn next(&mut self) -> Option<Info> {
        loop {
            if let Some(info) = self.items.next() {
                return Some(info);
            }
            if !self.turn() {
                return None;
            }
        }
    }
}
