//! A branch as one page: what it is, what it used, and its entries. Written piece by piece; one entry is in memory.

use std::collections::HashMap;
use std::io::Write;

use pi_session::Branch;
use pi_session::context::Shown;
use pi_session::entry::{EntryKind, Role};
use pi_session::json::Json;
use pi_session::totals::Usage;

use super::article;
use super::html::escaped;
use crate::cli::failure::Failure;
use crate::cli::open::Opened;
use crate::cli::out::{grouped, short};
use crate::cli::preview::one_line;
use crate::cli::progress::Progress;
use crate::cli::session::list::title;
use crate::cli::text::cut;
use crate::cli::when::Zone;
use crate::daemon::world::now_ms;

/// How it looks, by day and by night.
const STYLE: &str = include_str!("style.css");
/// A browser loads nothing for it and runs nothing in it, whatever should stand there.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Columns of a line in the contents.
const GLIMPSE: usize = 90;

/// Writes the page of a branch.
pub(super) fn write(opened: &Opened, branch: &Branch, progress: &Progress, to: &mut dyn Write) -> Result<(), Failure> {
    let page = Page::of(opened, branch)?;
    page.write_head(to)?;
    page.write_contents(to)?;
    writeln!(to, "<main>")?;
    for item in branch.items() {
        page.write_entry(item.place, to)?;
        progress.add(u64::from(item.facts.len));
    }
    let (version, now) = (env!("CARGO_PKG_VERSION"), page.zone.minutes(now_ms()));
    writeln!(to, "</main>\n<footer>Written by pi-graft {version} on {now}.</footer>\n</body>\n</html>")?;
    Ok(())
}

struct Page<'p> {
    opened: &'p Opened,
    branch: &'p Branch,
    zone: Zone,
    /// What becomes of each entry in the context of the leaf, by place; what is not here is not in it.
    shown: HashMap<u32, Shown>,
    tokens: f64,
}

