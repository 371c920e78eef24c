//! `session export` as a user meets it: a page that is safe to open, and lines that are a session.

mod home;

use std::fs;

use serde_json::{Value, json};

use home::{Home, stderr, user};

const EVIL: &str =
    "</title></pre></style><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}\u{1b}[2J\u{0}&lt;";

/// Every kind of entry, and everything in it hostile.
fn hostile() -> Vec<Value> {
    let message = |id: &str, parent: &str, message: Value| json!({"type":"message","id":id,"parentId":parent,"timestamp":"2026-12-01T16:19:02.000Z","message":message});
    let entry = |id: &str, parent: &str, mut entry: Value| {
        (entry["id"], entry["parentId"], entry["timestamp"]) = (id.into(), parent.into(), EVIL.into());
        entry
    };
    let call = json!([{"type":"text","text":EVIL},{"type":"thinking","thinking":EVIL},{"type":EVIL,"x":EVIL},
        {"type":"toolCall","id":EVIL,"name":EVIL,"arguments":{EVIL:EVIL,"other":[EVIL]}}]);
    let picture = |mime: &str, data: &str| json!({"type":"image","mimeType":mime,"data":data});
    let pictures = json!([
        picture("image/png", "aGk="),
        picture(EVIL, "x"),
        picture("image/png", EVIL),
        picture("image/svg+xml", "x")
    ]);
    vec![
        user("a", None, EVIL),
        message(
            "b",
            "a",
            json!({"role":"assistant","content":call,"model":EVIL,"provider":EVIL,"stopReason":"error",
            "errorMessage":EVIL,"usage":{"input":1,"output":1,"totalTokens":2,"cost":{"total":0.5}}}),
        ),
        message(
            "c",
            "b",
            json!({"role":"toolResult","toolCallId":EVIL,"toolName":EVIL,
            "content":[{"type":"text","text":EVIL}],"isError":true}),
        ),
        message(
            "d",
            "c",
            json!({"role":"system","content":EVIL,"sections":{EVIL:EVIL,"gone":null},
            "toolsAdded":[{"name":EVIL,"description":EVIL}],"toolsRemoved":[{"name":EVIL}]}),
        ),
        message("e", "d", json!({"role":"bashExecution","command":EVIL,"output":EVIL,"exitCode":1})),
        message("f", "e", json!({"role":EVIL,"content":EVIL})),
        message("g", "f", json!({"role":"user","content":pictures})),
        entry(
            EVIL,
            "g",
            json!({"type":"compaction","summary":EVIL,"firstKeptEntryId":"b","tokensBefore":7,
            "details":{"readFiles":[EVIL],"modifiedFiles":[EVIL]}}),
        ),
        entry("i", EVIL, json!({"type":"branch_summary","fromId":EVIL,"summary":EVIL})),
        entry("j", "i", json!({"type":"context_edit","targetId":"c","replacement":{"content":EVIL}})),
        entry("k", "j", json!({"type":"custom_message","customType":EVIL,"content":EVIL,"display":false})),
        entry("l", "k", json!({"type":"custom","customType":EVIL,"data":EVIL})),
        entry("m", "l", json!({"type":"label","targetId":"a","label":EVIL})),
        entry("n", "m", json!({"type":"model_change","provider":EVIL,"modelId":EVIL})),
        entry("o", "n", json!({"type":"session_info","name":EVIL})),
        entry("p", "o", json!({"type":EVIL,"x":EVIL})),
        entry("q", "p", json!({"type":"usage","kind":EVIL,"provider":EVIL,"model":EVIL,"usage":{"input":1}})),
    ]
}

