//! Which sessions are followed, and which entries wake whom.

use std::path::Path;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk, member};

/// Notes what wakes it, under its own name.
fn noter(name: &str, on: &str) -> String {
    let script = format!(
        r#"{{"needs":["append:custom"],"on":[{on:?}],"entry":[{{"custom":{{"type":{name:?},"data":{{"of":"$trigger"}}}}}}]}}"#
    );
    scripted(name, &["append:custom"], &script)
}

fn noted(path: &Path, name: &str) -> Vec<String> {
    Session::read(path).customs(name).iter().map(|entry| member(entry, &["data", "of"])).collect()
}

#[test]
fn sessions_are_chosen_by_their_path_and_by_their_working_directory() {
    let stage = Stage::new(20, &noter("note", "message:user"));
    let text = std::fs::read_to_string(stage.path("config.toml")).expect("the config");
    let chosen =
        "[watch]\ninclude = [\"**/--work--/*\"]\nexclude = [\"**/*secret*\"]\ncwd = [\"/mine/**\", \"/mine\"]\n";
    std::fs::write(stage.path("config.toml"), text.replacen("[watch]\n", chosen, 1)).expect("written");
    std::fs::create_dir(stage.root().join("--other--")).expect("a directory");
    let other = stage.root().join("--other--/a.jsonl");
    let left_alone =
        [(stage.session("secret.jsonl"), "/mine"), (stage.session("home.jsonl"), "/home"), (other, "/mine")];
    let daemon = stage.daemon(&["--closed"]);
    for (path, cwd) in &left_alone {
        let mut pi = Talk::begin_in(path, Path::new(cwd));
        pi.user("hello");
        pi.assistant("hi");
    }
    // What comes behind them is handled behind them.
    let (path, below) = (stage.session("a.jsonl"), stage.session("b.jsonl"));
    for (path, cwd) in [(&path, "/mine"), (&below, "/mine/some/where")] {
        let mut pi = Talk::begin_in(path, Path::new(cwd));
        let asked = [pi.user("hello")];
        pi.assistant("hi");
        until("its graft", || noted(path, "note") == asked);
    }
    daemon.end();
    stage.once(&["--closed"]);
    for (path, _) in &left_alone {
        assert_eq!(Session::read(path).receipts(), 0, "{}", path.display());
    }
}

#[test]
fn entries_wake_by_type_role_and_custom_type_and_a_config_can_only_narrow() {
    let patterns = [
        ("any", "*"),
        ("users", "message:user"),
        ("messages", "message:*"),
        ("labels", "label"),
        ("todos", "custom:todo"),
        ("notices", "custom_message:todo"),
    ];
    let plugins: String = patterns.iter().map(|(name, on)| noter(name, on)).collect();
    let narrowed = noter("narrowed", "*").replacen("grants", "on = [\"label\", \"message:assistant\"]\ngrants", 1);
    let stage = Stage::new(20, &(plugins + &narrowed));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let user = pi.user("hello");
    let label = pi.entry("label", &format!(r#""targetId":"{user}","label":"here""#));
    let todo = pi.entry("custom", r#""customType":"todo""#);
    let done = pi.entry("custom", r#""customType":"done""#);
    let notice = pi.entry("custom_message", r#""customType":"todo","content":"x","display":false"#);
    let answer = pi.assistant("hi");
    stage.once(&["--closed"]);
    Session::read(&path).assert_sound();
    let woken = |name: &str| noted(&path, name);
    let everything = [&user, &label, &todo, &done, &notice, &answer].map(Clone::clone);
    assert_eq!(woken("any"), everything);
    assert_eq!(woken("users"), everything[..1]);
    assert_eq!(woken("messages"), [user, answer.clone()]);
    assert_eq!(woken("labels"), everything[1..2]);
    assert_eq!(woken("todos"), [todo]);
    assert_eq!(woken("notices"), [notice]);
    assert_eq!(woken("narrowed"), [label, answer]);
}

#[test]
fn what_an_earlier_plugin_took_out_no_later_one_sees_now_or_then() {
    let takes = r#"{"needs":["append:context_edit"],"on":["message:user"],"entry":[{"edits":[{"target":"$trigger","text":"taken out"}],"must":true}]}"#;
    let reads = r#"{"on":["message:*"],"entry":[{"read":"$first"},{"raw":"$first"}]}"#;
    let plugins = [scripted("taker", &["append:context_edit"], takes), scripted("reader", &[], reads)];
    let stage = Stage::new(20, &plugins.concat());
    let daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.user("the word is plugh");
    pi.assistant("hi");
    until("the edit", || Session::read(&path).receipts() == 1);
    let log = daemon.end();
    let of_reader: Vec<_> = log.lines().filter(|line| line.contains("plugin=\"reader\"")).collect();
    let count = |text: &str| of_reader.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("taken out"), 2, "on the message itself, and on the answer: {of_reader:?}");
    assert_eq!(count("session:raw"), 2, "nor does it get around it: {of_reader:?}");
    assert!(!log.contains("plugh"));
}
