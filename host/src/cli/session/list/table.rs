//! The listing as people see it: one line a session, as much of it as the terminal has columns for.

use std::path::Path;

use super::row::Row;
use crate::cli::out::{bytes_text, grouped, short};
use crate::cli::paint::{self, Ink};
use crate::cli::preview::one_line;
use crate::cli::text::columns;
use crate::cli::when::Zone;

/// Columns of a terminal on which there is room for everything.
const WIDE: usize = 110;
/// Characters of an id that are shown at least.
const ID: usize = 8;
/// Columns of a working directory, at most: in a narrow listing and in a wide one.
const CWD: [usize; 2] = [16, 32];

/// A listing's columns.
pub(super) struct Table<'e> {
    zone: Zone,
    now_ms: i64,
    home: Option<&'e Path>,
    /// Columns of the whole; without a terminal as many as it takes.
    width: usize,
    id: usize,
    cwd: usize,
}

impl<'e> Table<'e> {
    /// One for these sessions. Where the ids are cut, what is left still names one session alone.
    pub fn of(rows: &[&Row], now_ms: i64, home: Option<&'e Path>, width: usize) -> Table<'e> {
        let longest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(|row| of(row)).max().unwrap_or(0);
        let mut table = Table { zone: Zone::of_process(), now_ms, home, width, id: 0, cwd: 0 };
        let whole = longest(&|row| columns(&one_line(&row.id)));
        let ids = rows.iter().map(|row| row.id.as_str()).collect();
        table.id = if width == usize::MAX { whole } else { whole.min(telling(ids).max(ID)) };
        let cwd = longest(&|row| columns(&table.cwd_of(row)));
        table.cwd = cwd.min(if width == usize::MAX { cwd } else { CWD[usize::from(table.is_wide())] }).max(3);
        table
    }

    fn is_wide(&self) -> bool {
        self.width >= WIDE
    }

    /// What the columns are.
    pub fn head(&self) -> paint::Row {
        let row = paint::Row::new().column(Ink::Dim, self.time(), "modified").and(Ink::Dim, "  ");
        let row = row.column(Ink::Dim, self.id, "id").number(Ink::Dim, 9, "size");
        let row = if self.is_wide() { row.number(Ink::Dim, 9, "entries") } else { row };
        let row = row.number(Ink::Dim, 8, "tokens").and(Ink::Dim, "  ").column(Ink::Dim, self.cwd, "cwd");
        row.and(Ink::Dim, "  session")
    }

    /// A session.
    pub fn row(&self, row: &Row, modified_ms: i64, bytes: u64) -> paint::Row {
        let time = match self.is_wide() {
            true => self.zone.minutes(modified_ms),
            false => self.zone.brief(modified_ms, self.now_ms),
        };
        let id: String = row.id.chars().take(self.id).collect();
        let painted = paint::Row::new().column(Ink::Dim, self.time(), &time).and(Ink::Plain, "  ");
        let painted = painted.column(Ink::Yellow, self.id, &id).number(Ink::Dim, 9, &bytes_text(bytes));
        let entries = grouped(row.entries as u64);
        let painted = if self.is_wide() { painted.number(Ink::Dim, 9, &entries) } else { painted };
        let tokens = row.tokens.map_or_else(|| "-".to_owned(), short);
        let painted = painted.number(Ink::Plain, 8, &tokens).and(Ink::Plain, "  ");
        painted.column(Ink::Cyan, self.cwd, &self.cwd_of(row)).and(Ink::Plain, "  ").and(Ink::Plain, &row.title)
    }

    fn time(&self) -> usize {
        if self.is_wide() { 16 } else { 12 }
    }

    /// The working directory, `~` for the user's home; where there is little room its last part.
    fn cwd_of(&self, row: &Row) -> String {
        let cwd = Path::new(row.cwd.as_deref().unwrap_or("-"));
        let below = self.home.and_then(|home| cwd.strip_prefix(home).ok());
        let whole = match below {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.display()),
            None => cwd.display().to_string(),
        };
        let whole = one_line(&whole);
        let room = if self.width == usize::MAX { usize::MAX } else { CWD[usize::from(self.is_wide())] };
        match whole.rsplit_once('/') {
            Some((_, last)) if columns(&whole) > room && columns(last) < room => format!("…/{last}"),
            _ => whole,
        }
    }
}

/// How many characters tell these ids apart, those that are alike set aside.
fn telling(mut ids: Vec<&str>) -> usize {
    ids.sort_unstable();
    ids.dedup();
    let alike = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(|pair| alike(pair[0], pair[1]) + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, cwd: &str) -> Row {
        Row {
            id: id.into(),
            cwd: Some(cwd.into()),
            title: "日本語 title".into(),
            entries: 1234,
            tokens: Some(45_200.0),
        }
    }

    fn lines(rows: &[Row], width: usize) -> Vec<String> {
        let rows: Vec<_> = rows.iter().collect();
        let table = Table::of(&rows, 0, Some(Path::new("/home/me")), width);
        rows.iter().map(|row| table.row(row, 0, 1 << 20).render(width, false)).collect()
    }

    #[test]
    fn an_id_is_cut_to_what_tells_it_from_the_others() {
        assert_eq!((telling(vec![]), telling(vec!["a"]), telling(vec!["ab", "ac", "x"])), (0, 0, 2));
        assert_eq!(telling(vec!["ab", "ab", "abc"]), 3);
        let rows = [row("0198c0de-aaaa-1", "/w"), row("0198c0de-ab", "/w")];
        let lines = lines(&rows, 80);
        assert!(lines[0].contains(" 0198c0de-aa ") && lines[1].contains(" 0198c0de-ab "), "{lines:?}");
    }

    #[test]
    fn every_line_fits_and_the_directories_stand_below_each_other() {
        let rows = [row("01234567", "/home/me/some/where/deep/down/project"), row("76543210", "/home/me/ab")];
        for width in [40, 80, 140] {
            let lines = lines(&rows, width);
            assert!(lines.iter().all(|line| columns(line) <= width), "{lines:?}");
        }
        let lines = lines(&rows, 80);
        let title = |line: &str| line.split_once("日").map(|(before, _)| columns(before));
        assert_eq!(title(&lines[0]), title(&lines[1]), "{lines:?}");
        assert!(lines[0].contains("…/project") && lines[1].contains("~/ab"), "{lines:?}");
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let id = "0198c0de-0000-7000-8000-000000000000";
        let line = lines(&[row(id, "/home/me/some/where/deep/down/project/and/further")], usize::MAX).remove(0);
        assert!(line.contains(id) && line.contains("~/some/where/deep/down/project/and/further"), "{line}");
    }
}
