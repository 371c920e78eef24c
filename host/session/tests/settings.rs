//! Pi's own settings as the real Pi resolves them: random `settings.json` of user and project, `trust.json`,
//! `models.json` and `models-store.json`, read by Pi and by us.
//!
//! Needs Pi, as `tests/oracle.rs` does; `ORACLE_SEED` and `ORACLE_SETTINGS` choose which and how many.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use common::generate::value::Rng;
use common::js::Js;
use pi_session::settings::{Around, Facts, Given, ModelId, Models, Origin, Settings, Store, trust::Trust};

/// Values where a number of tokens should be.
const TOKENS: &[&str] = &[
    "0",
    "1",
    "5000",
    "16384.0",
    "1e4",
    "-1",
    "1.5",
    "9007199254740991",
    "9007199254740992",
    "1e400",
    "null",
    "\"5\"",
    "[]",
    "{}",
    "true",
];
/// Values where an object should be.
const NO_OBJECT: &[&str] = &["null", "5", "\"x\"", "[1]", "true"];
/// Models that are asked for.
const ASKED: &[(&str, &str)] = &[
    ("openai", "gpt-4"),
    ("anthropic", "mine"),
    ("x", "m"),
    ("x", "a/b"),
    ("nobody", "m"),
    ("openrouter", "openai/gpt-4"),
];

/// One scene: four files, and a model to ask for.
#[derive(Debug)]
struct Scene {
    global: String,
    project: String,
    trust: String,
    models: String,
    store: String,
    asked: (&'static str, &'static str),
}

fn scene(seed: u64, cwd: &str) -> Scene {
    let rng = &mut Rng::new(seed);
    let trust = [
        "{}".to_owned(),
        format!("{{{cwd:?}:true}}"),
        format!("{{\"/\":true,{cwd:?}:null}}"),
        format!("{{\"/\":true,{cwd:?}:false}}"),
    ];
    let trust = trust[rng.below(4) as usize].clone();
    let (global, project) = (settings(rng), settings(rng));
    Scene { global, project, trust, models: models(rng), store: store(rng), asked: rng.pick(ASKED) }
}

fn settings(rng: &mut Rng) -> String {
    if rng.per_mille(30) {
        return rng
            .pick(&["", "[]", "null", "7", "{", "{\"a\":1,}", "\u{feff}{\"compaction\":{\"reserveTokens\":3}}"])
            .to_owned();
    }
    let compaction = if rng.per_mille(100) { rng.pick(NO_OBJECT).to_owned() } else { compaction(rng) };
    let mut members = vec![format!("\"compaction\":{compaction}")];
    if rng.per_mille(300) {
        members.push(format!("\"sessionDir\":{}", rng.pick(&["\"a\"", "\"~/b\"", "\"\"", "null"])));
    }
    if rng.per_mille(300) {
        let trust = rng.pick(&["\"always\"", "\"never\"", "\"ask\"", "true", "\"Always\""]);
        members.push(format!("\"defaultProjectTrust\":{trust}"));
    }
    format!("{{{}}}", members.join(","))
}

fn compaction(rng: &mut Rng) -> String {
    let mut members = Vec::new();
    for name in ["reserveTokens", "keepRecentTokens", "reserveTokens"] {
        if rng.per_mille(400) {
            members.push(format!("{name:?}:{}", tokens(rng)));
        }
    }
    if rng.per_mille(400) {
        members.push(format!(
            "\"enabled\":{}",
            rng.pick(&["true", "false", "null", "0", "\"\"", "\"no\"", "[]", "0.0", "-0"])
        ));
    }
    if rng.per_mille(600) {
        let overrides = if rng.per_mille(60) { rng.pick(NO_OBJECT).to_owned() } else { overrides(rng) };
        members.push(format!("\"modelOverrides\":{overrides}"));
    }
    format!("{{{}}}", members.join(","))
}

fn overrides(rng: &mut Rng) -> String {
    let names = ["openai/gpt-4", "openai/*", "gpt-4", "x/m", "x/a/b", "x/a\\/b", "OpenAI/gpt-4", "anthropic/mine"];
    let mut members = Vec::new();
    for name in names {
        if !rng.per_mille(500) {
            continue;
        }
        let entry = match rng.below(12) {
            0 => rng.pick(NO_OBJECT).to_owned(),
            1..4 => format!("{{\"keepRecentTokens\":{}}}", tokens(rng)),
            _ => format!("{{\"reserveTokens\":{}}}", tokens(rng)),
        };
        members.push(format!("\"{name}\":{entry}"));
    }
    format!("{{{}}}", members.join(","))
}

