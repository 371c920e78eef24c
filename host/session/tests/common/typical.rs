//! A session as people have it, of any size: long tool results, a compaction now and then, a branch here and there.

use std::fmt::Write as _;

/// Words of which texts are made.
const WORDS: &[&str] = &[
    "const ",
    "let ",
    "return ",
    "function ",
    "import ",
    "error ",
    "value ",
    "result ",
    "async ",
    "\\n",
    "\\\"quoted\\\" ",
    "src/main.rs:17 ",
    "match ",
    "Option<T> ",
    "Some(x) ",
    "unwrap ",
    "\\t",
    "struct ",
    "self.tree ",
    "é ",
    "// why ",
];

/// A session of about this many bytes.
pub fn session(seed: u64, bytes: usize) -> Vec<u8> {
    let mut maker =
        Maker { out: String::with_capacity(bytes + 65_536), state: seed, count: 0, leaf: None, turns: Vec::new() };
    maker.out.push_str("{\"type\":\"session\",\"version\":3,\"id\":\"01a00000-0000-7000-8000-000000000000\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/home/dev/project\"}\n");
    maker.entry(r#""type":"model_change","provider":"mock","modelId":"mock-big""#);
    maker.system();
    while maker.out.len() < bytes {
        maker.turn();
    }
    maker.out.into_bytes()
}

struct Maker {
    out: String,
    state: u64,
    count: u32,
    leaf: Option<u32>,
    /// The first entries of the turns on the branch.
    turns: Vec<u32>,
}

impl Maker {
    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % end
    }

    /// JSON text of about this many bytes.
    fn text(&mut self, bytes: u64) -> String {
        let mut text = String::from("\"");
        while (text.len() as u64) < bytes {
            text.push_str(WORDS[self.below(WORDS.len() as u64) as usize]);
        }
        text.push('"');
        text
    }

    fn entry(&mut self, fields: &str) -> u32 {
        self.count += 1;
        let parent = self.leaf.map_or("null".to_owned(), |leaf| format!("\"{leaf:08x}\""));
        let (hour, minute, second) = (self.count / 3600 % 24, self.count / 60 % 60, self.count % 60);
        writeln!(
            self.out,
            r#"{{{fields},"id":"{:08x}","parentId":{parent},"timestamp":"2026-01-02T{hour:02}:{minute:02}:{second:02}.000Z"}}"#,
            self.count
        )
        .expect("a String takes all");
        self.leaf = Some(self.count);
        self.count
    }

    fn system(&mut self) {
        let text = self.text(3000);
        self.entry(&format!(r#""type":"message","message":{{"role":"system","content":"","sections":{{"preamble":{text}}},"timestamp":1767225600000}}"#));
    }

    fn turn(&mut self) {
        let length = 40 + self.below(800);
        let question = self.text(length);
        let first = self.entry(&format!(r#""type":"message","message":{{"role":"user","content":[{{"type":"text","text":{question}}}],"timestamp":1767225600000}}"#));
        self.turns.push(first);
        for _ in 0..self.below(9) {
            self.call_and_result();
        }
        let length = 100 + self.below(2000);
        let answer = self.text(length);
        self.assistant(&format!(r#"{{"type":"text","text":{answer}}}"#), "stop");
        match self.below(40) {
            0 => self.compaction(),
            1 if self.turns.len() > 20 => self.branch(),
            _ => {}
        }
    }

    fn call_and_result(&mut self) {
        let (length, call) = (80 + self.below(1500), self.count);
        let thought = self.text(length);
        let arguments = self.text(60);
        self.assistant(&format!(r#"{{"type":"thinking","thinking":{thought}}},{{"type":"toolCall","id":"call_{call}","name":"read","arguments":{{"path":"src/{}.rs","pattern":{arguments}}}}}"#, call % 50), "toolUse");
        let length = 200 << self.below(7);
        let result = self.text(length);
        self.entry(&format!(r#""type":"message","message":{{"role":"toolResult","toolCallId":"call_{call}","toolName":"read","content":[{{"type":"text","text":{result}}}],"isError":false,"timestamp":1767225600000}}"#));
    }

    fn assistant(&mut self, blocks: &str, stop: &str) {
        self.entry(&format!(r#""type":"message","message":{{"role":"assistant","content":[{blocks}],"api":"openai-completions","provider":"mock","model":"mock-big","usage":{{"input":2000,"output":300,"cacheRead":50000,"cacheWrite":0,"totalTokens":52300,"cost":{{"input":0.001,"output":0.002,"cacheRead":0.0001,"cacheWrite":0,"total":0.0031}}}},"stopReason":"{stop}","timestamp":1767225600000}}"#));
    }

    fn compaction(&mut self) {
        let kept = self.turns[self.turns.len().saturating_sub(4)];
        let summary = self.text(2500);
        self.entry(&format!(r#""type":"compaction","summary":{summary},"firstKeptEntryId":"{kept:08x}","tokensBefore":150000,"details":{{"readFiles":["src/1.rs"],"modifiedFiles":["src/2.rs"]}},"fromHook":false"#));
    }

    /// Goes back some turns and on from there.
    fn branch(&mut self) {
        let back = self.turns.len() - 2 - self.below(15) as usize;
        self.leaf = Some(self.turns[back]);
        self.turns.truncate(back + 1);
    }
}
