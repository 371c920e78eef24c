//! What the bridge costs: without a daemon, and for one question and its answer. Printed (`--nocapture`), not judged: machines
//! are noisy.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fake::{Fake, answer};
use super::home::{Home, bridge};

/// Calls the extension's handlers as Pi does, with nobody there, and says what one event costs, in microseconds.
const WITHOUT: &str = r#"
const { default: load } = await import(process.argv[1]);
const handlers = new Map();
load({ on: (name, handler) => { handlers.set(name, handler); } });
const sessionManager = { getSessionFile: () => "/s.jsonl", getLeafId: () => "a", getSessionId: () => "i", getCwd: () => "/" };
const ctx = { sessionManager, isIdle: () => true, hasPendingMessages: () => false };
await handlers.get("session_start")({ reason: "startup" }, ctx);
if (handlers.has("turn_end")) throw new Error("registered at a boundary, with nobody there");
const names = ["turn_start", "message_start", "message_end", "tool_execution_end", "agent_end"];
const event = { message: { role: "assistant" } };
for (let i = 0; i < 20000; i++) for (const name of names) handlers.get(name)(event, ctx);
const begun = performance.now();
for (let i = 0; i < 20000; i++) for (const name of names) handlers.get(name)(event, ctx);
console.log((performance.now() - begun) * 1000 / (20000 * names.length));
"#;

#[test]
fn what_an_event_costs_without_a_daemon() {
    let Some(home) = Home::new() else { return };
    let output = home.node().args(["--input-type=module", "-e", WITHOUT]).arg(bridge()).output().expect("Node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cost: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    println!("one event without a daemon: {cost:.2} µs");
}

/// Times Pi's boundary from one extension before ours to one behind it, and tells it with the last prompt's entry.
fn clock(name: &str, body: &str) -> String {
    format!(
        "export default function (pi) {{ const times = (globalThis.times ??= []); pi.on({name:?}, () => {{ {body} }}); }}"
    )
}

#[test]
fn what_a_question_and_its_answer_cost_pi() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::new(&home, |message| match message.get("ask") {
        Some(_) => vec![answer(message, &[])],
        None => Vec::new(),
    });
    let before = home.extension("before.ts", &clock("agent_before_settle", "times.push(-performance.now());"));
    let tell = "times[times.length - 1] += performance.now(); pi.appendEntry('time', times.at(-1));";
    let after = home.extension("after.ts", &clock("agent_before_settle", tell));
    let mut pi = home.pi_with(&[before, bridge(), after], &[]);
    daemon.next("bridge");
    (0..25).for_each(|_| pi.prompt("hello"));
    let entries = home.entries();
    let mut times: Vec<f64> =
        entries.iter().filter(|e| e["customType"] == "time").filter_map(|e| e["data"].as_f64()).collect();
    assert_eq!(times.len(), 25);
    let median = median(&mut times);
    println!("a boundary with a question and its answer: {median:.2} ms (median of {})", times.len());
    pi.quit();
}

#[test]
fn what_a_round_trip_costs() {
    let Some(home) = Home::new() else { return };
    let daemon = Fake::silent(&home);
    let pi = home.pi();
    daemon.next("bridge");
    let ask = |number: u32| -> Duration {
        let begun = Instant::now();
        daemon.say(&json!({ "leaf?": number }));
        daemon.wait("where it stands", |message| message["re"] == number);
        begun.elapsed()
    };
    (0..20).for_each(|number| _ = ask(number));
    let mut times: Vec<f64> = (20..220).map(|number| ask(number).as_secs_f64() * 1e3).collect();
    let median = median(&mut times);
    println!("a round trip over the socket: {median:.2} ms (median of {})", times.len());
    pi.quit();
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
