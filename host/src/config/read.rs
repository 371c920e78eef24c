//! Reading a config: one pass that asks each table for the keys there are, and so knows which others stand there.
//!
//! Nothing stops at the first fault: a wrong value is noted and the default goes on in its place, so that a person sees
//! everything at once. A config with a fault is never used.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::env::Env;
use super::error::{ConfigError, Fault};
use super::nearest::nearest;
use super::setting::{Origin, Setting};

/// A config while it is read: the text, and what was found so far.
pub(super) struct Sheet<'a> {
    text: &'a str,
    /// The file, none for the shipped config.
    pub(super) path: Option<&'a Path>,
    /// What stands around it.
    pub(super) env: &'a Env,
    faults: Vec<(usize, Fault)>,
    notes: Vec<Fault>,
    settings: Vec<Setting>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(text: &'a str, path: Option<&'a Path>, env: &'a Env) -> Sheet<'a> {
        Sheet { text, path, env, faults: Vec::new(), notes: Vec::new(), settings: Vec::new() }
    }

    /// The parsed text; where it is no TOML, as much of it as can be understood.
    pub(super) fn parse(&mut self) -> DeTable<'a> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            self.fault(at, String::new(), error.message().to_owned());
        }
        table.into_inner()
    }

    pub(super) fn fault(&mut self, at: usize, key: String, message: String) {
        self.faults.push((at, Fault::at(self.text, at, key, message)));
    }

    /// Something that holds and is worth a word.
    pub(super) fn note(&mut self, at: usize, key: String, message: String) {
        self.notes.push(Fault::at(self.text, at, key, message));
    }

    pub(super) fn setting(&mut self, key: String, value: Value, origin: Origin) {
        self.settings.push(Setting { key, value, origin });
    }

    pub(super) fn line(&self, at: usize) -> u32 {
        self.text[..at].matches('\n').count() as u32 + 1
    }

    /// What relative paths are relative to: the config file's directory.
    pub(super) fn path_at(&self, text: &str) -> Result<PathBuf, String> {
        if text.starts_with('~') && text != "~" && !text.starts_with("~/") {
            return Err(format!("{text:?}: only ~ and ~/… stand for a home directory; write the path out"));
        }
        if text.starts_with('$') {
            return Err(format!("{text:?}: variables are not replaced here; begin with ~ or write the path out"));
        }
        let path = self.env.expand(text).map_err(|e| e.to_string())?;
        let base = self.path.and_then(Path::parent);
        Ok(base.map_or_else(|| path.clone(), |base| base.join(&path)))
    }

    /// What was found, or all that is wrong with it.
    pub(super) fn finish(self) -> Result<(Vec<Setting>, Vec<Fault>), ConfigError> {
        if self.faults.is_empty() {
            return Ok((self.settings, self.notes));
        }
        let mut faults = self.faults;
        faults.sort_by_key(|(at, _)| *at);
        let path = self.path.map_or_else(|| PathBuf::from("the shipped config"), Path::to_path_buf);
        Err(ConfigError::Faults { path, faults: faults.into_iter().map(|(_, fault)| fault).collect() })
    }
}

/// A value and where it stands.
pub(super) type Spot<'t, 'a> = &'t Spanned<DeValue<'a>>;

/// A table that is being read; none of the keys need be there.
pub(super) struct Section<'t, 'a> {
    /// Its name, such as `plugin.auto-compact`.
    name: String,
    table: Option<&'t DeTable<'a>>,
    asked: Vec<&'static str>,
}

impl<'t, 'a> Section<'t, 'a> {
    pub(super) fn new(name: impl Into<String>, table: Option<&'t DeTable<'a>>) -> Section<'t, 'a> {
        Section { name: name.into(), table, asked: Vec::new() }
    }

    /// The full name of a key in it.
    pub(super) fn key(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// The value of a key, which thereby is one that there is.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Spot<'t, 'a>> {
        self.asked.push(key);
        self.table?.get(key)
    }

    /// A table in it.
    pub(super) fn section(&mut self, sheet: &mut Sheet<'_>, key: &'static str) -> Section<'t, 'a> {
        let name = self.key(key);
        let spot = self.take(key);
        let table = spot.and_then(|spot| match spot.get_ref() {
            DeValue::Table(table) => Some(table),
            other => {
                sheet.fault(
                    spot.span().start,
                    name.clone(),
                    format!("expected a table [{name}], found {}", kind(other)),
                );
                None
            }
        });
        Section::new(name, table)
    }

    /// A value, else its default with its origin; noted as a setting. `parse` gives the value and how it is written.
    pub(super) fn value<T>(
        &mut self,
        sheet: &mut Sheet<'_>,
        key: &'static str,
        default: (T, Value, Origin),
        parse: impl FnOnce(&Sheet<'_>, &DeValue<'a>) -> Result<(T, Value), String>,
    ) -> T {
        let name = self.key(key);
        let Some(spot) = self.take(key) else {
            sheet.setting(name, default.1, default.2);
            return default.0;
        };
        let at = spot.span().start;
        match parse(sheet, spot.get_ref()) {
            Ok((value, shown)) => {
                sheet.setting(name, shown, Origin::File { line: sheet.line(at) });
                value
            }
            Err(message) => {
                sheet.fault(at, name, message);
                default.0
            }
        }
    }

    /// Every key that nobody asked for is a fault.
    pub(super) fn finish(self, sheet: &mut Sheet<'_>) {
        for (key, _) in self.table.into_iter().flatten() {
            let name: &str = key.get_ref();
            if !self.asked.contains(&name) {
                let message = self.unknown(name);
                sheet.fault(key.span().start, self.key(name), message);
            }
        }
    }

    fn unknown(&self, name: &str) -> String {
        match nearest(name, self.asked.iter().copied()) {
            Some(near) => format!("there is no such key; did you mean `{near}`?"),
            None => format!("there is no such key; there are {}", self.asked.join(", ")),
        }
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
