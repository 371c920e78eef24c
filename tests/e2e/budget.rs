//! `budget-guard`: a message in the session when its cost passes a step.

use crate::stage::{Stage, until};
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
