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
    let read = |place: &u32| infos.get(place).and_then(|info| read::message(run, info));
    plan.to_summarize.iter().filter_map(read).for_each(|message| summary.add(&message));
    plan.turn_prefix.iter().filter_map(read).for_each(|message| summary.add_to_turn(&message));
    (summary, Files::of(plan, listed))
}
