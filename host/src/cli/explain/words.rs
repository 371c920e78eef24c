//! The story for people.

use pi_session::undo;

use crate::cli::failure::Failure;
use crate::cli::out::{Out, grouped};
use crate::cli::paint::{Ink, Row};
use crate::cli::preview::{ink, one_line};
use crate::cli::when::Zone;
use crate::explain::{Became, Brief, Delivered, EditTold, EntryTold, GraftBrief, GraftTold, RunTold};
use crate::wire::quarantine::{FailedLine, SuspendedLine};

use super::Told;

/// Columns of what a line is about.
const WIDE: usize = 10;

/// Writes lines, each about one thing.
struct Words<'o> {
    out: &'o mut Out,
    zone: Zone,
}

pub(super) fn write(told: &Told<'_>, out: &mut Out) -> Result<(), Failure> {
    let mut words = Words { out, zone: Zone::of_process() };
    words.entry(told)?;
    let explained = &told.explained;
    if let Some(graft) = &explained.graft {
        words.graft(graft, told.source)?;
    }
    if let Some(batch) = &explained.rejoins {
        words.say(
            "graft",
            Ink::Plain,
            &format!("by pi-graft itself: it leads back to Pi's branch behind batch {batch}"),
        )?;
    }
    explained.runs.iter().try_for_each(|run| words.run(run))?;
    let ran = |graft: &&GraftBrief| !explained.runs.iter().any(|run| run.entries.contains(&graft.entry));
    explained.grafts.iter().filter(ran).try_for_each(|graft| words.made_for(graft))?;
    explained.edits.iter().try_for_each(|edit| words.edit(edit))?;
    explained.failed.iter().try_for_each(|run| words.failed(run))?;
    explained.suspended.iter().try_for_each(|row| words.suspended(row))?;
    words.end(told)
}

