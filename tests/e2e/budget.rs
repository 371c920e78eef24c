//! `budget-guard`: a message in the session when its cost passes a step.

use crate::stage::{Stage, append, until};
use crate::talk::{Session, Talk, member};

const GUARD: &str = "[[plugin]]\nname = \"budget-guard\"\ngrants = [\"append:custom_message\"]\n[plugin.config]\n";

/// An answer that costs so much, as Pi writes it.
fn answer(pi: &mut Talk, cost: f64) -> String {
    let usage = format!(
        r#""usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"total":{cost}}}}}"#
    );
    let message = format!(
        r#""message":{{"role":"assistant","content":[{{"type":"text","text":"hi"}}],"api":"x","provider":"p","model":"m",{usage},"stopReason":"stop","timestamp":1}}"#
    );
    pi.entry("message", &message)
}

fn turn(pi: &mut Talk, cost: f64) -> String {
    pi.user("go on");
    answer(pi, cost)
}

fn texts(file: &Session) -> Vec<String> {
    file.customs("budget-guard").iter().map(|entry| member(entry, &["content"])).collect()
}

#[test]
fn each_step_is_told_once_and_only_by_the_entry_that_passes_it() {
    let stage = Stage::new(1, &format!("{GUARD}session = 1\nmodel = [2.5]\n"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    turn(&mut pi, 0.75);
    stage.once(&["--closed"]);
    assert_eq!(Session::read(&path).receipts(), 0, "it writes nothing else");
    turn(&mut pi, 0.5);
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    assert_eq!(texts(&file), ["Budget: this session has cost $1.25 so far, past the step of $1.00."]);
    let mut pi = Talk::reopen(&path);
    turn(&mut pi, 0.5);
    turn(&mut pi, 1.0);
    stage.once(&["--closed"]);
    let file = Session::read(&path);
    let last = "Budget: this session has cost $2.75 so far, past the step of $2.00.\n\
                Budget: this session with p/m has cost $2.75 so far, past the step of $2.50.";
    assert_eq!(texts(&file)[1..], [last]);
    assert_eq!(file.receipts(), 2);
    file.assert_sound();
    stage.once(&["--closed", "--backfill"]);
    assert_eq!(texts(&Session::read(&path)).len(), 2);
}

/// What another branch has cost counts too, since it was paid for; a step that was told there is not told here again.
#[test]
fn a_new_branch_from_before_the_message_hears_of_the_next_step_only() {
    let stage = Stage::new(1, &format!("{GUARD}session = 1\n"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let first = turn(&mut pi, 0.5);
    turn(&mut pi, 0.75);
    stage.once(&["--closed"]);
    assert_eq!(texts(&Session::read(&path)).len(), 1);
    let mut branch = Talk::reopen(&path);
    branch.go_to(&first);
    turn(&mut branch, 0.25);
    stage.once(&["--closed"]);
    assert_eq!(texts(&Session::read(&path)).len(), 1, "1.50 on the whole, and 1.00 was told");
    let mut branch = Talk::reopen(&path);
    turn(&mut branch, 0.75);
    stage.once(&["--closed"]);
    assert_eq!(texts(&Session::read(&path)).len(), 2, "2.25");
}

#[test]
fn a_running_daemon_tells_the_day_and_leaves_a_compaction_alone() {
    let stage =
        Stage::new(20, &format!("{GUARD}session = false\nday = 1\ndisplay = false\ntext = \"{{what}}: {{cost}}\"\n"));
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&["--closed"]);
    let mut pi = Talk::begin(&path);
    turn(&mut pi, 1.5);
    until("the message", || texts(&Session::read(&path)).len() == 1);
    let file = Session::read(&path);
    let entry = &file.customs("budget-guard")[0];
    assert_eq!(member(entry, &["display"]), "false");
    assert!(member(entry, &["content"]).starts_with("this session on 20"), "{entry}");
    let mut pi = Talk::reopen(&path);
    let kept = turn(&mut pi, 0.25);
    pi.entry("compaction", &format!(r#""summary":"s","firstKeptEntryId":"{kept}","tokensBefore":10"#));
    turn(&mut pi, 0.5);
    until("the second step", || texts(&Session::read(&path)).len() == 2);
    daemon.end();
    Session::read(&path).assert_sound();
}

#[test]
fn a_config_that_it_does_not_like_is_told_with_its_line() {
    let stage = Stage::new(1, &format!("{GUARD}session = \"five\"\n"));
    let output = stage.run(&["config", "check"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`session` must be an amount") && said.contains("budget-guard"), "{said}");
}

/// An answer as a line of its own: its time, model and usage as they are given.
fn answered(pi: &mut Talk, time: &str, model: &str, usage: &str) {
    pi.user("go on");
    let message = format!(
        r#""message":{{"role":"assistant","content":[{{"type":"text","text":"hi"}}],"api":"x","provider":"p","model":"{model}","usage":{usage},"stopReason":"stop","timestamp":1}}"#
    );
    let (_, line) = pi.line("message", &message);
    let (before, behind) = line.split_once("\"timestamp\":\"").expect("a time");
    let behind = behind.split_once('"').expect("its end").1;
    append(pi.path(), &format!("{before}\"timestamp\":\"{time}\"{behind}"));
}

fn cost(amount: &str) -> String {
    format!(r#"{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"total":{amount}}}}}"#)
}

/// What a fork inherited was paid for once, in the session that it was forked from, and counts there and here; each step is told once.
#[test]
fn a_fork_begins_with_what_it_inherited() {
    let stage = Stage::new(1, &format!("{GUARD}session = 1\n"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    turn(&mut pi, 0.75);
    turn(&mut pi, 0.5);
    stage.once(&["--closed"]);
    assert_eq!(texts(&Session::read(&path)).len(), 1);
    let output = stage.run(&["session", "fork", "--json", path.to_str().expect("a path"), "--cwd", "/work"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let fork = std::path::PathBuf::from(member(&told, &["path"]));
    let fork = if fork.starts_with(stage.root()) {
        fork
    } else {
        let here = stage.session("fork.jsonl");
        std::fs::copy(&fork, &here).unwrap_or_else(|e| panic!("{told}: {e}"));
        here
    };
    stage.once(&["--closed"]);
    assert_eq!(texts(&Session::read(&fork)).len(), 1, "what it was forked with");
    let mut here = Talk::reopen(&fork);
    turn(&mut here, 0.5);
    stage.once(&["--closed"]);
    assert_eq!(texts(&Session::read(&fork)).len(), 1, "1.75: the inherited 1.25 once, no step passed");
    let mut here = Talk::reopen(&fork);
    turn(&mut here, 0.5);
    stage.once(&["--closed"]);
    let told = texts(&Session::read(&fork));
    assert_eq!(told[1..], ["Budget: this session has cost $2.25 so far, past the step of $2.00."]);
    assert_eq!(texts(&Session::read(&path)).len(), 1, "and nothing in the session that it was forked from");
}

/// A day is one of UTC, whatever offset an entry's time is written with.
#[test]
fn a_day_ends_at_midnight_utc() {
    let stage = Stage::new(1, &format!("{GUARD}session = false\nday = 1\n"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let once = |pi: &mut Talk, time: &str| {
        answered(pi, time, "m", &cost("0.75"));
        stage.once(&["--closed", "--backfill"]);
        *pi = Talk::reopen(&path);
        texts(&Session::read(&path))
    };
    assert!(once(&mut pi, "2026-03-01T23:59:59.999Z").is_empty());
    assert!(once(&mut pi, "2026-03-02T00:00:00.000Z").is_empty(), "0.75 on each of two days");
    assert!(once(&mut pi, "2026-03-02T23:30:00.000-02:00").is_empty(), "the third of March in UTC");
    let told = once(&mut pi, "2026-03-03T09:00:00.000Z");
    assert_eq!(told, ["Budget: this session on 2026-03-03 has cost $1.50 so far, past the step of $1.00."]);
}

/// Numbers that are missing, wrong or beyond all measure cost nothing; the plugin goes on.
#[test]
fn wrong_numbers_cost_nothing_and_stop_nobody() {
    let stage = Stage::new(1, &format!("{GUARD}session = 1\nmodel = 1\nday = 1\n"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let odd = [
        "null",
        "7",
        "[]",
        "{}",
        r#"{"cost":null}"#,
        r#"{"cost":3}"#,
        &cost("null"),
        &cost("\"5\""),
        &cost("1e400"),
        &cost("-1e400"),
        &cost("[9]"),
        &cost("{}"),
        r#"{"totalTokens":1e308,"input":1e308,"output":1e308,"cost":{"total":0}}"#,
    ];
    for usage in odd {
        answered(&mut pi, "2026-03-01T10:00:00.000Z", "m", usage);
    }
    let log = stage.once(&["--closed", "--backfill"]);
    assert!(!log.contains("failed ") || log.contains("0 failed"), "{log}");
    assert_eq!(texts(&Session::read(&path)), Vec::<String>::new(), "{log}");
    // Taken back by a negative one, and passed again: told once on the branch.
    for amount in ["1.5", "-1", "0.75"] {
        let mut pi = Talk::reopen(&path);
        answered(&mut pi, "2026-03-01T10:00:00.000Z", "m\u{202e}x", &cost(amount));
        stage.once(&["--closed", "--backfill"]);
    }
    let told = texts(&Session::read(&path));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].lines().count(), 3, "session, day and model in one message: {told:?}");
}

/// Several steps at once, and a copy of the file that is there too: one message, of the highest.
#[test]
fn a_leap_over_several_steps_is_one_message_and_a_copy_is_not_told_again() {
    let stage = Stage::new(1, &format!("{GUARD}session = [1, 2, 5, 20]\nmodels = {{ \"p/m\" = 3 }}\n"));
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    turn(&mut pi, 13.0);
    stage.once(&["--closed"]);
    let last = "Budget: this session has cost $13.00 so far, past the step of $5.00.\n\
                Budget: this session with p/m has cost $13.00 so far, past the step of $12.00.";
    assert_eq!(texts(&Session::read(&path)), [last]);
    let before = Session::read(&path).ids();
    let copy = stage.session("b.jsonl");
    std::fs::copy(&path, &copy).expect("a copy");
    stage.once(&["--closed"]);
    assert_eq!(
        (Session::read(&path).ids(), Session::read(&copy).ids()),
        (before.clone(), before),
        "it writes nothing else"
    );
}
