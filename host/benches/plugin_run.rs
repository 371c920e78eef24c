//! One plugin run in the sandbox beside the same calls with bare wasmtime: the same component, engine settings and
//! pool, a fresh instance each time, an entry of 1 KB. Aim: within 1.5 times.
//!
//! `cargo bench --bench plugin_run`. The bare side answers every call with a canned value; ours reads the branch, checks
//! grants and deadline, charges fuel, judges the draft and makes the report.
use std::path::Path;
use std::sync::Arc;

use divan::{Bencher, black_box};
use pi_graft::sandbox::{
    Handler, HostFacts, Limits, Plugin, PluginSource, Run, Sandbox, SandboxOptions, engine_config,
};
use pi_session::{Branch, Tree};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};

const GUEST: &[u8] = include_bytes!("../../tests/guests/prebuilt/scripted.wasm");
/// Finds the trigger, reads its text, and proposes a custom entry.
const CONFIG: &str = r#"{"entry":[{"read":"$trigger"},{"custom":{"type":"x","data":{"n":1}},"must":true}]}"#;

fn main() {
    divan::main();
}

/// A message of 1 KB behind `before` others.
fn entries(before: usize) -> String {
    let mut text = String::from("{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"\",\"cwd\":\"/\"}\n");
    let mut parent = "null".to_owned();
    for n in 0..=before {
        let words = "word ".repeat(180);
        text += &format!(
            "{{\"type\":\"message\",\"id\":\"{n:08x}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{words}\",\"timestamp\":1}}}}\n"
        );
        parent = format!("\"{n:08x}\"");
    }
    text
}

fn plugin(cache: Option<&Path>) -> Plugin {
    let options = SandboxOptions { cache_dir: cache.map(Path::to_owned), ..SandboxOptions::default() };
    let sandbox = Sandbox::new(&options).expect("a sandbox");
    let source = PluginSource {
        name: "bench".into(),
        bytes: GUEST.into(),
        config_json: CONFIG.into(),
        grants: vec!["append:custom".into()],
        limits: Limits::default(),
        on: None,
    };
    sandbox.load(source).expect("it loads")
}

#[divan::bench(args = [0, 200, 2000], sample_count = 2000)]
fn sandbox(bencher: Bencher<'_, '_>, before: usize) {
    let plugin = plugin(None);
    let text = entries(before);
    let tree = Arc::new(Tree::from_bytes(text.as_bytes()));
    let branch = Branch::of_leaf(&tree, Arc::new(text.into_bytes())).expect("a branch");
    let trigger_id = branch.leaf_id().expect("an entry").to_owned();
    let facts = HostFacts::default();
    let run = Run { handler: Handler::OnEntry, branch, trigger_id, facts, header_json: "{}".into() };
    bencher.bench_local(|| {
        let report = plugin.run(black_box(run.clone()));
        black_box(report.fuel);
        assert!(report.outcome.is_ok_and(|done| done.accepted.is_some()));
    });
}

/// A new sandbox, and a plugin that is compiled for it.
#[divan::bench(sample_count = 10)]
fn load_compiling() {
    drop(plugin(None));
}

/// A new sandbox, and a plugin whose compiled code is on disk.
#[divan::bench(sample_count = 50)]
fn load_from_cache(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = dir.path().join("cache");
    drop(plugin(Some(&cache)));
    bencher.bench_local(|| drop(plugin(Some(&cache))));
}

mod bare {
    wasmtime::component::bindgen!({ path: "../plugin-api/wit", world: "plugin" });
}

use bare::pi_graft::plugin::{append, log, model, session, types};

/// Answers with what it was made with.
struct Canned {
    info: types::Info,
    text: String,
}

impl types::Host for Canned {}

