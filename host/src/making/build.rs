//! From a plugin's folder to its component: the tools of its language, called as the user would.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::MakingError;

/// What wasm plugins are compiled for: nothing of a system is there.
const TARGET: &str = "wasm32-unknown-unknown";
/// The oldest Node.
const NODE: u32 = 20;

/// What came of a build, before it is a component.
#[derive(Debug, PartialEq, Eq)]
pub struct Built {
    /// What the build gave: a core module, or a component.
    pub made: PathBuf,
    /// Where the component is to be: in the plugin's folder, under its name.
    pub component: PathBuf,
}

/// Builds the plugin in a folder. What the tools say goes to standard error. `tell` hears what is done.
///
/// # Errors
/// [`MakingError`] says what is missing, and how to get it.
pub fn build(dir: &Path, tell: &dyn Fn(&str)) -> Result<Built, MakingError> {
    if dir.join("Cargo.toml").is_file() {
        rust(dir, tell)
    } else if dir.join("package.json").is_file() {
        typescript(dir, tell)
    } else {
        Err(MakingError::NoPlugin(dir.to_owned()))
    }
}

/// A Rust that can compile to wasm.
#[derive(Debug)]
struct Toolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// It has no std for wasm, and builds it along from its sources.
    builds_std: bool,
    /// It has a linker for wasm; a distribution's has not.
    has_linker: bool,
}

fn rust(dir: &Path, tell: &dyn Fn(&str)) -> Result<Built, MakingError> {
    let tools = toolchain(dir)?;
    let mut cargo = Command::new(&tools.cargo);
    cargo.current_dir(dir).args(["build", "--release", "--target", TARGET]).env("RUSTC", &tools.rustc);
    if tools.builds_std {
        tell("std is built along, from this Rust's sources");
        // Building std is not for everybody yet, and this compiler is a released one.
        cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
    }
    if !tools.has_linker {
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker()?);
    }
    run(&mut cargo, "cargo build")?;
    let (name, target) = package(dir, &tools.cargo)?;
    let made = target.join(TARGET).join("release").join(format!("{}.wasm", name.replace('-', "_")));
    if !made.is_file() {
        let why = format!("{} was not made: does Cargo.toml say `crate-type = [\"cdylib\"]`?", made.display());
        return Err(MakingError::Odd { tool: "cargo build".into(), why });
    }
    Ok(Built { made, component: dir.join(format!("{name}.wasm")) })
}

/// The Rust of this folder, else the distribution's: the first that has std for wasm, else that has its sources.
fn toolchain(dir: &Path) -> Result<Toolchain, MakingError> {
    let candidates = [("cargo", "rustc"), ("/usr/bin/cargo", "/usr/bin/rustc")];
    let found: Vec<_> =
        candidates.iter().filter_map(|(cargo, rustc)| Some((cargo, rustc, sysroot(dir, rustc)?))).collect();
    if found.is_empty() {
        return Err(MakingError::NoCargo);
    }
    let has = |part: &str| found.iter().find(|(_, _, sysroot)| sysroot.join("lib/rustlib").join(part).is_dir());
    let ready = has(&format!("{TARGET}/lib")).map(|found| (found, false));
    let (found, builds_std) =
        ready.or_else(|| has("src/rust/library").map(|found| (found, true))).ok_or(MakingError::NoWasm)?;
    let (cargo, rustc, sysroot) = found;
    Ok(Toolchain { cargo: cargo.into(), rustc: rustc.into(), builds_std, has_linker: has_linker(sysroot) })
}

fn sysroot(dir: &Path, rustc: &str) -> Option<PathBuf> {
    let said = Command::new(rustc).current_dir(dir).args(["--print", "sysroot"]).stderr(Stdio::null()).output().ok()?;
    said.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

/// Whether a Rust brings its own linker, which it has for each system that it runs on.
fn has_linker(sysroot: &Path) -> bool {
    let systems = std::fs::read_dir(sysroot.join("lib/rustlib")).into_iter().flatten().flatten();
    systems.into_iter().any(|system| system.path().join("bin/rust-lld").is_file())
}

fn linker() -> Result<&'static str, MakingError> {
    let there = Command::new("wasm-ld").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) { Ok("wasm-ld") } else { Err(MakingError::NoLinker) }
}

