//! One list of calls, made on a [`Session`] of ours and told to the real Pi's session manager.

use pi_session::draft::Draft;
use pi_session::fork::NewSession;
use pi_session::json::quoted;
use pi_session::refusal::Refusal;
use pi_session::{BranchSummary, NewEntry, Session};

use super::generate::value::Rng;

/// The time at which everything happens, Unix milliseconds.
pub const NOW_MS: i64 = 1_767_225_600_000;
const USAGE: &str = r#"{"input":5,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":7,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}}"#;

/// Our session, and what is to be told to Pi.
pub struct Script {
    pub session: Session,
    /// A JSON array of calls for Pi, as far as they stood with us.
    calls: Vec<String>,
    /// What each of them gave: the id of an entry, or nothing.
    ids: Vec<Option<String>>,
    /// Calls of tools that were made so far.
    tool_calls: u32,
    random: Box<dyn FnMut() -> [u8; 16]>,
    /// Calls that were refused here.
    pub refused: u32,
}

impl Default for Script {
    fn default() -> Script {
        let new = NewSession { id: "made", now_ms: NOW_MS, cwd: "/work", parent_session: None };
        let session = Session::create(&new).expect("the id is one that Pi would take");
        let random = Box::new(super::scene::counter());
        Script { session, calls: Vec::new(), ids: Vec::new(), tool_calls: 0, random, refused: 0 }
    }
}

impl Script {
    /// The calls as a JSON array.
    pub fn calls(&self) -> String {
        format!("[{}]", self.calls.join(","))
    }

    /// The ids that were given, in order.
    pub fn ids(&self) -> Vec<&str> {
        self.ids.iter().flatten().map(String::as_str).collect()
    }

    /// Appends with us; what stands is told to Pi as a call of `method`, with its arguments as JSON.
    pub fn append(&mut self, entry: Result<NewEntry, Refusal>, method: &str, arguments: &[&str]) -> Option<String> {
        let entry = entry.expect("the scripts make well formed entries");
        let answer = self.session.append(entry, NOW_MS, &mut self.random);
        self.told(answer, method, arguments)
    }

    fn told(&mut self, answer: Result<String, Refusal>, method: &str, arguments: &[&str]) -> Option<String> {
        match &answer {
            Ok(_) => self.tell(answer.clone().ok(), method, arguments),
            Err(_) => self.refused += 1,
        }
        answer.ok()
    }

    fn tell(&mut self, id: Option<String>, method: &str, arguments: &[&str]) {
        let arguments: String = arguments.iter().map(|argument| format!(",{argument}")).collect();
        self.calls.push(format!("[\"{method}\"{arguments}]"));
        self.ids.push(id);
    }

    /// How the script names an entry that it made.
    fn name(&self, id: &str) -> String {
        let call = self.ids.iter().position(|known| known.as_deref() == Some(id)).expect("the script made it");
        format!("\"${call}\"")
    }

    pub fn message(&mut self, message: &str) -> Option<String> {
        self.append(NewEntry::message(message), "appendMessage", &[message])
    }

