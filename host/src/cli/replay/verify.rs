//! `replay --verify`: whether what the daemon did to sessions is what the plugins do again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::cli::cores::on_all_cores;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::load::sandbox;
use crate::cli::out::{Out, grouped, say};
use crate::cli::paint::{Ink, Row};
use crate::cli::preview::one_line;
use crate::cli::progress::Progress;
use crate::cli::runlog::RunLog;
use crate::config::Config;
use crate::files::shown;
use crate::replay::verify::report::{Difference, Other, Said, Verified};
use crate::replay::verify::{self, Page, Verify};
use crate::wire::rows::RowsWanted;

use super::{ReplayArgs, plugins};

/// Differences that are shown of one session; all of them are in the JSON.
const MOST: usize = 20;

/// The log, for several sessions at a time: the store has one user.
struct Log<'c>(Mutex<RunLog<'c>>);

impl verify::RunLog for Log<'_> {
    fn page(&self, session: &str, after: Option<(i64, u64)>) -> Result<Page, String> {
        let wanted = RowsWanted { session: session.to_owned(), about: None, after };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).page(wanted).map_err(|e| e.to_string())
    }

    fn texts(&self, hashes: Vec<String>) -> Result<BTreeMap<String, Option<String>>, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts(hashes).map_err(|e| e.to_string())
    }
}

/// Verifies sessions.
///
/// # Errors
/// [`Failure`]: a plugin does not load, or there is no log.
pub(super) fn run(args: &ReplayArgs, config: &Config, files: &[PathBuf], out: &mut Out) -> Result<Outcome, Failure> {
    let log = RunLog::new(config);
    if log.source()? == "file" {
        let (dir, what) = (config.state.dir.display(), "there is no run log, so nothing can be verified");
        return Err(Failure::problem(format!(
            "{what}: neither does a daemon run for this config, nor is there a store in {dir}; name the config that the daemon \
             was run with (--config)"
        )));
    }
    let sandbox = sandbox()?;
    let plugins = plugins::load(&sandbox, config, &args.plugins, args.plugin_config.as_deref())?;
    let log = Log(Mutex::new(log));
    let verify = Verify { plugins, log: &log };
    let bytes = files.iter().filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum();
    let progress = Progress::of("verifying", bytes);
    let done = on_all_cores(files, |file: &PathBuf| verify.session(file, &|bytes| progress.add(bytes)));
    drop(progress);
    let (mut verified, mut failed) = (Vec::new(), Vec::new());
    for (file, done) in files.iter().zip(done) {
        match done {
            Ok(done) => verified.push(done),
            Err(e) => failed.push((file.as_path(), e.to_string())),
        }
    }
    failed.iter().for_each(|(_, why)| say(why));
    if out.json {
        in_json(&verified, &failed, out)?
    } else {
        verified.iter().try_for_each(|one| in_words(one, out))?
    }
    let well = failed.is_empty() && verified.iter().all(|one| matches!(one.outcome, "verified" | "nothing"));
    Ok(if well { Outcome::Done } else { Outcome::Problems })
}

fn in_json(verified: &[Verified], failed: &[(&Path, String)], out: &mut Out) -> Result<(), Failure> {
    let failed: Vec<_> =
        failed.iter().map(|(path, why)| json!({ "path": path.to_string_lossy(), "why": why })).collect();
    let sessions = serde_json::to_string(verified).map_err(Failure::problem)?;
    Ok(out.line(format!("{{\"sessions\":{sessions},\"failed\":{}}}", json!(failed)))?)
}

fn in_words(told: &Verified, out: &mut Out) -> Result<(), Failure> {
    let rows = grouped(told.rows as u64);
    let head = format!("{}  {rows} rows in the log, {} grafts in the file", shown(&told.path), told.grafts.len());
    out.paint(&Row::new().and(Ink::Bold, &head))?;
    let count = |word: &str| told.grafts.iter().filter(|graft| graft.outcome == word).count();
    for plugin in &told.plugins {
        let text = format!("{} runs made again, {} as then", grouped(plugin.runs), grouped(plugin.same));
        out.paint(
            &Row::new().and(Ink::Plain, "  ").column(Ink::Cyan, 18, &one_line(&plugin.plugin)).and(Ink::Plain, &text),
        )?;
    }
    for difference in told.differences.iter().take(MOST) {
        differs(difference, out)?;
    }
    if told.differences.len() > MOST {
        out.line(format!("  … and {} more differences: see --json", told.differences.len() - MOST))?;
    }
    told.others.iter().try_for_each(|one| other(one, out))?;
    let (ink, word) = match told.outcome {
        "verified" => (Ink::Green, "verified: these are the grafts that the plugins propose again"),
        "different" => (Ink::Red, "different"),
        "unverifiable" => (Ink::Yellow, "cannot be verified: see why above"),
        _ => (Ink::Dim, "nothing to verify: no grafts, and no runs that could be made again"),
    };
    let (well, wrong, not) = (count("verified"), count("different"), count("not verified"));
    let counts = format!(" ({well} grafts verified, {wrong} different, {not} not verified)");
    out.paint(&Row::new().and(Ink::Plain, "  ").and(ink, word).and(Ink::Dim, &counts))?;
    Ok(())
}

fn differs(told: &Difference, out: &mut Out) -> Result<(), Failure> {
    let batch = told.batch.as_ref().map_or_else(String::new, |batch| format!(", batch {batch}"));
    let entry = told.entry.as_ref().map_or_else(String::new, |entry| format!(", in the file as {entry}"));
    let Difference { plugin, handler, trigger, what, .. } = told;
    let text = format!("{plugin}: {handler} on {trigger}{batch}{entry}: {what}");
    let row = Row::new().and(Ink::Plain, "  ").column(Ink::Red, 11, "DIFFERENT").and(Ink::Plain, &one_line(&text));
    out.paint(&row)?;
    let drafts = |drafts: &[Box<serde_json::value::RawValue>]| {
        drafts.iter().map(|draft| one_line(draft.get())).collect::<Vec<_>>().join(" ")
    };
    let said = |said: &Said| {
        let refused =
            if said.refused.is_empty() { String::new() } else { format!("refused {}", said.refused.join(", ")) };
        format!("{} {} {refused}", said.outcome, drafts(&said.drafts))
    };
    let lines = [
        ("then", told.then.as_ref().map(said)),
        ("now", told.now.as_ref().map(said)),
        ("file", told.file.as_deref().map(drafts)),
    ];
    for (name, text) in lines {
        if let Some(text) = text {
            out.paint(&Row::new().and(Ink::Plain, "    ").column(Ink::Dim, 6, name).and(Ink::Plain, &text))?;
        }
    }
    Ok(())
}

fn other(told: &Other, out: &mut Out) -> Result<(), Failure> {
    let digest: String = told.digest.chars().take(12).collect();
    let text = format!(
        "{} ({digest}): {} runs, {} grafts not verified: {}",
        told.plugin,
        grouped(told.runs),
        grouped(told.grafts),
        told.why
    );
    out.paint(&Row::new().and(Ink::Plain, "  ").and(Ink::Yellow, &one_line(&text)))?;
    Ok(())
}
