//! What JavaScript would not write: of several members with one name the last counts (S2.5), so the others are taken out
//! of the length of `JSON.stringify(JSON.parse(text))` again.

use std::collections::HashMap;

use crate::json::Key;

/// The members of the objects that a walk stands in.
#[derive(Default)]
pub(crate) struct Names<'a> {
    members: Vec<Member<'a>>,
    /// Where the members of each open object or array begin; arrays have none.
    starts: Vec<usize>,
    /// The member of the outermost object that is wanted.
    wanted: Option<&'static str>,
    /// Where in the text its value begins and ends; of several the last one's.
    span: (usize, usize),
    /// The walk is in its value.
    in_wanted: bool,
}

struct Member<'a> {
    key: Key<'a>,
    /// Units written up to its name, and up to the end of its value.
    from: u64,
    to: u64,
}

/// Of so few members each is compared with each.
const FEW: usize = 24;

impl<'a> Names<'a> {
    /// The same for a walk that is to find a member of the outermost object too.
    pub(crate) fn and(wanted: &'static str) -> Names<'a> {
        Names { wanted: Some(wanted), ..Names::default() }
    }

    /// Where in the text the value of the wanted member stands, if there is one.
    pub(crate) fn span(&self) -> Option<std::ops::Range<usize>> {
        let (start, end) = self.span;
        (start < end).then_some(start..end)
    }

    /// A bracket opens.
    pub(crate) fn open(&mut self) {
        self.starts.push(self.members.len());
    }

    /// A member begins, its value at this place of the text.
    pub(crate) fn begin(&mut self, key: Key<'a>, from: u64, at: usize) {
        self.members.push(Member { key, from, to: from });
        if self.starts.len() == 1 && self.wanted.is_some_and(|wanted| key.is(wanted)) {
            (self.span, self.in_wanted) = ((at, at), true);
        }
    }

    /// The value of the last member ends, if the innermost bracket is an object's.
    pub(crate) fn end(&mut self, written: u64, at: usize) {
        if self.in_wanted && self.starts.len() == 1 {
            (self.span.1, self.in_wanted) = (at, false);
        }
        let start = self.starts.last().copied().unwrap_or(0);
        if let Some(member) = self.members[start..].last_mut() {
            member.to = written;
        }
    }

    /// A bracket closes; the units in it that JavaScript would not write.
    pub(crate) fn close(&mut self) -> u64 {
        let start = self.starts.pop().unwrap_or(0);
        let surplus = surplus(&self.members[start..]);
        self.members.truncate(start);
        surplus
    }
}

/// Units of the members that a later one with the same name replaces, each with its comma.
fn surplus(members: &[Member<'_>]) -> u64 {
    let units = |member: &Member<'_>| member.to - member.from + 1;
    if members.len() <= FEW && !members.iter().any(|member| member.key.is_escaped()) {
        let replaced = |(at, member): &(usize, &Member<'_>)| {
            members[at + 1..].iter().any(|later| later.key.raw() == member.key.raw())
        };
        return members.iter().enumerate().filter(replaced).map(|(_, member)| units(member)).sum();
    }
    let mut last = HashMap::new();
    members.iter().filter_map(|member| last.insert(member.key.units(), units(member))).sum()
}
