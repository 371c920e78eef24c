//! The project's settings over the agent directory's, merged as Pi merges them: objects key by key, all else replaced.

use super::{Fault, Origin, Settings};
use crate::json::{Json, Kind};

/// Two layers of settings.
pub(super) struct Merged<'a> {
    global: &'a Settings,
    project: Option<&'a Settings>,
}

/// A value that was found: in one layer, or an object in both.
#[derive(Clone, Copy)]
struct Both<'a> {
    global: Option<Json<'a>>,
    project: Option<Json<'a>>,
}

impl<'a> Both<'a> {
    /// The member of a name. What stands in the project wins; two objects are one.
    fn get(self, name: &str) -> Both<'a> {
        let of = |json: Option<Json<'a>>| json.and_then(|json| json.get(name));
        let (global, project) = (of(self.global), of(self.project));
        let is_object = |json: Option<Json<'_>>| json.is_some_and(|json| json.kind() == Kind::Object);
        let hides = project.is_some() && !(is_object(global) && is_object(project));
        Both { global: global.filter(|_| !hides), project }
    }
}

impl<'a> Merged<'a> {
    pub(super) fn new(global: &'a Settings, project: Option<&'a Settings>) -> Merged<'a> {
        Merged { global, project }
    }

    /// The value at a path of names, and where it stands.
    pub(super) fn find(&self, path: &[&str]) -> Option<(Json<'a>, Origin)> {
        let top = Both { global: self.global.object(), project: self.project.and_then(Settings::object) };
        let found = path.iter().fold(top, |at, name| at.get(name));
        let value = found.project.or(found.global)?;
        let file = self.owner(found.project.is_some()).name().to_owned();
        Some((value, Origin::File { file, key: key_of(path) }))
    }

    /// A fault at a value that [`Merged::find`] gave.
    pub(super) fn fault(&self, value: Json<'_>, origin: &Origin, what: &str) -> Fault {
        let key = if let Origin::File { key, .. } = origin { key.as_str() } else { "" };
        let in_project = self.project.is_some_and(|project| holds(project, value));
        self.owner(in_project).fault_at(value, format!("{key}: {what}; Pi refuses to work with it"))
    }

    fn owner(&self, in_project: bool) -> &'a Settings {
        self.project.filter(|_| in_project).unwrap_or(self.global)
    }
}

/// Whether a value stands in these settings, and not in others that read alike.
fn holds(settings: &Settings, value: Json<'_>) -> bool {
    let bytes = |json: Json<'_>| json.raw().as_ptr_range();
    settings.object().is_some_and(|object| bytes(object).contains(&bytes(value).start))
}

/// `compaction.modelOverrides["a/b"].reserveTokens`
fn key_of(path: &[&str]) -> String {
    let mut key = String::new();
    for name in path {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric());
        match plain {
            true if key.is_empty() => key.push_str(name),
            true => key.extend([".", name]),
            false => key.extend(["[", &crate::json::quoted(name), "]"]),
        }
    }
    key
}