fn tokens(rng: &mut Rng) -> &'static str {
    if rng.per_mille(850) { rng.pick(&TOKENS[..5]) } else { rng.pick(TOKENS) }
}

fn models(rng: &mut Rng) -> String {
    if rng.per_mille(60) {
        return rng
            .pick(&[
                "",
                "{}",
                "null",
                "[]",
                "{\"providers\":[]}",
                "{\"providers\":{\"x\":7}}",
                "{\"providers\":{}",
                "// nothing",
            ])
            .to_owned();
    }
    let mut providers = Vec::new();
    for id in ["openai", "anthropic", "x", "nobody"] {
        if rng.per_mille(600) {
            providers.push(format!("{id:?}:{}", provider(rng)));
        }
    }
    let (comment, comma) = (rng.pick(&["", "// a \"comment\" {\n"]), rng.pick(&["", ",", " ,\n"]));
    let comma = if providers.is_empty() { "" } else { comma };
    format!("{{{comment}\"providers\":{{{}{comma}}}}}", providers.join(","))
}

/// Lists that Pi has fetched, of providers that it knows.
fn store(rng: &mut Rng) -> String {
    let mut lists = Vec::new();
    for provider in ["openai", "anthropic", "openrouter"] {
        if rng.per_mille(500) {
            continue;
        }
        let mut models = Vec::new();
        for id in ["gpt-4", "mine", "openai/gpt-4", "gpt-4"] {
            if rng.per_mille(500) {
                let of = if rng.per_mille(100) { "other" } else { provider };
                let kind = rng.pick(&["", "", ",\"type\":\"chat\"", ",\"type\":\"image\""]);
                let window = rng.pick(&["7000", "1e5"]);
                models.push(format!("{{\"id\":{id:?},\"name\":\"n\",\"api\":\"openai-completions\",\"baseUrl\":\"http://x\",\"provider\":{of:?}{kind},\"contextWindow\":{window},\"maxTokens\":9,\"cost\":{{\"input\":1,\"output\":2,\"cacheRead\":3,\"cacheWrite\":4}}}}"));
            }
        }
        let time = rng.pick(&["", ",\"lastModified\":5", ",\"lastModified\":9e12", ",\"lastModified\":9e12"]);
        lists.push(format!("{provider:?}:{{\"models\":[{}]{time}}}", models.join(",")));
    }
    format!("{{{}}}", lists.join(","))
}

fn provider(rng: &mut Rng) -> String {
    let mut members = Vec::new();
    let mut maybe = |chance, text: &str, rng: &mut Rng| {
        if rng.per_mille(chance) {
            members.push(text.to_owned());
        }
    };
    maybe(700, "\"baseUrl\":\"http://x//y\"", rng);
    maybe(700, "\"api\":\"openai-completions\"", rng);
    maybe(100, "\"apiKey\":\"k\"", rng);
    maybe(40, "\"authHeader\":false", rng);
    maybe(20, "\"headers\":{}", rng);
    maybe(10, "\"headers\":{\"a\":1}", rng);
    maybe(10, "\"name\":\"\"", rng);
    maybe(10, "\"authHeader\":null", rng);
    maybe(10, "\"models\":{}", rng);
    maybe(10, "\"modelOverrides\":[]", rng);
    let list = |rng: &mut Rng, each: &dyn Fn(&mut Rng, &str) -> String| {
        let ids = ["gpt-4", "mine", "m", "a/b", "m"];
        ids.iter()
            .filter(|_| rng.per_mille(400))
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| each(rng, id))
            .collect::<Vec<_>>()
            .join(",")
    };
    if rng.per_mille(600) {
        let models = list(rng, &|rng, id| format!("{{\"id\":{id:?}{}}}", fields(rng, true)));
        members.push(format!("\"models\":[{models}]"));
    }
    if rng.per_mille(600) {
        let overrides = list(rng, &|rng, id| format!("{id:?}:{{\"reasoning\":true{}}}", fields(rng, false)));
        members.push(format!("\"modelOverrides\":{{{overrides}}}"));
    }
    format!("{{{}}}", members.join(","))
}

