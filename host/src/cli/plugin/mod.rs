//! `plugin …`: make one, build it, look at it, try it, install it.

mod build;
mod check;
mod install;
mod list;
mod new;
mod remove;
mod trial;

use std::io::IsTerminal;
use std::path::Path;

use clap::Subcommand;

use crate::config::Env;
use crate::installed::{Installed, component_at};
use crate::sandbox::{Inspection, Limits};

use super::failure::{Failure, Outcome};
use super::load::sandbox;
use super::out::{Out, grouped, say};

/// What to do with plugins.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a folder with a small plugin to begin with, the SDK in it, and a test that passes.
    New(new::New),
    /// Build the plugin in a folder to a component beside its sources.
    Build(build::Build),
    /// Say what a plugin is, what it asks for, and whether it loads.
    Check(check::Check),
    /// Run a plugin on a session of a few lines, and say what it did; writes nothing.
    Try(trial::Try),
    /// Copy a plugin to where configs find it by name, pinned to its digest and to what it may be granted.
    Install(install::Install),
    /// List the plugins that are shipped and installed.
    List,
    /// Remove an installed plugin.
    Remove(remove::Remove),
}

pub(super) fn run(command: &Command, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    match command {
        Command::New(args) => args.run(out),
        Command::Build(args) => args.run(out),
        Command::Check(args) => args.run(out),
        Command::Try(args) => args.run(out),
        Command::Install(args) => args.run(out),
        Command::List => list::run(config, out),
        Command::Remove(args) => args.run(out),
    }
}

/// Bytes of a plugin that takes seconds to compile.
const LARGE: usize = 2 << 20;

/// Looks at a plugin.
fn inspect(bytes: &[u8], with: &check::With) -> Result<Inspection, Failure> {
    tell_wait(bytes);
    Ok(sandbox()?.inspect(bytes, &with.plugin_config, Limits::default()))
}

/// Somebody who waits for a large one to be compiled is told.
fn tell_wait(bytes: &[u8]) {
    if bytes.len() > LARGE && std::io::stderr().is_terminal() {
        say(format!("compiling {} bytes; this takes some seconds, once", grouped(bytes.len() as u64)));
    }
}

fn installed() -> Result<Installed, Failure> {
    Ok(Installed::at(Env::of_process().plugins_dir()?))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    component_at(path).map_err(|error| Failure::problem(format!("{}: {error}", path.display())))
}

/// The line of a config that grants these.
fn grants_line(grants: &[String]) -> String {
    let quoted: Vec<_> = grants.iter().map(|grant| format!("{grant:?}")).collect();
    format!("grants = [{}]", quoted.join(", "))
}
