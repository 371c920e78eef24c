//! From the host's plan to the proposal.
use std::collections::BTreeMap;

use pi_graft_plugin::{Compaction, Info, Json, Level, Plan, Refusal, Result, Run};

use crate::config::Config;
use crate::due::Settings;
use crate::files::{Files, strip_blocks};
use crate::model::{self, Material};
use crate::read;
use crate::summary::{Message, Summary};

/// UTF-16 units in a token, as Pi estimates (S9.5).
const UNITS: u64 = 4;

/// Bytes of the lists of files that end a model's summary.
const LISTS: usize = 16 * 1024;

/// Entries that are looked at: more would take memory and fuel, and say less.
const ENTRIES: usize = 32_768;

/// What is wanted of a compaction.
pub struct Wish<'a> {
    /// What the user asks to look at.
    pub focus: Option<&'a str>,
    /// Tokens that it must save.
    pub min_saving: u64,
    /// Whether an extract will do.
    pub may_extract: bool,
}

/// A summary with its lists of files, and what it cost.
struct Text {
    text: String,
    usage: Option<Json>,
}

/// Makes a compaction and proposes it if it saves enough tokens; where there is none to make, the log says why.
///
/// # Errors
/// If a model failed and is to be asked again later.
pub fn compact(config: &Config, settings: &Settings, run: &Run, wish: &Wish) -> Result {
    let Some(plan) = run.compaction_plan(Some(settings.reserve), Some(settings.keep_recent)) else {
        let recent = settings.keep_recent;
        run.log(Level::Info, &format!("nothing to summarise: all is within the newest {recent} tokens"));
        return Ok(());
    };
    let infos = infos(run, &plan);
    let replaced = replaced(&plan, &infos);
    if replaced < wish.min_saving {
        // A model is not paid for what cannot be taken.
        run.log(Level::Info, &format!("no compaction: {replaced} tokens would go, which saves too little"));
        return Ok(());
    }
    let focus = wish.focus.or(config.focus.as_deref());
    let made = if config.by_model { by_model(config, run, &plan, &infos, focus) } else { Ok(None) };
    let made = match made {
        Ok(made) => made,
        Err(refusal) => model_failed(config, run, wish, refusal)?,
    };
    let (text, files) = match made {
        Some((text, files)) => (Some(text), files),
        None if wish.may_extract && (!config.by_model || config.or_extract) => {
            extract(config, run, &plan, &infos, focus, replaced)
        }
        None => return Ok(()),
    };
    let places = plan.to_summarize.len() + plan.turn_prefix.len();
    propose(run, wish, plan, Proposal { text, files, replaced, places });
    Ok(())
}

/// What is to be proposed.
struct Proposal {
    text: Option<Text>,
    files: Files,
    /// Tokens that go.
    replaced: u64,
    /// Entries that go.
    places: usize,
}

fn propose(run: &Run, wish: &Wish, plan: Plan, proposal: Proposal) {
    let log = |level, text: String| run.log(level, &text);
    let Proposal { text, files, replaced, places } = proposal;
    let Some(Text { text: summary, usage }) = text else {
        return log(Level::Info, "no summary: there is nothing to say of what would go".into());
    };
    let tokens = tokens(&summary);
    if replaced.saturating_sub(tokens) < wish.min_saving {
        return log(
            Level::Info,
            format!("no compaction: a summary of {tokens} tokens for {replaced} saves too little"),
        );
    }
    let made = format!("{places} entries of {replaced} tokens into a summary of {tokens}");
    let compaction = Compaction { summary, first_kept: plan.first_kept, details: Json::of(&files).ok(), usage };
    match run.append_compaction(&compaction) {
        Ok(()) => log(Level::Info, made),
        // Not an error of this run: a pending compaction, or a cut that no longer holds. The next one plans anew.
        Err(refusal) => log(Level::Warn, format!("refused ({}): {}", refusal.rule, refusal.message)),
    }
}

