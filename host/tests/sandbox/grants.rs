//! What was not granted is refused: when loading if the plugin cannot do without, else when calling.
use pi_graft::sandbox::LoadError;
use serde_json::{Value, json};

use super::common::{ALL, done, drafts, load, load_error, on_entry, session, source};

/// A script that proposes one draft of each kind.
fn one_of_each() -> Value {
    json!({"entry": [
        {"custom": {"type": "x", "data": 1}},
        {"edits": [{"target": "u1", "text": "less"}]},
        {"custom_message": {"type": "m", "content": "hello"}},
        {"compaction": {"summary": "all of it"}},
    ]})
}

#[test]
fn a_missing_list_grants_nothing() {
    let report = load("p", &[], &one_of_each()).run(on_entry(&session(&["u1", "a2", "u3", "a4"])));
    let refused: Vec<_> = report.refusals.iter().map(|refusal| refusal.rule.as_str()).collect();
    assert_eq!(refused, ["S12.1"; 4]);
    assert!(done(report).accepted.is_none());
}

#[test]
fn each_kind_of_draft_has_its_own_grant() {
    let file = session(&["u1", "a2", "u3", "a4"]);
    let kinds = ["custom", "context_edit", "custom_message", "compaction"];
    for kind in kinds {
        let plugin = load("p", &[&format!("append:{kind}")], &one_of_each());
        let types: Vec<_> = drafts(plugin.run(on_entry(&file))).iter().map(|draft| draft.type_name()).collect();
        assert_eq!(types, [kind]);
    }
    let all: Vec<_> =
        drafts(load("p", &ALL, &one_of_each()).run(on_entry(&file))).iter().map(|draft| draft.type_name()).collect();
    assert_eq!(all, kinds);
}

#[test]
fn a_need_that_is_not_granted_names_the_line_that_grants_it() {
    let script = json!({"needs": ["append:custom", "model:summary"]});
    let error = load_error(source("p", &["append:custom"], &script));
    assert!(matches!(error, LoadError::Needs { .. }));
    let text = error.to_string();
    assert!(text.contains(r#"grants = ["append:custom", "model:summary"]"#), "{text}");
}

#[test]
fn what_it_can_do_without_loads_and_is_refused_when_called() {
    let script =
        json!({"can_use": ["model:summary"], "settled": [{"complete": "summary"}], "entry": [{"complete": "summary"}]});
    let report = load("p", &[], &script).run(on_entry(&session(&["u1"])));
    assert!(report.logs[0].text.starts_with("handler: "), "{:?}", report.logs);
    let script = json!({"needs": ["append:everything"]});
    assert!(matches!(load_error(source("p", &ALL, &script)), LoadError::Capability(_)));
}
