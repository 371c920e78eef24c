//! How sessions look: `ls`, `tree`, `show`, `stats` on a terminal and in a pipe, whatever stands in them.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

mod home;

use serde_json::{Value, json};

use home::{Home, user};

fn custom(id: &str, parent: Option<&str>) -> Value {
    json!({"type":"custom","customType":"x","id":id,"parentId":parent,"timestamp":"2026-12-01T16:19:02.000Z"})
}

#[test]
fn what_branches_off_hangs_beside_what_goes_on() {
    let home = Home::new();
    let lines = [
        user("a", None, "hello"),
        user("b", Some("a"), "given up"),
        user("c", Some("b"), "with it"),
        user("d", Some("a"), "once more"),
        json!({"type":"label","id":"l","parentId":"d","timestamp":"","targetId":"a","label":"start"}),
        user("e", None, "another root"),
        user("f", Some("l"), "the end"),
    ];
    home.session("s", &lines);
    let tree = home.text(&["session", "tree", "s"]);
    let drawn = [
        "● a        user       [start] hello",
        "├─○ b        user       given up",
        "│ ○ c        user       with it",
        "● d        user       once more",
        "● l        label      a [start]",
        "● f        user       ← leaf the end",
        "",
        "○ e        user       another root",
        "",
    ];
    assert_eq!(tree, drawn.join("\n"));
}

#[test]
fn a_deep_tree_with_a_branch_at_each_entry_does_not_indent_away() {
    let home = Home::new();
    let id = |n: usize| format!("{n:x}");
    let chain = (0..20_000).map(|n| custom(&id(n), n.checked_sub(1).map(id).as_deref()));
    // Branches that are appended later, the last one to the first entry: so the leaf is beside all else.
    let beside = (0..20_000).rev().map(|n| custom(&format!("side-{n:x}"), Some(&id(n))));
    home.session("s", &chain.chain(beside).collect::<Vec<_>>());
    let tree = home.text(&["session", "tree", "s"]);
    assert_eq!(tree.lines().count(), 40_000);
    let rails = |line: &str| line.chars().take_while(|c| "├─│ ".contains(*c)).count();
    assert!(tree.lines().all(|line| rails(line) <= 2 * 16), "no deeper than its number has binary digits");
}

#[test]
fn nothing_in_a_session_paints_on_the_terminal() {
    let home = Home::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{7f}\rx";
    let lines = [
        user(&format!("id{evil}"), None, evil),
        json!({"type":evil,"id":"o","parentId":null,"timestamp":"2026-12-01T16:19:02.000Z"}),
        json!({"type":"message","id":"m","parentId":"o","message":{"role":evil,"content":evil,"model":evil,"provider":evil}}),
        json!({"type":"message","id":"m2","parentId":"m","message":{"role":"assistant","content":[],"model":evil,"provider":evil,
            "usage":{"input":1,"output":1,"totalTokens":2,"cost":{"total":0}},"stopReason":"stop"}}),
        json!({"type":"label","id":"l","parentId":"m2","targetId":"m","label":evil}),
        json!({"type":"session_info","id":"n","parentId":"l","name":evil}),
    ];
    let path = home.session("s", &lines);
    let odd = path.with_file_name("a\n\u{1b}[31mb.jsonl");
    std::fs::rename(&path, &odd).expect("renamed");
    let file = odd.to_str().expect("text");
    for args in [
        &["session", "ls"][..],
        &["session", "tree", file],
        &["session", "show", file],
        &["session", "stats", file],
        &["session", "context", file],
        &["session", "validate", file],
    ] {
        for text in [home.text(args), unpainted(&home.painted(200, args))] {
            let bad = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
            assert!(!text.contains(bad), "{args:?}: {text:?}");
        }
    }
    assert_eq!(home.text(&["session", "ls"]).lines().count(), 1, "a line end in a name is none in the listing");
    assert!(home.text(&["session", "stats", file]).contains("a\\n\\u{1b}[31mb.jsonl"));
}

