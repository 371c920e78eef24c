//! Loading a plugin, and calling it.
use std::sync::Arc;

use pi_session::Branch;
use pi_session::branch::BranchError;
use pi_session::figures::hex;
use sha2::{Digest, Sha256};
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, ComponentNamedList, Instance, Lift, Lower, TypedFunc};

use super::batch::Batch;
use super::compiler::{NotCompiled, check_size, compile, compile_beside};
use super::component::{HANDLER, check_contract};
use super::contract::Description;
use super::grants::{Grants, is_known};
use super::instance::{Ended, Guest, Machine, Session};
use super::limits::Limits;
use super::model::{Asking, Models};
use super::pieces::cut;
use super::report::{Done, Failure, FailureKind, Handler, Run, RunReport};
use super::view::{View, custom_type, ends_chain, kind, maker, role};
use super::wakes::{Patterns, Waker};
use super::{LoadError, Sandbox, cache};

/// Bytes of an error's text.
const MAX_ERROR_BYTES: usize = 4 << 10;

/// What a plugin is loaded from.
#[derive(Debug, Clone)]
pub struct PluginSource {
    /// Its name in the config, which is what receipts say.
    pub name: String,
    /// A component, or a core module with its component type embedded.
    pub bytes: Vec<u8>,
    /// Its config, JSON.
    pub config_json: String,
    /// What the user lets it do. Nothing, if this is empty.
    pub grants: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// Wakes it less often than it asks.
    pub on: Option<Vec<String>>,
}

/// A plugin, ready to run.
pub struct Plugin {
    name: String,
    version: String,
    digest: String,
    config_json: String,
    settings: Arc<str>,
    asks: Patterns,
    narrowed: Option<Patterns>,
    compacts: bool,
    machine: Machine,
    exports: Exports,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("name", &self.name).field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Loads a plugin: compiles it or takes it from the cache, asks it to describe itself, and checks what it needs.
    ///
    /// # Errors
    /// Says what is wrong with it, and what to do.
    pub fn load(&self, source: PluginSource) -> Result<Plugin, LoadError> {
        if source.limits.memory > self.max_memory {
            return Err(LoadError::Memory { wanted: source.limits.memory, most: self.max_memory });
        }
        serde_json::from_str::<serde::de::IgnoredAny>(&source.config_json)
            .map_err(|error| LoadError::ConfigJson(error.to_string()))?;
        let digest = hex(&Sha256::digest(&source.bytes));
        let component = self.component(&digest, &source.bytes)?;
        check_contract(&self.clockwork.engine, &component)?;
        let machine = self.machine(&component, &source)?;
        let exports = Exports::of(&component)?;
        let description = describe(&machine, &exports, &source.config_json)?;
        check_needs(&description, &machine.grants)?;
        let parse = |texts: &[String]| Patterns::parse(texts).map_err(LoadError::Pattern);
        Ok(Plugin {
            settings: settings(&source).into(),
            asks: parse(&description.on)?,
            narrowed: source.on.as_deref().map(parse).transpose()?,
            compacts: compacts(&description, &machine.grants),
            name: source.name,
            version: description.version,
            digest,
            config_json: source.config_json,
            machine,
            exports,
        })
    }

    fn component(&self, digest: &str, bytes: &[u8]) -> Result<Component, LoadError> {
        self.cached(digest).map_or_else(|| self.compile(digest, bytes), Ok)
    }

    fn cached(&self, digest: &str) -> Option<Component> {
        self.cache.as_ref().and_then(|cache| cache.load(self.engine(), digest))
    }

    /// Compiles a plugin, and keeps what comes of it.
    pub(super) fn compile(&self, digest: &str, bytes: &[u8]) -> Result<Component, LoadError> {
        check_size(bytes)?;
        let memories = self.clockwork.memories;
        if let Some(why) = self.cache.as_ref().and_then(|cache| cache.why_not(digest)) {
            return Err(LoadError::TooMuch(why));
        }
        let code = match &self.compiler {
            Some(program) => {
                compile_beside(program, memories, bytes).map_err(|none| self.note_failure(digest, none))?
            }
            None => compile(memories, bytes)?,
        };
        if let Some(Err(error)) = self.cache.as_ref().map(|cache| cache.store(digest, &code)) {
            tracing::warn!(%error, "a compiled plugin could not be kept; it will be compiled again");
        }
        // From its file no more of it is in memory than what runs.
        self.cached(digest).map_or_else(|| cache::compiled(self.engine(), &code), Ok)
    }

