//! What the config takes from around it: the home directory, the XDG directories, and where Pi keeps its sessions.

use std::path::{Path, PathBuf};

use pi_session::settings::Around;

use super::ConfigError;
use super::setting::Origin;
use crate::pi;

/// The name of Pi's settings in its agent directory.
const SETTINGS: &str = "settings.json";

/// The environment, as a value, so that every test is exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// `HOME`
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`
    pub config_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`
    pub state_home: Option<PathBuf>,
    /// `XDG_DATA_HOME`
    pub data_home: Option<PathBuf>,
    /// `PI_CODING_AGENT_DIR` (S1.1)
    pub agent_dir: Option<String>,
    /// `PI_CODING_AGENT_SESSION_DIR` (S1.2)
    pub session_dir: Option<String>,
}

impl Env {
    /// The environment of this process. An empty variable counts as none.
    #[must_use]
    pub fn of_process() -> Env {
        let path = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let text = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
        Env {
            home: path("HOME"),
            config_home: path("XDG_CONFIG_HOME").filter(|p| p.is_absolute()),
            state_home: path("XDG_STATE_HOME").filter(|p| p.is_absolute()),
            data_home: path("XDG_DATA_HOME").filter(|p| p.is_absolute()),
            agent_dir: text("PI_CODING_AGENT_DIR"),
            session_dir: text("PI_CODING_AGENT_SESSION_DIR"),
        }
    }

    /// The home directory.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn home(&self) -> Result<&Path, ConfigError> {
        self.home.as_deref().ok_or(ConfigError::NoHome)
    }

    /// Where programs keep what their user configures.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn config_home(&self) -> Result<PathBuf, ConfigError> {
        self.config_home.clone().map_or_else(|| Ok(self.home()?.join(".config")), Ok)
    }

    /// Where the user's config stands, whether or not it is there.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn config_file(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.config_home()?.join("pi-graft/config.toml"))
    }

    /// Where state is kept unless the config says otherwise.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn state_dir(&self) -> Result<PathBuf, ConfigError> {
        let base = self.state_home.clone().map_or_else(|| Ok(self.home()?.join(".local/state")), Ok)?;
        Ok(base.join("pi-graft"))
    }

    /// Where the desktop has its trash, whether or not it is there.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn trash_dir(&self) -> Result<PathBuf, ConfigError> {
        let base = self.data_home.clone().map_or_else(|| Ok(self.home()?.join(".local/share")), Ok)?;
        Ok(base.join("Trash"))
    }

    /// Where `plugin install` puts plugins, whether or not it is there.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn plugins_dir(&self) -> Result<PathBuf, ConfigError> {
        let base = self.data_home.clone().map_or_else(|| Ok(self.home()?.join(".local/share")), Ok)?;
        Ok(base.join("pi-graft/plugins"))
    }

    /// Where Pi keeps the sessions of this working directory (S1.1, S1.2): what the variable says, the project's settings,
    /// the user's, else a directory of its own below the agent directory.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn pi_sessions_of(&self, cwd: &Path) -> Result<PathBuf, ConfigError> {
        let agent = self.agent_dir()?;
        let said = match &self.session_dir {
            Some(dir) => Some(dir.clone()),
            None => {
                let (global, project) = (pi::read_settings(&agent.join(SETTINGS)), pi::read_project_settings(cwd));
                Around::session_dir(&global, Some(&project)).map(|dir| dir.value)
            }
        };
        match said {
            Some(dir) => Ok(cwd.join(self.expand(&dir)?)),
            None => Ok(agent.join("sessions").join(dir_name_of(cwd))),
        }
    }

    /// `~` and `~/…` with the home directory in its place; other texts as they are.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn expand(&self, text: &str) -> Result<PathBuf, ConfigError> {
        match text.strip_prefix('~') {
            Some("") => Ok(self.home()?.to_path_buf()),
            Some(rest) if rest.starts_with('/') => Ok(self.home()?.join(rest.trim_start_matches('/'))),
            _ => Ok(PathBuf::from(text)),
        }
    }

    /// Pi's own directory (S1.1).
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn agent_dir(&self) -> Result<PathBuf, ConfigError> {
        match &self.agent_dir {
            Some(dir) => self.expand(dir),
            None => Ok(self.home()?.join(".pi/agent")),
        }
    }

    /// Where Pi keeps its sessions, and what says so (S1.1, S1.2). A `--session-dir` option and a project's own settings
    /// cannot be seen from here; who uses these names the directory in the config.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn pi_sessions(&self) -> Result<(PathBuf, Origin), ConfigError> {
        if let Some(dir) = &self.session_dir {
            return Ok((self.expand(dir)?, Origin::Variable("PI_CODING_AGENT_SESSION_DIR")));
        }
        let agent = self.agent_dir()?;
        let settings = agent.join(SETTINGS);
        let said = Around::session_dir(&pi::read_settings(&settings), None);
        // A relative one is relative to each working directory: there is no one place to watch.
        if let Some(dir) = said.map(|dir| self.expand(&dir.value)).transpose()?
            && dir.is_absolute()
        {
            return Ok((dir, Origin::Pi(settings)));
        }
        let origin = self.agent_dir.as_ref().map_or(Origin::Default, |_| Origin::Variable("PI_CODING_AGENT_DIR"));
        Ok((agent.join("sessions"), origin))
    }
}

