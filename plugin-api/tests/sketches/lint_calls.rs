//! A linter of tool calls: a note to the model where a command is one that it should not run.
//!
//! What the contract gives it: the calls of the entry that woke it, and `custom_message`. It cannot stop a call, which Pi has
//! begun when the entry is written; it can say so before the next request.
use pi_graft_plugin::serde::{self, Deserialize};
use pi_graft_plugin::{CustomMessage, Description, Plugin, Result, Run};

/// Most bytes of an answer that are read.
const MOST: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(crate = "self::serde", rename_all = "kebab-case", deny_unknown_fields)]
struct Config {
    /// Words that no command may hold, with what to do instead.
    #[serde(default)]
    forbid: std::collections::BTreeMap<String, String>,
}

struct LintCalls;

impl Plugin for LintCalls {
    type Config = Config;

    fn describe(config: &Config) -> Result<Description> {
        if config.forbid.is_empty() {
            return Err(
                "`forbid` is empty: name words such as { \"push --force\" = \"use --force-with-lease\" }".into()
            );
        }
        Ok(Description::new("lint-calls", "0.1.0").needs(["append:custom_message"]).on(["message:assistant"]))
    }

    fn on_entry(config: &Config, run: &Run) -> Result {
        let Some(entry) = run.entry(&run.trigger(), MOST)? else { return Ok(()) };
        for call in entry.content().tool_calls() {
            let arguments = call.arguments.as_ref().map_or("", |arguments| arguments.as_str());
            let broken = config.forbid.iter().filter(|(word, _)| arguments.contains(word.as_str()));
            for (word, instead) in broken {
                let text = format!("`{word}` in a call of {}: {instead}", call.name.as_deref().unwrap_or("a tool"));
                run.append_message(&CustomMessage::text("lint-calls", &text))?;
            }
        }
        Ok(())
    }
}

pi_graft_plugin::export!(LintCalls);

#[cfg(test)]
mod tests {
    use super::*;
    use pi_graft_plugin::testing::FakeHost;

    #[test]
    fn a_forbidden_word_is_told() {
        let host = FakeHost::new(&[
            r#"{"type":"message","id":"a","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"git push --force"}}]}}"#,
        ]);
        let forbid = [("push --force".to_owned(), "use --force-with-lease".to_owned())].into();
        LintCalls::on_entry(&Config { forbid }, &Run::on(&host)).expect("it runs");
        assert!(host.messages.borrow()[0].content.as_str().contains("--force-with-lease"));
    }
}
