//! A disk that stays full for long: a real one, as small as can be, where this user may mount it. What each system call may say
//! is walked through in `host/tests/faults.rs`.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Stage, scripted, until};
use crate::talk::{Session, Talk};

/// More than the last page of a small session has room for.
fn noter() -> String {
    let data = "x".repeat(16 << 10);
    let note = format!(
        r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{{"custom":{{"type":"note","data":"{data}"}}}}]}}"#
    );
    scripted("noter", &["append:custom"], &note)
}

/// A file system of 256 KiB in memory, gone at the end of the scene.
struct Small(PathBuf);

impl Small {
    fn at(dir: &Path) -> Option<Small> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "small"]).arg(dir);
        if !mount.output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: this user may not mount a small disk");
            return None;
        }
        Some(Small(dir.to_owned()))
    }

    /// Fills it to the last byte.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut filler = File::create_new(&path).expect("a file");
        while filler.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn on_a_full_disk_a_graft_waits_for_room_and_other_disks_do_not() {
    let stage = Stage::new(20, &noter());
    let (full, roomy) = (stage.session("full.jsonl"), stage.root().join("--other--/roomy.jsonl"));
    let Some(small) = Small::at(full.parent().expect("its directory")) else { return };
    std::fs::create_dir(roomy.parent().expect("its directory")).expect("another directory");
    let mut daemon = stage.daemon(&["--closed"]);
    let mut pi = Talk::begin(&full);
    pi.user("hello");
    pi.call("c1", "bash");
    daemon.wait_for("waiting: the turn has not ended");
    let filler = small.fill();
    pi.result("c1", "done");
    pi.assistant("hi");
    let waits = || {
        let status: serde_json::Value = serde_json::from_slice(&stage.run(&["status", "--json"]).stdout).expect("JSON");
        status["sessions"].as_array().is_some_and(|all| {
            all.iter().any(|one| one["waiting"] == "there is no room for it on the disk; it is written once there is")
        })
    };
    until("status to say why", waits);
    let before = std::fs::read(&full).expect("the session");
    let mut other = Talk::begin(&roomy);
    other.user("hello");
    other.assistant("hi");
    until("the graft elsewhere", || Session::read(&roomy).customs("note").len() == 1);
    until("a second try", || daemon.log().matches("kept for later").count() >= 2);
    assert_eq!(daemon.log().matches("WARN").count(), 1, "it is said once: {}", daemon.log());
    assert_eq!(std::fs::read(&full).expect("the session"), before, "not one byte is written");
    std::fs::remove_file(filler).expect("room again");
    until("the graft", || Session::read(&full).customs("note").len() == 1);
    daemon.end();
    stage.once(&["--closed"]);
    let file = Session::read(&full);
    file.assert_sound();
    assert_eq!((file.receipts(), file.customs("note").len()), (1, 1));
}
