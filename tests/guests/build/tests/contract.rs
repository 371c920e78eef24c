//! What was published of the contract stays as it was, and what is made from it is fresh.
//!
//! A record that grows by one field, a function with one parameter more: each breaks every plugin that is compiled
//! already. So the WIT is compared with the copy of each released version, and a change of that kind is a new version
//! beside the old. `host/tests/sandbox/kept.rs` loads a plugin of each version that was never built again.
use std::fs;
use std::path::{Path, PathBuf};

use guest_build::contract::{Contract, Func, Interface, read};
use guest_build::{reference, typescript};

/// Until the first release of pi-graft, functions may be added to what plugins import: no plugin that is compiled notices.
/// From then on a plugin made with the newer SDK would not load in the older pi-graft, and the version says nothing of it.
const RELEASED: bool = false;

fn api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plugin-api")
}

fn now() -> Contract {
    read(&api().join("wit")).expect("the contract is WIT")
}

fn released() -> Vec<(String, Contract)> {
    let versions = fs::read_dir(api().join("wit-released")).expect("there are released versions");
    let versions = versions.map(|entry| entry.expect("an entry").path());
    let name = |dir: &Path| dir.file_name().expect("a version's name").to_string_lossy().into_owned();
    let read = |dir: PathBuf| (name(&dir), read(&dir).expect("WIT"));
    versions.map(read).collect()
}

/// What a plugin compiled for `old` would notice in `new`.
fn broken(old: &Contract, new: &Contract, frozen: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for was in &old.interfaces {
        match new.interfaces.iter().find(|interface| interface.name == was.name) {
            Some(is) => faults.extend(changed(was, is, frozen)),
            None => faults.push(format!("the interface {} is gone", was.name)),
        }
    }
    let known = |name: &str| old.interfaces.iter().any(|interface| interface.name == name);
    let more = new.interfaces.iter().filter(|interface| !known(&interface.name) && (frozen || interface.exported));
    faults.extend(more.map(|interface| format!("the interface {} is new", interface.name)));
    faults
}

fn changed(was: &Interface, is: &Interface, frozen: bool) -> Vec<String> {
    let shape = |interface: &Interface| -> Vec<(String, String)> {
        let field = |f: &guest_build::contract::Field| format!("{}: {}", f.name, f.ty.wit());
        let fields = |r: &guest_build::contract::Record| r.fields.iter().map(field).collect::<Vec<_>>().join(", ");
        let records = interface.records.iter().map(|r| (format!("record {}", r.name), fields(r)));
        records.chain(interface.functions.iter().map(|f| (format!("function {}", f.name), Func::wit(f)))).collect()
    };
    let (old, new) = (shape(was), shape(is));
    let find = |list: &[(String, String)], name: &str| list.iter().find(|(n, _)| n == name).map(|(_, s)| s.clone());
    let name = &was.name;
    let gone = old.iter().filter(|(what, shape)| find(&new, what).as_ref() != Some(shape));
    let mut faults: Vec<_> = gone.map(|(what, _)| format!("{name}: {what} was changed or is gone")).collect();
    if frozen || is.exported {
        let more = new.iter().filter(|(what, _)| find(&old, what).is_none());
        faults.extend(more.map(|(what, _)| format!("{name}: {what} is new")));
    }
    faults
}

#[test]
fn a_version_that_was_published_stays_as_it_was() {
    let (now, released) = (now(), released());
    assert!(!released.is_empty());
    for (version, contract) in &released {
        assert_eq!(contract.package, format!("pi-graft:plugin@{version}"), "wit-released/{version}");
        if contract.package == now.package {
            let faults = broken(contract, &now, RELEASED);
            assert!(faults.is_empty(), "compiled plugins would notice; make it a new version:\n{}", faults.join("\n"));
        }
    }
}

#[test]
fn each_published_version_has_a_plugin_that_is_kept() {
    for (version, _) in released() {
        let kept = api().join(format!("../tests/guests/kept/contract-{version}.wasm"));
        assert!(kept.is_file(), "{} is missing: keep a guest of that version there", kept.display());
    }
}

/// The comparison sees what it is to see.
#[test]
fn growth_is_noticed() {
    let was = now();
    let with = |from: &str, to: &str| {
        let dir = tempfile::tempdir().expect("a folder");
        let wit = fs::read_to_string(api().join("wit/plugin.wit")).expect("the WIT");
        assert!(wit.contains(from), "{from}");
        fs::write(dir.path().join("plugin.wit"), wit.replacen(from, to, 1)).expect("written");
        broken(&was, &read(dir.path()).expect("WIT"), false)
    };
    assert_eq!(
        with("    rule: string,", "    rule: string,\n    hint: string,"),
        ["types: record refusal was changed or is gone"]
    );
    assert_eq!(
        with("leaf: func() -> info;", "tip: func() -> info;"),
        ["session: function leaf was changed or is gone"]
    );
    assert_eq!(with("later: func(note: string)", "later: func(note: option<string>)").len(), 1);
    assert_eq!(with("on-entry: func(config: string)", "on-start: func();\n  on-entry: func(config: string)").len(), 1);
    assert!(with("leaf: func() -> info;", "leaf: func() -> info;\n  root: func() -> info;").is_empty());
}

#[test]
fn the_reference_is_of_this_contract() {
    fresh("REFERENCE.md", &reference::page(&now()));
}

#[test]
fn the_types_for_typescript_are_of_this_contract() {
    fresh("typescript/src/contract.d.ts", &typescript::declarations(&now()));
}

fn fresh(file: &str, expected: &str) {
    let text = fs::read_to_string(api().join(file)).unwrap_or_default();
    assert!(text == expected, "plugin-api/{file} is not of this WIT: cargo run -p guest-build -- contract");
}