fn fields(rng: &mut Rng, whole: bool) -> String {
    let mut members = String::new();
    for name in ["contextWindow", "maxTokens"] {
        if rng.per_mille(500) {
            let odd = ["1e400", "0", "-5", "null", "\"9\""];
            let value = if rng.per_mille(15) { rng.pick(&odd) } else { rng.pick(&["1", "8000", "2e5", "1000.5"]) };
            members.push_str(&format!(",{name:?}:{value}"));
        }
    }
    let all = ",\"input\":1,\"output\":2.5,\"cacheRead\":0.1,\"cacheWrite\":0";
    let tiers = ",\"tiers\":[{\"inputTokensAbove\":5,\"input\":3,\"output\":4,\"cacheRead\":5,\"cacheWrite\":6}]";
    match rng.below(12) {
        0 | 1 => members.push_str(&format!(",\"cost\":{{{}}}", &all[1..])),
        2 => members.push_str(&format!(",\"cost\":{{{}{tiers}}}", &all[1..])),
        3 | 4 if !whole => members.push_str(",\"cost\":{\"output\":7}"),
        5 if !whole => members.push_str(&format!(",\"cost\":{{{}}}", &tiers[1..])),
        6 if rng.per_mille(50) => members.push_str(",\"cost\":{\"input\":\"1\"}"),
        _ => {}
    }
    members
}

/// What we make of the files, in the oracle's shape.
fn ours(scene: &Scene, cwd: &Path) -> Js {
    let parse = |name, text: &str| Arc::new(Settings::parse(name, text.as_bytes()));
    let (global, project) = (parse("g", &scene.global), parse("p", &scene.project));
    let trusted = Trust::parse("t", scene.trust.as_bytes()).trusts(cwd, &global);
    let dir = Around::session_dir(&global, Some(&project));
    let around = Around {
        global,
        project: Some(project).filter(|_| trusted),
        models: Arc::new(Models::parse("m", scene.models.as_bytes())),
        store: Arc::new(Store::parse("s", scene.store.as_bytes())),
    };
    let (provider, id) = scene.asked;
    let facts = around.facts(Some(&ModelId { provider: provider.into(), id: id.into() }), &Given::default());
    Js::object(vec![
        ("trusted", Js::Bool(trusted)),
        ("enabled", Js::Bool(facts.enabled.value)),
        ("reserve", Js::number(facts.reserve.value)),
        ("keep", Js::number(facts.keep_recent.value)),
        ("sessionDir", Js::maybe(dir.as_ref().map(|dir| dir.value.as_str()))),
        ("window", facts.window.as_ref().map_or(Js::Null, |known| Js::number(known.value))),
        ("maxTokens", facts.max_tokens.as_ref().map_or(Js::Null, |known| Js::number(known.value))),
        ("cost", cost(&facts)),
        ("only overridden", Js::Bool(only_overridden(&facts))),
    ])
}

/// Whether all that is known of the model is what `modelOverrides` changes. Pi has no such model then; we take the values,
/// since a newer Pi may, or an extension.
fn only_overridden(facts: &Facts) -> bool {
    let over = |origin: &Origin| matches!(origin, Origin::File { key, .. } if key.contains(".modelOverrides["));
    let of = [facts.window.as_ref().map(|w| &w.origin), facts.max_tokens.as_ref().map(|m| &m.origin)];
    of.into_iter().chain([facts.prices.as_ref().map(|p| &p.origin)]).flatten().all(over)
}

fn cost(facts: &Facts) -> Js {
    let Some(known) = &facts.prices else { return Js::Null };
    let rates = |of: [f64; 4]| {
        let names = ["input", "output", "cacheRead", "cacheWrite"];
        names.into_iter().zip(of.map(Js::Number)).collect::<Vec<_>>()
    };
    let prices = &known.value;
    let mut all = rates([prices.input, prices.output, prices.cache_read, prices.cache_write]);
    if !prices.tiers.is_empty() {
        let tiers = prices.tiers.iter().map(|tier| {
            let mut members = rates([tier.input, tier.output, tier.cache_read, tier.cache_write]);
            members.push(("inputTokensAbove", Js::number(tier.above)));
            Js::object(members)
        });
        all.push(("tiers", Js::List(tiers.collect())));
    }
    Js::object(all)
}

