//! One `settings.json`, checked and kept as it stands.

use std::ops::Range;

use super::Fault;
use crate::json::{Json, Kind};

/// A `settings.json`. One that Pi cannot use is empty, as in Pi, and has a fault.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    name: String,
    text: Vec<u8>,
    /// Where in the text its one object is; none if there is nothing to take from it.
    object: Option<Range<usize>>,
    fault: Option<Fault>,
}

impl Settings {
    /// Settings from the text of a file; `name` is what faults and origins call it.
    #[must_use]
    pub fn parse(name: &str, text: &[u8]) -> Settings {
        let text = without_bom(text).to_vec();
        let mut settings = Settings { name: name.to_owned(), text, object: None, fault: None };
        if settings.text.is_empty() {
            return settings;
        }
        match read(&settings.text) {
            Ok(object) => settings.object = object,
            Err((at, why)) => {
                let message = format!("{why}; Pi goes on without this file");
                settings.fault = Some(Fault::at(name, &settings.text, at, message));
            }
        }
        settings
    }

    /// Settings that could not be read, which is no reason to stop.
    #[must_use]
    pub fn unreadable(name: &str, why: &str) -> Settings {
        let fault = Fault { file: name.to_owned(), line: 1, column: 1, message: format!("{why}; it counts as empty") };
        Settings { name: name.to_owned(), fault: Some(fault), ..Settings::default() }
    }

    /// The name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong with it.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// `defaultProjectTrust`: whether a project without a decision is trusted; none asks, which a daemon cannot.
    #[must_use]
    pub fn default_project_trust(&self) -> Option<bool> {
        let value = self.object()?.get("defaultProjectTrust")?;
        match value.as_str()?.as_ref() {
            "always" => Some(true),
            "never" => Some(false),
            _ => None,
        }
    }

    /// The object, empty for a file without one.
    pub(super) fn object(&self) -> Option<Json<'_>> {
        self.object.clone().map(|range| Json::checked(&self.text[range]))
    }

    /// A fault at a value that stands in it.
    pub(super) fn fault_at(&self, value: Json<'_>, message: String) -> Fault {
        Fault::at(&self.name, &self.text, offset_in(&self.text, value), message)
    }
}

/// Where a value that was taken from `text` stands in it.
pub(super) fn offset_in(text: &[u8], value: Json<'_>) -> usize {
    (value.raw().as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// The text without a byte order mark.
pub(super) fn without_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// The object of a text. An array is read and has no keys; anything else makes Pi stop reading.
fn read(text: &[u8]) -> Result<Option<Range<usize>>, (usize, String)> {
    let json = Json::parse(text).map_err(|error| (error.at, format!("not JSON: {}", error.what)))?;
    let at = offset_in(text, json);
    match json.kind() {
        Kind::Object => Ok(Some(at..at + json.raw().len())),
        Kind::Array => Ok(None),
        _ => Err((at, "not an object".to_owned())),
    }
}
