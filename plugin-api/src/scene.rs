//! A plugin in the real host, on a session of a few lines: for a plugin's own `cargo test`.
//!
//! ```no_run
//! use pi_graft_plugin::testing::Scene;
//!
//! let seen = Scene::new().config(r#"{"every":2}"#).user("hi").assistant("hello").user("again").run()?;
//! assert_eq!(seen.proposed()[0].data.as_ref().map(|data| data.as_str()), Some("2"));
//! # Ok::<(), pi_graft_plugin::testing::SceneError>(())
//! ```
//!
//! The host is the `pi-graft` that the variable `PI_GRAFT` names, else the one on the path; it builds the plugin that is under
//! test, once, and runs it with `pi-graft plugin try`, which says what a scene is and what comes of it.
use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Entry, Json};

/// A session of a few lines, and how the plugin is run on it.
#[derive(Debug, Clone, Default)]
#[must_use = "a scene does nothing until it is run"]
pub struct Scene {
    lines: Vec<Value>,
    options: Vec<String>,
    plugin: Option<PathBuf>,
}

/// Why a scene could not be run, or that a run of the plugin failed in it.
#[derive(Clone, PartialEq, Eq)]
pub struct SceneError(String);

/// What the plugin did.
#[derive(Debug, Clone, Deserialize)]
pub struct Seen {
    /// Its runs, in order.
    pub runs: Vec<Ran>,
    /// What models were asked, those of one model in order.
    pub asked: Vec<Asked>,
    /// The model's context at the end.
    pub context: Vec<Shown>,
    /// Its tokens.
    pub tokens: u64,
}

/// One run.
#[derive(Debug, Clone, Deserialize)]
pub struct Ran {
    /// The number of the entry that it ran on, from 0; none if that is a graft's.
    pub entry: Option<usize>,
    /// `on-entry` or `on-settled`.
    pub handler: String,
    /// `entry`, or the reason of `on-settled`.
    pub reason: String,
    /// What it proposed and was accepted, in the host's order.
    pub proposed: Vec<Entry>,
    /// What became of it: `grafted`, or why not; none if it proposed nothing.
    pub outcome: Option<String>,
    /// What was refused, whether or not the plugin minded.
    pub refused: Vec<Refused>,
    /// What it logged.
    pub log: Vec<Logged>,
    /// How it failed.
    pub failed: Option<Failed>,
    /// What it used: the same count on every machine.
    pub fuel: u64,
}

/// A proposal that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Refused {
    /// The rule, such as `S12.6`, `grant` or `pending`.
    pub rule: String,
    /// Why.
    pub message: String,
}

/// A line in the log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Logged {
    /// `error`, `warn`, `info` or `debug`.
    pub level: String,
    /// The line.
    pub text: String,
}

/// How a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Failed {
    /// `trap`, `error`, `fuel`, `memory` and others.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// A question to a model.
#[derive(Debug, Clone, Deserialize)]
pub struct Asked {
    /// The model's name.
    pub model: String,
    /// What was asked: `system`, `messages`, `maxTokens`.
    pub request: Json,
    /// The answer; none if there was none left.
    pub answer: Option<String>,
}

/// A message of the context.
#[derive(Debug, Clone, Deserialize)]
pub struct Shown {
    /// The entry that gives it.
    pub id: String,
    /// The message.
    pub message: Json,
}

impl Scene {
    /// A session without entries, and the plugin of the crate that is under test, with an empty config.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs this component instead.
    pub fn plugin(mut self, component: impl Into<PathBuf>) -> Self {
        self.plugin = Some(component.into());
        self
    }

    /// The plugin's config, as JSON.
    pub fn config(self, json: &str) -> Self {
        self.option(&["--plugin-config", json])
    }

    /// What it is granted, in place of all that it asks for.
    pub fn grants(self, grants: &[&str]) -> Self {
        let none = if grants.is_empty() { &[""][..] } else { grants };
        none.iter().fold(self, |scene, grant| scene.option(&["--grant", grant]))
    }

    /// An answer of a model, which is given once; the plugin is granted to ask it, if it can use it.
    pub fn model(self, name: &str, answer: &str) -> Self {
        self.option(&["--model", &[name, "=", answer].concat()])
    }

