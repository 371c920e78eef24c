//! Making the runs of the log again, entry by entry of the file, and holding what comes of each against its row.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pi_session::Tree;
use pi_session::branch::{Branch, BranchError, Origin};
use pi_session::json::Json;
use pi_session::receipt::content;
use pi_session::tree::{EntryIx, Pushed, Source};
use sha2::{Digest, Sha256};

use crate::files::FilesError;
use crate::files::tail::Reading;
use crate::journal::{Handler, Text};
use crate::replay::ReplayError;
use crate::sandbox::{self, HostFacts, Models, Plugin, Run, RunReport};

use super::RunLog;
use super::answers::Answers;
use super::plan::{Place, Plan, Planned, Why};
use super::report::{Difference, Said};

/// Runs for which texts are fetched together.
const AHEAD: usize = 32;
/// Bytes of texts that are kept for the next runs, about.
const MOST_TEXTS: usize = 16 << 20;

/// What a draft holds, as a sum: drafts and the entries that came of them have the same.
pub(super) type Sum = [u8; 16];

/// The sum of a draft, or of an entry; none of what is never grafted.
pub(super) fn sum(json: Json<'_>) -> Option<Sum> {
    let digest = Sha256::digest(content(json)?);
    Some(std::array::from_fn(|at| digest[at]))
}

/// What has come of it.
#[derive(Default)]
pub(super) struct Made {
    /// By plugin: runs made again, and those that came out as then.
    pub runs: BTreeMap<Arc<str>, (u64, u64)>,
    /// Every batch that was proposed again, in the order of the runs.
    pub batches: Vec<MadeBatch>,
    pub differences: Vec<Difference>,
    /// Runs that could not be made again after all.
    pub others: Vec<(Place, Arc<str>, Why)>,
}

/// A batch that was proposed then, and what is proposed now in its place.
pub(super) struct MadeBatch {
    pub place: Place,
    pub digest: Arc<str>,
    pub batch: Arc<str>,
    /// What is proposed now.
    pub sums: Vec<Sum>,
    /// The hash of what was proposed then.
    pub drafts: Option<Arc<str>>,
    /// Whether it is the same.
    pub same: bool,
}

/// The work.
pub(super) struct Again<'v> {
    plugins: &'v [Arc<Plugin>],
    plan: &'v Plan,
    file: Arc<Reading>,
    header: String,
    texts: Texts<'v>,
    /// How many of the planned runs are done with.
    next: usize,
    pub made: Made,
}

/// Texts of the log, for the next runs.
struct Texts<'v> {
    log: &'v dyn RunLog,
    kept: BTreeMap<String, Option<Arc<str>>>,
    bytes: usize,
}

impl Texts<'_> {
    fn fetch(&mut self, hashes: impl Iterator<Item = String>) -> Result<(), ReplayError> {
        if self.bytes > MOST_TEXTS {
            (self.kept, self.bytes) = (BTreeMap::new(), 0);
        }
        let lacking: Vec<String> = hashes.filter(|hash| !self.kept.contains_key(hash)).collect();
        for (hash, text) in self.log.texts(lacking).map_err(ReplayError::Log)? {
            self.bytes += text.as_ref().map_or(0, String::len);
            self.kept.insert(hash, text.map(Arc::from));
        }
        Ok(())
    }

    fn get(&self, hash: &str) -> Option<Arc<str>> {
        self.kept.get(hash)?.clone()
    }
}