impl<'p> Page<'p> {
    fn of(opened: &'p Opened, branch: &'p Branch) -> Result<Page<'p>, Failure> {
        let context = branch.context();
        let shown = context.entries.iter().map(|entry| (entry.place, entry.shown)).collect();
        let tokens = branch.tokens(&context)?.total;
        Ok(Page { opened, branch, zone: Zone::of_process(), shown, tokens })
    }

    fn write_head(&self, to: &mut dyn Write) -> Result<(), Failure> {
        let name = cut(&title(self.opened)?, 200).into_owned();
        let name = escaped(if name.is_empty() { "A Pi session" } else { &name });
        writeln!(to, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{name}</title>")?;
        writeln!(to, "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">")?;
        writeln!(to, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
        writeln!(to, "<meta name=\"referrer\" content=\"no-referrer\">\n<style>\n{STYLE}</style>\n</head>\n<body>")?;
        writeln!(to, "<header>\n<h1>{name}</h1>\n<dl class=\"facts\">")?;
        for (name, value) in self.facts() {
            if !value.is_empty() {
                writeln!(to, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
            }
        }
        writeln!(to, "</dl>")?;
        self.write_totals(to)?;
        Ok(writeln!(to, "</header>")?)
    }

    fn facts(&self) -> [(&'static str, String); 6] {
        let (tree, branch) = (&self.opened.tree, self.branch);
        let header = tree.header();
        let of_header = |value: Option<&str>| value.map(one_line).unwrap_or_default();
        let times: Vec<i64> = branch.items().filter_map(|item| item.facts.time_ms).collect();
        let span = times.iter().min().zip(times.iter().max());
        let (on, all) = (u64::from(branch.len()), tree.entries().len() as u64);
        let others = match all - on.min(all) {
            0 => String::new(),
            others => format!("; {} on other branches, not shown here", grouped(others)),
        };
        let count = |fits: &dyn Fn(EntryKind, Role) -> bool| {
            grouped(branch.items().filter(|item| fits(item.facts.kind, item.facts.role)).count() as u64)
        };
        let of_role = |role| count(&|kind, other| kind == EntryKind::Message && other == role);
        let (user, assistant, tools) = (of_role(Role::User), of_role(Role::Assistant), of_role(Role::ToolResult));
        let compactions = count(&|kind, _| kind == EntryKind::Compaction);
        let compactions =
            if compactions == "1" { "1 compaction".to_owned() } else { format!("{compactions} compactions") };
        [
            ("session", of_header(header.map(|header| header.id.as_str()))),
            ("cwd", of_header(header.and_then(|header| header.cwd.as_deref()))),
            ("from", of_header(header.and_then(|header| header.parent_session.as_deref()))),
            (
                "time",
                span.map(|(a, b)| format!("{} to {}", self.zone.minutes(*a), self.zone.minutes(*b)))
                    .unwrap_or_default(),
            ),
            ("entries", format!("{}: {user} user, {assistant} assistant, {tools} tool results{others}", grouped(on))),
            ("context", format!("{} tokens, {compactions}", grouped(self.tokens as u64))),
        ]
    }

    /// What the whole session used, all branches (S4.5).
    fn write_totals(&self, to: &mut dyn Write) -> Result<(), Failure> {
        let totals = self.opened.tree.totals();
        if totals.by_model.is_empty() {
            return Ok(());
        }
        writeln!(to, "<table class=\"totals\"><tr class=\"head\"><td>whole session</td>")?;
        writeln!(to, "<td>input</td><td>output</td><td>cache read</td><td>written</td><td>cost</td></tr>")?;
        for (name, usage) in &totals.by_model {
            let name = if name.is_empty() { "no model named".to_owned() } else { one_line(name) };
            write_usage(&escaped(&name), usage, to)?;
        }
        if totals.by_model.len() > 1 {
            write_usage("all", &totals.all, to)?;
        }
        Ok(writeln!(to, "</table>")?)
    }

    /// What the user said, and where the session was compacted or labelled: each a way into it.
    fn write_contents(&self, to: &mut dyn Write) -> Result<(), Failure> {
        let leads = |kind, role| match kind {
            EntryKind::Message => role == Role::User,
            kind => kind == EntryKind::Compaction,
        };
        let items = self.branch.items().filter(|item| {
            leads(item.facts.kind, item.facts.role) || item.id.is_some_and(|id| self.opened.tree.label(id).is_some())
        });
        writeln!(to, "<nav><details><summary>contents</summary><ol>")?;
        for item in items {
            let preview = self.branch.read(item.place, crate::cli::preview::entry)?;
            let what = if preview.what == "user" { "" } else { preview.what.as_str() };
            let (place, said) = (item.place, cut(&preview.said, GLIMPSE));
            let (what, said, label) = (escaped(what), escaped(&said), self.label(item.id));
            writeln!(to, "<li><a href=\"#e{place}\"><b>{what}</b> {said}</a>{label}</li>")?;
        }
        Ok(writeln!(to, "</ol></details></nav>")?)
    }

    fn label(&self, id: Option<&str>) -> String {
        let label = id.and_then(|id| self.opened.tree.label(id)).map(one_line);
        label.map_or_else(String::new, |label| format!(" <span class=\"label\">{}</span>", escaped(&label)))
    }

    /// A link to the entry with this id, if it is on the branch.
    fn link(&self, id: &str) -> String {
        let shown = escaped(&one_line(id));
        match self.branch.place_of(id) {
            Some(place) => format!("<a href=\"#e{place}\">{shown}</a>"),
            None => shown,
        }
    }

    fn write_entry(&self, place: u32, to: &mut dyn Write) -> Result<(), Failure> {
        let item = self.branch.item(place);
        let article = self.branch.read(place, |line: Json<'_>| article::of(line, &|id| self.link(id)))?;
        let (gone, fate) = self.fate(place);
        let time = item.facts.time_ms.map(|ms| self.zone.seconds(ms)).unwrap_or_default();
        let id = escaped(&one_line(item.id.unwrap_or_default()));
        let article::Article { class, name, facts, body } = article;
        write!(to, "<article id=\"e{place}\" class=\"{class}{gone}\"><h2><b>{name}</b>{} ", self.label(item.id))?;
        write!(to, "<span>{fate}</span><span>{facts}</span><a href=\"#e{place}\">{time} {id}</a></h2>")?;
        writeln!(to, "<div dir=\"auto\">{body}</div></article>")?;
        Ok(())
    }

    /// Whether the model still sees an entry: more for its class, and in words.
    fn fate(&self, place: u32) -> (&'static str, String) {
        let by = |by: u32| self.link(self.branch.item(by).id.unwrap_or_default());
        match self.shown.get(&place) {
            Some(Shown::Omitted { by: edit }) => (" gone", format!("left out by {}", by(*edit))),
            Some(Shown::Replaced { by: edit }) => ("", format!("replaced by {}", by(*edit))),
            Some(Shown::AsIs | Shown::Nothing) => ("", String::new()),
            None if self.branch.facts(place).gives => (" gone", "no longer in context".to_owned()),
            None => ("", String::new()),
        }
    }
}

fn write_usage(name: &str, usage: &Usage, to: &mut dyn Write) -> Result<(), Failure> {
    let Usage { input, output, cache_read, cache_write, cost } = *usage;
    let [input, output, read, written] = [input, output, cache_read, cache_write].map(short);
    let numbers = format!("<td>{input}</td><td>{output}</td><td>{read}</td><td>{written}</td><td>${cost:.4}</td>");
    Ok(writeln!(to, "<tr><td>{name}</td>{numbers}</tr>")?)
}