/// The text without the colours that this program itself uses.
fn unpainted(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_once('m').expect("a colour");
        assert!(["0", "1", "2", "31", "32", "33", "34", "35", "36"].contains(&code), "{code:?}");
        plain.push_str(rest);
    }
    plain
}

#[test]
fn colours_are_for_terminals_and_lines_fit() {
    let home = Home::new();
    let wide = "日本語 and a 🚀 ".repeat(30);
    let lines = [
        user("a", None, &wide),
        json!({"type":"label","id":"l","parentId":"a","timestamp":"","targetId":"a","label":wide}),
        json!({"type":"session_info","id":"n","parentId":"l","timestamp":"","name":wide}),
        json!({"type":wide,"id":"日本語日本語日本語","parentId":"n","timestamp":""}),
        user("b", Some("n"), "short"),
    ];
    home.session("s", &lines);
    for args in
        [&["session", "ls"][..], &["session", "tree", "s"], &["session", "show", "s"], &["session", "context", "s"]]
    {
        assert!(!home.text(args).contains('\u{1b}'), "{args:?}");
        for columns in [20, 30, 40, 60, 80, 140, 200] {
            let text = home.painted(columns, args);
            assert!(text.contains("\u{1b}["), "{args:?}: {text}");
            let wide = |line: &str| line.chars().map(|c| if u32::from(c) > 0x2fff { 2 } else { 1 }).sum::<usize>();
            let plain = unpainted(&text);
            assert!(plain.lines().all(|line| wide(line) <= usize::from(columns)), "{args:?} {columns}: {plain}");
        }
    }
}

#[test]
fn on_a_narrow_terminal_a_label_and_the_columns_leave_room_for_what_is_said() {
    let home = Home::new();
    let label = "a label that is longer than the terminal is wide";
    let lines = [
        user("00000001", None, "hello"),
        user("00000002", Some("00000001"), "given up"),
        user("00000003", Some("00000001"), "went on"),
        json!({"type":"label","id":"l","parentId":"00000003","timestamp":"","targetId":"00000003","label":label}),
    ];
    home.session("s", &lines);
    let drawn = |columns| unpainted(&home.painted(columns, &["session", "tree", "s"]));
    for (columns, line) in [
        (30, "├─○ 00000002 user given up"),
        (40, "● 00000003 user [a label that…] went on"),
        (80, "● 00000003 user       [a label that is longer th…] went on"),
    ] {
        assert!(drawn(columns).lines().any(|drawn| drawn == line), "{}", drawn(columns));
    }
}

