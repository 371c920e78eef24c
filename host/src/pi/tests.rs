use std::fs;

use pi_session::settings::{Given, ModelId};

use super::*;

/// An agent directory and a project, both empty.
struct Home {
    dir: tempfile::TempDir,
    files: PiFiles,
}

impl Home {
    fn new() -> Home {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir_all(dir.path().join("agent")).expect("made");
        fs::create_dir_all(dir.path().join("work/.pi")).expect("made");
        Home { files: PiFiles::new(Some(dir.path().join("agent"))), dir }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join(name), text).expect("written");
    }

    /// Pi's decision on the project, as it keeps it.
    fn trust(&self, decision: bool) {
        let real = self.dir.path().join("work").canonicalize().expect("it is there");
        self.write("agent/trust.json", &format!("{{{:?}:{decision}}}", real.display().to_string()));
    }

    fn look(&self) -> Arc<Seen> {
        self.files.look(Some(&self.dir.path().join("work")))
    }

    fn reserve(&self) -> u64 {
        self.look().around.facts(None, &Given::default()).reserve.value
    }
}

fn reserve(tokens: u64) -> String {
    format!(r#"{{"compaction":{{"reserveTokens":{tokens}}}}}"#)
}

#[test]
fn a_projects_settings_count_once_pi_trusts_it() {
    let home = Home::new();
    assert_eq!(home.reserve(), 16_384);
    home.write("agent/settings.json", &reserve(1));
    assert_eq!(home.reserve(), 1);
    home.write("work/.pi/settings.json", &reserve(2));
    assert_eq!(home.reserve(), 1);
    assert_eq!(home.look().untrusted, Some(home.dir.path().join("work/.pi/settings.json")));
    home.trust(true);
    assert_eq!((home.reserve(), home.look().untrusted.clone()), (2, None));
    home.trust(false);
    assert_eq!(home.reserve(), 1);
    fs::remove_file(home.dir.path().join("agent/settings.json")).expect("removed");
    assert_eq!(home.reserve(), 16_384);
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let home = Home::new();
    home.write("agent/settings.json", &reserve(1));
    let first = home.look();
    assert!(Arc::ptr_eq(&first, &home.look()));
    home.write("agent/settings.json", &reserve(22));
    assert!(!Arc::ptr_eq(&first, &home.look()));
}

#[test]
fn while_pi_writes_its_settings_the_ones_before_count() {
    let home = Home::new();
    home.write("agent/settings.json", &reserve(1));
    assert_eq!(home.reserve(), 1);
    let lock = home.dir.path().join("agent/settings.json.lock");
    fs::create_dir(&lock).expect("Pi's lock");
    home.write("agent/settings.json", "");
    assert_eq!(home.reserve(), 1);
    home.write("agent/settings.json", &reserve(333));
    fs::remove_dir(&lock).expect("released");
    assert_eq!(home.reserve(), 333);
}

#[test]
fn what_is_no_plain_file_is_not_opened() {
    let home = Home::new();
    fs::create_dir(home.dir.path().join("agent/settings.json")).expect("made");
    let fifo = home.dir.path().join("agent/models.json");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()), "a pipe that nobody writes to");
    std::os::unix::fs::symlink("/dev/zero", home.dir.path().join("work/.pi/settings.json")).expect("linked");
    home.trust(true);
    let faults: Vec<_> = home.look().faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults.iter().filter(|fault| fault.contains("not a plain file")).count(), 3, "{faults:?}");
    assert_eq!(home.reserve(), 16_384);
}

#[test]
fn a_huge_file_is_left_alone() {
    let home = Home::new();
    let huge = fs::File::create(home.dir.path().join("agent/models.json")).expect("made");
    huge.set_len(1 << 40).expect("a hole");
    assert!(home.look().faults[0].to_string().contains("bytes, more than"));
}

#[test]
fn a_fault_is_told_once_and_again_when_it_is_another() {
    let home = Home::new();
    home.write("agent/settings.json", "{");
    let told = || home.files.news(home.look().faults.clone()).len();
    assert_eq!((told(), told()), (1, 0));
    home.write("agent/settings.json", "{\n{");
    assert_eq!(told(), 1);
}

#[test]
fn models_come_from_the_agent_directory() {
    let home = Home::new();
    home.write("agent/models.json", r#"{"providers":{"p":{"modelOverrides":{"m":{"contextWindow":7}}}}}"#);
    let model = ModelId { provider: "p".into(), id: "m".into() };
    let facts = home.look().around.facts(Some(&model), &Given::default());
    assert_eq!(facts.window.map(|window| window.value), Some(7));
}

#[test]
fn without_a_directory_there_are_pis_defaults() {
    let nowhere = PiFiles::new(None);
    for cwd in [None, Some(Path::new("relative")), Some(Path::new("/no/such/directory"))] {
        let facts = nowhere.look(cwd).around.facts(None, &Given::default());
        assert_eq!((facts.reserve.value, facts.enabled.value), (16_384, true));
    }
}
