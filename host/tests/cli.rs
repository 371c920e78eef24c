//! The toolbox as a user meets it: the real binary, real sessions, what it prints and how it exits.

use std::fs;
use std::io::{Read, Write};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

mod home;

use home::{Home, cases, said, stderr};

fn case(name: &str) -> String {
    cases().join(name).to_str().expect("a plain path").to_owned()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)))
}

#[test]
fn the_context_of_every_leaf_of_every_real_session_is_what_pi_says() {
    let home = Home::new();
    let mut leaves = 0;
    for entry in fs::read_dir(cases().join("real")).expect("the case files") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ext| ext != "jsonl") {
            continue;
        }
        let expected = fs::read(path.with_extension("expected.json")).expect("what Pi said");
        let expected: Value = serde_json::from_slice(&expected).expect("JSON");
        for leaf in expected["leaves"].as_array().expect("a list") {
            let (file, id) = (path.to_str().expect("a plain path"), leaf["leafId"].as_str().expect("an id"));
            let ours = home.json(&["session", "context", file, "--leaf", id, "--json"]);
            for (name, of_pi) in
                [("entryIds", "contextEntryIds"), ("model", "model"), ("thinkingLevel", "thinkingLevel")]
            {
                assert_eq!(ours[name], leaf[of_pi], "{file} {id} {name}");
            }
            for name in ["leafId", "projection", "messages"] {
                assert_eq!(ours[name], leaf[name], "{file} {id} {name}");
            }
            assert_eq!(ours["tokens"], leaf["contextEstimate"]["tokens"], "{file} {id} tokens");
            leaves += 1;
        }
    }
    assert!(leaves >= 7, "the case files must have leaves to compare");
}

#[test]
fn a_plan_has_pi_s_names_and_messages() {
    let home = Home::new();
    let plan = home.json(&["session", "plan-compaction", &case("real/01_plain_chat.jsonl"), "--keep", "1", "--json"]);
    for name in
        ["firstKeptEntryId", "isSplitTurn", "tokensBefore", "messagesToSummarize", "turnPrefixMessages", "readFiles"]
    {
        assert!(!plan[name].is_null(), "{name}: {plan}");
    }
    assert!(!plan["messagesToSummarize"].as_array().expect("a list").is_empty());
    let none = home.json(&["session", "plan-compaction", &case("odd/34_empty_file.jsonl"), "--json"]);
    assert!(none.is_null());
}

#[test]
fn a_valid_session_exits_with_0_and_a_broken_one_with_1() {
    let home = Home::new();
    let valid = home.json(&["session", "validate", &case("real/01_plain_chat.jsonl"), "--json"]);
    assert_eq!((&valid["valid"], &valid["version"], &valid["problems"]), (&json!(true), &json!(3), &json!([])));
    for broken in ["odd/12_cycle_two.jsonl", "odd/17_missing_header.jsonl", "odd/42c_last_line_number.jsonl"] {
        let output = home.run(&["session", "validate", &case(broken), "--json"]);
        assert_eq!(output.status.code(), Some(1), "{broken}");
        let document = document(&output);
        assert_eq!(document["valid"], json!(false), "{broken}");
        let error = document["problems"].as_array().expect("a list").iter().find(|p| p["severity"] == "error");
        let error = error.unwrap_or_else(|| panic!("{broken}: {document}"));
        assert!(error["rule"].as_str().is_some_and(|rule| rule.starts_with('S')) && error["message"].is_string());
    }
}

#[test]
fn a_session_is_found_by_its_id_or_the_beginning_of_it() {
    let home = Home::new();
    let path = home.case("real/01_plain_chat.jsonl", "01aa-first");
    home.case("real/03_manual_compact.jsonl", "01ab-second");
    for name in ["01aa-first", "01aa"] {
        let found = home.json(&["session", "validate", name, "--json"]);
        assert_eq!(found["path"], json!(path.display().to_string()));
    }
    let many = home.run(&["session", "validate", "01a"]);
    assert_eq!(many.status.code(), Some(2));
    assert!(stderr(&many).contains("2 sessions") && stderr(&many).contains("01ab-second"), "{}", stderr(&many));
    let none = home.run(&["session", "validate", "ff"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains(".pi/agent/sessions"), "{}", stderr(&none));
}

#[test]
fn sessions_are_listed_one_a_line() {
    let home = Home::new();
    home.case("real/01_plain_chat.jsonl", "01aa");
    home.case("odd/17_missing_header.jsonl", "nothing");
    let output = home.run(&["session", "ls", "--json"]);
    let lines: Vec<_> = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 1, "what is no session is not listed: {}", said(&output));
    let row: Value = serde_json::from_slice(lines[0]).expect("JSON");
    assert_eq!(row["cwd"], json!("/home/dev/project"));
    assert!(row["contextTokens"].as_f64().is_some_and(|tokens| tokens > 0.0));
    let elsewhere = home.run(&["session", "ls", "--cwd", "/elsewhere", "--json"]);
    assert!(elsewhere.stdout.is_empty());
}