/// A model gave no summary: what was not granted, or is over the budget, is no better in a minute.
fn model_failed(config: &Config, run: &Run, wish: &Wish, refusal: Refusal) -> Result<Option<(Text, Files)>> {
    let why = ["no summary by a model (", &refusal.rule, "): ", &refusal.message].concat();
    if (config.or_extract && wish.may_extract) || refusal.rule != "model" {
        run.log(Level::Warn, &why);
        return Ok(None);
    }
    Err(why.into())
}

type Infos = BTreeMap<u32, Info>;

fn by_model(
    config: &Config,
    run: &Run,
    plan: &Plan,
    infos: &Infos,
    focus: Option<&str>,
) -> Result<Option<(Text, Files)>, Refusal> {
    let listed = plan.previous_summary.as_deref().map(|text| strip_blocks(text).1).unwrap_or_default();
    let files = Files::of(plan, listed);
    let mut material = Material { plan, history: Vec::new(), turn: Vec::new(), focus };
    each(run, plan, infos, |message, in_turn| {
        let to = if in_turn { &mut material.turn } else { &mut material.history };
        to.push(message);
    });
    let made = model::summarise(config, run, &material)?;
    let (blocks, _) = files.blocks(LISTS, |_| 0);
    let parts = [made.text.as_str(), blocks.as_str()].into_iter().filter(|part| !part.is_empty());
    let text = Text { text: parts.collect::<Vec<_>>().join("\n\n"), usage: made.usage };
    Ok(Some((text, files)))
}

fn extract(
    config: &Config,
    run: &Run,
    plan: &Plan,
    infos: &Infos,
    focus: Option<&str>,
    replaced: u64,
) -> (Option<Text>, Files) {
    let (summary, files) = summarise(run, plan, infos);
    // Bytes are at least as many as units: so the summary is smaller in tokens too.
    let max = config.summary_bytes.min(usize::try_from(replaced * UNITS / 4 * 3).unwrap_or(usize::MAX));
    (summary.write(&files, focus, max).map(|text| Text { text, usage: None }), files)
}

/// What the plan summarises, by place: of more than [`ENTRIES`], the newest and the first, which is the goal.
fn infos(run: &Run, plan: &Plan) -> Infos {
    let mut wanted: Vec<u32> = plan.to_summarize.iter().chain(&plan.turn_prefix).copied().collect();
    wanted.sort_unstable();
    let Some(oldest) = wanted.first().copied() else {
        return BTreeMap::new();
    };
    let shown = run.projection().take_while(|info| info.place >= oldest);
    let shown = shown.filter(|info| wanted.binary_search(&info.place).is_ok()).take(ENTRIES);
    let first = run.host().projection(Some(oldest + 1), 1).items.into_iter().filter(|info| info.place == oldest);
    shown.chain(first).map(|info| (info.place, info)).collect()
}

/// The tokens that the summary takes the place of.
fn replaced(plan: &Plan, infos: &Infos) -> u64 {
    let entries: u64 = infos.values().map(|info| u64::from(info.tokens)).sum();
    entries + plan.previous_summary.as_deref().map_or(0, tokens)
}

fn tokens(text: &str) -> u64 {
    (text.encode_utf16().count() as u64).div_ceil(UNITS)
}

/// Gives each message that goes, oldest first, and whether it is of the beginning of a split turn.
fn each(run: &Run, plan: &Plan, infos: &Infos, mut take: impl FnMut(Message, bool)) {
    let split = plan.turn_prefix.iter().min().copied().unwrap_or(u32::MAX);
    for (info, depth) in infos.values().zip(read::depths(infos.values())) {
        if let Some(message) = read::message(run, info, depth) {
            take(message, info.place >= split);
        }
    }
}

