//! What wakes a plugin.
use serde_json::json;

use super::common::{load, load_error, sandbox, session, source};

/// The ids of a session that wake a plugin with these patterns.
fn woken(name: &str, on: &[&str], narrowed: Option<&[&str]>) -> Vec<String> {
    let mut source = source(name, &[], &json!({"on": on}));
    source.on = narrowed.map(|on| on.iter().map(ToString::to_string).collect());
    let plugin = sandbox().load(source).expect("it loads");
    let branch = session(&["u1", "Rr", "c2", "a3", "c4", "u5"]);
    let wakes = |place: &u32| plugin.wakes_on(&branch, *place).expect("readable");
    let places: Vec<_> = (0..branch.len()).filter(wakes).collect();
    places.into_iter().map(|place| branch.item(place).id.expect("in the file").to_owned()).collect()
}

#[test]
fn entries_that_fit_wake_it_but_no_receipt_and_no_graft() {
    assert_eq!(woken("p", &["*"], None), ["u1", "a3", "c4", "u5"]);
    assert_eq!(woken("p", &["message:user"], None), ["u1", "u5"]);
    assert_eq!(woken("p", &["custom:note"], None), ["c4"]);
}

#[test]
fn a_graft_wakes_who_asks_but_not_its_maker() {
    assert_eq!(woken("p", &["graft"], None), ["c2"]);
    assert!(woken("maker", &["graft"], None).is_empty());
}

#[test]
fn the_config_can_only_narrow() {
    assert_eq!(woken("p", &["*"], Some(&["message:*"])), ["u1", "a3", "u5"]);
    assert!(woken("p", &["message:user"], Some(&["custom"])).is_empty());
    assert!(woken("p", &["*"], Some(&[])).is_empty());
}

#[test]
fn what_is_no_pattern_is_an_error() {
    let error = load_error(source("p", &[], &json!({"on": ["message:"]})));
    assert!(error.to_string().contains("\"message:\" wakes nothing"), "{error}");
    assert!(load("p", &["append:compaction"], &json!({"needs": ["append:compaction"]})).wants_settled());
    assert!(!load("p", &[], &json!({"can_use": ["append:compaction"]})).wants_settled());
}
