//! `completions` and `man`: what the command line says of itself, for shells and readers.

use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::failure::{Failure, Outcome};
use super::out::Out;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell.
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "pi-graft", &mut script);
        out.put(&String::from_utf8_lossy(&script))?;
        Ok(Outcome::Done)
    }
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write a page for each command into this directory, which must be there.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self, out: &mut Out) -> Result<Outcome, Failure> {
        match &self.dir {
            Some(dir) => clap_mangen::generate_to(super::Cli::command(), dir)?,
            None => out.put(&page()?)?,
        }
        Ok(Outcome::Done)
    }
}

fn page() -> io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(super::Cli::command()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
