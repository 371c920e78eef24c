//! What is private stays so: no session text in a log above debug, and no key in any log, store or error, with all four
//! plugins and a model that fails in every way: a server, or a program.

use std::path::{Path, PathBuf};

use crate::server::{Reply, Server, completion};
use crate::stage::{COMPACTS_SOON, Stage, model_at};
use crate::talk::Talk;

const KEY: &str = "sk-live-KEYMARK1234567890abcdef";
/// Stand in what is said, in what tools give, and in the names of what the session itself brings along.
const MARKS: [&str; 4] = ["SAIDMARK", "ANSWERMARK", "RESULTMARK", "PATHMARK"];
const SECRET: &str = "ghp_SECRETMARKabcdefghijklmnopqrstuv0123";

/// All four plugins, with this model.
fn config(model: &str) -> String {
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
    format!("{model}timeout = \"1s\"\n{others}{COMPACTS_SOON}")
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

/// What a program may do wrong, which was given the conversation and has the key in its environment.
const PROGRAMS: [&str; 6] = [
    "cat; cat >&2; echo $SCENE_KEY; echo $SCENE_KEY >&2; exit 1",
    "cat >&2; echo $SCENE_KEY >&2",
    "cat >&2; echo $SCENE_KEY >&2; sleep 60",
    "cat; kill -9 $$",
    "cat > /dev/null; printf 'ANSWERMARK \\377\\376'; echo $SCENE_KEY >&2; exit 3",
    "exec /no/such/SAIDMARK/$SCENE_KEY",
];

#[test]
fn no_text_above_debug_and_no_key_anywhere() {
    for reply in failures() {
        let server = Server::new([reply.clone()]);
        let stage = Stage::new(1, &config(&format!("{}api-key-env = \"SCENE_KEY\"\n", model_at(&server))));
        let log = assert_unsaid(&stage, &format!("{reply:?}"));
        assert!(!server.requests().is_empty(), "{log}");
    }
}

#[test]
fn none_of_what_a_program_says_or_was_given_either() {
    for program in PROGRAMS {
        let model = format!("[models.summary]\nkind = \"command\"\nargv = [\"sh\", \"-c\", {program:?}]\n");
        let log = assert_unsaid(&Stage::new(1, &config(&model)), program);
        assert!(log.contains("model"), "it was asked: {log}");
    }
}

/// Works on a session that holds every mark, and looks for them wherever something is told or kept. Gives the log.
fn assert_unsaid(stage: &Stage, what: &str) -> String {
    marked(&stage.session("a.jsonl"));
    let with_key = |args: &[&str]| {
        let output = stage.command(args).env("SCENE_KEY", KEY).output().expect("the binary runs");
        [output.stdout, output.stderr].concat()
    };
    let log = with_key(&["run", "--once", "--closed"]);
    let log = String::from_utf8_lossy(&log).into_owned();
    assert!(log.contains("redact-secrets"), "{log}");
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
        assert_holds_none(&format!("{args:?} after {what}"), &with_key(args), &private);
    }
    // What `compact` tells is an error, not the session.
    let said = with_key(&["compact", "--closed", "a"]);
    assert_holds_none("the words of compact", &without_debug(&said), &[KEY, SECRET]);
    for file in files(&stage.path("state")) {
        assert_holds_none(&file.display().to_string(), &std::fs::read(&file).expect("a file"), &[KEY]);
    }
    log
}

fn without_debug(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter(|line| !line.contains("DEBUG")).flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}
