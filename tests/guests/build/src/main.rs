//! `guest-build componentize IN OUT` makes a component of a core module; `guest-build sources DIR` prints the digest
//! of what a guest is made of: for `.ci/guests`, which see. `guest-build contract` writes what is made of the contract:
//! its page of reference, and its types for TypeScript.
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let args: Vec<_> = env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["componentize", from, to] => componentize(from, to),
        ["sources", dir] => {
            guest_build::source_digest(Path::new("."), Path::new(dir)).map(|digest| println!("{digest}"))
        }
        ["contract"] => contract(Path::new("plugin-api")),
        _ => Err("usage: guest-build componentize IN OUT | sources DIR | contract".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("guest-build: {error}");
            ExitCode::FAILURE
        }
    }
}

fn componentize(from: &str, to: &str) -> Result<(), String> {
    let core = fs::read(from).map_err(|error| format!("{from}: {error}"))?;
    let encoder = wit_component::ComponentEncoder::default().validate(true).module(&core);
    let component = encoder.and_then(|mut encoder| encoder.encode()).map_err(|error| format!("{from}: {error:#}"))?;
    fs::write(to, component).map_err(|error| format!("{to}: {error}"))
}

fn contract(api: &Path) -> Result<(), String> {
    let contract = guest_build::contract::read(&api.join("wit"))?;
    let write = |file: &str, text: String| fs::write(api.join(file), text).map_err(|error| format!("{file}: {error}"));
    write("REFERENCE.md", guest_build::reference::page(&contract))?;
    write("typescript/src/contract.d.ts", guest_build::typescript::declarations(&contract))
}