/// The package's name, and where its target directory is.
fn package(dir: &Path, cargo: &Path) -> Result<(String, PathBuf), MakingError> {
    let odd = |why: String| MakingError::Odd { tool: "cargo metadata".into(), why };
    let mut command = Command::new(cargo);
    command.current_dir(dir).args(["metadata", "--no-deps", "--format-version=1"]).stderr(Stdio::inherit());
    let said = command.output().map_err(|error| odd(error.to_string()))?;
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).map_err(|error| odd(error.to_string()))?;
    let manifest = dir.join("Cargo.toml").canonicalize().map_err(MakingError::io(dir))?;
    let packages = said["packages"].as_array().into_iter().flatten();
    let mut here =
        packages.filter(|package| package["manifest_path"].as_str().is_some_and(|p| Path::new(p) == manifest));
    let name = here.next().and_then(|package| package["name"].as_str());
    let target = said["target_directory"].as_str();
    match (name, target) {
        (Some(name), Some(target)) => Ok((name.to_owned(), target.into())),
        _ => Err(odd("Cargo.toml is of no package".into())),
    }
}

fn typescript(dir: &Path, tell: &dyn Fn(&str)) -> Result<Built, MakingError> {
    check_node()?;
    if !dir.join("node_modules").is_dir() {
        tell("npm install: the tools that package.json names (some 400 MB, once)");
        // No package of these needs to run anything to be installed.
        let mut npm = Command::new("npm");
        npm.current_dir(dir).args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]);
        run(&mut npm, "npm install").map_err(|error| missing(error, "npm"))?;
    }
    let text = std::fs::read(dir.join("package.json")).map_err(MakingError::io(dir.join("package.json")))?;
    let package: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let odd = || MakingError::Odd { tool: "package.json".into(), why: "it has no `name`".into() };
    let name = package["name"].as_str().ok_or_else(odd)?;
    tell("npm run build: bundled, then snapshotted with its engine; this takes half a minute");
    run(Command::new("npm").current_dir(dir).args(["run", "--silent", "build"]), "npm run build")?;
    let made = dir.join(format!("{name}.wasm"));
    Ok(Built { component: made.clone(), made })
}

fn check_node() -> Result<(), MakingError> {
    let said = Command::new("node").arg("--version").output().map_err(|_| MakingError::NoNode("node"))?;
    let version = String::from_utf8_lossy(&said.stdout).trim().trim_start_matches('v').to_owned();
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= NODE) { Ok(()) } else { Err(MakingError::OldNode(version)) }
}

fn missing(error: MakingError, tool: &'static str) -> MakingError {
    match error {
        MakingError::Io { ref source, .. } if source.kind() == io::ErrorKind::NotFound => MakingError::NoNode(tool),
        other => other,
    }
}

/// Runs a tool. Its standard output is for people, and ours may be JSON: all of it goes to standard error.
fn run(command: &mut Command, what: &str) -> Result<(), MakingError> {
    let program = command.get_program().to_owned();
    let status = command.stdin(Stdio::null()).stdout(io::stderr()).status();
    match status.map_err(MakingError::io(OsStr::new(&program)))? {
        status if status.success() => Ok(()),
        _ => Err(MakingError::Tool(what.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_plugin_says_how_to_begin() {
        let dir = tempfile::tempdir().expect("a folder");
        let error = build(dir.path(), &|_| {}).expect_err("nothing to build");
        assert!(error.to_string().contains("plugin new"), "{error}");
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_install() {
        assert!(MakingError::NoWasm.to_string().contains("rustup target add wasm32-unknown-unknown"));
        assert!(MakingError::NoNode("npm").to_string().contains("Node 20"));
        let gone = missing(MakingError::io("npm")(io::ErrorKind::NotFound.into()), "npm");
        assert!(matches!(gone, MakingError::NoNode("npm")));
    }
}
