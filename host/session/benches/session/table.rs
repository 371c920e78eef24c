//! The table of speed in `ARCHITECTURE.md`: the same files read by the real Pi and by us, in one run.
//!
//! `PI_GRAFT` names a release build of the program, for the rows of whole processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::black_box;
use pi_session::compaction::PlanSettings;
use pi_session::json::Json;
use pi_session::{Branch, Tree, check};

const ROUNDS: usize = 11;

/// What the real Pi takes for one file: milliseconds, and MiB at the most.
struct Pi {
    open: f64,
    context: f64,
    plan: f64,
    peak: f64,
}

/// Measures all of it on each of these files, and prints it.
pub fn print(node: &std::ffi::OsStr, files: &[PathBuf]) {
    println!("| session | what | here | Pi | times |\n| --- | --- | --- | --- | --- |");
    for file in files {
        let pi = Pi::measured(node, file);
        let size = std::fs::metadata(file).map_or(0, |meta| meta.len() / 1_000_000);
        let row = |what: &str, here: f64, there: f64, unit: &str| {
            println!("| {size} MB | {what} | {here:.3} {unit} | {there:.3} {unit} | {:.0} |", there / here);
        };
        let text = Arc::new(std::fs::read(file).expect("it was made here"));
        row("open, index and check", ms(|| drop(checked(&text))), pi.open, "ms");
        let (tree, settings) = (Arc::new(Tree::from_bytes(&text)), PlanSettings::default());
        let branch = Branch::of_leaf(&tree, text).expect("it has no cycle");
        row("context of the leaf", ms(|| drop(black_box((branch.context(), branch.model())))), pi.context, "ms");
        row("compaction plan of the leaf", ms(|| drop(black_box(branch.plan(&settings)))), pi.plan, "ms");
        let Some(program) = std::env::var_os("PI_GRAFT") else { continue };
        for command in ["validate", "context"] {
            let (took, peak) = process(Path::new(&program), command, file);
            row(&format!("`session {command}`, the process; Pi: open alone"), took, pi.open, "ms");
            row("its memory at the most; Pi's after open", peak, pi.peak, "MiB");
        }
    }
}

fn checked(text: &Arc<Vec<u8>>) -> check::Checked {
    check::check(&Arc::new(Tree::from_bytes(text)), text.clone()).expect("memory can be read")
}

/// The median time of some rounds, milliseconds.
fn ms(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2].as_secs_f64() * 1000.0
}

/// Median time of a command on a file, milliseconds, and the most memory it had, MiB.
fn process(program: &Path, command: &str, file: &Path) -> (f64, f64) {
    let mut most = 0.0_f64;
    let mut run = |look: bool| {
        let mut asked = Command::new(program);
        asked.args(["session", command, "--json"]).arg(file).stdout(Stdio::null());
        let mut child = asked.spawn().expect("PI_GRAFT must be a program that runs");
        if look {
            most = most.max(peak(&mut child));
        }
        assert!(child.wait().expect("it was started").success(), "a typical session is valid");
    };
    // Looking how much memory it has takes time of its own.
    run(true);
    (ms(|| run(false)), most)
}

/// The most memory that a process had before it ended, MiB; files that it merely reads are in it.
fn peak(child: &mut Child) -> f64 {
    let mut most = 0.0_f64;
    while child.try_wait().expect("it was started").is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        most = most.max(kib.unwrap_or(0.0) / 1024.0);
    }
    most
}

impl Pi {
    fn measured(node: &std::ffi::OsStr, file: &Path) -> Pi {
        // A process each, so that the garbage of one is not the time or the memory of another.
        let (timed, once) = (Pi::asked(node, file, "5"), Pi::asked(node, file, "1"));
        Pi { peak: once.peak, ..timed }
    }

    fn asked(node: &std::ffi::OsStr, file: &Path, rounds: &str) -> Pi {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/bench.mjs");
        let mut asked = Command::new(node);
        let done = asked.arg(script).arg(file).env("ROUNDS", rounds).stderr(Stdio::inherit()).output();
        let done = done.expect("ORACLE_NODE must be a Node that runs");
        assert!(done.status.success(), "Pi could not be measured");
        let answer = Json::parse(done.stdout.trim_ascii()).expect("the script answers JSON");
        let number = |name| answer.get(name).and_then(Json::as_f64).expect("the script measures it");
        Pi { open: number("openMs"), context: number("contextMs"), plan: number("planMs"), peak: number("peakMiB") }
    }
}