#[test]
fn nothing_in_a_session_breaks_out_of_its_page() {
    let home = Home::new();
    home.session("s", &hostile());
    let page = home.text(&["session", "export", "s", "--html"]);
    for bad in ["<script", "<img src=x", "\u{202e}", "\u{1b}", "\u{0}", "svg+xml;base64"] {
        assert!(!page.contains(bad), "{bad:?}");
    }
    assert_eq!(page.matches("</title>").count(), 1);
    assert_eq!(page.matches("</style>").count(), 1);
    assert_eq!(page.matches("<img ").count(), 1, "the one picture that is one");
    assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("\\u{202e}") && page.contains("␛"));
    assert!(page.contains("default-src 'none'"));
    // Whatever stands between < and > is ours: no attribute that runs or loads anything.
    for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
        assert!(!tag.contains(" on") && !tag.contains("script") && !tag.contains("http:"), "{tag}");
    }
}

#[test]
fn a_page_has_the_branch_and_says_what_the_model_still_sees() {
    let home = Home::new();
    let summary = json!({"type":"compaction","id":"c","parentId":"b","timestamp":"2026-12-01T16:19:03Z",
        "summary":"so far","firstKeptEntryId":"b","tokensBefore":1234});
    let edit = json!({"type":"context_edit","id":"d","parentId":"c","timestamp":"2026-12-01T16:19:03Z",
        "targetId":"b","replacement":null});
    let beside = user("x", Some("a"), "elsewhere");
    home.session("s", &[user("a", None, "first"), beside, user("b", Some("a"), "second"), summary, edit]);
    let page = home.text(&["session", "export", "s", "--html"]);
    for text in [
        "first",
        "second",
        "so far",
        "1,234 tokens before",
        "no longer in context",
        "left out by <a href=\"#e3\">d</a>",
        "1 on other branches",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("elsewhere"));
    assert!(home.text(&["session", "export", "s", "--html", "--leaf", "x"]).contains("elsewhere"));
}

#[test]
fn lines_are_exported_byte_for_byte_and_are_a_session() {
    let home = Home::new();
    let header = r#" {"type":"session" ,"version":3,"id":"s","timestamp":"2026-12-01T16:19:01.469Z","cwd":"/w"}"#;
    let a = "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null, \"big\":1e400,\
        \"message\":{\"role\":\"user\",\"content\":\"\\ud83d\"}}\r";
    let b = r#"{"type":"custom","customType":"x","id":"b","parentId":"a"}"#;
    let c = r#"{"type":"custom","customType":"x","id":"c","parentId":"a"}"#;
    let path = home.file("s", [header, "no JSON", a, b, "", c].join("\n").as_bytes());
    assert_eq!(home.text(&["session", "export", "s", "--jsonl"]), [header, a, c, ""].join("\n"));
    assert_eq!(home.text(&["session", "export", "s", "--jsonl", "--leaf", "b"]), [header, a, b, ""].join("\n"));
    home.text(&["session", "export", "s", "--jsonl", "-o", "new.jsonl"]);
    let context = |file: &str| home.text(&["session", "context", file, "--json"]);
    assert_eq!(context("new.jsonl"), context(path.to_str().expect("text")));
}

#[test]
fn an_export_says_what_it_cannot_do() {
    let home = Home::new();
    home.session("s", &[user("a", None, "x")]);
    home.file("empty", b"");
    fs::write(home.path("there"), "mine").expect("written");
    let code = |args: &[&str]| home.run(args).status.code();
    assert_eq!(code(&["session", "export", "s"]), Some(2), "one of the two");
    assert_eq!(code(&["session", "export", "s", "--html", "--jsonl"]), Some(2));
    assert_eq!(code(&["session", "export", "s", "--html", "--leaf", "nobody"]), Some(2));
    assert_eq!(code(&["session", "export", "empty", "--html"]), Some(1));
    let over = home.run(&["session", "export", "s", "--html", "-o", "there"]);
    assert!(over.status.code() == Some(1) && stderr(&over).contains("name another"), "{}", stderr(&over));
    assert_eq!(fs::read_to_string(home.path("there")).expect("text"), "mine");
}
