//! The plugins' pages: what stands there below a command is what the command prints. `PAGES=write cargo test --workspace --test
//! e2e pages` writes it anew.
//!
//! Such a block begins with three backticks, `console` and a line `$ pi-graft …`, and is run by a shell in the repository's
//! folder. Lines about time and fuel are left out, and long ones are cut.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Signs of a line that a page shows.
const WIDE: usize = 140;
const BEGINS: &str = "```console\n$ pi-graft ";
const ENDS: &str = "\n```";

#[test]
fn a_page_shows_what_its_commands_print() {
    let mut commands = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("a page");
        let now = made_anew(&page, &mut commands);
        if page != now && std::env::var_os("PAGES").is_some_and(|want| want == "write") {
            std::fs::write(&path, &now).expect("the page");
        } else {
            let line = page.lines().zip(now.lines()).find(|(old, new)| old != new);
            assert!(page == now, "{}: {line:#?}; PAGES=write writes it anew", path.display());
        }
    }
    assert!(commands >= pages().len(), "each page shows a session before and after");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// The page of each plugin.
fn pages() -> Vec<PathBuf> {
    let plugins = std::fs::read_dir(root().join("plugins")).expect("the plugins");
    let page = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("a folder").path().join("README.md");
    let mut pages: Vec<_> = plugins.map(page).filter(|path| path.is_file()).collect();
    pages.sort();
    pages
}

/// The page with the output of each of its commands as it is now.
fn made_anew(page: &str, commands: &mut usize) -> String {
    let (mut text, mut rest) = (String::new(), page);
    while let Some(at) = rest.find(BEGINS) {
        let (before, block) = rest.split_at(at);
        let end = block[BEGINS.len()..].find(ENDS).expect("the end of the block") + BEGINS.len();
        let command = block.lines().nth(1).and_then(|line| line.strip_prefix("$ ")).expect("a command");
        text.push_str(&format!("{before}```console\n$ {command}\n{}", shown(&printed(command))));
        rest = &block[end + 1..];
        *commands += 1;
    }
    text + rest
}

/// What a command prints, far from anybody's own config.
fn printed(command: &str) -> String {
    let home = tempfile::tempdir().expect("a home");
    let bin = Path::new(env!("CARGO_BIN_EXE_pi-graft")).parent().expect("its folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).expect("a path");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(root()).env_clear().env("PATH", path).env("HOME", home.path());
    shell.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    let output = shell.output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The lines that are the same each time, none too long.
fn shown(printed: &str) -> String {
    let lasting = |line: &&str| !line.trim_start().starts_with("fuel ") && !line.ends_with(" a second)");
    let lines: Vec<_> = printed.lines().filter(lasting).map(cut).collect();
    lines.join("\n").trim_end().to_owned() + "\n"
}

fn cut(line: &str) -> String {
    let line = line.trim_end();
    match line.char_indices().nth(WIDE) {
        Some((at, _)) => line[..at].trim_end().to_owned() + " …",
        None => line.to_owned(),
    }
}
