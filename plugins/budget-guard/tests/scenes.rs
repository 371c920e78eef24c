//! Sessions that cost something, and what is said.
use budget_guard::config::Config;
use budget_guard::{BudgetGuard, TYPE};
use pi_graft_plugin::testing::FakeHost;
use pi_graft_plugin::{Json, Plugin, Run};

const USER: &str = r#"{"type":"message","id":"u","message":{"role":"user","content":"hi"}}"#;
const ANSWER: &str = r#"{"type":"message","id":"a","message":{"role":"assistant","content":[]}}"#;

fn config(json: &str) -> Config {
    Json::from_text(json.into()).to().expect("a config")
}

/// A session in which this message was sent before, after an entry that has added so much to a total.
fn session(total: f64, added: f64, said: Option<&str>) -> FakeHost {
    let mut host = FakeHost::new(&[&[USER], said.as_slice(), &[ANSWER]].concat());
    host.usage_totals = Some(format!(
        r#"{{"total":{{"cost":{total}}},"byModel":{{}},"byDay":{{}},"trigger":{{"cost":{added},"model":"","day":null}}}}"#
    ));
    host
}

/// What is said on the last entry.
fn said(config: &Config, host: &FakeHost) -> Option<String> {
    BudgetGuard::on_entry(config, &Run::on(host)).expect("it runs");
    let messages = host.messages.borrow();
    assert!(messages.len() <= 1);
    messages.first().map(|message| message.content.to().expect("a text"))
}

#[test]
fn it_speaks_when_a_step_is_passed_and_not_before_or_after() {
    let config = config(r#"{"session":5}"#);
    assert_eq!(said(&config, &session(4.0, 1.0, None)), None);
    let text = "Budget: this session has cost $5.25 so far, past the step of $5.00.";
    assert_eq!(said(&config, &session(5.25, 1.0, None)).as_deref(), Some(text));
    assert_eq!(
        said(&config, &session(5.5, 0.25, None)),
        None,
        "and on a branch from before it, where nobody has heard"
    );
    assert!(said(&config, &session(27.0, 20.0, None)).is_some_and(|text| text.contains("$25.00")));
}

#[test]
fn what_the_branch_has_heard_of_is_not_said_again() {
    let config = config(r#"{"session":5}"#);
    let heard = |step: u32| {
        format!(
            r#"{{"type":"custom_message","customType":"{TYPE}","content":"x","details":{{"passed":[{{"of":"session","step":{step},"cost":1}}]}}}}"#
        )
    };
    assert_eq!(said(&config, &session(10.5, 1.0, Some(&heard(10)))), None);
    assert_eq!(said(&config, &session(10.5, 1.0, Some(&heard(15)))), None, "the steps were others then");
    assert!(said(&config, &session(10.5, 1.0, Some(&heard(5)))).is_some());
    let odd = format!(r#"{{"type":"custom_message","customType":"{TYPE}","content":"x","details":7}}"#);
    assert!(said(&config, &session(10.5, 1.0, Some(&odd))).is_some(), "somebody else's of that name");
}

#[test]
fn the_message_carries_what_it_knows_and_is_shown_or_not() {
    let config = config(r#"{"session":0.01,"display":false,"text":"{what}|{cost}|{step}","currency":"€"}"#);
    let host = session(0.0123, 0.0123, None);
    assert_eq!(said(&config, &host).as_deref(), Some("this session|€0.0123|€0.0100"));
    let message = host.messages.borrow()[0].clone();
    assert!(!message.display);
    let details = message.details.expect("details");
    assert_eq!(details.as_str(), r#"{"passed":[{"of":"session","step":0.01,"cost":0.0123}]}"#);
    assert!(host.customs.borrow().is_empty() && host.edits.borrow().is_empty() && host.note.borrow().is_none());
}
