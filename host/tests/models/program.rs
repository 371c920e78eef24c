//! A program of the kind `command`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{AskError, ModelFrom, ask};

const LONG: Duration = Duration::from_secs(60);

fn sh(script: &str) -> ModelFrom {
    ModelFrom::Command { argv: ["sh", "-c", script].map(String::from).to_vec() }
}

fn outcome(script: &str) -> Result<String, AskError> {
    ask(sh(script), LONG, &|| false).map(|answer| answer.text)
}

#[test]
fn it_reads_the_prompt_and_writes_the_answer() {
    assert_eq!(outcome("cat"), Ok("sum up\n\nSECRET".to_owned()));
    assert_eq!(outcome("echo 'it reads nothing'"), Ok("it reads nothing".to_owned()));
}

#[test]
fn its_failures_are_told_without_what_it_said() {
    assert_eq!(outcome("cat; cat >&2; exit 3"), Err(AskError::Exit("exit code 3".into())));
    assert_eq!(outcome("kill -9 $$"), Err(AskError::Exit("a signal".into())));
    assert_eq!(outcome("true"), Err(AskError::Empty));
    assert_eq!(outcome("printf '\\377'"), Err(AskError::Garbage));
    assert_eq!(outcome("yes"), Err(AskError::TooLong));
    let program = "/no/such/program".to_owned();
    let missing = ask(ModelFrom::Command { argv: vec![program.clone()] }, LONG, &|| false).map(drop);
    assert_eq!(missing, Err(AskError::NotStarted { program, why: "entity not found".into() }));
}

/// Whether a process with this number is still there and no zombie.
fn is_there(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn one_that_hangs_ends_with_all_that_it_started() {
    let dir = tempfile::tempdir().expect("a folder");
    let pid = dir.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; wait", pid.display());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(sh(&script), LONG, &|| over.load(Ordering::Relaxed)));
        let started = || std::fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'));
        while !started() {
            std::thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(asking.join().expect("it ends").map(drop), Err(AskError::Over));
    });
    let pid = std::fs::read_to_string(&pid).expect("its number");
    while is_there(&pid) {
        std::thread::yield_now();
    }
    let time = Duration::from_millis(200);
    assert_eq!(ask(sh("sleep 600"), time, &|| false).map(drop), Err(AskError::Timeout(time)));
}
