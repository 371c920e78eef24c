//! Is a Pi there that has this session in its memory? (product.md section 5)
//!
//! Pi names its process `pi` or `pi-rpc`, so a system that shows its processes can be asked. What cannot be seen is not
//! taken for absent.

use std::path::{Path, PathBuf};

/// Whether a Pi may have the session open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// One works in the session's directory, and the session is among the newest there.
    Here,
    /// All of this user's processes can be seen, and none is such a Pi.
    Absent,
    /// It cannot be told.
    Unknown,
}

/// The Pi processes that a look at the system found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// Their working directories, one for each process.
    cwds: Vec<PathBuf>,
    /// Whether all processes that could be a Pi on these files were seen.
    complete: bool,
}

impl Processes {
    /// Looks at the system now.
    #[must_use]
    pub fn look() -> Processes {
        look_in(Path::new("/proc"))
    }

    /// As if nothing at all runs: what the user says with `--closed`.
    #[must_use]
    pub fn none() -> Processes {
        Processes { cwds: Vec::new(), complete: true }
    }

    /// Whether one of them has the session: `newer` counts the sessions of the same working directory that are newer.
    #[must_use]
    pub fn presence(&self, cwd: Option<&Path>, newer: usize) -> Presence {
        let same = |dir: &&PathBuf| cwd.is_some_and(|cwd| same_dir(dir, cwd));
        match self.cwds.iter().filter(same).count() {
            there if there > newer => Presence::Here,
            _ if self.complete => Presence::Absent,
            _ => Presence::Unknown,
        }
    }

    /// How many work in this directory.
    #[must_use]
    pub fn in_dir(&self, cwd: &Path) -> usize {
        self.cwds.iter().filter(|dir| same_dir(dir, cwd)).count()
    }
}

/// Whether both are one directory, by whatever way each is named.
#[must_use]
pub fn same_dir(a: &Path, b: &Path) -> bool {
    let real = |dir: &Path| std::fs::canonicalize(dir);
    a == b || real(b).is_ok_and(|b| a == b || real(a).is_ok_and(|a| a == b))
}

fn look_in(proc: &Path) -> Processes {
    let Ok(names) = std::fs::read_dir(proc) else { return Processes::default() };
    let pids = names.flatten().map(|entry| entry.path()).filter(|path| is_pid(path));
    let mut found = Processes { cwds: Vec::new(), complete: sees_everything(proc) };
    for process in pids.filter(|path| is_pi(path)) {
        match std::fs::read_link(process.join("cwd")) {
            Ok(cwd) => found.cwds.push(cwd),
            // It ended just now, or is another user's: then its directory is not told.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => found.complete = false,
        }
    }
    found
}

fn is_pid(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
}

/// Pi sets its title, which replaces the command line.
fn is_pi(process: &Path) -> bool {
    let Ok(line) = std::fs::read(process.join("cmdline")) else { return false };
    let title = line.split(|b| *b == 0).next().unwrap_or_default();
    let title = title.trim_ascii_end();
    title == b"pi" || title == b"pi-rpc"
}

/// In the first PID namespace no process is hidden from us by a container's wall.
fn sees_everything(proc: &Path) -> bool {
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link(proc.join("self/ns/pid")).is_ok_and(|ns| ns == Path::new(FIRST))
}
