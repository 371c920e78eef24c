//! Models: asked in `on-settled` only, each by its own grant, in a time of their own.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pi_graft::sandbox::{Answered, FailureKind, Handler, Limits, Models, NotAnswered, PluginSource, RunReport};
use serde_json::{Value, json};

use super::common::{done, failure, load, run, sandbox, session, source};

/// What answers in a scene.
struct Fake {
    answer: Result<&'static str, NotAnswered>,
    takes: Duration,
    asked: AtomicU32,
}

impl Models for Fake {
    fn complete(&self, name: &str, _request: &str) -> Result<Answered, NotAnswered> {
        assert_eq!(name, "summary");
        self.asked.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.takes);
        let text = self.answer.clone()?.to_owned();
        Ok(Answered { text, stop: "stop".into(), usage: "{}".into() })
    }

    fn is_over(&self) -> bool {
        false
    }
}

fn fake(answer: Result<&'static str, NotAnswered>) -> Fake {
    Fake { answer, takes: Duration::ZERO, asked: AtomicU32::new(0) }
}

fn settled() -> Handler {
    Handler::OnSettled { reason: "settled".into(), notes: vec!["n".into()], instructions: None }
}

/// Runs a script of `on-settled`; gives the report, and how often the model was asked.
fn asks(source: PluginSource, models: Fake) -> (RunReport, u32) {
    let models = Arc::new(models);
    let plugin = sandbox().load(source).expect("it loads");
    let given = Arc::clone(&models) as Arc<dyn Models>;
    let report = plugin.run_with(run(&session(&["u1"]), settled()), Some(given));
    (report, models.asked.load(Ordering::Relaxed))
}

fn script(step: Value) -> PluginSource {
    source("p", &["model:summary"], &json!({"can_use": ["model:summary"], "settled": [step]}))
}

#[test]
fn a_model_answers_whoever_was_granted_it() {
    let (report, asked) = asks(script(json!({"complete": "summary", "must": true})), fake(Ok("an answer")));
    assert!(report.outcome.is_ok() && asked == 1, "{report:?}");
    let other = source("p", &["model:other"], &json!({"settled": [{"complete": "summary"}]}));
    let (report, asked) = asks(other, fake(Ok("an answer")));
    assert!(report.logs[0].text.starts_with("grant: "), "{:?}", report.logs);
    assert_eq!(asked, 0);
}

#[test]
fn without_anybody_who_answers_the_plugin_is_told() {
    let script = json!({"can_use": ["model:summary"], "settled": [{"complete": "summary"}]});
    let report = load("p", &["model:summary"], &script).run(run(&session(&["u1"]), settled()));
    assert!(report.logs[0].text.starts_with("model: "), "{:?}", report.logs);
    assert!(done(report).accepted.is_none());
}

#[test]
fn its_time_is_not_the_runs() {
    let time = Duration::from_millis(400);
    let source = script(json!({"complete": "summary", "must": true, "times": 2}));
    let limited = PluginSource { limits: Limits { time, ..Limits::default() }, ..source };
    let (report, asked) = asks(limited, Fake { takes: time, ..fake(Ok("an answer")) });
    assert_eq!(asked, 2, "{:?}", report.outcome);
    assert!(report.wall < time, "{:?}", report.wall);
}

#[test]
fn an_error_after_a_models_failure_is_one_of_the_models() {
    let refused = || NotAnswered::Refused { rule: "model".into(), message: "the server answered 500".into() };
    let (report, _) = asks(script(json!({"complete": "summary", "must": true})), fake(Err(refused())));
    let failed = failure(report);
    assert_eq!(failed.kind, FailureKind::Model);
    assert!(!failed.kind.is_final() && failed.message.contains("500"), "{failed}");
    let (report, _) = asks(script(json!({"complete": "summary"})), fake(Err(refused())));
    assert!(report.outcome.is_ok(), "it can do without");
}

#[test]
fn the_run_ends_when_nobody_waits_for_it() {
    let (report, _) = asks(script(json!({"complete": "summary"})), fake(Err(NotAnswered::Over)));
    assert_eq!(failure(report).kind, FailureKind::Over);
}

#[test]
fn nobody_asks_without_end() {
    let (report, asked) = asks(script(json!({"complete": "summary", "must": true, "times": 100})), fake(Ok("more")));
    assert_eq!(asked, 16);
    assert!(failure(report).message.contains("limit"), "it is told which");
}
