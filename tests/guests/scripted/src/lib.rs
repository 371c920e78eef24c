//! A guest whose config says what it does, well behaved or not: one component for all tests of the host.
//!
//! The config: what it says of itself (`name`, `version`, `needs`, `can_use`, `on`), and for each export a list of
//! `Step`s (`describe`, `entry`, `settled`). In the steps of the handlers `$trigger`, `$leaf` and `$first` stand for
//! the ids of the trigger, the newest entry in the file and the oldest one in the context.
mod mischief;
mod report;
mod step;

use pi_graft_plugin::serde::{self, Deserialize};
use pi_graft_plugin::{Description, Info, Json, Plugin, Result, Run, Settled, export};

use step::Step;

/// What it says of itself, and what it does.
#[derive(Debug, Deserialize)]
#[serde(crate = "self::serde", default, deny_unknown_fields)]
pub struct Script {
    name: String,
    version: String,
    needs: Vec<String>,
    can_use: Vec<String>,
    on: Vec<String>,
    describe: Json,
    entry: Json,
    settled: Json,
}

impl Default for Script {
    fn default() -> Self {
        let nothing = || Json::from_text("[]".into());
        Self {
            name: "scripted".into(),
            version: "0.1.0".into(),
            needs: Vec::new(),
            can_use: Vec::new(),
            on: vec!["*".into()],
            describe: nothing(),
            entry: nothing(),
            settled: nothing(),
        }
    }
}

/// The guest.
#[derive(Debug)]
pub struct Scripted;

impl Plugin for Scripted {
    type Config = Script;

    fn describe(script: &Script) -> Result<Description> {
        for step in script.describe.to::<Vec<Step>>()? {
            step.misbehave()?;
        }
        let description = Description::new(&script.name, &script.version).on(script.on.clone());
        Ok(description.needs(script.needs.clone()).can_use(script.can_use.clone()))
    }

    fn on_entry(script: &Script, run: &Run) -> Result {
        play(&script.entry, run)
    }

    fn on_settled(script: &Script, run: &Run, settled: &Settled) -> Result {
        let notes = settled.notes.join(",");
        let filled = script.settled.as_str().replace("$reason", &settled.reason).replace("$notes", &notes);
        play(&Json::from_text(filled), run)
    }
}

export!(Scripted);

/// Takes the steps of a handler one by one.
fn play(steps: &Json, run: &Run) -> Result {
    steps_of(steps, run)?.iter().try_for_each(|step| step.take(run))
}

/// The steps, with the names of entries filled in. Asks the host only for those that occur.
fn steps_of(steps: &Json, run: &Run) -> Result<Vec<Step>> {
    let mut text = steps.as_str().to_owned();
    let names: [(&str, &dyn Fn() -> Option<Info>); 3] = [
        ("$trigger", &|| Some(run.trigger())),
        ("$leaf", &|| run.branch().find(|info| !info.pending)),
        ("$first", &|| run.projection().filter(|info| info.id.is_some()).last()),
    ];
    for (name, entry) in names {
        if text.contains(name) {
            let id = entry().and_then(|info| info.id).unwrap_or_default();
            text = text.replace(name, &id);
        }
    }
    Ok(Json::from_text(text).to()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_graft_plugin::testing::FakeHost;

    #[test]
    fn steps_are_taken_in_order_with_the_names_filled_in() {
        let host = FakeHost::new(&[r#"{"type":"message","id":"a1","message":{"role":"user","content":"hi"}}"#]);
        let script = r#"{"entry":[{"custom":{"type":"x","data":{"seen":"$trigger"}},"unless":"y"},{"later":"n"}]}"#;
        let script: Script = Json::from_text(script.into()).to().expect("a script");
        Scripted::on_entry(&script, &Run::on(&host)).expect("it does as told");
        assert_eq!(host.customs.borrow()[0].1, Some(Json::from_text(r#"{"seen":"a1"}"#.into())));
        assert_eq!(host.note.borrow().as_deref(), Some("n"));
    }
}
