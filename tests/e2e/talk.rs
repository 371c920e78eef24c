//! Writing a session as Pi would, and reading what became of it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use pi_graft::daemon::world::now_ms;

use pi_session::Tree;
use pi_session::branch::Branch;
use pi_session::entry::EntryKind;
use pi_session::json::{Json, quoted};
use pi_session::problem::{Problem, Severity};
use pi_session::time::iso;
use pi_session::tree::Source;

use crate::stage::append;

/// A session that is being written: as by a Pi that keeps its leaf in memory.
pub struct Talk {
    path: PathBuf,
    leaf: Option<String>,
    count: u32,
    /// Who answers.
    model: (&'static str, &'static str),
    /// By how many seconds its clock is ahead.
    ahead: i64,
}

/// Who answers where nobody else is named.
const MODEL: (&str, &str) = ("p", "m");

impl Talk {
    /// Begins a session.
    pub fn begin(path: &Path) -> Talk {
        Talk::begin_in(path, Path::new("/work"))
    }

    /// Begins a session whose working directory is `cwd`.
    pub fn begin_in(path: &Path, cwd: &Path) -> Talk {
        let id = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let header = format!(r#"{{"type":"session","version":3,"id":"{id}","timestamp":"{}","cwd":{cwd:?}}}"#, now());
        append(path, &format!("{header}\n"));
        Talk { path: path.to_path_buf(), leaf: None, count: 0, model: MODEL, ahead: 0 }
    }

    /// Opens it as a new Pi would: the leaf is the last entry.
    pub fn reopen(path: &Path) -> Talk {
        let file = Session::read(path);
        let count = file.tree.entries().len() as u32 + 1000;
        Talk { path: path.to_path_buf(), leaf: file.ids().last().cloned(), count, model: MODEL, ahead: 0 }
    }

    /// From now on its clock is so many seconds ahead: of what it writes, and of the file's time.
    pub fn ahead(self, seconds: i64) -> Talk {
        Talk { ahead: seconds, ..self }
    }

    /// The session's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on this model of this provider answers.
    pub fn with_model(mut self, provider: &'static str, id: &'static str) -> Talk {
        self.model = (provider, id);
        self
    }

    /// Goes to another entry, as `/tree` does: what comes next hangs on that one.
    pub fn go_to(&mut self, leaf: &str) {
        self.leaf = Some(leaf.to_owned());
    }

    pub fn user(&mut self, text: &str) -> String {
        self.message(&format!(r#""role":"user","content":{}"#, quoted(text)))
    }

    /// A finished answer.
    pub fn assistant(&mut self, text: &str) -> String {
        self.answer(&format!(r#"{{"type":"text","text":{}}}"#, quoted(text)), "stop")
    }

    /// Two turns with something to summarise; the last entry's id.
    pub fn two_turns(&mut self) -> String {
        let mut last = String::new();
        for turn in ["first", "second"] {
            self.user(&format!("Please look at src/{turn}.rs. {}", "It matters a lot to me. ".repeat(60)));
            let text = "All of it works now. ".repeat(60);
            last = self.assistant(&format!("I changed src/{turn}.rs as you asked. {text}"));
        }
        last
    }

    /// A call without its result yet.
    pub fn call(&mut self, id: &str, tool: &str) -> String {
        self.answer(&format!(r#"{{"type":"toolCall","id":"{id}","name":"{tool}","arguments":{{}}}}"#), "toolUse")
    }

    pub fn result(&mut self, call: &str, text: &str) -> String {
        let text = quoted(text);
        self.message(&format!(
            r#""role":"toolResult","toolCallId":"{call}","toolName":"bash","content":[{{"type":"text","text":{text}}}],"isError":false"#
        ))
    }

    pub fn answer(&mut self, content: &str, stop: &str) -> String {
        let members = self.answer_members(content, stop);
        self.message(&members)
    }

    fn answer_members(&self, content: &str, stop: &str) -> String {
        let (provider, model) = self.model;
        format!(
            r#""role":"assistant","content":[{content}],"api":"x","provider":"{provider}","model":"{model}","usage":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{{"total":0}}}},"stopReason":"{stop}""#
        )
    }

    /// The line of a finished answer, not written.
    pub fn answer_line(&mut self, text: &str) -> (String, String) {
        let members = self.answer_members(&format!(r#"{{"type":"text","text":{}}}"#, quoted(text)), "stop");
        self.line("message", &format!(r#""message":{{{members},"timestamp":{}}}"#, self.now_ms()))
    }

    fn message(&mut self, members: &str) -> String {
        self.entry("message", &format!(r#""message":{{{members},"timestamp":{}}}"#, self.now_ms()))
    }

    pub fn entry(&mut self, kind: &str, members: &str) -> String {
        let (id, line) = self.line(kind, members);
        append(&self.path, &line);
        if self.ahead != 0 {
            let time = UNIX_EPOCH + Duration::from_millis(self.now_ms().cast_unsigned());
            let file = File::options().append(true).open(&self.path).expect("the session");
            file.set_modified(time).expect("its time");
        }
        id
    }

    /// The line of the next entry, not written.
    pub fn line(&mut self, kind: &str, members: &str) -> (String, String) {
        self.count += 1;
        let id = format!("{:08x}", self.count);
        let parent = self.leaf.replace(id.clone()).map_or("null".to_owned(), |leaf| format!("\"{leaf}\""));
        let time = iso(self.now_ms());
        let line = format!(
            "{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"{time}\",{members}}}\n"
        );
        (id, line)
    }

    fn now_ms(&self) -> i64 {
        now_ms() + self.ahead * 1000
    }
}

fn now() -> String {
    iso(now_ms())
}

/// A session as it stands in its file.
pub struct Session {
    pub tree: Arc<Tree>,
    bytes: Vec<u8>,
}

impl Session {
    pub fn read(path: &Path) -> Session {
        let bytes = std::fs::read(path).expect("the session");
        Session { tree: Arc::new(Tree::from_bytes(&bytes)), bytes }
    }

    pub fn ids(&self) -> Vec<String> {
        let id = |e: &pi_session::entry::Entry| self.tree.id_text(e.id).to_owned();
        self.tree.entries().iter().map(id).collect()
    }

    /// The JSON of every entry of this `customType`.
    pub fn customs(&self, custom_type: &str) -> Vec<String> {
        let is = |e: &&pi_session::entry::Entry| self.tree.word(e) == custom_type;
        self.tree.entries().iter().filter(is).map(|e| self.text(e)).collect()
    }

    fn text(&self, entry: &pi_session::entry::Entry) -> String {
        let at = entry.offset as usize;
        String::from_utf8_lossy(&self.bytes[at..at + entry.len as usize]).into_owned()
    }

    /// The same, of those on the branch that Pi would continue from.
    pub fn live_customs(&self, custom_type: &str) -> Vec<String> {
        let branch = self.branch();
        let here = branch.items().filter(|item| item.word == custom_type);
        here.map(|item| self.text(item.facts)).collect()
    }

    /// Whether the entry is on the branch that Pi would continue from.
    pub fn is_live(&self, id: &str) -> bool {
        self.branch().place_of(id).is_some()
    }

    /// How often entries of a type are on that branch.
    pub fn live_of(&self, kind: EntryKind) -> usize {
        self.branch().items().filter(|item| item.facts.kind == kind).count()
    }

    pub fn receipts(&self) -> usize {
        self.customs("pi-graft.run").len()
    }

    pub fn compactions(&self) -> usize {
        self.tree.entries().iter().filter(|e| e.kind == EntryKind::Compaction).count()
    }

    pub fn branch(&self) -> Branch {
        let source: Arc<dyn Source> = Arc::new(self.bytes.clone());
        Branch::of_leaf(&self.tree, source).expect("a branch")
    }

    /// No line torn, glued, doubled or without its parent.
    pub fn assert_sound(&self) {
        let is_bad = |problem: &&Problem| problem.severity() > Severity::Info;
        let bad: Vec<_> = self.tree.problems().iter().filter(is_bad).collect();
        assert!(bad.is_empty(), "{bad:?} {}", String::from_utf8_lossy(&self.bytes));
        let mut ids = self.ids();
        ids.sort();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "an id stands twice");
    }
}

/// A member of an entry's JSON, as text.
pub fn member(entry: &str, path: &[&str]) -> String {
    let json = Json::parse(entry.as_bytes()).expect("JSON");
    let found = path.iter().try_fold(json, |json, name| json.get(name));
    found.map_or_else(String::new, |json| json.as_str().unwrap_or_else(|| json.to_text()).into_owned())
}

/// What the real Pi makes of a session. Where Pi is not at hand (`PI_DIR`, `ORACLE_NODE`) this is left to the machine that has
/// it.
pub fn pi_reads(path: &Path) -> Option<serde_json::Value> {
    let (pi, node) = (std::env::var_os("PI_DIR")?, std::env::var_os("ORACLE_NODE")?);
    let oracle = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle/oracle.mjs");
    let mut dump = std::process::Command::new(node);
    dump.arg(oracle).args(["dump", "--default-leaf"]).arg(path).env("PI_DIR", pi);
    let output = dump.output().expect("the oracle runs");
    Some(serde_json::from_slice(&output.stdout).expect("an answer"))
}
