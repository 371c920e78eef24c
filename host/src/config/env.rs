//! What the config takes from around it: the home directory, the XDG directories, and where Pi keeps its sessions.

use std::path::{Path, PathBuf};

use super::ConfigError;
use super::setting::Origin;

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

    /// Where the user's config stands, whether or not it is there.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn config_file(&self) -> Result<PathBuf, ConfigError> {
        let base = self.config_home.clone().map_or_else(|| Ok(self.home()?.join(".config")), Ok)?;
        Ok(base.join("pi-graft/config.toml"))
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

    /// Where Pi keeps the sessions of this working directory (S1.1, S1.2).
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn pi_sessions_of(&self, cwd: &Path) -> Result<PathBuf, ConfigError> {
        let (dir, origin) = self.pi_sessions()?;
        let holds_files = match origin {
            Origin::Pi(_) => true,
            _ => self.session_dir.is_some(),
        };
        Ok(if holds_files { dir } else { dir.join(dir_name_of(cwd)) })
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
        let settings = agent.join("settings.json");
        // A relative one is relative to each working directory: there is no one place to watch.
        if let Some(dir) = session_dir_of(&settings).map(|dir| self.expand(&dir)).transpose()?
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

/// The key `sessionDir` of Pi's settings, if they can be read.
fn session_dir_of(settings: &Path) -> Option<String> {
    let text = std::fs::read(settings).ok()?;
    let settings: serde_json::Value = serde_json::from_slice(&text).ok()?;
    settings.get("sessionDir")?.as_str().filter(|dir| !dir.is_empty()).map(str::to_owned)
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
