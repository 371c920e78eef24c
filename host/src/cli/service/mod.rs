//! `pi-graft service`: the daemon as a service of the user's, started at login and again after a failure. A systemd user
//! unit, or a launchd agent where that is what the system has.

mod unit;

use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::config::{Config, Env};
use crate::put::{put, take_away};

use super::failure::{Failure, Outcome};
use super::out::Out;
use unit::{Manager, Unit};

/// What to do with the service.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the unit for this program, this config and this environment, enable it and start it.
    Install(Install),
    /// Stop it and take the unit away; sessions, state and config stay.
    Remove,
}

/// How far to go.
#[derive(Debug, Args)]
pub struct Install {
    /// Print the unit and change nothing
    #[arg(long)]
    print: bool,
    /// Write it, but leave enabling and starting to you
    #[arg(long)]
    no_start: bool,
}

pub(super) fn run(command: &Command, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let env = Env::of_process();
    let manager = Manager::of_this_system();
    let path = manager.file(&env)?;
    match command {
        Command::Install(how) => install(how, manager, &path, config, &env, out),
        Command::Remove => remove(manager, &path, out),
    }
}

fn install(
    how: &Install,
    manager: Manager,
    path: &Path,
    config: Option<&Path>,
    env: &Env,
    out: &mut Out,
) -> Result<Outcome, Failure> {
    // A service that cannot start fails where nobody looks.
    Config::find(config)?;
    let text = manager.text(&here(config, env)?);
    if how.print {
        out.line(text.trim_end())?;
        return Ok(Outcome::Done);
    }
    put(path, &text).map_err(|e| Failure::problem(format!("{}: {e}", path.display())))?;
    let commands = manager.start(path);
    if how.no_start {
        let next = format!("start it with `{}`", shown(&commands).join(" && "));
        return tell(out, path, false, &format!("{} written; {next}", path.display()));
    }
    commands.iter().try_for_each(|command| call(command))?;
    tell(out, path, true, &format!("{} written, enabled and started; `pi-graft status` shows it", path.display()))
}

fn remove(manager: Manager, path: &Path, out: &mut Out) -> Result<Outcome, Failure> {
    if !path.exists() {
        return tell(out, path, false, &format!("{}: not installed", path.display()));
    }
    // What does not run any more, or never did, is no reason to keep the file.
    let say_why = |command: &Vec<String>| {
        if let Err(why) = call(command) {
            super::say(why);
        }
    };
    manager.stop(path).iter().for_each(say_why);
    take_away(path).map_err(|e| Failure::problem(format!("{}: {e}", path.display())))?;
    manager.forget().iter().for_each(say_why);
    tell(out, path, false, &format!("{} removed", path.display()))
}

fn tell(out: &mut Out, path: &Path, started: bool, text: &str) -> Result<Outcome, Failure> {
    match out.json {
        true => out.line(json!({ "path": path, "started": started }))?,
        false => out.line(text)?,
    }
    Ok(Outcome::Done)
}

/// This program with this config, and what it takes from the environment.
fn here(config: Option<&Path>, env: &Env) -> Result<Unit, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(Failure::problem);
    let mut program = vec![std::env::current_exe().map_err(Failure::problem)?];
    if let Some(config) = config {
        program.extend([PathBuf::from("--config"), absolute(config)?]);
    }
    program.push("run".into());
    let config_dir = env.config_file()?.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(Unit {
        program,
        variables: unit::variables(),
        environment: config_dir.join("environment"),
        log: env.home()?.join("Library/Logs/pi-graft.log"),
    })
}

fn shown(commands: &[Vec<String>]) -> Vec<String> {
    commands.iter().map(|command| command.join(" ")).collect()
}

/// Has the system's own program do it. What it says goes to the user.
fn call(command: &[String]) -> Result<(), Failure> {
    let line = command.join(" ");
    let [program, args @ ..] = command else { return Ok(()) };
    let status = Program::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(Failure::problem(format!("`{line}` failed ({status}); what is written stays: run it yourself")))
        }
        Err(e) => {
            let text = "without this service manager, start `pi-graft run` in your own way";
            Err(Failure::problem(format!("`{line}`: {e}; {text}")))
        }
    }
}