fn summarise(run: &Run, plan: &Plan, infos: &Infos) -> (Summary, Files) {
    let (mut summary, listed) = Summary::updating(plan.previous_summary.as_deref());
    each(run, plan, infos, |message, in_turn| match in_turn {
        false => summary.add(&message),
        true => summary.add_to_turn(&message),
    });
    (summary, Files::of(plan, listed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AutoCompact;
    use pi_graft_plugin::testing::FakeHost;
    use pi_graft_plugin::{Plugin, Settled, Tokens};

    /// A long request with an answer, and a short one that stays.
    fn session() -> FakeHost {
        let long = "Please move the parser to its own crate, and do it without a change of behaviour. ".repeat(20);
        let entries = [
            format!(r#"{{"type":"message","id":"1","message":{{"role":"user","content":"{long}"}}}}"#),
            r#"{"type":"message","id":"2","message":{"role":"assistant","stopReason":"stop","content":[{"type":"text","text":"It is moved."}]}}"#.into(),
            r#"{"type":"message","id":"3","message":{"role":"user","content":"thanks"}}"#.into(),
            r#"{"type":"message","id":"4","message":{"role":"assistant","stopReason":"stop","content":[]}}"#.into(),
        ];
        let mut host = FakeHost::new(&entries.each_ref().map(String::as_str));
        host.plan = Some(Plan {
            first_kept: Some("3".into()),
            split_turn: false,
            tokens_before: 900,
            previous: None,
            previous_summary: None,
            previous_details: Some(r#"{"readFiles":["old.rs"]}"#.into()),
            to_summarize: vec![0, 1],
            turn_prefix: Vec::new(),
            read_files: vec!["a.rs".into()],
            modified_files: vec!["b.rs".into()],
        });
        host.tokens = Some(Tokens { in_file: 900, with_pending: 900, reported: None });
        host
    }

    fn settled(host: &FakeHost, config: &str, reason: &str, instructions: Option<&str>) -> Option<Compaction> {
        let config = Json::from_text(config.into()).to().expect("a config");
        let settled = Settled { reason: reason.into(), notes: Vec::new(), instructions: instructions.map(Into::into) };
        AutoCompact::on_settled(&config, &Run::on(host), &settled).expect("it never fails");
        host.compactions.take().pop()
    }

    const DUE: &str = r#"{"at":500}"#;

    #[test]
    fn when_due_it_asks_for_the_other_handler_and_there_compacts() {
        let host = session();
        AutoCompact::on_entry(&Json::from_text(DUE.into()).to().expect("a config"), &Run::on(&host))
            .expect("it is due");
        assert_eq!(host.note.take().as_deref(), Some("900 tokens, due above 500"));
        let made = settled(&host, DUE, "settled", None).expect("a compaction");
        assert_eq!(made.first_kept.as_deref(), Some("3"));
        let details = made.details.expect("details");
        assert_eq!(details.as_str(), r#"{"readFiles":["a.rs","old.rs"],"modifiedFiles":["b.rs"]}"#);
        let files = "<read-files>\na.rs\nold.rs\n</read-files>\n\n<modified-files>\nb.rs\n</modified-files>";
        assert!(made.summary.starts_with("## Goal\n- Please move the parser") && made.summary.ends_with(files));
    }

    #[test]
    fn a_wanted_compaction_need_not_be_due_and_takes_instructions() {
        let made = settled(&session(), "{}", "manual", Some("the API")).expect("a compaction");
        assert!(made.summary.starts_with("Focus: the API\n"), "{}", made.summary);
    }

    #[test]
    fn pis_own_compaction_is_left_to_pi_unless_told() {
        for reason in ["threshold", "overflow", "something new"] {
            assert_eq!(settled(&session(), DUE, reason, None), None, "{reason}");
        }
        assert!(settled(&session(), r#"{"take-over":"always"}"#, "threshold", None).is_some());
    }

    const MODEL: &str = r#"{"at":500,"summary":"model"}"#;
    const OR_EXTRACT: &str = r#"{"at":500,"summary":"model","on-failure":"extractive"}"#;

    fn answering(text: &str, stop: &str) -> FakeHost {
        let usage = r#"{"totalTokens":150}"#.into();
        let answer = pi_graft_plugin::Answer { text: text.into(), stop: stop.into(), usage };
        let mut host = session();
        host.answer = Some(Ok(answer));
        host
    }

    fn refusing(rule: &str) -> FakeHost {
        let refusal = Refusal { rule: rule.into(), message: "the server answered 500".into() };
        let mut host = session();
        host.answer = Some(Err(refusal));
        host
    }

    fn on_settled(host: &FakeHost, config: &str, reason: &str) -> Result {
        let config = Json::from_text(config.into()).to().expect("a config");
        let settled = Settled { reason: reason.into(), notes: Vec::new(), instructions: None };
        AutoCompact::on_settled(&config, &Run::on(host), &settled)
    }

    #[test]
    fn a_models_summary_carries_the_lists_and_what_it_cost() {
        let host = answering("## Goal\n- Move the parser.", "stop");
        let made = settled(&host, MODEL, "settled", None).expect("a compaction");
        let files = "<read-files>\na.rs\nold.rs\n</read-files>\n\n<modified-files>\nb.rs\n</modified-files>";
        assert_eq!(made.summary, ["## Goal\n- Move the parser.\n\n", files].concat());
        assert_eq!(made.usage.expect("usage").as_str(), r#"{"totalTokens":150}"#);
        assert_eq!(
            made.details.expect("details").as_str(),
            r#"{"readFiles":["a.rs","old.rs"],"modifiedFiles":["b.rs"]}"#
        );
    }

    #[test]
    fn a_models_failure_never_becomes_a_summary_and_is_tried_again() {
        for host in [refusing("model"), answering("## Goal\n- half of", "length"), answering("Sorry.", "stop")] {
            on_settled(&host, MODEL, "settled").expect_err("the host tries again");
            assert!(host.compactions.take().is_empty());
        }
    }

    #[test]
    fn what_is_no_better_in_a_minute_waits_until_it_is_due_again() {
        for rule in ["budget", "grant", "limit"] {
            let host = refusing(rule);
            on_settled(&host, MODEL, "settled").expect("no failure of the run");
            assert!(host.compactions.take().is_empty() && host.logs.take()[0].1.contains(rule));
        }
    }

    #[test]
    fn the_config_may_want_an_extract_where_the_model_fails() {
        let made = settled(&refusing("model"), OR_EXTRACT, "settled", None).expect("a compaction");
        assert!(made.summary.starts_with("## Goal\n- Please move the parser") && made.usage.is_none());
    }

    #[test]
    fn in_place_of_pis_own_stands_a_models_summary_and_no_extract() {
        let model = || answering("## Goal\n- Move the parser.", "stop");
        for reason in ["threshold", "overflow", "manual"] {
            assert!(settled(&model(), MODEL, reason, None).is_some(), "{reason}");
            let never = r#"{"summary":"model","take-over":"never"}"#;
            assert_eq!(settled(&live(model()), never, reason, None), None, "{reason}");
            on_settled(&live(refusing("model")), OR_EXTRACT, reason).expect_err("Pi makes its own then");
            assert_eq!(settled(&live(session()), DUE, reason, None), None, "{reason}");
        }
    }

    /// The same with a live Pi that would make its own.
    fn live(mut host: FakeHost) -> FakeHost {
        host.pi_compaction = Some(r#"{"enabled":true,"makesOwn":true}"#.into());
        host
    }

    #[test]
    fn what_is_no_longer_due_or_saves_too_little_is_not_made() {
        assert_eq!(settled(&session(), r#"{"at":901}"#, "settled", None), None);
        assert_eq!(settled(&session(), r#"{"at":500,"min-saving":1000}"#, "boundary", None), None);
        let mut host = session();
        host.plan = None;
        assert_eq!(settled(&host, DUE, "settled", None), None);
        assert!(host.logs.take()[0].1.starts_with("nothing to summarise"));
    }

    #[test]
    fn it_says_what_it_needs_and_what_wakes_it() {
        let said = AutoCompact::describe(&Config::default()).expect("a description");
        assert_eq!(
            (said.name.as_str(), said.needs.as_slice()),
            ("auto-compact", ["append:compaction".to_owned()].as_slice())
        );
    }
}
