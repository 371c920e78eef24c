//! Whether a compaction is due: cheap, since it is asked on every message.
use pi_graft_plugin::serde::{self, Deserialize};
use pi_graft_plugin::{Json, Run};

use crate::config::{Config, Numbers};

/// What Pi keeps free and keeps as it is, where nobody says otherwise.
const RESERVE: u64 = 16_384;
const KEEP_RECENT: u64 = 20_000;

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is due; the numbers, for the log.
    Due(String),
    /// It is not, and why.
    Not(String),
}

/// The numbers that hold for this session now, tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Above this it is due; none if the window is not known.
    pub threshold: Option<u64>,
    /// What the plan keeps free.
    pub reserve: u64,
    /// What the plan keeps as it is.
    pub keep_recent: u64,
    /// What a compaction must save, or it waits.
    pub min_saving: u64,
    /// Whether Pi compacts.
    pub pi_enabled: bool,
    /// Whether a live Pi makes its own if this one does not; none if the host does not say.
    pub pi_makes_own: Option<bool>,
}

/// Pi's compaction settings, as the host tells them.
#[derive(Debug, Default, Deserialize)]
#[serde(crate = "self::serde", default, rename_all = "camelCase")]
struct PiCompaction {
    enabled: Option<bool>,
    reserve_tokens: Option<u64>,
    keep_recent_tokens: Option<u64>,
    makes_own: Option<bool>,
}

/// What the host knows of the model.
#[derive(Debug, Default, Deserialize)]
#[serde(crate = "self::serde", default, rename_all = "camelCase")]
struct ModelFacts {
    provider: Option<String>,
    #[serde(alias = "modelId", alias = "model")]
    id: Option<String>,
    #[serde(alias = "window")]
    context_window: Option<u64>,
}

impl Settings {
    /// Those of the config; what it leaves open, the host knows or Pi's settings say.
    pub fn of(config: &Config, run: &Run) -> Self {
        let pi: PiCompaction = run.pi_compaction().to().unwrap_or_default();
        let facts: ModelFacts = run.model_facts().as_ref().and_then(|facts| facts.to().ok()).unwrap_or_default();
        let facts = with_model(facts, config, run);
        let set = config.numbers_for(facts.provider.as_deref(), facts.id.as_deref());
        Self::new(config, &set, facts.context_window, &pi)
    }

    fn new(config: &Config, set: &Numbers, known_window: Option<u64>, pi: &PiCompaction) -> Self {
        let window = set.window.or(known_window).filter(|window| *window > 0);
        let half = window.map_or(u64::MAX, |window| window / 2);
        // Pi's reserve is made for big windows: of a small one it would leave nothing.
        let reserve = set.reserve.unwrap_or_else(|| pi.reserve_tokens.unwrap_or(RESERVE).min(half));
        let pis = window.map(|window| window.saturating_sub(reserve));
        let threshold = match (config.at, pis) {
            (crate::config::Amount::Tokens(tokens), _) => Some(tokens),
            (at, Some(pis)) => Some(at.of(pis)),
            (_, None) => None,
        };
        let whole = threshold.unwrap_or(u64::MAX);
        // More than the threshold kept would be due again at once.
        let keep_recent =
            set.keep_recent.unwrap_or_else(|| pi.keep_recent_tokens.unwrap_or(KEEP_RECENT).min(whole / 2));
        let pi_enabled = pi.enabled.unwrap_or(true);
        let (min_saving, pi_makes_own) = (config.min_saving.of(whole), pi.makes_own);
        Self { threshold, reserve, keep_recent, min_saving, pi_enabled, pi_makes_own }
    }
}

/// The facts, with the model's name from the branch if they lack it and the config asks for it.
fn with_model(mut facts: ModelFacts, config: &Config, run: &Run) -> ModelFacts {
    if facts.id.is_some() || config.models.is_empty() {
        return facts;
    }
    let names = |info: &pi_graft_plugin::Info| info.kind == "model_change" || info.role.as_deref() == Some("assistant");
    if let Some(info) = run.branch().find(names) {
        let text = run.text(info.place, 1 << 20).unwrap_or_default();
        let entry: Named = Json::from_text(text).to().unwrap_or_default();
        let message = entry.message.unwrap_or_default();
        facts.provider = entry.provider.or(message.provider);
        facts.id = entry.model_id.or(message.model);
    }
    facts
}

/// An entry that names a model.
#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default, rename_all = "camelCase")]
struct Named {
    provider: Option<String>,
    model_id: Option<String>,
    message: Option<NamedMessage>,
}

#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default)]
struct NamedMessage {
    provider: Option<String>,
    model: Option<String>,
}

/// Whether a compaction is due now.
pub fn judge(config: &Config, settings: &Settings, run: &Run) -> Verdict {
    let not = |why: &str| Verdict::Not(why.into());
    if !settings.pi_enabled && !config.when_pi_disabled {
        return not("Pi's compaction is off (`when-pi-disabled` goes on all the same)");
    }
    let Some(threshold) = settings.threshold else {
        return not("the context window is not known: set `context-window`, or `at` in tokens");
    };
    let counted = run.context_tokens();
    let tokens = counted.with_pending.max(counted.reported.unwrap_or(0));
    let numbers = format!("{tokens} tokens, due above {threshold}");
    if tokens <= threshold {
        return Verdict::Not(numbers);
    }
    match answered_since_compaction(run).and_then(|()| long_enough_ago(config, run)) {
        Ok(()) => Verdict::Due(numbers),
        Err(why) => Verdict::Not([&numbers, ", but ", why].concat()),
    }
}

