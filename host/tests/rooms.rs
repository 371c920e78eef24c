//! The layout that ARCHITECTURE.md draws, held to the letter: which room may name which, and which crate is whose.
//!
//! A text scan of `crate::…` and of crate names; comments count for nothing. Who needs a new line in one of these tables
//! changes the picture there too.

use std::fs;
use std::path::{Path, PathBuf};

/// Each room, and the rooms that it may name: only such as stand above it. The command line may name them all.
const ROOMS: [(&str, &[&str]); 18] = [
    ("sandbox", &[]),
    ("files", &[]),
    ("pi", &[]),
    ("config", &["pi"]),
    ("steps", &[]),
    ("wire", &[]),
    ("models", &["config"]),
    ("put", &["files"]),
    ("installed", &["put"]),
    ("making", &[]),
    ("shipped", &["sandbox", "config", "installed"]),
    ("journal", &["files"]),
    ("deliver", &["files", "journal", "steps"]),
    ("daemon", &["sandbox", "files", "config", "steps", "shipped", "journal", "deliver", "wire", "pi", "models"]),
    ("explain", &["journal", "wire"]),
    ("replay", &["sandbox", "files", "journal", "deliver", "daemon", "wire", "pi", "models"]),
    ("demo", &["sandbox", "files", "config", "steps", "shipped", "journal", "deliver", "daemon"]),
    (
        "cli",
        &[
            "sandbox",
            "files",
            "config",
            "steps",
            "shipped",
            "journal",
            "deliver",
            "daemon",
            "explain",
            "demo",
            "replay",
            "wire",
            "put",
            "installed",
            "making",
            "models",
            "pi",
        ],
    ),
];

/// Crates that one room alone names.
const OWNED: [(&str, &str); 6] = [
    ("wasmtime", "sandbox"),
    ("redb", "journal"),
    ("toml", "config"),
    ("globset", "config"),
    ("clap", "cli"),
    ("ureq", "models"),
];

/// Lines of code that a file may have (a test module at its end apart).
const MOST_LINES: usize = 600;

/// A source file: its place below `src`, and its text.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// The room it belongs to: the first part of its path.
    fn room(&self) -> String {
        let first = self.path.components().next().expect("a path has a part");
        first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
    }

    /// Its lines without comments, numbered from 1.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn sources(of: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(of);
    let (mut open, mut found) = (vec![root.clone()], Vec::new());
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("a directory of sources") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&path).expect("sources are text");
                found.push(Source { path: path.strip_prefix(&root).expect("below it").to_path_buf(), text });
            }
        }
    }
    found
}

/// The names that follow `crate::` in a line.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Whether a line names a crate: `wasmtime::…`, not `my_wasmtime::…`.
fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(&format!("{name}::")).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

fn fail_if_any(faults: Vec<String>) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_room_names_only_those_above_it() {
    let mut faults = Vec::new();
    for source in sources("src") {
        let room = source.room();
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            if !matches!(room.as_str(), "lib" | "main") {
                faults.push(format!("{}: a room that the picture does not have", source.path.display()));
            }
            continue;
        };
        for (number, line) in source.code() {
            let is_room = |name: &&str| ROOMS.iter().any(|(room, _)| room == name);
            for name in named(line).filter(is_room).filter(|name| *name != room && !allowed.contains(name)) {
                faults.push(format!("{}:{number}: {room} may not name {name}", source.path.display()));
            }
        }
    }
    fail_if_any(faults);
}

#[test]
fn a_crate_is_named_by_its_room_alone() {
    let mut faults = Vec::new();
    for source in sources("src") {
        for (number, line) in source.code() {
            for (name, owner) in OWNED {
                if source.room() != owner && names_crate(line, name) {
                    faults.push(format!("{}:{number}: only {owner} names {name}", source.path.display()));
                }
            }
        }
    }
    fail_if_any(faults);
}

/// What clippy bans there by type and method, banned here by word as well, since an alias or a new function would pass.
#[test]
fn the_format_crate_has_no_files_no_clock_and_no_threads_of_control() {
    let banned =
        ["std::fs", "std::time::SystemTime", "std::time::Instant", "std::env", "std::net", "std::process", "async fn"];
    let mut faults = Vec::new();
    for source in sources("session/src") {
        for (number, line) in source.code() {
            for word in banned.iter().filter(|word| line.contains(**word)) {
                faults.push(format!("session/src/{}:{number}: {word}", source.path.display()));
            }
        }
    }
    fail_if_any(faults);
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut faults = Vec::new();
    for dir in ["src", "session/src"] {
        for source in sources(dir) {
            let lines = source.text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
            if lines > MOST_LINES {
                faults.push(format!("{dir}/{}: {lines} lines, at most {MOST_LINES}", source.path.display()));
            }
        }
    }
    fail_if_any(faults);
}

#[test]
fn the_scan_sees_what_it_is_to_see() {
    assert_eq!(named("use crate::files::FileId; crate::cli::x()").collect::<Vec<_>>(), ["files", "cli"]);
    assert!(names_crate("let e = wasmtime::Engine::default();", "wasmtime"));
    assert!(!names_crate("use crate::toml::x; my_toml::y", "toml"));
    assert!(sources("src").len() > 20 && sources("session/src").len() > 10);
}
