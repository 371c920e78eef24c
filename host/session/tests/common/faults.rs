//! Sessions with one thing wrong each, what is to be found in them, and what the real Pi does with them.
//!
//! A scene is drawn as lines behind a header, a question `u1` and an answer `a1`:
//!
//! ```text
//! x message "role":"user","content":5         an entry: its id, its type, its fields; it hangs on the line before,
//! x<u1 custom "customType":"t"                or, written `id<parent`, on another
//! x message! "role":"user","content":"q"      without the time that every message has otherwise
//! {"type":"session", … }                      a line as it stands
//! ```

mod nameless;
mod usages;

use nameless::NAMELESS;
use usages::USAGES;

/// A session with something wrong.
pub struct Fault {
    /// The names of all that is to be found.
    pub findings: Vec<&'static str>,
    /// The file.
    pub session: Vec<u8>,
    /// What Pi does: steps that go wrong, and behind the bar what the model is given.
    pub pi: &'static str,
}

/// Header, question and answer of every scene.
pub const LINES: [&str; 3] = [
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#,
    r#"{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hello","timestamp":1767225600000}}"#,
    r#"{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"answer"}],"api":"openai-completions","provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0}},"stopReason":"stop","timestamp":1767225600000}}"#,
];

/// An assistant's message but for its role and content.
const BY: &str = r#""api":"openai-completions","provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":0}},"stopReason":"stop""#;