    fn option(mut self, words: &[&str]) -> Self {
        self.options.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// A user's message.
    pub fn user(self, text: &str) -> Self {
        self.push(json!({ "user": text }))
    }

    /// An answer.
    pub fn assistant(self, text: &str) -> Self {
        self.push(json!({ "assistant": text }))
    }

    /// A call of a tool in the answer before; its arguments are JSON. Without such an answer one is made.
    pub fn call(mut self, tool: &str, arguments: &str) -> Self {
        if self.lines.last().is_none_or(|line| line.get("assistant").is_none()) {
            self = self.assistant("");
        }
        let call = json!({ "name": tool, "arguments": read(arguments) });
        if let Some(line) = self.lines.last_mut() {
            match line["calls"].as_array_mut() {
                Some(calls) => calls.push(call),
                None => line["calls"] = json!([call]),
            }
        }
        self
    }

    /// The result of the oldest call that has none.
    pub fn result(self, text: &str) -> Self {
        self.push(json!({ "toolResult": text }))
    }

    /// A plugin's `custom` entry; its data is JSON.
    pub fn custom(self, custom_type: &str, data: &str) -> Self {
        self.push(json!({ "custom": custom_type, "data": read(data) }))
    }

    /// Here a compaction is wanted: `manual`, `threshold` or `overflow`.
    pub fn compact(self, reason: &str) -> Self {
        self.push(json!({ "compact": reason }))
    }

    /// Any other line, as JSON: an entry, or one that `pi-graft plugin try --help` is short for.
    pub fn line(self, json: &str) -> Self {
        self.push(read(json))
    }

    fn push(mut self, line: Value) -> Self {
        self.lines.push(line);
        self
    }

    /// Runs the plugin on each entry, and when it is settled, as if live.
    ///
    /// # Errors
    /// [`SceneError`]: something that is needed is missing, the plugin does not build or load, a line does not hold, or a run
    /// failed.
    pub fn run(&self) -> Result<Seen, SceneError> {
        let plugin = self.plugin.clone().map_or_else(built, Ok)?;
        let mut command = graft();
        command.args(["--json", "plugin", "try"]).arg(plugin).arg("-").args(&self.options);
        let lines: Vec<_> = self.lines.iter().map(Value::to_string).collect();
        let seen: Seen = answer(&mut command, &lines.join("\n"))?;
        seen.fails().map_or(Ok(seen), Err)
    }
}

impl Seen {
    /// All that was proposed and accepted, in order.
    #[must_use]
    pub fn proposed(&self) -> Vec<&Entry> {
        self.runs.iter().flat_map(|run| &run.proposed).collect()
    }

    /// The `custom` entries among it: type, and data as JSON.
    #[must_use]
    pub fn customs(&self) -> Vec<(&str, &str)> {
        let customs = self.proposed().into_iter().filter(|entry| entry.kind == "custom");
        let parts = customs.map(|entry| {
            let data = entry.data.as_ref().map_or("null", Json::as_str);
            (entry.custom_type.as_deref().unwrap_or_default(), data)
        });
        parts.collect()
    }

    /// What was proposed on the entry of this number, counted from 0.
    #[must_use]
    pub fn on(&self, entry: usize) -> Vec<&Entry> {
        self.runs.iter().filter(|run| run.entry == Some(entry)).flat_map(|run| &run.proposed).collect()
    }

    /// The rules by which something was refused, in order.
    #[must_use]
    pub fn refused(&self) -> Vec<&str> {
        self.runs.iter().flat_map(|run| &run.refused).map(|refused| refused.rule.as_str()).collect()
    }

    /// The context in a few words: of each message its role and its text, as in `user: hi`.
    #[must_use]
    pub fn transcript(&self) -> Vec<String> {
        self.context.iter().map(Shown::line).collect()
    }