#[test]
fn drafts_are_appended_behind_the_leaf_and_the_file_before_stays_as_it_was() {
    let home = Home::new();
    let path = home.case("real/01_plain_chat.jsonl", "01aa");
    let before = fs::read(&path).expect("read");
    let leaf = home.json(&["session", "context", "01aa", "--json"])["leafId"].clone();
    let drafts = r#"[{"type":"custom","customType":"my.note","data":{"n":1}},
        {"type":"custom_message","customType":"my.note","content":"hello","display":true}]"#;
    let dry = home.feed(&["session", "append", "01aa", "--drafts", "-", "--dry-run", "--json"], drafts);
    assert_eq!(document(&dry)["appended"].as_array().map(Vec::len), Some(2));
    assert_eq!(fs::read(&path).expect("read"), before, "a dry run writes nothing");

    let output = home.feed(&["session", "append", "01aa", "--drafts", "-", "--json"], drafts);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let appended = document(&output)["appended"].clone();
    assert_eq!(appended[0]["parentId"], leaf);
    assert_eq!(appended[1]["parentId"], appended[0]["id"]);
    let after = fs::read(&path).expect("read");
    let written = after.strip_prefix(before.as_slice()).expect("only appended to");
    let lines: Vec<Value> =
        written.split_inclusive(|b| *b == b'\n').map(|line| serde_json::from_slice(line).expect("JSON")).collect();
    assert_eq!(json!(lines), appended);
    let context = home.json(&["session", "context", "01aa", "--json"]);
    assert_eq!(context["leafId"], appended[1]["id"]);
    assert_eq!(context["messages"].as_array().and_then(|m| m.last()).map(|m| &m["content"]), Some(&json!("hello")));
}

