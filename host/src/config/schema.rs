//! The config as JSON Schema, for editors: `pi-graft config schema`, kept at `config/schema.json`.
//!
//! [`KEYS`] is the one table of the keys there are. Tests hold it to the code that reads them: each key that is read stands
//! here and the other way round, and a value that the schema allows is one that is read without a fault.

use serde_json::{Map, Value, json};

use super::Env;
use super::plugin::GRANTS;
use super::{Config, ConfigError, Origin};

/// What a value may be. Each is read by the function of that name in `value` or `plugin`.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Flag,
    Path,
    Paths,
    Texts,
    Duration,
    SomeDuration,
    Size,
    /// A whole number from this one on.
    Count(u64),
    /// The same that fits into 32 bits, from 0.
    Count32,
    /// One of these words.
    Choice(&'static [&'static str]),
    Digest,
    Name,
    Grants,
    Patterns,
    Answerer,
    Url,
    Variable,
    Text,
    Price,
    Argv,
    /// Whatever a plugin takes.
    Table,
}

/// A key: its section, its name, what its value may be, and what it is for.
type Key = (&'static str, &'static str, Kind, &'static str);

/// The limits, which stand in two places.
const LIMITS: [(&str, Kind, &str); 7] = [
    ("fuel", Kind::Count(1), "Instructions of one run, about: the same on every machine."),
    ("time", Kind::SomeDuration, "Wall clock of one run, host calls included."),
    ("memory", Kind::Size, "Memory of one run."),
    ("proposals", Kind::Count32, "Entries that one run may propose."),
    ("entry-bytes", Kind::Size, "The size of one such entry."),
    ("log-lines", Kind::Count32, "Lines that one run may log; more are counted and dropped."),
    (
        "retry",
        Kind::SomeDuration,
        "Pause before the first of three retries of a run that took too long or had no model; each further is five times as long.",
    ),
];

/// Every key, but the limits.
const KEYS: [Key; 26] = [
    (
        "watch",
        "roots",
        Kind::Paths,
        "Directories with sessions, searched for *.jsonl, also below. Default: where Pi keeps its sessions.",
    ),
    ("watch", "include", Kind::Texts, "Globs on a session's path: only those that match are followed; none: all."),
    ("watch", "exclude", Kind::Texts, "Globs on a session's path: those that match are not followed."),
    ("watch", "cwd", Kind::Texts, "Globs on a session's working directory; none: all."),
    ("watch", "settle", Kind::Duration, "Quiet time after a finished turn before something is appended."),
    ("watch", "live-hold", Kind::Duration, "The same where Pi may be at work and cannot be seen."),
    (
        "watch",
        "network",
        Kind::Choice(&super::NETWORK),
        "Who delivers on network file systems: only the `bridge`, or a direct `append` too, which is not safe beside other hosts.",
    ),
    (
        "state",
        "dir",
        Kind::Path,
        "Where pi-graft remembers what it has handled. Default: pi-graft in the XDG state directory.",
    ),
    ("state", "keep", Kind::Duration, "How long the log of runs is kept."),
    ("bridge", "turn-end", Kind::SomeDuration, "How long Pi may wait at the end of a turn, at most."),
    ("plugin", "name", Kind::Name, "A shipped or installed plugin; or, with `path`, the name to use for your own."),
    ("plugin", "path", Kind::Path, "The component of your own plugin, relative to the config."),
    ("plugin", "sha256", Kind::Digest, "The digest that the component must have."),
    ("plugin", "enabled", Kind::Flag, "Whether it runs."),
    ("plugin", "grants", Kind::Grants, "What it may do, by name; an empty list grants nothing."),
    (
        "plugin",
        "on",
        Kind::Patterns,
        "Wakes it less often than it asks: `*`, an entry type, `message:ROLE`, `custom:TYPE`, `graft`.",
    ),
    ("models", "kind", Kind::Answerer, "`openai`: a server that speaks chat completions; `command`: a program."),
    ("models", "base-url", Kind::Url, "openai: the address that `/chat/completions` is put behind."),
    ("models", "model", Kind::Text, "openai: the model's name there."),
    ("models", "api-key-env", Kind::Variable, "openai: the environment variable that holds the key; none sends none."),
    ("models", "ca-file", Kind::Path, "openai: certificates (PEM) that are trusted in place of the public ones."),
    ("models", "argv", Kind::Argv, "command: the program and its arguments; it reads the prompt on standard input."),
    ("models", "timeout", Kind::SomeDuration, "Wall clock of one call, retries included."),
    ("models", "max-tokens-per-day", Kind::Count(1), "Tokens of all calls of one day (UTC), requests and answers."),
    ("models", "input-price", Kind::Price, "Dollars for a million tokens of requests."),
    ("models", "output-price", Kind::Price, "Dollars for a million tokens of answers."),
];

/// The sections, and what they are for.
const SECTIONS: [(&str, &str); 6] = [
    ("watch", "Which sessions are followed, and when something may be appended to them."),
    ("state", "Where state is kept."),
    ("bridge", "The bridge into a running Pi."),
    ("limits", "What one run of any plugin may use, unless the plugin's own limits say otherwise."),
    ("plugin", "The plugins, in the order in which they run."),
    ("models", "Models that plugins may be granted, by name."),
];

/// The schema.
///
/// # Errors
/// None but what reading the empty config could give, from which the defaults are taken.
pub fn schema() -> Result<Value, ConfigError> {
    let env = Env { home: Some("/".into()), ..Env::default() };
    // A model of no kind has the defaults that all have.
    let defaults = Config::parse(&env, None, "[models.a]\nkind = \"command\"\nargv = [\"a\"]")?;
    let mut sections = Map::new();
    for (name, about) in SECTIONS {
        let keys = keys_of(name, &defaults);
        let table = match name {
            "plugin" => plugins(keys, &defaults),
            "models" => models(keys),
            _ => table(keys),
        };
        sections.insert(name.into(), with(table, about));
    }
    let mut schema = table(sections);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "The config of pi-graft".into();
    Ok(schema)
}

fn keys_of(section: &str, defaults: &Config) -> Map<String, Value> {
    let limits = LIMITS.iter().filter(|_| section == "limits").copied();
    let own = KEYS.iter().filter(|(of, ..)| *of == section).map(|(_, key, kind, about)| (*key, *kind, *about));
    let key = |(key, kind, about): (&str, Kind, &str)| {
        let mut of = with(value(kind), about);
        let full = if section == "models" { format!("models.a.{key}") } else { format!("{section}.{key}") };
        if let Some(default) = default(&full, kind, defaults) {
            of["default"] = default;
        }
        (key.to_owned(), of)
    };
    own.chain(limits).map(key).collect()
}

/// A default that is the same for everybody: a path is not.
fn default(key: &str, kind: Kind, defaults: &Config) -> Option<Value> {
    match kind {
        Kind::Path | Kind::Paths => None,
        Kind::Flag => Some(true.into()),
        Kind::Grants => Some(json!([])),
        _ => {
            let setting = defaults.settings.iter().find(|setting| setting.key == key);
            setting.filter(|setting| setting.origin == Origin::Default).map(|setting| setting.value.clone())
        }
    }
}

fn plugins(mut keys: Map<String, Value>, defaults: &Config) -> Value {
    let mut limits = keys_of("limits", defaults);
    // A plugin's limits are those of [limits] unless it says otherwise: they have no default of their own.
    limits.values_mut().filter_map(Value::as_object_mut).for_each(|key| drop(key.remove("default")));
    keys.insert("limits".into(), with(table(limits), "The keys of [limits], for this plugin alone."));
    keys.insert("config".into(), with(value(Kind::Table), "Handed to the plugin, which says what may stand here."));
    let mut item = table(keys);
    item["required"] = json!(["name"]);
    json!({ "type": "array", "items": item })
}

fn models(keys: Map<String, Value>) -> Value {
    let mut one = table(keys);
    one["required"] = json!(["kind"]);
    json!({ "type": "object", "additionalProperties": one })
}

fn table(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn with(mut schema: Value, about: &str) -> Value {
    schema["description"] = about.into();
    schema
}

fn value(kind: Kind) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let list = |items: Value| json!({ "type": "array", "items": items });
    match kind {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Path => text(PATH),
        Kind::Paths => list(text(PATH)),
        Kind::Texts => list(json!({ "type": "string", "minLength": 1 })),
        Kind::Duration => text(r"^\s*[0-9]+\s*(ms|s|m|h|d)\s*$"),
        Kind::SomeDuration => text(r"^\s*0*[1-9][0-9]*\s*(ms|s|m|h|d)\s*$"),
        Kind::Size => text(r"^\s*0*[1-9][0-9]*\s*(B|KiB|MiB|GiB)\s*$"),
        Kind::Count(least) => json!({ "type": "integer", "minimum": least }),
        Kind::Count32 => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        Kind::Choice(words) => json!({ "type": "string", "enum": words }),
        Kind::Digest => text("^[0-9A-Fa-f]{64}$"),
        Kind::Name => text("^[A-Za-z0-9][A-Za-z0-9._-]*$"),
        Kind::Grants => list(text(&format!("^({}|model:.+)$", GRANTS.join("|")))),
        Kind::Patterns => json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 }),
        Kind::Answerer => text("^(openai|command)$"),
        Kind::Url => text("^https?://[^/?# @]+(/[^?# ]*)?$"),
        Kind::Variable => text("^[A-Za-z_][A-Za-z0-9_]*$"),
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Price => json!({ "type": "number", "minimum": 0 }),
        Kind::Argv => json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 }),
        Kind::Table => json!({ "type": "object" }),
    }
}

