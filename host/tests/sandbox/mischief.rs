//! A plugin that misbehaves costs its own run only.
use std::time::{Duration, Instant};

use pi_graft::sandbox::{Failure, FailureKind, Limits, PluginSource, RunReport};
use serde_json::{Value, json};

use super::common::{ALL, done, drafts, failure, load, load_error, on_entry, sandbox, session, source};

/// Runs a step behind a proposal, with limits, beside a good plugin whose proposal must land.
fn beside_a_good_one(step: Value, limits: Limits) -> RunReport {
    let file = session(&["u1", "a2"]);
    let script = json!({"entry": [{"custom": {"type": "lost"}, "must": true}, step]});
    let bad = PluginSource { limits, ..source("bad", &ALL, &script) };
    let bad = sandbox().load(bad).expect("it loads");
    let good = load("good", &ALL, &json!({"entry": [{"custom": {"type": "kept"}, "must": true}]}));
    let report = std::thread::scope(|scope| {
        let bad = scope.spawn(|| bad.run(on_entry(&file)));
        for _ in 0..20 {
            assert_eq!(drafts(good.run(on_entry(&file))).len(), 1);
        }
        bad.join().expect("the host does not panic")
    });
    assert_eq!(drafts(good.run(on_entry(&file))).len(), 1);
    report
}

/// Where fuel or memory is to strike first, however busy the machine is.
fn patient() -> Limits {
    Limits { time: Duration::from_hours(1), ..Limits::default() }
}

fn failed(step: Value) -> Failure {
    failure(beside_a_good_one(step, patient()))
}

#[test]
fn a_loop_ends_with_its_fuel() {
    let report = beside_a_good_one(json!({"loop": true}), Limits { fuel: 10_000_000, ..Limits::default() });
    assert_eq!(report.fuel, 10_000_000);
    let failure = failure(report);
    assert_eq!(failure.kind, FailureKind::Fuel);
    assert_eq!(failure.message, "used 10,000,000 of 10,000,000 fuel (limits.fuel)");
}

#[test]
fn a_loop_with_fuel_without_end_ends_with_its_time() {
    let limits = Limits { fuel: u64::MAX, time: Duration::from_millis(100), ..Limits::default() };
    let begun = Instant::now();
    let failure = failure(beside_a_good_one(json!({"loop": true}), limits));
    assert_eq!(failure.kind, FailureKind::Deadline);
    assert_eq!(failure.message, "used 100 of 100 ms of time (limits.time)");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_time_covers_host_calls() {
    let limits = Limits { fuel: u64::MAX, time: Duration::from_millis(50), ..Limits::default() };
    let failure = failure(beside_a_good_one(json!({"calls": u64::MAX}), limits));
    assert_eq!(failure.kind, FailureKind::Deadline);
}

#[test]
fn ten_million_host_calls_end_with_the_fuel() {
    assert_eq!(failed(json!({"calls": 10_000_000})).kind, FailureKind::Fuel);
}

#[test]
fn eating_memory_ends_at_the_limit_and_says_so() {
    let failure = failed(json!({"eat_memory": true}));
    assert_eq!(failure.kind, FailureKind::Memory);
    assert!(failure.message.ends_with("of 67,108,864 bytes of memory (limits.memory)"), "{failure}");
}

#[test]
fn recursion_ends_at_the_stack() {
    let failure = failed(json!({"recurse": true}));
    assert_eq!(failure.kind, FailureKind::Limit, "{failure}");
    assert!(failure.message.contains("stack"), "{failure}");
}

#[test]
fn a_trap_and_a_panic_drop_what_was_proposed() {
    assert_eq!(failed(json!({"trap": true})).kind, FailureKind::Trap);
    let report = beside_a_good_one(json!({"panic": "oh no"}), Limits::default());
    assert!(report.logs.iter().any(|line| line.text.contains("oh no")), "{:?}", report.logs);
    assert_eq!(failure(report).kind, FailureKind::Trap);
}

#[test]
fn an_error_drops_what_was_proposed_and_is_told() {
    let failure = failed(json!({"err": "I give up"}));
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Err, "I give up"));
}

#[test]
fn a_flood_of_log_lines_is_counted_and_dropped() {
    let limits = Limits { log_lines: 10, ..Limits::default() };
    let report = beside_a_good_one(json!({"log": {"text": "hello"}, "times": 1000}), limits);
    assert_eq!((report.logs.len(), report.logs_dropped), (10, 990));
    assert!(done(report).accepted.is_some(), "it did nothing worse");
}

#[test]
fn a_line_of_many_megabytes_is_not_taken() {
    let cut = beside_a_good_one(json!({"flood": 1_000_000}), Limits::default());
    assert_eq!(cut.logs[0].text.len(), 4096);
    assert_eq!(failed(json!({"flood": 20_000_000})).kind, FailureKind::Limit);
}

#[test]
fn refusals_without_end_end_with_the_fuel() {
    let report = beside_a_good_one(json!({"custom": {"type": ""}, "times": u32::MAX}), patient());
    assert!(report.refusals.len() <= 64);
    assert_eq!(failure(report).kind, FailureKind::Fuel);
}

#[test]
fn mischief_while_describing_itself_is_why_it_does_not_load() {
    for (step, word) in [("loop", "fuel"), ("trap", "trap"), ("eat_memory", "memory"), ("recurse", "stack")] {
        let error = load_error(source("bad", &ALL, &json!({"describe": [{step: true}]})));
        assert!(error.to_string().contains(word), "{step}: {error}");
    }
}

#[test]
fn the_same_run_takes_the_same_fuel() {
    let file = session(&["u1", "t2", "r2", "a3"]);
    let plugin = load("p", &ALL, &json!({"entry": [{"report": "seen"}, {"read": "r2"}]}));
    let fuel: Vec<_> = (0..5).map(|_| plugin.run(on_entry(&file)).fuel).collect();
    assert!(fuel[0] > 10_000);
    assert_eq!(fuel, [fuel[0]; 5]);
}