/// Whether the model has used the context since the compaction before. Looks no farther back than it must.
fn answered_since_compaction(run: &Run) -> Result<(), &'static str> {
    let last = run.branch().find(|info| info.kind == "compaction" || info.role.as_deref() == Some("assistant"));
    match last.filter(|info| info.kind == "compaction") {
        Some(info) if info.pending => Err("a compaction is pending"),
        // What stands behind it is late, such as the result of a tool that took long.
        Some(_) => Err("no answer has come since the compaction before"),
        None => Ok(()),
    }
}

/// Whether the compaction before is as long ago as the config wants.
fn long_enough_ago(config: &Config, run: &Run) -> Result<(), &'static str> {
    if config.min_interval_ms == 0 {
        return Ok(());
    }
    let last = run.branch().find(|info| info.kind == "compaction").and_then(|info| info.time_ms);
    let since = last.zip(run.trigger().time_ms).map(|(last, now)| now.saturating_sub(last));
    let long = since.is_none_or(|since| since >= config.min_interval_ms);
    if long { Ok(()) } else { Err("the compaction before is not `min-interval` ago") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_graft_plugin::Tokens;
    use pi_graft_plugin::testing::FakeHost;

    const USER: &str = r#"{"type":"message","id":"u","message":{"role":"user","content":"hi"}}"#;
    const ANSWER: &str =
        r#"{"type":"message","id":"a","message":{"role":"assistant","content":[],"provider":"p","model":"m"}}"#;
    const RESULT: &str = r#"{"type":"message","id":"r","message":{"role":"toolResult","content":[]}}"#;
    const COMPACTION: &str = r#"{"type":"compaction","id":"c","summary":"s"}"#;

    fn config(json: &str) -> Config {
        Json::from_text(json.into()).to().expect("a config")
    }

    fn session(entries: &[&str], tokens: u64) -> FakeHost {
        let tokens = Tokens { in_file: tokens, with_pending: tokens, reported: None };
        let mut host = FakeHost::new(entries);
        host.tokens = Some(tokens);
        host
    }

    fn verdict(config: &Config, host: &FakeHost) -> Verdict {
        judge(config, &Settings::of(config, &Run::on(host)), &Run::on(host))
    }

    fn is_due(config: &Config, host: &FakeHost) -> bool {
        matches!(verdict(config, host), Verdict::Due(_))
    }

    #[test]
    fn it_is_due_at_four_fifths_of_where_pi_would() {
        let config = config(r#"{"context-window":116384}"#);
        assert!(!is_due(&config, &session(&[USER, ANSWER], 80_000)));
        assert!(is_due(&config, &session(&[USER, ANSWER], 80_001)));
    }

    #[test]
    fn the_window_comes_from_the_config_or_the_host_or_not_at_all() {
        let mut host = session(&[USER, ANSWER], 9_000);
        assert_eq!(Settings::of(&config("{}"), &Run::on(&host)).threshold, None);
        assert!(!is_due(&config("{}"), &host));
        host.model_facts = Some(r#"{"provider":"p","id":"m","contextWindow":8000,"cost":{}}"#.into());
        assert!(is_due(&config("{}"), &host));
        assert!(!is_due(&config(r#"{"context-window":100000}"#), &host));
        assert!(!is_due(&config(r#"{"context-window":8000,"models":{"p/m":{"context-window":100000}}}"#), &host));
    }

    #[test]
    fn the_model_is_known_from_the_branch_where_the_host_knows_none() {
        let config = config(r#"{"models":{"m":{"context-window":8000}}}"#);
        assert!(is_due(&config, &session(&[USER, ANSWER], 9_000)));
        assert!(!is_due(&config, &session(&[USER], 9_000)));
    }

    #[test]
    fn tokens_need_no_window() {
        assert!(is_due(&config(r#"{"at":500}"#), &session(&[USER, ANSWER], 501)));
    }

    #[test]
    fn what_edits_hide_from_the_estimate_counts() {
        let mut host = session(&[USER, ANSWER], 100);
        host.tokens = Some(Tokens { in_file: 100, with_pending: 100, reported: Some(501) });
        assert!(is_due(&config(r#"{"at":500}"#), &host));
    }

    #[test]
    fn a_late_tool_result_causes_no_second_one() {
        let config = config(r#"{"at":500}"#);
        assert!(!is_due(&config, &session(&[USER, ANSWER, COMPACTION, RESULT], 9_000)));
        assert!(is_due(&config, &session(&[USER, ANSWER, COMPACTION, RESULT, ANSWER], 9_000)));
    }

    #[test]
    fn where_pi_does_not_compact_neither_do_we_unless_told() {
        let mut host = session(&[USER, ANSWER], 9_000);
        host.pi_compaction = Some(r#"{"enabled":false}"#.into());
        assert!(!is_due(&config(r#"{"at":500}"#), &host));
        assert!(is_due(&config(r#"{"at":500,"when-pi-disabled":true}"#), &host));
    }

    #[test]
    fn a_small_window_halves_what_pi_keeps_free() {
        let host = session(&[USER], 0);
        let of = |json| Settings::of(&config(json), &Run::on(&host));
        let small = of(r#"{"context-window":10000}"#);
        assert_eq!((small.reserve, small.threshold, small.keep_recent), (5000, Some(4000), 2000));
        let set = of(r#"{"context-window":10000,"reserve-tokens":9000,"keep-recent-tokens":5000}"#);
        assert_eq!((set.reserve, set.threshold, set.keep_recent), (9000, Some(800), 5000));
    }
}
