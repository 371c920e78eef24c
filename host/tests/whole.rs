//! `session migrate`, `fork` and `rm` as a user meets them: the real binary, in a home of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value;

mod home;

use home::{Home, stderr};

fn touch(path: &Path) {
    File::options().append(true).open(path).and_then(|f| f.set_modified(SystemTime::now())).expect("touched");
}

const OLD: &str = "odd/23_version_missing_v1.jsonl";
const REAL: &str = "real/09_fork_clone_source.jsonl";

#[test]
fn a_session_is_migrated_in_place_and_the_old_one_kept() {
    let home = Home::new();
    let path = home.case(OLD, "abc");
    let (old, time) =
        (fs::read(&path).expect("read"), fs::metadata(&path).and_then(|m| m.modified()).expect("its time"));
    let said = home.json(&["session", "migrate", "abc", "--in-place", "--json"]);
    assert_eq!((&said["fromVersion"], &said["version"], &said["entries"]), (&1.into(), &3.into(), &4.into()));
    let backup = path.with_extension("jsonl.bak");
    assert_eq!(said["backup"], backup.to_str().expect("a plain path"));
    assert_eq!(fs::read(&backup).expect("kept"), old);
    assert_eq!(fs::metadata(&path).and_then(|m| m.modified()).expect("its time"), time);
    assert_eq!(home.json(&["session", "validate", "abc", "--json"])["version"], 3);
    let again = home.json(&["session", "migrate", "abc", "--in-place", "--json"]);
    assert_eq!((&again["fromVersion"], &again["backup"]), (&3.into(), &Value::Null));
    assert_eq!(fs::read_dir(path.parent().expect("a directory")).expect("read").count(), 2, "nothing else is left");
}

