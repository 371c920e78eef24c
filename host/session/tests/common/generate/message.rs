//! Messages of every role.

use super::{Hint, Maker};

impl Maker {
    /// A message entry's fields: mostly what follows in a conversation, sometimes anything.
    pub fn message(&mut self, parent: Option<usize>) -> (Hint, String) {
        let after = parent.map(|place| self.made[place].kind);
        let (kind, message) = match (after, self.rng.below(20)) {
            (_, 0) => (Hint::System, self.system_message()),
            (_, 1) => (Hint::User, self.other_role()),
            (_, 2) => (Hint::User, self.bash()),
            (Some(Hint::Calls), 3..17) => (Hint::Results, self.tool_result()),
            (Some(Hint::User | Hint::Results | Hint::Label), 3..16) => (Hint::Calls, self.assistant()),
            (_, 3..6) => (Hint::Calls, self.assistant()),
            (_, 6) => (Hint::Results, self.tool_result()),
            _ => (Hint::User, self.user()),
        };
        (kind, format!(r#""type":"message","message":{message}"#))
    }

    fn stamp(&mut self) -> String {
        match self.oddly() {
            true => String::new(),
            false => format!(r#","timestamp":{}"#, self.clock),
        }
    }

    fn user(&mut self) -> String {
        let content = self.content();
        format!(r#"{{"role":"user"{content}{}}}"#, self.stamp())
    }

    /// Text, blocks, null or nothing.
    fn content(&mut self) -> String {
        match self.rng.below(10) {
            _ if self.oddly() => self.rng.pick(&["", r#","content":null"#]).to_owned(),
            0..5 => format!(r#","content":{}"#, self.rng.text()),
            _ => format!(r#","content":{}"#, self.blocks(false)),
        }
    }

    /// A list of blocks; an assistant's hold thoughts and calls.
    pub fn blocks(&mut self, assistant: bool) -> String {
        let blocks: Vec<_> = (0..self.rng.below(4)).map(|_| self.block(assistant)).collect();
        format!("[{}]", blocks.join(","))
    }

    fn block(&mut self, assistant: bool) -> String {
        match self.rng.below(10) {
            0 => r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#.to_owned(),
            1 => format!(r#"{{"type":"novel","text":{}}}"#, self.rng.string(5)),
            2 | 3 if assistant => {
                format!(r#"{{"type":"thinking","thinking":{},"thinkingSignature":"s"}}"#, self.rng.text())
            }
            4..9 if assistant => self.tool_call(),
            _ => format!(r#"{{"type":"text","text":{}}}"#, self.rng.text()),
        }
    }

    fn tool_call(&mut self) -> String {
        let name = self.rng.pick(&["read", "write", "edit", "bash", "grep"]);
        let arguments = self.arguments();
        format!(r#"{{"type":"toolCall","id":"call_{}","name":"{name}","arguments":{arguments}}}"#, self.rng.below(50))
    }

    fn arguments(&mut self) -> String {
        match self.rng.below(4) {
            0 => self.rng.object(3),
            1 => format!(r#"{{"path":{}}}"#, self.rng.string(6)),
            _ => format!(
                r#"{{"path":"src/{}.rs","limit":{}}}"#,
                self.rng.pick(&["a", "b", "c", "é", "\\ud83d\\ude00", "\u{ffee}"]),
                self.rng.value(0)
            ),
        }
    }

    pub fn assistant(&mut self) -> String {
        let content = match self.oddly() {
            true => self.rng.pick(&["", r#","content":null"#]).to_owned(),
            false => format!(r#","content":{}"#, self.blocks(true)),
        };
        let stop = self.rng.pick(&["stop", "toolUse", "toolUse", "error", "aborted", "length", "deferred"]);
        let usage = if self.rng.per_mille(600) { format!(r#","usage":{}"#, self.usage()) } else { String::new() };
        let model =
            self.rng.pick(&[r#","provider":"p","model":"m""#, r#","provider":"q","model":"n""#, r#","api":"x""#]);
        format!(r#"{{"role":"assistant"{content}{model}{usage},"stopReason":"{stop}"{}}}"#, self.stamp())
    }

    pub fn usage(&mut self) -> String {
        let n = self.rng.pick(&[0, 3, 900, 50_000]);
        let [input, output, cached] = [self.rng.below(n), self.rng.below(n), self.rng.below(n)];
        let total = match self.rng.below(4) {
            0 => String::new(),
            1 => r#","totalTokens":0"#.to_owned(),
            _ => format!(r#","totalTokens":{}"#, input + output + cached),
        };
        let odd = if self.oddly() {
            self.rng.pick(&["", r#","totalTokens":null"#, r#","totalTokens":1.5"#, r#","totalTokens":-5"#])
        } else {
            ""
        };
        format!(
            r#"{{"input":{input},"output":{output},"cacheRead":{cached},"cacheWrite":0{total}{odd},"cost":{{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}}}}"#
        )
    }

    fn tool_result(&mut self) -> String {
        let content = self.content();
        let nested = match self.rng.below(8) {
            0 => format!(
                r#","nestedCalls":{{"calls":[{{"id":"n","name":"{}","arguments":{}}}],"complete":true}}"#,
                self.rng.pick(&["read", "edit"]),
                self.arguments()
            ),
            1 => r#","nestedCalls":{"complete":false}"#.to_owned(),
            _ => String::new(),
        };
        let usage = if self.rng.per_mille(100) { format!(r#","usage":{}"#, self.usage()) } else { String::new() };
        format!(
            r#"{{"role":"toolResult","toolCallId":"call_1","toolName":"read"{content},"isError":false{nested}{usage}{}}}"#,
            self.stamp()
        )
    }

    fn bash(&mut self) -> String {
        format!(
            r#"{{"role":"bashExecution","command":{},"output":{},"exitCode":0{}}}"#,
            self.rng.text(),
            self.rng.text(),
            self.stamp()
        )
    }

    pub fn system_message(&mut self) -> String {
        let content = match self.rng.below(6) {
            0 => r#","content":null"#.to_owned(),
            1 if self.oddly() => String::new(),
            2 => r#","content":"""#.to_owned(),
            _ => self.content_given(),
        };
        let sections = if self.rng.per_mille(500) { self.sections() } else { String::new() };
        let added = if self.rng.per_mille(400) { self.tools() } else { String::new() };
        let removed = if self.rng.per_mille(300) { r#","toolsRemoved":[{"name":"read"}]"# } else { "" };
        format!(r#"{{"role":"system"{content}{sections}{added}{removed}{}}}"#, self.stamp())
    }

    fn content_given(&mut self) -> String {
        match self.rng.below(3) {
            0 => format!(r#","content":{}"#, self.blocks(false)),
            _ => format!(r#","content":{}"#, self.rng.text()),
        }
    }

    fn sections(&mut self) -> String {
        let members: Vec<_> = (0..self.rng.below(4)).map(|_| self.section()).collect();
        format!(r#","sections":{{{}}}"#, members.join(","))
    }

    fn section(&mut self) -> String {
        let name = self.rng.pick(&["cwd", "tools", "10", "2", "guide", "__proto__", "\\u0063wd"]);
        match self.rng.below(4) {
            0 => format!(r#""{name}":null"#),
            1 => format!(r#""{name}":"""#),
            _ => format!(r#""{name}":{}"#, self.rng.text()),
        }
    }

    fn tools(&mut self) -> String {
        let tools: Vec<_> = (0..self.rng.below(4)).map(|_| self.tool()).collect();
        format!(r#","toolsAdded":[{}]"#, tools.join(","))
    }

    fn tool(&mut self) -> String {
        let name = self.rng.pick(&["read", "write", "bash", "r\\u0065ad"]);
        format!(r#"{{"name":"{name}","description":{},"parameters":{}}}"#, self.rng.string(20), self.rng.object(3))
    }

    fn other_role(&mut self) -> String {
        let content = self.content_given();
        match self.rng.below(6) {
            0 => format!(r#"{{"role":"custom","customType":"c"{content},"display":true{}}}"#, self.stamp()),
            1 => format!(r#"{{"role":"hookMessage","customType":"c"{content},"display":true{}}}"#, self.stamp()),
            2 => format!(r#"{{"role":"branchSummary","summary":{},"fromId":"x"{}}}"#, self.rng.text(), self.stamp()),
            3 => format!(
                r#"{{"role":"compactionSummary","summary":{},"tokensBefore":5{}}}"#,
                self.rng.text(),
                self.stamp()
            ),
            4 => format!(r#"{{"role":"novel"{content}}}"#),
            _ => format!(r#"{{"sender":"nobody"{content}}}"#),
        }
    }
}
