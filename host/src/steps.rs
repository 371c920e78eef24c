//! Labelled steps of a delivery, so that tests can end the process at each of them, as `kill -9` would, or have another write
//! at that very moment.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// The environment variable that names the step at which the process ends at once.
pub const DIE_AT: &str = "PI_GRAFT_TEST_DIE_AT";

/// The environment variable that names a step and a directory, with a `=` between: at that step the directory is made, and
/// waited for until somebody has removed it.
pub const WAIT_AT: &str = "PI_GRAFT_TEST_WAIT_AT";

thread_local! {
    static UNWIND_AT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A step was reached. Ends the process without any clean-up if a test has asked for it, or waits.
pub fn reached(step: &str) {
    static DIE: OnceLock<Option<String>> = OnceLock::new();
    static WAIT: OnceLock<Option<(String, PathBuf)>> = OnceLock::new();
    if DIE.get_or_init(|| std::env::var(DIE_AT).ok()).as_deref() == Some(step) {
        std::process::abort();
    }
    let waits = || std::env::var(WAIT_AT).ok()?.split_once('=').map(|(step, dir)| (step.to_owned(), dir.into()));
    if let Some((_, dir)) = WAIT.get_or_init(waits).as_ref().filter(|(at, _)| at == step) {
        wait_for(dir);
    }
    UNWIND_AT.with_borrow_mut(|at| {
        if at.take_if(|at| at == step).is_some() {
            std::panic::resume_unwind(Box::new("a test ends here"));
        }
    });
}

/// The next time this thread reaches `step`, it unwinds: for tests that go on in the same process.
pub fn unwind_at(step: Option<&str>) {
    UNWIND_AT.set(step.map(str::to_owned));
}

fn wait_for(dir: &Path) {
    if std::fs::create_dir(dir).is_ok() {
        while dir.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
