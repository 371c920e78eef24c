use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

fn env() -> Env {
    Env { home: Some("/home/me".into()), ..Env::default() }
}

fn parse(text: &str) -> Config {
    Config::parse(&env(), Some(Path::new("/etc/graft/config.toml")), text).unwrap_or_else(|e| panic!("{e}"))
}

fn faults(text: &str) -> Vec<String> {
    match Config::parse(&env(), Some(Path::new("/etc/graft/config.toml")), text) {
        Ok(_) => Vec::new(),
        Err(ConfigError::Faults { faults, .. }) => faults.iter().map(Fault::to_string).collect(),
        Err(other) => panic!("{other}"),
    }
}

fn origin(config: &Config, key: &str) -> Origin {
    let found = config.settings.iter().find(|setting| setting.key == key);
    found.unwrap_or_else(|| panic!("no setting {key}")).origin.clone()
}

#[test]
fn an_empty_config_is_all_defaults() {
    let config = parse("");
    assert_eq!(config.watch.roots, [PathBuf::from("/home/me/.pi/agent/sessions")]);
    assert_eq!(config.watch.settle, Duration::from_secs(2));
    assert_eq!(config.watch.live_hold, Duration::from_secs(600));
    assert_eq!(config.state.dir, PathBuf::from("/home/me/.local/state/pi-graft"));
    assert_eq!(config.limits, Limits::default());
    assert!(config.plugins.is_empty(), "no plugin is nobody's default");
    assert!(config.settings.iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn the_shipped_config_holds_and_says_nothing_but_defaults() {
    let shipped = Config::parse(&env(), None, SHIPPED).expect("the shipped config holds");
    let empty = parse("");
    for setting in empty.settings {
        let same = shipped.settings.iter().find(|other| other.key == setting.key).expect("the same keys");
        assert_eq!(same.value, setting.value, "{}", setting.key);
    }
    assert_eq!(shipped.plugins[0].name, "auto-compact");
    assert_eq!(shipped.plugins[0].grants, ["append:compaction"]);
    assert!(shipped.notes.is_empty());
}

/// Every line that is switched off in the shipped config is a key that there is, with the default as its value.
#[test]
fn what_is_switched_off_in_the_shipped_config_is_known_too() {
    let on = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => rest.to_owned(),
        _ => line.to_owned(),
    };
    let all: String = SHIPPED.lines().map(|line| on(line) + "\n").collect();
    let config = Config::parse(&env(), None, &all).unwrap_or_else(|e| panic!("{e}"));
    let defaults = parse("");
    for setting in defaults.settings {
        let written = config.settings.iter().find(|other| other.key == setting.key).expect("the same keys");
        assert_eq!(written.value, setting.value, "{}", setting.key);
        assert!(matches!(written.origin, Origin::File { .. }), "{} is not in the shipped config", setting.key);
    }
    assert_eq!(config.plugins[0].limits, Limits::default());
    assert_eq!(config.models.len(), 2);
}

#[test]
fn an_unknown_key_is_told_with_its_place_and_its_neighbour() {
    let text = "[watch]\nroots = []\n  setle = \"2s\"\n\n[[plugin]]\nname = \"a\"\nenabeld = true\n[plugin.limits]\nfule = 1\n";
    assert_eq!(
        faults(text),
        [
            "3:3: watch.setle: there is no such key; did you mean `settle`?",
            "7:1: plugin.a.enabeld: there is no such key; did you mean `enabled`?",
            "9:1: plugin.a.limits.fule: there is no such key; did you mean `fuel`?",
        ]
    );
    assert_eq!(faults("[wacth]\n"), ["1:2: wacth: there is no such key; did you mean `watch`?"]);
    assert!(faults("zzzz = 1")[0].ends_with("there are watch, state, bridge, limits, models, plugin"));
}

#[test]
fn a_wrong_value_is_told_with_what_to_write() {
    let text = "[watch]\nsettle = 2\nlive-hold = \"2 parsecs\"\nroots = \"/a\"\n[limits]\nmemory = 64\nfuel = \"much\"\ntime = \"0s\"\n";
    let faults = faults(text);
    assert_eq!(
        faults[0],
        "2:10: watch.settle: expected a duration such as \"10s\", found a whole number; if you mean seconds, write \"2s\""
    );
    assert!(faults[1].starts_with("3:13: watch.live-hold: \"2 parsecs\" is no duration"), "{}", faults[1]);
    assert!(faults[2].starts_with("4:9: watch.roots: expected a list of texts"), "{}", faults[2]);
    assert!(faults[3].contains("write \"64B\""), "{}", faults[3]);
    assert_eq!(faults[4], "7:8: limits.fuel: expected a whole number, found text");
    assert_eq!(faults[5], "8:8: limits.time: must be more than nothing");
    assert_eq!(faults.len(), 6);
}

#[test]
fn text_that_is_no_toml_is_told_with_its_place() {
    let faults = faults("[watch\nsettle = \"2s\"\n");
    assert!(faults[0].starts_with("1:7: "), "{}", faults[0]);
    assert!(!super::Config::parse(&env(), None, "a = 1\na = 2\n").is_ok_and(|_| true));
}

#[test]
fn paths_are_relative_to_the_config_file() {
    let config =
        parse("[watch]\nroots = [\"here\", \"~/there\", \"/abs\"]\n[[plugin]]\nname = \"a\"\npath = \"a.wasm\"\n");
    let roots = ["/etc/graft/here", "/home/me/there", "/abs"].map(PathBuf::from);
    assert_eq!(config.watch.roots, roots);
    assert_eq!(config.plugins[0].from, PluginFrom::Path("/etc/graft/a.wasm".into()));
    assert!(faults("[state]\ndir = \"~you/x\"\n")[0].contains("write the path out"));
    assert!(faults("[state]\ndir = \"$HOME/x\"\n")[0].contains("variables are not replaced"));
}

#[test]
fn a_plugin_s_limits_go_over_those_for_all() {
    let config = parse("[limits]\nfuel = 5\ntime = \"1s\"\n[[plugin]]\nname = \"a\"\n[plugin.limits]\ntime = \"5s\"\n");
    let plugin = &config.plugins[0];
    assert_eq!((plugin.limits.fuel, plugin.limits.time), (5, Duration::from_secs(5)));
    assert_eq!(plugin.limits.memory, 64 << 20);
    assert_eq!(origin(&config, "plugin.a.limits.fuel"), Origin::Limits);
    assert_eq!(origin(&config, "plugin.a.limits.time"), Origin::File { line: 7 });
}

#[test]
fn a_plugin_s_own_config_is_handed_over_as_json() {
    let text = "[[plugin]]\nname = \"a\"\n[plugin.config]\nat = \"80%\"\nn = 0x10\nx = 1.5\nlist = [1, { a = true }]\n";
    let json: Value = serde_json::from_str(&parse(text).plugins[0].config_json).expect("JSON");
    assert_eq!(json, json!({"at": "80%", "n": 16, "x": 1.5, "list": [1, {"a": true}]}));
    assert_eq!(parse("[[plugin]]\nname = \"a\"\n").plugins[0].config_json, "{}");
    assert!(faults("[[plugin]]\nname = \"a\"\nconfig.x = inf\n")[0].contains("plugin.a.config.x"));
}

#[test]
fn grants_are_names_that_there_are() {
    let fault = &faults("[[plugin]]\nname = \"a\"\ngrants = [\"append:compacton\"]\n")[0];
    assert!(fault.ends_with("did you mean \"append:compaction\"?"), "{fault}");
    assert!(faults("[[plugin]]\nname = \"a\"\ngrants = [\"append:custom\", \"session:raw\"]\n").is_empty());
    assert!(parse("[[plugin]]\nname = \"a\"\n").plugins[0].grants.is_empty());
}

#[test]
fn a_plugin_has_a_name_of_its_own() {
    assert!(faults("[[plugin]]\n")[0].starts_with("1:1: plugin.name: missing"), "{:?}", faults("[[plugin]]\n"));
    assert!(faults("[[plugin]]\nname = \"a/b\"\n")[0].contains("a name has letters"));
    assert!(faults("[[plugin]]\nname = \"a\"\n[[plugin]]\nname = \"a\"\n")[0].contains("stands twice"));
    assert!(faults("[plugin]\nname = \"a\"\n")[0].contains("[[plugin]]"));
}

#[test]
fn an_empty_list_of_wakers_would_be_a_silent_plugin() {
    assert!(faults("[[plugin]]\nname = \"a\"\non = []\n")[0].contains("nothing would wake it"));
    assert_eq!(parse("[[plugin]]\nname = \"a\"\non = [\"*\"]\n").plugins[0].on, Some(vec!["*".to_owned()]));
}

#[test]
fn the_bridge_is_told_how_long_pi_may_wait() {
    assert_eq!(parse("[bridge]\nturn-end = \"700ms\"\n").bridge.turn_end, Duration::from_millis(700));
    assert!(faults("[bridge]\nturn-end = 500\n")[0].contains("expected a duration"));
}

const OPENAI: &str = "[models.summary]\nkind = \"openai\"\nbase-url = \"http://127.0.0.1:8080/v1/\"\nmodel = \"any\"\n";

#[test]
fn a_model_is_a_server_or_a_program() {
    let config =
        parse(&format!("{OPENAI}input-price = 0.25\n[models.pi]\nkind = \"command\"\nargv = [\"pi\", \"-p\"]\n"));
    let [program, server] = &config.models[..] else { panic!("two models: {:?}", config.models) };
    let base_url = "http://127.0.0.1:8080/v1".to_owned();
    let expected = ModelFrom::OpenAi { base_url, model: "any".into(), api_key_env: None, ca_file: None };
    assert_eq!((server.name.as_str(), &server.from), ("summary", &expected));
    assert_eq!((server.timeout, server.max_tokens_per_day), (Duration::from_secs(120), 2_000_000));
    assert!((server.input_price - 0.25).abs() < f64::EPSILON);
    assert_eq!(program.from, ModelFrom::Command { argv: vec!["pi".into(), "-p".into()] });
    assert!(config.notes.is_empty());
}

#[test]
fn a_model_that_does_not_hold_is_told_by_its_key() {
    let faults_of = |keys: &str| faults(&format!("[models.a]\n{keys}"));
    assert_eq!(faults_of("kind = \"command\"\n"), ["1:9: models.a.argv: missing"]);
    assert_eq!(
        faults_of("kind = \"openai\"\nargv = [\"x\"]\nbase-url = \"localhost\"\n"),
        [
            "1:9: models.a.model: missing",
            "3:8: models.a.argv: is for kind = \"command\"",
            "4:12: models.a.base-url: expected an address such as \"http://127.0.0.1:8080/v1\"",
        ]
    );
    assert!(faults_of("kind = \"opnai\"\nargv = [\"x\"]\n")[0].contains("there are \"openai\" and \"command\""));
    assert!(faults_of("kind = \"command\"\nargv = []\n")[0].contains("name a program"));
    assert!(faults(&format!("{OPENAI}time-out = \"2s\"\n"))[0].contains("did you mean `timeout`?"));
    assert!(faults("[models]\nsummary = 1\n")[0].contains("expected a table"));
}

#[test]
fn a_key_in_the_config_is_not_told_again() {
    for keys in ["api-key-env = \"sk-SECRET-1\"\n", "api-key-env = \"9SECRET\"\n"] {
        let faults = faults(&format!("{OPENAI}{keys}"));
        assert!(faults[0].contains("never the key itself") && !faults[0].contains("SECRET"), "{faults:?}");
    }
    let faults = faults(&OPENAI.replace("127.0.0.1", "me:SECRET@host"));
    assert!(faults[0].contains("take it out") && !faults[0].contains("SECRET"), "{faults:?}");
}

#[test]
fn a_key_that_goes_over_plain_http_is_worth_a_word() {
    let text = format!("{OPENAI}api-key-env = \"KEY\"\n");
    assert!(parse(&text).notes.is_empty(), "it stays on this machine");
    let notes = parse(&text.replace("127.0.0.1", "example.org")).notes;
    assert!(notes[0].to_string().contains("others may read it"), "{notes:?}");
}

#[test]
fn a_grant_names_a_model_that_there_is() {
    let plugin = "[[plugin]]\nname = \"a\"\ngrants = [\"model:sumary\"]\n";
    assert_eq!(
        faults(&format!("{plugin}{OPENAI}")),
        ["3:10: plugin.a.grants: there is no [models.sumary]; did you mean \"model:summary\"?"]
    );
    assert!(faults(plugin)[0].contains("write that table"));
    assert!(faults(&format!("{}{OPENAI}", plugin.replace("sumary", "summary"))).is_empty());
}

#[test]
fn sessions_are_chosen_by_path_and_working_directory() {
    let config =
        parse("[watch]\ninclude = [\"--work--/*\"]\nexclude = [\"**/*_secret.jsonl\"]\ncwd = [\"~/code/**\"]\n");
    let path = |text: &str| config.watch.wants_path(Path::new(text));
    assert!(path("/s/--work--/1.jsonl"));
    assert!(!path("/s/--work--/1_secret.jsonl"));
    assert!(!path("/s/--play--/1.jsonl"));
    assert!(config.watch.wants_cwd(Some("/home/me/code/a")));
    assert!(!config.watch.wants_cwd(Some("/home/me/play")));
    assert!(!config.watch.wants_cwd(None));
    assert!(parse("").watch.wants_cwd(None));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::load_in(&env(), Path::new("/nowhere/config.toml")).expect_err("no file");
    assert!(error.to_string().starts_with("/nowhere/config.toml: "), "{error}");
}

#[test]
fn what_is_no_utf_8_is_told_with_its_place() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("config.toml");
    std::fs::write(&path, b"[watch]\nroots = [\"\xc3\xa9\xff\"]\n").expect("written");
    let error = Config::load_in(&env(), &path).expect_err("no text");
    assert_eq!(error.to_string(), format!("{}:2:12: this is no UTF-8: save the file as UTF-8", path.display()));
}
