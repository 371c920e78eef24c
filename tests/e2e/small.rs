//! On a machine, or in a container, with little room.

use std::process::Command;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

const NOTE: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"note"}}]}"#;

/// Room for so many kilobytes of addresses. What the fastest engine reserves for its instances is thousands of times that.
fn with_addresses(kilobytes: u32) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {kilobytes}; exec \"$@\""), "sh"]);
    shell
}

#[test]
fn where_addresses_are_few_plugins_are_compiled_and_run_all_the_same() {
    let eats =
        r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"lost"}},{"eat_memory":true}]}"#;
    let limits = "[limits]\nmemory = \"16MiB\"\ntime = \"10m\"\n".to_owned();
    let plugins = [limits, scripted("eater", &["append:custom"], eats), scripted("noter", &["append:custom"], NOTE)];
    for kilobytes in [2_000_000, 1_000_000] {
        let stage = Stage::new(20, &plugins.concat());
        let daemon = stage.daemon_by(with_addresses(kilobytes), &["--closed"]);
        let path = stage.session("a.jsonl");
        let mut pi = Talk::begin(&path);
        pi.user("hello");
        pi.assistant("hi");
        until("the graft", || Session::read(&path).customs("note").len() == 1);
        let log = daemon.end();
        assert!(log.contains("of 16,777,216 bytes of memory (limits.memory)"), "the limits are the same: {log}");
        assert_eq!(Session::read(&path).receipts(), 1);
    }
}