/// A message entry.
pub fn message(id: &str, parent: &str, fields: &str) -> String {
    let fields = fields.replace("$by", BY);
    entry("message", id, parent, &format!(r#""message":{{{fields},"timestamp":1767225600000}}"#))
}

fn entry(kind: &str, id: &str, parent: &str, fields: &str) -> String {
    let fields = fields.replace("$by", BY);
    let comma = if fields.is_empty() { "" } else { "," };
    format!(
        r#"{{"type":"{kind}","id":"{id}","parentId":"{parent}","timestamp":"2026-01-01T00:00:03.000Z"{comma}{fields}}}"#
    )
}

/// All of them.
pub fn all() -> Vec<Fault> {
    let drawn =
        [ENTRIES, MESSAGES, USAGES, BLOCKS, SYSTEMS, CUSTOMS, COMPACTIONS, EDITS, SMALL, CALLS, GRAFTS].concat();
    let drawn = drawn.into_iter().map(|(findings, lines, pi)| {
        let mut session = LINES.join("\n") + "\n";
        draw(lines, &mut session);
        (findings, session.into_bytes(), pi)
    });
    let files = FILES.iter().chain(NAMELESS).map(|(findings, text, pi)| (*findings, whole(text), *pi));
    let all = drawn.chain(files).chain([bad_utf8(), far_header(0)]);
    all.map(|(findings, session, pi)| Fault { findings: findings.split(' ').collect(), session, pi }).collect()
}

fn draw(lines: &str, session: &mut String) {
    let mut before = "a1".to_owned();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (id, rest) = line.split_once(' ').unwrap_or((line, ""));
        if line.starts_with('{') || rest.is_empty() {
            *session += &format!("{line}\n");
            continue;
        }
        let (id, parent) = id.split_once('<').unwrap_or((id, &before));
        let (kind, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        *session += &match kind {
            "message" => message(id, parent, fields),
            "message!" => entry("message", id, parent, &format!(r#""message":{{{fields}}}"#)),
            "entry" => entry("message", id, parent, fields),
            kind => entry(kind, id, parent, fields),
        };
        *session += "\n";
        before = id.to_owned();
    }
}

/// A whole file: `$h`, `$u` and `$a` are the usual lines, `$x` a further message.
fn whole(text: &str) -> Vec<u8> {
    let [header, user, assistant] = LINES;
    let further = message("x", "a1", r#""role":"user","content":"more""#);
    let text = text.replace("$h", header).replace("$u", user).replace("$a", assistant).replace("$x", &further);
    text.into_bytes()
}

fn bad_utf8() -> (&'static str, Vec<u8>, &'static str) {
    let text = LINES.join("\n") + "\n";
    let at = text.find("answer").expect("it is there");
    let mut bytes = text.into_bytes();
    bytes[at] = 0xff;
    ("bad-utf8", bytes, "| user: hello / assistant: \u{fffd}nswer")
}

/// A header whose line ends so many bytes before what is too far.
pub fn far_header(before: usize) -> (&'static str, Vec<u8>, &'static str) {
    let text = LINES.join("\n") + "\n";
    let mut bytes = vec![b' '; (1 << 20) - LINES[0].len() - before];
    bytes.extend_from_slice(text.as_bytes());
    ("far-header", bytes, "list passed-over | user: hello / assistant: answer")
}

type Scene = (&'static str, &'static str, &'static str);

const FILES: &[Scene] = &[
    ("not-a-session", "$u\n$a\n", "open throws, list missing |"),
    ("no-header bad-line", "garbage\n", "open throws, list missing |"),
    ("no-header", "\n", "open throws, list missing |"),
    ("empty-file", "", "list missing, changed ended |"),
    (
        "header-return",
        "{\"type\":\"session\",\r\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\r\n$u\n$a\n",
        "list missing | user: hello / assistant: answer",
    ),
    (
        "line-return",
        "$h\n\r$u\r\n$a \r \n{\"type\":\"session_info\",\"id\":\"x\",\r\"parentId\":\"a1\",\"timestamp\":\"2026-01-01T00:00:04.000Z\",\"name\":\"here\"}\n",
        "list unnamed | user: hello / assistant: answer",
    ),
    (
        "line-return",
        "\r$h\r\n$u\n$a\n{\"type\":\"message\",\"id\":\"x\",\"parentId\":\"a1\",\"timestamp\":\"2026-01-01T00:00:04.000Z\",\"message\":{\"role\":\"user\",\r\"content\":\"more\",\"timestamp\":1}}\n",
        "list partly | user: hello / assistant: answer / user: more",
    ),
    (
        "header-field",
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n$u\n$a\n",
        "| user: hello / assistant: answer",
    ),
    (
        "odd-session-id",
        "{\"type\":\"session\",\"version\":3,\"id\":\"a b\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n$u\n$a\n",
        "| user: hello / assistant: answer",
    ),
    (
        "old-version",
        "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n$u\n$a\n",
        "changed rewritten | user: hello / assistant: answer",
    ),
    (
        "old-version old-value",
        "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n$u\n42\n$a\n",
        "open throws |",
    ),
    (
        "newer-version",
        "{\"type\":\"session\",\"version\":4,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n$u\n$a\n",
        "| user: hello / assistant: answer",
    ),
    ("second-header", "$h\n$u\n$h\n$a\n", "| user: hello / assistant: answer"),
    ("bad-line", "$h\n$u\ngarbage\n$a\n", "| user: hello / assistant: answer"),
    (
        "glued-lines unknown-parent",
        "$h\n$u\n$a\n{\"type\":\"custom\",\"id\":\"to$x\n{\"type\":\"message\",\"id\":\"y\",\"parentId\":\"x\",\"timestamp\":\"2026-01-01T00:00:04.000Z\",\"message\":{\"role\":\"user\",\"content\":\"last\",\"timestamp\":1}}\n",
        "| user: last",
    ),
    ("glued-lines", "$h\n$u\n$a$x\n", "| user: hello"),
    ("torn-end", "$h\n$u\n$a\n{\"type\":\"custom\",\"id\":\"to", "changed ended | user: hello / assistant: answer"),
    ("open-end", "$h\n$u\n$a", "changed ended | user: hello / assistant: answer"),
    ("skipped-value", "$h\n$u\nnull\n$a\n", "| user: hello / assistant: answer"),
    ("no-id", "$h\n$u\n42\n$a\n", "| user: hello / assistant: answer"),
    ("no-id", "$h\n$u\n{\"type\":\"custom\",\"parentId\":\"u1\"}\n$a\n", "| user: hello / assistant: answer"),
    ("no-id-at-end", "$h\n$u\n$a\n42\n", "leaf none |"),
    (
        "no-id-at-end",
        "$h\n$u\n$a\n{\"type\":\"custom\",\"parentId\":\"a1\"}\n",
        "leaf none | user: hello / assistant: answer",
    ),
    (
        "forward-parent",
        "$h\n$a\n$u\n{\"type\":\"custom\",\"customType\":\"t\",\"id\":\"c\",\"parentId\":\"a1\",\"timestamp\":\"2026-01-01T00:00:04.000Z\"}\n",
        "| user: hello / assistant: answer",
    ),
];

const ENTRIES: &[Scene] = &[
    (
        "no-type",
        r#"{"id":"x","parentId":"a1","timestamp":"2026-01-01T00:00:03.000Z"}"#,
        "| user: hello / assistant: answer",
    ),
    ("unknown-type", "x something", "| user: hello / assistant: answer"),
    (
        "no-time",
        r#"{"type":"custom_message","customType":"t","content":"c","display":true,"id":"x","parentId":"a1","timestamp":"soon"}"#,
        "| user: hello / assistant: answer / user: c",
    ),
    (
        "time-before-parent",
        r#"{"type":"custom","customType":"t","id":"x","parentId":"a1","timestamp":"2025-01-01T00:00:03.000Z"}"#,
        "| user: hello / assistant: answer",
    ),
    (
        "duplicate-id",
        r#"a1<u1 message "role":"assistant","content":[{"type":"text","text":"another"}],$by"#,
        "| user: hello / assistant: another",
    ),
    (
        "no-parent",
        r#"{"type":"message","id":"x","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"alone","timestamp":1}}"#,
        "| user: alone",
    ),
    (
        "no-parent",
        r#"{"type":"message","id":"x","parentId":5,"timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"alone","timestamp":1}}"#,
        "| user: alone",
    ),
    ("unknown-parent", r#"x<nobody message "role":"user","content":"alone""#, "| user: alone"),
    ("cycle cycle-at-leaf", r#"x<x custom "customType":"t""#, "open hangs |"),
    (
        "cycle forward-parent",
        "x<y custom \"customType\":\"t\"\ny<x custom \"customType\":\"t\"\nz<a1 custom \"customType\":\"t\"",
        "| user: hello / assistant: answer",
    ),
    (
        "cycle cycle-at-leaf duplicate-id time-before-parent",
        "u1<a1 message \"role\":\"user\",\"content\":\"again\"",
        "open hangs |",
    ),
];

const MESSAGES: &[Scene] = &[
    (
        "no-message",
        "x entry",
        "list missing, context throws, tokens throws, plan throws, send throws, chat throws, tree throws, footer throws |",
    ),
    ("no-role", r#"x message "content":"hm""#, "| user: hello / assistant: answer"),
    ("unknown-role", r#"x message "role":"mine","content":"hm""#, "| user: hello / assistant: answer"),
    (
        "message-time",
        r#"x message! "role":"user","content":"q","timestamp":"2026-01-01T00:00:03.000Z""#,
        "| user: hello / assistant: answer / user: q",
    ),
    (
        "content-type",
        r#"x message "role":"user","content":5"#,
        "list missing, tokens throws, plan throws, send throws | user / assistant / user",
    ),
    ("null-content", r#"x message "role":"user","content":null"#, "list missing | user: hello / assistant: answer"),
    (
        "null-content",
        r#"x message "role":"assistant","content":null,$by"#,
        "list missing | user: hello / assistant: answer",
    ),
    ("no-content", r#"x message "role":"user""#, "| user: hello / assistant: answer"),
    (
        "assistant-text",
        r#"x message "role":"assistant","content":"text",$by"#,
        "send throws, chat throws | user / assistant / assistant",
    ),
    (
        "result-text",
        "x message \"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"read\",\"arguments\":{}}],$by\ny message \"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"read\",\"content\":\"the text\",\"isError\":false",
        "| user: hello / assistant: answer / assistant: call c / tool: (no tool output)",
    ),
    (
        "assistant-model",
        r#"x message "role":"assistant","content":[],"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":0}},"stopReason":"stop""#,
        "| user: hello / assistant: answer",
    ),
    (
        "odd-stop",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":0}},"stopReason":"pending""#,
        "| user: hello / assistant: answer",
    ),
    (
        "bash-fields",
        r#"x message "role":"bashExecution","command":"ls""#,
        "tokens throws, plan throws | user: hello / assistant: answer / user: Ran `ls` (no output)",
    ),
    (
        "summary-message",
        r#"x message "role":"branchSummary""#,
        "tokens throws, plan throws | user: hello / assistant: answer / user: (branch) undefined",
    ),
    (
        "nested-calls",
        "x message \"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"run\",\"arguments\":{}}],$by\ny message \"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"run\",\"content\":[],\"isError\":false,\"nestedCalls\":{\"calls\":5}\nz message \"role\":\"user\",\"content\":\"more\"",
        "plan throws | user: hello / assistant: answer / assistant: call c / tool: (no tool output) / user: more",
    ),
];

const BLOCKS: &[Scene] = &[
    (
        "null-block",
        r#"x message "role":"user","content":[null]"#,
        "list missing, tokens throws, plan throws, send throws | user / assistant / user",
    ),
    (
        "odd-block",
        r#"x message "role":"user","content":["text"]"#,
        "| user: hello / assistant: answer / user: image_url",
    ),
    (
        "unknown-block",
        r#"x message "role":"user","content":[{"type":"video"}]"#,
        "| user: hello / assistant: answer / user: image_url",
    ),
    ("text-block", r#"x message "role":"user","content":[{"type":"text"}]"#, "send throws | user / assistant / user"),
    (
        "text-block",
        r#"x message "role":"assistant","content":[{"type":"text"}],$by"#,
        "tokens throws, plan throws, send throws, chat throws | user / assistant / assistant",
    ),
    (
        "thinking-block",
        r#"x message "role":"assistant","content":[{"type":"thinking"}],$by"#,
        "tokens throws, plan throws, chat throws | user: hello / assistant: answer",
    ),
    (
        "call-block call-open",
        r#"x message "role":"assistant","content":[{"type":"toolCall","id":"c","arguments":{}}],$by"#,
        "tokens throws, plan throws | user: hello / assistant: answer / assistant: call c / tool: No result provided",
    ),
    (
        "call-block",
        r#"x message "role":"assistant","content":[{"type":"toolCall","id":7,"name":"read","arguments":{}}],"api":"a","provider":"q","model":"n","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":0}},"stopReason":"toolUse""#,
        "send throws | user / assistant / assistant",
    ),
    (
        "call-block call-open",
        r#"x message "role":"assistant","content":[{"type":"toolCall","id":"c","name":"read"}],$by"#,
        "tokens throws, plan throws | user: hello / assistant: answer / assistant: call c / tool: No result provided",
    ),
];

const SYSTEMS: &[Scene] = &[
    (
        "system-tools",
        r#"x message "role":"system","content":"","toolsAdded":5"#,
        "tokens throws, plan throws, send throws | user / assistant / system",
    ),
    (
        "system-tools",
        r#"x message "role":"system","content":"","toolsRemoved":[null]"#,
        "tokens throws, plan throws, send throws | user / assistant / system",
    ),
    (
        "system-tools",
        r#"x message "role":"system","content":"c","toolsAdded":"read""#,
        "| system: c / user: hello / assistant: answer",
    ),
    (
        "system-section",
        r#"x message "role":"system","content":"c","sections":"ab""#,
        "| system: c a b / user: hello / assistant: answer",
    ),
    (
        "system-section",
        r#"x message "role":"system","content":"","sections":{"a":5}"#,
        "tokens NaN | user: hello / assistant: answer",
    ),
    (
        "system-replace",
        "x message \"role\":\"system\",\"content\":\"old\"\ny message \"role\":\"system\",\"content\":\"new\",\"replace\":true",
        "| system: old new / user: hello / assistant: answer",
    ),
    (
        "content-type",
        r#"x message "role":"system","content":5"#,
        "tokens throws, plan throws, send throws | user / assistant / system",
    ),
];

const CUSTOMS: &[Scene] = &[
    ("no-custom-type", "x custom", "| user: hello / assistant: answer"),
    (
        "no-custom-type",
        r#"x custom_message "content":"note","display":true"#,
        "| user: hello / assistant: answer / user: note",
    ),
    (
        "no-custom-content",
        r#"x custom_message "customType":"t","content":null,"display":true"#,
        "tree throws | user: hello / assistant: answer",
    ),
    (
        "no-display",
        r#"x custom_message "customType":"t","content":"note""#,
        "| user: hello / assistant: answer / user: note",
    ),
    (
        "content-type",
        r#"x custom_message "customType":"t","content":5,"display":true"#,
        "tokens throws, plan throws, send throws, chat throws, tree throws | user / assistant / custom",
    ),
    (
        "null-block",
        r#"x custom_message "customType":"t","content":[null],"display":true"#,
        "tokens throws, plan throws, send throws, chat throws, tree throws | user / assistant / custom",
    ),
    (
        "text-block",
        r#"x custom_message "customType":"t","content":[{"type":"text"}],"display":true"#,
        "send throws | user / assistant / custom",
    ),
];

const COMPACTIONS: &[Scene] = &[
    (
        "no-summary",
        r#"x compaction "firstKeptEntryId":"u1","tokensBefore":5"#,
        "tokens throws | user: (summary) undefined / user: hello / assistant: answer",
    ),
    (
        "empty-summary",
        r#"x compaction "summary":"","firstKeptEntryId":"u1","tokensBefore":5"#,
        "| user: (summary) / user: hello / assistant: answer",
    ),
    ("no-first-kept", r#"x compaction "summary":"S","tokensBefore":5"#, "| user: (summary) S"),
    (
        "kept-off-path",
        r#"x compaction "summary":"S","firstKeptEntryId":"nobody","tokensBefore":5"#,
        "| user: (summary) S",
    ),
    (
        "kept-off-path",
        "o<u1 custom \"customType\":\"t\"\nx<a1 compaction \"summary\":\"S\",\"firstKeptEntryId\":\"o\",\"tokensBefore\":5",
        "| user: (summary) S",
    ),
    (
        "tokens-before",
        r#"x compaction "summary":"S","firstKeptEntryId":"u1""#,
        "chat throws | user: (summary) S / user: hello / assistant: answer",
    ),
    (
        "compaction-system",
        r#"x compaction "summary":"S","firstKeptEntryId":"u1","tokensBefore":5,"systemMessage":{"role":"system","content":5}"#,
        "tokens throws, send throws | system / compactionSummary / user / assistant",
    ),
    (
        "system-tools",
        r#"x compaction "summary":"S","firstKeptEntryId":"u1","tokensBefore":5,"systemMessage":{"role":"system","content":"","toolsAdded":5}"#,
        "tokens throws, send throws | system / compactionSummary / user / assistant",
    ),
    (
        "system-section",
        r#"x compaction "summary":"S","firstKeptEntryId":"u1","tokensBefore":5,"systemMessage":{"role":"system","content":"c","sections":{"a":5},"timestamp":1}"#,
        "tokens NaN | system: c / user: (summary) S / user: hello / assistant: answer",
    ),
    (
        "compaction-role",
        r#"x compaction "summary":"S","firstKeptEntryId":"u1","tokensBefore":5,"systemMessage":{"role":"user","content":"c","timestamp":1}"#,
        "| user: c / user: (summary) S / user: hello / assistant: answer",
    ),
    (
        "compaction-role",
        r#"x compaction "summary":"S","firstKeptEntryId":"u1","tokensBefore":5,"systemMessage":"c""#,
        "| user: (summary) S / user: hello / assistant: answer",
    ),
    (
        "bad-usage",
        r#"x compaction "summary":"S","firstKeptEntryId":"u1","tokensBefore":5,"usage":{}"#,
        "footer throws | user: (summary) S / user: hello / assistant: answer",
    ),
    (
        "compaction-twice",
        "x compaction \"summary\":\"first\",\"firstKeptEntryId\":\"u1\",\"tokensBefore\":5\nc custom \"customType\":\"t\"\ny compaction \"summary\":\"second\",\"firstKeptEntryId\":\"u1\",\"tokensBefore\":5",
        "| user: (summary) second / user: hello / assistant: answer",
    ),
    ("branch-summary-text", r#"x branch_summary "fromId":"u1""#, "tree throws | user: hello / assistant: answer"),
    (
        "branch-summary-text",
        r#"x branch_summary "fromId":"u1","summary":5"#,
        "tokens NaN, tree throws | user: hello / assistant: answer / user: (branch) 5",
    ),
    ("empty-branch-summary", r#"x branch_summary "fromId":"u1","summary":"""#, "| user: hello / assistant: answer"),
    (
        "unknown-origin",
        r#"x branch_summary "fromId":"nobody","summary":"S""#,
        "| user: hello / assistant: answer / user: (branch) S",
    ),
];

const EDITS: &[Scene] = &[
    (
        "no-replacement",
        r#"x context_edit "targetId":"u1""#,
        "context throws, tokens throws, plan throws, send throws, chat throws |",
    ),
    (
        "replacement-content",
        r#"x context_edit "targetId":"u1","replacement":{}"#,
        "tokens throws, plan throws | assistant: answer",
    ),
    (
        "replacement-content",
        r#"x context_edit "targetId":"a1","replacement":{"content":5}"#,
        "tokens throws, plan throws, send throws, chat throws | user / assistant",
    ),
    (
        "replacement-content",
        r#"x context_edit "targetId":"u1","replacement":"text""#,
        "tokens throws, plan throws | assistant: answer",
    ),
    (
        "null-block",
        r#"x context_edit "targetId":"u1","replacement":{"content":[null]}"#,
        "tokens throws, plan throws, send throws | user / assistant",
    ),
    (
        "text-block",
        r#"x context_edit "targetId":"u1","replacement":{"content":[{"type":"text"}]}"#,
        "send throws | user / assistant",
    ),
    ("unknown-target", r#"x context_edit "targetId":"nobody","replacement":null"#, "| user: hello / assistant: answer"),
    ("unknown-target", r#"x context_edit "replacement":null"#, "| user: hello / assistant: answer"),
    (
        "target-off-path",
        "o<u1 message \"role\":\"user\",\"content\":\"aside\"\nx<a1 context_edit \"targetId\":\"o\",\"replacement\":null",
        "| user: hello / assistant: answer",
    ),
    (
        "target-hidden",
        "k compaction \"summary\":\"S\",\"firstKeptEntryId\":\"a1\",\"tokensBefore\":5\nx context_edit \"targetId\":\"u1\",\"replacement\":{\"content\":\"hidden\"}",
        "| user: (summary) S / assistant: answer",
    ),
    (
        "target-silent",
        "c custom \"customType\":\"t\"\nx context_edit \"targetId\":\"c\",\"replacement\":null",
        "| user: hello / assistant: answer",
    ),
    (
        "target-silent",
        "b branch_summary \"fromId\":\"u1\",\"summary\":\"S\"\nx context_edit \"targetId\":\"b\",\"replacement\":{\"content\":\"other\"}",
        "| user: hello / assistant: answer / user: (branch) S",
    ),
    (
        "target-unfit",
        "b branch_summary \"fromId\":\"u1\",\"summary\":\"S\"\nx context_edit \"targetId\":\"b\",\"replacement\":null",
        "| user: hello / assistant: answer",
    ),
    (
        "edit-text",
        r#"x context_edit "targetId":"a1","replacement":{"content":"other words"}"#,
        "| user: hello / assistant: other words",
    ),
];

const SMALL: &[Scene] = &[
    ("model-change", r#"x model_change "provider":"p""#, "| user: hello / assistant: answer"),
    ("level-change", "x thinking_level_change", "| user: hello / assistant: answer"),
    (
        "bad-usage",
        r#"x usage "kind":"k","provider":"p","model":"m""#,
        "footer throws | user: hello / assistant: answer",
    ),
    ("unknown-labelled", r#"x label "targetId":"nobody","label":"L""#, "| user: hello / assistant: answer"),
    ("label-text", r#"x label "targetId":"u1","label":5"#, "| user: hello / assistant: answer"),
    ("name-text", r#"x session_info "name":5"#, "list missing, name throws | user: hello / assistant: answer"),
    (
        "name-text",
        "x session_info \"name\":5\ny session_info \"name\":\"good\"",
        "list missing | user: hello / assistant: answer",
    ),
];

const CALLS: &[Scene] = &[
    (
        "call-open",
        r#"x message "role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{}}],$by"#,
        "| user: hello / assistant: answer / assistant: call c / tool: No result provided",
    ),
    (
        "call-alone",
        "x message \"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"read\",\"arguments\":{}}],$by\ny message \"role\":\"user\",\"content\":\"go on\"",
        "| user: hello / assistant: answer / assistant: call c / tool: No result provided / user: go on",
    ),
    (
        "result-alone",
        r#"x message "role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"lost"}],"isError":false"#,
        "| user: hello / assistant: answer / tool: lost",
    ),
    (
        "call-alone result-alone",
        "x message \"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"read\",\"arguments\":{}}],$by\ny custom_message \"customType\":\"t\",\"content\":\"between\",\"display\":true\nz message \"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"read\",\"content\":[{\"type\":\"text\",\"text\":\"late\"}],\"isError\":false",
        "| user: hello / assistant: answer / assistant: call c / tool: No result provided / user: between / tool: late",
    ),
    (
        "result-alone",
        "x message \"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"read\",\"arguments\":{}}],$by\ny message \"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"read\",\"content\":[{\"type\":\"text\",\"text\":\"kept\"}],\"isError\":false\nz compaction \"summary\":\"S\",\"firstKeptEntryId\":\"y\",\"tokensBefore\":5",
        "| user: (summary) S / tool: kept",
    ),
];

const GRAFTS: &[Scene] = &[
    ("receipt-unread", r#"x custom "customType":"pi-graft.run","data":5"#, "| user: hello / assistant: answer"),
    (
        "receipt-incomplete",
        "x custom \"customType\":\"pi-graft.run\",\"data\":{\"batch\":\"b\",\"plugin\":\"p\",\"handler\":\"on-entry\",\"trigger\":\"a1\",\"entries\":2}\ny custom \"customType\":\"t\"\nz message \"role\":\"user\",\"content\":\"more\"",
        "| user: hello / assistant: answer / user: more",
    ),
];
