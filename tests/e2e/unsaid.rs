//! What is private stays so: no session text in a log above debug, and no key in any log, store or error, with all four
//! plugins and a model server that fails in every way.

use std::path::{Path, PathBuf};

use crate::server::{Reply, Server, completion};
use crate::stage::{COMPACTS_SOON, Stage, model_at};
use crate::talk::Talk;

const KEY: &str = "sk-live-KEYMARK1234567890abcdef";
/// Stand in what is said, in what tools give, and in the names of what the session itself brings along.
const MARKS: [&str; 4] = ["SAIDMARK", "ANSWERMARK", "RESULTMARK", "PATHMARK"];
const SECRET: &str = "ghp_SECRETMARKabcdefghijklmnopqrstuv0123";

fn config(server: &Server) -> String {
    let model = model_at(server);
    let others = r#"
[[plugin]]
name = "redact-secrets"
grants = ["append:context_edit"]

[[plugin]]
name = "trim-tool-results"
grants = ["append:context_edit"]

[[plugin]]
name = "budget-guard"
grants = ["append:custom_message"]
[plugin.config]
session = [0.001]
"#;
    format!("{model}api-key-env = \"SCENE_KEY\"\ntimeout = \"1s\"\n{others}{COMPACTS_SOON}")
}

/// Two turns that hold every mark.
fn marked(path: &Path) {
    let mut pi = Talk::begin(path);
    for turn in 0..2 {
        pi.user(&format!("SAIDMARK {turn}: look at src/PATHMARK.rs. {}", "It matters. ".repeat(80)));
        pi.call(&format!("c{turn}"), "bash");
        pi.result(&format!("c{turn}"), &format!("RESULTMARK token={SECRET} {}", "output ".repeat(400)));
        pi.assistant(&format!("ANSWERMARK. {}", "All of it works. ".repeat(80)));
    }
}

/// What a server may do wrong; whatever it says back holds what it was sent.
fn failures() -> Vec<Reply> {
    let echo =
        format!(r#"{{"error":{{"message":"{KEY} SAIDMARK RESULTMARK","code":"SAIDMARK {KEY}","type":"PATHMARK"}}}}"#);
    let raw = |text: String| Reply::Raw(text.into_bytes());
    vec![
        Reply::Say(401, "", echo.clone()),
        Reply::Say(429, "retry-after: 0\r\n", echo.clone()),
        Reply::Say(500, "", echo.clone()),
        Reply::Say(200, "", echo.clone()),
        Reply::Say(302, "location: http://127.0.0.1:1/SAIDMARK\r\n", String::new()),
        completion("ANSWERMARK but no summary", "stop"),
        completion("## Goal\n- ANSWERMARK", "length"),
        completion("", "stop"),
        raw(format!("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{echo}")),
        raw(format!("SAIDMARK {KEY} is no HTTP\r\n\r\n")),
        Reply::Nothing,
    ]
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn assert_holds_none(what: &str, bytes: &[u8], marks: &[&str]) {
    for mark in marks {
        let at = memchr::memmem::find(bytes, mark.as_bytes());
        let around = at
            .map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..bytes.len().min(at + 100)]).into_owned());
        assert!(at.is_none(), "{mark} in {what}: {around:?}");
    }
}

#[test]
fn no_text_above_debug_and_no_key_anywhere() {
    for reply in failures() {
        let server = Server::new([reply.clone()]);
        let stage = Stage::new(1, &config(&server));
        let path = stage.session("a.jsonl");
        marked(&path);
        let with_key = |args: &[&str]| {
            let output = stage.command(args).env("SCENE_KEY", KEY).output().expect("the binary runs");
            [output.stdout, output.stderr].concat()
        };
        let log = with_key(&["run", "--once", "--closed"]);
        let log = String::from_utf8_lossy(&log);
        assert!(log.contains("redact-secrets") && !server.requests().is_empty(), "{log}");
        assert_holds_none("the log, debug and all", log.as_bytes(), &[KEY]);
        let private = [&MARKS[..], &[KEY, SECRET]].concat();
        assert_holds_none("the log", &without_debug(log.as_bytes()), &private);
        for args in [
            &["log"][..],
            &["log", "--json"],
            &["status", "--all"],
            &["quarantine", "list"],
            &["quarantine", "list", "--json"],
        ] {
            assert_holds_none(&format!("{args:?} after {reply:?}"), &with_key(args), &private);
        }
        // What `compact` tells is an error, not the session.
        let said = with_key(&["compact", "--closed", "a"]);
        assert_holds_none("the words of compact", &without_debug(&said), &[KEY, SECRET]);
        for file in files(&stage.path("state")) {
            assert_holds_none(&file.display().to_string(), &std::fs::read(&file).expect("a file"), &[KEY]);
        }
    }
}

fn without_debug(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter(|line| !line.contains("DEBUG")).flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}
