//! A summary before, taken apart, so that the new one takes its place rather than quoting it. Whoever made it: Pi's
//! have these sections too; what stands in no known section is kept among the notes.
use super::extract::Extract;
use super::mentions::Kind;
use super::sections::{LASTING, Section};
use super::text;

/// Takes up what the summary says.
pub fn recall(summary: &str, extract: &mut Extract) {
    let mut place = Place { section: Section::Notes, heading: None };
    let mut first_goal = true;
    for part in parts(summary) {
        match part {
            Part::Heading(heading) => place = place_of(heading),
            Part::Item(item) if is_nothing(&item) => {}
            Part::Item(item) => {
                let item = match place.heading {
                    Some(heading) => [heading, ": ", &item].concat(),
                    None => item,
                };
                let class = if place.section == Section::Goal && std::mem::take(&mut first_goal) { LASTING } else { 3 };
                take(extract, place.section, &item, class);
            }
        }
    }
}

/// Where items go; with a heading that has no section, they are told under its name.
#[derive(Clone, Copy)]
struct Place<'a> {
    section: Section,
    heading: Option<&'a str>,
}

fn place_of(heading: &str) -> Place<'_> {
    section_of(heading)
        .map_or(Place { section: Section::Notes, heading: Some(heading) }, |section| Place { section, heading: None })
}

/// The section with this heading, by Pi's names and ours.
fn section_of(heading: &str) -> Option<Section> {
    let name: String = heading.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    Some(match name.as_str() {
        "goal" | "goals" | "originalrequest" | "request" => Section::Goal,
        "constraintspreferences" | "constraintsandpreferences" | "constraints" | "preferences" => Section::Constraints,
        "progress" | "done" | "completed" | "progresssofar" => Section::Done,
        "inprogress" | "currentwork" => Section::InProgress,
        "blocked" | "blockers" => Section::Blocked,
        "keydecisions" | "decisions" => Section::Decisions,
        "nextsteps" | "next" => Section::Next,
        "criticalcontext" | "contextneededtocontinue" | "context" | "notes" => Section::Notes,
        "turninprogress" | "turncontextsplitturn" => Section::Turn,
        _ => return None,
    })
}

fn take(extract: &mut Extract, section: Section, item: &str, class: u8) {
    extract.mentions.scan(item, 1);
    if section == Section::Goal {
        extract.has_goal();
    }
    match section {
        Section::Done if item.starts_with("Changed: ") => {}
        Section::Done | Section::Blocked if extract.outcomes.recall(item) => {}
        Section::InProgress => match item.strip_prefix("Asked: ") {
            Some(request) => extract.reopen(request),
            None => extract.sections.push_old(section, item, class),
        },
        Section::Notes => note(extract, item),
        Section::Turn => turn(extract, item),
        _ => extract.sections.push_old(section, item, class),
    }
}

/// The notes hold lists and errors of their own.
fn note(extract: &mut Extract, item: &str) {
    for (label, kind) in [("Paths: ", Kind::Path), ("Identifiers: ", Kind::Name)] {
        if let Some(names) = item.strip_prefix(label) {
            names
                .split(", ")
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .for_each(|name| extract.mentions.add(kind, name, 2));
            return;
        }
    }
    if extract.outcomes.recall(item) {
        return;
    }
    let past = ["Earlier: ", "Earlier (", "Earlier error ("].iter().any(|label| item.starts_with(label));
    extract.sections.push_old(if past { Section::Errors } else { Section::Notes }, item, if past { 1 } else { 3 });
}

/// The turn has gone on since: its items join those of the sessions's.
fn turn(extract: &mut Extract, item: &str) {
    if let Some(request) = item.strip_prefix("Request: ") {
        extract.has_goal();
        extract.sections.push_old(Section::Goal, request, 4);
        extract.reopen(request);
    } else if let Some(done) = item.strip_prefix("Done: ") {
        take(extract, Section::Done, done, 3);
    } else if !extract.outcomes.recall(item) {
        extract.sections.push_old(Section::Done, item.strip_prefix("Step: ").unwrap_or(item), 1);
    }
}

/// What stands for nothing.
fn is_nothing(item: &str) -> bool {
    const NOTHING: &[&str] = &["none", "na", "nothing", "nopriorhistory", "turncontextsplitturn"];
    let letters = text::head(item, 40).chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    item.starts_with("Focus: ")
        || !item.contains(char::is_alphanumeric)
        || NOTHING.contains(&letters.collect::<String>().as_str())
}

