//! Lines of the log, for people or as JSON.

use crate::cli::paint::{Ink, Row};
use crate::cli::when::Zone;
use crate::daemon::feed::log_line;
use crate::journal::{Journal, JournalError};
use crate::wire::control::{LogFilter, LogLine};

use super::{Failure, Out};

/// The lines of a store that no daemon has open, newest last.
pub(super) fn of_store(journal: &Journal, most: usize, filter: &LogFilter) -> Result<Vec<LogLine>, JournalError> {
    let mut lines = journal.runs(most, |line| filter.wants(&line.session, &line.plugin))?;
    lines.reverse();
    Ok(lines.iter().map(|line| log_line(line, None)).collect())
}

pub(super) fn write(lines: &[LogLine], out: &mut Out) -> Result<(), Failure> {
    let zone = Zone::of_process();
    for line in lines {
        if out.json {
            out.line(serde_json::to_string(line).map_err(Failure::problem)?)?;
        } else {
            out.paint(&row(line, &zone))?;
        }
    }
    Ok(())
}

fn row(line: &LogLine, zone: &Zone) -> Row {
    let ink = match line.outcome.as_str() {
        "nothing" | "later" | "proposed" => Ink::Dim,
        "grafted" | "handed over" | "known" => Ink::Green,
        _ => Ink::Yellow,
    };
    let cost = if line.about == "run" { format!("{} µs", line.micros) } else { String::new() };
    let session: String = line.session.chars().take(8).collect();
    Row::new()
        .column(Ink::Dim, 20, &zone.seconds(line.at_ms))
        .column(Ink::Plain, 9, &session)
        .column(Ink::Plain, 16, &line.plugin)
        .column(ink, 12, &line.outcome)
        .and(Ink::Dim, &format!("on {} ", line.trigger))
        .and(Ink::Dim, &line.batch.as_ref().map_or_else(String::new, |batch| format!("batch {batch} ")))
        .and(Ink::Dim, &cost)
        .and(Ink::Plain, &if line.message.is_empty() { String::new() } else { format!("  {}", line.message) })
}
