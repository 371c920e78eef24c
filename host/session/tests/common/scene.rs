//! Sessions drawn as text, an entry a line: its id, what it is, and after a colon what it says.
//!
//! ```text
//! u1 user: read a and b
//! a1 assistant calls c1 c2: I shall
//! r1 result c1: the text of a
//! r2 result c2: the text of b
//! m1 message: a note to the model
//! x1 custom: a plugin's state
//! e1 edit u1: other words        (or: e1 omit u1)
//! k1 compaction u1: a summary    (keeps from u1 on; without an id, none)
//! s1 system: the prompt          t1 thinking high      b1 bash: ls
//! ```
//!
//! An entry hangs on the one before it, or, written `id<parent`, on another.

use std::fmt::Write as _;
use std::sync::Arc;

use pi_session::branch::{Branch, Origin};
use pi_session::compose::{Composed, Stale, compose};
use pi_session::draft::Draft;
use pi_session::json::quoted;
use pi_session::receipt::Receipt;
use pi_session::refusal::Refusal;
use pi_session::tree::{Leaf, Source, Status, Tree};
use pi_session::validate::{Accepted, DraftLimits, Judge};

/// The time of every scene's composing, behind all its entries.
pub const NOW_MS: i64 = 1_767_229_200_000;

/// A session file.
#[derive(Clone)]
pub struct Scene {
    pub text: String,
}

impl Scene {
    /// The session that `drawing` shows.
    pub fn new(drawing: &str) -> Scene {
        let header = r#"{"type":"session","version":3,"id":"scene","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
        let (mut text, mut parent) = (format!("{header}\n"), None);
        let lines = drawing.lines().map(str::trim).filter(|line| !line.is_empty());
        for (second, line) in lines.enumerate() {
            let entry = Drawn::of(line, parent);
            writeln!(text, "{}", entry.json(second)).expect("a string takes all");
            parent = Some(entry.id);
        }
        Scene { text }
    }

    /// The branch that the file ends in.
    pub fn branch(&self) -> Branch {
        let tree = Arc::new(Tree::from_bytes(self.text.as_bytes()));
        Branch::of_leaf(&tree, self.source()).expect("a scene has no cycle")
    }

    /// The same, where it may be none: no session, no entry at the end, a cycle.
    pub fn try_branch(&self) -> Option<Branch> {
        let tree = Arc::new(Tree::from_bytes(self.text.as_bytes()));
        let has_leaf = tree.status() == Status::Session && tree.leaf() != Leaf::NoId;
        has_leaf.then(|| Branch::of_leaf(&tree, self.source()).ok()).flatten()
    }

    /// The branch that ends in the entry with this id.
    pub fn branch_at(&self, leaf: &str) -> Branch {
        let tree = Arc::new(Tree::from_bytes(self.text.as_bytes()));
        let leaf = tree.by_id(leaf).expect("the scene has this entry");
        Branch::at(&tree, self.source(), Some(leaf)).expect("a scene has no cycle")
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::new(self.text.clone().into_bytes())
    }

    /// The same session with more lines drawn behind its last entry.
    pub fn and(&self, drawing: &str) -> Scene {
        let last = self.branch().leaf_id().map(str::to_owned);
        let mut text = self.text.clone();
        let mut parent = last.as_deref();
        for (second, line) in drawing.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
            let entry = Drawn::of(line, parent);
            writeln!(text, "{}", entry.json(30 + second)).expect("a string takes all");
            parent = Some(entry.id);
        }
        Scene { text }
    }

    /// The same session with what was composed written to it.
    pub fn with(&self, composed: &Composed) -> Scene {
        let lines = String::from_utf8(composed.bytes()).expect("lines are UTF-8");
        Scene { text: format!("{}{lines}", self.text) }
    }

    /// A judge on the branch that the file ends in, nothing pending.
    pub fn judge(&self) -> Judge {
        Judge::new(self.branch(), DraftLimits::default(), Origin::default())
    }

    /// What a run that proposes all of `drafts`, the edits as one list, has accepted.
    pub fn accept(&self, drafts: &[Draft]) -> Accepted {
        let mut judge = self.judge();
        let (edits, others): (Vec<_>, Vec<_>) =
            drafts.iter().cloned().partition(|draft| matches!(draft, Draft::ContextEdit { .. }));
        for answer in judge.edits(edits) {
            answer.expect("the edit may stand");
        }
        for draft in others {
            judge.propose(draft).expect("the draft may stand");
        }
        judge.finish()
    }

    /// Composes on the branch that the file ends in, with ids 00000001, 00000002 and so on.
    pub fn compose(&self, accepted: &Accepted, receipt: Option<&Receipt>) -> Result<Composed, Stale> {
        compose(&self.branch(), accepted, receipt, NOW_MS, &mut counter())
    }

    /// Roles and texts of the model context, a message a line; an image shows as its type.
    pub fn context(&self) -> String {
        context_of(&self.branch())
    }
}

/// Roles and texts of a branch's model context, a message a line.
pub fn context_of(branch: &Branch) -> String {
    let messages = branch.context().entries.iter().flat_map(|e| branch.messages(e).expect("memory reads")).collect();
    let messages: Vec<String> = messages;
    messages.iter().map(|message| said(message)).collect::<Vec<_>>().join("\n")
}

