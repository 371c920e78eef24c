//! Sessions with results of tools, and what becomes of them.
use pi_graft_plugin::testing::FakeHost;
use pi_graft_plugin::{Json, Plugin, Run, Settled};
use trim_tool_results::TrimToolResults;
use trim_tool_results::config::Config;

const USER: &str = r#"{"type":"message","id":"u","message":{"role":"user","content":"go on"}}"#;
const ANSWER: &str = r#"{"type":"message","id":"a","message":{"role":"assistant","content":[]}}"#;

fn config(json: &str) -> Config {
    Json::from_text(json.into()).to().expect("a config")
}

fn call(id: &str) -> String {
    format!(
        r#"{{"type":"message","id":"c{id}","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"{id}","name":"read","arguments":{{"path":"src/{id}.rs"}}}}]}}}}"#
    )
}

/// A result of about so many tokens.
fn result(id: &str, tokens: usize) -> String {
    let text = "word ".repeat(tokens * 4 / 5);
    format!(
        r#"{{"type":"message","id":"r{id}","message":{{"role":"toolResult","toolCallId":"{id}","toolName":"read","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn session(entries: &[&str]) -> FakeHost {
    FakeHost::new(entries)
}

/// The edits of a settled run on this session: their targets.
fn trimmed(config: &Config, host: &FakeHost) -> Vec<String> {
    TrimToolResults::on_settled(config, &Run::on(host), &Settled::default()).expect("it runs");
    host.edits.borrow().iter().map(|edit| edit.target.clone()).collect()
}

#[test]
fn an_old_large_result_becomes_a_stub_that_says_what_it_was() {
    let (call, result) = (call("x"), result("x", 9000));
    let host = session(&[USER, &call, &result, ANSWER, USER, ANSWER]);
    assert_eq!(trimmed(&config(r#"{"older-than-turns":1}"#), &host), ["rx"]);
    let edit = host.edits.borrow()[0].replacement.clone().expect("a stub");
    assert!(edit.contains(r#"The result of read {\"path\":\"src/x.rs\"} (about 90"#), "{edit}");
    assert!(edit.contains("Use the tool again"), "{edit}");
}

#[test]
fn what_the_current_turn_uses_stays_and_so_does_what_is_new_or_small() {
    let (call, large, small) = (call("x"), result("x", 9000), result("x", 500));
    let now = config(r#"{"older-than-turns":1,"older-than-tokens":1}"#);
    assert!(trimmed(&now, &session(&[USER, &call, &large, ANSWER])).is_empty(), "the current turn");
    assert!(trimmed(&config("{}"), &session(&[USER, &call, &large, ANSWER, USER, ANSWER])).is_empty(), "one turn old");
    assert!(trimmed(&now, &session(&[USER, &call, &small, ANSWER, USER, ANSWER])).is_empty(), "small");
}

#[test]
fn it_waits_until_it_pays() {
    let (call_x, old) = (call("x"), result("x", 5000));
    let (call_y, much) = (call("y"), result("y", 30_000));
    let entries = [USER, &call_x, &old, ANSWER, USER, &call_y, &much, ANSWER];
    let few = config(r#"{"older-than-turns":1,"expected-requests":20}"#);
    assert!(trimmed(&few, &session(&entries)).is_empty(), "5,000 saved 20 times at a tenth, 30,000 anew");
    let many = config(r#"{"older-than-turns":1,"expected-requests":100}"#);
    assert_eq!(trimmed(&many, &session(&entries)), ["rx"]);
    let none = config(r#"{"older-than-turns":1,"cache":false}"#);
    assert_eq!(trimmed(&none, &session(&entries)), ["rx"], "where no cache is lost");
}

/// The tool took longer than the cache lives: the next request pays for everything in any case.
#[test]
fn where_the_cache_is_cold_it_is_done_at_once() {
    let (call_x, old) = (call("x"), result("x", 5000));
    let (call_y, much) = (call("y"), result("y", 30_000));
    let mut host = session(&[USER, &call_x, &old, ANSWER, USER, &call_y, &much]);
    let config = config(r#"{"older-than-turns":1}"#);
    let on_entry = |host: &FakeHost| {
        TrimToolResults::on_entry(&config, &Run::on(host)).expect("it runs");
        (host.edits.borrow().len(), host.note.borrow().is_some())
    };
    host.change(5, |info| info.time_ms = Some(0));
    host.change(6, |info| info.time_ms = Some(60_000));
    assert_eq!(on_entry(&host), (0, false), "a minute");
    host.change(6, |info| info.time_ms = Some(360_000));
    assert_eq!(on_entry(&host), (1, false), "six minutes");
}

#[test]
fn the_oldest_goes_along_only_if_it_brings_more_than_it_costs() {
    let (call_x, small) = (call("x"), result("x", 1200));
    let (call_y, much) = (call("y"), result("y", 40_000));
    let talk =
        format!(r#"{{"type":"message","id":"t","message":{{"role":"user","content":"{}"}}}}"#, "word ".repeat(24_000));
    let host = session(&[USER, &call_x, &small, ANSWER, &talk, ANSWER, &call_y, &much, ANSWER, USER, ANSWER]);
    assert_eq!(trimmed(&config(r#"{"older-than-turns":1}"#), &host), ["ry"]);
}

#[test]
fn what_is_trimmed_is_not_trimmed_again() {
    let (call, result) = (call("x"), result("x", 9000));
    let mut host = session(&[USER, &call, &result, ANSWER, USER, ANSWER]);
    host.change(2, |info| {
        info.shown = "replaced".into();
        info.edited_by = Some("trim-tool-results".into());
    });
    assert!(trimmed(&config(r#"{"older-than-turns":1}"#), &host).is_empty());
}

#[test]
fn what_is_smaller_than_a_stub_stays_whatever_the_config_says() {
    let (call_x, large, call_y, tiny) = (call("x"), result("x", 9000), call("y"), result("y", 60));
    let host = session(&[USER, &call_x, &large, &call_y, &tiny, ANSWER, USER, ANSWER]);
    assert_eq!(trimmed(&config(r#"{"older-than-turns":1,"larger-than":0}"#), &host), ["rx"]);
}

/// Of a tool that nobody knows, of an image, of a result without its call, of the same result twice.
#[test]
fn odd_results_become_stubs_too() {
    let image = |id: &str| {
        let data = "iVBORw0KGgo".repeat(4000);
        format!(
            r#"{{"type":"message","id":"{id}","message":{{"role":"toolResult","toolCallId":"i","toolName":"snap \"shot\"","content":[{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}}}"#
        )
    };
    let alone =
        r#"{"type":"message","id":"none","message":{"content":[{"type":"text","text":"LONG"}],"role":"toolResult"}}"#
            .replace("LONG", &"word ".repeat(8000));
    let host = session(&[USER, &image("one"), &image("two"), &alone, ANSWER, USER, ANSWER]);
    assert_eq!(trimmed(&config(r#"{"older-than-turns":1}"#), &host), ["none", "two", "one"]);
    for edit in host.edits.borrow().iter() {
        let stub = edit.replacement.as_ref().expect("a stub").as_str().to_owned();
        assert!(stub.contains("was left out to keep the context small") && stub.len() < 400, "{stub}");
    }
}