#[test]
fn validate_says_of_each_finding_what_pi_does() {
    let home = Home::new();
    home.case("odd/B1_two_objects_on_a_line.jsonl", "01aa");
    let output = home.run(&["session", "validate", "01aa", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document = document(&output);
    let problem = &document["problems"][0];
    assert_eq!((&problem["finding"], &problem["severity"]), (&json!("glued-lines"), &json!("error")), "{document}");
    assert_eq!(problem["pi"], json!("skips the whole line, with every entry on it"));
    assert!(problem["at"].as_u64() > problem["offset"].as_u64(), "the bytes are pointed at: {problem}");

    let output = home.run(&["session", "validate", "01aa"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("error S2.4") && lines[0].contains(&problem["at"].to_string()), "{text}");
    assert_eq!(lines[1], "    Pi skips the whole line, with every entry on it");
}

#[test]
fn what_pi_puts_up_with_is_valid_and_told() {
    let home = Home::new();
    home.case("odd/15_forward_parent.jsonl", "01ab");
    let found = home.json(&["session", "validate", "01ab", "--json"]);
    assert_eq!(
        (&found["valid"], &found["problems"][0]["finding"]),
        (&json!(true), &json!("forward-parent")),
        "{found}"
    );
}

#[test]
fn one_bad_draft_and_nothing_is_written() {
    let home = Home::new();
    let path = home.case("real/01_plain_chat.jsonl", "01aa");
    let before = fs::read(&path).expect("read");
    for (drafts, rule) in [
        (r#"[{"type":"custom","customType":"a"},{"type":"custom"}]"#, "S12.4"),
        (r#"[{"type":"message","message":{}}]"#, "S12.1"),
        (r#"[{"type":"custom","customType":"pi-graft.run"}]"#, "S12.4"),
        (r#"[{"type":"custom_message","customType":"a","content":null,"display":true}]"#, "S12.3"),
        (r#"[{"type":"compaction","summary":"","firstKeptEntryId":null}]"#, "S12.5"),
        (r#"[{"type":"compaction","summary":"x","firstKeptEntryId":"nobody"}]"#, "S12.5"),
        (r#"[{"type":"context_edit","targetId":"nobody","replacement":null}]"#, "S12.6"),
        (r#"[{"type":"context_edit","targetId":"nobody"}]"#, "S12.3"),
        (r#"{"type":"custom","customType":"a"}"#, "S12.3"),
        ("no JSON", "S12.3"),
    ] {
        let output = home.feed(&["session", "append", "01aa", "--drafts", "-", "--json"], drafts);
        assert_eq!(output.status.code(), Some(1), "{drafts}: {}", said(&output));
        assert_eq!(document(&output)["refused"][0]["rule"], json!(rule), "{drafts}: {}", said(&output));
        assert_eq!(fs::read(&path).expect("read"), before, "{drafts}");
    }
}

#[test]
fn old_new_and_unfinished_sessions_are_not_appended_to() {
    let home = Home::new();
    let cases = [
        ("odd/23_version_missing_v1.jsonl", "S11.2"),
        ("odd/20_version_4.jsonl", "S3"),
        ("odd/34_empty_file.jsonl", "S2.3"),
        ("odd/42c_last_line_number.jsonl", "S2.2"),
    ];
    for (case, rule) in cases {
        let path = home.case(case, "x");
        let before = fs::read(&path).expect("read");
        let drafts = r#"[{"type":"custom","customType":"a"}]"#;
        let output = home.feed(&["session", "append", "x", "--drafts", "-", "--json"], drafts);
        assert_eq!(output.status.code(), Some(1), "{case}: {}", said(&output));
        assert_eq!(document(&output)["refused"][0]["rule"], json!(rule), "{case}");
        assert_eq!(fs::read(&path).expect("read"), before, "{case}");
    }
}

#[test]
fn a_half_line_is_waited_for_and_a_torn_one_is_ended_first() {
    let home = Home::new();
    let path = home.case("real/01_plain_chat.jsonl", "01aa");
    let mut file = fs::File::options().append(true).open(&path).expect("opened");
    file.write_all(b"{\"type\":\"mess").expect("written");
    let drafts = r#"[{"type":"custom","customType":"a"}]"#;
    let half = home.feed(&["session", "append", "01aa", "--drafts", "-"], drafts);
    assert_eq!(half.status.code(), Some(1), "{}", said(&half));
    assert!(stderr(&half).contains("S2.4"), "{}", stderr(&half));
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    file.set_modified(long_ago).expect("set");
    let torn = home.feed(&["session", "append", "01aa", "--drafts", "-"], drafts);
    assert_eq!(torn.status.code(), Some(0), "{}", said(&torn));
    let text = fs::read_to_string(&path).expect("text");
    assert!(text.contains("{\"type\":\"mess\n{\"type\":\"custom\""), "{text}");
}

#[test]
fn a_leaf_that_is_not_the_last_entry_is_said() {
    let home = Home::new();
    home.case("real/01_plain_chat.jsonl", "01aa");
    let shown = home.json(&["session", "show", "01aa", "--json"]);
    let first = shown["entries"][2]["id"].as_str().expect("an id").to_owned();
    let args = ["session", "append", "01aa", "--drafts", "-", "--leaf", &first];
    let output = home.feed(&args, r#"[{"type":"custom","customType":"a"}]"#);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(stderr(&output).contains("Pi would go on from"), "{}", stderr(&output));
    let tree = home.json(&["session", "tree", "01aa", "--json"]);
    let leaf = tree["leafId"].clone();
    let last =
        tree["entries"].as_array().expect("a list").iter().find(|entry| entry["id"] == leaf).expect("it is there");
    assert_eq!(last["parentId"], json!(first));
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let home = Home::new();
    let mut command = home.command(&["session", "context", &case("real/05_auto_mid_run.jsonl"), "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("it was piped").read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(said, "");
}

#[test]
fn a_config_with_faults_is_told_by_place() {
    let home = Home::new();
    fs::write(home.path("c.toml"), "[watch]\nsetle = \"2s\"\n").expect("written");
    let output = home.run(&["config", "check", "--config", "c.toml", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let fault = &document(&output)["errors"][0];
    assert_eq!((&fault["line"], &fault["column"], &fault["key"]), (&json!(2), &json!(1), &json!("watch.setle")));
    let used = home.run(&["session", "ls", "--config", "c.toml"]);
    assert_eq!(used.status.code(), Some(2), "a config that does not hold is never used");
    assert!(stderr(&used).contains("c.toml:2:1: watch.setle"), "{}", stderr(&used));
}

#[test]
fn a_plugin_that_cannot_be_used_is_a_fault_of_the_config() {
    let home = Home::new();
    let text = "[[plugin]]\nname = \"nobody\"\n\n[[plugin]]\nname = \"auto-compact\"\nconfig.at = \"much\"\n";
    fs::write(home.path("c.toml"), text).expect("written");
    let output = home.run(&["config", "check", "--config", "c.toml", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let errors = document(&output)["errors"].clone();
    assert_eq!((&errors[0]["line"], &errors[0]["key"]), (&json!(1), &json!("plugin.nobody")), "{errors}");
    assert_eq!((&errors[1]["line"], &errors[1]["key"]), (&json!(4), &json!("plugin.auto-compact")), "{errors}");
}

#[test]
fn a_config_that_could_not_be_written_whole_is_not_there() {
    let home = Home::new();
    let init = home.command(&["config", "init"]);
    let mut cramped = std::process::Command::new("/bin/sh");
    cramped.env_clear().args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""]).arg(init.get_program()).args(init.get_args());
    for (name, value) in init.get_envs() {
        cramped.env(name, value.unwrap_or_default());
    }
    let output = cramped.output().expect("a shell");
    assert!(!output.status.success(), "{}", said(&output));
    assert!(!home.path(".config/pi-graft/config.toml").exists());
    assert_eq!(home.run(&["config", "init"]).status.code(), Some(0), "and nothing of it is in the way");
}

#[test]
fn a_config_is_written_once_and_then_in_effect() {
    let home = Home::new();
    assert_eq!(home.run(&["config", "init"]).status.code(), Some(0));
    let path = home.path(".config/pi-graft/config.toml");
    assert!(fs::read_to_string(&path).expect("it is there").contains("[watch]"));
    assert_eq!(home.run(&["config", "init"]).status.code(), Some(1), "never over one that is there");
    assert_eq!(home.run(&["config", "check"]).status.code(), Some(0));
    let shown = home.json(&["config", "show", "--json"]);
    assert_eq!(shown["path"], json!(path.display().to_string()));
    let settings = shown["settings"].as_array().expect("a list");
    let named = settings.iter().find(|s| s["key"] == "plugin.auto-compact.grants").expect("it is there");
    assert!(named["origin"].as_str().is_some_and(|origin| origin.starts_with("line ")), "{named}");
    let default = settings.iter().find(|s| s["key"] == "watch.settle").expect("it is there");
    assert_eq!(*default, json!({"key": "watch.settle", "value": "2s", "origin": "default"}));
}

#[test]
fn wrong_usage_exits_with_2() {
    let home = Home::new();
    for args in
        [&["nonsense"][..], &["session", "validate"], &["session", "append", "x.jsonl"], &["session", "context", "x"]]
    {
        assert_eq!(home.run(args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(home.run(&["--version"]).status.code(), Some(0));
}

#[test]
fn shells_and_readers_are_served() {
    let home = Home::new();
    for (args, word) in [
        (["completions", "bash"], "complete -F"),
        (["completions", "fish"], "complete -c pi-graft"),
        (["man", "--json"], ".TH"),
    ] {
        let output = home.run(&args);
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stdout).contains(word), "{args:?}");
    }
}

#[test]
fn what_the_system_refuses_is_told_with_what_can_be_done() {
    let home = Home::new();
    let session = case("real/01_plain_chat.jsonl");
    let below = home.run(&["session", "show", &format!("{session}/x")]);
    assert!(stderr(&below).contains("a part of this path is a file"), "{}", said(&below));
    let none = home.run(&["session", "ls", "--cwd", "/nobody/worked/here"]);
    assert!(stderr(&none).contains("no sessions of /nobody/worked/here below "), "{}", said(&none));
}
