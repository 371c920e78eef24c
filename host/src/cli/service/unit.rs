//! The unit's text, for systemd and for launchd, and the commands that make it take effect.

use std::path::{Path, PathBuf};

use crate::config::{ConfigError, Env};

const SYSTEMD: &str = include_str!("../../../../config/service/pi-graft.service");
const LAUNCHD: &str = include_str!("../../../../config/service/pi-graft.plist");

/// What the daemon takes from the environment: where things are, and where a model's command is found.
const VARIABLES: [&str; 8] = [
    "PATH",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "PI_GRAFT_RUNTIME_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// What the service is to run.
pub(super) struct Unit {
    /// The program and its arguments.
    pub program: Vec<PathBuf>,
    /// Variables and their values.
    pub variables: Vec<(&'static str, String)>,
    /// A file with more of them, such as the keys of models.
    pub environment: PathBuf,
    /// Where launchd puts the log; systemd has its journal.
    pub log: PathBuf,
}

/// Those of this process that are set.
pub(super) fn variables() -> Vec<(&'static str, String)> {
    let set =
        |name: &'static str| std::env::var(name).ok().filter(|value| !value.is_empty()).map(|value| (name, value));
    VARIABLES.into_iter().filter_map(set).collect()
}

/// Who runs a user's services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manager {
    /// systemd's user instance.
    Systemd,
    /// launchd, on macOS.
    Launchd,
}

impl Manager {
    pub(super) fn of_this_system() -> Manager {
        if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd }
    }

    /// Where the unit belongs.
    pub(super) fn file(self, env: &Env) -> Result<PathBuf, ConfigError> {
        Ok(match self {
            Manager::Systemd => env.config_home()?.join("systemd/user/pi-graft.service"),
            Manager::Launchd => env.home()?.join("Library/LaunchAgents/pi-graft.plist"),
        })
    }

    pub(super) fn text(self, unit: &Unit) -> String {
        match self {
            Manager::Systemd => systemd(unit),
            Manager::Launchd => launchd(unit),
        }
    }

    /// What enables and starts it, or starts it anew.
    pub(super) fn start(self, path: &Path) -> Vec<Vec<String>> {
        match self {
            Manager::Systemd => lines(&[
                "systemctl --user daemon-reload",
                "systemctl --user enable pi-graft.service",
                "systemctl --user restart pi-graft.service",
            ]),
            Manager::Launchd => {
                vec![["launchctl", "load", "-w"].map(str::to_owned).into_iter().chain([text(path)]).collect()]
            }
        }
    }

    pub(super) fn stop(self, path: &Path) -> Vec<Vec<String>> {
        match self {
            Manager::Systemd => lines(&["systemctl --user disable --now pi-graft.service"]),
            Manager::Launchd => {
                vec![["launchctl", "unload", "-w"].map(str::to_owned).into_iter().chain([text(path)]).collect()]
            }
        }
    }

    /// What lets the manager know that the unit is gone.
    pub(super) fn forget(self) -> Vec<Vec<String>> {
        match self {
            Manager::Systemd => lines(&["systemctl --user daemon-reload"]),
            Manager::Launchd => Vec::new(),
        }
    }
}

fn lines(commands: &[&str]) -> Vec<Vec<String>> {
    commands.iter().map(|command| command.split(' ').map(str::to_owned).collect()).collect()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn systemd(unit: &Unit) -> String {
    let program: Vec<String> = unit.program.iter().map(|word| quoted(&text(word).replace('$', "$$"))).collect();
    let variable = |(name, value): &(&str, String)| format!("Environment={}", quoted(&format!("{name}={value}")));
    let variables: Vec<String> = unit.variables.iter().map(variable).collect();
    SYSTEMD
        .replace("@PROGRAM@", &program.join(" "))
        .replace("@ENVIRONMENT@", &text(&unit.environment).replace('%', "%%"))
        .replace("@VARIABLES@", &variables.join("\n"))
}

/// A word as systemd reads it: quoted, and without its specifiers.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

fn launchd(unit: &Unit) -> String {
    let program: Vec<String> =
        unit.program.iter().map(|word| format!("    <string>{}</string>", xml(&text(word)))).collect();
    let variable =
        |(name, value): &(&str, String)| format!("    <key>{name}</key>\n    <string>{}</string>", xml(value));
    let variables: Vec<String> = unit.variables.iter().map(variable).collect();
    LAUNCHD
        .replace("@PROGRAM@", &program.join("\n"))
        .replace("@VARIABLES@", &variables.join("\n"))
        .replace("@LOG@", &xml(&text(&unit.log)))
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Unit {
        Unit {
            program: ["/opt/a b/pi-graft", "--config", "/c/50%$x\".toml", "run"].map(PathBuf::from).to_vec(),
            variables: vec![("PATH", "/bin:/a & b".to_owned())],
            environment: "/c/environment".into(),
            log: "/l/<pi>.log".into(),
        }
    }

    #[test]
    fn systemd_reads_back_what_was_meant() {
        let text = systemd(&unit());
        assert!(text.contains(r#"ExecStart="/opt/a b/pi-graft" "--config" "/c/50%%$$x\".toml" "run""#), "{text}");
        assert!(text.contains("Environment=\"PATH=/bin:/a & b\"\n"), "{text}");
        assert!(text.contains("EnvironmentFile=-/c/environment\n") && !text.contains('@'), "{text}");
    }

    #[test]
    fn launchd_reads_back_what_was_meant() {
        let text = launchd(&unit());
        assert!(text.contains("<string>/opt/a b/pi-graft</string>") && text.contains("/bin:/a &amp; b"), "{text}");
        assert!(text.contains("<string>/l/&lt;pi&gt;.log</string>") && !text.contains('@'), "{text}");
    }
}
