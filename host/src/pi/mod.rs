//! Pi's own files around sessions: `settings.json`, `trust.json`, `models.json` and `models-store.json` of the agent directory, and a project's
//! `.pi/settings.json`. What they say is for [`pi_session::settings`] to decide; here they are read, and read again only
//! when they changed.
//!
//! They are somebody else's: nothing here writes, a file that cannot be used is a [`Fault`] and no failure, and nothing but
//! a plain file of a sensible size is opened.

mod watched;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pi_session::settings::trust::Trust;
use pi_session::settings::{Around, Fault, Models, Settings, Store};

use watched::Watched;

/// Projects that are remembered; more than that, and they are read anew.
const MOST_PROJECTS: usize = 4096;
/// Faults that are remembered as told.
const MOST_TOLD: usize = 1024;

/// A project's own settings, below its working directory.
const PROJECT_SETTINGS: &str = ".pi/settings.json";

/// Pi's files, kept as long as they stay as they were.
pub struct PiFiles {
    /// The agent directory; none where there is no home.
    agent_dir: Option<PathBuf>,
    held: Mutex<Held>,
    told: Mutex<HashSet<Fault>>,
}

/// What Pi's files say for one working directory.
#[derive(Debug, Default)]
pub struct Seen {
    /// The files that count.
    pub around: Around,
    /// The project's settings that do not count, since Pi does not trust the project.
    pub untrusted: Option<PathBuf>,
    /// What is wrong with them.
    pub faults: Vec<Fault>,
}

/// The files of the agent directory, and the projects.
#[derive(Default)]
struct Held {
    global: Watched<Settings>,
    trust: Watched<Trust>,
    models: Watched<Models>,
    store: Watched<Store>,
    projects: HashMap<PathBuf, Project>,
}

#[derive(Default)]
struct Project {
    settings: Watched<Settings>,
    seen: Option<(Parts, Arc<Seen>)>,
}

/// What a [`Seen`] was made of.
#[derive(Clone)]
struct Parts {
    global: Arc<Settings>,
    trust: Arc<Trust>,
    models: Arc<Models>,
    store: Arc<Store>,
    project: Arc<Settings>,
}

impl PiFiles {
    /// The files in and beside this agent directory.
    #[must_use]
    pub fn new(agent_dir: Option<PathBuf>) -> PiFiles {
        PiFiles { agent_dir, held: Mutex::default(), told: Mutex::default() }
    }

    /// What they say for a session with this working directory. Costs a look at five files; what changed is read.
    #[must_use]
    pub fn look(&self, cwd: Option<&Path>) -> Arc<Seen> {
        // A panic while it was held leaves whole values: they are replaced one at a time.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let file = |name| self.agent_dir.as_ref().map(|dir| dir.join(name));
        let global = held.global.look(file("settings.json").as_deref());
        let trust = held.trust.look(file("trust.json").as_deref());
        let models = held.models.look(file("models.json").as_deref());
        let store = held.store.look(file("models-store.json").as_deref());
        if held.projects.len() >= MOST_PROJECTS {
            held.projects.clear();
        }
        let cwd = cwd.filter(|cwd| cwd.is_absolute());
        let place = cwd.map(|cwd| cwd.join(PROJECT_SETTINGS));
        let project = held.projects.entry(place.clone().unwrap_or_default()).or_default();
        let settings = project.settings.look(place.as_deref());
        project.see(Parts { global, trust, models, store, project: settings }, cwd)
    }

    /// Those of the faults that were not told yet; they count as told from now on.
    pub fn news(&self, faults: impl IntoIterator<Item = Fault>) -> Vec<Fault> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        faults.into_iter().filter(|fault| told.insert(fault.clone())).collect()
    }
}

impl Project {
    /// What these files say together; the very same as before if they are.
    fn see(&mut self, parts: Parts, cwd: Option<&Path>) -> Arc<Seen> {
        match &self.seen {
            Some((before, seen)) if before.are(&parts) => Arc::clone(seen),
            _ => {
                let seen = Arc::new(parts.seen(cwd, self.settings.is_there()));
                self.seen = Some((parts, Arc::clone(&seen)));
                seen
            }
        }
    }
}

impl Parts {
    fn are(&self, other: &Parts) -> bool {
        Arc::ptr_eq(&self.global, &other.global)
            && Arc::ptr_eq(&self.trust, &other.trust)
            && Arc::ptr_eq(&self.models, &other.models)
            && Arc::ptr_eq(&self.store, &other.store)
            && Arc::ptr_eq(&self.project, &other.project)
    }

    fn seen(&self, cwd: Option<&Path>, is_there: bool) -> Seen {
        let Parts { global, trust, models, store, project } = self.clone();
        // Pi keeps its decisions by real path.
        let real = |cwd: &Path| cwd.canonicalize().unwrap_or_else(|_| cwd.to_path_buf());
        let trusted = is_there && cwd.is_some_and(|cwd| trust.trusts(&real(cwd), &global));
        let untrusted = cwd.filter(|_| is_there && !trusted).map(|cwd| cwd.join(PROJECT_SETTINGS));
        let around = Around { global, project: Some(project).filter(|_| trusted), models, store };
        let faults = around.faults().chain(trust.fault()).cloned().collect();
        Seen { around, untrusted, faults }
    }
}

/// The settings in one file, read now; empty where there is none.
#[must_use]
pub fn read_settings(path: &Path) -> Settings {
    let mut file = Watched::<Settings>::default();
    Arc::unwrap_or_clone(file.look(Some(path)))
}

/// A project's own settings, whether or not Pi trusts the project.
#[must_use]
pub fn read_project_settings(cwd: &Path) -> Settings {
    read_settings(&cwd.join(PROJECT_SETTINGS))
}

#[cfg(test)]
mod tests;