    /// Keeps why nothing came of compiling it, so that it costs that much once.
    fn note_failure(&self, digest: &str, NotCompiled { error, is_lasting }: NotCompiled) -> LoadError {
        if let (LoadError::TooMuch(why), true, Some(cache)) = (&error, is_lasting, &self.cache)
            && let Err(error) = cache.store_why_not(digest, why)
        {
            tracing::warn!(%error, "why a plugin could not be compiled could not be kept; it is tried again at the next start");
        }
        error
    }

    pub(super) fn machine(&self, component: &Component, source: &PluginSource) -> Result<Machine, LoadError> {
        let mismatch = |error: wasmtime::Error| LoadError::NotAPlugin(format!("{error:#}"));
        Ok(Machine {
            clockwork: self.clockwork.clone(),
            pre: self.linker.instantiate_pre(component).map_err(mismatch)?,
            limits: source.limits,
            grants: Arc::new(Grants::new(&source.grants)),
        })
    }
}

fn settings(source: &PluginSource) -> String {
    let Limits { fuel, memory, proposals, entry_bytes, batch_bytes, log_lines, time: _, retry: _ } = source.limits;
    let config: serde_json::Value = serde_json::from_str(&source.config_json).unwrap_or_default();
    let limits = serde_json::json!({
        "fuel": fuel, "memory": memory, "proposals": proposals, "entryBytes": entry_bytes, "batchBytes": batch_bytes,
        "logLines": log_lines,
    });
    let (grants, on) = (&source.grants, &source.on);
    serde_json::json!({ "config": config, "grants": grants, "on": on, "limits": limits }).to_string()
}

/// Where a component's functions are.
pub(super) struct Exports {
    describe: ComponentExportIndex,
    on_entry: ComponentExportIndex,
    on_settled: ComponentExportIndex,
}

impl Exports {
    pub(super) fn of(component: &Component) -> Result<Self, LoadError> {
        let missing = |name| LoadError::NotAPlugin(format!("it does not export {name}"));
        let handler = component.get_export_index(None, HANDLER).ok_or_else(|| missing(HANDLER))?;
        let function = |name| component.get_export_index(Some(&handler), name).ok_or_else(|| missing(name));
        let (describe, on_entry) = (function("describe")?, function("on-entry")?);
        Ok(Self { describe, on_entry, on_settled: function("on-settled")? })
    }
}

fn function<P, R>(
    store: &mut Store<Guest>,
    at: &Instance,
    index: &ComponentExportIndex,
) -> wasmtime::Result<TypedFunc<P, R>>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    at.get_typed_func(&mut *store, index)
}

pub(super) fn describe(machine: &Machine, exports: &Exports, config: &str) -> Result<Description, LoadError> {
    type Answer = (Result<Description, String>,);
    let ended = machine.run(None, |store, instance| {
        let describe = function::<(&str,), Answer>(store, instance, &exports.describe)?;
        Ok(describe.call(store, (config,))?.0)
    });
    ended.result.map_err(|failure| LoadError::Describe(cut_message(failure)))
}

/// What it names, and what is granted, must be there.
pub(super) fn check_known(description: &Description, grants: &Grants) -> Result<(), LoadError> {
    let named = description.needs.iter().chain(&description.can_use).map(String::as_str).chain(grants.names());
    match named.into_iter().find(|name| !is_known(name)) {
        Some(unknown) => Err(LoadError::Capability(unknown.to_owned())),
        None => Ok(()),
    }
}

/// What it needs must be granted, and what it names must be there to be granted.
fn check_needs(description: &Description, grants: &Grants) -> Result<(), LoadError> {
    check_known(description, grants)?;
    let missing: Vec<_> = description.needs.iter().filter(|need| !grants.has(need)).cloned().collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(LoadError::Needs { line: grants.line_with(&missing), missing })
}

fn compacts(description: &Description, grants: &Grants) -> bool {
    const COMPACTION: &str = "append:compaction";
    grants.has(COMPACTION) && description.needs.iter().chain(&description.can_use).any(|name| name == COMPACTION)
}

impl Plugin {
    /// Its name in the config.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version, as it says.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The SHA-256 of its bytes, hex.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What the config says of it that decides what its runs do, as JSON: its own config, grants, and limits but for the
    /// wall clock, which is no function of the session.
    #[must_use]
    pub fn settings(&self) -> &Arc<str> {
        &self.settings
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.machine.limits
    }

    /// What it was granted.
    pub fn grants(&self) -> impl Iterator<Item = &str> {
        self.machine.grants.names()
    }