    fn fails(&self) -> Option<SceneError> {
        let run = self.runs.iter().find(|run| run.failed.is_some())?;
        let Failed { kind, message } = run.failed.as_ref()?;
        let entry = run.entry.map_or_else(|| "a graft".to_owned(), |entry| format!("entry {entry}"));
        let log = run.log.iter().map(|line| format!("\n  {}: {}", line.level, line.text));
        Some(SceneError(format!("{} failed on {entry}: {kind}: {message}{}", run.handler, log.collect::<String>())))
    }
}

impl Shown {
    /// Its role and its text.
    fn line(&self) -> String {
        #[derive(Deserialize)]
        struct Message {
            role: String,
            #[serde(default)]
            content: crate::Content,
            #[serde(default)]
            summary: String,
        }
        let read = crate::json::read::<Message>(self.message.as_str());
        read.map_or_else(|error| error.to_string(), |of| format!("{}: {}{}", of.role, of.content.text(), of.summary))
    }
}

impl fmt::Display for SceneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As it is displayed: that is what a test that fails shows.
impl fmt::Debug for SceneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SceneError {}

/// JSON that a test gives; what is none is told by the host, as a text in its place.
fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| json.into())
}

fn graft() -> Command {
    Command::new(std::env::var_os("PI_GRAFT").unwrap_or_else(|| "pi-graft".into()))
}

/// The component of the crate under test, built once in a process.
fn built() -> Result<PathBuf, SceneError> {
    static BUILT: Mutex<BTreeMap<PathBuf, Result<PathBuf, SceneError>>> = Mutex::new(BTreeMap::new());
    let unknown = || SceneError("no crate is under test: run it by `cargo test`, or name a component".to_owned());
    let dir = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).ok_or_else(unknown)?;
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry(dir.clone()).or_insert_with(|| build(&dir)).clone()
}

fn build(dir: &PathBuf) -> Result<PathBuf, SceneError> {
    #[derive(Deserialize)]
    struct Made {
        path: String,
    }
    answer::<Made>(graft().args(["--json", "plugin", "build"]).arg(dir), "").map(|made| made.path.into())
}

/// What the host answers, as JSON; else what it says.
fn answer<T: DeserializeOwned>(command: &mut Command, input: &str) -> Result<T, SceneError> {
    let output = output(command, input).map_err(|error| match error.kind() {
        ErrorKind::NotFound => SceneError(format!(
            "{} is not there: put pi-graft on the path, or name it in the environment, as in PI_GRAFT=/path/to/pi-graft",
            command.get_program().display()
        )),
        _ => SceneError(format!("{}: {error}", command.get_program().display())),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    crate::json::read(&text).map_err(|error| match output.stderr.is_empty() {
        true => {
            SceneError(format!("pi-graft says what this SDK does not understand ({error}); is it another version?"))
        }
        false => SceneError(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()),
    })
}

fn output(command: &mut Command, input: &str) -> std::io::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Who does not read it says why on standard error.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_of_the_answer_before_it() {
        let scene = Scene::new().user("hi").call("bash", r#"{"command":"ls"}"#).call("read", "{}").result("ok");
        assert_eq!(scene.lines.len(), 3, "{scene:?}");
        let calls = json!([{ "name": "bash", "arguments": { "command": "ls" } }, { "name": "read", "arguments": {} }]);
        assert_eq!(scene.lines[1]["calls"], calls);
    }

    #[test]
    fn without_the_host_the_error_says_what_to_do() {
        let error = answer::<Seen>(&mut Command::new("/nowhere/pi-graft"), "").expect_err("it is not there");
        assert!(error.to_string().contains("PI_GRAFT="), "{error:?}");
    }

    #[test]
    fn a_failed_run_is_an_error_with_what_it_logged() {
        let seen = r#"{"runs":[{"entry":1,"handler":"on-entry","reason":"entry","proposed":[],"outcome":null,"refused":[],
            "log":[{"level":"error","text":"panicked at src/lib.rs"}],"failed":{"kind":"trap","message":"unreachable"},
            "fuel":1}],"asked":[],"context":[{"id":"a","message":{"role":"user","content":"hi"}}],"tokens":1}"#;
        let seen: Seen = crate::json::read(seen).expect("a report");
        let error = seen.fails().expect("it failed").to_string();
        assert_eq!(error, "on-entry failed on entry 1: trap: unreachable\n  error: panicked at src/lib.rs");
        assert_eq!(seen.transcript(), ["user: hi"]);
    }
}
