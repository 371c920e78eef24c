//! From bytes to a component whose imports the host knows.
use std::borrow::Cow;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::LoadError;

/// The package of the contract.
const PACKAGE: &str = "pi-graft:plugin/";
/// The version that is served.
pub const CONTRACT_VERSION: &str = "0.1.0";
/// The interfaces that are served.
const INTERFACES: [&str; 5] = ["types", "session", "append", "model", "log"];
/// The interface that a plugin exports.
pub(super) const HANDLER: &str = "pi-graft:plugin/handler@0.1.0";

/// Makes a component of a core module that has its component type embedded, which is what `cargo build --target
/// wasm32-unknown-unknown` gives for a plugin.
///
/// # Errors
/// If it is no such module.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, LoadError> {
    let encoded =
        wit_component::ComponentEncoder::default().validate(true).module(core).and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| LoadError::NotAPlugin(format!("{error:#}")))
}

/// The component in these bytes, made of a core module if it is one.
pub(super) fn component_bytes(bytes: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', 0x0d, 0, 1, 0]) => Ok(Cow::Borrowed(bytes)),
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => componentize(bytes).map(Cow::Owned),
        _ => Err(LoadError::NotAPlugin("it is not WebAssembly".into())),
    }
}

/// Refuses what the host does not have: another version of the contract, or any import beside it.
pub(super) fn check_contract(engine: &Engine, component: &Component) -> Result<(), LoadError> {
    let (imports, exports) = (imports(engine, component), exports(engine, component));
    if let Some(version) = imports.iter().chain(&exports).find_map(|name| other_version(name)) {
        return Err(LoadError::Contract { theirs: version.into(), ours: CONTRACT_VERSION });
    }
    let foreign: Vec<_> = imports.into_iter().filter(|name| !is_served(name)).collect();
    if !foreign.is_empty() {
        return Err(LoadError::Imports(foreign));
    }
    if !exports.iter().any(|name| name == HANDLER) {
        return Err(LoadError::NotAPlugin(format!("it does not export {HANDLER}")));
    }
    Ok(())
}

/// The names of what a component imports.
pub(super) fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect()
}

fn exports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().exports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// The version of the contract that a component names.
pub(super) fn contract_version(engine: &Engine, component: &Component) -> Option<String> {
    let names = [exports(engine, component), imports(engine, component)].concat();
    names.iter().find_map(|name| version(name)).map(str::to_owned)
}

fn is_served(import: &str) -> bool {
    let interface = import.strip_prefix(PACKAGE).and_then(|rest| rest.split_once('@'));
    interface.is_some_and(|(name, _)| INTERFACES.contains(&name))
}

/// The version in a name of the contract, if it is not the one served.
fn other_version(name: &str) -> Option<&str> {
    version(name).filter(|version| *version != CONTRACT_VERSION)
}

/// The version in a name of the contract.
fn version(name: &str) -> Option<&str> {
    name.strip_prefix(PACKAGE)?.split_once('@').map(|(_, version)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_contract_is_served() {
        assert!(is_served("pi-graft:plugin/log@0.1.0"));
        assert!(!is_served("pi-graft:plugin/files@0.1.0"));
        assert!(!is_served("wasi:filesystem/types@0.2.0"));
    }

    #[test]
    fn another_version_is_told_apart() {
        assert_eq!(other_version("pi-graft:plugin/log@0.2.0"), Some("0.2.0"));
        assert_eq!(other_version("pi-graft:plugin/log@0.1.0"), None);
        assert_eq!(other_version("wasi:io/poll@0.2.0"), None);
    }
}