impl<'v> Again<'v> {
    pub(super) fn new(
        plugins: &'v [Arc<Plugin>],
        log: &'v dyn RunLog,
        file: Arc<Reading>,
        header: String,
        plan: &'v Plan,
    ) -> Again<'v> {
        let texts = Texts { log, kept: BTreeMap::new(), bytes: 0 };
        Again { plugins, plan, file, header, texts, next: 0, made: Made::default() }
    }

    pub(super) fn file(&self) -> Arc<dyn Source> {
        Arc::clone(&self.file) as Arc<dyn Source>
    }

    /// Reads the file to its end and makes each run where it is due. Gives the whole tree.
    pub(super) fn read(&mut self, path: &Path, told: &dyn Fn(u64)) -> Result<Arc<Tree>, ReplayError> {
        let io = |source| FilesError::Io { path: path.to_path_buf(), source };
        let (file, mut past, mut failure) = (Arc::clone(&self.file), Arc::new(Tree::new()), None);
        let whole = file.lines(0, |offset, line| {
            failure = self.take(&mut past, offset, line).err();
            told(line.len() as u64 + 1);
            failure.is_none()
        });
        let whole = whole.map_err(io)?;
        failure.map_or(Ok(()), Err)?;
        let left = file.metadata().map_err(io)?.len().saturating_sub(whole);
        if left > 0 {
            let last = file.read(whole, usize::try_from(left).unwrap_or(usize::MAX))?;
            self.take(&mut past, whole, &last)?;
        }
        while let Some(run) = self.plan.runs.get(self.next) {
            self.next += 1;
            self.leave(run, Why::Elsewhere);
        }
        Ok(past)
    }

    fn take(&mut self, past: &mut Arc<Tree>, offset: u64, line: &[u8]) -> Result<(), ReplayError> {
        let Pushed::Entry(ix) = Arc::make_mut(past).push(offset, line) else { return Ok(()) };
        let entries = past.entries().len() as u64;
        while let Some(run) = self.plan.runs.get(self.next).filter(|run| run.given.entries <= entries) {
            self.next += 1;
            let trigger = if past.id(ix) == &*run.place.trigger { Some(ix) } else { past.by_id(&run.place.trigger) };
            match trigger.filter(|_| run.given.entries == entries) {
                Some(trigger) => self.make(run, past, trigger)?,
                None => self.leave(run, Why::Elsewhere),
            }
        }
        Ok(())
    }

    fn leave(&mut self, run: &Planned, why: Why) {
        self.made.others.push((run.place.clone(), Arc::clone(&run.digest), why));
    }

    fn make(&mut self, run: &Planned, past: &Arc<Tree>, trigger: EntryIx) -> Result<(), ReplayError> {
        let branch = match Branch::at(past, self.file(), Some(trigger)) {
            Err(BranchError::Cycle(_)) => {
                self.leave(run, Why::Elsewhere);
                return Ok(());
            }
            branch => branch?,
        };
        self.fetch_for(run)?;
        let Some((call, answers)) = self.call(run, branch) else {
            self.leave(run, Why::Forgotten);
            return Ok(());
        };
        let answers = (run.place.handler == Handler::OnSettled.as_str()).then(|| Arc::new(Answers::new(answers)));
        let models = answers.clone().map(|answers| answers as Arc<dyn Models>);
        let report = self.plugins[run.with].run_with(call, models);
        let wrong = answers.and_then(|answers| answers.wrong());
        self.compare(run, report, wrong)
    }

    /// The texts of this run and of those that come next, if this one's are not there yet.
    fn fetch_for(&mut self, run: &Planned) -> Result<(), ReplayError> {
        let plan = self.plan;
        let is_there = |hash: String| self.texts.kept.contains_key(&hash);
        if needs(plan, run).all(is_there) {
            return Ok(());
        }
        let ahead = plan.runs.iter().skip(self.next).take(AHEAD);
        let hashes: std::collections::BTreeSet<String> =
            std::iter::once(run).chain(ahead).flat_map(|run| needs(plan, run)).collect();
        self.texts.fetch(hashes.into_iter())
    }

    /// The run as it was made then, and the models' answers; none if something that it was given is not kept any more.
    fn call(&self, run: &Planned, mut branch: Branch) -> Option<(Run, Vec<String>)> {
        for batch in &run.given.pending {
            let (plugin, drafts) = self.plan.batch_at(batch, run.row)?;
            let origin = Arc::new(Origin { plugin: plugin.to_string(), batch: batch.to_string() });
            branch.push_all(&self.texts.get(drafts)?, &origin);
        }
        let facts: HostFacts = serde_json::from_str(&self.texts.get(&run.given.facts)?).ok()?;
        let answers = run.given.answers.iter().map(|answer| Some(self.texts.get(answer)?.to_string()));
        let answers = answers.collect::<Option<Vec<_>>>()?;
        let handler = match &run.given.told {
            None => sandbox::Handler::OnEntry,
            Some(told) => settled(&run.given.reason, &self.texts.get(told)?)?,
        };
        let (trigger_id, header_json) = (run.place.trigger.to_string(), self.header.clone());
        Some((Run { handler, branch, trigger_id, facts, header_json }, answers))
    }

    fn compare(&mut self, run: &Planned, report: RunReport, wrong: Option<String>) -> Result<(), ReplayError> {
        let refused: Vec<Arc<str>> = report.refusals.iter().map(|refusal| refusal.rule.as_str().into()).collect();
        let (outcome, drafts) = outcome_of(report);
        let hash = drafts.as_deref().map(|drafts| Text::new(drafts).hash().to_owned());
        let same = *run.outcome == *outcome
            && run.refused == refused
            && run.drafts.as_deref() == hash.as_deref()
            && wrong.is_none();
        let (all, well) = self.made.runs.entry(Arc::clone(&run.place.plugin)).or_default();
        (*all, *well) = (*all + 1, *well + u64::from(same));
        if let Some(batch) = &run.batch {
            let sums = Json::parse(drafts.as_deref().unwrap_or("[]").as_bytes()).ok();
            self.made.batches.push(MadeBatch {
                place: run.place.clone(),
                digest: Arc::clone(&run.digest),
                batch: Arc::clone(batch),
                sums: sums.into_iter().flat_map(Json::items).filter_map(sum).collect(),
                drafts: run.drafts.clone(),
                same,
            });
        }
        if !same {
            let then = self.said_then(run)?;
            let now = Said::of(&outcome, drafts.as_deref(), &refused);
            let what = wrong.unwrap_or_else(|| "the run comes out otherwise".to_owned());
            let batch = run.batch.as_deref();
            self.made.differences.push(Difference::of(&run.place, batch, what).between(Some(then), Some(now)));
        }
        Ok(())
    }

    fn said_then(&mut self, run: &Planned) -> Result<Said, ReplayError> {
        let drafts = match &run.drafts {
            None => None,
            Some(hash) => {
                self.texts.fetch(std::iter::once(hash.to_string()))?;
                self.texts.get(hash)
            }
        };
        Ok(Said::of(&run.outcome, drafts.as_deref(), &run.refused))
    }
}

