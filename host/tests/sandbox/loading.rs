//! Loading: what is a plugin and what is not, and the cache of compiled code.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use pi_graft::sandbox::{LoadError, PluginSource, Sandbox, SandboxError, SandboxOptions};
use serde_json::json;

use super::common::{ALL, drafts, load, load_error, on_entry, session, source};

fn of_bytes(bytes: &[u8]) -> PluginSource {
    PluginSource { bytes: bytes.into(), ..source("p", &ALL, &json!({})) }
}

#[test]
fn bytes_that_are_no_plugin_are_told_apart() {
    let not_wasm = load_error(of_bytes(b"#!/bin/sh"));
    assert!(not_wasm.to_string().contains("not WebAssembly"), "{not_wasm}");
    let empty_module = load_error(of_bytes(b"\0asm\x01\0\0\0"));
    assert!(matches!(empty_module, LoadError::NotAPlugin(_)), "{empty_module}");
    let empty_component = load_error(of_bytes(b"\0asm\x0d\0\x01\0"));
    assert!(empty_component.to_string().contains("does not export"), "{empty_component}");
}

/// A component that imports an empty instance of this name.
fn importing(name: &str) -> Vec<u8> {
    let len = u8::try_from(name.len()).expect("a short name");
    let types = [0x07, 3, 1, 0x42, 0];
    let import = [&[0x0a, len + 5, 1, 0, len], name.as_bytes(), &[0x05, 0]].concat();
    [b"\0asm\x0d\0\x01\0".as_slice(), &types, &import].concat()
}

#[test]
fn imports_beside_the_contract_are_refused_by_name() {
    let error = load_error(of_bytes(&importing("wasi:filesystem/types@0.2.0")));
    assert!(matches!(error, LoadError::Imports(_)), "{error}");
    assert!(error.to_string().contains("wasi:filesystem/types@0.2.0"), "{error}");
}

#[test]
fn another_version_of_the_contract_names_both() {
    let text = load_error(of_bytes(&importing("pi-graft:plugin/log@0.7.0"))).to_string();
    assert!(text.contains("0.7.0") && text.contains("0.1.0"), "{text}");
}

#[test]
fn a_config_that_it_does_not_like_shows_when_loading() {
    let error = load_error(source("p", &ALL, &json!({"colour": "red"})));
    assert!(error.to_string().contains("unknown field `colour`"), "{error}");
}

#[test]
fn it_says_what_it_is() {
    let plugin = load("mine", &["append:custom"], &json!({"version": "1.2.3"}));
    assert_eq!((plugin.name(), plugin.version(), plugin.digest().len()), ("mine", "1.2.3", 64));
    assert_eq!(plugin.grants().collect::<Vec<_>>(), ["append:custom"]);
}

#[test]
fn compiled_code_is_found_again_and_runs_the_same() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = SandboxOptions { cache_dir: Some(dir.path().join("cache")), ..SandboxOptions::default() };
    let script = json!({"entry": [{"custom": {"type": "x"}, "must": true}]});
    let load = || {
        let sandbox = Sandbox::new(&options).expect("a sandbox");
        let begun = Instant::now();
        let plugin = sandbox.load(source("p", &ALL, &script)).expect("it loads");
        (begun.elapsed(), plugin.run(on_entry(&session(&["u1"]))))
    };
    let (cold, first) = load();
    let files = fs::read_dir(dir.path().join("cache")).expect("the cache").count();
    let (warm, second) = load();
    assert_eq!(files, 1);
    assert!(warm < cold / 5, "compiled in {cold:?}, found in {warm:?}");
    assert_eq!(first.fuel, second.fuel);
    assert_eq!(drafts(first), drafts(second));
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = dir.path().join("cache");
    fs::create_dir(&cache).expect("a folder");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).expect("permissions");
    let options = SandboxOptions { cache_dir: Some(cache), ..SandboxOptions::default() };
    assert!(matches!(Sandbox::new(&options), Err(SandboxError::CacheNotPrivate { .. })));
}

#[test]
fn a_cached_file_that_others_can_write_to_or_that_is_torn_is_compiled_anew() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = SandboxOptions { cache_dir: Some(dir.path().join("cache")), ..SandboxOptions::default() };
    let load = || Sandbox::new(&options).expect("a sandbox").load(source("p", &ALL, &json!({}))).expect("it loads");
    load();
    let file =
        fs::read_dir(dir.path().join("cache")).expect("the cache").next().expect("a file").expect("an entry").path();
    fs::write(&file, b"torn").expect("written");
    load();
    assert!(fs::metadata(&file).expect("there again").len() > 1000);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("permissions");
    load();
    assert_eq!(fs::metadata(&file).expect("there again").permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_cache_stays_within_its_size() {
    let dir = tempfile::tempdir().expect("a folder");
    let options =
        SandboxOptions { cache_dir: Some(dir.path().join("cache")), cache_bytes: 1, ..SandboxOptions::default() };
    Sandbox::new(&options).expect("a sandbox").load(source("p", &ALL, &json!({}))).expect("it loads");
    assert_eq!(fs::read_dir(dir.path().join("cache")).expect("the cache").count(), 0);
    // What is no file of ours is in nobody's way.
    fs::create_dir(dir.path().join("cache/0-somebody's")).expect("made");
    Sandbox::new(&options).expect("a sandbox").load(source("p", &ALL, &json!({}))).expect("it loads");
    assert_eq!(fs::read_dir(dir.path().join("cache")).expect("the cache").count(), 1);
}
