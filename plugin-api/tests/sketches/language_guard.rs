//! A language guard: if the model slips into another script than the one it is to write in, a note reminds it. It is told
//! once, and again only when an answer in between was right: its state is the note itself.
use pi_graft_plugin::serde::{self, Deserialize};
use pi_graft_plugin::{CustomMessage, Description, Info, Plugin, Result, Run};

/// Most bytes of an answer that are read.
const MOST: usize = 256 << 10;

#[derive(Deserialize)]
#[serde(crate = "self::serde", rename_all = "kebab-case", deny_unknown_fields)]
struct Config {
    /// What is said, in the language that is wanted.
    reminder: String,
    /// How many letters in a hundred may be of other scripts than Latin.
    #[serde(default = "tenth")]
    others: usize,
}

fn tenth() -> usize {
    10
}

struct LanguageGuard;

impl Plugin for LanguageGuard {
    type Config = Config;

    fn describe(config: &Config) -> Result<Description> {
        if config.reminder.trim().is_empty() || config.others > 100 {
            return Err("`reminder` says what the model is told, `others` is a percentage up to 100".into());
        }
        Ok(Description::new("language-guard", "0.1.0").needs(["append:custom_message"]).on(["message:assistant"]))
    }

    fn on_entry(config: &Config, run: &Run) -> Result {
        let Some(entry) = run.entry(&run.trigger(), MOST)? else { return Ok(()) };
        if is_foreign(&entry.content().text(), config.others) && !was_told(run) {
            run.append_message(&CustomMessage::text("language-guard", &config.reminder))?;
        }
        Ok(())
    }
}

/// Whether more letters than that are of another script.
fn is_foreign(text: &str, others: usize) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let (all, foreign) = letters.fold((0, 0), |(all, foreign), c| (all + 1, foreign + usize::from(c > '\u{24f}')));
    all >= 20 && foreign * 100 > all * others
}

/// Whether the answer before this one was told already.
fn was_told(run: &Run) -> bool {
    let is_answer = |info: &Info| info.role.as_deref() == Some("assistant");
    let since = run.branch().skip(1).take_while(|info| !is_answer(info));
    since.into_iter().any(|info| info.custom_type.as_deref() == Some("language-guard"))
}

pi_graft_plugin::export!(LanguageGuard);

#[cfg(test)]
mod tests {
    use super::*;
    use pi_graft_plugin::testing::FakeHost;

    const SLIP: &str = r#"{"type":"message","id":"a","message":{"role":"assistant","content":[{"type":"text","text":"я думаю, что всё готово и работает"}]}}"#;
    const TOLD: &str = r#"{"type":"custom_message","customType":"language-guard","content":"English, please."}"#;

    fn told(entries: &[&str]) -> usize {
        let host = FakeHost::new(entries);
        let config = Config { reminder: "English, please.".into(), others: 10 };
        LanguageGuard::on_entry(&config, &Run::on(&host)).expect("it runs");
        host.messages.take().len()
    }

    #[test]
    fn a_slip_is_told_once() {
        assert_eq!((told(&[SLIP]), told(&[SLIP, TOLD, SLIP])), (1, 0));
    }
}