/// The hashes of what a run was given.
fn needs<'p>(plan: &'p Plan, run: &'p Planned) -> impl Iterator<Item = String> + 'p {
    let pending = run.given.pending.iter().filter_map(|batch| plan.batch_at(batch, run.row));
    let pending = pending.map(|(_, drafts)| drafts);
    let own = std::iter::once(&run.given.facts).chain(&run.given.told).chain(&run.given.answers);
    own.chain(pending).map(|hash| hash.to_string())
}

/// `on-settled`, as it was told what it was to do.
fn settled(reason: &str, told: &str) -> Option<sandbox::Handler> {
    #[derive(serde::Deserialize)]
    struct Told {
        notes: Vec<String>,
        instructions: Option<String>,
    }
    let Told { notes, instructions } = serde_json::from_str(told).ok()?;
    Some(sandbox::Handler::OnSettled { reason: reason.to_owned(), notes, instructions })
}

/// What came of a run, in the log's words, and what it proposed.
fn outcome_of(report: RunReport) -> (String, Option<String>) {
    let done = match report.outcome {
        Err(failure) => return (failure.kind.name().to_owned(), None),
        Ok(done) => done,
    };
    match (done.accepted.filter(|accepted| !accepted.is_empty()), done.later) {
        (Some(accepted), _) => ("proposed".to_owned(), Some(accepted.to_json())),
        (None, Some(_)) => ("later".to_owned(), None),
        (None, None) => ("nothing".to_owned(), None),
    }
}
