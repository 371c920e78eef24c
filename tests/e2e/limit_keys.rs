//! Each key of `[limits]` is honoured, for every plugin that says nothing else; what hit it is said with the figure and the key.

use serde_json::Value;

use crate::stage::{Stage, scripted};
use crate::talk::{Session, Talk};

const GRANTS: [&str; 2] = ["append:custom", "append:custom_message"];

/// The lines of `[limits]`; what the plugin does; what is said of it; and the lines by which a plugin has more.
const KEYS: [(&str, &str, &str, &str); 6] = [
    ("fuel = 5000000", r#"{"loop":true}"#, "used 5,000,000 of 5,000,000 fuel (limits.fuel)", ""),
    (
        "fuel = 1000000000000\ntime = \"60ms\"\nretry = \"1h\"",
        r#"{"loop":true}"#,
        "used 60 of 60 ms of time (limits.time)",
        "",
    ),
    ("memory = \"8MiB\"", r#"{"eat_memory":true}"#, "of 8,388,608 bytes of memory (limits.memory)", ""),
    (
        "proposals = 2",
        r#"{"custom":{"type":"x"},"times":3,"must":true}"#,
        "used 3 of 2 drafts (limits.proposals)",
        "proposals = 3",
    ),
    (
        "entry-bytes = \"1KiB\"",
        r#"{"custom_message":{"type":"x","content":"LONG"},"must":true}"#,
        "of 1,024 bytes of an entry (limits.entry-bytes)",
        "entry-bytes = \"8KiB\"",
    ),
    (
        "log-lines = 2",
        r#"{"log":{"text":"a line"},"times":5}"#,
        "used 5 of 2 lines in the log (limits.log-lines): 3 dropped",
        "log-lines = 5",
    ),
];

/// A plugin that does this once a user says something.
fn plugin(name: &str, step: &str, own: &str) -> String {
    let script =
        format!(r#"{{"needs":["append:custom","append:custom_message"],"on":["message:user"],"entry":[{step}]}}"#);
    let table = scripted(name, &GRANTS, &script.replace("LONG", &"x".repeat(2000)));
    match own {
        "" => table,
        own => table.replacen("[plugin.config]", &format!("[plugin.limits]\n{own}\n\n[plugin.config]"), 1),
    }
}

/// What a run with these plugins says, and what its own log holds of each.
fn run(limits: &str, plugins: &str) -> (String, Vec<Value>) {
    let stage = Stage::new(1, &format!("[limits]\n{limits}\n\n{plugins}"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("go");
    pi.assistant("ok");
    let said = stage.once(&["--closed"]);
    Session::read(&path).assert_sound();
    let log = stage.run(&["log", "--json"]);
    let lines = String::from_utf8(log.stdout).expect("text");
    (said, lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

#[test]
fn each_key_is_honoured_and_what_hit_it_is_said_with_the_figure() {
    for (limits, step, words, more) in KEYS {
        let own = if more.is_empty() { String::new() } else { plugin("more", step, more) };
        let (said, log) = run(limits, &[plugin("hits", step, ""), own].concat());
        let of =
            |name: &str| log.iter().filter(|line| line["plugin"] == name).map(Value::to_string).collect::<String>();
        assert!(said.contains(words), "{limits}: no {words:?} in {said}");
        // Dropped lines are no failure of the run, so its row does not tell them.
        let is_told = words.contains("log-lines") || of("hits").contains(words);
        assert!(is_told, "{limits}: {}", of("hits"));
        assert!(more.is_empty() || !of("more").contains("(limits."), "{limits}: {}", of("more"));
    }
}

#[test]
fn what_a_plugin_says_for_itself_counts_for_it_alone() {
    for (limits, step, words, _) in KEYS {
        let calm = plugin("calm", r#"{"custom":{"type":"calm"}}"#, "");
        let (said, log) = run("", &[plugin("hits", step, limits), calm].concat());
        assert!(said.contains(words), "{limits}: no {words:?} in {said}");
        let calm = log.iter().find(|line| line["plugin"] == "calm").expect("a row");
        assert!(!calm.to_string().contains("(limits."), "{limits}: {calm}");
    }
}

/// These are the same for every plugin.
#[test]
fn the_stack_has_an_end_too() {
    let (said, log) = run("", &plugin("deep", r#"{"recurse":true}"#, ""));
    let told = log.iter().find(|line| line["plugin"] == "deep").expect("a row");
    assert!(told["message"].as_str().is_some_and(|why| why.contains("stack")), "{told} {said}");
}