/// `~` and `~/…` are the home directory; no other `~`, and no variable, is replaced.
const PATH: &str = "^(~(/.*)?|[^~$].*)$";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Values of all kinds, good and bad.
    const SAMPLES: [&str; 40] = [
        "\"bridge\"",
        "\"append\"",
        "true",
        "0",
        "1",
        "-1",
        "4294967296",
        "1.5",
        "\"\"",
        "\"x\"",
        "\"a/b\"",
        "\"~\"",
        "\"~/x\"",
        "\"~you\"",
        "\"$X\"",
        "\"0s\"",
        "\"2s\"",
        "\" 2 ms \"",
        "\"2 parsecs\"",
        "\"0B\"",
        "\"00B\"",
        "\"64MiB\"",
        "\"64MB\"",
        "[]",
        "[\"a\"]",
        "[\"\"]",
        "[1]",
        "[\"append:custom\"]",
        "[\"append:compacton\"]",
        "[\"model:x\"]",
        "[\"model:\"]",
        "{}",
        "{ a = 1 }",
        "\"0123456789abcdef0123456789abcdef0123456789ABCDEF0123456789abcdef\"",
        "\"0123\"",
        "\"command\"",
        "\"http://127.0.0.1:8080/v1\"",
        "\"https://you:secret@a/v1\"",
        "\"OPENAI_API_KEY\"",
        "\"sk-0123\"",
    ];

    fn env() -> Env {
        Env { home: Some("/home/me".into()), ..Env::default() }
    }

    fn reads(text: &str) -> bool {
        Config::parse(&env(), Some(Path::new("/etc/config.toml")), text).is_ok()
    }

    /// The keys that a table may have, as the reader says when it meets one that is none.
    fn read_keys(section: &str) -> Vec<String> {
        let text = match section {
            "" => "zzzzzzzz = 1".to_owned(),
            "plugin" => "[[plugin]]\nname = \"a\"\nzzzzzzzz = 1".to_owned(),
            "models" => {
                "[models.a]\nkind = \"openai\"\nbase-url = \"http://a\"\nmodel = \"m\"\nzzzzzzzz = 1".to_owned()
            }
            "plugin.limits" => "[[plugin]]\nname = \"a\"\n[plugin.limits]\nzzzzzzzz = 1".to_owned(),
            section => format!("[{section}]\nzzzzzzzz = 1"),
        };
        let fault = Config::parse(&env(), None, &text).expect_err("no such key").to_string();
        let (_, keys) = fault.split_once("there are ").unwrap_or_else(|| panic!("{fault}"));
        let mut keys: Vec<_> = keys.trim().split(", ").map(str::to_owned).collect();
        keys.sort();
        keys
    }

    fn keys(table: &Value) -> Vec<String> {
        let mut keys: Vec<_> = table["properties"].as_object().expect("a table").keys().cloned().collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let schema = schema().expect("a schema");
        assert_eq!(keys(&schema), read_keys(""));
        for section in ["watch", "state", "bridge", "limits"] {
            assert_eq!(keys(&schema["properties"][section]), read_keys(section), "[{section}]");
        }
        let plugin = &schema["properties"]["plugin"]["items"];
        assert_eq!(keys(plugin), read_keys("plugin"));
        assert_eq!(keys(&plugin["properties"]["limits"]), read_keys("plugin.limits"));
        assert_eq!(keys(&schema["properties"]["models"]["additionalProperties"]), read_keys("models"));
    }

    #[test]
    fn what_the_schema_allows_is_what_is_read() {
        let schema = schema().expect("a schema");
        let (mut allowed, mut tried) = (0, 0);
        for section in ["watch", "state", "bridge", "limits", "plugin", "models"] {
            let of = &schema["properties"][section];
            let table = match section {
                "plugin" => &of["items"],
                "models" => &of["additionalProperties"],
                _ => of,
            };
            for (key, rule) in table["properties"].as_object().expect("keys") {
                for sample in SAMPLES {
                    let text = around(section, key) + &format!("{key} = {sample}\n");
                    let value: toml::Table = format!("v = {sample}").parse().expect("TOML");
                    let value = serde_json::to_value(&value["v"]).expect("JSON");
                    assert_eq!(fits(rule, &value), reads(&text), "{text}");
                    (allowed, tried) = (allowed + usize::from(fits(rule, &value)), tried + 1);
                }
            }
        }
        assert!(allowed > 50 && tried - allowed > 300, "{allowed} of {tried}");
    }

    /// What stands before a key so that all the rest holds.
    fn around(section: &str, key: &str) -> String {
        let others = match (section, key) {
            ("plugin", "name") => "",
            ("plugin", _) => "name = \"a\"\n",
            ("models", "argv") => "kind = \"command\"\n",
            ("models", "kind") => "argv = [\"a\"]\n",
            ("models", "base-url") => "kind = \"openai\"\nmodel = \"m\"\n",
            ("models", "model") => "kind = \"openai\"\nbase-url = \"http://a\"\n",
            ("models", _) => "kind = \"openai\"\nbase-url = \"http://a\"\nmodel = \"m\"\n",
            _ => "",
        };
        match section {
            "plugin" => format!("models.x = {{ kind = \"command\", argv = [\"a\"] }}\n[[plugin]]\n{others}"),
            "models" => format!("[models.a]\n{others}"),
            section => format!("[{section}]\n{others}"),
        }
    }

    /// As much of JSON Schema as is used here.
    fn fits(rule: &Value, value: &Value) -> bool {
        let kind = match rule["type"].as_str().expect("a type") {
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other}"),
        };
        let text = value.as_str().unwrap_or_default();
        let pattern = rule["pattern"]
            .as_str()
            .is_none_or(|pattern| regex_automata::meta::Regex::new(pattern).expect("a pattern").is_match(text));
        let one_of = rule.get("enum").and_then(Value::as_array).is_none_or(|words| words.contains(value));
        let long = rule["minLength"].as_u64().is_none_or(|least| text.chars().count() as u64 >= least);
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        let many = rule["minItems"].as_u64().is_none_or(|least| items.len() as u64 >= least);
        let least = rule["minimum"].as_f64().is_none_or(|least| value.as_f64().is_some_and(|number| number >= least));
        let most = rule["maximum"].as_f64().is_none_or(|most| value.as_f64().is_some_and(|number| number <= most));
        let known = rule.get("properties").and_then(Value::as_object);
        let no_more =
            known.is_none_or(|known| value.as_object().is_some_and(|v| v.keys().all(|k| known.contains_key(k))));
        let each = rule.get("items").is_none_or(|rule| items.iter().all(|item| fits(rule, item)));
        kind && pattern && one_of && long && many && least && most && no_more && each
    }

    #[test]
    fn the_schema_that_is_kept_is_this_one() {
        let kept = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/schema.json"));
        let text = serde_json::to_string_pretty(&schema().expect("a schema")).expect("JSON") + "\n";
        assert!(kept.is_ok_and(|kept| kept == text), "pi-graft config schema > config/schema.json");
    }
}