impl Words<'_> {
    fn say(&mut self, about: &str, ink: Ink, text: &str) -> Result<(), Failure> {
        let row = Row::new().column(Ink::Dim, WIDE, about).and(ink, &one_line(text));
        Ok(self.out.paint(&row)?)
    }

    fn time(&self, at_ms: Option<i64>) -> String {
        at_ms.map_or_else(String::new, |ms| self.zone.seconds(ms))
    }

    /// An entry in a few words: its id, type and time.
    fn brief(&self, brief: &Brief) -> String {
        match &brief.kind {
            Some(kind) => format!("{} ({kind}, {})", brief.id, self.time(brief.at_ms)),
            None => format!("{} (not in the file)", brief.id),
        }
    }

    fn entry(&mut self, told: &Told<'_>) -> Result<(), Failure> {
        let EntryTold { brief, leaf, shows, shows_by, .. } = &told.explained.entry;
        let kind = brief.kind.as_deref().unwrap_or_default();
        let colour = ink(kind.rsplit(':').next().filter(|_| kind.starts_with("message:")).unwrap_or(kind));
        let head = Row::new().and(Ink::Bold, &one_line(&brief.id)).and(Ink::Plain, "  ").and(colour, &one_line(kind));
        self.out.paint(&head.and(Ink::Dim, &format!("  {}", self.time(brief.at_ms))))?;
        if !told.says.is_empty() {
            self.say("", Ink::Plain, &told.says)?;
        }
        self.say("session", Ink::Plain, &format!("{}  {}", told.session, told.path))?;
        let branch = if brief.active { "the active one, where Pi goes on" } else { "not the active one" };
        self.say("branch", Ink::Plain, &format!("{branch}; it ends in {leaf}"))?;
        let by = shows_by.as_ref().map_or_else(String::new, |by| format!(", by {by}"));
        let shows = match *shows {
            "as it is" => "shown as it is",
            "edited" => "shown with other content",
            "left out" => "left out",
            "hidden" => "hidden by a compaction",
            "nothing" => "it gives nothing to the context",
            _ => "not in the context of the active branch",
        };
        self.say("context", Ink::Plain, &format!("{shows}{by}"))
    }

    fn graft(&mut self, graft: &GraftTold, source: &str) -> Result<(), Failure> {
        let digest: String = graft.digest.chars().take(12).collect();
        let GraftTold { batch, plugin, version, handler, reason, .. } = graft;
        let part = graft
            .draft
            .map_or("the receipt of".to_owned(), |draft| format!("draft {} of {} of", draft + 1, graft.drafts.len()));
        if handler == undo::HANDLER {
            let text = format!("{part} batch {batch}: the user took back what {plugin} did (`pi-graft undo`)");
            self.say("graft", Ink::Bold, &text)?;
        } else {
            self.say("graft", Ink::Bold, &format!("{part} batch {batch}, by {plugin} {version} ({digest})"))?;
            self.say("", Ink::Plain, &format!("{handler}, reason {reason}, on {}", self.brief(&graft.trigger)))?;
        }
        for draft in &graft.drafts {
            self.say("", Ink::Dim, draft.get())?;
        }
        if !graft.whole {
            self.say("", Ink::Yellow, "not all that its receipt speaks of: it was cut off, or changed since")?;
        }
        if let Some(continues) = &graft.continues {
            self.say("", Ink::Plain, &format!("what was missing of batch {continues}"))?;
        }
        self.say("delivered", Ink::Plain, &delivered(graft.delivered.as_ref(), source, &self.zone))?;
        let (ink, fate) = fate(graft.fate);
        self.say("fate", ink, fate)?;
        if let Some(by) = &graft.undone {
            self.say("undone", Ink::Yellow, &format!("by {by}: the user took it back"))?;
        }
        graft.runs.iter().try_for_each(|run| self.run_of_graft(run))?;
        if graft.runs.is_empty() && source != "file" && handler != undo::HANDLER {
            self.say("run", Ink::Dim, "the run log does not have it, or not any more (state.keep)")?;
        }
        graft.became.iter().try_for_each(|one| self.became(one))?;
        graft.others.iter().try_for_each(|other| self.other(other))
    }

    /// The run of a graft: that it proposed is said already.
    fn run_of_graft(&mut self, run: &RunTold) -> Result<(), Failure> {
        let attempt = run.attempt.filter(|attempt| *attempt > 1).map_or(String::new(), |n| format!(", try {n}"));
        let text = format!("{}: {}{attempt}{}", self.time(Some(run.at_ms)), run.outcome, cost(run));
        self.say("run", Ink::Plain, &text)?;
        self.beside(run)
    }

    /// Why a run failed, and what of it was refused.
    fn beside(&mut self, run: &RunTold) -> Result<(), Failure> {
        if !run.message.is_empty() {
            self.say("", Ink::Yellow, &run.message)?;
        }
        let refused = |refused: &crate::journal::Refused| format!("{}: {}", refused.rule, refused.message);
        run.refused.iter().map(refused).try_for_each(|text| self.say("refused", Ink::Yellow, &text))
    }

    fn run(&mut self, run: &RunTold) -> Result<(), Failure> {
        let reason = run.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        let attempt = run.attempt.filter(|attempt| *attempt > 1).map_or(String::new(), |n| format!(", try {n}"));
        let (plugin, handler, outcome) = (&run.plugin, run.handler, &run.outcome);
        let digest: String = run.digest.chars().take(12).collect();
        let batch = run.batch.as_ref().map_or_else(String::new, |batch| format!(" batch {batch}"));
        let text = format!(
            "{}: {handler}{reason} of {plugin} ({digest}){attempt}: {outcome}{batch}{}",
            self.time(Some(run.at_ms)),
            cost(run)
        );
        self.say("ran", Ink::Plain, &text)?;
        self.beside(run)?;
        run.became.iter().try_for_each(|one| self.became(one))?;
        if run.pending {
            self.say("", Ink::Yellow, "it waits: `pi-graft status` says for what")?;
        }
        match &run.entries[..] {
            [] => Ok(()),
            entries => self.say("", Ink::Green, &format!("in the file as {}", entries.join(", "))),
        }
    }

    fn became(&mut self, one: &Became) -> Result<(), Failure> {
        let ink = match one.outcome.as_str() {
            "grafted" | "handed over" | "pushed" | "known" | "rejoined" => Ink::Green,
            _ => Ink::Yellow,
        };
        let why = if one.message.is_empty() { String::new() } else { format!(": {}", one.message) };
        self.say("", ink, &format!("{}: {}{why}", self.time(Some(one.at_ms)), one.outcome))
    }

    fn other(&mut self, other: &GraftBrief) -> Result<(), Failure> {
        let GraftBrief { batch, entry, .. } = other;
        let what = if other.continues.is_some() { "continued by" } else { "also as" };
        let (_, fate) = fate(other.fate);
        let active = if other.active { "on the active branch" } else { "on another branch" };
        self.say("", Ink::Plain, &format!("{what} batch {batch}, at {entry}, {active}; {fate}"))
    }

    fn made_for(&mut self, graft: &GraftBrief) -> Result<(), Failure> {
        let GraftBrief { batch, plugin, handler, entry, .. } = graft;
        let (_, fate) = fate(graft.fate);
        let text = format!("{handler} of {plugin}: batch {batch}, in the file as {entry}; {fate}");
        self.say("ran", Ink::Plain, &text)
    }

    fn edit(&mut self, edit: &EditTold) -> Result<(), Failure> {
        let what = if edit.omits { "left out" } else { "given other content" };
        let by = match (&edit.plugin, edit.handler.as_deref()) {
            (None, _) => "nobody's graft".to_owned(),
            (Some(plugin), Some(undo::HANDLER)) => format!("undo of {plugin}"),
            (Some(plugin), _) => plugin.clone(),
        };
        let batch = edit.batch.as_ref().map_or_else(String::new, |batch| format!(", batch {batch}"));
        let active = if edit.brief.active { "" } else { ", on another branch" };
        let (id, time) = (&edit.brief.id, self.time(edit.brief.at_ms));
        self.say("edited", Ink::Plain, &format!("{time}: {what} by {id} ({by}{batch}){active}"))
    }

    fn failed(&mut self, run: &FailedLine) -> Result<(), Failure> {
        let next = match run.retry_ms {
            Some(at) => format!("tried again at {}", self.time(Some(at))),
            None => format!("until a new version comes, or `pi-graft quarantine retry {}`", run.id),
        };
        let FailedLine { id, plugin, state, message, tries, .. } = run;
        self.say(state, Ink::Yellow, &format!("{id} of {plugin}, {tries} tries: {message}; {next}"))
    }

    fn suspended(&mut self, row: &SuspendedLine) -> Result<(), Failure> {
        let (plugin, passed) = (&row.plugin, row.passed);
        let since = row
            .since_ms
            .map_or_else(|| "waits".to_owned(), |at| format!("is suspended here since {}", self.time(Some(at))));
        let text = format!("{plugin} {since}; {passed} entries passed without it (`pi-graft quarantine list`)");
        self.say("suspended", Ink::Yellow, &text)
    }

    /// What there is to know where nothing was found.
    fn end(&mut self, told: &Told<'_>) -> Result<(), Failure> {
        let explained = &told.explained;
        let is_nobodys = explained.graft.is_none() && explained.rejoins.is_none();
        if told.source == "file" {
            let text =
                "there is no store here: all this is from the file alone, which tells of grafts and of nothing else";
            return self.say("log", Ink::Dim, text);
        }
        if is_nobodys && explained.runs.is_empty() && explained.grafts.is_empty() {
            let text = "nothing ran on it, as far as the log goes: no plugin asks for such entries, or it was there before \
                        the first start (`run --backfill`), or its rows are older than state.keep";
            self.say("ran", Ink::Dim, text)?;
        }
        Ok(())
    }
}