fn said(message: &str) -> String {
    use pi_session::json::{Json, Kind};
    let message = Json::parse(message.as_bytes()).expect("a message is JSON");
    let text = |of: Json<'_>, key| of.get(key).and_then(Json::as_str).map(|text| text.into_owned());
    let content = message.get("content").or(message.get("summary")).expect("a message says something");
    let parts: Vec<String> = match content.kind() {
        Kind::Array => content
            .items()
            .map(|block| text(block, "text").or(text(block, "id")).or(text(block, "type")).unwrap_or_default())
            .collect(),
        _ => vec![content.as_str().unwrap_or_default().into_owned()],
    };
    format!("{}: {}", text(message, "role").unwrap_or_default(), parts.join(" "))
}

/// Ids that count up.
pub fn counter() -> impl FnMut() -> [u8; 16] {
    let mut count = 0u32;
    move || {
        count += 1;
        let mut random = [0; 16];
        random[..4].copy_from_slice(&count.to_be_bytes());
        random
    }
}

/// One line of a drawing.
struct Drawn<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    kind: &'a str,
    names: Vec<&'a str>,
    says: &'a str,
}

impl<'a> Drawn<'a> {
    fn of(line: &'a str, parent: Option<&'a str>) -> Drawn<'a> {
        let (head, says) = line.split_once(':').map_or((line, ""), |(head, says)| (head, says.trim()));
        let mut words = head.split_whitespace();
        let id = words.next().expect("a line begins with an id");
        let (id, parent) = id.split_once('<').map_or((id, parent), |(id, parent)| (id, Some(parent)));
        let kind = words.next().expect("behind the id stands what it is");
        Drawn { id, parent, kind, names: words.filter(|word| *word != "calls").collect(), says }
    }

    fn json(&self, second: usize) -> String {
        let (kind, rest) = self.fields();
        let (id, parent) = (quoted(self.id), self.parent.map_or("null".into(), quoted));
        let time = format!("2026-01-01T00:{:02}:{:02}.000Z", second / 60, second % 60);
        format!(r#"{{"type":"{kind}","id":{id},"parentId":{parent},"timestamp":"{time}",{rest}}}"#)
    }

    /// Its type, and the fields of it.
    fn fields(&self) -> (&'static str, String) {
        let (says, first) = (quoted(self.says), self.names.first());
        let block = format!(r#"{{"type":"text","text":{says}}}"#);
        match self.kind {
            "user" => message(&format!(r#""role":"user","content":{says}"#)),
            "system" => message(&format!(r#""role":"system","content":{says}"#)),
            "bash" => message(&format!(r#""role":"bashExecution","command":{says},"output":"","exitCode":0"#)),
            "assistant" => message(&self.assistant(&block)),
            "result" => {
                let call = quoted(first.expect("a result says of which call"));
                message(&format!(
                    r#""role":"toolResult","toolCallId":{call},"toolName":"read","content":[{block}],"isError":false"#
                ))
            }
            "message" => ("custom_message", format!(r#""customType":"scene","content":{says},"display":true"#)),
            "custom" => ("custom", format!(r#""customType":"scene","data":{says}"#)),
            "thinking" => ("thinking_level_change", format!(r#""thinkingLevel":"{}""#, self.names[0])),
            "omit" => ("context_edit", format!(r#""targetId":"{}","replacement":null"#, self.names[0])),
            "edit" => ("context_edit", format!(r#""targetId":"{}","replacement":{{"content":{says}}}"#, self.names[0])),
            "compaction" => {
                let kept = quoted(first.copied().unwrap_or(self.id));
                ("compaction", format!(r#""summary":{says},"firstKeptEntryId":{kept},"tokensBefore":1"#))
            }
            other => panic!("no scene has a {other:?}"),
        }
    }

    fn assistant(&self, block: &str) -> String {
        let call = |id: &&str| format!(r#",{{"type":"toolCall","id":{},"name":"read","arguments":{{}}}}"#, quoted(id));
        let calls: String = self.names.iter().map(call).collect();
        let stop = if calls.is_empty() { "stop" } else { "toolUse" };
        let usage = r#""usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0}}"#;
        let model = format!(r#""api":"a","provider":"p","model":"m",{usage}"#);
        format!(r#""role":"assistant","content":[{block}{calls}],{model},"stopReason":"{stop}""#)
    }
}

fn message(fields: &str) -> (&'static str, String) {
    ("message", format!(r#""message":{{{fields},"timestamp":1767225600000}}"#))
}

/// A draft from its JSON.
pub fn draft(json: &str) -> Draft {
    Draft::from_json(json).expect("the draft is well formed")
}

/// A draft that omits an entry.
pub fn omit(target: &str) -> Draft {
    Draft::context_edit(target, None).expect("the edit is well formed")
}

/// A draft that gives an entry other content, as JSON.
pub fn replace(target: &str, content: &str) -> Draft {
    Draft::context_edit(target, Some(&format!("{{\"content\":{content}}}"))).expect("the edit is well formed")
}

/// A draft of a compaction that keeps from `first_kept` on.
pub fn compaction(first_kept: Option<&str>) -> Draft {
    Draft::compaction("what was before", first_kept, None, None).expect("the compaction is well formed")
}

/// A draft of a message.
pub fn message_draft(text: &str) -> Draft {
    Draft::custom_message("test", &quoted(text), true, None).expect("the message is well formed")
}

/// Holds that a refusal names this rule and speaks of `word`.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>, rule: &str, word: &str) {
    let refusal = answer.expect_err("this must be refused");
    assert_eq!(refusal.rule.as_str(), rule, "{refusal}");
    assert!(refusal.message.contains(word), "{refusal} does not speak of {word:?}");
}