/// What a command that waits for its drafts for a second writes on a terminal of so many columns, escapes and all.
#[cfg(target_os = "linux")]
fn kept_waiting(home: &Home, columns: u16) -> String {
    let line = format!(
        "stty cols {columns} && exec {} session append s --drafts drafts --dry-run",
        env!("CARGO_BIN_EXE_pi-graft")
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(home.path("")).stdin(Stdio::null()).stdout(Stdio::piped());
    script.env("HOME", home.path("")).env("TERM", "xterm").env_remove("COLUMNS").env_remove("NO_COLOR");
    let mut script = script.spawn().expect("`script` of util-linux makes a terminal");
    let mut drafts = once_it_is_read(&home.path("drafts"), &mut script);
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    drafts.write_all(br#"[{"type":"custom","customType":"x"}]"#).expect("it reads");
    drop(drafts);
    let output = script.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

/// Opens a pipe to write to as soon as the program waits for what comes out of it.
#[cfg(target_os = "linux")]
fn once_it_is_read(pipe: &std::path::Path, program: &mut Child) -> fs::File {
    use std::os::unix::fs::OpenOptionsExt;
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    loop {
        if let Ok(pipe) = fs::File::options().write(true).custom_flags(without_waiting).open(pipe) {
            return pipe;
        }
        assert!(program.try_wait().expect("it is ours").is_none(), "it ended without its drafts");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn who_waits_for_more_than_a_second_sees_how_far_it_is_in_one_row_that_goes_again() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let home = Home::new();
    let bytes = fs::metadata(home.session("s", &[user("a", None, "hello")])).expect("there").len();
    mknodat(CWD, home.path("drafts"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let whole = format!("reading {} 100 %  {bytes} B of {bytes} B", "━".repeat(24));
    for (columns, row) in [(80, whole.as_str()), (30, "reading ━━━━━━━━━━━━ 100 %")] {
        let seen = kept_waiting(&home, columns);
        let answer = seen.strip_prefix(&format!("\r{row}\u{1b}[K\r\u{1b}[K"));
        assert!(answer.is_some_and(|answer| answer.contains("custom")), "{seen:?}");
    }
}

#[test]
fn an_id_that_is_listed_names_its_session() {
    let home = Home::new();
    for id in ["0198c0de-aaaa-7000-8000-000000000000", "0198c0de-aabb-7000-8000-000000000000"] {
        home.session(id, &[user("a", None, "hello")]);
    }
    let listed = unpainted(&home.painted(80, &["session", "ls"]));
    let ids: Vec<_> = listed.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(ids.len(), 2, "{listed}");
    for id in ids {
        assert!(id.len() < 20);
        home.text(&["session", "show", id]);
    }
}

#[test]
fn times_are_those_of_the_reader() {
    let home = Home::new();
    home.session("s", &[user("a", None, "hello")]);
    let mut command = home.command(&["session", "show", "s"]);
    let output = command.env("TZ", "XYZ-05:30").output().expect("the binary runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("2026-12-01 21:49:02"), "{output:?}");
}

#[test]
fn an_id_finds_what_a_project_keeps_in_a_place_of_its_own() {
    let home = Home::new();
    fs::create_dir_all(home.path("project/.pi")).expect("made");
    fs::create_dir_all(home.path("kept")).expect("made");
    fs::write(home.path("project/.pi/settings.json"), r#"{"sessionDir":"../kept"}"#).expect("written");
    let header = json!({"type":"session","version":3,"id":"own-1","timestamp":"2026-12-01T16:19:01.469Z","cwd":home.path("project")});
    fs::write(home.path("kept/2026-12-01T16-19-01-469Z_own-1.jsonl"), format!("{header}\n")).expect("written");
    let inside = |args: &[&str]| {
        let output = home.command(args).current_dir(home.path("project")).output().expect("the binary runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(inside(&["session", "ls", "--cwd", "."]).contains("own-1"));
    assert!(inside(&["session", "stats", "own", "--json"]).contains("own-1"), "what is listed can be typed back");
}

#[test]
fn behind_what_is_not_shown_the_leaf_and_the_parents_are_those_that_are() {
    let home = Home::new();
    let usage = json!({"type":"usage","id":"u","parentId":"a","timestamp":"2026-12-01T16:19:02.000Z","kind":"x","provider":"p","model":"m","usage":{}});
    home.session("s", &[user("a", None, "hello"), usage.clone()]);
    assert!(home.text(&["session", "tree", "s"]).contains("user       ← leaf hello"));
    home.session("t", &[user("a", None, "hello"), usage, custom("b", Some("u"))]);
    let tree = home.json(&["session", "tree", "t", "--json"]);
    assert_eq!((&tree["entries"][1]["id"], &tree["entries"][1]["parentId"]), (&"b".into(), &"a".into()));
    let all = home.json(&["session", "tree", "t", "--all", "--json"]);
    assert_eq!((&all["entries"][2]["id"], &all["entries"][2]["parentId"]), (&"b".into(), &"u".into()));
}

#[test]
fn one_file_that_is_no_session_does_not_keep_the_others_from_being_counted() {
    let home = Home::new();
    home.session("s", &[user("a", None, "hello")]);
    fs::write(home.path("none.jsonl"), "[]\n").expect("written");
    let output = home.run(&["session", "stats", "none.jsonl", "s", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let counted: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(counted["id"], "s");
}