enum Part<'a> {
    Heading(&'a str),
    Item(String),
}

/// Headings and items in their order. An item goes on over lines that begin no other one, code included. A fence that opens
/// within an item of ours, which is indented, ends with it: what stands there may have none that closes it.
fn parts(summary: &str) -> Vec<Part<'_>> {
    let (mut parts, mut fenced, mut blank, mut inner) = (Vec::new(), false, true, false);
    for line in summary.lines() {
        let heading = heading(line).filter(|name| !fenced || section_of(name).is_some());
        if let Some(name) = heading {
            (fenced, blank) = (false, true);
            parts.push(Part::Heading(name));
        } else if line.trim().is_empty() {
            blank = !fenced;
        } else {
            fenced &= !(inner && is_item(line));
            let starts = !fenced && (is_item(line) || blank && !line.starts_with(' '));
            if opens(line) {
                (fenced, inner) = (!fenced, line.starts_with(' ') || is_item(line));
            }
            put(&mut parts, line, starts);
            blank = false;
        }
    }
    parts
}

/// Whether a line opens or closes a fence, as the text of an item too.
fn opens(line: &str) -> bool {
    text::is_fence(text::unlisted(line).unwrap_or(line))
}

fn put(parts: &mut Vec<Part<'_>>, line: &str, starts: bool) {
    if let (Some(Part::Item(item)), false) = (parts.last_mut(), starts) {
        item.push('\n');
        item.push_str(line.strip_prefix("  ").unwrap_or(line).trim_end());
        return;
    }
    let line = line.trim();
    let item = text::unlisted(line).unwrap_or(line);
    parts.push(Part::Item(text::untick(item).1.trim_end().into()));
}

fn heading(line: &str) -> Option<&str> {
    let name = line.trim_start_matches('#');
    let depth = line.len() - name.len();
    ((1..=6).contains(&depth) && name.starts_with(' ')).then(|| name.trim().trim_matches('*').trim_end_matches(':'))
}

fn is_item(line: &str) -> bool {
    text::unlisted(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recalled(summary: &str, section: Section) -> Vec<String> {
        let mut extract = Extract::default();
        recall(summary, &mut extract);
        extract.close();
        extract.sections.take(section).into_iter().map(|item| item.text).collect()
    }

    const PI: &str = "## Goal\nPort the parser\n\n## Constraints & Preferences\n- (none)\n\n## Progress\n### Done\n- [x] lexer\n  - with tests\n### In Progress\n- [ ] parser\n\n## Key Decisions\n- **redb**: one file\n\n## Next Steps\n1. errors\n2. docs\n\n## Critical Context\n- see:\n```rust\n# not a heading\nfn x() {}\n```\n\n## Extra\n- more\n\n---\n\n**Turn Context (split turn):**\n\n## Original Request\nFix it\n";

    #[test]
    fn a_summary_of_pis_is_taken_apart() {
        assert_eq!(recalled(PI, Section::Goal), ["Port the parser", "Fix it"]);
        assert_eq!(recalled(PI, Section::Constraints), [""; 0]);
        assert_eq!(recalled(PI, Section::Done), ["lexer\n- with tests"]);
        assert_eq!(recalled(PI, Section::InProgress), ["parser"]);
        assert_eq!(recalled(PI, Section::Decisions), ["**redb**: one file"]);
        assert_eq!(recalled(PI, Section::Next), ["errors", "docs"]);
        assert_eq!(recalled(PI, Section::Notes), ["see:\n```rust\n# not a heading\nfn x() {}\n```", "Extra: more"]);
    }

    #[test]
    fn a_fence_that_never_closes_swallows_no_other_item() {
        let text = "## Goal\n- see\n  ```diff\n  - x\n- and this\n- ```\n- and that\n\n## Next Steps\n1. c";
        assert_eq!(recalled(text, Section::Goal), ["see\n```diff\n- x", "and this", "and that"]);
        assert_eq!(recalled(text, Section::Next), ["c"]);
    }

    #[test]
    fn what_has_no_sections_is_kept_as_notes() {
        assert_eq!(
            recalled("We did this.\nAnd that.\n\nThen more.", Section::Notes),
            ["We did this.\nAnd that.", "Then more."]
        );
    }
}
