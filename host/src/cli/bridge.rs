//! `pi-graft bridge`: puts the extension that connects a running Pi with the daemon where Pi finds it.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::config::Env;
use crate::put::{put, take_away};

use super::failure::{Failure, Outcome};
use super::out::Out;

/// The extension, as it is shipped.
const EXTENSION: &str = include_str!("../../bridge/pi-graft.ts");
/// Its file name, wherever it is installed.
const NAME: &str = "pi-graft.ts";
/// By this line a file is known as ours, whatever its version.
const MARK: &str = " * The bridge of pi-graft:";

/// What to do with the bridge.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Install it for all projects of this user; Pi loads it at its next start or `/reload`.
    Install(Place),
    /// Take it away again.
    Remove(Place),
    /// Say where it is installed, and whether it is the one of this version.
    Status,
}

/// Where it is to be.
#[derive(Debug, Args)]
pub struct Place {
    /// For the project in this directory alone (`.pi/extensions`)
    #[arg(long, conflicts_with = "package")]
    project: bool,
    /// As a Pi package in this directory, to be installed with `pi install DIR`
    #[arg(long, value_name = "DIR")]
    package: Option<PathBuf>,
    /// Also over, or with, a file that was changed or is not ours
    #[arg(long)]
    force: bool,
}

/// How a file at one of the places compares with the extension of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Current,
    /// Of another version, or changed by its user.
    Other,
    /// Somebody else's.
    Foreign,
}

pub(super) fn run(command: &Command, out: &mut Out) -> Result<Outcome, Failure> {
    match command {
        Command::Install(place) => install(place, out),
        Command::Remove(place) => remove(place, out),
        Command::Status => status(out),
    }
}

impl Place {
    fn file(&self) -> Result<PathBuf, Failure> {
        match &self.package {
            Some(dir) => Ok(dir.join("extensions").join(NAME)),
            None if self.project => project_file(),
            None => global_file(),
        }
    }
}

fn global_file() -> Result<PathBuf, Failure> {
    Ok(Env::of_process().agent_dir()?.join("extensions").join(NAME))
}

fn project_file() -> Result<PathBuf, Failure> {
    Ok(std::env::current_dir()?.join(".pi/extensions").join(NAME))
}

fn look(path: &Path) -> Result<Found, Failure> {
    match std::fs::read(path) {
        Ok(text) if text == EXTENSION.as_bytes() => Ok(Found::Current),
        Ok(text) if memchr::memmem::find(&text, MARK.as_bytes()).is_some() => Ok(Found::Other),
        Ok(_) => Ok(Found::Foreign),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(e) => Err(at(path, e)),
    }
}

fn at(path: &Path, e: io::Error) -> Failure {
    Failure::problem(format!("{}: {e}", path.display()))
}

fn install(place: &Place, out: &mut Out) -> Result<Outcome, Failure> {
    let path = place.file()?;
    if look(&path)? == Found::Foreign && !place.force {
        return Err(Failure::problem(format!("{}: not ours; --force to replace it", path.display())));
    }
    put(&path, EXTENSION).map_err(|e| at(&path, e))?;
    if let Some(dir) = &place.package {
        let manifest = dir.join("package.json");
        put(&manifest, package()).map_err(|e| at(&manifest, e))?;
    }
    let next = match &place.package {
        Some(dir) => format!("install it with `pi install {}`", dir.display()),
        None => "Pi loads it at its next start; in a running one, /reload".to_owned(),
    };
    tell(out, json!({ "path": path }), &format!("{} written; {next}", path.display()))
}

fn package() -> String {
    let manifest = json!({
        "name": "pi-graft-bridge",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Connects a running Pi with the pi-graft daemon",
        "license": "MIT OR Apache-2.0",
        "keywords": ["pi-package"],
        "pi": { "extensions": [format!("./extensions/{NAME}")] },
    });
    format!("{manifest:#}\n")
}

fn remove(place: &Place, out: &mut Out) -> Result<Outcome, Failure> {
    let path = place.file()?;
    match look(&path)? {
        Found::Nothing => {
            return tell(out, json!({ "path": null }), &format!("{}: not installed", path.display()));
        }
        Found::Foreign | Found::Other if !place.force => {
            let text = "not the one of this version: changed, or not ours; --force to remove it all the same";
            return Err(Failure::problem(format!("{}: {text}", path.display())));
        }
        _ => {}
    }
    take_away(&path).map_err(|e| at(&path, e))?;
    tell(out, json!({ "path": path }), &format!("{} removed; a running Pi has it until /reload", path.display()))
}

fn tell(out: &mut Out, json: serde_json::Value, text: &str) -> Result<Outcome, Failure> {
    if out.json {
        out.line(json)?
    } else {
        out.line(text)?
    }
    Ok(Outcome::Done)
}

fn status(out: &mut Out) -> Result<Outcome, Failure> {
    let places = [("global", global_file()?), ("project", project_file()?)];
    let found = places.iter().map(|(_, path)| look(path)).collect::<Result<Vec<_>, _>>()?;
    let word = |found| match found {
        Found::Nothing => "not installed",
        Found::Current => "installed",
        Found::Other => "another version, or changed: `pi-graft bridge install` puts this version's there",
        Found::Foreign => "a file that is not ours",
    };
    if out.json {
        let rows = places.iter().zip(&found).map(|((place, path), found)| {
            let current = *found == Found::Current;
            json!({ "place": place, "path": path, "installed": current || *found == Found::Other, "current": current })
        });
        out.line(json!({ "bridges": rows.collect::<Vec<_>>() }))?;
    } else {
        for ((place, path), found) in places.iter().zip(&found) {
            out.line(format!("{place:<8} {}: {}", path.display(), word(*found)))?;
        }
        out.line("which sessions have a bridge at this moment: `pi-graft status`")?;
    }
    Ok(Outcome::Done)
}
