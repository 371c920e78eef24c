//! `redact-secrets`: what the model sees has placeholders, the file stays as it was.

use pi_session::json::quoted;

use crate::stage::{Stage, until};
use crate::talk::{Session, Talk, member};

const REDACT: &str = "[[plugin]]\nname = \"redact-secrets\"\ngrants = [\"append:context_edit\", \"append:custom\"]\n";

/// A token that nobody has; put together here, so that no file holds what looks like one.
fn token() -> String {
    ["gh", "p_", "x7Kq2mWz9LpR4tVb8NcY1sDf6GhJ3aEu5Qo0"].concat()
}

/// What the model sees, as JSON: each message stands twice in it.
fn context(stage: &Stage, path: &std::path::Path) -> String {
    let output = stage.run(&["session", "context", "--json", path.to_str().expect("a path")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn tool_result(pi: &mut Talk, content: &str) -> String {
    pi.entry(
        "message",
        &format!(r#""message":{{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{content}],"isError":false,"timestamp":1}}"#),
    )
}

#[test]
fn a_secret_leaves_the_context_wherever_it_stands_and_all_else_stays() {
    let stage = Stage::new(1, REDACT);
    let path = stage.session("a.jsonl");
    let token = token();
    let mut pi = Talk::begin(&path);
    pi.user(&format!("deploy with {token} please"));
    pi.answer(
        &format!(
            r#"{{"type":"thinking","thinking":"I see {token}","thinkingSignature":"sig"}},{{"type":"toolCall","id":"c1","name":"bash","arguments":{{"command":"curl -H \"Authorization: token {token}\" x.test","timeout":10}}}}"#
        ),
        "toolUse",
    );
    tool_result(
        &mut pi,
        r#"{"type":"text","text":"DB_PASSWORD=Kr8!vhq2x\nok"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}"#,
    );
    pi.assistant("done");
    let before = context(&stage, &path);
    let log = stage.once(&["--closed"]);
    let after = context(&stage, &path);
    assert_eq!(
        (before.matches(&token).count(), after.matches(&token).count()),
        (6, 2),
        "signed thinking stays: {after}"
    );
    assert!(after.contains("I see") && log.contains("in signed thinking"), "{log}");
    assert!(!after.contains("vhq2x") && after.contains(r"DB_PASSWORD=[redacted password "), "{after}");
    assert!(after.contains(r#""data":"iVBORw0KGgo=""#) && after.contains(r#""timeout":10"#), "{after}");
    let place = after.find("[redacted github-token ").expect("a placeholder");
    let placeholder = &after[place..place + "[redacted github-token abcd]".len()];
    assert_eq!(after.matches(placeholder).count(), 4, "the same secret, the same placeholder: {after}");
    assert!(!log.contains(&token) && !log.contains("vhq2x"), "the log holds no secret");
    let file = std::fs::read_to_string(&path).expect("the session");
    assert_eq!(file.matches(&token).count(), 4, "the lines stay, and the edit keeps the signed thinking");
    Session::read(&path).assert_sound();
}

/// A later run knows a secret again, also on another branch.
#[test]
fn the_same_secret_gets_the_same_placeholder_in_every_run() {
    let stage = Stage::new(20, REDACT);
    let path = stage.session("a.jsonl");
    let daemon = stage.daemon(&["--closed"]);
    let mut pi = Talk::begin(&path);
    let first = pi.user("hello");
    pi.user(&format!("one {}", token()));
    pi.assistant("ok");
    until("the first edit", || Session::read(&path).receipts() == 1);
    let one = context(&stage, &path);
    let mut pi = Talk::reopen(&path);
    pi.go_to(&first);
    pi.user(&format!("two {}", token()));
    pi.assistant("ok");
    until("the second edit", || Session::read(&path).receipts() == 2);
    let two = context(&stage, &path);
    let placeholder = |text: &str| text.split("[redacted ").nth(1).map(|rest| rest[..17].to_owned());
    assert!(placeholder(&one).is_some_and(|one| one.starts_with("github-token ")), "{one}");
    assert_eq!(placeholder(&one), placeholder(&two));
    daemon.end();
}

#[test]
fn where_no_edit_can_be_made_it_says_so_once_in_the_session() {
    let stage = Stage::new(1, REDACT);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    for command in ["env", "printenv"] {
        let output = quoted(&format!("TOKEN={}", token()));
        pi.entry(
            "message",
            &format!(r#""message":{{"role":"bashExecution","command":"{command}","output":{output},"exitCode":0,"cancelled":false,"truncated":false,"timestamp":1}}"#),
        );
    }
    pi.user("hello");
    pi.assistant("hi");
    let log = stage.once(&["--closed"]);
    assert_eq!(log.matches("in a bashExecution, which no context edit can change").count(), 2, "{log}");
    let notes = Session::read(&path).customs("redact-secrets");
    assert_eq!(notes.len(), 1);
    assert_eq!(member(&notes[0], &["data", "what"]), "bashExecution");
    assert!(!notes[0].contains(&token()) && !log.contains(&token()));
}

/// Text of any size within the default limits: what can be written anew is, what is larger is not shown any more.
#[test]
fn large_texts_fit_the_default_fuel() {
    let stage = Stage::new(1, REDACT);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    let code = include_str!("../../host/session/src/tree.rs").repeat(40);
    for size in [1_000_000, 12_000_000] {
        pi.call("c1", "bash");
        let text = code.repeat(size / code.len() + 1);
        let mut end = size;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        tool_result(
            &mut pi,
            &format!(r#"{{"type":"text","text":{}}}"#, quoted(&format!("{} {}", token(), &text[..end]))),
        );
    }
    pi.assistant("done");
    let log = stage.once(&["--closed"]);
    let fuel: Vec<_> =
        log.lines().filter(|line| line.contains("ran ")).filter_map(|line| line.split("fuel=").nth(1)).collect();
    println!("{fuel:?}");
    let after = context(&stage, &path);
    assert!(!after.contains(&token()), "{log}");
    assert!(after.contains("redact-secrets left out 12") && log.contains("1 github-token among the first 8"), "{log}");
    assert!(after.contains("bytes here: too large to be written anew"), "{log}");
    assert!(after.len() < 600_000);
}

/// What was not looked through is not shown: the secret stands behind all that fuel suffices for.
#[test]
fn what_is_too_large_to_be_gone_over_is_left_out() {
    let stage = Stage::new(1, REDACT);
    let path = stage.session("a.jsonl");
    let mut pi = Talk::begin(&path);
    pi.call("c1", "bash");
    let text = format!("{}{}", "lorem ipsum ".repeat(1_000_000), token());
    tool_result(&mut pi, &format!(r#"{{"type":"text","text":{}}}"#, quoted(&text)));
    pi.assistant("done");
    let log = stage.once(&["--closed"]);
    let after = context(&stage, &path);
    assert!(!after.contains(&token()) && after.contains("only the first 8"), "{log}");
    assert!(log.contains("is not shown: only the first 8"), "{log}");
    Session::read(&path).assert_sound();
}