impl session::Host for Canned {
    fn header(&mut self) -> String {
        "{}".into()
    }
    fn trigger(&mut self) -> types::Info {
        self.info.clone()
    }
    fn leaf(&mut self) -> types::Info {
        self.info.clone()
    }
    fn branch(&mut self, _: Option<u32>, _: u32) -> types::Page {
        types::Page { items: vec![self.info.clone()], next: None }
    }
    fn projection(&mut self, before: Option<u32>, max: u32) -> types::Page {
        self.branch(before, max)
    }
    fn text(&mut self, _: u32, _: u64, _: u32) -> Result<types::Piece, types::Refusal> {
        Ok(types::Piece { text: self.text.clone(), next: None })
    }
    fn raw(&mut self, place: u32, offset: u64, max: u32) -> Result<types::Piece, types::Refusal> {
        session::Host::text(self, place, offset, max)
    }
    fn by_id(&mut self, _: String) -> Option<types::Info> {
        Some(self.info.clone())
    }
    fn last_custom(&mut self, _: String) -> Option<types::Info> {
        None
    }
    fn context_tokens(&mut self) -> types::Tokens {
        types::Tokens { in_file: 0, with_pending: 0, reported: None }
    }
    fn usage_totals(&mut self) -> String {
        "{}".into()
    }
    fn model_facts(&mut self) -> Option<String> {
        None
    }
    fn pi_compaction(&mut self) -> String {
        "{}".into()
    }
    fn compaction_plan(&mut self, _: Option<u64>, _: Option<u64>) -> Option<types::Plan> {
        None
    }
}

impl append::Host for Canned {
    fn custom(&mut self, _: String, _: Option<String>) -> Result<(), types::Refusal> {
        Ok(())
    }
    fn custom_message(&mut self, _: String, _: String, _: bool, _: Option<String>) -> Result<(), types::Refusal> {
        Ok(())
    }
    fn compaction(
        &mut self,
        _: String,
        _: Option<String>,
        _: Option<String>,
        _: Option<String>,
    ) -> Result<(), types::Refusal> {
        Ok(())
    }
    fn context_edits(&mut self, edits: Vec<types::Edit>) -> Vec<Result<(), types::Refusal>> {
        edits.iter().map(|_| Ok(())).collect()
    }
    fn later(&mut self, _: String) -> Result<(), types::Refusal> {
        Ok(())
    }
}

impl model::Host for Canned {
    fn complete(&mut self, _: String, _: String) -> Result<types::Answer, types::Refusal> {
        Err(types::Refusal { rule: String::new(), message: String::new() })
    }
}

impl log::Host for Canned {
    fn log(&mut self, _: String, _: String) {}
}

fn info() -> types::Info {
    types::Info {
        place: 0,
        id: Some("00000000".into()),
        parent: None,
        kind: "message".into(),
        role: Some("user".into()),
        custom_type: None,
        time_ms: Some(1),
        tokens: 1,
        bytes: 1000,
        shown: "as-is".into(),
        grafted_by: None,
        edited_by: None,
        pending: false,
    }
}

#[divan::bench(sample_count = 2000)]
fn bare_wasmtime(bencher: Bencher<'_, '_>) {
    let engine = Engine::new(&engine_config(Some(&SandboxOptions::default()))).expect("an engine");
    let component = Component::from_binary(&engine, GUEST).expect("a component");
    let mut linker = Linker::new(&engine);
    bare::Plugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |canned: &mut Canned| canned).expect("links");
    let pre = bare::PluginPre::new(linker.instantiate_pre(&component).expect("links")).expect("fits");
    let text = entries(0).lines().nth(1).expect("an entry").to_owned();
    bencher.bench_local(|| {
        let mut store = Store::new(&engine, Canned { info: info(), text: text.clone() });
        store.set_fuel(1_000_000_000).expect("fuel is on");
        store.set_epoch_deadline(1000);
        let guest = pre.instantiate(&mut store).expect("an instance");
        let answer = guest.pi_graft_plugin_handler().call_on_entry(&mut store, black_box(CONFIG));
        answer.expect("no trap").expect("no error");
    });
}