/// What a run took.
fn cost(run: &RunTold) -> String {
    let answers = match run.answers {
        0 => String::new(),
        1 => ", 1 model answer".to_owned(),
        more => format!(", {more} model answers"),
    };
    format!("; fuel {}, {} µs{answers}", grouped(run.fuel), grouped(run.micros))
}

fn fate(fate: &str) -> (Ink, &'static str) {
    match fate {
        "known" => (Ink::Green, "known: Pi has gone on from it"),
        "orphaned" => (Ink::Yellow, "orphaned: Pi had not loaded it, and went on beside it"),
        _ => (Ink::Plain, "nobody has written behind it yet"),
    }
}

fn delivered(how: Option<&Delivered>, source: &str, zone: &Zone) -> String {
    let Some(Delivered { how, when, at_ms }) = how else {
        return match source {
            "file" => "the file does not tell how".to_owned(),
            _ => "the log does not say how, or not any more".to_owned(),
        };
    };
    let at = at_ms.map_or_else(String::new, |at| format!(", {}", zone.seconds(at)));
    let how = match (*how, *when) {
        ("direct", _) => "directly, by pi-graft".to_owned(),
        (_, Some("compaction")) => "over the bridge, in place of Pi's own compaction".to_owned(),
        (_, Some("idle")) => "over the bridge, while Pi was idle".to_owned(),
        (_, Some(when)) => format!("over the bridge, at a {when} of Pi's"),
        (_, None) => "over the bridge".to_owned(),
    };
    format!("{how}{at}")
}
