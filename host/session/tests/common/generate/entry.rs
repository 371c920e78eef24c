//! Entries: a random place in the tree, a random type, random fields.

use super::value::bytes_of;
use super::{Hint, Made, Maker};

impl Maker {
    /// One more entry.
    pub fn entry(&mut self) {
        let parent = self.parent();
        let (hint, fields) = self.fields(parent);
        self.add(parent, hint, &fields);
    }

    fn add(&mut self, parent: Option<usize>, kind: Hint, fields: &str) {
        let id = self.fresh_id();
        let head = self.head(&id, parent);
        let fields = fields.replace('\u{e001}', &id);
        let text = match self.rng.below(4) {
            0 => format!("{{{fields},{head}}}"),
            _ => format!("{{{head},{fields}}}"),
        };
        let text = self.padded(text);
        let bytes = bytes_of(&text, &mut self.rng);
        self.line(&bytes);
        self.leaf = Some(self.made.len());
        self.made.push(Made { id, parent, kind });
    }

    /// A prompt and attempts at an answer that failed and were left out, as Pi's recovery leaves them; now and then with
    /// other edits among them.
    pub fn recovery(&mut self) {
        let prompt = format!(r#""type":"message","message":{{"role":"user","content":{}}}"#, self.rng.string(300));
        self.add(self.leaf, Hint::User, &prompt);
        for _ in 0..=self.rng.below(2) {
            let attempt = format!(r#""type":"message","message":{}"#, self.assistant());
            self.add(self.leaf, Hint::Calls, &attempt);
            let id = self.made[self.made.len() - 1].id.clone();
            self.beside_recovery(&id);
            self.add(self.leaf, Hint::Label, &format!(r#""type":"context_edit","targetId":{id},"replacement":null"#));
            self.beside_recovery(&id);
        }
    }

    /// What may stand among the attempts: state, an edit of an attempt, an edit of something else.
    fn beside_recovery(&mut self, attempt: &str) {
        let fields = match self.rng.below(12) {
            0 => self.custom(),
            1 => format!(r#""type":"context_edit","targetId":{attempt},"replacement":{{"content":"x"}}"#),
            2 => {
                let target = self.some_id(self.leaf);
                format!(r#""type":"context_edit","targetId":{target},"replacement":{{"content":"x"}}"#)
            }
            3 => format!(r#""type":"context_edit","targetId":{},"replacement":null"#, self.some_id(self.leaf)),
            _ => return,
        };
        self.add(self.leaf, Hint::Label, &fields);
    }

    /// White space around the JSON is allowed (S2.1).
    fn padded(&mut self, text: String) -> String {
        if self.oddly() { format!(" \t{text} \r") } else { text }
    }

    /// Where the next entry hangs: mostly on the last one.
    fn parent(&mut self) -> Option<usize> {
        match self.rng.below(100) {
            0 => None,
            1..8 if !self.made.is_empty() => Some(self.rng.below(self.made.len() as u32) as usize),
            _ => self.leaf,
        }
    }

    fn fresh_id(&mut self) -> String {
        if self.oddly() && self.rng.per_mille(300) && !self.made.is_empty() {
            let twin = self.rng.below(self.made.len() as u32) as usize;
            return self.made[twin].id.clone();
        }
        match self.oddly() {
            true => format!("\"odd \\u00e9 {}\"", self.made.len()),
            false => format!("\"{:08x}\"", self.rng.next() as u32),
        }
    }

    /// Id, parent and time.
    fn head(&mut self, id: &str, parent: Option<usize>) -> String {
        let time = self.timestamp();
        if self.version == 1 {
            return format!(r#""timestamp":{time}"#);
        }
        let parent = match parent {
            _ if self.oddly() => self.rng.pick(&["null", "\"\"", "\"nobody\"", "7", "false"]).to_owned(),
            None => "null".to_owned(),
            Some(place) => self.made[place].id.clone(),
        };
        match self.oddly() && self.rng.per_mille(200) {
            true => format!(r#""id":{id},"timestamp":{time}"#),
            false => format!(r#""id":{id},"parentId":{parent},"timestamp":{time}"#),
        }
    }

    fn fields(&mut self, parent: Option<usize>) -> (Hint, String) {
        match self.rng.below(100) {
            0..55 => self.message(parent),
            55..63 => self.edit(parent),
            63..68 => self.compaction(parent),
            68..73 => (Hint::Note, self.custom_message()),
            73..77 => (Hint::Summary, self.branch_summary()),
            77..82 => (Hint::Label, self.label()),
            82..86 => (Hint::Label, self.custom()),
            86..90 => (Hint::Label, self.settings()),
            90..94 => (Hint::Label, self.session_info()),
            94..97 => (Hint::Label, self.usage_entry()),
            _ => (Hint::Label, self.unknown()),
        }
    }

    /// The path that ends in this entry, newest first.
    fn path(&self, leaf: Option<usize>) -> Vec<usize> {
        std::iter::successors(leaf, |place| self.made[*place].parent).collect()
    }

    /// The id of some entry: mostly a near one on the path, sometimes any, sometimes nobody's.
    fn some_id(&mut self, leaf: Option<usize>) -> String {
        let path = self.path(leaf);
        let any = self.made.len() as u32;
        match self.rng.below(20) {
            0 => "\"nobody\"".to_owned(),
            1 if any > 0 => self.made[self.rng.below(any) as usize].id.clone(),
            2..8 if !path.is_empty() => self.made[self.rng.pick(&path)].id.clone(),
            _ if !path.is_empty() => {
                let near = path.len().min(8) as u32;
                self.made[path[self.rng.below(near) as usize]].id.clone()
            }
            _ => "\"nobody\"".to_owned(),
        }
    }

    fn edit(&mut self, parent: Option<usize>) -> (Hint, String) {
        let target = self.edit_target(parent);
        let replacement = match self.rng.below(5) {
            0 | 1 => "null".to_owned(),
            2 => format!(r#"{{"content":{}}}"#, self.rng.text()),
            3 => format!(r#"{{"content":{}}}"#, self.blocks(false)),
            _ => format!(r#"{{"content":{},"more":{}}}"#, self.blocks(true), self.rng.value(2)),
        };
        let fields = match self.oddly() && self.rng.per_mille(200) {
            true => format!(r#""type":"context_edit","targetId":{target}"#),
            false => format!(r#""type":"context_edit","targetId":{target},"replacement":{replacement}"#),
        };
        (Hint::Label, fields)
    }

    /// Often an assistant's message that failed, as Pi's own recovery leaves it out.
    fn edit_target(&mut self, parent: Option<usize>) -> String {
        let calls = self.path(parent).into_iter().find(|place| self.made[*place].kind == Hint::Calls);
        match calls {
            Some(place) if self.rng.per_mille(400) => self.made[place].id.clone(),
            _ => self.some_id(parent),
        }
    }

    fn compaction(&mut self, parent: Option<usize>) -> (Hint, String) {
        let kept = self.kept(parent);
        let mut fields = vec![r#""type":"compaction""#.to_owned(), format!(r#""summary":{}"#, self.rng.text()), kept];
        fields.push(format!(r#""tokensBefore":{}"#, self.rng.below(200_000)));
        if self.rng.per_mille(500) {
            fields.push(format!(r#""systemMessage":{}"#, self.system_message()));
        }
        if self.rng.per_mille(500) {
            fields.push(r#""details":{"readFiles":["a.rs","z.rs"],"modifiedFiles":["m.rs"]}"#.to_owned());
        }
        if self.rng.per_mille(400) {
            fields.push(format!(r#""fromHook":{}"#, self.rng.pick(&["true", "false"])));
        }
        (Hint::Compaction, fields.join(","))
    }

    /// What is kept: all kinds of ids. `\u{e001}` becomes the entry's own.
    fn kept(&mut self, parent: Option<usize>) -> String {
        if self.version == 1 && self.rng.per_mille(800) {
            let end = self.lines as u32 + 3;
            let index = if self.oddly() {
                self.rng.pick(&["-1", "1.5", "1e9", "\"2\""]).to_owned()
            } else {
                self.rng.below(end).to_string()
            };
            return format!(r#""firstKeptEntryIndex":{index}"#);
        }
        match self.rng.below(20) {
            0 => r#""firstKeptEntryId":"nobody""#.to_owned(),
            1 => r#""firstKeptEntryId":null"#.to_owned(),
            2 => r#""other":1"#.to_owned(),
            3..6 => "\"firstKeptEntryId\":\u{e001}".to_owned(),
            _ => format!(r#""firstKeptEntryId":{}"#, self.some_id(parent)),
        }
    }

    fn custom_message(&mut self) -> String {
        let content = match self.rng.below(4) {
            0 => self.blocks(false),
            1 if self.oddly() => "null".to_owned(),
            _ => self.rng.text(),
        };
        let details =
            if self.rng.per_mille(300) { format!(r#","details":{}"#, self.rng.value(2)) } else { String::new() };
        let display = self.rng.pick(&[r#","display":true"#, r#","display":false"#, ""]);
        format!(r#""type":"custom_message","customType":"note","content":{content}{display}{details}"#)
    }

    fn branch_summary(&mut self) -> String {
        let summary = match self.rng.below(6) {
            0 => "\"\"".to_owned(),
            _ => self.rng.text(),
        };
        let from = self.some_id(self.leaf);
        let usage = if self.rng.per_mille(200) { format!(r#","usage":{}"#, self.usage()) } else { String::new() };
        format!(r#""type":"branch_summary","fromId":{from},"summary":{summary}{usage}"#)
    }

    fn label(&mut self) -> String {
        let target = self.some_id(self.leaf);
        match self.rng.below(5) {
            0 => format!(r#""type":"label","targetId":{target}"#),
            1 => format!(r#""type":"label","targetId":{target},"label":"""#),
            _ => format!(r#""type":"label","targetId":{target},"label":{}"#, self.rng.string(8)),
        }
    }

    fn custom(&mut self) -> String {
        format!(r#""type":"custom","customType":"state","data":{}"#, self.rng.value(3))
    }

    fn settings(&mut self) -> String {
        match self.rng.below(2) {
            0 => {
                format!(r#""type":"model_change","provider":{},"modelId":"m{}""#, self.rng.string(4), self.rng.below(9))
            }
            _ => format!(
                r#""type":"thinking_level_change","thinkingLevel":"{}""#,
                self.rng.pick(&["off", "low", "high"])
            ),
        }
    }

    fn session_info(&mut self) -> String {
        match self.rng.below(6) {
            0 => r#""type":"session_info","name":"""#.to_owned(),
            1 => r#""type":"session_info""#.to_owned(),
            2 => "\"type\":\"session_info\",\"name\":\" \u{feff}\\u00a0 padded \\n\"".to_owned(),
            3 => r#""type":"session_info","name":"  ""#.to_owned(),
            _ => format!(r#""type":"session_info","name":{}"#, self.rng.string(10)),
        }
    }

    fn usage_entry(&mut self) -> String {
        format!(r#""type":"usage","kind":"title","provider":"p","model":"m","usage":{}"#, self.usage())
    }

    fn unknown(&mut self) -> String {
        let value = self.rng.value(3);
        match self.rng.below(4) {
            0 => format!(r#""more":{value}"#),
            1 if self.version > 1 => format!(r#""type":{value}"#),
            _ => format!(r#""type":"from_the_future","payload":{value}"#),
        }
    }
}
