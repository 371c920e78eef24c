//! A session of a few lines, the scripted guest, and short ways to run it.
use std::sync::{Arc, LazyLock};

use pi_graft::sandbox::{
    Done, Failure, Handler, HostFacts, Limits, LoadError, Plugin, PluginSource, Run, RunReport, Sandbox, SandboxOptions,
};
use pi_session::branch::Origin;
use pi_session::draft::Draft;
use pi_session::{Branch, Tree};
use serde_json::{Value, json};

/// The scripted guest.
pub const SCRIPTED: &[u8] = include_bytes!("../../../tests/guests/prebuilt/scripted.wasm");

/// One sandbox for all tests: a plugin's bytes are compiled once.
static SANDBOX: LazyLock<(tempfile::TempDir, Arc<Sandbox>)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a folder for the cache");
    let options = SandboxOptions { cache_dir: Some(dir.path().join("cache")), ..SandboxOptions::default() };
    (dir, Sandbox::new(&options).expect("a sandbox"))
});

pub fn sandbox() -> &'static Sandbox {
    &SANDBOX.1
}

/// Everything that can be granted without a model.
pub const ALL: [&str; 5] =
    ["append:custom", "append:custom_message", "append:compaction", "append:context_edit", "session:raw"];

/// The scripted guest under a name, with a script.
pub fn source(name: &str, grants: &[&str], script: &Value) -> PluginSource {
    PluginSource {
        name: name.into(),
        bytes: SCRIPTED.into(),
        config_json: script.to_string(),
        grants: grants.iter().map(ToString::to_string).collect(),
        limits: Limits::default(),
        on: None,
    }
}

pub fn load(name: &str, grants: &[&str], script: &Value) -> Plugin {
    sandbox().load(source(name, grants, script)).expect("it loads")
}

pub fn load_error(source: PluginSource) -> LoadError {
    sandbox().load(source).expect_err("it does not load")
}

/// Entries hung on each other, such as `u1` for a user's message; see [`entry`].
pub fn session(ids: &[&str]) -> Branch {
    let mut text = header() + "\n";
    let mut parent = Value::Null;
    for (n, id) in ids.iter().enumerate() {
        let mut entry = entry(id);
        entry["id"] = json!(id);
        entry["parentId"] = parent;
        entry["timestamp"] = json!(format!("2026-01-01T00:00:{n:02}.000Z"));
        text += &format!("{entry}\n");
        parent = json!(id);
    }
    branch(text)
}

/// The branch of a whole file.
pub fn branch(text: String) -> Branch {
    let tree = Arc::new(Tree::from_bytes(text.as_bytes()));
    Branch::of_leaf(&tree, Arc::new(text.into_bytes())).expect("a branch")
}

pub fn header() -> String {
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#.into()
}

/// What an id stands for, by its first letter: a user's message, an assistant's answer, one with a call, that call's
/// result, a custom entry, a receipt of the plugin `maker` for one entry, an edit of `u1`.
pub fn entry(id: &str) -> Value {
    let usage = json!({"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0.5}});
    let assistant = |content: Value, stop: &str| {
        json!({"type":"message","message":{"role":"assistant","content":content,"stopReason":stop,"provider":"p",
            "model":"m","api":"a","usage":usage,"timestamp":1}})
    };
    match &id[..1] {
        "u" => json!({"type":"message","message":{"role":"user","content":format!("question {id}"),"timestamp":1}}),
        "a" => assistant(json!([{"type":"text","text":format!("answer {id}")}]), "stop"),
        "t" => {
            let call =
                json!({"type":"toolCall","id":format!("call-{}", &id[1..]),"name":"bash","arguments":{"command":"ls"}});
            assistant(json!([call]), "toolUse")
        }
        "r" => json!({"type":"message","message":{"role":"toolResult","toolCallId":format!("call-{}", &id[1..]),
            "toolName":"bash","content":[{"type":"text","text":format!("secret {id}")}],"details":{"full":"secret too"},
            "isError":false,"timestamp":1}}),
        "c" => json!({"type":"custom","customType":"note","data":{"n":id}}),
        "R" => json!({"type":"custom","customType":"pi-graft.run","data":{"batch":"b","plugin":"maker","version":"1",
            "digest":"d","handler":"on-entry","reason":"","trigger":"u1","entries":1}}),
        "e" => json!({"type":"context_edit","targetId":"u1","replacement":{"content":"edited"}}),
        _ => panic!("no entry is called {id}"),
    }
}

/// A run of `on-entry` on the newest entry in the file.
pub fn on_entry(branch: &Branch) -> Run {
    run(branch, Handler::OnEntry)
}

pub fn run(branch: &Branch, handler: Handler) -> Run {
    let trigger_id = branch.leaf_id().expect("an entry").to_owned();
    Run { handler, branch: branch.clone(), trigger_id, facts: HostFacts::default(), header_json: header() }
}

pub fn done(report: RunReport) -> Done {
    let RunReport { outcome, refusals, logs, .. } = report;
    outcome.unwrap_or_else(|failure| panic!("{failure}; refused: {refusals:?}; logged: {logs:?}"))
}

pub fn failure(report: RunReport) -> Failure {
    report.outcome.expect_err("it fails")
}

pub fn drafts(report: RunReport) -> Vec<Draft> {
    done(report).accepted.map(|accepted| accepted.drafts().to_vec()).unwrap_or_default()
}

/// The same branch with drafts of a plugin pending on it.
pub fn pending(branch: &Branch, plugin: &str, drafts: &[Draft]) -> Branch {
    let mut branch = branch.clone();
    let origin = Arc::new(Origin { plugin: plugin.into(), batch: "b1".into() });
    for draft in drafts {
        branch.push(&draft.to_json(), &origin).expect("a draft is JSON");
    }
    branch
}

/// What the guest's step `report` saw: it is put into a custom entry.
pub fn seen(branch: &Branch) -> Value {
    let script = json!({"needs": ["append:custom"], "entry": [{"report": "seen", "must": true}]});
    let [Draft::Custom { data: Some(data), .. }] = &drafts(load("watcher", &ALL, &script).run(on_entry(branch)))[..]
    else {
        panic!("one custom entry");
    };
    serde_json::from_str(data.as_str()).expect("JSON")
}

/// What the guest logs when it is told to.
pub fn logged(branch: &Branch, grants: &[&str], step: Value) -> Vec<String> {
    let report = load("reader", grants, &json!({"entry": [step]})).run(on_entry(branch));
    assert!(report.outcome.is_ok(), "{:?}", report.outcome);
    report.logs.into_iter().map(|line| line.text).collect()
}
