//! From the host's plan to the proposal.
use std::collections::BTreeMap;

use pi_graft_plugin::{Compaction, Info, Json, Level, Plan, Run};

use crate::config::Config;
use crate::due::Settings;
use crate::files::Files;
use crate::read;
use crate::summary::Summary;

/// UTF-16 units in a token, as Pi estimates (S9.5).
const UNITS: u64 = 4;

/// Makes a compaction and proposes it if it saves so many tokens; where there is none to make, the log says why.
pub fn compact(config: &Config, settings: &Settings, run: &Run, focus: Option<&str>, min_saving: u64) {
    let log = |level, text: String| run.log(level, &text);
    let Some(plan) = run.compaction_plan(Some(settings.reserve), Some(settings.keep_recent)) else {
        return log(
            Level::Info,
            format!("nothing to summarise: all is within the newest {} tokens", settings.keep_recent),
        );
    };
    let infos = infos(run, &plan);
    let replaced = replaced(&plan, &infos);
    let (summary, files) = summarise(run, &plan, &infos);
    // Bytes are at least as many as units: so the summary is smaller in tokens too.
    let max = config.summary_bytes.min(usize::try_from(replaced * UNITS / 4 * 3).unwrap_or(usize::MAX));
    let Some(summary) = summary.write(&files, focus, max) else {
        return log(Level::Info, "no summary: there is nothing to say of what would go".into());
    };
    let tokens = tokens(&summary);
    if replaced.saturating_sub(tokens) < min_saving {
        return log(
            Level::Info,
            format!("no compaction: a summary of {tokens} tokens for {replaced} saves too little"),
        );
    }
    let places = infos.len();
    let made = format!("{places} entries of {replaced} tokens into a summary of {tokens}");
    let compaction = Compaction { summary, first_kept: plan.first_kept, details: Json::of(&files).ok(), usage: None };
    match run.append_compaction(&compaction) {
        Ok(()) => log(Level::Info, made),
        // Not an error of this run: a pending compaction, or a cut that no longer holds. The next one plans anew.
        Err(refusal) => log(Level::Warn, format!("refused ({}): {}", refusal.rule, refusal.message)),
    }
}

/// What the plan summarises, by place.
fn infos(run: &Run, plan: &Plan) -> BTreeMap<u32, Info> {
    let places = || plan.to_summarize.iter().chain(&plan.turn_prefix);
    let Some(oldest) = places().min().copied() else {
        return BTreeMap::new();
    };
    let wanted: std::collections::BTreeSet<u32> = places().copied().collect();
    let shown = run.projection().take_while(|info| info.place >= oldest);
    shown.filter(|info| wanted.contains(&info.place)).map(|info| (info.place, info)).collect()
}

/// The tokens that the summary takes the place of.
fn replaced(plan: &Plan, infos: &BTreeMap<u32, Info>) -> u64 {
    let entries: u64 = infos.values().map(|info| u64::from(info.tokens)).sum();
    entries + plan.previous_summary.as_deref().map_or(0, tokens)
}

fn tokens(text: &str) -> u64 {
    (text.encode_utf16().count() as u64).div_ceil(UNITS)
}

fn summarise(run: &Run, plan: &Plan, infos: &BTreeMap<u32, Info>) -> (Summary, Files) {
    let (mut summary, listed) = Summary::updating(plan.previous_summary.as_deref());
    let split = plan.turn_prefix.iter().min().copied().unwrap_or(u32::MAX);
    for (info, depth) in infos.values().zip(read::depths(infos.values())) {
        match read::message(run, info, depth) {
            Some(message) if info.place < split => summary.add(&message),
            Some(message) => summary.add_to_turn(&message),
            None => {}
        }
    }
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
