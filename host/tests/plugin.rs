//! `pi-graft plugin …` as a user meets it: made, looked at, installed, pinned, removed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

/// A home of its own for each test.
mod home;

use home::{Home, said};

/// A config with one installed plugin called `scripted` and these grants, checked.
fn check_config(home: &Home, grants: &[&str]) -> Output {
    let text = format!("[[plugin]]\nname = \"scripted\"\ngrants = {}\n", json!(grants));
    fs::write(home.path("config.toml"), text).expect("written");
    home.run(&["--config", "config.toml", "config", "check"])
}

/// The copy of the installed plugin `scripted`.
fn copy(home: &Home) -> PathBuf {
    home.path(".local/share/pi-graft/plugins/scripted.wasm")
}

/// The guest whose config says what it does.
fn scripted() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/prebuilt/scripted.wasm").display().to_string()
}

/// Its config, in which it says that it needs this.
fn needs(capabilities: &[&str]) -> String {
    json!({ "needs": capabilities }).to_string()
}

#[test]
fn a_plugin_says_what_it_is_and_what_it_asks_for() {
    let home = Home::new();
    let found = home.json(&["plugin", "check", &scripted(), "--json", "--plugin-config", &needs(&["append:custom"])]);
    assert_eq!(
        (&found["loads"], &found["name"], &found["kind"]),
        (&json!(true), &json!("scripted"), &json!("component"))
    );
    assert_eq!(found["contract"], json!({ "plugin": "0.1.0", "host": "0.1.0" }));
    assert_eq!((&found["needs"], &found["on"]), (&json!(["append:custom"]), &json!(["*"])));
    assert_eq!(found["bytes"], fs::metadata(scripted()).expect("it is there").len());
    assert!(found["compileMs"].is_u64() && found["sha256"].as_str().is_some_and(|digest| digest.len() == 64));
    assert!(found["imports"].as_array().expect("imports").contains(&json!("pi-graft:plugin/session@0.1.0")));
}

