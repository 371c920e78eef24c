//! `session ls` as a user meets it: what it lists, and that what it remembers is never more than a help.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// A home with sessions in it.
struct Home(tempfile::TempDir);

impl Home {
    /// With a session of each of these cases, in that order by name.
    fn with(cases: &[&str]) -> Home {
        let home = Home(tempfile::tempdir().expect("a temporary directory"));
        fs::create_dir_all(home.path(".pi/agent/sessions/--work--")).expect("made");
        for (at, case) in cases.iter().enumerate() {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(case);
            fs::copy(from, home.session(at)).expect("copied");
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn session(&self, at: usize) -> PathBuf {
        self.path(&format!(".pi/agent/sessions/--work--/{at}.jsonl"))
    }

    fn cache(&self) -> PathBuf {
        self.path(".cache/pi-graft/listing")
    }

    /// What is listed, by path.
    fn list(&self, more: &[&str]) -> Vec<Value> {
        let (code, rows, said) = self.list_some(more);
        assert_eq!(code, Some(0), "{said}");
        rows
    }

    /// The exit code, what is listed, by path, and what is said beside it.
    fn list_some(&self, more: &[&str]) -> (Option<i32>, Vec<Value>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
        command.args(["session", "ls", "--json"]).args(more).env_clear().env("HOME", self.0.path());
        let output = command.output().expect("the binary runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        rows.sort_by_key(|row| row["path"].to_string());
        (output.status.code(), rows, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Changes what is remembered, its digest with it, as only this program could.
    fn remember(&self, from: &str, to: &str) {
        use sha2::Digest;
        let text = fs::read_to_string(self.cache()).expect("it is there").replace(from, to);
        let (head, body) = text.split_once('\n').expect("a head");
        let body = format!("\n{body}");
        let digest: String = sha2::Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
        let (head, _) = head.rsplit_once(' ').expect("a digest");
        fs::write(self.cache(), format!("{head} {digest}{body}")).expect("written");
    }
}

fn titles(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["title"].as_str().expect("a title")).collect()
}

const CASES: [&str; 3] = ["real/01_plain_chat.jsonl", "real/03_manual_compact.jsonl", "odd/17_missing_header.jsonl"];

#[test]
fn a_session_that_did_not_change_is_not_read_again() {
    let home = Home::with(&CASES);
    let first = home.list(&[]);
    assert_eq!(first.len(), 2, "what is no session is not listed: {first:?}");
    assert_eq!(home.list(&[]), first);
    // Whatever is remembered comes back: so the files were not read.
    let title = titles(&first)[0].to_owned();
    home.remember(&title, "remembered");
    assert_eq!(titles(&home.list(&[]))[0], "remembered");
    assert_eq!(home.list(&["--cwd", "/elsewhere"]).len(), 0);
    assert_eq!(home.list(&["--cwd", "/home/dev/project"]).len(), 2);
}

#[test]
fn a_session_that_changed_is_read_again_and_no_other() {
    let home = Home::with(&CASES);
    let first = home.list(&[]);
    for title in titles(&first) {
        home.remember(&serde_json::to_string(title).expect("JSON"), "\"remembered\"");
    }
    let mut text = fs::read_to_string(home.session(0)).expect("text");
    text.push_str("{\"type\":\"session_info\",\"id\":\"n\",\"parentId\":null,\"name\":\"named\"}\n");
    fs::write(home.session(0), &text).expect("written");
    let second = home.list(&[]);
    assert_eq!(titles(&second), ["named", "remembered"]);
    let entries = |rows: &[Value]| rows[0]["entries"].as_u64();
    assert_eq!(entries(&second), entries(&first).map(|n| n + 1));
}

#[test]
fn other_bytes_of_the_same_length_and_time_are_seen() {
    let home = Home::with(&[]);
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-12-01T00:00:00Z","cwd":"/w"}"#;
    let named =
        |name| format!("{header}\n{{\"type\":\"session_info\",\"id\":\"n\",\"parentId\":null,\"name\":\"{name}\"}}\n");
    fs::write(home.session(0), named("before")).expect("written");
    assert_eq!(titles(&home.list(&[])), ["before"]);
    let time = fs::metadata(home.session(0)).expect("there").modified().expect("a time");
    // As an editor does: another file in its place.
    fs::write(home.path("new"), named("behind")).expect("written");
    fs::File::options().append(true).open(home.path("new")).expect("opened").set_modified(time).expect("set");
    fs::rename(home.path("new"), home.session(0)).expect("moved");
    assert_eq!(titles(&home.list(&[])), ["behind"]);
}

#[test]
fn a_session_that_is_gone_is_neither_listed_nor_remembered() {
    let home = Home::with(&CASES);
    home.list(&[]);
    fs::remove_file(home.session(0)).expect("removed");
    assert_eq!(home.list(&[]).len(), 1);
    fs::copy(home.session(1), home.session(7)).expect("copied");
    assert_eq!(home.list(&[]).len(), 2);
    assert!(!fs::read_to_string(home.cache()).expect("text").contains("/0.jsonl"));
}

#[test]
fn a_place_that_cannot_be_looked_into_is_said_and_the_rest_is_listed() {
    let home = Home::with(&CASES);
    let (none, place) = (home.path("none"), home.path("no-directory"));
    fs::write(&place, "").expect("written");
    let listed = |roots: [&Path; 3]| {
        let roots = roots.map(|root| format!("{:?}", root.to_str().expect("plain"))).join(", ");
        fs::write(home.path("config.toml"), format!("[watch]\nroots = [{roots}]\n")).expect("written");
        home.list_some(&["--config", home.path("config.toml").to_str().expect("plain")])
    };
    let sessions = home.path(".pi/agent/sessions");
    let (code, rows, said) = listed([&none, &place, &sessions]);
    assert_eq!((code, rows.len()), (Some(1), 2), "{said}");
    assert!(said.starts_with(&format!("{}: ", place.display())), "{said}");
    let (code, rows, said) = listed([&none, &none, &sessions]);
    assert_eq!((code, rows.len(), said.as_str()), (Some(0), 2, ""), "a root may come later");
}

#[test]
fn a_session_that_cannot_be_read_is_said_and_the_rest_is_listed() {
    let home = Home::with(&CASES);
    fs::set_permissions(home.session(0), fs::Permissions::from_mode(0o000)).expect("set");
    if fs::File::open(home.session(0)).is_ok() {
        return; // Root reads everything.
    }
    for _ in 0..2 {
        let (code, rows, said) = home.list_some(&[]);
        assert_eq!((code, rows.len()), (Some(1), 1), "{said}");
        assert!(said.starts_with(&format!("{}: ", home.session(0).display())), "{said}");
    }
    fs::set_permissions(home.session(0), fs::Permissions::from_mode(0o600)).expect("set");
    assert_eq!(home.list(&[]).len(), 2, "it is not remembered as no session");
}

#[test]
fn a_damaged_cache_is_ignored_and_written_anew() {
    let home = Home::with(&CASES);
    let listed = home.list(&[]);
    let good = fs::read(home.cache()).expect("it is there");
    let mut flipped = good.clone();
    let at = good.len() / 2;
    flipped[at] ^= 1;
    let deep = [b"pi-graft listing 1 0 0\n".as_slice(), &b"[".repeat(100_000)].concat();
    for bad in [&b""[..], b"\n", b"nonsense", &good[..at], &flipped, &deep, &[good.as_slice(), b" "].concat()] {
        fs::write(home.cache(), bad).expect("written");
        assert_eq!(home.list(&[]), listed);
        let keys = |bytes: &[u8]| fs::read(home.cache()).is_ok_and(|now| now.len() == bytes.len());
        assert!(keys(&good), "it was written anew");
    }
}

#[test]
fn the_cache_is_the_user_s_alone() {
    let home = Home::with(&CASES);
    let listed = home.list(&[]);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&home.cache()), mode(home.cache().parent().expect("a directory"))), (0o600, 0o700));
    let names = fs::read_dir(home.path(".cache/pi-graft")).expect("a directory").count();
    assert_eq!(names, 1, "nothing is left over");
    // What others could have written is not believed.
    home.remember(titles(&listed)[0], "forged");
    fs::set_permissions(home.cache(), fs::Permissions::from_mode(0o666)).expect("set");
    assert_eq!(home.list(&[]), listed);
    assert_eq!(mode(&home.cache()), 0o600);
    // A link in its place is not followed, and what it leads to stays as it was.
    fs::rename(home.cache(), home.path("elsewhere")).expect("moved");
    std::os::unix::fs::symlink(home.path("elsewhere"), home.cache()).expect("linked");
    let before = fs::read(home.path("elsewhere")).expect("there");
    assert_eq!(home.list(&[]), listed);
    assert_eq!(fs::read(home.path("elsewhere")).expect("there"), before);
}

#[test]
fn without_a_place_for_a_cache_all_is_listed_all_the_same() {
    let home = Home::with(&CASES);
    fs::write(home.path(".cache"), "a file").expect("written");
    assert_eq!(home.list(&[]), home.list(&[]));
    assert_eq!(home.list(&[]).len(), 2);
}

#[test]
fn the_depth_of_a_session_is_that_of_its_deepest_branch() {
    let home = Home::with(&[]);
    let line = |id: &str, parent: Value| json!({"type": "custom", "customType": "x", "id": id, "parentId": parent});
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/w"});
    let lines = [header, line("a", Value::Null), line("b", json!("a")), line("c", json!("b")), line("d", json!("a"))];
    fs::write(home.session(0), lines.map(|line| format!("{line}\n")).concat()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
    command.args(["session", "stats", "--json"]).arg(home.session(0)).env_clear().env("HOME", home.0.path());
    let stats: Value = serde_json::from_slice(&command.output().expect("the binary runs").stdout).expect("JSON");
    assert_eq!((&stats["depth"], &stats["leaves"]), (&json!(3), &json!(2)));
}
