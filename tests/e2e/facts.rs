//! What Pi's own files say reaches the plugins: its settings for the session's directory, and the facts of its model.

use std::fs;
use std::path::Path;

use crate::stage::Stage;
use crate::talk::{Session, Talk};

/// The shipped plugin, told nothing but when.
const AUTO_COMPACT: &str = "[[plugin]]\nname = \"auto-compact\"\ngrants = [\"append:compaction\"]\n";

/// A stage whose config says nothing of windows, and a project for sessions to work in.
fn stage(more: &str) -> Stage {
    let stage = Stage::new(1, &format!("{AUTO_COMPACT}{more}"));
    fs::create_dir_all(stage.path("agent")).expect("made");
    fs::create_dir_all(stage.path("project/.pi")).expect("made");
    stage
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
}

/// Twenty turns of about a thousand tokens each.
fn long_talk(stage: &Stage, name: &str) -> Talk {
    let pi = Talk::begin_in(&stage.session(name), &stage.path("project"));
    turns(pi, 20)
}

fn turns(mut pi: Talk, count: usize) -> Talk {
    for turn in 0..count {
        pi.user(&format!("request {turn}: {}", "word ".repeat(400)));
        pi.assistant(&format!("answer {turn}: {}", "word ".repeat(400)));
    }
    pi
}

/// The numbers that the plugin decided by, as it logs them.
fn due_above(log: &str) -> Vec<u64> {
    let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    log.split("due above ").skip(1).filter_map(number).collect()
}

#[test]
fn the_window_comes_from_models_json_and_a_projects_settings_change_when_it_is_due() {
    let stage = stage("");
    let window = r#"{"providers":{"p":{"modelOverrides":{"m":{"contextWindow":40000}}}}}"#;
    write(&stage.path("agent/models.json"), window);
    write(&stage.path("agent/settings.json"), r#"{"compaction":{"reserveTokens":0}}"#);
    write(&stage.path("project/.pi/settings.json"), r#"{"compaction":{"reserveTokens":20000}}"#);
    let path = stage.session("a.jsonl");
    let pi = long_talk(&stage, "a.jsonl");
    let log = stage.once(&["--closed"]);
    assert_eq!(due_above(&log).last(), Some(&32_000), "80 % of the window: {log}");
    assert_eq!(Session::read(&path).compactions(), 0, "Pi has not been told to trust the project");
    let project = stage.path("project").display().to_string();
    write(&stage.path("agent/trust.json"), &format!("{{{project:?}:true}}"));
    turns(pi, 1);
    let log = stage.once(&["--closed"]);
    assert_eq!(Session::read(&path).compactions(), 1, "80 % of the window less the project's reserve is passed: {log}");
}

#[test]
fn a_running_daemon_sees_that_settings_change() {
    let stage = stage("");
    let window =
        |tokens: u32| format!(r#"{{"providers":{{"p":{{"modelOverrides":{{"m":{{"contextWindow":{tokens}}}}}}}}}}}"#);
    write(&stage.path("agent/models.json"), &window(1_000_000));
    let mut daemon = stage.daemon(&["--closed"]);
    let path = stage.session("a.jsonl");
    let pi = long_talk(&stage, "a.jsonl");
    // All forty messages, so that none of them is judged by what comes now.
    daemon.wait_for("due above 786892 plugin=\"auto-compact\" trigger=\"00000028\"");
    write(&stage.path("agent/models.json"), &window(20_000));
    turns(pi, 1);
    crate::stage::until("the compaction", || Session::read(&path).compactions() == 1);
    daemon.end();
    Session::read(&path).assert_sound();
}

#[test]
fn without_a_models_json_the_shipped_table_knows_the_window() {
    let stage = stage("");
    let path = stage.session("a.jsonl");
    let pi = Talk::begin_in(&path, &stage.path("project")).with_model("openai", "gpt-4");
    turns(pi, 20);
    let log = stage.once(&["--closed"]);
    assert_eq!(due_above(&log).first(), Some(&3276), "80 % of 8192 less at most half of it: {log}");
    assert_eq!(Session::read(&path).compactions(), 1, "{log}");
}

#[test]
fn where_pi_does_not_compact_neither_does_it_unless_told() {
    let off = r#"{"compaction":{"enabled":false}}"#;
    let stage_of = |more: &str| {
        let stage = stage(more);
        write(&stage.path("agent/settings.json"), off);
        stage
    };
    for (more, compactions) in [("", 0), ("[plugin.config]\nwhen-pi-disabled = true\n", 1)] {
        let stage = stage_of(more);
        let path = stage.session("a.jsonl");
        turns(Talk::begin_in(&path, &stage.path("project")).with_model("openai", "gpt-4"), 20);
        let log = stage.once(&["--closed"]);
        assert_eq!(Session::read(&path).compactions(), compactions, "{more}: {log}");
    }
}

#[test]
fn broken_files_of_pis_are_told_once_and_stop_nothing() {
    let stage = stage("");
    write(&stage.path("agent/settings.json"), "{\n  \"compaction\": tru\n}");
    write(&stage.path("agent/models.json"), "{\"providers\": {\"p\": {\"models\": 7}}}");
    let path = stage.session("a.jsonl");
    turns(Talk::begin_in(&path, &stage.path("project")).with_model("openai", "gpt-4"), 20);
    let log = stage.once(&["--closed"]);
    assert_eq!(log.matches("settings.json:2:17: not JSON").count(), 1, "{log}");
    assert_eq!(log.matches("models.json:1:32: models must be a list").count(), 1, "{log}");
    assert_eq!(Session::read(&path).compactions(), 1, "{log}");
}