    pub fn user(&mut self, text: &str) -> Option<String> {
        let told = format!(r#"{{"role":"user","content":{},"timestamp":{NOW_MS}}}"#, quoted(text));
        self.append(Ok(NewEntry::user(text, NOW_MS)), "appendMessage", &[&told])
    }

    pub fn assistant(&mut self, text: &str, calls: u32) -> Option<String> {
        let mut blocks = format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
        for _ in 0..calls {
            self.tool_calls += 1;
            blocks += &format!(
                r#",{{"type":"toolCall","id":"call{}","name":"read","arguments":{{"path":"a.rs"}}}}"#,
                self.tool_calls
            );
        }
        let stop = if calls == 0 { "stop" } else { "toolUse" };
        self.message(&format!(
            r#"{{"role":"assistant","content":[{blocks}],"api":"a","provider":"p","model":"m","usage":{USAGE},"stopReason":"{stop}","timestamp":{NOW_MS}}}"#
        ))
    }

    /// The result of the call of this number, counted from 1.
    pub fn result(&mut self, call: u32, text: &str) -> Option<String> {
        let text = quoted(text);
        self.message(&format!(
            r#"{{"role":"toolResult","toolCallId":"call{call}","toolName":"read","content":[{{"type":"text","text":{text}}}],"isError":false,"timestamp":{NOW_MS}}}"#
        ))
    }

    pub fn compaction(&mut self, kept: Option<&str>, details: Option<&str>) -> Option<String> {
        let draft = Draft::compaction("what was before", kept, details, Some(USAGE));
        let kept = kept.map_or("\"$-\"".to_owned(), |id| self.name(id));
        let arguments = ["\"what was before\"", &kept, details.unwrap_or("\"$-\""), USAGE];
        self.append(draft.map(Into::into), "compaction", &arguments)
    }

    pub fn edit(&mut self, target: &str, replacement: Option<&str>) -> Option<String> {
        let target_name = self.name(target);
        let draft = Draft::context_edit(target, replacement).map(Into::into);
        self.append(draft, "appendContextEdit", &[&target_name, replacement.unwrap_or("null")])
    }

    pub fn custom(&mut self, data: Option<&str>) -> Option<String> {
        let draft = Draft::custom("test", data).map(Into::into);
        self.append(draft, "appendCustomEntry", &["\"test\"", data.unwrap_or("\"$-\"")])
    }

    pub fn custom_message(&mut self, text: &str, details: Option<&str>) -> Option<String> {
        let content = quoted(text);
        let draft = Draft::custom_message("test", &content, true, details).map(Into::into);
        let arguments = ["\"test\"", &content, "true", details.unwrap_or("\"$-\"")];
        self.append(draft, "appendCustomMessageEntry", &arguments)
    }

    pub fn label(&mut self, target: &str, label: Option<&str>) -> Option<String> {
        let (name, text) = (self.name(target), label.map_or("\"$-\"".to_owned(), quoted));
        self.append(Ok(NewEntry::label(target, label)), "appendLabelChange", &[&name, &text])
    }

    pub fn plain(&mut self, kind: u32, text: &str) -> Option<String> {
        let json = quoted(text);
        match kind {
            0 => self.append(NewEntry::model_change("p", text), "appendModelChange", &["\"p\"", &json]),
            1 => self.append(NewEntry::thinking_level(text), "appendThinkingLevelChange", &[&json]),
            2 => {
                let arguments = ["\"cache_warm\"", "\"p\"", "\"m\"", USAGE, &json];
                self.append(NewEntry::usage("cache_warm", "p", "m", USAGE, text), "appendUsage", &arguments)
            }
            _ => self.append(Ok(NewEntry::session_name(text)), "appendSessionInfo", &[&json]),
        }
    }

    pub fn branch_from(&mut self, id: &str) {
        self.session.branch_from(id).expect("the entry is there");
        let name = self.name(id);
        self.tell(None, "branch", &[&name]);
    }

    pub fn reset(&mut self) {
        self.session.reset();
        self.tell(None, "resetLeaf", &[]);
    }

    pub fn summarise(&mut self, to: Option<&str>, details: Option<&str>) -> Option<String> {
        let name = to.map_or("null".to_owned(), |id| self.name(id));
        let summary = BranchSummary::new("what was tried", details, Some(USAGE)).expect("well formed");
        let answer = self.session.branch_with_summary(to, &summary, NOW_MS, &mut self.random);
        let arguments = [&name, "\"what was tried\"", details.unwrap_or("\"$-\""), "true", USAGE];
        self.told(answer, "branchWithSummary", &arguments)
    }
}

/// A random script.
pub fn random(seed: u64) -> Script {
    let (mut script, mut rng) = (Script::default(), Rng::new(seed));
    script.plain(0, "m");
    script.plain(1, "high");
    script.user("the first");
    for _ in 0..rng.below(40) {
        step(&mut script, &mut rng);
    }
    script
}

fn step(script: &mut Script, rng: &mut Rng) {
    let any: Vec<String> = script.ids().iter().map(|id| (*id).to_owned()).collect();
    let entry = any[rng.below(any.len() as u32) as usize].clone();
    let on_branch = script.session.branch().expect("no cycle");
    let kept = (!on_branch.is_empty()).then(|| on_branch.item(rng.below(on_branch.len())).id.map(str::to_owned));
    let kept = kept.flatten();
    drop(on_branch);
    let text = rng.pick(&["one", "two\nlines \"quoted\"", "é 😀 \u{2028}", " spaces\r\n\r\n around "]);
    let details = rng.pick(&[None, Some(r#"{"n":[1,2.5,"x"]}"#), Some("null")]);
    match rng.below(17) {
        0 | 1 => drop(script.user(text)),
        2..=4 => {
            let calls = rng.below(3);
            script.assistant(text, calls);
        }
        5..=7 => {
            let latest = script.tool_calls;
            script.result(latest.saturating_sub(rng.below(2)), text);
        }
        8 => drop(script.plain(rng.below(4), text)),
        9 => drop(script.compaction(kept.as_deref(), details)),
        10 => drop(script.edit(kept.as_deref().unwrap_or(&entry), None)),
        11 => drop(script.edit(kept.as_deref().unwrap_or(&entry), Some(r#"{"content":"shorter"}"#))),
        12 => drop(script.custom(details)),
        13 => drop(script.custom_message(text, details)),
        14 => drop(script.label(&entry, rng.pick(&[Some("here"), Some(""), None]))),
        15 => drop(script.summarise(rng.pick(&[Some(entry.as_str()), None]), details)),
        _ if rng.per_mille(200) => script.reset(),
        _ => script.branch_from(&entry),
    }
}