/// Where Pi refuses a number, we take the next in order and tell a fault; fractions of a token do not count.
fn differs(ours: &Js, pi: &Js) -> Option<String> {
    let names = ["trusted", "enabled", "reserve", "keep", "sessionDir", "window", "maxTokens", "cost"];
    let unknown = ours.get("only overridden") == Some(&Js::Bool(true));
    names.into_iter().find_map(|name| {
        let (ours, pi) = (ours.get(name)?, pi.get(name)?);
        let same = match (name, pi) {
            ("reserve" | "keep", Js::Object(_)) => true,
            ("sessionDir", Js::Text(text)) if text.is_empty() => *ours == Js::Null,
            ("window" | "maxTokens" | "cost", Js::Null) if unknown => true,
            ("window" | "maxTokens", Js::Number(number)) => *ours == Js::Number(number.floor()),
            _ => ours == pi,
        };
        (!same).then(|| format!("{name}: ours {ours:?}, Pi's {pi:?}"))
    })
}

/// A running Pi that is asked, and the files it is asked about.
struct Asked {
    dir: PathBuf,
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Asked {
    /// Starts it, if `PI_DIR` and `ORACLE_NODE` say where Pi and its Node are.
    fn start() -> Option<Asked> {
        let (Some(node), Some(_)) = (std::env::var_os("ORACLE_NODE"), std::env::var_os("PI_DIR")) else {
            eprintln!("skipped: set PI_DIR and ORACLE_NODE (see tests/oracle/setup.sh) to compare with the real Pi");
            return None;
        };
        let dir = std::env::temp_dir().join(format!("pi-session-settings-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("agent")).expect("made");
        std::fs::create_dir_all(dir.join("work/.pi")).expect("made");
        let dir = dir.canonicalize().expect("it is there");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/settings.mjs");
        let mut command = Command::new(node);
        command.arg(script).env("HOME", &dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("ORACLE_NODE must be a Node that runs");
        let asks = child.stdin.take().expect("it was asked to be piped");
        let answers = BufReader::new(child.stdout.take().expect("it was asked to be piped"));
        Some(Asked { dir, child, asks, answers })
    }

    fn cwd(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Puts the scene's files where Pi looks for them, and asks what it makes of them.
    fn ask(&mut self, scene: &Scene) -> Js {
        let (agent, cwd) = (self.dir.join("agent"), self.cwd());
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).expect("written");
        write(agent.join("settings.json"), &scene.global);
        write(cwd.join(".pi/settings.json"), &scene.project);
        write(agent.join("trust.json"), &scene.trust);
        write(agent.join("models.json"), &scene.models);
        write(agent.join("models-store.json"), &scene.store);
        let (provider, id) = scene.asked;
        let ask = format!(r#"{{"agentDir":{agent:?},"cwd":{cwd:?},"provider":{provider:?},"model":{id:?}}}"#);
        writeln!(self.asks, "{ask}").expect("it listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        Js::parse(line.as_bytes())
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn pi_and_we_resolve_its_settings_alike() {
    let Some(mut asked) = Asked::start() else { return };
    let (first, count) = (number("ORACLE_SEED", 1), number("ORACLE_SETTINGS", 400));
    let (mut differences, mut trusted, mut windows, mut refused) = (Vec::new(), 0, 0, 0);
    for seed in first..first + count {
        let scene = scene(seed, &asked.cwd().display().to_string());
        let (pi, ours) = (asked.ask(&scene), ours(&scene, &asked.cwd()));
        trusted += u32::from(pi.get("trusted") == Some(&Js::Bool(true)));
        windows += u32::from(pi.get("window") != Some(&Js::Null));
        refused += u32::from(matches!(pi.get("reserve"), Some(Js::Object(_))));
        differences.extend(differs(&ours, &pi).map(|what| format!("seed {seed}: {what}\n{scene:#?}")));
    }
    eprintln!("{count} settings compared with Pi: {trusted} trusted, {windows} with a window, {refused} refused");
    let some = differences.iter().take(8).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {count} differ:\n{some}", differences.len());
    assert!(count < 100 || (trusted > 0 && windows > 0 && refused > 0), "the generator must make each kind");
}

#[test]
fn the_shipped_table_is_what_its_script_makes_of_that_pi() {
    let (Some(node), Some(_)) = (std::env::var_os("ORACLE_NODE"), std::env::var_os("PI_DIR")) else { return };
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config");
    let made = Command::new(node).arg(config.join("windows.mjs")).output().expect("Node runs");
    let shipped = std::fs::read(config.join("windows.tsv")).expect("the table");
    let heading = |text: &[u8]| text.split(|b| *b == b'\n').next().map(<[u8]>::to_vec);
    if heading(&made.stdout) != heading(&shipped) {
        eprintln!("skipped: PI_DIR is not the Pi that the table was made from");
        return;
    }
    assert!(made.stdout == shipped, "make config/windows.tsv anew: see config/windows.mjs");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}
