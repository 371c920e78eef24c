//! `pi-graft service` as a user meets it: the unit that it writes, read by systemd's own checker and followed by hand.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

mod home;

use home::{Home, said};

const UNIT: &str = ".config/systemd/user/pi-graft.service";

/// The words of a line of the unit's, as systemd splits them.
fn words(unit: &str, key: &str) -> Vec<String> {
    let line = unit.lines().find_map(|line| line.strip_prefix(key)).expect("the line");
    let inside = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).expect("quoted");
    inside.split("\" \"").map(|word| word.replace("%%", "%").replace("$$", "$")).collect()
}

#[test]
fn the_unit_starts_the_daemon_with_the_config_it_was_installed_with() {
    let home = Home::new();
    fs::create_dir_all(home.path("sessions")).expect("made");
    fs::write(home.path("my 50% $x.toml"), "[watch]\nroots = [\"sessions\"]\n").expect("written");
    let told = home.json(&["service", "install", "--no-start", "--config", "my 50% $x.toml", "--json"]);
    assert_eq!((&told["path"], &told["started"]), (&home.path(UNIT).to_str().into(), &false.into()));
    let unit = fs::read_to_string(home.path(UNIT)).expect("the unit");
    let start = words(&unit, "ExecStart=");
    let mut daemon = Command::new(&start[0]);
    daemon.args(&start[1..]).env_clear().env("HOME", home.path("")).env("XDG_RUNTIME_DIR", home.path(""));
    let mut daemon = daemon.current_dir("/").stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(daemon.stderr.take().expect("piped")).lines();
    let begun = lines.map_while(Result::ok).find(|line| line.contains("starting"));
    let roots = home.path("sessions").to_str().expect("a plain path").to_owned();
    assert!(begun.as_ref().is_some_and(|line| line.contains(&roots)), "{begun:?}");
    daemon.kill().and_then(|()| daemon.wait()).expect("it ends");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let home = Home::new();
    home.json(&["service", "install", "--no-start", "--json"]);
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--user"])
        .arg(home.path(UNIT))
        .env("XDG_RUNTIME_DIR", home.path(""))
        .output();
    // Not every machine has it; the gate's has.
    let Ok(verify) = verify else { return };
    let text = said(&verify);
    assert!(!text.contains("pi-graft.service:"), "{text}");
}

#[test]
fn without_a_service_manager_the_unit_is_written_and_the_rest_said() {
    let home = Home::new();
    let text = home.fails(1, &["service", "install"]);
    assert!(text.contains("systemctl --user daemon-reload") && text.contains("pi-graft run"), "{text}");
    assert!(home.path(UNIT).exists());
    assert!(home.text(&["service", "remove"]).contains("removed"));
    assert!(!home.path(UNIT).exists());
    assert!(home.text(&["service", "remove"]).contains("not installed"));
}

#[test]
fn a_config_that_does_not_hold_is_said_before_anything_is_written() {
    let home = Home::new();
    fs::write(home.path("config.toml"), "[wotch]\n").expect("written");
    let text = home.fails(2, &["service", "install", "--config", "config.toml"]);
    assert!(text.contains("watch"), "{text}");
    assert!(home.text(&["service", "install", "--print"]).contains("ExecStart="));
    assert!(!home.path(UNIT).exists());
}
