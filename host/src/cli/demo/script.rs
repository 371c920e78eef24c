//! The session that the demo plays: what Pi would write while somebody adds rate limiting to a small server.

use pi_session::json::quoted;
use pi_session::time::iso;

/// Writes the lines of a session as Pi would, ids and times by count.
pub struct Script {
    lines: Vec<String>,
    /// Lines that the session has.
    count: usize,
    parent: Option<String>,
    now_ms: i64,
    context: u64,
}

/// What should not have been read.
const SECRET: &str = "kT9!vq2Lw7xZ";
/// Tokens that the demo's context begins with.
const PROMPT_TOKENS: u64 = 1_200;

impl Script {
    /// The session up to where Pi is left, a line each.
    #[must_use]
    pub fn begin(now_ms: i64) -> Vec<String> {
        let mut script = Script { lines: Vec::new(), count: 0, parent: None, now_ms, context: PROMPT_TOKENS };
        script.header();
        script.first_turn();
        script.second_turn();
        script.third_turn();
        script.lines
    }

    /// The lines that come when Pi has opened the session again: it has so many lines by now, ends with the entry `leaf`, and
    /// gives the model so many tokens.
    #[must_use]
    pub fn go_on(now_ms: i64, count: usize, leaf: &str, tokens: u64) -> Vec<String> {
        let context = PROMPT_TOKENS + tokens;
        let mut script = Script { lines: Vec::new(), count, parent: Some(leaf.to_owned()), now_ms, context };
        script.fourth_turn();
        script.fifth_turn();
        script.lines
    }

    fn header(&mut self) {
        let time = iso(self.now_ms);
        self.push(format!(
            r#"{{"type":"session","version":3,"id":"demo-session","timestamp":"{time}","cwd":"/demo/api-server"}}"#
        ));
        self.entry("model_change", r#""provider":"demo","modelId":"demo-model""#);
        self.message(r#""role":"system","content":"You are a coding agent.","sections":{"rules":"Be brief."}"#);
    }

    fn first_turn(&mut self) {
        self.user("Add rate limiting to src/server.rs. Never block health checks, and always keep the public API of RateLimiter stable.");
        self.call("read", r#"{"path":"src/server.rs"}"#, "c1");
        self.result("c1", "read", false, &listing("fn handle(req: Request) -> Response {", 130));
        self.call("bash", r#"{"command":"cargo test"}"#, "c2");
        self.result("c2", "bash", false, &listing("test server::tests::answers ... ok", 90));
        self.call("write", r#"{"path":"src/limit.rs","content":"pub struct RateLimiter { … }"}"#, "c3");
        self.result("c3", "write", false, "Wrote 1870 bytes to src/limit.rs");
        self.says("I decided to use a token bucket instead of a fixed window, because bursts after a deploy are normal here. src/limit.rs holds it; next I will wire it into src/server.rs.");
    }

    fn second_turn(&mut self) {
        self.user("Good. Wire it in, limit is 100 requests per minute per client. What does .env say?");
        self.call("edit", r#"{"path":"src/server.rs","edits":[{"oldText":"route(req)","newText":"limiter.check(&req)?; route(req)"}]}"#, "c4");
        self.result("c4", "edit", false, "Edited src/server.rs (1 change)");
        self.call("read", r#"{"path":".env"}"#, "c5");
        self.result("c5", "read", false, &format!("PORT=8080\nDB_PASSWORD={SECRET}\n"));
        self.says("The limiter is called before each route; .env has nothing about limits.");
    }

    fn third_turn(&mut self) {
        self.user("Format it, that is all for today.");
        self.call("bash", r#"{"command":"cargo fmt"}"#, "c0");
        self.result("c0", "bash", false, "(no output)");
        self.says("It is formatted.");
    }

    fn fourth_turn(&mut self) {
        self.user("Run the tests.");
        self.call("bash", r#"{"command":"cargo test"}"#, "c6");
        let failure = "error[E0277]: `?` couldn't convert the error to `Response`\n  --> src/server.rs:42:31";
        self.result("c6", "bash", true, &format!("{failure}\n{}", listing("warning: unused import", 160)));
        self.call(
            "edit",
            r#"{"path":"src/server.rs","edits":[{"oldText":"?;","newText":".map_err(Response::from)?;"}]}"#,
            "c7",
        );
        self.result("c7", "edit", false, "Edited src/server.rs (1 change)");
        self.call("bash", r#"{"command":"cargo test"}"#, "c8");
        self.result("c8", "bash", false, &listing("test limit::tests::refills ... ok", 180));
        self.says("The limiter is wired in and all tests pass. Still to do: document the limit in README.md.");
    }

    fn fifth_turn(&mut self) {
        self.user("Now document it.");
        self.call("edit", r#"{"path":"README.md","edits":[{"oldText":"usage","newText":"usage and limits"}]}"#, "c9");
        self.result("c9", "edit", false, "Edited README.md (1 change)");
        self.says(
            "README.md now says that a client may make 100 requests a minute, and that health checks are exempt.",
        );
    }

    fn user(&mut self, text: &str) {
        self.context += text.len() as u64 / 4;
        self.message(&format!(r#""role":"user","content":{}"#, quoted(text)));
    }

    fn call(&mut self, tool: &str, arguments: &str, id: &str) {
        let content = format!(r#"{{"type":"toolCall","id":"{id}","name":"{tool}","arguments":{arguments}}}"#);
        self.assistant(&content, "toolUse", arguments.len() as u64 / 4);
    }

    fn says(&mut self, text: &str) {
        let content = format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
        self.assistant(&content, "stop", text.len() as u64 / 4);
    }

    fn assistant(&mut self, content: &str, stop: &str, output: u64) {
        self.context += output;
        let (input, total) = (self.context - output, self.context);
        self.message(&format!(
            r#""role":"assistant","content":[{content}],"api":"demo","provider":"demo","model":"demo-model","usage":{{"input":{input},"output":{output},"cacheRead":0,"cacheWrite":0,"totalTokens":{total},"cost":{{"total":0.01}}}},"stopReason":"{stop}""#
        ));
    }

    fn result(&mut self, call: &str, tool: &str, is_error: bool, text: &str) {
        self.context += text.len() as u64 / 4;
        self.message(&format!(
            r#""role":"toolResult","toolCallId":"{call}","toolName":"{tool}","content":[{{"type":"text","text":{}}}],"isError":{is_error}"#,
            quoted(text)
        ));
    }

    fn message(&mut self, members: &str) {
        self.now_ms += 40;
        let time = self.now_ms;
        self.entry("message", &format!(r#""message":{{{members},"timestamp":{time}}}"#));
    }

    fn entry(&mut self, kind: &str, members: &str) {
        let id = format!("{:08x}", self.count);
        let parent = self.parent.replace(id.clone()).map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
        let time = iso(self.now_ms);
        self.push(format!(r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"{time}",{members}}}"#));
    }

    fn push(&mut self, line: String) {
        self.lines.push(line);
        self.count += 1;
    }
}

/// A tool's output of many lines.
fn listing(line: &str, times: usize) -> String {
    (1..=times).map(|n| format!("{n:4}  {line}\n")).collect()
}