#[test]
fn somebody_at_work_is_not_disturbed_unless_forced() {
    let home = Home::new();
    let path = home.case(OLD, "abc");
    touch(&path);
    let old = fs::read(&path).expect("read");
    for command in [&["session", "migrate", "abc", "--in-place"][..], &["session", "rm", "abc", "--permanently"]] {
        let output = home.run(command);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert!(stderr(&output).contains("live-hold"), "{}", stderr(&output));
        assert_eq!(fs::read(&path).expect("read"), old);
    }
    assert_eq!(home.run(&["session", "migrate", "abc", "--in-place", "--force"]).status.code(), Some(0));
    assert_ne!(fs::read(&path).expect("read"), old);
    assert_eq!(home.run(&["session", "rm", "abc", "--permanently", "--force"]).status.code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn a_migrated_copy_goes_elsewhere_and_never_over_a_file() {
    let home = Home::new();
    let path = home.case(OLD, "abc");
    let old = fs::read(&path).expect("read");
    assert_eq!(home.run(&["session", "migrate", "abc", "-o", "new.jsonl"]).status.code(), Some(0));
    let copy = fs::read_to_string(home.path("new.jsonl")).expect("written");
    assert!(copy.lines().all(|line| line.contains("\"id\"")), "{copy}");
    assert_eq!(home.run(&["session", "migrate", "abc", "-o", "new.jsonl"]).status.code(), Some(1));
    assert_eq!(home.run(&["session", "migrate", "abc", "-o", "x", "--in-place"]).status.code(), Some(2));
    let printed = home.run(&["session", "migrate", "abc"]).stdout;
    assert_eq!(printed.len(), copy.len());
    assert_eq!(fs::read(&path).expect("read"), old);
}

#[test]
fn a_fork_goes_where_pi_looks_for_it_and_means_the_same() {
    let home = Home::new();
    let path = home.case(REAL, "abc");
    let old = fs::read(&path).expect("read");
    let beside = home.json(&["session", "fork", "abc", "--json"]);
    let new = PathBuf::from(beside["path"].as_str().expect("a path"));
    assert_eq!((new.parent(), &beside["cwd"]), (path.parent(), &"/home/dev/project".into()));
    let id = beside["id"].as_str().expect("an id");
    assert!(new.to_str().expect("plain").ends_with(&format!("_{id}.jsonl")));
    let messages = |file: &str| home.json(&["session", "context", file, "--json"])["messages"].clone();
    assert_eq!(messages(id), messages("abc"));
    let other = home.json(&["session", "fork", "abc", "--leaf", "fa06a43c", "--cwd", "/a/b", "--json"]);
    let place = home.path(".pi/agent/sessions/--a-b--");
    assert_eq!(Path::new(other["path"].as_str().expect("a path")).parent(), Some(place.as_path()));
    assert_eq!((&other["cwd"], &other["entries"]), (&"/a/b".into(), &5.into()));
    assert_eq!(home.run(&["session", "fork", "abc", "--leaf", "nobody"]).status.code(), Some(2));
    assert_eq!(fs::read(&path).expect("read"), old);
}

#[test]
fn what_is_removed_goes_to_the_trash_where_there_is_one() {
    let home = Home::new();
    let path = home.case(REAL, "abc");
    let output = home.run(&["session", "rm", "abc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--permanently") && path.exists());
    let trash = home.path(".local/share/Trash");
    fs::create_dir_all(&trash).expect("a desktop");
    for name in ["2026-12-01T16-19-01-469Z_abc.jsonl", "2026-12-01T16-19-01-469Z_abc.jsonl.2"] {
        let path = home.case(REAL, "abc");
        let said = home.json(&["session", "rm", "abc", "--json"]);
        assert_eq!(said["trash"], trash.join("files").join(name).to_str().expect("plain"));
        let note = fs::read_to_string(trash.join("info").join(format!("{name}.trashinfo"))).expect("a note");
        assert!(note.starts_with(&format!("[Trash Info]\nPath={}\nDeletionDate=20", path.display())), "{note}");
        assert!(trash.join("files").join(name).is_file() && !path.exists());
    }
}

#[test]
fn the_trash_has_the_reader_s_time_and_a_path_as_in_a_url() {
    let home = Home::new();
    let odd = home.case(REAL, "abc").with_file_name("50% é\nb.jsonl");
    fs::rename(odd.with_file_name("2026-12-01T16-19-01-469Z_abc.jsonl"), &odd).expect("renamed");
    let trash = home.path(".local/share/Trash");
    fs::create_dir_all(&trash).expect("a desktop");
    let removed = |zone: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
        command.args(["session", "rm"]).arg(&odd).env_clear().env("HOME", home.path("")).env("TZ", zone);
        assert_eq!(command.output().expect("the binary runs").status.code(), Some(0));
        let name = "50% é\nb.jsonl";
        let note = fs::read_to_string(trash.join("info").join(format!("{name}.trashinfo"))).expect("a note");
        fs::rename(trash.join("files").join(name), &odd).expect("put back");
        fs::remove_file(trash.join("info").join(format!("{name}.trashinfo"))).expect("put back");
        note
    };
    let hour = |note: &str| {
        let date = note.split_once("DeletionDate=").expect("a date").1;
        assert_eq!((date.trim_end().len(), date.contains(['Z', '+'])), (19, false), "{note}");
        date[11..13].parse::<i32>().expect("an hour")
    };
    let (utc, ahead) = (removed("UTC0"), removed("XYZ-12"));
    assert!(utc.contains("/50%25%20%C3%A9%0Ab.jsonl\n"), "{utc}");
    assert!((11..=13).contains(&(hour(&ahead) - hour(&utc)).rem_euclid(24)), "{utc} {ahead}");
}

#[test]
fn nothing_but_json_goes_to_standard_output_with_json() {
    let home = Home::new();
    home.case(OLD, "abc");
    home.case(REAL, "def");
    for command in [
        &["session", "migrate", "abc", "--json"][..],
        &["session", "export", "def", "--html", "--json"],
        &["session", "export", "def", "--jsonl", "--json"],
    ] {
        let output = home.run(command);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{command:?}");
        assert!(stderr(&output).contains("-o"), "{}", stderr(&output));
    }
}

#[test]
fn a_link_is_never_written_through_and_that_is_said() {
    let home = Home::new();
    let (old, new) = (home.case(OLD, "abc"), home.case(REAL, "def"));
    for (file, to) in [("old.jsonl", &old), ("new.jsonl", &new)] {
        std::os::unix::fs::symlink(to, home.path(file)).expect("linked");
    }
    let drafts = home.path("drafts.json");
    fs::write(&drafts, r#"[{"type":"custom","customType":"x"}]"#).expect("written");
    for command in [
        &["session", "migrate", "old.jsonl", "--in-place"][..],
        &["session", "append", "new.jsonl", "--drafts", drafts.to_str().expect("plain")],
    ] {
        assert!(home.fails(1, command).contains(": a link; name the session that it leads to"), "{command:?}");
    }
}

#[test]
fn copies_of_a_private_session_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let path = home.case(OLD, "abc");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
    let forked = home.json(&["session", "fork", "abc", "--json"])["path"].as_str().expect("a path").to_owned();
    home.text(&["session", "migrate", path.to_str().expect("plain"), "-o", "copy.jsonl"]);
    home.text(&["session", "export", path.to_str().expect("plain"), "--html", "-o", "page.html"]);
    for copy in [PathBuf::from(forked), home.path("copy.jsonl"), home.path("page.html")] {
        assert_eq!(fs::metadata(&copy).expect("there").permissions().mode() & 0o777, 0o600, "{}", copy.display());
    }
}

/// `ulimit -f` ends a program in the middle of a write unless it says otherwise.
#[test]
fn a_limit_on_the_size_of_files_leaves_no_half_session() {
    let home = Home::new();
    let big =
        format!("{{\"type\":\"custom\",\"id\":\"a\",\"parentId\":null,\"customType\":\"{}\"}}\n", "x".repeat(3 << 20));
    let header = "{\"type\":\"session\",\"version\":3,\"id\":\"abc\",\"timestamp\":\"2026-12-01T16:19:01.469Z\",\"cwd\":\"/work\"}\n";
    let path = home.file("abc", format!("{header}{big}").as_bytes());
    let dir = path.parent().expect("a directory");
    let drafts = home.path("drafts.json");
    fs::write(&drafts, r#"[{"type":"custom","customType":"y"}]"#).expect("written");
    let old = fs::read(&path).expect("read");
    for command in [
        &["session", "fork", "abc"][..],
        &["session", "export", "abc", "--jsonl", "-o", "new.jsonl"],
        &["session", "append", "abc", "--drafts", drafts.to_str().expect("plain")],
    ] {
        let program = home.command(command);
        let mut limited = Command::new("/bin/sh");
        limited.args(["-c", "ulimit -f 2048; exec \"$@\"", "sh"]).arg(program.get_program()).args(program.get_args());
        limited.current_dir(home.path("")).env("HOME", home.path(""));
        let output = limited.output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{command:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("too large"), "{}", stderr(&output));
        assert_eq!((fs::read(&path).expect("read"), fs::read_dir(dir).expect("read").count()), (old.clone(), 1));
        assert!(!home.path("new.jsonl").exists());
    }
}

/// Pi knows directories by their real names, and so must find there what is written for it.
#[test]
fn a_directory_may_be_named_by_any_way_that_leads_there() {
    let home = Home::new();
    home.case(REAL, "abc");
    fs::create_dir_all(home.path("work/deep")).expect("made");
    std::os::unix::fs::symlink("work/deep", home.path("link")).expect("linked");
    let deep = home.path("work/deep").canonicalize().expect("there");
    let name = format!("--{}--", deep.to_str().expect("plain").trim_start_matches('/').replace('/', "-"));
    for way in ["work/deep", "work/../work/./deep/", "link"] {
        let said = home.json(&["session", "fork", "abc", "--cwd", way, "--json"]);
        assert_eq!(said["cwd"], deep.to_str().expect("plain"), "{way}");
        let path = Path::new(said["path"].as_str().expect("a path"));
        assert!(path.parent().expect("a directory").ends_with(&name), "{way}: {}", path.display());
        let listed = home.text(&["session", "ls", "--cwd", way, "--json"]);
        assert!(listed.contains(said["id"].as_str().expect("an id")), "{way}: {listed}");
    }
    std::os::unix::fs::symlink(home.case(REAL, "abc"), home.path("l.jsonl")).expect("linked");
    let of_link = home.json(&["session", "fork", "l.jsonl", "--json"]);
    assert!(of_link["parentSession"].as_str().expect("a path").ends_with("_abc.jsonl"), "{of_link}");
}
