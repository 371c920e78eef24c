//! The steps of a script.
use pi_graft_plugin::serde::{self, Deserialize};
use pi_graft_plugin::{Compaction, CustomMessage, Edit, Error, Info, Json, Level, Refusal, Result, Run};

use crate::{mischief, report};

/// One step: one of the actions, so many times, perhaps on a condition.
#[derive(Debug, Default, Deserialize)]
#[serde(crate = "self::serde", default, deny_unknown_fields)]
pub struct Step {
    /// How often; once unless it is said.
    times: Option<u32>,
    /// Not if the branch holds a `custom` of this type.
    unless: Option<String>,
    /// Not but if the trigger has this role.
    role: Option<String>,
    /// A refusal ends the handler with an error; else it is logged as a warning.
    must: bool,

    custom: Option<Custom>,
    custom_message: Option<Message>,
    compaction: Option<Summary>,
    edits: Option<Vec<Change>>,
    later: Option<String>,
    /// Puts what it sees into a `custom` of this type; with `log`, into the log.
    report: Option<String>,
    /// Puts its clock and its randomness into a `custom` of this type.
    chance: Option<String>,
    /// Logs the text of the entry with this id.
    read: Option<String>,
    /// The same with the raw text.
    raw: Option<String>,
    /// Asks this model.
    complete: Option<String>,
    log: Option<Line>,
    err: Option<String>,
    /// Calls the host over and over.
    calls: Option<u64>,
    /// A line of so many bytes.
    flood: Option<usize>,
    #[serde(rename = "loop")]
    loops: bool,
    trap: bool,
    panic: Option<String>,
    eat_memory: bool,
    recurse: bool,
}

#[derive(Debug, Deserialize)]
#[serde(crate = "self::serde", deny_unknown_fields)]
struct Custom {
    #[serde(rename = "type")]
    kind: String,
    data: Option<Json>,
}

#[derive(Debug, Deserialize)]
#[serde(crate = "self::serde", deny_unknown_fields)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    content: Json,
    #[serde(default)]
    display: bool,
    details: Option<Json>,
}

#[derive(Debug, Deserialize)]
#[serde(crate = "self::serde", deny_unknown_fields)]
struct Summary {
    summary: String,
    first_kept: Option<String>,
    /// Takes what to keep from the host's plan, with this `keep`.
    plan_keep: Option<u64>,
    details: Option<Json>,
}

#[derive(Debug, Deserialize)]
#[serde(crate = "self::serde", deny_unknown_fields)]
struct Change {
    target: String,
    /// A text; none omits.
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(crate = "self::serde", deny_unknown_fields)]
struct Line {
    #[serde(default)]
    level: String,
    text: String,
}

impl Step {
    /// Does what it says.
    pub fn take(&self, run: &Run) -> Result {
        if self.unless.as_deref().is_some_and(|kind| run.last_custom(kind).is_some())
            || self.role.is_some() && self.role != run.trigger().role
        {
            return Ok(());
        }
        (0..self.times.unwrap_or(1)).try_for_each(|_| self.once(run))
    }

    fn once(&self, run: &Run) -> Result {
        self.look(run)?;
        self.propose(run)?;
        if let Some(line) = &self.log {
            run.log(level(&line.level), &line.text);
        }
        if let Some(bytes) = self.flood {
            run.log(Level::Info, &"x".repeat(bytes));
        }
        for _ in 0..self.calls.unwrap_or(0) {
            let _ = run.trigger();
        }
        self.misbehave()
    }

    /// The part that can be done without a session.
    pub fn misbehave(&self) -> Result {
        if self.loops {
            mischief::spin();
        }
        if self.recurse {
            std::hint::black_box(mischief::recurse(1));
        }
        if self.eat_memory {
            mischief::eat_memory();
        }
        if self.trap {
            mischief::trap();
        }
        assert!(self.panic.is_none(), "{}", self.panic.as_deref().unwrap_or_default());
        self.err.as_ref().map_or(Ok(()), |text| Err(Error::new(text.as_str())))
    }

    fn look(&self, run: &Run) -> Result {
        if let Some(kind) = &self.report {
            report::report(run, kind)?;
        }
        if let Some(kind) = &self.chance {
            let mut random = run.random();
            run.append_custom(kind, &(run.now_ms(), random.below(1_000_000), random.below(1_000_000)))?;
        }
        if let Some(id) = &self.read {
            run.log(Level::Info, &run.text(entry(run, id)?.place, usize::MAX)?);
        }
        if let Some(id) = &self.raw {
            let raw = run.raw(entry(run, id)?.place, usize::MAX);
            raw.map_or_else(
                |refusal| self.refused(run, refusal),
                |text| {
                    run.log(Level::Info, &text);
                    Ok(())
                },
            )?;
        }
        if let Some(model) = &self.complete {
            self.answer(run, run.complete(model, &Json::from_text("{}".into())).map(drop))?;
        }
        Ok(())
    }

    fn propose(&self, run: &Run) -> Result {
        if let Some(custom) = &self.custom {
            self.answer(run, run.host().custom(&custom.kind, custom.data.as_ref()))?;
        }
        if let Some(edits) = &self.edits {
            let edits: Vec<_> = edits.iter().map(Change::edit).collect();
            run.append_edits(&edits).into_iter().try_for_each(|result| self.answer(run, result))?;
        }
        if let Some(message) = &self.custom_message {
            self.answer(run, run.append_message(&message.message()))?;
        }
        if let Some(summary) = &self.compaction {
            self.answer(run, run.append_compaction(&summary.compaction(run)))?;
        }
        if let Some(note) = &self.later {
            self.answer(run, run.later(note))?;
        }
        Ok(())
    }

    fn answer(&self, run: &Run, result: Result<(), Refusal>) -> Result {
        result.or_else(|refusal| self.refused(run, refusal))
    }

    fn refused(&self, run: &Run, refusal: Refusal) -> Result {
        let error = Error::from(refusal);
        if self.must {
            return Err(error);
        }
        run.log(Level::Warn, &error.into_text());
        Ok(())
    }
}

impl Message {
    fn message(&self) -> CustomMessage {
        let (content, details) = (self.content.clone(), self.details.clone());
        CustomMessage { custom_type: self.kind.clone(), content, display: self.display, details }
    }
}

impl Summary {
    fn compaction(&self, run: &Run) -> Compaction {
        let plan = self.plan_keep.and_then(|keep| run.compaction_plan(None, Some(keep)));
        let first_kept = plan.and_then(|plan| plan.first_kept).or_else(|| self.first_kept.clone());
        Compaction { summary: self.summary.clone(), first_kept, details: self.details.clone(), usage: None }
    }
}

impl Change {
    fn edit(&self) -> Edit {
        self.text.as_ref().map_or_else(|| Edit::omit(&self.target), |text| Edit::text(&self.target, text))
    }
}

fn entry(run: &Run, id: &str) -> Result<Info> {
    run.by_id(id).ok_or_else(|| Error::new(["no entry ", id].concat()))
}

fn level(name: &str) -> Level {
    match name {
        "error" => Level::Error,
        "warn" => Level::Warn,
        "debug" => Level::Debug,
        _ => Level::Info,
    }
}
