//! A session as people have them, made from a seed: requests with conditions, files read and edited, tests that fail and
//! then pass, decisions, open ends. What was put in is known, whatever words it was put in.
use std::collections::BTreeMap;
use std::fmt::Write;

use pi_graft_plugin::serde_json;

use crate::Wanted;

const AREAS: [&str; 8] = ["parser", "journal", "sandbox", "config", "watcher", "bridge", "replay", "deliver"];
const VERBS: [&str; 6] = ["open", "merge", "flush", "validate", "rotate", "compact"];
const CONDITIONS: [&str; 12] = [
    "You must not change the public API of crates/{a}/src/lib.rs.",
    "Never write outside of target/{a}-out.",
    "Please leave the file fixtures/{a}.bin alone.",
    "Use thiserror for the errors of {a}_{v}.",
    "Prefer small functions, and no unsafe in {a}.",
    "Don't add dependencies for {a}.",
    "Stick to the standard library in {v}_{a}.",
    "Always run cargo test -p {a} before you commit.",
    "The limit for {a} has to stay at 64 KiB.",
    "I'd like the log of {a} in JSON, one line each.",
    "Keep crates/{a}/README.md in step with what it does.",
    "Avoid allocation in {v}_{a}_fast.",
];
const REASONS: [&str; 4] = [
    "I decided on a ring buffer for {a} instead of a Vec, because the order matters.",
    "Going with {v}_{a}_v2: the old one holds the lock too long.",
    "We settled on BTreeMap in {a} so that the output is stable.",
    "I kept {v}_all as it was; the trade-off is one more copy.",
];
const LEFT: [&str; 4] = [
    "Next step: wire {v}_{a} into src/{a}/mod.rs.",
    "TODO: {a} has no test for an empty file yet.",
    "We still need to document {v}_{a}.",
    "- [ ] measure {v}_{a} on a large input",
];

/// A small generator of numbers.
pub struct Dice(pub u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("it fits") % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn say(&mut self, templates: &[&str]) -> String {
        let text = self.pick(templates);
        text.replace("{a}", self.pick(&AREAS)).replace("{v}", self.pick(&VERBS))
    }
}

/// A session in the making.
pub struct Made {
    /// Its entries, root first.
    pub lines: Vec<serde_json::Value>,
    /// What was put in, with the entry where it stands.
    pub planted: Vec<(usize, Wanted, String)>,
    dice: Dice,
    calls: usize,
    /// Errors that stand, by what fails: places in `planted`.
    failing: BTreeMap<String, Vec<usize>>,
}

/// A session of so many turns.
pub fn session(seed: u64, turns: usize) -> Made {
    let mut made =
        Made { lines: Vec::new(), planted: Vec::new(), dice: Dice(seed), calls: 0, failing: BTreeMap::new() };
    (0..turns).for_each(|turn| made.turn(turn));
    made
}

impl Made {
    fn put(&mut self, message: serde_json::Value) {
        let id = format!("{:08x}", self.lines.len() + 1);
        self.lines.push(serde_json::json!({ "type": "message", "id": id, "message": message }));
    }

    fn plant(&mut self, wanted: Wanted, text: String) -> String {
        self.planted.push((self.lines.len(), wanted, text.clone()));
        text
    }

    fn turn(&mut self, turn: usize) {
        let (area, verb) = (self.dice.pick(&AREAS), self.dice.pick(&VERBS));
        let mut request = format!("Add {verb}_{area} to src/{area}/{verb}.rs, it should handle case {turn}.");
        if self.dice.below(3) == 0 {
            let condition = self.dice.say(&CONDITIONS);
            let condition = self.plant(Wanted::Constraint, condition);
            write!(request, " {condition}").expect("text grows");
        }
        self.put(serde_json::json!({ "role": "user", "content": request }));
        let path = format!("src/{area}/{verb}.rs");
        self.plant(Wanted::Path, path.clone());
        self.tool("read", serde_json::json!({ "path": path }), &self.code(area, verb), false);
        for step in 0..self.dice.below(5) {
            self.work(&path, area, verb, step);
        }
        self.close(area, verb, turn);
    }

    /// An edit, and a test that may fail first.
    fn work(&mut self, path: &str, area: &str, verb: &str, step: usize) {
        let name = self.plant(Wanted::Identifier, format!("{verb}_{area}_{step}"));
        let says = if self.dice.below(3) == 0 { self.dice.say(&REASONS) } else { format!("Now `{name}`.") };
        let edit = serde_json::json!({ "path": path, "oldText": "x", "newText": self.code(area, verb) });
        self.said_tool(&says, "edit", edit, "Successfully replaced 1 block", false);
        let test = format!("cargo test -p {area} {name} 2>&1 | tail -20");
        if self.dice.below(3) == 0 {
            let error =
                format!("error[E0{}]: cannot find function `{name}` in module `{area}`", 300 + self.dice.below(90));
            let error = self.plant(Wanted::Error, error);
            // Of two errors of one command the newer one stands.
            self.settle(&test);
            self.failing.entry(test.clone()).or_default().push(self.planted.len() - 1);
            let output = format!(
                "   Compiling {area} v0.1.0\n{}\n{error}\n  --> {path}:{}:9\n",
                "warning: unused\n".repeat(30),
                step + 7
            );
            self.tool("bash", serde_json::json!({ "command": test }), &output, true);
            // Some are left for later.
            if self.dice.below(4) == 0 {
                return;
            }
        }
        self.settle(&test);
        let output = format!("{}test result: ok. {} passed; 0 failed", "test a::b ... ok\n".repeat(60), 10 + step);
        self.tool("bash", serde_json::json!({ "command": test }), &output, false);
    }

    fn settle(&mut self, test: &str) {
        for at in self.failing.remove(test).into_iter().flatten() {
            self.planted[at].1 = Wanted::Settled;
        }
    }

    fn close(&mut self, area: &str, verb: &str, turn: usize) {
        let mut text = format!("`{verb}_{area}` handles case {turn} now, with a test.");
        if self.dice.below(4) == 0 {
            let left = self.dice.say(&LEFT);
            let left = self.plant(Wanted::Open, left);
            write!(text, "\n\n{left}").expect("text grows");
        }
        let content = serde_json::json!([{ "type": "text", "text": text }]);
        self.put(serde_json::json!({ "role": "assistant", "stopReason": "stop", "content": content }));
    }

    fn tool(&mut self, tool: &str, arguments: serde_json::Value, output: &str, failed: bool) {
        self.said_tool("", tool, arguments, output, failed);
    }

    fn said_tool(&mut self, says: &str, tool: &str, arguments: serde_json::Value, output: &str, failed: bool) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let call = serde_json::json!({ "type": "toolCall", "id": id, "name": tool, "arguments": arguments });
        let content = serde_json::json!([{ "type": "text", "text": says }, call]);
        self.put(serde_json::json!({ "role": "assistant", "stopReason": "toolUse", "content": content }));
        let content = serde_json::json!([{ "type": "text", "text": output }]);
        self.put(serde_json::json!({
            "role": "toolResult", "toolCallId": id, "toolName": tool, "content": content, "isError": failed
        }));
    }

    fn code(&self, area: &str, verb: &str) -> String {
        let line = format!("fn {verb}_{area}(input: &[u8]) -> Result<(), Error> {{ todo(input) }}\n");
        line.repeat(40)
    }
}
