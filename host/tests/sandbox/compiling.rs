//! Compiling in a process of its own, and what would take all memory or all day.
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use pi_graft::sandbox::{LoadError, PluginSource, Sandbox, SandboxOptions};
use serde_json::json;

use super::common::{ALL, drafts, on_entry, session, source};
use crate::bombs;

/// Compiles by the binary, and keeps nothing.
static BESIDE: LazyLock<Arc<Sandbox>> = LazyLock::new(|| {
    let options = SandboxOptions { compiler: Some(binary()), ..SandboxOptions::default() };
    Sandbox::new(&options).expect("a sandbox")
});

fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_pi-graft").into()
}

/// Why a plugin of these bytes is not loaded.
fn refusal(bytes: Vec<u8>) -> LoadError {
    BESIDE.load(PluginSource { bytes, ..source("bomb", &ALL, &json!({})) }).expect_err("it does not load")
}

/// The same where it is too much; what it says.
fn too_much(bytes: Vec<u8>) -> String {
    let error = refusal(bytes);
    assert!(matches!(error, LoadError::TooMuch(_)), "{error}");
    let said = error.to_string();
    assert!(said.contains("split huge functions"), "it says what to do: {said}");
    said
}

#[test]
fn what_another_process_compiled_runs_as_what_this_one_did() {
    let script = json!({"entry": [{"custom": {"type": "x"}, "must": true}]});
    let here = Sandbox::new(&SandboxOptions::default()).expect("a sandbox");
    let [here, beside] = [&here, &*BESIDE].map(|sandbox| {
        let plugin = sandbox.load(source("p", &ALL, &script)).expect("it loads");
        plugin.run(on_entry(&session(&["u1"])))
    });
    assert_eq!(here.fuel, beside.fuel);
    assert_eq!(drafts(here), drafts(beside));
}

#[test]
fn a_component_that_doubles_itself_again_and_again_is_too_much() {
    assert!(too_much(bombs::doubled(40)).contains("to compile it"));
}

#[test]
fn what_took_too_much_to_compile_is_not_tried_at_each_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let (compiler, tried) = (dir.path().join("compiler"), dir.path().join("tried"));
    let script = format!("#!/bin/sh\necho once >> {tried:?}\nexec {:?} \"$@\"\n", binary());
    std::fs::write(&compiler, script).expect("a program");
    std::fs::set_permissions(&compiler, Permissions::from_mode(0o700)).expect("it may be run");
    let cache_dir = Some(dir.path().join("cache"));
    let starts = [(); 2].map(|()| {
        let (compiler, cache_dir) = (Some(compiler.clone()), cache_dir.clone());
        let options = SandboxOptions { compiler, cache_dir, ..SandboxOptions::default() };
        let sandbox = Sandbox::new(&options).expect("a sandbox");
        let error = sandbox.load(PluginSource { bytes: bombs::doubled(40), ..source("bomb", &ALL, &json!({})) });
        error.expect_err("it does not load").to_string()
    });
    assert_eq!(starts[0], starts[1], "it says why each time");
    assert_eq!(std::fs::read_to_string(&tried).expect("it was tried"), "once\n");
}

#[test]
fn a_function_that_takes_all_memory_to_compile_is_too_much() {
    let said = too_much(bombs::woven(5000, 20_000));
    assert!(said.contains("bytes of memory to compile it"), "{said}");
}

#[test]
fn functions_beyond_all_measure_are_refused() {
    for bytes in [bombs::nested(5_000_000), bombs::variables(1_000_000)] {
        let error = refusal(bytes);
        assert!(matches!(error, LoadError::NotAPlugin(_)), "{error}");
    }
}

#[test]
fn a_file_that_is_far_too_long_is_not_even_looked_at() {
    let said = too_much(bombs::padded(50 << 20));
    assert!(said.contains("of 33,554,432 bytes of a plugin's file"), "{said}");
}

#[test]
fn what_begins_with_more_than_any_run_may_have_is_too_much() {
    let cases = [
        ("(table 10000000 funcref)".to_owned(), "of 20,000 table elements"),
        ("(table 1 funcref)".repeat(20), "of 8 tables"),
        ("(memory 1)".repeat(20), "of 4 memories"),
    ];
    for (items, said) in cases {
        let error = too_much(bombs::declaring(&items));
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn without_its_compiler_a_plugin_is_not_loaded_and_it_is_said_why() {
    let options = SandboxOptions { compiler: Some("/nowhere/pi-graft".into()), ..SandboxOptions::default() };
    let sandbox = Sandbox::new(&options).expect("a sandbox");
    let error = sandbox.load(source("p", &ALL, &json!({}))).expect_err("it does not load");
    assert!(matches!(error, LoadError::Compiler(_)), "{error}");
}
