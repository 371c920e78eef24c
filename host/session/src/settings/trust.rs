//! Whether Pi trusts a project: only then does it take the project's settings (all but `sessionDir`).
//!
//! `trust.json` in the agent directory holds the user's decisions by directory; the nearest one above the real path of the
//! working directory counts. Without one, `defaultProjectTrust` decides; where that says to ask, a Pi without a terminal
//! does not trust. What a user says for one run only, and what an extension says, cannot be seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::without_bom;
use super::{Fault, Settings};
use crate::json::{Json, Kind};

/// The decisions in a `trust.json`.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    decisions: Decisions,
    fault: Option<Fault>,
}

impl Trust {
    /// Decisions from the text of a file, which faults call `name`. One that Pi cannot read holds none.
    #[must_use]
    pub fn parse(name: &str, text: &[u8]) -> Trust {
        let text = without_bom(text);
        match decisions(text) {
            Ok(decisions) => Trust { decisions, fault: None },
            Err((at, message)) => {
                let message = format!("{message}; Pi cannot start, and here no project is trusted");
                Trust { decisions: Decisions::new(), fault: Some(Fault::at(name, text, at, message)) }
            }
        }
    }

    /// Decisions that could not be read.
    #[must_use]
    pub fn unreadable(name: &str, why: &str) -> Trust {
        Trust { decisions: Decisions::new(), fault: Settings::unreadable(name, why).fault().cloned() }
    }

    /// What is wrong with the file.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The user's decision on a directory, given by its real path: that of the nearest one above it.
    #[must_use]
    pub fn decision(&self, dir: &Path) -> Option<bool> {
        dir.ancestors().find_map(|dir| *self.decisions.get(dir)?)
    }

    /// Whether a Pi that asks nobody takes the settings of the project there.
    #[must_use]
    pub fn trusts(&self, dir: &Path, global: &Settings) -> bool {
        self.decision(dir).or(global.default_project_trust()).unwrap_or(false)
    }
}

/// By directory; `null` is no decision. Paths that differ in their spelling alone are one.
type Decisions = BTreeMap<PathBuf, Option<bool>>;

fn decisions(text: &[u8]) -> Result<Decisions, (usize, String)> {
    let json = Json::parse(text).map_err(|error| (error.at, format!("not JSON: {}", error.what)))?;
    let at = |value: Json<'_>| super::file::offset_in(text, value);
    if json.kind() != Kind::Object {
        return Err((at(json), "not an object".to_owned()));
    }
    let mut decisions = Decisions::new();
    for (key, value) in json.members() {
        let (path, decision) = (PathBuf::from(key.text().as_ref()), value.as_bool());
        if decision.is_none() && !value.is_null() {
            return Err((at(value), format!("{}: not true, false or null", path.display())));
        }
        decisions.insert(path, decision);
    }
    Ok(decisions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusts(trust: &str, global: &str, dir: &str) -> bool {
        let trust = Trust::parse("trust.json", trust.as_bytes());
        trust.trusts(Path::new(dir), &Settings::parse("settings.json", global.as_bytes()))
    }

    #[test]
    fn the_nearest_decision_counts() {
        let trust = r#"{"/a":true,"/a/b":false,"/a/b/c":null}"#;
        for (dir, is) in
            [("/a", true), ("/a/x", true), ("/a/b", false), ("/a/b/c/d", false), ("/", false), ("/ab", false)]
        {
            assert_eq!(trusts(trust, "{}", dir), is, "{dir}");
        }
    }

    #[test]
    fn without_one_the_users_default_does() {
        assert!(trusts("{}", r#"{"defaultProjectTrust":"always"}"#, "/a"));
        assert!(!trusts(r#"{"/a":false}"#, r#"{"defaultProjectTrust":"always"}"#, "/a"));
        for default in ["{}", r#"{"defaultProjectTrust":"never"}"#, r#"{"defaultProjectTrust":"ask"}"#] {
            assert!(!trusts("{}", default, "/a"), "{default}");
        }
    }

    #[test]
    fn a_broken_file_trusts_nobody_and_says_where() {
        let trust = Trust::parse("t", b"{\"/a\":true,\n\"/b\":1}");
        assert_eq!(trust.decision(Path::new("/a")), None);
        let fault = trust.fault().expect("a fault");
        assert_eq!((fault.line, fault.column), (2, 6), "{fault}");
    }
}