/// The name of the directory with the sessions of a working directory (S1.1).
fn dir_name_of(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let cwd = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    format!("--{}--", cwd.replace(['/', '\\', ':'], "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_home(home: &str) -> Env {
        Env { home: Some(home.into()), ..Env::default() }
    }

    #[test]
    fn pi_keeps_sessions_below_its_agent_directory() {
        let (dir, origin) = at_home("/h").pi_sessions().expect("a home");
        assert_eq!((dir, origin), ("/h/.pi/agent/sessions".into(), Origin::Default));
        let env = Env { agent_dir: Some("~/agent".into()), ..at_home("/h") };
        let (dir, origin) = env.pi_sessions().expect("a home");
        assert_eq!((dir, origin), ("/h/agent/sessions".into(), Origin::Variable("PI_CODING_AGENT_DIR")));
    }

    #[test]
    fn a_session_directory_holds_the_files_directly() {
        let env = Env { session_dir: Some("~/s".into()), ..at_home("/h") };
        assert_eq!(env.pi_sessions().expect("a home").0, PathBuf::from("/h/s"));
    }

    #[test]
    fn each_working_directory_has_its_own() {
        let of = |env: &Env, cwd| env.pi_sessions_of(Path::new(cwd)).expect("a home");
        assert_eq!(of(&at_home("/h"), "/a/b:c"), PathBuf::from("/h/.pi/agent/sessions/--a-b-c--"));
        let env = Env { session_dir: Some("/s".into()), ..at_home("/h") };
        assert_eq!(of(&env, "/a"), PathBuf::from("/s"));
    }

    #[test]
    fn the_settings_of_pi_may_name_another_directory() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let env = Env { agent_dir: Some(dir.path().display().to_string()), ..at_home("/h") };
        let settings = dir.path().join("settings.json");
        std::fs::write(&settings, r#"{"sessionDir":"~/elsewhere"}"#).expect("written");
        assert_eq!(env.pi_sessions().expect("a home"), ("/h/elsewhere".into(), Origin::Pi(settings.clone())));
        std::fs::write(&settings, r#"{"sessionDir":"relative"}"#).expect("written");
        assert_eq!(env.pi_sessions().expect("a home").0, dir.path().join("sessions"));
        std::fs::write(&settings, "no JSON").expect("written");
        assert_eq!(env.pi_sessions().expect("a home").0, dir.path().join("sessions"));
    }

    #[test]
    fn a_project_may_keep_its_sessions_elsewhere() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (agent, work) = (dir.path().join("agent"), dir.path().join("work"));
        [agent.as_path(), &work.join(".pi")].iter().for_each(|dir| std::fs::create_dir_all(dir).expect("made"));
        let env = Env { agent_dir: Some(agent.display().to_string()), ..at_home("/h") };
        let of = |env: &Env| env.pi_sessions_of(&work).expect("a home");
        let write = |path: PathBuf, text| std::fs::write(path, text).expect("written");
        write(agent.join("settings.json"), r#"{"sessionDir":"of-user"}"#);
        assert_eq!(of(&env), work.join("of-user"), "relative to the working directory");
        write(work.join(".pi/settings.json"), r#"{"sessionDir":"~/of-project"}"#);
        assert_eq!(of(&env), PathBuf::from("/h/of-project"), "whether or not Pi trusts the project");
        let env = Env { session_dir: Some("/s".into()), ..env };
        assert_eq!(of(&env), PathBuf::from("/s"));
    }

    #[test]
    fn only_a_leading_tilde_is_home() {
        let env = at_home("/h");
        for (text, path) in [("~", "/h"), ("~/a", "/h/a"), ("~a", "~a"), ("/a/~", "/a/~"), ("a", "a")] {
            assert_eq!(env.expand(text).expect("a home"), PathBuf::from(path), "{text}");
        }
        assert!(matches!(Env::default().expand("~/a"), Err(ConfigError::NoHome)));
    }

    #[test]
    fn xdg_directories_come_first() {
        let env = Env { config_home: Some("/c".into()), state_home: Some("/s".into()), ..Env::default() };
        assert_eq!(env.config_file().expect("no home needed"), PathBuf::from("/c/pi-graft/config.toml"));
        assert_eq!(env.state_dir().expect("no home needed"), PathBuf::from("/s/pi-graft"));
    }
}
