//! `pi-graft bridge`: the extension is put where Pi finds it, and nobody else's file is touched.

use std::path::Path;
use std::process::{Command, Output};

fn bridge(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi-graft"));
    command.env_clear().env("HOME", home).current_dir(home).arg("bridge").args(args).output().expect("it runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn installed_for_all_projects_or_one_and_removed_again() {
    let home = tempfile::tempdir().expect("a home");
    for (args, file) in [(&[][..], ".pi/agent/extensions/pi-graft.ts"), (&["--project"], ".pi/extensions/pi-graft.ts")]
    {
        let path = home.path().join(file);
        let install = bridge(home.path(), &[&["install"], args].concat());
        assert!(install.status.success(), "{}", text(&install));
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/bridge/pi-graft.ts");
        assert_eq!(std::fs::read(&path).expect("it"), std::fs::read(shipped).expect("the shipped one"));
        assert!(text(&bridge(home.path(), &["status"])).contains("installed\n"));
        let removed = bridge(home.path(), &[&["remove"], args].concat());
        assert!(removed.status.success() && !path.exists(), "{}", text(&removed));
    }
    assert!(!text(&bridge(home.path(), &["status"])).contains(": installed"));
}

#[test]
fn what_is_not_ours_or_was_changed_stays_unless_told() {
    let home = tempfile::tempdir().expect("a home");
    let path = home.path().join(".pi/agent/extensions/pi-graft.ts");
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(&path, "export default () => {};\n").expect("somebody's");
    assert_eq!(bridge(home.path(), &["install"]).status.code(), Some(1));
    assert_eq!(bridge(home.path(), &["remove"]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&path).expect("it"), "export default () => {};\n");
    assert!(bridge(home.path(), &["install", "--force"]).status.success());
    let changed = std::fs::read_to_string(&path).expect("it") + "// mine\n";
    std::fs::write(&path, changed).expect("changed");
    assert!(text(&bridge(home.path(), &["status"])).contains("another version, or changed"));
    assert_eq!(bridge(home.path(), &["remove"]).status.code(), Some(1));
    assert!(bridge(home.path(), &["install"]).status.success(), "an older one of ours is replaced");
}

#[test]
fn as_a_package() {
    let home = tempfile::tempdir().expect("a home");
    assert!(bridge(home.path(), &["install", "--package", "pack"]).status.success());
    let manifest = std::fs::read_to_string(home.path().join("pack/package.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let extension = manifest["pi"]["extensions"][0].as_str().expect("a path");
    assert!(home.path().join("pack").join(extension).is_file());
}
