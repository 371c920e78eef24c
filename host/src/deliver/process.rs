//! One process, known again: by its number and when it started, since numbers are given out anew.

use std::path::Path;
use std::time::Duration;

use crate::journal::Process;

/// The number of a process that cannot be seen from here: it is outside of the container that this one is in.
pub const UNSEEN: u32 = 0;

/// The process with this number, as it is now.
#[must_use]
pub fn of(pid: u32) -> Process {
    Process { pid, start: start_in(Path::new("/proc"), pid).unwrap_or(0) }
}

/// Whether it may still run, `quiet` since somebody last wrote: of one that cannot be seen nothing else tells.
#[must_use]
pub fn may_run(process: &Process, quiet: Duration, live_hold: Duration) -> bool {
    if process.pid == UNSEEN { quiet < live_hold } else { runs(process) }
}

/// Whether it still runs. What cannot be seen counts as running: better to wait than to write behind its back.
#[must_use]
pub fn runs(process: &Process) -> bool {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    match rustix::process::test_kill_process(pid) {
        Err(rustix::io::Errno::SRCH) => false,
        _ => start_in(Path::new("/proc"), process.pid).is_none_or(|start| process.start == 0 || start == process.start),
    }
}

/// The 22nd field of `stat`. The second is the program's name in brackets and may hold anything, brackets too.
fn start_in(proc: &Path, pid: u32) -> Option<u64> {
    let stat = std::fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
    let behind = stat.iter().rposition(|b| *b == b')')? + 1;
    let rest = std::str::from_utf8(stat.get(behind..)?).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_one_that_ended_does_not() {
        assert!(runs(&of(std::process::id())));
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let ended = of(child.id());
        child.wait().expect("it ends");
        assert!(!runs(&ended));
    }

    #[test]
    fn one_that_cannot_be_seen_counts_as_running_until_live_hold_of_quiet() {
        let (unseen, second) = (of(UNSEEN), Duration::from_secs(1));
        assert!(may_run(&unseen, second, 2 * second));
        assert!(!may_run(&unseen, 2 * second, 2 * second));
        assert!(may_run(&of(std::process::id()), 2 * second, second), "that this one runs can be seen");
    }

    #[test]
    fn a_number_that_was_given_out_anew_is_another_process() {
        let now = of(std::process::id());
        assert!(now.start == 0 || !runs(&Process { start: now.start + 1, ..now }));
    }
}