#[test]
fn what_does_not_load_says_why_and_exits_with_1() {
    let home = Home::new();
    fs::write(home.path("p.wasm"), "no wasm").expect("written");
    assert!(home.fails(1, &["plugin", "check", "p.wasm"]).contains("not WebAssembly"));
    let said = home.fails(1, &["plugin", "check", &scripted(), "--plugin-config", r#"{"colour":1}"#]);
    assert!(said.contains("unknown field `colour`"), "{said}");
    let said = home.fails(1, &["plugin", "check", &scripted(), "--plugin-config", &needs(&["append:gold"])]);
    assert!(said.contains("append:gold"), "{said}");
}

#[test]
fn another_version_of_the_contract_is_named_with_the_remedy() {
    let home = Home::new();
    let wasm = fs::read(scripted()).expect("a guest");
    // The same component with every mention of the version changed, which is of the same length.
    let newer: Vec<u8> = replaced(&wasm, b"@0.1.0", b"@0.7.0");
    fs::write(home.path("newer.wasm"), newer).expect("written");
    let output = home.run(&["plugin", "check", "newer.wasm", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(found["contract"], json!({ "plugin": "0.7.0", "host": "0.1.0" }));
    let error = found["error"].as_str().expect("an error");
    assert!(error.contains("0.7.0") && error.contains("0.1.0") && error.contains("build it with the SDK"), "{error}");
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at: Vec<_> = (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    at.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to));
    bytes
}

#[test]
fn an_installed_plugin_is_found_by_its_name_until_it_is_removed() {
    let home = Home::new();
    assert!(said(&check_config(&home, &[])).contains("no plugin \"scripted\" is shipped or installed"));
    home.json(&["plugin", "install", &scripted(), "--json"]);
    assert_eq!(check_config(&home, &[]).status.code(), Some(0));
    let list = home.json(&["plugin", "list", "--json"]);
    let names: Vec<_> = list.as_array().expect("a list").iter().map(|row| (&row["name"], &row["from"])).collect();
    assert!(names.contains(&(&json!("auto-compact"), &json!("shipped"))));
    assert!(names.contains(&(&json!("scripted"), &json!("installed"))));
    home.json(&["plugin", "remove", "scripted", "--json"]);
    assert!(!copy(&home).exists());
    assert_eq!(check_config(&home, &[]).status.code(), Some(1));
}

#[test]
fn a_changed_copy_is_refused_until_it_is_accepted() {
    let home = Home::new();
    home.json(&["plugin", "install", &scripted(), "--name", "scripted", "--json"]);
    let mut bytes = fs::read(copy(&home)).expect("the copy");
    // One more custom section, empty: another file, and as good a component.
    bytes.extend([0, 2, 1, b'x']);
    fs::write(copy(&home), bytes).expect("changed");
    let output = check_config(&home, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("was changed since it was installed"), "{}", said(&output));
    assert!(home.fails(1, &["plugin", "list"]).contains("plugin install"));
    home.json(&["plugin", "install", &copy(&home).display().to_string(), "--json"]);
    assert_eq!(check_config(&home, &[]).status.code(), Some(0));
}

#[test]
fn a_config_grants_an_installed_plugin_only_what_was_accepted_for_it() {
    let home = Home::new();
    let config = needs(&["append:custom"]);
    let installed = home.json(&["plugin", "install", &scripted(), "--plugin-config", &config, "--json"]);
    assert_eq!(installed["grants"], json!(["append:custom"]));
    assert_eq!(check_config(&home, &["append:custom"]).status.code(), Some(0));
    let output = check_config(&home, &["append:custom", "session:raw"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("session:raw was not accepted"), "{}", said(&output));
    let wider = ["--grant", "append:custom", "--grant", "session:raw"];
    let args: Vec<_> = ["plugin", "install", &scripted(), "--json"].into_iter().map(str::to_owned).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).chain(wider).collect();
    home.json(&args);
    assert_eq!(check_config(&home, &["append:custom", "session:raw"]).status.code(), Some(0));
}

/// What was accepted when it was installed grants nothing: that is for the config, by name.
#[test]
fn a_missing_or_empty_list_grants_nothing() {
    let home = Home::new();
    home.json(&["plugin", "install", &scripted(), "--grant", "append:custom", "--json"]);
    for grants in ["", "grants = []\n"] {
        let text = format!("[[plugin]]\nname = \"scripted\"\n{grants}[plugin.config]\nneeds = [\"append:custom\"]\n");
        fs::write(home.path("config.toml"), text).expect("written");
        let said = home.fails(1, &["--config", "config.toml", "config", "check"]);
        assert!(said.contains("needs append:custom, which is not granted"), "{said}");
    }
}

#[test]
fn a_plugin_of_ones_own_is_pinned_by_the_config() {
    let home = Home::new();
    let digest =
        home.json(&["plugin", "check", &scripted(), "--json"])["sha256"].as_str().expect("a digest").to_owned();
    let check = |digest: &str| {
        let text = format!("[[plugin]]\nname = \"mine\"\npath = {:?}\nsha256 = \"{digest}\"\n", scripted());
        fs::write(home.path("config.toml"), text).expect("written");
        home.run(&["--config", "config.toml", "config", "check"])
    };
    assert_eq!(check(&digest).status.code(), Some(0));
    let other = check(&"0".repeat(64));
    assert_eq!(other.status.code(), Some(1));
    assert!(said(&other).contains(&digest) && said(&other).contains("changed"), "{}", said(&other));
}

#[test]
fn a_name_that_would_never_be_found_is_refused() {
    let home = Home::new();
    let said = home.fails(2, &["plugin", "install", &scripted(), "--name", "auto-compact"]);
    assert!(said.contains("is shipped"), "{said}");
    home.fails(2, &["plugin", "install", &scripted(), "--name", "../x"]);
    assert!(home.fails(1, &["plugin", "remove", "nobody"]).contains("plugin list"));
}

#[test]
fn a_new_folder_says_how_to_go_on_and_what_is_missing() {
    let home = Home::new();
    let made = home.json(&["plugin", "new", "--lang", "typescript", "my-plugin", "--json"]);
    assert_eq!(made["name"], "my-plugin");
    assert!(home.path("my-plugin/sdk/src/index.ts").is_file());
    assert!(home.fails(1, &["plugin", "new", "my-plugin"]).contains("not empty"));
    let said = home.fails(1, &["plugin", "build", "my-plugin"]);
    assert!(said.contains("install Node 20 or newer"), "{said}");
    assert!(home.fails(1, &["plugin", "build"]).contains("plugin new"));
}

/// The cache of compiled code may be lost at any time, and never keeps a plugin from being used.
#[test]
fn a_cache_that_cannot_be_used_or_trusted_costs_time_and_nothing_else() {
    let home = Home::new();
    fs::write(home.path(".cache"), "a file").expect("written");
    let output = home.run(&["plugin", "check", &scripted()]);
    assert!(output.status.success() && said(&output).contains("compiled each time"), "{}", said(&output));
    fs::remove_file(home.path(".cache")).expect("removed");
    let dir = home.path(".cache/pi-graft/compiled");
    fs::create_dir_all(&dir).expect("made");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("open to all");
    let output = home.run(&["plugin", "check", &scripted()]);
    assert!(output.status.success() && said(&output).contains("only you can write to"), "{}", said(&output));
    assert_eq!(fs::read_dir(&dir).expect("the cache").count(), 0, "nothing is put there, and nothing taken from there");
}

/// Two terminals: what one installs and removes does not undo what the other does.
#[test]
fn two_that_install_at_once_are_both_heard() {
    let home = Home::new();
    let names: Vec<String> = (0..6).map(|n| format!("p-{n}")).collect();
    let install = |name: &String| {
        let mut command = home.command(&["plugin", "install", &scripted(), "--name", name]);
        command.stdout(Stdio::null()).spawn().expect("it runs")
    };
    let running: Vec<_> = names.iter().map(install).collect();
    running.into_iter().for_each(|mut child| assert!(child.wait().expect("it ends").success()));
    let list = home.json(&["plugin", "list", "--json"]);
    let installed = list.as_array().expect("a list").iter().filter(|row| row["from"] == "installed");
    assert_eq!(installed.map(|row| row["name"].as_str().expect("a name")).collect::<Vec<_>>(), names);
}

/// A pipe would be waited for for ever, and a device read until the memory is gone: also by a daemon that reloads.
#[test]
fn what_is_no_regular_file_is_no_plugin() {
    let home = Home::new();
    let pipe = home.path("pipe.wasm");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
    for odd in [pipe.display().to_string(), "/dev/zero".to_owned()] {
        assert!(home.fails(1, &["plugin", "check", &odd]).contains("not a regular file"));
        fs::write(home.path("config.toml"), format!("[[plugin]]\nname = \"odd\"\npath = {odd:?}\n")).expect("written");
        assert!(home.fails(1, &["--config", "config.toml", "config", "check"]).contains("not a regular file"));
    }
}

#[test]
fn what_is_said_can_be_done() {
    let home = Home::new();
    assert!(home.text(&["plugin", "new", "a new one"]).contains("cd 'a new one'"));
    assert!(home.fails(1, &["plugin", "remove", "auto-compact"]).contains("is shipped"));
    home.text(&["config", "init"]);
    assert!(home.fails(1, &["config", "init"]).contains("there is a config already"));
    assert!(home.text(&["quarantine", "retry", "--all"]).contains("none is made again"));
}

/// Several that compile the same plugin at once keep it once, whole.
#[test]
fn processes_that_share_the_cache_do_not_get_in_each_others_way() {
    let home = Home::new();
    let check = || home.command(&["plugin", "check", &scripted()]).stdout(Stdio::null()).spawn().expect("it runs");
    let running: Vec<_> = (0..4).map(|_| check()).collect();
    running.into_iter().for_each(|mut child| assert!(child.wait().expect("it ends").success()));
    assert_eq!(fs::read_dir(home.path(".cache/pi-graft/compiled")).expect("the cache").count(), 1);
    home.text(&["plugin", "check", &scripted()]);
}
