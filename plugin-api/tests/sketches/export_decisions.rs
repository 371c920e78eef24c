//! An exporter of decisions: what an answer says it has decided stands, word for word, in `custom` entries, where a program
//! finds it (`pi-graft session show`), on the branch it belongs to.
use pi_graft_plugin::serde::{self, Serialize};
use pi_graft_plugin::{Description, NoConfig, Plugin, Result, Run};

/// Most bytes of an answer that are read.
const MOST: usize = 256 << 10;
/// How a sentence begins that decides something.
const CUES: [&str; 4] = ["Decision:", "I decided", "We decided", "I chose"];

#[derive(Serialize)]
#[serde(crate = "self::serde", rename_all = "camelCase")]
struct Decisions {
    entry: Option<String>,
    decisions: Vec<String>,
}

struct ExportDecisions;

impl Plugin for ExportDecisions {
    type Config = NoConfig;

    fn describe(_: &NoConfig) -> Result<Description> {
        Ok(Description::new("export-decisions", "0.1.0").needs(["append:custom"]).on(["message:assistant"]))
    }

    fn on_entry(_: &NoConfig, run: &Run) -> Result {
        let trigger = run.trigger();
        let Some(entry) = run.entry(&trigger, MOST)? else { return Ok(()) };
        let text = entry.content().text();
        let lines = text.lines().map(|line| line.trim_start_matches(['-', '*', ' ']));
        let decisions: Vec<_> =
            lines.filter(|line| CUES.iter().any(|cue| line.starts_with(cue))).map(str::to_owned).collect();
        if !decisions.is_empty() {
            run.append_custom("decisions", &Decisions { entry: trigger.id, decisions })?;
        }
        Ok(())
    }
}

pi_graft_plugin::export!(ExportDecisions);

#[cfg(test)]
mod tests {
    use super::*;
    use pi_graft_plugin::testing::FakeHost;

    #[test]
    fn decisions_are_kept_word_for_word() {
        let host = FakeHost::new(&[
            r#"{"type":"message","id":"a","message":{"role":"assistant","content":[{"type":"text","text":"Done.\n- I chose redb because it is pure Rust."}]}}"#,
        ]);
        ExportDecisions::on_entry(&NoConfig {}, &Run::on(&host)).expect("it runs");
        let customs = host.customs.borrow();
        assert!(customs[0].1.as_ref().is_some_and(|data| data.as_str().contains("I chose redb because")));
    }
}
