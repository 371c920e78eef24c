//! A server of the kind `openai`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::server::{Reply, Server, completion};
use super::{AskError, ModelFrom, ask};

/// Long enough for a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn from(url: &str, key: Option<&str>) -> ModelFrom {
    let (base_url, api_key_env) = (url.to_owned(), key.map(str::to_owned));
    ModelFrom::OpenAi { base_url, model: "small".into(), api_key_env, ca_file: None }
}

/// What comes of these answers, and how often it was asked.
fn outcome(replies: impl IntoIterator<Item = Reply>) -> (Result<String, AskError>, usize) {
    let server = Server::new(replies);
    let answer = ask(from(&server.url(), None), LONG, &|| false);
    (answer.map(|answer| answer.text), server.requests().len())
}

fn error(status: u16, body: &str) -> Reply {
    Reply::Say(status, "", body.to_owned())
}

fn status(status: u16, code: Option<&str>) -> Result<String, AskError> {
    Err(AskError::Status { status, code: code.map(str::to_owned) })
}

#[test]
fn an_answer_with_what_it_cost() {
    let server = Server::new([completion("a summary", "stop")]);
    let answer = ask(from(&server.url(), None), LONG, &|| false).expect("an answer");
    assert_eq!((answer.text.as_str(), answer.cut_off, answer.usage.total()), ("a summary", false, 150));
    let cost = answer.usage.cost.expect("there are prices");
    assert!((cost - (120.0 + 300.0) / 1e6).abs() < 1e-12, "{cost}");
    let (head, body) = server.requests().remove(0);
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    assert!(!head.to_lowercase().contains("authorization"), "{head}");
    let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["messages"][0], serde_json::json!({"role": "system", "content": "sum up"}));
    assert_eq!((&body["model"], &body["max_tokens"], &body["stream"]), (&"small".into(), &100.into(), &false.into()));
}

#[test]
fn one_that_is_cut_off_says_so() {
    let server = Server::new([completion("half a summ", "length")]);
    let answer = ask(from(&server.url(), None), LONG, &|| false).expect("an answer");
    assert!(answer.cut_off);
}

#[test]
fn what_is_no_answer_is_none_and_is_not_tried_again() {
    let tool = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let scenes = [
        (completion("", "stop"), AskError::Empty),
        (completion(" \n", "stop"), AskError::Empty),
        (error(200, tool), AskError::ToolCall),
        (error(200, "<html>welcome</html>"), AskError::Garbage),
        (error(200, "{}"), AskError::Garbage),
        (error(200, r#"{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}"#), AskError::Garbage),
        (completion("I will not", "content_filter"), AskError::Stopped("content_filter".into())),
        (
            error(200, r#"{"choices":[{"message":{"content":"x"},"finish_reason":null}]}"#),
            AskError::Stopped("nothing that it says".into()),
        ),
        (completion(&"x".repeat(600 << 10), "stop"), AskError::TooLong),
        (completion(&"x".repeat(5 << 20), "stop"), AskError::TooLong),
        (Reply::Say(307, "location: http://127.0.0.1:1/\r\n", String::new()), AskError::Redirect(307)),
    ];
    for (reply, expected) in scenes {
        assert_eq!(outcome([reply]), (Err(expected), 1));
    }
}

#[test]
fn a_busy_or_broken_server_is_tried_again() {
    let answer = || completion("a summary", "stop");
    let fine = |tries| (Ok("a summary".to_owned()), tries);
    assert_eq!(outcome([Reply::Say(429, "retry-after: 0\r\n", "{}".into()), answer()]), fine(2));
    assert_eq!(outcome([error(500, "oops"), error(503, ""), answer()]), fine(3));
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"choices\":[{\"mess".to_vec();
    assert_eq!(outcome([Reply::Raw(half), answer()]), fine(2));
    assert_eq!(outcome([Reply::Raw(Vec::new()), answer()]), fine(2));
}

#[test]
fn a_server_that_stays_so_is_given_up() {
    let (answer, tries) = outcome([error(500, r#"{"error":{"message":"SECRET sk-key","code":"overloaded"}}"#)]);
    assert_eq!((answer, tries), (status(500, Some("overloaded")), 5));
}

#[test]
fn what_would_only_come_again_is_asked_once() {
    let echoed = r#"{"error":{"message":"cannot read SECRET","type":"invalid_request_error","code":"SECRET text"}}"#;
    assert_eq!(outcome([error(400, echoed)]), (status(400, Some("invalid_request_error")), 1));
    assert_eq!(outcome([error(404, "no such model")]), (status(404, None), 1));
    let quota = r#"{"error":{"code":"insufficient_quota"}}"#;
    assert_eq!(outcome([error(429, quota)]), (status(429, Some("insufficient_quota")), 1));
    let later = Reply::Say(429, "retry-after: 86400\r\n", "{}".into());
    assert_eq!(outcome([later]), (status(429, None), 1), "tomorrow is too late");
}

#[test]
fn newer_models_call_the_most_otherwise() {
    let refused =
        r#"{"error":{"message":"Unsupported parameter","param":"max_tokens","code":"unsupported_parameter"}}"#;
    let server = Server::new([error(400, refused), completion("a summary", "stop")]);
    ask(from(&server.url(), None), LONG, &|| false).expect("an answer");
    let second: serde_json::Value = serde_json::from_str(&server.requests()[1].1).expect("JSON");
    assert_eq!((&second["max_completion_tokens"], second.get("max_tokens")), (&100.into(), None));
}

#[test]
fn a_server_that_never_answers_is_left_in_time() {
    let server = Server::new([Reply::Nothing]);
    let time = Duration::from_millis(300);
    assert_eq!(ask(from(&server.url(), None), time, &|| false).map(drop), Err(AskError::Timeout(time)));
    server.wait_for_leaving();
}

#[test]
fn a_server_that_is_not_there_is_told_so() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port();
    let answer = ask(from(&format!("http://127.0.0.1:{port}/v1"), None), Duration::from_secs(2), &|| false);
    assert_eq!(answer.map(drop), Err(AskError::Unreachable("connection refused".into())));
}

#[test]
fn the_call_ends_when_nobody_waits_any_more() {
    let (server, over) = (Server::new([Reply::Nothing]), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(from(&server.url(), None), LONG, &|| over.load(Ordering::Relaxed)));
        server.wait_for_requests(1);
        over.store(true, Ordering::Relaxed);
        assert_eq!(asking.join().expect("it ends").map(drop), Err(AskError::Over));
    });
    server.wait_for_leaving();
}

#[test]
fn the_key_goes_to_the_server_and_into_no_error() {
    // Cargo gives every test this variable.
    let key = std::env::var("CARGO_PKG_NAME").expect("a variable");
    let echo = format!(r#"{{"error":{{"message":"wrong key {key}","code":"{key}"}}}}"#);
    let server = Server::new([error(401, &echo)]);
    let failed = ask(from(&server.url(), Some("CARGO_PKG_NAME")), LONG, &|| false).expect_err("a wrong key");
    assert!(server.requests()[0].0.to_lowercase().contains(&format!("authorization: bearer {key}")));
    assert!(!format!("{failed} {failed:?}").contains(&key), "{failed:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn without_its_variable_nothing_is_asked() {
    let server = Server::new([completion("a summary", "stop")]);
    let failed = ask(from(&server.url(), Some("PI_GRAFT_NO_SUCH_KEY")), LONG, &|| false);
    assert_eq!(failed.map(drop), Err(AskError::NoKey("PI_GRAFT_NO_SUCH_KEY".into())));
    assert!(server.requests().is_empty());
}
