//! Whatever stands where a session should: each command ends at once, harms nothing, and says what to do.

mod home;

use std::fs;
use std::os::unix::fs::symlink;

use home::{Home, stderr, user};

/// Every command that takes one `FILE`.
const COMMANDS: [&[&str]; 11] = [
    &["show"],
    &["tree"],
    &["context"],
    &["validate"],
    &["stats"],
    &["plan-compaction"],
    &["migrate"],
    &["fork"],
    &["export", "--html"],
    &["export", "--jsonl"],
    &["rm", "--permanently"],
];

fn each(home: &Home, file: &str, check: impl Fn(&str, Option<i32>, &str)) {
    for command in COMMANDS {
        let args = [&["session"], command, &[file]].concat();
        let output = home.run(&args);
        check(&args.join(" "), output.status.code(), &stderr(&output));
    }
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let home = Home::new();
    fs::create_dir(home.path("dir")).expect("made");
    let fifo = home.path("fifo.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    for file in ["dir", fifo.to_str().expect("text"), "/dev/zero", "/dev/null", "."] {
        each(&home, file, |command, code, said| {
            assert_eq!(code, Some(1), "{command}: {said}");
            assert!(said.contains("not a regular file"), "{command}: {said}");
        });
    }
}

#[test]
fn what_is_no_session_is_refused_and_left_alone() {
    let home = Home::new();
    for (name, bytes) in
        [("text", &b"hello\nworld\n"[..]), ("bytes", &[0xff, 0, b'\n', b'{']), ("json", b"{\"a\":1}\n")]
    {
        let path = home.file(name, bytes);
        each(&home, name, |command, code, said| {
            assert_eq!(code, Some(1), "{command}: {said}");
            assert!(command.contains("validate") || said.contains("S2.3"), "{command}: {said}");
        });
        assert_eq!(fs::read(&path).expect("still there"), bytes);
    }
}

#[test]
fn a_file_that_is_not_there_is_said() {
    let home = Home::new();
    let path = home.path(".pi/agent/sessions/nowhere.jsonl");
    symlink("/nowhere", home.path("dangling.jsonl")).expect("linked");
    each(&home, "dangling.jsonl", |command, code, said| {
        assert!(code == Some(1) && said.contains("jsonl: "), "{command}: {said}");
    });
    for file in [path.to_str().expect("text"), "nowhere.jsonl", "nobody"] {
        each(&home, file, |command, code, said| {
            assert!(code == Some(2) && said.contains("session ls"), "{command}: {said}");
        });
    }
}

#[test]
fn a_link_is_read_and_never_removed() {
    let home = Home::new();
    let path = home.session("s", &[user("a", None, "hello")]);
    symlink(&path, home.path("link.jsonl")).expect("linked");
    assert!(home.text(&["session", "show", "link.jsonl"]).contains("hello"));
    let output = home.run(&["session", "rm", "--permanently", "--force", "link.jsonl"]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("a link"), "{}", stderr(&output));
    assert!(path.exists() && home.path("link.jsonl").exists());
}

#[test]
fn a_name_of_several_lines_makes_no_line_of_its_own() {
    let home = Home::new();
    let path = home.path("a\npi-graft: all is well\u{1b}[2J.jsonl");
    fs::write(&path, "no session\n").expect("written");
    for command in COMMANDS {
        let args = [&["session"], command, &[path.to_str().expect("text")]].concat();
        let output = home.run(&args);
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(!said.contains("\npi-graft: all") && !said.contains('\u{1b}'), "{args:?}: {said:?}");
    }
}

#[test]
fn sessions_of_every_age_and_beginning_are_shown() {
    let home = Home::new();
    let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/odd");
    let mut seen = 0;
    for case in fs::read_dir(cases).expect("the cases") {
        let path = case.expect("a case").path();
        if path.extension().is_none_or(|ext| ext != "jsonl") {
            continue;
        }
        let file = path.to_str().expect("text");
        for command in COMMANDS.iter().filter(|command| !["migrate", "fork", "rm"].contains(&command[0])) {
            let output = home.run(&[&["session"], *command, &[file]].concat());
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1)), "{command:?} {file}: {code:?} {}", stderr(&output));
            assert!(code == Some(0) || !output.stdout.is_empty() || !stderr(&output).is_empty(), "{command:?} {file}");
        }
        seen += 1;
    }
    assert!(seen > 20);
}

/// By a path, by an id, or by nothing at all: what is not there is the same mistake for every command.
#[test]
fn a_session_that_is_not_there_is_wrong_usage_for_every_command() {
    let home = Home::new();
    let there = home.case("real/01_plain_chat.jsonl", "01aa");
    fs::write(home.path("drafts"), "[]").expect("written");
    for missing in ["no/such/dir/01aa", "ff", ""] {
        let append: &[&str] = &["append", "--drafts", "drafts"];
        for command in COMMANDS.iter().chain([&append]) {
            let args = [&["session"], *command, &[missing, "--json"]].concat();
            let output = home.run(&args);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
            assert!(output.stdout.is_empty(), "{args:?}");
        }
    }
    assert!(there.exists(), "what is there stays");
}