    /// Whether it may be asked when a compaction is wanted: it says that it proposes some, and may.
    #[must_use]
    pub fn wants_settled(&self) -> bool {
        self.compacts
    }

    /// Whether the entry at a place, which is in the file, wakes it. What is the host's own, and what is pending, wakes nobody.
    ///
    /// # Errors
    /// If the receipt before a graft cannot be read.
    pub fn wakes_on(&self, branch: &Branch, place: u32) -> Result<bool, BranchError> {
        let item = branch.item(place);
        if item.pending.is_some() || pi_session::receipt::is_hosts_own(&item) {
            return Ok(false);
        }
        let maker = maker(branch, place)?;
        let sub = role(&item).or_else(|| custom_type(&item));
        let waker = Waker { kind: kind(&item), sub, grafted_by: maker.as_deref() };
        let fits = |patterns: &Patterns| patterns.fit(&self.name, waker);
        let fits = fits(&self.asks) && self.narrowed.as_ref().is_none_or(fits);
        Ok(fits && !(maker.is_some() && ends_chain(branch, place)?))
    }

    /// Runs it once, without a model. What it proposed is in the report, if it ended well.
    pub fn run(&self, run: Run) -> RunReport {
        self.run_with(run, None)
    }

    /// The same with what answers when it asks a model in `on-settled`.
    pub fn run_with(&self, run: Run, models: Option<Arc<dyn Models>>) -> RunReport {
        let Some(session) = self.session(&run, models) else {
            let message = format!("the trigger {} is not on the branch", run.trigger_id);
            return failed(Failure { kind: FailureKind::Session, message });
        };
        let config = self.config_json.as_str();
        let ended = self.machine.run(Some(session), |store, instance| match &run.handler {
            Handler::OnEntry => {
                let handler = function::<(&str,), (Result<(), String>,)>(store, instance, &self.exports.on_entry)?;
                Ok(handler.call(store, (config,))?.0)
            }
            Handler::OnSettled { reason, notes, instructions } => {
                type Params<'a> = (&'a str, &'a str, &'a [String], Option<&'a str>);
                let index = &self.exports.on_settled;
                let handler = function::<Params<'_>, (Result<(), String>,)>(store, instance, index)?;
                Ok(handler.call(store, (config, reason, notes, instructions.as_deref()))?.0)
            }
        });
        report(ended)
    }

    fn session(&self, run: &Run, models: Option<Arc<dyn Models>>) -> Option<Session> {
        let Machine { limits, grants, .. } = &self.machine;
        let trigger = run.branch.place_of(&run.trigger_id)?;
        Some(Session {
            view: View::new(run.branch.clone(), trigger),
            batch: Batch::new(&self.name, run.branch.clone(), limits, Arc::clone(grants)),
            facts: run.facts.clone(),
            header_json: run.header_json.clone(),
            on_entry: run.handler == Handler::OnEntry,
            asking: Asking::of(models),
        })
    }
}

/// What is kept of a run: its proposals only if it ended well.
fn report(ended: Ended<()>) -> RunReport {
    let Ended { result, guest, fuel, wall } = ended;
    let asked_in_vain = guest.session.as_ref().is_some_and(|session| session.asking.failed);
    let batch = guest.session.map(|session| session.batch);
    let result = result.map_err(|failure| if asked_in_vain { of_model(failure) } else { failure });
    let (outcome, refusals) = match (result, batch) {
        (Ok(()), Some(batch)) => {
            let (accepted, later, refusals) = batch.finish();
            (Ok(Done { accepted, later }), refusals)
        }
        (Ok(()), None) => (Ok(Done { accepted: None, later: None }), Vec::new()),
        (Err(failure), batch) => (Err(cut_message(failure)), batch.map(Batch::refusals).unwrap_or_default()),
    };
    RunReport { outcome, refusals, logs: guest.log.lines, logs_dropped: guest.log.dropped, fuel, wall }
}

/// An error that follows a model's failure is one of the model's.
fn of_model(failure: Failure) -> Failure {
    let kind = if failure.kind == FailureKind::Err { FailureKind::Model } else { failure.kind };
    Failure { kind, ..failure }
}

fn failed(failure: Failure) -> RunReport {
    let (refusals, logs) = (Vec::new(), Vec::new());
    RunReport { outcome: Err(failure), refusals, logs, logs_dropped: 0, fuel: 0, wall: std::time::Duration::ZERO }
}

fn cut_message(failure: Failure) -> Failure {
    let message = cut(&failure.message, MAX_ERROR_BYTES).to_owned();
    Failure { message, ..failure }
}
