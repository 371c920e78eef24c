//! Pi's own settings and models in the toolbox: what they change, and that it is said where each number comes from.

mod home;

use std::fs;

use home::{Home, stderr, user};
use serde_json::{Value, json};

fn answer(id: &str, parent: &str, tokens: u64) -> Value {
    json!({"type":"message","id":id,"parentId":parent,"timestamp":"2026-12-01T16:19:03.000Z",
        "message":{"role":"assistant","provider":"openai","model":"gpt-4","content":[{"type":"text","text":"ok"}],
            "stopReason":"stop","usage":{"totalTokens":tokens},"timestamp":1_796_142_001_000_u64}})
}

/// A session of the model `openai/gpt-4`, and an agent directory.
fn home() -> Home {
    let home = Home::new();
    home.session(
        "s",
        &[user("a", None, "hello"), answer("b", "a", 2048), user("c", Some("b"), "more"), answer("d", "c", 4096)],
    );
    home
}

fn write(home: &Home, name: &str, text: &str) {
    let path = home.path(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, text).expect("written");
}

/// The words of the line that begins with this one.
fn line(text: &str, first: &str) -> String {
    let line = text.lines().find(|line| line.trim_start().starts_with(first));
    line.unwrap_or_else(|| panic!("no line {first}: {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_plan_takes_pis_numbers_and_says_so_and_flags_win() {
    let home = home();
    let plan = |more: &[&str]| home.text(&[&["session", "plan-compaction", "s"], more].concat());
    assert_eq!(line(&plan(&[]), "keep"), "keep 20,000 Pi's default");
    let of_model = r#"{"compaction":{"keepRecentTokens":9,"modelOverrides":{"openai/gpt-4":{"keepRecentTokens":1}}}}"#;
    write(&home, ".pi/agent/settings.json", of_model);
    let text = plan(&[]);
    let from = home.path(".pi/agent/settings.json").display().to_string();
    assert_eq!(
        line(&text, "keep"),
        format!("keep 1 {from}: compaction.modelOverrides[\"openai/gpt-4\"].keepRecentTokens")
    );
    assert!(text.starts_with("tokens now"), "one token to keep leaves something to summarise: {text}");
    assert!(line(&text, "window").starts_with("window 8,192 the shipped table of "), "{text}");
    let text = plan(&["--keep", "100000", "--reserve", "5"]);
    assert_eq!(
        (line(&text, "keep"), line(&text, "reserve")),
        ("keep 100,000 --keep".into(), "reserve 5 --reserve".into())
    );
    assert!(line(&text, "Pi compacts").ends_with("over 8,187 tokens"), "{text}");
}

#[test]
fn a_plan_in_json_is_what_it_was() {
    let home = home();
    write(&home, ".pi/agent/settings.json", r#"{"compaction":{"keepRecentTokens":1}}"#);
    let plan = home.json(&["session", "plan-compaction", "s", "--json"]);
    assert_eq!((&plan["firstKeptEntryId"], &plan["tokensBefore"]), (&json!("d"), &json!(4096)));
    assert_eq!(home.json(&["session", "plan-compaction", "s", "--keep", "9999", "--json"]), Value::Null);
}

#[test]
fn stats_and_show_say_how_full_the_window_is() {
    let home = home();
    assert!(line(&home.text(&["session", "stats", "s"]), "context").starts_with("context 4,096 tokens, 50 % of 8,192"));
    assert_eq!(
        line(&home.text(&["session", "show", "s"]), "context"),
        "context 4,096 tokens, 50 % of 8,192 (openai/gpt-4)"
    );
    write(
        &home,
        ".pi/agent/models.json",
        r#"{"providers":{"openai":{"modelOverrides":{"gpt-4":{"contextWindow":40960}}}}}"#,
    );
    let stats = home.json(&["session", "stats", "s", "--json"]);
    assert_eq!((&stats["contextWindow"], &stats["model"]["modelId"]), (&json!(40960), &json!("gpt-4")));
    assert!(stats["contextWindowFrom"].as_str().is_some_and(|from| from.contains("models.json: providers.openai")));
}

#[test]
fn config_show_tells_what_pi_says_and_who_says_it() {
    let home = Home::new();
    write(&home, ".pi/agent/settings.json", r#"{"defaultProvider":"openai","defaultModel":"gpt-4"}"#);
    write(&home, "work/.pi/settings.json", r#"{"compaction":{"reserveTokens":7}}"#);
    let work = home.path("work").canonicalize().expect("it is there").display().to_string();
    let show = |more: &[&str]| home.json(&[&["config", "show", "--cwd", &work, "--json"], more].concat())["pi"].clone();
    let value = |pi: &Value, key: &str| {
        let rows = pi["settings"].as_array().expect("a list").clone();
        rows.into_iter().find(|row| row["key"] == key).unwrap_or_default()
    };
    let pi = show(&[]);
    assert_eq!((&pi["cwd"], &pi["model"]["modelId"]), (&json!(work), &json!("gpt-4")));
    assert_eq!(
        value(&pi, "compaction.reserveTokens"),
        json!({"key":"compaction.reserveTokens","value":16384,"origin":"Pi's default"})
    );
    assert_eq!(pi["untrusted"], json!(format!("{work}/.pi/settings.json")));
    assert!(home.text(&["config", "show", "--cwd", &work]).contains("does not count: Pi does not trust the project"));
    write(&home, ".pi/agent/trust.json", &format!("{{{work:?}:true}}"));
    let pi = show(&["--model", "anthropic/no/such"]);
    let reserve = value(&pi, "compaction.reserveTokens");
    assert_eq!(reserve["origin"], json!(format!("{work}/.pi/settings.json: compaction.reserveTokens")));
    assert_eq!((&reserve["value"], value(&pi, "contextWindow")), (&json!(7), Value::Null));
}

#[test]
fn what_is_wrong_with_pis_files_is_said_and_stops_nothing() {
    let home = home();
    write(&home, ".pi/agent/settings.json", "{\n\"compaction\":{\"reserveTokens\":\"many\"}}");
    write(&home, ".pi/agent/models.json", "{]");
    let output = home.run(&["session", "stats", "s", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(said.contains("settings.json:2:31: compaction.reserveTokens: not a whole number"), "{said}");
    assert!(said.contains("models.json:1:2: not JSON"), "{said}");
}

#[test]
fn a_project_that_keeps_its_sessions_elsewhere_is_found_and_forked_into() {
    let home = home();
    write(&home, "work/.pi/settings.json", r#"{"sessionDir":"logs"}"#);
    let work = home.path("work").canonicalize().expect("it is there").display().to_string();
    let forked = home.json(&["session", "fork", "s", "--cwd", &work, "--json"]);
    assert!(forked["path"].as_str().is_some_and(|path| path.starts_with(&format!("{work}/logs/2"))), "{forked}");
    let listed = home.json(&["session", "ls", "--cwd", &work, "--json"]);
    assert_eq!(listed["path"], forked["path"]);
    assert_eq!(home.text(&["session", "ls", "--json"]).lines().count(), 1, "it is not below a root");
}
