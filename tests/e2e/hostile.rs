//! A plugin that misbehaves costs its own run only.

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

#[test]
fn a_good_plugin_works_among_bad_ones() {
    let bad = |name: &str, what: &str| {
        let step = format!(
            r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{{"custom":{{"type":"{name}"}}}},{what}]}}"#
        );
        scripted(name, &["append:custom"], &step)
    };
    let good = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"good"}}]}"#;
    let plugins = [
        bad("loops", r#"{"loop":true}"#),
        bad("traps", r#"{"trap":true}"#),
        bad("panics", r#"{"panic":"oh"}"#),
        bad("eats", r#"{"eat_memory":true}"#),
        bad("recurses", r#"{"recurse":true}"#),
        bad("errs", r#"{"err":"no"}"#),
        bad("pesters", r#"{"calls":10000000}"#),
        bad("floods", r#"{"flood":100000,"times":1000},{"err":"after the flood"}"#),
        scripted(
            "ungranted",
            &[],
            r#"{"can_use":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"ungranted"}}]}"#,
        ),
        scripted("good", &["append:custom"], good),
    ]
    .concat();
    let stage = Stage::new(50, &format!("[limits]\nfuel = 400000000\n{plugins}"));
    let daemon = stage.daemon(&[]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("hello");
    pi.assistant("hi");
    until("the graft", || Session::read(&path).customs("good").len() == 1);
    pi = Talk::reopen(&path);
    pi.user("again");
    pi.assistant("hi");
    until("the next graft", || Session::read(&path).customs("good").len() == 2);
    let file = Session::read(&path);
    file.assert_sound();
    assert_eq!(file.receipts(), 2, "nothing but the good one's");
    let log = daemon.end();
    for said in ["fuel", "trap", "memory", "S12.1"] {
        assert!(log.contains(said), "{said:?} is not explained in the log");
    }
}

#[test]
fn a_plugin_that_needs_what_is_not_granted_is_not_loaded() {
    let script = r#"{"needs":["append:custom"],"on":["*"]}"#;
    let stage = Stage::new(50, &scripted("greedy", &[], script));
    let output = stage.run(&["run", "--once"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("append:custom") && said.contains("grants"), "{said}");
}
