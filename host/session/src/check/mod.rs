//! Everything that is wrong with a session file, and what Pi does with it: the table is [`Finding`]'s.
//!
//! What shows on a line, or in what stands before it, the [`Tree`] notes while it reads. Here is what shows only when all
//! is read: parents that never came, circles, what an edit or a compaction names and whether that is on its path, calls
//! and results in the context of the leaf, grafts without their end. It costs the number of entries; of the text only
//! calls, results, compactions and grafts are looked at.

mod calls;
mod named;
mod order;
mod places;
mod receipts;

use std::sync::Arc;

use crate::branch::{Branch, BranchError};
use crate::finding::Finding;
use crate::header::Version;
use crate::problem::{Problem, Problems, Severity};
use crate::tree::{EntryIx, Leaf, Source, Status, Tree};

use order::Order;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The problems, in file order; at most some 10,000 found while reading, and as many more.
    pub problems: Vec<Problem>,
    /// How many there are beyond those.
    pub more: u64,
    /// No error is among them all.
    pub valid: bool,
}

/// Checks a file that was read to its end; `source` gives its text.
///
/// # Errors
/// [`BranchError`] if a line cannot be read back.
pub fn check(tree: &Arc<Tree>, source: Arc<dyn Source>) -> Result<Checked, BranchError> {
    let mut check = Check { tree, order: Order::of(tree), problems: Problems::default() };
    check.file();
    check.places();
    check.named();
    check.receipts(&source)?;
    match Branch::of_leaf(tree, source) {
        Ok(branch) => check.calls(&branch)?,
        Err(BranchError::Cycle(_)) => check.at_leaf(Finding::CycleAtLeaf),
        Err(error) => return Err(error),
    }
    Ok(together(tree, check))
}

/// A check at work.
struct Check<'t> {
    tree: &'t Arc<Tree>,
    order: Order,
    problems: Problems,
}

impl Check<'_> {
    /// What is said of the file as a whole.
    fn file(&mut self) {
        let finding = match (self.tree.status(), self.tree.lines()) {
            (Status::NotBegun, 0) => Finding::EmptyFile,
            (Status::NotBegun, _) => Finding::NoHeader,
            _ => return,
        };
        let message = finding.what().to_owned();
        self.problems.push(Problem { finding, line: 0, offset: 0, at: None, entry_id: None, message });
    }

    fn note(&mut self, finding: Finding, ix: EntryIx) {
        self.note_as(finding, ix, finding.what().to_owned());
    }

    fn note_as(&mut self, finding: Finding, ix: EntryIx, message: String) {
        let entry = self.tree.entry(ix);
        let entry_id = Some(self.tree.id(ix).to_owned());
        self.problems.push(Problem { finding, line: entry.line, offset: entry.offset, at: None, entry_id, message });
    }

    fn at_leaf(&mut self, finding: Finding) {
        if let Leaf::At(leaf) = self.tree.leaf() {
            self.note(finding, leaf);
        }
    }
}

/// What the tree noted and what was found here, in file order.
fn together(tree: &Tree, check: Check<'_>) -> Checked {
    let (noted, found) = (tree.noted(), check.problems);
    let mut problems = noted.kept.clone();
    problems.iter_mut().for_each(|problem| look_again(tree, problem));
    problems.extend(found.kept);
    if tree.leaf() == Leaf::NoId && tree.header().is_some_and(|header| header.version > Version::V1) {
        name_last(&mut problems);
    }
    problems.sort_by_key(|problem| problem.offset);
    let is_error = |problem: &Problem| problem.severity() == Severity::Error;
    let valid = noted.more_errors + found.more_errors == 0 && !problems.iter().any(is_error);
    Checked { problems, more: noted.more + found.more, valid }
}

/// The last entry without an id is the leaf, which is another thing than one before it (S2.2).
fn name_last(problems: &mut [Problem]) {
    if let Some(last) = problems.iter_mut().rfind(|problem| problem.finding == Finding::NoId) {
        (last.finding, last.message) = (Finding::NoIdAtEnd, Finding::NoIdAtEnd.what().to_owned());
    }
}

/// A parent that was missing when its child was read may have come.
fn look_again(tree: &Tree, problem: &mut Problem) {
    if problem.finding != Finding::UnknownParent {
        return;
    }
    let child = tree.entries().binary_search_by_key(&problem.line, |entry| entry.line);
    match child.ok().and_then(|at| tree.parent(EntryIx(at as u32))) {
        Some(parent) => {
            problem.finding = Finding::ForwardParent;
            problem.message = format!("its parent {:?} stands later in the file", tree.id(parent));
        }
        None => problem.message = problem.message.replace(" before it", ""),
    }
}
